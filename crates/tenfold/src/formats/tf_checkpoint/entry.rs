//! The messages of the index: the header, and what is said of a tensor.

use bytes::Bytes;

use super::table::TRUNCATED;
use crate::error::{Error, Result};
use crate::format::Context;
use crate::model::{Endian, Shape};
use crate::prelude::*;
#[cfg(feature = "write")]
use crate::wire::protobuf::Encoder;
use crate::wire::protobuf::{Rules, Value, Walker};

pub(super) const RULES: Rules = Rules {
    truncated: TRUNCATED,
    length: "tf_checkpoint.message",
    varint: "tf_checkpoint.varint",
    tag: "tf_checkpoint.message",
    utf8: "tf_checkpoint.utf8",
};

/// The header: how many files there are, and the order of bytes in them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Header {
    pub(super) shards: u64,
    pub(super) endian: Endian,
}

impl Header {
    pub(super) fn parse(value: &Bytes) -> Result<Self> {
        let end = value.len() as u64;
        let mut w = Walker::over(value, 0..end, RULES);
        let (mut shards, mut endian, mut consumer) = (0, 0, 0);
        while let Some(field) = w.next(end)? {
            match (field.number, field.value) {
                (1, Value::Varint(number)) => shards = number,
                (1, Value::Len(_)) => return Err(v1()),
                (2, Value::Varint(number)) => endian = number,
                (3, Value::Len(version)) => {
                    w.enter(&version);
                    while let Some(field) = w.next(version.end)? {
                        if let (2, Value::Varint(number)) = (field.number, field.value) {
                            consumer = number;
                        }
                    }
                }
                _ => {}
            }
        }
        let endian = match endian {
            0 => Endian::Little,
            1 => Endian::Big,
            other => {
                let message = format!("byte order {other}; 0 (little) and 1 (big) are known");
                return Err(Error::malformed("tf_checkpoint.byte-order", message));
            }
        };
        if consumer > VERSION {
            let message = format!(
                "it needs a reader of version {consumer}, this is one of version {VERSION}"
            );
            return Err(Error::unsupported("tf_checkpoint.version", message));
        }
        // It is an integer with a sign.
        if shards == 0 || i32::try_from(shards).is_err() {
            let message = format!(
                "the data is in {} files, 1 or more are expected",
                shards.cast_signed()
            );
            return Err(Error::malformed("tf_checkpoint.shards", message));
        }
        Ok(Self { shards, endian })
    }

    /// One file, little-endian.
    #[cfg(feature = "write")]
    pub(super) fn encode() -> Vec<u8> {
        let mut header = Encoder::new();
        header.number(1, 1);
        header.message(3, |version| {
            version.number(1, VERSION);
        });
        header.finish()
    }
}

/// The version of bundles.
const VERSION: u64 = 1;

fn v1() -> Error {
    let message = "a V1 checkpoint, as TensorFlow wrote before 0.12: load it with tf.compat.v1.train.Saver and save it with write_version=2";
    Error::unsupported("tf_checkpoint.v1", message)
}

/// What is said of a tensor, or of a slice of one.
#[derive(Clone, Debug, Default)]
pub(super) struct BundleEntry {
    pub(super) dtype: u64,
    pub(super) shape: Shape,
    pub(super) shard: u64,
    pub(super) offset: u64,
    pub(super) size: u64,
    /// Masked.
    pub(super) crc32c: u32,
    /// In which slices it is stored.
    pub(super) slices: Vec<Slice>,
}

/// Of every dimension where a slice begins, and how long it is; `None` is all of it.
pub(super) type Slice = Vec<Option<(u64, u64)>>;

