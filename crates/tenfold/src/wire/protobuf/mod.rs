//! Protobuf's wire format, field by field: nothing is loaded that the caller does not ask for, and data is located, not
//! read. What a field means is for the formats to say.
//!
//! A message is a range of the file. Messages inside of it are entered with the same walker, so that all of them share what
//! was fetched:
//!
//! ```text
//! while let Some(field) = walker.next(end)? {
//!     match (field.number, field.value) {
//!         (7, Value::Len(graph)) => { walker.enter(&graph); /* walker.next(graph.end) */ }
//!         _ => {}         // passed over by the next `next`
//!     }
//! }
//! ```

mod encode;

pub(crate) use encode::{Encoder, varint as put_varint};

use crate::error::{Error, Result};
use crate::io::{Reader, Source};
use crate::prelude::*;

/// Groups in groups. Nothing writes them since 2001; protobuf's own readers stop at 100.
const GROUPS: usize = 64;
/// The greatest number of a field.
const MAX_FIELD: u64 = (1 << 29) - 1;

/// The rules of a format under which refusals are reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// The file ends inside a field.
    pub(crate) truncated: &'static str,
    /// A field that ends past the message that it is in.
    pub(crate) length: &'static str,
    /// A number of more than 10 bytes.
    pub(crate) varint: &'static str,
    /// A field without a number, of a wire type that does not exist, or a group that is not opened and closed in turn.
    pub(crate) tag: &'static str,
    /// Text that is not UTF-8.
    pub(crate) utf8: &'static str,
}

/// One field of a message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Field {
    pub(crate) number: u32,
    pub(crate) value: Value,
    /// All of it, with its tag.
    pub(crate) at: Range<u64>,
}

/// What a field has, by its wire type.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Value {
    Varint(u64),
    Fixed64,
    /// Bytes, text, a message, or numbers one after the other: where they are.
    Len(Range<u64>),
    /// A group, with everything that is in it.
    Group,
    Fixed32,
}

/// Walks over messages. It goes forward only.
#[derive(Clone, Debug)]
pub(crate) struct Walker<'a> {
    r: Reader<'a>,
    rules: Rules,
    /// Where the last field ends: what was not entered is passed over.
    resume: u64,
    /// Bytes that were looked at: tags, lengths, numbers and text, and nothing that was passed over.
    parsed: u64,
}

impl<'a> Walker<'a> {
    /// A walker that begins at the start of `range` and does not leave it.
    pub(crate) fn over(source: &'a dyn Source, range: Range<u64>, rules: Rules) -> Self {
        Self {
            resume: range.start,
            r: Reader::over(source, range, rules.truncated),
            rules,
            parsed: 0,
        }
    }

    /// Bytes that were looked at so far.
    pub(crate) fn parsed(&self) -> u64 {
        self.parsed
    }

    /// The next field of a message that ends at `end`. What is in the last one is passed over, unless it was entered.
    pub(crate) fn next(&mut self, end: u64) -> Result<Option<Field>> {
        if self.resume > self.r.pos() {
            self.r.skip_to(self.resume, "field")?;
        }
        let at = self.r.pos();
        if at >= end {
            return Ok(None);
        }
        let (number, wire) = self.tag(end)?;
        let value = match wire {
            3 => {
                self.group(number, at, end)?;
                Value::Group
            }
            4 => {
                let message = format!("the end of group {number}, which was never begun");
                return Err(self.refuse(self.rules.tag, message, at));
            }
            wire => self.scalar(wire, end)?,
        };
        self.resume = match &value {
            Value::Len(range) => range.end,
            _ => self.r.pos(),
        };
        Ok(Some(Field {
            number,
            value,
            at: at..self.resume,
        }))
    }

    /// Goes into what a field has, instead of passing over it.
    pub(crate) fn enter(&mut self, inside: &Range<u64>) {
        self.resume = inside.start;
    }

    /// What a field has, as text.
    pub(crate) fn text(&mut self, range: &Range<u64>, field: &'static str) -> Result<String> {
        let len = range.end - range.start;
        self.parsed += len;
        self.r.skip_to(range.start, field)?;
        self.r.text(len, self.rules.utf8, field)
    }

    /// What a field has, as bytes.
    pub(crate) fn bytes(
        &mut self,
        range: &Range<u64>,
        field: &'static str,
    ) -> Result<bytes::Bytes> {
        let len = range.end - range.start;
        self.parsed += len;
        self.r.skip_to(range.start, field)?;
        self.r.take(len, field)
    }

