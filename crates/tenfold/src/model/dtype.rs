//! Element types: numbers, elements of several numbers, blocks of quantized values.

use core::fmt;

use crate::prelude::*;

/// One number of an element. Types of less than a byte are packed with the first value in the lowest bits.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
#[allow(missing_docs)] // the names say it
pub enum Scalar {
    Bool,
    U1,
    U2,
    U4,
    U8,
    U16,
    U32,
    U64,
    U128,
    I2,
    I4,
    I8,
    I16,
    I32,
    I64,
    I128,
    F4E2M1,
    F6E2M3,
    F6E3M2,
    F8E4M3,
    F8E4M3Fnuz,
    F8E5M2,
    F8E5M2Fnuz,
    F8E8M0,
    F16,
    BF16,
    F32,
    F64,
    F128,
}

/// Every scalar with its size in bits and its name, in the order of the enum.
const SCALARS: &[(Scalar, u32, &str)] = &[
    (Scalar::Bool, 8, "bool"),
    (Scalar::U1, 1, "u1"),
    (Scalar::U2, 2, "u2"),
    (Scalar::U4, 4, "u4"),
    (Scalar::U8, 8, "u8"),
    (Scalar::U16, 16, "u16"),
    (Scalar::U32, 32, "u32"),
    (Scalar::U64, 64, "u64"),
    (Scalar::U128, 128, "u128"),
    (Scalar::I2, 2, "i2"),
    (Scalar::I4, 4, "i4"),
    (Scalar::I8, 8, "i8"),
    (Scalar::I16, 16, "i16"),
    (Scalar::I32, 32, "i32"),
    (Scalar::I64, 64, "i64"),
    (Scalar::I128, 128, "i128"),
    (Scalar::F4E2M1, 4, "f4_e2m1"),
    (Scalar::F6E2M3, 6, "f6_e2m3"),
    (Scalar::F6E3M2, 6, "f6_e3m2"),
    (Scalar::F8E4M3, 8, "f8_e4m3"),
    (Scalar::F8E4M3Fnuz, 8, "f8_e4m3fnuz"),
    (Scalar::F8E5M2, 8, "f8_e5m2"),
    (Scalar::F8E5M2Fnuz, 8, "f8_e5m2fnuz"),
    (Scalar::F8E8M0, 8, "f8_e8m0"),
    (Scalar::F16, 16, "f16"),
    (Scalar::BF16, 16, "bf16"),
    (Scalar::F32, 32, "f32"),
    (Scalar::F64, 64, "f64"),
    (Scalar::F128, 128, "f128"),
];

impl Scalar {
    /// Every scalar, smallest kinds first.
    pub fn all() -> impl ExactSizeIterator<Item = Scalar> {
        SCALARS.iter().map(|&(scalar, ..)| scalar)
    }

    /// Whether it is an integer that can be below 0.
    pub fn is_signed_integer(self) -> bool {
        use Scalar::{I2, I4, I8, I16, I32, I64, I128};
        matches!(self, I2 | I4 | I8 | I16 | I32 | I64 | I128)
    }

    /// Whether it is a floating-point type: one with exponents.
    pub fn is_float(self) -> bool {
        self >= Scalar::F4E2M1
    }

    /// Bits that one number takes.
    pub fn bits(self) -> u32 {
        self.row().1
    }

    /// The name used everywhere: `bf16`, `f8_e4m3`, `u4`.
    pub fn name(self) -> &'static str {
        self.row().2
    }

    /// The scalar with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        SCALARS.iter().find(|row| row.2 == name).map(|row| row.0)
    }

    #[allow(clippy::indexing_slicing)] // one row per variant in the variants' order; a unit test holds it to that
    fn row(self) -> &'static (Scalar, u32, &'static str) {
        &SCALARS[self as usize]
    }
}

/// How many numbers make one element.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
#[allow(missing_docs)] // the names say it
pub enum Lanes {
    Real = 1,
    Complex = 2,
    Quaternion = 4,
    Octonion = 8,
}

