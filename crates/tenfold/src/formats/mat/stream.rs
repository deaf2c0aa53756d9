//! The bytes of variables: of the file, or of the zlib stream that a variable is.

use bytes::Bytes;

use super::types;
use crate::error::{Error, Result};
use crate::io::{Reader, Source};
use crate::model::{Codec, DType, Endian, Part, Payload, Role, Scalar, SourceId};
use crate::prelude::*;
use crate::transform::{Inflate, Input, as_size};

/// Rule for bytes that are missing.
pub(super) const TRUNCATED: &str = "mat.truncated";
/// Elements begin at a multiple of this.
const ALIGN: u64 = 8;
/// Bytes that are taken from a compressed variable at once: nobody knows yet if they are there.
const STEP: u64 = 64 << 10;
/// Data of a compressed variable with others behind it: so short that it is kept as it comes by.
const KEPT: u64 = 4 << 10;

/// Reads elements one after the other.
pub(super) struct Stream<'a> {
    bytes: From<'a>,
    pub(super) endian: Endian,
}

enum From<'a> {
    File(Reader<'a>),
    Zlib {
        inflate: Box<Inflate<'a>>,
        at: u64,
        /// The compressed bytes, in the file.
        range: Range<u64>,
    },
}

/// The tag of an element, and where its data is.
#[derive(Clone, Debug)]
pub(super) struct Tag {
    /// `mi…`: what the data is.
    pub(super) kind: u32,
    /// The data: a place in the file, or among the decoded bytes.
    pub(super) data: Range<u64>,
    /// Where the next element begins.
    pub(super) next: u64,
    /// The tag itself.
    pub(super) at: u64,
}

impl Tag {
    pub(super) fn len(&self) -> u64 {
        self.data.end.saturating_sub(self.data.start)
    }
}

impl<'a> Stream<'a> {
    /// The bytes of a file.
    pub(super) fn file(source: &'a dyn Source, range: Range<u64>, endian: Endian) -> Self {
        Self {
            bytes: From::File(Reader::over(source, range, TRUNCATED)),
            endian,
        }
    }

    /// What a zlib stream in a file decodes to.
    pub(super) fn zlib(source: &'a dyn Source, range: Range<u64>, endian: Endian) -> Self {
        let input = Input::Source {
            id: SourceId::MAIN,
            source,
            range: range.clone(),
            control: None,
        };
        Self {
            bytes: From::Zlib {
                inflate: Box::new(Inflate::zlib(input)),
                at: 0,
                range,
            },
            endian,
        }
    }

    pub(super) fn is_compressed(&self) -> bool {
        matches!(self.bytes, From::Zlib { .. })
    }

    pub(super) fn pos(&self) -> u64 {
        match &self.bytes {
            From::File(reader) => reader.pos(),
            From::Zlib { at, .. } => *at,
        }
    }

    /// The place in the file of what is at a position: of compressed bytes, all of them.
    pub(super) fn place(&self, of: Range<u64>) -> Range<u64> {
        match &self.bytes {
            From::File(_) => of,
            From::Zlib { range, .. } => range.clone(),
        }
    }

    fn error(&self, rule: &'static str, message: String, at: u64) -> Error {
        Error::malformed(rule, message).at(self.place(at..at.saturating_add(1)))
    }

    /// The next bytes.
    pub(super) fn take(&mut self, len: u64, field: &'static str) -> Result<Bytes> {
        match &mut self.bytes {
            From::File(reader) => reader.take(len, field),
            From::Zlib { inflate, at, range } => {
                let mut bytes = Vec::new();
                while (bytes.len() as u64) < len {
                    let filled = bytes.len();
                    let step = (len - filled as u64).min(STEP.max(filled as u64));
                    bytes.resize(filled + as_size(step)?, 0);
                    let rest = bytes.get_mut(filled..).unwrap_or_default();
                    if !inflate
                        .fill(rest)
                        .map_err(|error| error.at(range.clone()))?
                    {
                        return Err(ended(field, range));
                    }
                }
                *at = at.saturating_add(len);
                Ok(bytes.into())
            }
        }
    }

    /// Goes on to a position that is not behind.
    pub(super) fn skip_to(&mut self, to: u64, field: &'static str) -> Result<()> {
        match &mut self.bytes {
            From::File(reader) => reader.skip_to(to, field).map(drop),
            From::Zlib { inflate, at, range } => {
                let len = to.saturating_sub(*at);
                if !inflate.skip(len).map_err(|error| error.at(range.clone()))? {
                    return Err(ended(field, range));
                }
                *at = to;
                Ok(())
            }
        }
    }

