//! Types of elements, and shapes.

use super::block::Block;
use crate::error::{Error, Result};
use crate::io::Reader;
use crate::model::{DType, Endian, Lanes, Scalar};
use crate::prelude::*;

/// Types within types, at most.
const MOST_DEPTH: usize = 8;
/// Dimensions, at most.
const MOST_RANK: u8 = 32;

/// The type of elements.
#[derive(Clone, Debug)]
pub(super) struct Datatype {
    /// Bytes of an element.
    pub(super) size: u32,
    pub(super) class: Class,
}

/// What elements are.
#[derive(Clone, Debug)]
pub(super) enum Class {
    Number {
        dtype: DType,
        endian: Endian,
        /// Whether the numbers have names, which are not kept.
        named: bool,
    },
    /// A number that no type here is.
    Unknown(Error),
    /// Text of a fixed length.
    Text,
    /// Text anywhere in the file.
    LongText,
    Opaque,
    /// The address of an object.
    Reference,
    /// No numbers, and no text: what they are called.
    Other(&'static str),
}

impl Datatype {
    pub(super) fn read(block: &Block) -> Result<Self> {
        block.parse(|r| Self::parse(r, 0))
    }

    pub(super) fn parse(r: &mut Reader<'_>, depth: usize) -> Result<Self> {
        if depth > MOST_DEPTH {
            let message = format!("more than {MOST_DEPTH} types within each other");
            return Err(Error::malformed("hdf5.datatype", message));
        }
        let head = r.u8("class of a type")?;
        let (class, version) = (head & 15, head >> 4);
        let [bits, sign, high] = r.array("bits of a type")?;
        let size = r.u32("size of a type")?;
        if !(1..=5).contains(&version) {
            let message = format!("a type of version {version}, 1 to 5 are known");
            return Err(Error::unsupported("hdf5.datatype", message));
        }
        let count = u16::from_le_bytes([bits, sign]);
        let class = match class {
            0 => integer(r, bits, size)?,
            1 => float(r, bits, sign, size)?,
            2 => Class::Other("time"),
            3 => Class::Text,
            4 => Class::Other("bit field"),
            5 => Class::Opaque,
            6 => compound(r, version, count, size, depth)?,
            7 if bits & 15 == 0 && size == 8 => Class::Reference,
            7 => Class::Other("reference"),
            8 => enumeration(r, version, count, depth)?,
            9 if bits & 15 == 1 => Class::LongText,
            9 if bits & 15 == 0 => list(r, depth)?,
            9 => Class::Other("variable length"),
            10 => Class::Other("array"),
            11 => complex(r, size, depth)?,
            class => {
                let message = format!("a type of class {class}, 0 to 11 are known");
                return Err(Error::unsupported("hdf5.datatype", message));
            }
        };
        let _ = high;
        if let Class::Number { dtype, .. } = &class
            && dtype.width().map(|width| width as u64) != Some(size.into())
        {
            let message = format!("elements of {dtype} that have {size} bytes");
            return Err(Error::malformed("hdf5.datatype", message));
        }
        Ok(Self { size, class })
    }
}

/// A list of characters is text, as MATLAB has the names of fields.
fn list(r: &mut Reader<'_>, depth: usize) -> Result<Class> {
    let of = Datatype::parse(r, depth + 1)?;
    Ok(match of.class {
        Class::Text if of.size == 1 => Class::LongText,
        _ => Class::Other("variable length"),
    })
}

fn endian(bits: u8) -> Endian {
    if bits & 1 == 0 {
        Endian::Little
    } else {
        Endian::Big
    }
}

fn real(scalar: Scalar, bits: u8) -> Class {
    Class::Number {
        dtype: DType::Number(scalar, Lanes::Real),
        endian: endian(bits),
        named: false,
    }
}

fn integer(r: &mut Reader<'_>, bits: u8, size: u32) -> Result<Class> {
    let offset = r.u16("bit offset")?;
    let precision = r.u16("precision")?;
    let scalar = match (size, bits & 8 != 0) {
        (1, false) => Some(Scalar::U8),
        (2, false) => Some(Scalar::U16),
        (4, false) => Some(Scalar::U32),
        (8, false) => Some(Scalar::U64),
        (1, true) => Some(Scalar::I8),
        (2, true) => Some(Scalar::I16),
        (4, true) => Some(Scalar::I32),
        (8, true) => Some(Scalar::I64),
        _ => None,
    };
    let is_plain = offset == 0 && u32::from(precision) == size.saturating_mul(8);
    Ok(match scalar.filter(|_| is_plain) {
        Some(scalar) => real(scalar, bits),
        None => Class::Unknown(Error::unsupported(
            "hdf5.datatype",
            format!(
                "integers of {precision} bits at bit {offset} of {size} bytes, for which tenfold has no type"
            ),
        )),
    })
}

/// Floating-point numbers: size, place of the sign, place and bits of the exponent, of the mantissa, bias.
type FloatForm = (u32, u8, u8, u8, u8, u8, u32);

const FLOATS: &[(FloatForm, Scalar)] = &[
    ((4, 31, 23, 8, 0, 23, 127), Scalar::F32),
    ((8, 63, 52, 11, 0, 52, 1023), Scalar::F64),
    ((2, 15, 10, 5, 0, 10, 15), Scalar::F16),
    ((2, 15, 7, 8, 0, 7, 127), Scalar::BF16),
    ((1, 7, 3, 4, 0, 3, 7), Scalar::F8E4M3),
    ((1, 7, 2, 5, 0, 2, 15), Scalar::F8E5M2),
];

fn float(r: &mut Reader<'_>, bits: u8, sign: u8, size: u32) -> Result<Class> {
    let offset = r.u16("bit offset")?;
    let precision = r.u16("precision")?;
    let [e_at, e_bits, m_at, m_bits] = r.array("exponent and mantissa")?;
    let bias = r.u32("bias")?;
    let is_vax = bits & 0x40 != 0;
    let is_plain = offset == 0 && u32::from(precision) == size.saturating_mul(8) && !is_vax;
    let form = (size, sign, e_at, e_bits, m_at, m_bits, bias);
    let known = FLOATS.iter().find(|(known, _)| *known == form && is_plain);
    Ok(match known {
        Some((_, scalar)) => real(*scalar, bits),
        None => Class::Unknown(Error::unsupported(
            "hdf5.datatype",
            format!(
                "{}floating-point numbers of {precision} bits in {size} bytes, {e_bits} of the exponent and \
                {m_bits} of the mantissa, for which tenfold has no type",
                if is_vax { "VAX " } else { "" }
            ),
        )),
    })
}

/// Complex numbers are a compound of two, as h5py and MATLAB have them.
fn compound(r: &mut Reader<'_>, version: u8, count: u16, size: u32, depth: usize) -> Result<Class> {
    const OTHER: Class = Class::Other("compound");
    if count != 2 {
        return Ok(OTHER);
    }
    let mut members = Vec::new();
    for _ in 0..2 {
        let name = name(r, version)?;
        let offset = match (version, size) {
            (1 | 2, _) | (_, 0x0100_0000..) => r.u32("offset of a member")?,
            (_, ..0x100) => r.u8("offset of a member")?.into(),
            (_, ..0x1_0000) => r.u16("offset of a member")?.into(),
            _ => {
                let [a, b, c] = r.array("offset of a member")?;
                u32::from_le_bytes([a, b, c, 0])
            }
        };
        if version == 1 {
            r.skip(28, "dimensions of a member")?;
        }
        let member = Datatype::parse(r, depth + 1)?;
        let Class::Number {
            dtype,
            endian,
            named: false,
        } = member.class
        else {
            // How long its description is follows from nothing here.
            return Ok(OTHER);
        };
        members.push((name, offset, dtype, endian, member.size));
    }
    Ok(match members.as_slice() {
        [(a, 0, first, endian, width), (b, offset, second, other, _)]
            if (a.as_slice(), b.as_slice()) == (b"r", b"i")
                || (a.as_slice(), b.as_slice()) == (b"real", b"imag") =>
        {
            let is_pair = first == second && endian == other && offset == width;
            match (is_pair && size == width.saturating_mul(2), first) {
                (true, &DType::F32) => pair(DType::C64, *endian),
                (true, &DType::F64) => pair(DType::C128, *endian),
                _ => OTHER,
            }
        }
        _ => OTHER,
    })
}

fn pair(dtype: DType, endian: Endian) -> Class {
    Class::Number {
        dtype,
        endian,
        named: false,
    }
}

/// A name that ends with a zero byte; before version 3 it is padded to 8.
fn name(r: &mut Reader<'_>, version: u8) -> Result<Vec<u8>> {
    let from = r.pos();
    let mut name = Vec::new();
    loop {
        match r.u8("name of a member")? {
            0 => break,
            byte => name.push(byte),
        }
    }
    let len = r.pos() - from;
    if version < 3 {
        r.skip(len.next_multiple_of(8) - len, "padding of a name")?;
    }
    Ok(name)
}

/// Numbers with names. FALSE and TRUE in a byte are how h5py has booleans.
fn enumeration(r: &mut Reader<'_>, version: u8, count: u16, depth: usize) -> Result<Class> {
    let base = Datatype::parse(r, depth + 1)?;
    let Class::Number { dtype, endian, .. } = base.class else {
        return Ok(Class::Other("enumeration"));
    };
    let mut names = Vec::new();
    for place in 0..count {
        let name = name(r, version)?;
        if place < 2 {
            names.push(name);
        }
    }
    let is_bool = count == 2
        && base.size == 1
        && names == [b"FALSE".to_vec(), b"TRUE".to_vec()]
        && r.array::<2>("values of an enumeration")? == [0, 1];
    Ok(Class::Number {
        dtype: if is_bool { DType::BOOL } else { dtype },
        endian,
        named: !is_bool,
    })
}

fn complex(r: &mut Reader<'_>, size: u32, depth: usize) -> Result<Class> {
    let base = Datatype::parse(r, depth + 1)?;
    let unknown = |what: &str| {
        let message =
            format!("complex numbers of {what} in {size} bytes, for which tenfold has no type");
        Class::Unknown(Error::unsupported("hdf5.datatype", message))
    };
    Ok(match base.class {
        Class::Number {
            dtype: DType::F32,
            endian,
            ..
        } if size == 8 => pair(DType::C64, endian),
        Class::Number {
            dtype: DType::F64,
            endian,
            ..
        } if size == 16 => pair(DType::C128, endian),
        Class::Number { dtype, .. } => unknown(&dtype.to_string()),
        _ => unknown("another kind"),
    })
}

/// The shape of elements.
#[derive(Clone, Debug)]
pub(super) struct Dataspace {
    /// No elements at all, not even of a shape.
    pub(super) is_null: bool,
    pub(super) dims: Vec<u64>,
    /// What they can grow to: `u64::MAX` for anything.
    pub(super) most: Vec<u64>,
}

impl Dataspace {
    pub(super) fn read(block: &Block) -> Result<Self> {
        block.parse(Self::parse)
    }

