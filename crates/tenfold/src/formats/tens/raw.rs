//! The structures as they are in the file, with the names of the specification.

use super::{FLOATS, INTEGERS};
use crate::error::{Error, Result};
use crate::io::Reader;
use crate::model::{DType, Endian, Lanes, Scalar};
use crate::prelude::*;

pub(super) const TRUNCATED: &str = "tens.truncated";

/// The number of version 1.0 and of version 0.9.
pub(super) const VERSION_10: u32 = 0x0001_0000;
pub(super) const VERSION_09: u32 = 0x9000;

/// Tensor flag: indices and values instead of a sequence.
pub(super) const IX: u32 = 1;
/// Dimension flag: sparse.
pub(super) const SP: u8 = 1;
/// Symmetry flag: packed.
pub(super) const PK: u8 = 1;

/// Magics of chunks that are understood.
pub(super) const SYMMETRY: &[u8; 8] = b"SYMMETRY";
pub(super) const DENSDATA: &[u8; 8] = b"DENSDATA";

/// The first 32 bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Header {
    /// The version: 0x00010000 is 1.0.
    pub(crate) version: u32,
    /// Number type, bytes per number and numbers per element.
    pub(crate) dtype: DType,
    /// The byte order, which is a part of the number type.
    pub(crate) endian: Endian,
    /// Dimensions.
    pub(crate) order: u32,
    /// Flags: bit 0 is IX.
    pub(crate) flags: u32,
    /// Reserved.
    pub(crate) zero: u32,
}

impl Header {
    /// Bytes of a header.
    pub(crate) const LEN: u64 = 32;

    /// Reads a header.
    pub(crate) fn parse(r: &mut Reader<'_>) -> Result<Self> {
        let magic: [u8; 4] = r.array("magic")?;
        if magic != *b"TENS" {
            let found = magic.escape_ascii();
            let message = format!("the file begins with \"{found}\", not with TENS");
            return Err(Error::malformed("tens.magic", message).at(0..4));
        }
        let version = r.u32("version")?;
        if version != VERSION_09 && version >> 16 != 1 {
            let message =
                format!("version {version:#010x}; 0x00010000 (1.0) and 0x00009000 (0.9) are known");
            return Err(Error::unsupported("tens.version", message).at(4..8));
        }
        let number_type: [u8; 4] = r.array("number type")?;
        let bytes = r.u32("bytes per number")?;
        let numbers = r.u32("numbers per element")?;
        let (dtype, endian) = number(number_type, bytes, numbers)?;
        Ok(Self {
            version,
            dtype,
            endian,
            order: r.u32("order")?,
            flags: r.u32("flags")?,
            zero: r.u32("reserved")?,
        })
    }

    /// Writes a header; `None` where the type of the elements is none of the format's.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Option<()> {
        let DType::Number(scalar, lanes) = self.dtype else {
            return None;
        };
        out.extend(b"TENS");
        out.extend(self.version.to_le_bytes());
        out.extend(number_type(scalar, self.endian)?);
        out.extend((scalar.bits() / 8).to_le_bytes());
        out.extend(lanes.count().to_le_bytes());
        out.extend(self.order.to_le_bytes());
        out.extend(self.flags.to_le_bytes());
        out.extend(self.zero.to_le_bytes());
        Some(())
    }

    /// The number type in the file's word.
    pub(crate) fn number_type(&self) -> &'static str {
        let scalar = match self.dtype {
            DType::Number(scalar, _) => scalar,
            _ => return "",
        };
        let word = number_type(scalar, self.endian).unwrap_or(b"    ");
        core::str::from_utf8(word).unwrap_or("")
    }
}

/// The elements that number type, bytes per number and numbers per element mean.
fn number(number_type: [u8; 4], bytes: u32, numbers: u32) -> Result<(DType, Endian)> {
    let (is_float, is_signed, endian) = match &number_type {
        b"uint" => (false, false, Endian::Little),
        b"UINT" => (false, false, Endian::Big),
        b"sint" => (false, true, Endian::Little),
        b"SINT" => (false, true, Endian::Big),
        // Little endian although in capitals: so are the files of cc4s.
        b"IEEE" => (true, true, Endian::Little),
        other => {
            let shown = super::meta::to_text(other);
            let message =
                format!("number type {shown:?}; there are uint, UINT, sint, SINT and IEEE");
            return Err(Error::malformed("tens.number-type", message).at(8..12));
        }
    };
    let scalars: Vec<Scalar> = match (is_float, is_signed) {
        (true, _) => FLOATS.to_vec(),
        (false, false) => INTEGERS.iter().map(|pair| pair.0).collect(),
        (false, true) => INTEGERS.iter().map(|pair| pair.1).collect(),
    };
    let scalar = scalars.iter().find(|scalar| scalar.bits() / 8 == bytes);
    let scalar = *scalar.ok_or_else(|| {
        let known: Vec<_> = scalars
            .iter()
            .map(|scalar| (scalar.bits() / 8).to_string())
            .collect();
        let message = format!(
            "{bytes} bytes per number; this number type has {}",
            known.join(", ")
        );
        Error::malformed("tens.number-bytes", message).at(12..16)
    })?;
    let lanes = Lanes::from_count(numbers).ok_or_else(|| {
        let message = format!("{numbers} numbers per element; there are 1, 2, 4 and 8");
        Error::malformed("tens.numbers", message).at(16..20)
    })?;
    Ok((DType::Number(scalar, lanes), endian))
}

