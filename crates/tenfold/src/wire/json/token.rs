//! The smallest pieces: words, numbers, strings.

use alloc::borrow::Cow;

use super::{Json, Number};
use crate::error::Result;
use crate::prelude::*;

impl<'a> Json<'a> {
    /// `true`, `false` or nothing.
    pub(super) fn literal(&mut self) -> Result<Option<bool>> {
        for (word, value) in [("true", Some(true)), ("false", Some(false)), ("null", None)] {
            if self.take(word) {
                return Ok(value);
            }
        }
        Err(self.unexpected("true, false or null"))
    }

    /// A number of any kind.
    pub(super) fn number(&mut self) -> Result<Number<'a>> {
        let begin = self.pos;
        if let Some(value) = self.not_finite() {
            return Ok(Number::Float(value));
        }
        self.take("-");
        // A leading zero stands alone.
        if !self.take("0") {
            self.digits()?;
        } else if matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.wrong("a number with a leading zero"));
        }
        let mut whole = true;
        if self.take(".") {
            whole = false;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            whole = false;
            self.pos += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.pos += 1;
            }
            self.digits()?;
        }
        let text = self.text.get(begin..self.pos).unwrap_or_default();
        if whole {
            return Ok(Number::Whole(text));
        }
        match text.parse() {
            Ok(value) => Ok(Number::Float(value)),
            Err(cause) => Err(self.wrong("not a number").because(cause)),
        }
    }

    /// A whole number of at most 18 digits, read in one go; nothing is read of anything else.
    pub(super) fn short_unsigned(&mut self) -> Option<u64> {
        let mut number = 0;
        let mut count = 0;
        for byte in self.rest() {
            match byte {
                b'0'..=b'9' if count < 18 => number = number * 10 + u64::from(byte - b'0'),
                b'0'..=b'9' | b'.' | b'e' | b'E' => return None,
                _ => break,
            }
            count += 1;
        }
        let leading_zero = count > 1 && self.peek() == Some(b'0');
        if count == 0 || leading_zero {
            return None;
        }
        self.pos += count;
        Some(number)
    }

    /// One of the words that Python writes for numbers that JSON does not have.
    fn not_finite(&mut self) -> Option<f64> {
        if matches!(self.peek(), Some(b'0'..=b'9')) || !self.not_finite {
            return None;
        }
        let words = [
            ("NaN", f64::NAN),
            ("Infinity", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
        ];
        words
            .into_iter()
            .find_map(|(word, value)| self.take(word).then_some(value))
    }

    fn digits(&mut self) -> Result<()> {
        let count = self
            .rest()
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if count == 0 {
            return Err(self.unexpected("a digit"));
        }
        self.pos += count;
        Ok(())
    }

    /// A string whose opening quote comes next.
    pub(super) fn quoted(&mut self) -> Result<Cow<'a, str>> {
        self.pos += 1;
        let plain = self.plain()?;
        if self.take("\"") {
            return Ok(Cow::Borrowed(plain));
        }
        let mut text = plain.to_owned();
        while !self.take("\"") {
            // `plain` stops at a quote or at a backslash.
            text.push(self.escape()?);
            text.push_str(self.plain()?);
        }
        Ok(Cow::Owned(text))
    }

    /// The characters up to the next quote or backslash.
    fn plain(&mut self) -> Result<&'a str> {
        let begin = self.pos;
        let stop = self
            .rest()
            .iter()
            .position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20);
        self.pos = stop.map_or(self.text.len(), |length| begin + length);
        match self.peek() {
            Some(b'"' | b'\\') => Ok(self.text.get(begin..self.pos).unwrap_or_default()),
            Some(_) => Err(self.unexpected("no control character inside a string")),
            None => Err(self.unexpected("the end of a string")),
        }
    }

    /// The character that an escape means; a backslash comes next.
    fn escape(&mut self) -> Result<char> {
        let begin = self.pos;
        self.pos += 1;
        let plain = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(begin),
            _ => return Err(self.unexpected("one of \"\\/bfnrtu after the backslash")),
        };
        self.pos += 1;
        Ok(plain)
    }

    /// The character of `\uXXXX`, or of two of them that make up one.
    fn unicode_escape(&mut self, begin: usize) -> Result<char> {
        self.pos += 1;
        let first = self.hex4()?;
        let code = if (0xd800..0xdc00).contains(&first) && self.take("\\u") {
            match self.hex4()? {
                low @ 0xdc00..0xe000 => 0x1_0000 + ((first - 0xd800) << 10) + (low - 0xdc00),
                _ => first,
            }
        } else {
            first
        };
        char::from_u32(code).ok_or_else(|| {
            let message = format!("\\u{first:04x} is half of a surrogate pair, which is not text");
            self.error(self.rules.text, begin, message)
        })
    }

    fn hex4(&mut self) -> Result<u32> {
        let digits = self.rest().get(..4).unwrap_or_default();
        let mut code = 0;
        for &digit in digits {
            match char::from(digit).to_digit(16) {
                Some(digit) => code = code << 4 | digit,
                None => return Err(self.unexpected("four hexadecimal digits")),
            }
        }
        if digits.is_empty() {
            return Err(self.unexpected("four hexadecimal digits"));
        }
        self.pos += digits.len();
        Ok(code)
    }
}
