//! Programs that hold the data of tensors: without it, so that what is left fits into memory.
//!
//! Every string of bytes, and every long text, becomes a short string of bytes with its number; where it is in the file is
//! noted. A program may not tell the difference: it cannot look into strings.

use bytes::Bytes;

use super::MAX_LEN;
use super::op::{self, Form};
use crate::error::{Error, Result};
use crate::io::{Reader, Source, read_exactly};
use crate::prelude::*;

/// Texts of more bytes are taken out too: protocol 2 has no bytes, and writes them as text.
const LONG: u64 = 4096;
/// A line of more bytes is neither a number nor a name.
const LONGEST_LINE: u64 = 1 << 16;

/// A program without the strings of bytes in it.
#[derive(Debug)]
pub(crate) struct Condensed {
    pub(crate) program: Vec<u8>,
    /// Where the program ends in the file.
    pub(crate) end: u64,
    strings: Vec<Taken>,
    /// From a place in the program on, how much further the same is in the file.
    shifts: Vec<(usize, u64)>,
}

/// A string that was taken out.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) range: Range<u64>,
    pub(crate) is_text: bool,
}

impl Taken {
    /// Its bytes.
    pub(crate) fn read(&self, source: &dyn Source, limit: u64) -> Result<Bytes> {
        let len = self.range.end - self.range.start;
        if len > limit {
            let message = format!("a string of {len} bytes, the limit is {limit}");
            let error = Error::limit("limit", message).at(self.range.clone());
            return Err(error.raised_by("header_bytes", len));
        }
        read_exactly(source, self.range.clone())
    }
}

impl Condensed {
    /// Reads the program that a file begins with.
    pub(crate) fn read(source: &dyn Source, limit: u64) -> Result<Self> {
        let mut taken = Self {
            program: Vec::new(),
            end: 0,
            strings: Vec::new(),
            shifts: Vec::new(),
        };
        let mut r = Reader::new(source, "truncated");
        loop {
            let at = r.pos();
            let code = r.u8("an opcode")?;
            let Some((_, form)) = op::known(code) else {
                let message = format!("{code:#04x} is not an opcode of pickles");
                return Err(Error::malformed("pickle-opcode", message).at(at..at + 1));
            };
            taken.operand(&mut r, at, code, form)?;
            let len = taken.program.len() as u64;
            if len > limit.min(MAX_LEN) {
                let message = format!(
                    "a pickle of more than {} bytes besides its data",
                    limit.min(MAX_LEN)
                );
                let error = Error::limit("limit", message).at(0..at);
                return Err(if limit < MAX_LEN {
                    error.raised_by("header_bytes", len)
                } else {
                    error
                });
            }
            if code == b'.' {
                taken.end = r.pos();
                return Ok(taken);
            }
        }
    }

    /// The string that stands for one that was taken out.
    pub(crate) fn taken(&self, number: &[u8]) -> Option<&Taken> {
        let number = u64::from_le_bytes(number.try_into().ok()?);
        self.strings.get(usize::try_from(number).ok()?)
    }

    /// Where some bytes of the program are in the file.
    pub(crate) fn place(&self, range: Range<u64>) -> Range<u64> {
        let start = usize::try_from(range.start).unwrap_or(usize::MAX);
        let behind = self.shifts.partition_point(|(from, _)| *from <= start);
        let shift = behind.checked_sub(1).and_then(|n| self.shifts.get(n));
        let shift = shift.map_or(0, |(_, shift)| *shift);
        range.start.saturating_add(shift)..range.end.saturating_add(shift)
    }

    fn operand(&mut self, r: &mut Reader<'_>, at: u64, code: u8, form: Form) -> Result<()> {
        let field = "an opcode";
        let fixed = match form {
            Form::Nothing => 0,
            Form::U8 => 1,
            Form::U16 => 2,
            Form::U32 | Form::I32 => 4,
            Form::U64 | Form::F64 => 8,
            Form::Counted8 | Form::Counted32 | Form::CountedI32 | Form::Counted64 => {
                return self.counted(r, at, code, form);
            }
            Form::Line => return self.lines(r, code, 1),
            Form::Lines => return self.lines(r, code, 2),
        };
        let operand = r.take(fixed, field)?;
        // A frame says how many bytes follow, which are others now.
        if code == FRAME {
            self.shift(at + 1 + fixed);
            return Ok(());
        }
        self.program.push(code);
        self.program.extend_from_slice(&operand);
        Ok(())
    }

    fn counted(&mut self, r: &mut Reader<'_>, at: u64, code: u8, form: Form) -> Result<()> {
        let field = "the length of a string";
        let count = match form {
            Form::Counted8 => r.array::<1>(field)?.to_vec(),
            Form::Counted64 => r.array::<8>(field)?.to_vec(),
            _ => r.array::<4>(field)?.to_vec(),
        };
        let digits = count.iter().rev();
        let len = digits.fold(0, |number, byte| number << 8 | u64::from(*byte));
        if matches!(form, Form::CountedI32) && len > i32::MAX as u64 {
            let message = "a string of a negative length";
            return Err(Error::malformed("pickle", message).at(at..r.pos()));
        }
        let is_bytes = matches!(code, b'B' | b'C' | 0x8e | 0x96);
        let is_text = matches!(code, b'X' | 0x8d) || matches!(code, b'T' | b'U');
        if is_bytes || is_text && len > LONG {
            let range = r.skip(len, "a string")?;
            let number = self.strings.len() as u64;
            push_tight(&mut self.strings, Taken { range, is_text });
            self.program.extend_from_slice(b"C\x08");
            self.program.extend_from_slice(&number.to_le_bytes());
            self.shift(r.pos());
            return Ok(());
        }
        let string = r.take(len, "a string")?;
        self.program.push(code);
        self.program.extend_from_slice(&count);
        self.program.extend_from_slice(&string);
        Ok(())
    }

    fn lines(&mut self, r: &mut Reader<'_>, code: u8, count: usize) -> Result<()> {
        self.program.push(code);
        let start = r.pos();
        for _ in 0..count {
            loop {
                let byte = r.u8("a line")?;
                self.program.push(byte);
                if byte == b'\n' {
                    break;
                }
                if r.pos() - start > LONGEST_LINE {
                    let message = format!("a line of more than {LONGEST_LINE} bytes");
                    return Err(Error::limit("limit", message).at(start..r.pos()));
                }
            }
        }
        Ok(())
    }

    /// Notes that what follows is at a place of the file.
    fn shift(&mut self, at: u64) {
        let here = self.program.len();
        let shift = at.saturating_sub(here as u64);
        push_tight(&mut self.shifts, (here, shift));
    }
}

const FRAME: u8 = 0x95;