    pub(super) fn parse(r: &mut Reader<'_>) -> Result<Self> {
        let wrong = |message: String| Error::malformed("hdf5.dataspace", message);
        let version = r.u8("version of a dataspace")?;
        let rank = r.u8("rank")?;
        let flags = r.u8("flags of a dataspace")?;
        let is_null = match version {
            1 => {
                r.skip(5, "reserved")?;
                false
            }
            2 => match r.u8("kind of a dataspace")? {
                0 | 1 => false,
                2 => true,
                kind => return Err(wrong(format!("a dataspace of kind {kind}"))),
            },
            _ => {
                let message = format!("a dataspace of version {version}, 1 and 2 are known");
                return Err(Error::unsupported("hdf5.dataspace", message));
            }
        };
        if rank > MOST_RANK {
            return Err(wrong(format!(
                "{rank} dimensions, at most {MOST_RANK} are allowed"
            )));
        }
        let mut list = |field| {
            (0..rank)
                .map(|_| r.u64(field))
                .collect::<Result<Vec<u64>>>()
        };
        let dims = list("dimension")?;
        let most = if flags & 1 == 0 {
            dims.clone()
        } else {
            list("maximum of a dimension")?
        };
        if let Some((dim, most)) = dims.iter().zip(&most).find(|(dim, most)| dim > most) {
            return Err(wrong(format!(
                "a dimension of {dim}, at most {most} are allowed"
            )));
        }
        Ok(Self {
            is_null,
            dims,
            most,
        })
    }
}
