//! Messages as they are on disk: tensors, and the pairs of text that several messages have.

use super::external::Entries;
use super::types::Field as Typed;
use crate::error::{Error, Result};
use crate::model::{Map, Packer, Shape, Value as Meta};
use crate::prelude::*;
use crate::wire::protobuf::{Rules, Value, Walker};

pub(super) const RULES: Rules = Rules {
    truncated: "onnx.truncated",
    length: "onnx.length",
    varint: "onnx.varint",
    tag: "onnx.tag",
    utf8: "onnx.name",
};

/// Pairs in one list. Models have a few; an empty one has two bytes in a file and many more in memory.
const MAX_PAIRS: usize = 1 << 20;

/// A `TensorProto`.
#[derive(Debug, Default)]
pub(super) struct TensorProto {
    /// The message, and those that are merged with it.
    pub(super) at: Range<u64>,
    pub(super) more: Vec<Range<u64>>,
    /// The dimensions, up to the limit that was given; a negative one ends the shape.
    pub(super) dims: Shape,
    pub(super) rank: usize,
    pub(super) negative: Option<i64>,
    pub(super) data_type: i32,
    pub(super) segment: bool,
    pub(super) name: String,
    pub(super) raw_data: Option<Range<u64>>,
    pub(super) typed: [TypedData; 6],
    pub(super) doc_string: Option<Meta>,
    pub(super) external: Entries,
    pub(super) is_external: bool,
    pub(super) metadata_props: Pairs,
}

/// What there is of a typed field.
#[derive(Clone, Debug, Default)]
pub(super) struct TypedData {
    /// Times that the field is there with something in it.
    pub(super) pieces: u64,
    /// Bytes of all of them; of numbers with a fixed width, that is all there are.
    pub(super) bytes: u64,
    /// The last of them.
    pub(super) range: Range<u64>,
}

