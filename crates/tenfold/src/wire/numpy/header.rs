//! The header in front of an array, parsed and encoded.
//!
//! | offset | size | field         | notes                                                       |
//! |--------|------|---------------|-------------------------------------------------------------|
//! | 0      | 6    | magic         | 0x93 `NUMPY`                                                |
//! | 6      | 2    | version       | 1.0, 2.0 or 3.0                                             |
//! | 8      | 2, 4 | header length | u16 in 1.0, u32 later                                       |
//! |        |      | header        | a Python dictionary, Latin-1, in 3.0 UTF-8; padded          |
//! |        |      | elements      |                                                             |

use bytes::Bytes;

use super::literal::{self, Rules};
use super::{MAGIC, MAGIC_FIELD, MAX_RANK, data_len, dtypes, len_of_items};
use crate::error::{Error, Result};
use crate::model::{DType, Endian, Layout};
use crate::prelude::*;

/// Bytes of a header's text that NumPy reads without being told to trust the file. Numbers never need as many.
const MAX_TEXT: u64 = 10_000;
/// Data begins at a multiple of this.
const ALIGN: usize = 64;

/// An array's header.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Header {
    pub(crate) version: &'static str,
    /// What the elements are, where they are not numbers.
    pub(crate) other: Option<Other>,
    pub(crate) dtype: DType,
    pub(crate) endian: Endian,
    /// The order of bytes is that of the machine that wrote the file, taken to be little-endian. Where it says so.
    pub(crate) native: Option<Range<u64>>,
    pub(crate) layout: Layout,
    pub(crate) shape: Vec<u64>,
    /// Bytes of the header, from the magic on.
    pub(crate) len: u64,
    /// Bytes of the elements.
    pub(crate) data_len: u64,
}

/// Elements that are not numbers: text, or records of several fields.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Other {
    /// Which of both.
    dtype: DType,
    /// NumPy's description of them.
    pub(crate) descr: String,
    /// Bytes of an element; of records only NumPy knows.
    pub(crate) item: Option<u64>,
    at: Range<u64>,
}

impl Other {
    fn new(descr: &str, is_records: bool, at: Range<u64>) -> Option<Self> {
        let (dtype, item) = if is_records {
            (DType::RECORDS, None)
        } else {
            (DType::TEXT, Some(dtypes::text_width(descr)?))
        };
        Some(Self {
            dtype,
            descr: descr.to_owned(),
            item,
            at,
        })
    }

    /// Why they cannot be read as numbers.
    pub(crate) fn refusal(&self) -> Error {
        let error = if self.dtype == DType::TEXT {
            let message = format!("dtype {} is text, not numbers", self.descr);
            Error::unsupported("string", message)
        } else {
            let message = "the dtype is a list of fields: its elements are records, not numbers; save each field by itself";
            Error::unsupported("structured", message)
        };
        error.at(self.at.clone())
    }
}

/// Where in a file the header's bytes are, for errors.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// They begin here.
    At(u64),
    /// Somewhere in these compressed bytes.
    Within(Range<u64>),
}

impl Place {
    fn of(&self, range: Range<u64>) -> Range<u64> {
        match self {
            Place::At(at) => at.saturating_add(range.start)..at.saturating_add(range.end),
            Place::Within(whole) => whole.clone(),
        }
    }

    fn put(&self, error: Error) -> Error {
        match error.range() {
            Some((_, range)) => error.at(self.of(range)),
            None => error,
        }
    }
}