impl Lanes {
    const ALL: [Lanes; 4] = [
        Lanes::Real,
        Lanes::Complex,
        Lanes::Quaternion,
        Lanes::Octonion,
    ];

    /// Numbers per element.
    pub fn count(self) -> u32 {
        self as u32
    }

    /// The lanes with this many numbers.
    pub fn from_count(count: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|lanes| lanes.count() == count)
    }
}

/// Values that are stored together in blocks of a fixed size (GGUF's quantized types).
#[derive(Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct BlockSpec {
    /// The name, as GGUF spells it: `Q4_K`.
    pub name: &'static str,
    /// Elements in one block.
    pub elements: u32,
    /// Bytes of one block.
    pub bytes: u32,
    /// Where numbers of 16 bits are in a block, for the types that occur in big-endian files.
    pub halves: Option<&'static [usize]>,
}

const fn block(name: &'static str, elements: u32, bytes: u32) -> BlockSpec {
    BlockSpec {
        name,
        elements,
        bytes,
        halves: None,
    }
}

impl BlockSpec {
    const fn with_halves(mut self, halves: &'static [usize]) -> Self {
        self.halves = Some(halves);
        self
    }

    /// Turns the numbers of whole blocks into those of the other byte order.
    pub fn swap(&self, blocks: &mut [u8]) {
        for block in blocks.chunks_exact_mut(self.bytes as usize) {
            for &at in self.halves.unwrap_or_default() {
                if let Some(half) = block.get_mut(at..at + 2) {
                    half.reverse();
                }
            }
        }
    }
}

static BLOCKS: &[BlockSpec] = &[
    block("Q4_0", 32, 18).with_halves(&[0]),
    block("Q4_1", 32, 20),
    block("Q5_0", 32, 22),
    block("Q5_1", 32, 24),
    block("Q8_0", 32, 34).with_halves(&[0]),
    block("Q8_1", 32, 36),
    block("Q2_K", 256, 84),
    block("Q3_K", 256, 110),
    block("Q4_K", 256, 144).with_halves(&[0, 2]),
    block("Q5_K", 256, 176),
    block("Q6_K", 256, 210).with_halves(&[208]),
    block("Q8_K", 256, 292),
    block("IQ2_XXS", 256, 66),
    block("IQ2_XS", 256, 74),
    block("IQ3_XXS", 256, 98),
    block("IQ1_S", 256, 50),
    block("IQ4_NL", 32, 18),
    block("IQ3_S", 256, 110),
    block("IQ2_S", 256, 82),
    block("IQ4_XS", 256, 136),
    block("IQ1_M", 256, 56),
    block("TQ1_0", 256, 54),
    block("TQ2_0", 256, 66),
    block("MXFP4", 32, 17).with_halves(&[]),
    block("NVFP4", 64, 36).with_halves(&[]),
    block("Q1_0", 128, 18),
    block("Q2_0", 64, 18),
];

impl BlockSpec {
    /// Every block type.
    pub fn all() -> &'static [BlockSpec] {
        BLOCKS
    }

    /// The block type with this name, for tables: a name that none has does not compile.
    #[allow(clippy::indexing_slicing)] // in constants
    pub(crate) const fn named(name: &str) -> &'static BlockSpec {
        let mut at = 0;
        while at < BLOCKS.len() {
            if is_same(BLOCKS[at].name, name) {
                return &BLOCKS[at];
            }
            at += 1;
        }
        panic!("no block type has this name")
    }

    /// The block type with this name, in any case.
    pub fn from_name(name: &str) -> Option<&'static BlockSpec> {
        BLOCKS
            .iter()
            .find(|spec| spec.name.eq_ignore_ascii_case(name))
    }
}

/// Whether two texts are the same, for constants.
#[allow(clippy::indexing_slicing)] // in constants
const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// Elements that mean something only together with other parts or with a program.
#[derive(Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct OpaqueSpec {
    /// What they are called.
    pub name: &'static str,
}