impl TensorProto {
    /// Adds a message: the only one, or one that protobuf merges with those before.
    pub(super) fn merge(
        &mut self,
        w: &mut Walker<'_>,
        message: &Range<u64>,
        max_rank: usize,
    ) -> Result<()> {
        if self.at.is_empty() {
            self.at = message.clone();
        } else {
            self.more.push(message.clone());
        }
        w.enter(message);
        while let Some(field) = w.next(message.end)? {
            match (field.number, &field.value) {
                (1, value) => w.numbers(value, |number| {
                    self.dim(number.cast_signed(), max_rank);
                    Ok(())
                })?,
                (2, Value::Varint(number)) => self.data_type = low_half(*number),
                (3, Value::Len(_)) => self.segment = true,
                (8, Value::Len(text)) => self.name = w.text(text, "name of a tensor")?,
                (9, Value::Len(range)) => self.raw_data = Some(range.clone()),
                (12, Value::Len(range)) => self.doc_string = Some(text(w, range)?),
                (13, Value::Len(entry)) => {
                    let (key, value) = pair(w, entry)?;
                    self.external.add(key, value);
                }
                (14, Value::Varint(number)) => self.is_external = *number == 1,
                (16, Value::Len(entry)) => self.metadata_props.read(w, entry)?,
                (number, value) => {
                    let of_number = |field: &Typed| field.number() == number;
                    let place = Typed::ALL.iter().position(of_number);
                    if let Some(typed) = place.and_then(|place| self.typed.get_mut(place)) {
                        typed.add(value, &field.at);
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn dim(&mut self, dim: i64, max_rank: usize) {
        self.rank += 1;
        match u64::try_from(dim) {
            Ok(dim) if self.rank <= max_rank => self.dims.push(dim),
            Ok(_) => {}
            Err(_) => self.negative = Some(dim),
        }
    }

    /// What there is of a typed field, where there is any.
    pub(super) fn typed(&self) -> impl Iterator<Item = (Typed, &TypedData)> {
        let all = Typed::ALL.into_iter().zip(&self.typed);
        all.filter(|(_, data)| data.pieces > 0)
    }

    /// The name, and what it is if it has none.
    pub(super) fn refuse(&self, rule: &'static str, message: impl Into<String>) -> Error {
        Error::malformed(rule, message)
            .at(self.at.clone())
            .in_tensor(&self.name)
    }
}

impl TypedData {
    fn add(&mut self, value: &Value, at: &Range<u64>) {
        let range = match value {
            Value::Len(range) if !range.is_empty() => range.clone(),
            Value::Fixed32 => at.end - 4..at.end,
            Value::Fixed64 => at.end - 8..at.end,
            Value::Varint(_) => at.clone(),
            Value::Len(_) | Value::Group => return,
        };
        self.pieces += 1;
        self.bytes = self.bytes.saturating_add(range.end - range.start);
        self.range = range;
    }
}

/// A field of 32 bits, of which protobuf takes the lower half.
pub(super) fn low_half(number: u64) -> i32 {
    let [a, b, c, d, ..] = number.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// Text; bytes that are none are kept as they are, because protobuf's readers do.
pub(super) fn text(w: &mut Walker<'_>, range: &Range<u64>) -> Result<Meta> {
    let bytes = w.bytes(range, "text")?;
    Ok(match core::str::from_utf8(&bytes) {
        Ok(text) => Meta::Str(text.to_owned()),
        Err(_) => Meta::Bytes(bytes::Bytes::copy_from_slice(&bytes)),
    })
}

/// A `StringStringEntryProto`, with what is not UTF-8 in it replaced.
pub(super) fn pair(w: &mut Walker<'_>, message: &Range<u64>) -> Result<(String, String)> {
    let (mut key, mut value) = (String::new(), String::new());
    w.enter(message);
    while let Some(field) = w.next(message.end)? {
        let place = match field.number {
            1 => &mut key,
            2 => &mut value,
            _ => continue,
        };
        if let Value::Len(range) = &field.value {
            *place = String::from_utf8_lossy(&w.bytes(range, "entry")?).into_owned();
        }
    }
    Ok((key, value))
}

/// Pairs of a list that is a map: `metadata_props`, `opset_import`.
#[derive(Default)]
pub(super) struct Pairs {
    packed: Option<Packer>,
    count: usize,
}

impl core::fmt::Debug for Pairs {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Pairs({})", self.count)
    }
}

impl Pairs {
    fn packer(&mut self, at: &Range<u64>) -> Result<&mut Packer> {
        if self.count >= MAX_PAIRS {
            let message = format!("more than {MAX_PAIRS} entries of metadata");
            return Err(Error::malformed("onnx.entries", message).at(at.clone()));
        }
        self.count += 1;
        Ok(self.packed.get_or_insert_with(Packer::map))
    }

    /// Adds a pair of texts.
    pub(super) fn read(&mut self, w: &mut Walker<'_>, message: &Range<u64>) -> Result<()> {
        let (key, value) = pair(w, message)?;
        let packer = self.packer(message)?;
        packer.key(&key);
        packer.str(&value);
        Ok(())
    }

    /// Adds a pair of a text and a number.
    pub(super) fn read_number(&mut self, w: &mut Walker<'_>, message: &Range<u64>) -> Result<()> {
        let (mut key, mut number) = (String::new(), 0);
        w.enter(message);
        while let Some(field) = w.next(message.end)? {
            match (field.number, &field.value) {
                (1, Value::Len(range)) => {
                    key = String::from_utf8_lossy(&w.bytes(range, "domain")?).into_owned();
                }
                (2, Value::Varint(value)) => number = value.cast_signed(),
                _ => {}
            }
        }
        let packer = self.packer(message)?;
        packer.key(&key);
        packer.value(&Meta::I64(number));
        Ok(())
    }

    /// The map, where there is any, and a key that was there several times. The last one counts, as in onnx.
    pub(super) fn finish(self) -> Result<(Option<Map>, Option<String>)> {
        let Some(mut packer) = self.packed else {
            return Ok((None, None));
        };
        let mut twice = None;
        packer.last_wins(&mut |key, _| {
            twice = Some(key.to_owned());
            Ok(())
        })?;
        Ok((Some(packer.into_map()), twice))
    }
}
