//! Tensors of text: the lengths, a checksum of them, and the text.

use bytes::Bytes;

use super::table::{TRUNCATED, mask, varint};
use crate::digest::crc32c_append;
use crate::error::{Error, Result};
use crate::io::Reader;
use crate::model::{List, Packer, Value};
use crate::prelude::*;

/// What a tensor of text holds.
pub(super) struct Texts {
    /// Everything that is stored.
    bytes: Bytes,
    lens: Vec<u32>,
    /// Where the first text begins.
    start: usize,
    /// Whether the lengths have the checksum that is stored behind them.
    pub(super) lengths_match: bool,
    /// The checksum that the tensor should have, as it is stored.
    pub(super) checksum: u32,
}

impl Texts {
    /// Of `count` texts.
    pub(super) fn parse(bytes: Bytes, count: u64) -> Result<Self> {
        let mut r = Reader::new(&bytes, TRUNCATED);
        let count = r.count(count, 1, "the number of texts")?;
        let mut sum = Sum::default();
        let mut lens = Vec::with_capacity(count);
        let mut total = 0u64;
        for _ in 0..count {
            let len = varint(&mut r)?;
            sum.len(len);
            let short = u32::try_from(len).ok();
            lens.push(
                short.ok_or_else(|| {
                    Error::limit("tf_checkpoint.limit", "text of more than 4 GiB")
                })?,
            );
            total = total.saturating_add(len);
        }
        let stored = r.array::<4>("the checksum of the lengths")?;
        let lengths_match = sum.masked().to_le_bytes() == stored;
        sum.update(&stored);
        let start = crate::transform::as_size(r.pos())?;
        if total != r.remaining() {
            let message = format!(
                "{count} texts of {total} bytes together, {} lie behind their lengths",
                r.remaining()
            );
            return Err(Error::malformed("tf_checkpoint.text", message));
        }
        sum.update(bytes.get(start..).unwrap_or_default());
        Ok(Self {
            lens,
            start,
            lengths_match,
            checksum: sum.masked(),
            bytes,
        })
    }

    fn texts(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.bytes.get(self.start..).unwrap_or_default();
        self.lens.iter().map(move |len| {
            let (text, behind) = rest.split_at_checked(*len as usize).unwrap_or((rest, &[]));
            rest = behind;
            text
        })
    }

    /// The only one, and where it begins.
    pub(super) fn only(&self) -> Option<Bytes> {
        match self.lens.as_slice() {
            [_] => Some(self.bytes.slice(self.start..)),
            _ => None,
        }
    }

    /// The value of a tensor of this shape; `None` where that would be lists within lists without end.
    pub(super) fn value(&self, shape: &[u64]) -> Option<Value> {
        /// Lists that are made of however few bytes, and for how many bytes there can be one more.
        const FREE: usize = 1 << 16;
        const BYTES: usize = 4;
        if shape.is_empty() {
            return self.texts().next().map(value);
        }
        if self.lens.is_empty() {
            return Some(Value::List(List::default()));
        }
        let most = (FREE + self.bytes.len() / BYTES) as u64;
        let inner = shape.iter().take(shape.len() - 1);
        let counts = inner.scan(1u64, |count, dim| {
            *count = count.saturating_mul(*dim);
            Some(*count)
        });
        let lists = counts.fold(0u64, u64::saturating_add);
        (shape.len() <= super::MAX_LISTS && lists <= most)
            .then(|| Value::List(list(shape, &mut self.texts())))
    }
}

fn list(shape: &[u64], texts: &mut dyn Iterator<Item = &[u8]>) -> List {
    let (dim, inner) = match shape {
        [dim, inner @ ..] => (*dim, inner),
        [] => (0, shape),
    };
    let mut packer = Packer::list();
    for _ in 0..dim {
        if inner.is_empty() {
            let Some(text) = texts.next() else { break };
            packer.value(&value(text));
        } else {
            packer.value(&Value::List(list(inner, texts)));
        }
    }
    packer.into_list()
}

fn value(text: &[u8]) -> Value {
    match core::str::from_utf8(text) {
        Ok(text) => Value::Str(text.to_owned()),
        Err(_) => Value::Bytes(Bytes::copy_from_slice(text)),
    }
}

/// The CRC-32C of a tensor of text, of which the lengths come first.
#[derive(Clone, Copy, Default)]
struct Sum(u32);

impl Sum {
    fn update(&mut self, bytes: &[u8]) {
        self.0 = crc32c_append(self.0, bytes);
    }

    /// A length, as the checksum covers it.
    fn len(&mut self, len: u64) {
        match u32::try_from(len) {
            Ok(len) => self.update(&len.to_le_bytes()),
            Err(_) => self.update(&len.to_le_bytes()),
        }
    }

    /// That of everything up to here.
    fn masked(self) -> u32 {
        mask(self.0)
    }
}

/// The bytes of a tensor of text, and its masked checksum.
#[cfg(feature = "write")]
pub(super) fn encode(texts: &[Bytes]) -> (Vec<u8>, u32) {
    let (mut out, mut sum) = (Vec::new(), Sum::default());
    for text in texts {
        crate::wire::protobuf::put_varint(&mut out, text.len() as u64);
        sum.len(text.len() as u64);
    }
    let lengths = sum.masked().to_le_bytes();
    sum.update(&lengths);
    out.extend(lengths);
    for text in texts {
        out.extend_from_slice(text);
        sum.update(text);
    }
    (out, sum.masked())
}