impl OpaqueSpec {
    /// Elements that are called `name`.
    pub const fn new(name: &'static str) -> Self {
        Self { name }
    }
}

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum DType {
    /// One or several numbers per element.
    Number(Scalar, Lanes),
    /// Elements in quantized blocks.
    Block(&'static BlockSpec),
    /// Elements whose bytes mean something only together with other parts or with a program.
    Opaque(&'static OpaqueSpec),
}

#[allow(missing_docs)] // the names say it
impl DType {
    pub const BOOL: DType = DType::Number(Scalar::Bool, Lanes::Real);
    pub const U8: DType = DType::Number(Scalar::U8, Lanes::Real);
    pub const U16: DType = DType::Number(Scalar::U16, Lanes::Real);
    pub const U32: DType = DType::Number(Scalar::U32, Lanes::Real);
    pub const U64: DType = DType::Number(Scalar::U64, Lanes::Real);
    pub const I8: DType = DType::Number(Scalar::I8, Lanes::Real);
    pub const I16: DType = DType::Number(Scalar::I16, Lanes::Real);
    pub const I32: DType = DType::Number(Scalar::I32, Lanes::Real);
    pub const I64: DType = DType::Number(Scalar::I64, Lanes::Real);
    pub const F4_E2M1: DType = DType::Number(Scalar::F4E2M1, Lanes::Real);
    pub const F8_E4M3: DType = DType::Number(Scalar::F8E4M3, Lanes::Real);
    pub const F8_E4M3FNUZ: DType = DType::Number(Scalar::F8E4M3Fnuz, Lanes::Real);
    pub const F8_E5M2: DType = DType::Number(Scalar::F8E5M2, Lanes::Real);
    pub const F8_E5M2FNUZ: DType = DType::Number(Scalar::F8E5M2Fnuz, Lanes::Real);
    pub const F8_E8M0: DType = DType::Number(Scalar::F8E8M0, Lanes::Real);
    pub const F16: DType = DType::Number(Scalar::F16, Lanes::Real);
    pub const BF16: DType = DType::Number(Scalar::BF16, Lanes::Real);
    pub const F32: DType = DType::Number(Scalar::F32, Lanes::Real);
    pub const F64: DType = DType::Number(Scalar::F64, Lanes::Real);
    pub const C64: DType = DType::Number(Scalar::F32, Lanes::Complex);
    pub const C128: DType = DType::Number(Scalar::F64, Lanes::Complex);
    /// A type that the file names and this library does not know. Tensors of it are listed, not read.
    pub const UNKNOWN: DType = DType::Opaque(&OpaqueSpec::new("unknown"));
    /// Several parts with a meaning of their own (quantized groups and the like).
    pub const PARTS: DType = DType::Opaque(&OpaqueSpec::new("parts"));
    /// Text, which is not numbers.
    pub const TEXT: DType = DType::Opaque(&OpaqueSpec::new("text"));
    /// Records of several fields, which are not numbers.
    pub const RECORDS: DType = DType::Opaque(&OpaqueSpec::new("records"));
}

impl DType {
    /// Every number type with every number of lanes, and every block type.
    pub fn all() -> impl Iterator<Item = DType> {
        let numbers = Lanes::ALL
            .into_iter()
            .flat_map(|lanes| Scalar::all().map(move |scalar| DType::Number(scalar, lanes)));
        numbers.chain(BLOCKS.iter().map(DType::Block))
    }

    /// Whether both are the same type. Numbers, which most are, are compared without a call.
    #[inline]
    pub(crate) fn is(self, other: Self) -> bool {
        match (self, other) {
            (DType::Number(a, lanes), DType::Number(b, others)) => a == b && lanes == others,
            (a, b) => a == b,
        }
    }

    /// Bytes that `elements` take, the last byte rounded up; `None` on overflow, a split block, or an opaque type.
    pub fn bytes_for(self, elements: u64) -> Option<u64> {
        match self {
            DType::Number(scalar, lanes) => {
                let bits = scalar.bits() * lanes.count();
                if bits % 8 == 0 {
                    return elements.checked_mul(u64::from(bits / 8));
                }
                // Below a byte: whole bytes of elements first, so that the product cannot overflow early.
                let whole = (elements / 8).checked_mul(u64::from(bits))?;
                whole.checked_add((elements % 8 * u64::from(bits)).div_ceil(8))
            }
            DType::Block(spec) => {
                let per_block = u64::from(spec.elements);
                if !elements.is_multiple_of(per_block) {
                    return None;
                }
                (elements / per_block).checked_mul(u64::from(spec.bytes))
            }
            DType::Opaque(_) => None,
        }
    }

    /// Bytes of one element, when that is a whole number.
    pub fn width(self) -> Option<usize> {
        match self {
            DType::Number(scalar, lanes) => {
                let bits = scalar.bits() * lanes.count();
                (bits % 8 == 0).then_some((bits / 8) as usize)
            }
            DType::Block(_) | DType::Opaque(_) => None,
        }
    }

    /// Whether the order of bytes makes a difference.
    pub fn is_ordered(self) -> bool {
        match self {
            DType::Block(spec) => spec.halves.is_none_or(|halves| !halves.is_empty()),
            _ => self.swap_width() > 1,
        }
    }

    /// Bytes of one number, for types whose byte order matters: 1 for the others.
    pub fn swap_width(self) -> usize {
        match self {
            DType::Number(scalar, _) => (scalar.bits() / 8).max(1) as usize,
            DType::Block(_) | DType::Opaque(_) => 1,
        }
    }

    /// The type with this name: `bf16`, `c64`, `f64x4`, `gguf:Q4_K`.
    pub fn from_name(name: &str) -> Option<Self> {
        if let Some(block) = name.strip_prefix("gguf:") {
            return BlockSpec::from_name(block).map(DType::Block);
        }
        match name {
            "c64" => return Some(DType::C64),
            "c128" => return Some(DType::C128),
            _ => {}
        }
        match name.rsplit_once('x') {
            Some((scalar, count)) => {
                let lanes = Lanes::from_count(count.parse().ok()?)?;
                Some(DType::Number(Scalar::from_name(scalar)?, lanes))
            }
            None => Some(DType::Number(Scalar::from_name(name)?, Lanes::Real)),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            DType::C64 => f.pad("c64"),
            DType::C128 => f.pad("c128"),
            DType::Number(scalar, Lanes::Real) => f.pad(scalar.name()),
            DType::Number(scalar, lanes) => f.pad(&format!("{}x{}", scalar.name(), lanes.count())),
            DType::Block(spec) => f.pad(&format!("gguf:{}", spec.name)),
            DType::Opaque(spec) => f.pad(spec.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scalar_table_follows_the_enum() {
        for (index, &(scalar, ..)) in SCALARS.iter().enumerate() {
            assert_eq!(scalar as usize, index, "{scalar:?}");
        }
        assert_eq!(SCALARS.len(), Scalar::F128 as usize + 1);
    }

    #[test]
    fn every_name_leads_back_to_its_type() {
        for dtype in DType::all() {
            assert_eq!(DType::from_name(&dtype.to_string()), Some(dtype), "{dtype}");
        }
        assert_eq!(DType::from_name("f32x3"), None);
        assert_eq!(DType::from_name("F32"), None);
    }

    #[test]
    fn sizes_round_up_to_whole_bytes_and_notice_overflow() {
        assert_eq!(DType::F32.bytes_for(3), Some(12));
        assert_eq!(DType::F4_E2M1.bytes_for(5), Some(3));
        assert_eq!(
            DType::Number(Scalar::F6E2M3, Lanes::Real).bytes_for(5),
            Some(4)
        );
        assert_eq!(
            DType::Number(Scalar::U1, Lanes::Real).bytes_for(u64::MAX),
            Some(1 << 61)
        );
        assert_eq!(DType::F32.bytes_for(1 << 62), None);
        assert_eq!(
            DType::from_name("gguf:Q8_0").unwrap().bytes_for(64),
            Some(68)
        );
        assert_eq!(DType::from_name("gguf:Q8_0").unwrap().bytes_for(33), None);
    }
}
