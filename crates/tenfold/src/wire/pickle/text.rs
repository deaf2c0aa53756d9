//! Numbers and strings that are written as text.

use alloc::borrow::Cow;

use super::{MAX_INTEGER, Value};
use crate::error::{Error, Result};
use crate::prelude::*;

/// Digits of an integer of [`MAX_INTEGER`] bytes, with its sign.
const MAX_DIGITS: usize = 310;

/// Text in UTF-8. Python writes lone surrogates too, which are not text here.
pub(super) fn unicode(bytes: &[u8]) -> Result<Cow<'_, str>> {
    match core::str::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(cause) => Err(Error::malformed("pickle", "a text that is not UTF-8").because(cause)),
    }
}

/// A string of Python 2, which is text or bytes.
pub(super) fn old(bytes: Cow<'_, [u8]>) -> Value<'_> {
    match bytes {
        Cow::Borrowed(bytes) => match core::str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.into()),
            Err(_) => Value::Bytes(bytes.into()),
        },
        Cow::Owned(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Value::Text(text.into()),
            Err(error) => Value::Bytes(error.into_bytes().into()),
        },
    }
}

/// A decimal integer, perhaps with the `L` of Python 2, as its bytes.
pub(crate) fn integer(line: &[u8]) -> Result<Vec<u8>> {
    let wrong = || {
        let shown: String = line.iter().take(32).copied().map(char::from).collect();
        Error::malformed("pickle", format!("{shown:?} is not an integer"))
    };
    let digits = line.strip_suffix(b"L").unwrap_or(line).trim_ascii();
    if digits.len() > MAX_DIGITS {
        let message = format!("an integer of {} digits", digits.len());
        return Err(Error::limit("limit", message));
    }
    let (negative, digits) = match digits.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(wrong());
    }
    let mut number = vec![0u8; MAX_INTEGER + 2];
    for digit in digits {
        let mut carry = u16::from(digit - b'0');
        for byte in &mut number {
            let [low, high] = (u16::from(*byte) * 10 + carry).to_le_bytes();
            *byte = low;
            carry = high.into();
        }
    }
    if negative {
        negate(&mut number);
    }
    let sign = if number.last() == Some(&0xff) {
        0xff
    } else {
        0
    };
    // Without the bytes that only repeat the sign.
    while let [.., before, last] = number.as_slice()
        && *last == sign
        && (*before & 0x80 != 0) == (sign == 0xff)
    {
        number.pop();
    }
    Ok(number)
}

/// The other sign, in two's complement.
fn negate(number: &mut [u8]) {
    let mut carry = true;
    for byte in number {
        let (flipped, over) = (!*byte).overflowing_add(u8::from(carry));
        *byte = flipped;
        carry = over;
    }
}

/// The decimal digits of an integer.
pub(crate) fn decimal(digits: &[u8]) -> String {
    let negative = digits.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut number = digits.to_vec();
    if negative {
        // One byte more, because the least integer has no counterpart.
        number.push(0xff);
        negate(&mut number);
    }
    let mut text = Vec::new();
    while number.iter().any(|byte| *byte != 0) {
        let mut rest = 0u16;
        for byte in number.iter_mut().rev() {
            let value = rest << 8 | u16::from(*byte);
            *byte = u8::try_from(value / 10).unwrap_or(0);
            rest = value % 10;
        }
        text.push(b'0' + u8::try_from(rest).unwrap_or(0));
    }
    if text.is_empty() {
        text.push(b'0');
    }
    if negative {
        text.push(b'-');
    }
    text.into_iter().rev().map(char::from).collect()
}

/// A float as Python prints it.
pub(super) fn float(line: &[u8]) -> Result<f64> {
    let text = core::str::from_utf8(line).ok().map(str::trim);
    let number = text.and_then(|text| text.parse().ok());
    number.ok_or_else(|| Error::malformed("pickle", "a float that is not a number"))
}

/// A string in quotes, with the escapes of Python.
pub(super) fn unquote(line: &[u8]) -> Result<Vec<u8>> {
    let line = line.trim_ascii();
    let inner = match line {
        [b'\'', inner @ .., b'\''] | [b'"', inner @ .., b'"'] => inner,
        _ => {
            let message = "a STRING without quotes";
            return Err(Error::malformed("pickle", message));
        }
    };
    let mut bytes = Vec::new();
    let mut rest = inner.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let escaped = match rest.next() {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'a') => 7,
            Some(b'b') => 8,
            Some(b'v') => 11,
            Some(b'f') => 12,
            Some(b'x') => hex(&mut rest, 2)
                .and_then(|code| u8::try_from(code).ok())
                .ok_or_else(escape)?,
            Some(digit @ b'0'..=b'7') => {
                let mut code = u32::from(digit - b'0');
                for _ in 0..2 {
                    match rest.clone().next() {
                        Some(digit @ b'0'..=b'7') => {
                            rest.next();
                            code = code * 8 + u32::from(digit - b'0');
                        }
                        _ => break,
                    }
                }
                u8::try_from(code & 0xff).unwrap_or(0)
            }
            Some(other @ (b'\\' | b'\'' | b'"')) => other,
            Some(other) => {
                bytes.push(b'\\');
                other
            }
            None => return Err(escape()),
        };
        bytes.push(escaped);
    }
    Ok(bytes)
}

/// Latin-1 with `\u` and `\U` escapes.
pub(super) fn raw_unicode(line: &[u8]) -> Result<String> {
    let mut text = String::new();
    let mut rest = line.iter().copied();
    while let Some(byte) = rest.next() {
        let len = match (byte, rest.clone().next()) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            // Not the beginning of an escape, and what follows is none.
            (b'\\', Some(b'\\')) => {
                rest.next();
                text.push_str("\\\\");
                continue;
            }
            _ => {
                text.push(char::from(byte));
                continue;
            }
        };
        rest.next();
        let code = hex(&mut rest, len).ok_or_else(escape)?;
        text.push(char::from_u32(code).ok_or_else(escape)?);
    }
    Ok(text)
}

fn hex(digits: &mut impl Iterator<Item = u8>, len: usize) -> Option<u32> {
    let mut code = 0u32;
    for _ in 0..len {
        let digit = char::from(digits.next()?).to_digit(16)?;
        code = code.checked_mul(16)?.checked_add(digit)?;
    }
    Some(code)
}

fn escape() -> Error {
    Error::malformed("pickle", "an escape that is not a character")
}