    /// The next of the numbers that are packed in a field which was entered and ends at `end`.
    pub(crate) fn packed(&mut self, end: u64) -> Result<Option<u64>> {
        if self.r.pos() >= end {
            return Ok(None);
        }
        self.varint(end).map(Some)
    }

    /// Hands out the numbers of a repeated field, packed or by itself.
    pub(crate) fn numbers(
        &mut self,
        value: &Value,
        mut each: impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        match value {
            Value::Varint(number) => each(*number),
            Value::Len(range) => {
                self.enter(range);
                while let Some(number) = self.packed(range.end)? {
                    each(number)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The number and the wire type of a field.
    fn tag(&mut self, end: u64) -> Result<(u32, u8)> {
        let at = self.r.pos();
        let tag = self.varint(end)?;
        let (number, wire) = (tag >> 3, tag & 7);
        if number == 0 || number > MAX_FIELD {
            let message = format!("a field of number {number}, expected 1 to {MAX_FIELD}");
            return Err(self.refuse(self.rules.tag, message, at));
        }
        match (u32::try_from(number), u8::try_from(wire)) {
            (Ok(number), Ok(wire)) if wire < 6 => Ok((number, wire)),
            _ => {
                let message = format!("field {number} has wire type {wire}, which does not exist");
                Err(self.refuse(self.rules.tag, message, at))
            }
        }
    }

    /// A value of any wire type but groups. Data is claimed, not read.
    fn scalar(&mut self, wire: u8, end: u64) -> Result<Value> {
        Ok(match wire {
            0 => Value::Varint(self.varint(end)?),
            1 => {
                self.pass(8, end)?;
                Value::Fixed64
            }
            2 => {
                let len = self.varint(end)?;
                let from = self.r.pos();
                self.room(len, end)?;
                Value::Len(from..from + len)
            }
            _ => {
                self.pass(4, end)?;
                Value::Fixed32
            }
        })
    }

    /// Passes over a group up to its own end.
    fn group(&mut self, number: u32, begin: u64, end: u64) -> Result<()> {
        let mut open = vec![number];
        while let Some(&innermost) = open.last() {
            let at = self.r.pos();
            if at >= end {
                let message = format!("group {innermost} is not closed");
                return Err(self.refuse(self.rules.tag, message, begin));
            }
            match self.tag(end)? {
                (number, 3) if open.len() < GROUPS => open.push(number),
                (_, 3) => {
                    let message = format!("more than {GROUPS} groups inside each other");
                    return Err(self.refuse(self.rules.tag, message, at));
                }
                (number, 4) if number == innermost => drop(open.pop()),
                (number, 4) => {
                    let message = format!("the end of group {number} inside group {innermost}");
                    return Err(self.refuse(self.rules.tag, message, at));
                }
                (_, wire) => {
                    if let Value::Len(range) = self.scalar(wire, end)? {
                        self.r.skip_to(range.end, "field")?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A number of up to 10 bytes, the least significant first. Longer forms than needed are legal, and bits beyond 64 are
    /// dropped, as protobuf's readers do.
    fn varint(&mut self, end: u64) -> Result<u64> {
        let at = self.r.pos();
        let mut number = 0u64;
        for place in 0..10 {
            self.room(1, end)?;
            let byte = self.r.u8("varint")?;
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                self.parsed += place + 1;
                return Ok(number);
            }
        }
        let message = "a number of more than 10 bytes";
        Err(self.refuse(self.rules.varint, message.to_owned(), at))
    }

    fn pass(&mut self, len: u64, end: u64) -> Result<()> {
        self.room(len, end)?;
        self.parsed += len;
        self.r.skip(len, "number").map(drop)
    }

    /// Refuses a field that ends past its message, or past the file.
    fn room(&self, len: u64, end: u64) -> Result<()> {
        let at = self.r.pos();
        let left = end.saturating_sub(at);
        if len <= left {
            return Ok(());
        }
        let remaining = self.r.remaining();
        let (rule, message) = if len > remaining {
            let message = format!(
                "a field needs {len} bytes, but the file has only {remaining} more: it is truncated or damaged"
            );
            (self.rules.truncated, message)
        } else {
            let message =
                format!("a field needs {len} bytes, but the message around it ends after {left}");
            (self.rules.length, message)
        };
        Err(Error::malformed(rule, message).at(at..end.max(at)))
    }

    fn refuse(&self, rule: &'static str, message: String, at: u64) -> Error {
        Error::malformed(rule, message).at(at..self.r.pos().max(at))
    }
}

#[cfg(test)]
mod tests;