    /// Makes sure that a compressed variable ends here, or has no more than padding.
    pub(super) fn finish(&mut self) -> Result<()> {
        let From::Zlib { inflate, range, .. } = &mut self.bytes else {
            return Ok(());
        };
        let mut rest = [0; 8];
        if inflate
            .fill(&mut rest)
            .map_err(|error| error.at(range.clone()))?
        {
            let message = "a compressed variable goes on behind its only element";
            return Err(Error::malformed("mat.zlib", message).at(range.clone()));
        }
        Ok(())
    }

    fn word(&mut self, field: &'static str) -> Result<u32> {
        let bytes = self.take(4, field)?;
        Ok(self.number(&bytes))
    }

    /// A number of 32 bits in the file's byte order.
    pub(super) fn number(&self, bytes: &[u8]) -> u32 {
        let bytes: [u8; 4] = bytes.try_into().unwrap_or_default();
        match self.endian {
            Endian::Little => u32::from_le_bytes(bytes),
            Endian::Big => u32::from_be_bytes(bytes),
        }
    }

    /// The next tag. Its data is within `end`.
    pub(super) fn tag(&mut self, end: u64, field: &'static str) -> Result<Tag> {
        let at = self.pos();
        if end.saturating_sub(at) < 8 {
            let message = format!(
                "{field} is missing: {} bytes are left",
                end.saturating_sub(at)
            );
            return Err(self.error(TRUNCATED, message, at));
        }
        let first = self.word(field)?;
        let (short, low) = (first >> 16, first & 0xffff);
        if short > 0 {
            if short > 4 {
                let message = format!("{field} claims {short} bytes of data in a tag for 4");
                return Err(self.error("mat.small", message, at));
            }
            let start = at + 4;
            return Ok(Tag {
                kind: low,
                data: start..start + u64::from(short),
                next: at + 8,
                at,
            });
        }
        let len = u64::from(self.word(field)?);
        let start = at + 8;
        let data = start..start.saturating_add(len);
        if data.end > end {
            let message = format!("{field} has {len} bytes, {} are left", end - start);
            return Err(self.error(TRUNCATED, message, at));
        }
        // Padded by its length, wherever it begins; the last padding may be missing.
        let next = start.saturating_add(len.next_multiple_of(ALIGN)).min(end);
        Ok(Tag {
            kind: low,
            data,
            next,
            at,
        })
    }

    /// The data of an element, all of it.
    pub(super) fn data(&mut self, tag: &Tag, field: &'static str) -> Result<Bytes> {
        self.skip_to(tag.data.start, field)?;
        self.take(tag.len(), field)
    }

    /// What an element of numbers is stored as; the error is about its tensor alone.
    pub(super) fn stored(&self, tag: &Tag, field: &'static str) -> Result<Scalar> {
        types::stored(tag.kind).ok_or_else(|| {
            let message = format!("{field} has the data type {}, which is no number", tag.kind);
            self.error("mat.data-type", message, tag.at)
        })
    }

    /// Bytes of an element as a part of a tensor; passes over them. `is_last` says that nothing follows in the variable.
    pub(super) fn part(
        &mut self,
        role: Role,
        dtype: DType,
        data: Range<u64>,
        is_last: bool,
    ) -> Result<Part> {
        let len = data.end.saturating_sub(data.start);
        let payload = match &self.bytes {
            From::File(_) => Payload::main(data),
            From::Zlib { .. } if len <= KEPT && !is_last => {
                self.skip_to(data.start, "data")?;
                Payload::Inline(self.take(len, "data")?)
            }
            From::Zlib { range, .. } => Payload::Encoded {
                source: SourceId::MAIN,
                range: range.clone(),
                codec: Codec::Zlib {
                    level: 0,
                    skip: data.start,
                    ends: is_last,
                },
                len,
            },
        };
        let mut part = Part::new(role, dtype, payload);
        part.endian = self.endian;
        Ok(part)
    }
}

fn ended(field: &str, range: &Range<u64>) -> Error {
    let message = format!("the compressed variable ends within {field}");
    Error::malformed(TRUNCATED, message).at(range.clone())
}
