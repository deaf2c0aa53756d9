//! Programs that lie one after the other in a file, none of which says how long it is.

use bytes::Bytes;

use super::MAX_LEN;
use super::op::{self, Decoded, Form};
use crate::error::{Error, Result};
use crate::io::Source;
use crate::prelude::*;

/// Where the program ends that some bytes begin with: after its STOP.
pub(crate) fn find_end(bytes: &[u8]) -> Result<Option<usize>> {
    let mut at = 0;
    loop {
        match op::decode(bytes, at)? {
            Decoded::Short(_) => return Ok(None),
            Decoded::Op(op) if op.code == b'.' => return Ok(Some(op.end)),
            Decoded::Op(op) => at = op.end,
        }
    }
}

/// Reads the program that begins at a place, and nothing that lies more than a window after it.
pub(crate) fn read_next(source: &dyn Source, start: u64, limit: u64) -> Result<Bytes> {
    let left = source.len().saturating_sub(start);
    let limit = limit.min(MAX_LEN);
    let mut bytes: Vec<u8> = Vec::new();
    let mut at = 0;
    loop {
        let place = |range: Range<usize>| start + range.start as u64..start + range.end as u64;
        let needs = match op::decode(&bytes, at).map_err(|error| error.at(place(at..at + 1)))? {
            Decoded::Op(op) if op.code == b'.' => {
                bytes.truncate(op.end);
                return Ok(bytes.into());
            }
            Decoded::Op(op) => {
                at = op.end;
                continue;
            }
            Decoded::Short(needs) => at.saturating_add(needs) as u64,
        };
        let known = bytes.len() as u64;
        if needs > left {
            let message = match left.saturating_sub(at as u64) {
                0 => "the file ends within a pickle, which has no STOP".to_owned(),
                n => format!(
                    "an opcode takes {} bytes, {n} are left of the file",
                    needs - at as u64
                ),
            };
            let error = Error::malformed("truncated", message);
            return Err(error.at(start + at as u64..source.len()));
        }
        if needs > limit {
            let message = format!("a pickle of more than {limit} bytes");
            return Err(Error::limit("limit", message).at(place(0..at)));
        }
        let wanted = needs.max(known.saturating_add(source.window())).min(left);
        let more = source.read(start + known..start + wanted)?;
        let missing = (bytes.len() + more.len()).saturating_sub(bytes.capacity());
        if missing > 0 {
            bytes.reserve_exact(more.len().max(bytes.len() / 4));
        }
        bytes.extend_from_slice(&more);
    }
}

/// What the opcodes of a program are, as far as they can be told apart.
pub(crate) struct Outline {
    /// Behind STOP, or where an opcode is none or has not all of its bytes.
    pub(crate) end: u64,
    /// Opcodes that import something.
    pub(crate) imports: u64,
    /// Why there is no STOP, and up to where the file would have to go on.
    pub(crate) fault: Option<(Error, u64)>,
}

/// Goes through the opcodes of the program that begins at a place: what they carry is passed over, so that a program of any
/// length takes no more memory than a window.
pub(crate) fn outline(source: &dyn Source, start: u64) -> Result<Outline> {
    let mut cursor = Cursor {
        source,
        at: start,
        window: Bytes::new(),
        from: start,
        step: 512,
    };
    let mut imports = 0;
    loop {
        let at = cursor.at;
        let ended = |fault: Error, needs: u64| {
            Ok(Outline {
                end: at,
                imports,
                fault: Some((fault.at(at..at.saturating_add(1)), needs)),
            })
        };
        let Some(code) = cursor.number(1)?.and_then(|code| u8::try_from(code).ok()) else {
            let message = "the file ends within a pickle, which has no STOP";
            return ended(Error::malformed("truncated", message), at + 1);
        };
        let Some((name, form)) = op::known(code) else {
            let message = format!("{code:#04x} is no opcode of a pickle");
            return ended(Error::malformed("pickle-opcode", message), at);
        };
        if !cursor.pass(form)? {
            let message = format!("{name} takes more bytes than are left");
            return ended(Error::malformed("truncated", message), cursor.at);
        }
        match code {
            b'.' => {
                return Ok(Outline {
                    end: cursor.at,
                    imports,
                    fault: None,
                });
            }
            b'c' | b'i' | 0x93 | 0x82..=0x84 => imports += 1,
            _ => {}
        }
    }
}

/// A place in a source, which only goes forward.
struct Cursor<'s> {
    source: &'s dyn Source,
    at: u64,
    window: Bytes,
    from: u64,
    /// Bytes that are read at once: few at first, because most programs are short or none.
    step: u64,
}

impl Cursor<'_> {
    /// The bytes from here on that are at hand, of which there are some unless the source ends.
    fn ahead(&mut self) -> Result<&[u8]> {
        let passed = self.at.saturating_sub(self.from);
        if passed >= self.window.len() as u64 {
            let end = self.at.saturating_add(self.step);
            self.step = (self.step * 2).min(self.source.window().max(512));
            self.from = self.at.min(self.source.len());
            self.window = self.source.read(self.from..end.min(self.source.len()))?;
        }
        let passed = usize::try_from(self.at.saturating_sub(self.from)).unwrap_or(usize::MAX);
        Ok(self.window.get(passed..).unwrap_or_default())
    }

    /// A little-endian number of at most 8 bytes.
    fn number(&mut self, len: u32) -> Result<Option<u64>> {
        let mut number = 0;
        for place in 0..len {
            let Some(&byte) = self.ahead()?.first() else {
                return Ok(None);
            };
            number |= u64::from(byte) << (8 * place);
            self.at += 1;
        }
        Ok(Some(number))
    }

    /// Passes over an operand; false where the source ends before.
    fn pass(&mut self, form: Form) -> Result<bool> {
        let len = match form {
            Form::Nothing => Some(0),
            Form::U8 => Some(1),
            Form::U16 => Some(2),
            Form::U32 | Form::I32 => Some(4),
            Form::U64 | Form::F64 => Some(8),
            Form::Counted8 => self.number(1)?,
            Form::Counted32 | Form::CountedI32 => self.number(4)?,
            Form::Counted64 => self.number(8)?,
            Form::Line => return self.pass_line(),
            Form::Lines => return Ok(self.pass_line()? && self.pass_line()?),
        };
        let Some(len) = len else {
            self.at += 1;
            return Ok(false);
        };
        self.at = self.at.saturating_add(len);
        Ok(self.at <= self.source.len())
    }

    fn pass_line(&mut self) -> Result<bool> {
        loop {
            let ahead = self.ahead()?;
            let (len, line) = (
                ahead.len() as u64,
                ahead.iter().position(|&byte| byte == b'\n'),
            );
            match line {
                Some(line) => {
                    self.at += line as u64 + 1;
                    return Ok(true);
                }
                None if len == 0 => {
                    self.at += 1;
                    return Ok(false);
                }
                None => self.at += len,
            }
        }
    }
}