impl Header {
    /// Reads a header with `take`, which gives the next bytes, and is asked for little before it is known to be needed.
    pub(crate) fn parse(
        take: &mut dyn FnMut(u64, &'static str) -> Result<Bytes>,
        place: &Place,
        assumed: Option<DType>,
        max_rank: usize,
    ) -> Result<Self> {
        let magic = take(MAGIC.len() as u64, MAGIC_FIELD)?;
        if magic != MAGIC {
            let message = format!(
                "an array begins with \"\\x93NUMPY\", found \"{}\"",
                magic.escape_ascii()
            );
            return Err(Error::malformed("magic", message).at(place.of(0..6)));
        }
        let (version, length_bytes) = match *take(2, "the version")? {
            [1, 0] => ("1.0", 2),
            [2, 0] => ("2.0", 4),
            [3, 0] => ("3.0", 4),
            ref other => {
                let shown: Vec<_> = other.iter().map(ToString::to_string).collect();
                let message = format!("version {}; there are 1.0, 2.0 and 3.0", shown.join("."));
                return Err(Error::unsupported("version", message).at(place.of(6..8)));
            }
        };
        let length = take(length_bytes, "the header's length")?;
        let text_len = length
            .iter()
            .rev()
            .fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        let text_at = 8 + length_bytes;
        if text_len > MAX_TEXT {
            let message = format!(
                "the header has {text_len} bytes, at most {MAX_TEXT} are read, as by NumPy; only records need more"
            );
            return Err(Error::limit("header-length", message).at(place.of(8..text_at)));
        }
        let text = take(text_len, "the header")?;
        let rules = Rules {
            utf8: version == "3.0",
            long: version != "3.0",
            max_rank: max_rank.min(MAX_RANK),
        };
        let in_text = |range: Range<usize>| {
            place.of(text_at + range.start as u64..text_at + range.end as u64)
        };
        let shift = |error: Error| match error.range() {
            Some((_, range)) => place.put(error.at(text_at + range.start..text_at + range.end)),
            None => error,
        };
        let fields = literal::parse(&text, rules).map_err(shift)?;
        let other = Other::new(
            &fields.descr,
            fields.is_records,
            in_text(fields.descr_at.clone()),
        );
        let found = match &other {
            Some(other) => dtypes::Found::bytes(other.dtype),
            None => dtypes::parse(&fields.descr, assumed)
                .map_err(|error| error.at(in_text(fields.descr_at.clone())))?,
        };
        let data_len = match &other {
            Some(other) => len_of_items(other.item.unwrap_or(0), &fields.shape),
            None => data_len(found.dtype, &fields.shape),
        };
        let data_len = data_len.ok_or_else(|| {
            let message = format!(
                "shape {:?} of {} has 2^63 bytes or more",
                fields.shape, found.dtype
            );
            Error::malformed("overflow", message).at(in_text(fields.shape_at.clone()))
        })?;
        let column_major = fields.fortran_order && fields.shape.len() > 1;
        Ok(Self {
            version,
            other,
            dtype: found.dtype,
            endian: found.endian,
            native: found.native.then(|| in_text(fields.descr_at)),
            layout: if column_major {
                Layout::ColumnMajor
            } else {
                Layout::RowMajor
            },
            shape: fields.shape,
            len: text_at + text_len,
            data_len,
        })
    }
}

/// The header of a little-endian, row-major array, as NumPy writes it. `None` for a type that it does not have.
pub(crate) fn encode(dtype: DType, shape: &[u64]) -> Option<Vec<u8>> {
    let descr = dtypes::descr(dtype)?;
    let mut dims: Vec<_> = shape.iter().map(ToString::to_string).collect();
    if dims.len() == 1 {
        // The comma makes it a tuple.
        dims.push(String::new());
    }
    let dims = dims.join(", ");
    let text = format!(
        "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}",
        dims.trim_end()
    );
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&[1, 0]);
    let whole = (bytes.len() + 2 + text.len() + 1).next_multiple_of(ALIGN);
    // At most 64 dimensions of 20 digits.
    let len = u16::try_from(whole - 10).ok()?;
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes.resize(whole - 1, b' ');
    bytes.push(b'\n');
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Header> {
        let mut rest = Bytes::copy_from_slice(bytes);
        let mut take = |n: u64, field: &'static str| {
            let n = usize::try_from(n).unwrap();
            if n > rest.len() {
                return Err(Error::malformed("truncated", field));
            }
            Ok(rest.split_to(n))
        };
        Header::parse(&mut take, &Place::At(100), None, 64)
    }

    #[test]
    fn what_is_written_is_what_numpy_writes_and_reads_back() {
        let scalar = encode(DType::F64, &[]).unwrap();
        assert_eq!(scalar.len() % 64, 0);
        assert!(scalar.starts_with(
            b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (), }  "
        ));
        assert_eq!(scalar.last(), Some(&b'\n'));
        assert!(
            encode(DType::F32, &[3])
                .unwrap()
                .windows(15)
                .any(|text| text == b"'shape': (3,), ")
        );
        assert!(
            encode(DType::F32, &[3, 4])
                .unwrap()
                .windows(18)
                .any(|text| text == b"'shape': (3, 4), }")
        );
        let long = [1; 64];
        for shape in [&[][..], &[3], &[3, 0, 5], &long] {
            let bytes = encode(DType::BF16, shape).unwrap();
            let header = read(&bytes).unwrap();
            assert_eq!(
                (header.dtype, header.shape.as_slice(), header.len),
                (DType::BF16, shape, bytes.len() as u64)
            );
        }
        assert_eq!(encode(DType::F8_E4M3, &[]), None);
    }

    #[test]
    fn errors_point_into_the_file() {
        let mut bytes = encode(DType::F32, &[3]).unwrap();
        bytes[20] = b'?';
        let error = read(&bytes).unwrap_err();
        assert_eq!(error.range().unwrap().1.start, 100 + 20, "{error}");
    }
}
