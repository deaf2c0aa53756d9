//! Opcodes and their operands.

use crate::error::{Error, Result};
use crate::prelude::*;

/// An opcode with its operand, and where the next one begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op<'b> {
    pub(super) code: u8,
    pub(super) operand: Operand<'b>,
    pub(super) end: usize,
}

/// What stands after an opcode.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand<'b> {
    Nothing,
    /// A count, a place in the memo, a small number.
    Number(u64),
    /// A signed number of 32 bits.
    Signed(i32),
    Float(f64),
    /// A counted string, without its count.
    Bytes(&'b [u8]),
    /// A line, without its end.
    Line(&'b [u8]),
    /// Two lines: a module and a name in it.
    Lines(&'b [u8], &'b [u8]),
}

/// What the bytes at a place are.
pub(super) enum Decoded<'b> {
    Op(Op<'b>),
    /// The beginning of an opcode that takes so many bytes at least.
    Short(usize),
}

/// The form of an operand.
#[derive(Clone, Copy)]
pub(super) enum Form {
    Nothing,
    U8,
    U16,
    U32,
    I32,
    U64,
    F64,
    Counted8,
    Counted32,
    /// The count has a sign, and is not negative.
    CountedI32,
    Counted64,
    Line,
    Lines,
}

/// The name of an opcode, as Python's `pickletools` has it, and the form of its operand.
pub(super) const fn known(code: u8) -> Option<(&'static str, Form)> {
    use Form::{
        Counted8, Counted32, Counted64, CountedI32, F64, I32, Line, Lines, Nothing, U8, U16, U32,
        U64,
    };
    Some(match code {
        b'(' => ("MARK", Nothing),
        b'.' => ("STOP", Nothing),
        b'0' => ("POP", Nothing),
        b'1' => ("POP_MARK", Nothing),
        b'2' => ("DUP", Nothing),
        b'F' => ("FLOAT", Line),
        b'I' => ("INT", Line),
        b'J' => ("BININT", I32),
        b'K' => ("BININT1", U8),
        b'L' => ("LONG", Line),
        b'M' => ("BININT2", U16),
        b'N' => ("NONE", Nothing),
        b'P' => ("PERSID", Line),
        b'Q' => ("BINPERSID", Nothing),
        b'R' => ("REDUCE", Nothing),
        b'S' => ("STRING", Line),
        b'T' => ("BINSTRING", CountedI32),
        b'U' => ("SHORT_BINSTRING", Counted8),
        b'V' => ("UNICODE", Line),
        b'X' => ("BINUNICODE", Counted32),
        b'a' => ("APPEND", Nothing),
        b'b' => ("BUILD", Nothing),
        b'c' => ("GLOBAL", Lines),
        b'd' => ("DICT", Nothing),
        b'}' => ("EMPTY_DICT", Nothing),
        b'e' => ("APPENDS", Nothing),
        b'g' => ("GET", Line),
        b'h' => ("BINGET", U8),
        b'i' => ("INST", Lines),
        b'j' => ("LONG_BINGET", U32),
        b'l' => ("LIST", Nothing),
        b']' => ("EMPTY_LIST", Nothing),
        b'o' => ("OBJ", Nothing),
        b'p' => ("PUT", Line),
        b'q' => ("BINPUT", U8),
        b'r' => ("LONG_BINPUT", U32),
        b's' => ("SETITEM", Nothing),
        b't' => ("TUPLE", Nothing),
        b')' => ("EMPTY_TUPLE", Nothing),
        b'u' => ("SETITEMS", Nothing),
        b'G' => ("BINFLOAT", F64),
        b'B' => ("BINBYTES", Counted32),
        b'C' => ("SHORT_BINBYTES", Counted8),
        0x80 => ("PROTO", U8),
        0x81 => ("NEWOBJ", Nothing),
        0x82 => ("EXT1", U8),
        0x83 => ("EXT2", U16),
        0x84 => ("EXT4", U32),
        0x85 => ("TUPLE1", Nothing),
        0x86 => ("TUPLE2", Nothing),
        0x87 => ("TUPLE3", Nothing),
        0x88 => ("NEWTRUE", Nothing),
        0x89 => ("NEWFALSE", Nothing),
        0x8a => ("LONG1", Counted8),
        0x8b => ("LONG4", CountedI32),
        0x8c => ("SHORT_BINUNICODE", Counted8),
        0x8d => ("BINUNICODE8", Counted64),
        0x8e => ("BINBYTES8", Counted64),
        0x8f => ("EMPTY_SET", Nothing),
        0x90 => ("ADDITEMS", Nothing),
        0x91 => ("FROZENSET", Nothing),
        0x92 => ("NEWOBJ_EX", Nothing),
        0x93 => ("STACK_GLOBAL", Nothing),
        0x94 => ("MEMOIZE", Nothing),
        0x95 => ("FRAME", U64),
        0x96 => ("BYTEARRAY8", Counted64),
        0x97 => ("NEXT_BUFFER", Nothing),
        0x98 => ("READONLY_BUFFER", Nothing),
        _ => return None,
    })
}

/// What an opcode is called.
pub(crate) fn name(code: u8) -> &'static str {
    known(code).map_or("an unknown opcode", |(name, _)| name)
}