impl BundleEntry {
    pub(super) fn parse(cx: &Context<'_>, value: &Bytes) -> Result<Self> {
        let end = value.len() as u64;
        let mut w = Walker::over(value, 0..end, RULES);
        let mut entry = Self::default();
        while let Some(field) = w.next(end)? {
            match (field.number, field.value) {
                (1, Value::Varint(number)) => entry.dtype = number,
                (2, Value::Len(shape)) => {
                    w.enter(&shape);
                    entry.shape = shape_of(cx, &mut w, shape.end)?;
                }
                (3, Value::Varint(number)) => entry.shard = number,
                (4, Value::Varint(number)) => entry.offset = number,
                (5, Value::Varint(number)) => entry.size = number,
                (6, Value::Fixed32) => {
                    let at = crate::transform::as_size(field.at.end)?;
                    let sum = value.get(..at).and_then(<[u8]>::last_chunk::<4>);
                    entry.crc32c = sum.copied().map_or(0, u32::from_le_bytes);
                }
                (7, Value::Len(slice)) => {
                    w.enter(&slice);
                    push_tight(&mut entry.slices, slice_of(cx, &mut w, slice.end)?);
                }
                _ => {}
            }
        }
        for (what, number) in [("place", entry.offset), ("size", entry.size)] {
            if i64::try_from(number).is_err() {
                let message = format!(
                    "a {what} of {}, 0 or more is expected",
                    number.cast_signed()
                );
                return Err(Error::malformed("tf_checkpoint.bounds", message));
            }
        }
        Ok(entry)
    }

    /// The message, without slices.
    #[cfg(feature = "write")]
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut entry = Encoder::new();
        entry.number(1, self.dtype);
        entry.message(2, |shape| {
            for dim in &*self.shape {
                shape.message(2, |out| {
                    if *dim > 0 {
                        out.number(1, *dim);
                    }
                });
            }
        });
        for (field, number) in [(4, self.offset), (5, self.size)] {
            if number > 0 {
                entry.number(field, number);
            }
        }
        entry.fixed32(6, self.crc32c);
        entry.finish()
    }
}

fn check_rank(cx: &Context<'_>, rank: usize) -> Result<()> {
    let limit = cx.limits().rank;
    if rank < limit {
        return Ok(());
    }
    let message = format!("more than {limit} dimensions");
    Err(Error::limit("tf_checkpoint.rank", message).raised_by("rank", None))
}

fn shape_of(cx: &Context<'_>, w: &mut Walker<'_>, end: u64) -> Result<Shape> {
    let mut shape = Shape::new();
    while let Some(field) = w.next(end)? {
        match (field.number, field.value) {
            (2, Value::Len(dim)) => {
                check_rank(cx, shape.len())?;
                w.enter(&dim);
                let mut size = 0;
                while let Some(field) = w.next(dim.end)? {
                    if let (1, Value::Varint(number)) = (field.number, field.value) {
                        size = number;
                    }
                }
                if i64::try_from(size).is_err() {
                    let message = format!(
                        "a dimension of {}, 0 or more is expected",
                        size.cast_signed()
                    );
                    return Err(Error::malformed("tf_checkpoint.shape", message));
                }
                shape.push(size);
            }
            (3, Value::Varint(1..)) => {
                let message = "how many dimensions it has is not known";
                return Err(Error::malformed("tf_checkpoint.shape", message));
            }
            _ => {}
        }
    }
    Ok(shape)
}

fn slice_of(cx: &Context<'_>, w: &mut Walker<'_>, end: u64) -> Result<Slice> {
    let mut slice = Vec::new();
    while let Some(field) = w.next(end)? {
        let (1, Value::Len(extent)) = (field.number, field.value) else {
            continue;
        };
        check_rank(cx, slice.len())?;
        w.enter(&extent);
        let (mut start, mut len) = (0, None);
        while let Some(field) = w.next(extent.end)? {
            match (field.number, field.value) {
                (1, Value::Varint(number)) => start = number,
                (2, Value::Varint(number)) => len = Some(number),
                _ => {}
            }
        }
        push_tight(&mut slice, len.map(|len| (start, len)));
    }
    Ok(slice)
}