fn number_type(scalar: Scalar, endian: Endian) -> Option<&'static [u8; 4]> {
    let is = |wanted| scalar == wanted;
    let unsigned = INTEGERS.iter().any(|pair| is(pair.0));
    let signed = INTEGERS.iter().any(|pair| is(pair.1));
    match (unsigned, signed, endian) {
        (true, _, Endian::Little) => Some(b"uint"),
        (true, _, Endian::Big) => Some(b"UINT"),
        (_, true, Endian::Little) => Some(b"sint"),
        (_, true, Endian::Big) => Some(b"SINT"),
        _ => FLOATS.contains(&scalar).then_some(b"IEEE"),
    }
}

/// One dimension.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Dimension {
    /// Its length.
    pub(crate) length: u32,
    /// The name of its index.
    pub(crate) index_name: u8,
    /// Flags: bit 0 is SP.
    pub(crate) flags: u8,
    /// Reserved.
    pub(crate) zero: u16,
}

impl Dimension {
    /// Bytes of a dimension header.
    pub(crate) const LEN: u64 = 8;

    /// Reads a dimension header.
    pub(crate) fn parse(r: &mut Reader<'_>) -> Result<Self> {
        Ok(Self {
            length: r.u32("length")?,
            index_name: r.u8("index name")?,
            flags: r.u8("dimension flags")?,
            zero: r.u16("reserved")?,
        })
    }

    /// Writes a dimension header.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.length.to_le_bytes());
        out.extend([self.index_name, self.flags]);
        out.extend(self.zero.to_le_bytes());
    }
}

/// What every chunk begins with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Chunk {
    /// What it is.
    pub(crate) magic: [u8; 8],
    /// Its bytes, these 16 among them.
    pub(crate) total: u64,
    /// Where it begins.
    pub(crate) at: u64,
}

impl Chunk {
    /// Bytes before the body.
    pub(crate) const LEN: u64 = 16;

    /// Reads the beginning of a chunk, whose total size must be possible; whether the file is long enough is not asked.
    pub(crate) fn parse(r: &mut Reader<'_>) -> Result<Self> {
        let at = r.pos();
        let magic = r.array("chunk magic")?;
        let total = r.u64("chunk size")?;
        let chunk = Self { magic, total, at };
        if total < Self::LEN || total % 8 != 0 {
            let message = format!("has {total} bytes; expected a multiple of 8, 16 or more");
            return Err(chunk.refuse(&message));
        }
        Ok(chunk)
    }

    /// Writes the beginning of a chunk.
    pub(crate) fn encode(magic: &[u8; 8], total: u64, out: &mut Vec<u8>) {
        out.extend(magic);
        out.extend(total.to_le_bytes());
    }

    /// The name, as it is shown.
    pub(crate) fn name(&self) -> String {
        super::meta::to_text(&self.magic)
    }

    pub(super) fn refuse(&self, why: &str) -> Error {
        let message = format!("chunk {:?} {why}", self.name());
        Error::malformed("tens.chunk", message).at(self.at..self.at + Self::LEN)
    }
}

/// The body of a symmetry chunk.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SymmetryBody {
    /// Flags: bit 0 is PK.
    pub(crate) flags: u8,
    /// The code of the operation.
    pub(crate) code: Vec<u8>,
    /// The permuted index names.
    pub(crate) map: Vec<u8>,
}

impl SymmetryBody {
    /// Reads the body of a chunk of a tensor of some order.
    pub(crate) fn parse(r: &mut Reader<'_>, chunk: &Chunk, order: u32) -> Result<Self> {
        let refuse = |message: String| {
            Err(Error::malformed("tens.symmetry", message).at(chunk.at..chunk.at + chunk.total))
        };
        if chunk.total < Chunk::LEN + 8 {
            return refuse("a symmetry chunk without a body".into());
        }
        let flags = r.u8("symmetry flags")?;
        let n = r.u8("length of the operation code")?;
        let expected = (18 + u64::from(n) + u64::from(order)).next_multiple_of(8);
        if chunk.total != expected {
            return refuse(format!(
                "a code of {n} characters and {order} index names make a chunk of {expected} bytes, not {}",
                chunk.total
            ));
        }
        Ok(Self {
            flags,
            code: r.take(n.into(), "operation code")?.to_vec(),
            map: r.take(order.into(), "index map")?.to_vec(),
        })
    }

    /// Writes the whole chunk.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let len = 18 + self.code.len() + self.map.len();
        let total = len.next_multiple_of(8);
        Chunk::encode(SYMMETRY, total as u64, out);
        // The caller has made sure that a code has at most 255 bytes.
        out.extend([self.flags, u8::try_from(self.code.len()).unwrap_or(u8::MAX)]);
        out.extend(&self.code);
        out.extend(&self.map);
        out.resize(out.len() + total - len, 0);
    }
}