/// Decodes the opcode at a place.
pub(super) fn decode(bytes: &[u8], at: usize) -> Result<Decoded<'_>> {
    let Some(&code) = bytes.get(at) else {
        return Ok(Decoded::Short(1));
    };
    let Some((name, form)) = known(code) else {
        let message = format!("{code:#04x} is not an opcode of pickles");
        return Err(Error::malformed("pickle-opcode", message));
    };
    let start = at.saturating_add(1);
    let mut rest = Rest {
        bytes: bytes.get(start..).unwrap_or_default(),
        used: 1,
    };
    let operand = match form {
        Form::Nothing => Some(Operand::Nothing),
        Form::U8 => rest.number::<1>().map(Operand::Number),
        Form::U16 => rest.number::<2>().map(Operand::Number),
        Form::U32 => rest.number::<4>().map(Operand::Number),
        Form::U64 => rest.number::<8>().map(Operand::Number),
        Form::I32 => rest.array().map(i32::from_le_bytes).map(Operand::Signed),
        Form::F64 => rest.array().map(f64::from_be_bytes).map(Operand::Float),
        Form::Counted8 => rest.counted::<1>(),
        Form::Counted32 => rest.counted::<4>(),
        Form::Counted64 => rest.counted::<8>(),
        Form::CountedI32 => match rest.bytes.first_chunk().copied().map(i32::from_le_bytes) {
            Some(count) if count < 0 => {
                let message = format!("{name} announces {count} bytes");
                return Err(Error::malformed("pickle", message));
            }
            _ => rest.counted::<4>(),
        },
        Form::Line => rest.line().map(Operand::Line),
        Form::Lines => rest
            .line()
            .and_then(|module| Some(Operand::Lines(module, rest.line()?))),
    };
    Ok(match operand {
        Some(operand) => Decoded::Op(Op {
            code,
            operand,
            end: at.saturating_add(rest.used),
        }),
        None => Decoded::Short(rest.used),
    })
}

/// The bytes after an opcode; `used` are those of the opcode so far, or what it takes at least.
struct Rest<'b> {
    bytes: &'b [u8],
    used: usize,
}

impl<'b> Rest<'b> {
    fn take(&mut self, n: usize) -> Option<&'b [u8]> {
        self.used = self.used.saturating_add(n);
        let (taken, rest) = self.bytes.split_at_checked(n)?;
        self.bytes = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// A little-endian number of `N` bytes, at most 8.
    fn number<const N: usize>(&mut self) -> Option<u64> {
        let digits = self.take(N)?.iter().rev();
        Some(digits.fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn counted<const N: usize>(&mut self) -> Option<Operand<'b>> {
        let len = self.number::<N>()?;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.take(len).map(Operand::Bytes)
    }

    fn line(&mut self) -> Option<&'b [u8]> {
        match self.bytes.iter().position(|&byte| byte == b'\n') {
            Some(len) => self.take(len.saturating_add(1))?.get(..len),
            None => {
                self.used = self.used.saturating_add(self.bytes.len()).saturating_add(1);
                None
            }
        }
    }
}
