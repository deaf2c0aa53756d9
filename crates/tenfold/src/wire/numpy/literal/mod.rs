//! The header's text: the part of Python's literals that NumPy writes, scanned and never evaluated.

use super::MAX_RANK;
use crate::error::{Error, Result};
use crate::prelude::*;

/// What the header says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Fields {
    pub(super) descr: String,
    /// The description is the text of a list of fields.
    pub(super) is_records: bool,
    /// Where the description stands in the text.
    pub(super) descr_at: Range<usize>,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<u64>,
    pub(super) shape_at: Range<usize>,
}

/// What differs between versions of the format.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// Text is UTF-8, not Latin-1.
    pub(super) utf8: bool,
    /// Numbers may end in `L`, as Python 2 had it.
    pub(super) long: bool,
    pub(super) max_rank: usize,
}

/// Reads a header. Places in errors count from its first byte.
pub(super) fn parse(text: &[u8], rules: Rules) -> Result<Fields> {
    let mut scan = Scan { text, at: 0, rules };
    let mut descr = None;
    let mut fortran_order = None;
    let mut shape = None;
    scan.expect(b'{', "a dictionary")?;
    scan.no_indentation(0..scan.at - 1, false)?;
    while !scan.take(b'}') {
        let at = scan.at;
        let key = scan.string("a key")?;
        scan.expect(b':', "a colon")?;
        let is_new = match key.as_str() {
            "descr" => descr.replace(scan.descr()?).is_none(),
            "fortran_order" => fortran_order.replace(scan.boolean()?).is_none(),
            "shape" => shape.replace(scan.shape()?).is_none(),
            _ => {
                let message = format!(
                    "the header has a key {key:?}; only descr, fortran_order and shape are allowed"
                );
                return Err(scan.refuse("keys", message, at));
            }
        };
        if !is_new {
            return Err(scan.refuse("keys", format!("the header has {key:?} twice"), at));
        }
        if !scan.take(b',') && scan.peek() != Some(b'}') {
            return Err(scan.unexpected("a comma or the end of the dictionary"));
        }
    }
    let end = scan.at;
    scan.blank();
    if scan.at < text.len() {
        return Err(scan.unexpected("nothing but spaces after the dictionary"));
    }
    scan.no_indentation(end..text.len(), rules.long)?;
    match (descr, fortran_order, shape) {
        (
            Some(Descr {
                text,
                at,
                is_records,
            }),
            Some(fortran_order),
            Some((shape, shape_at)),
        ) => Ok(Fields {
            descr: text,
            is_records,
            descr_at: at,
            fortran_order,
            shape,
            shape_at,
        }),
        (descr, fortran_order, _) => {
            let missing = match (descr, fortran_order) {
                (None, _) => "descr",
                (_, None) => "fortran_order",
                _ => "shape",
            };
            Err(scan.refuse("keys", format!("the header has no {missing:?}"), 0))
        }
    }
}

/// A type's description.
struct Descr {
    text: String,
    at: Range<usize>,
    is_records: bool,
}

struct Scan<'t> {
    text: &'t [u8],
    at: usize,
    rules: Rules,
}

impl Scan<'_> {
    fn blank(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r' | b'\x0c') = self.text.get(self.at) {
            self.at += 1;
        }
    }

    /// Around the dictionary, Python takes spaces at the beginning of a last line for an indentation, and refuses them.
    /// Behind a line feed NumPy helps where it also helps numbers of Python 2.
    fn no_indentation(&self, blank: Range<usize>, helped: bool) -> Result<()> {
        let text = self.text.get(blank.clone()).unwrap_or_default();
        let last = text.iter().rposition(|byte| b"\n\r\x0c".contains(byte));
        match last.and_then(|place| Some((place, *text.get(place)?))) {
            Some((place, byte)) if place + 1 < text.len() && !(helped && byte != b'\r') => {
                let message = "spaces after a line break outside the dictionary";
                Err(self.refuse("header", message.into(), blank.start + place + 1))
            }
            _ => Ok(()),
        }
    }

    /// The next byte that is not a space.
    fn peek(&mut self) -> Option<u8> {
        self.blank();
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_it = self.peek() == Some(byte);
        self.at += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, byte: u8, what: &str) -> Result<()> {
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.unexpected(what))
        }
    }

    /// The type's description. What is not text is a type of several fields or of arrays.
    fn descr(&mut self) -> Result<Descr> {
        let next = self.peek();
        let at = self.at;
        match next {
            Some(b'[') => self.records(),
            Some(b'(') => {
                let message = "the dtype is a type with a shape: its elements are arrays; save them with more dimensions";
                Err(self.unsupported("subarray", message.into(), at))
            }
            _ => Ok(Descr {
                text: self.string("a type")?,
                at: at..self.at,
                is_records: false,
            }),
        }
    }

    /// A list of fields. It is passed over, because records are not taken apart; objects among them are refused as
    /// everywhere.
    fn records(&mut self) -> Result<Descr> {
        let start = self.at;
        let mut open = Vec::new();
        loop {
            let at = self.at;
            match self.peek() {
                Some(b'[') => open.push(b']'),
                Some(b'(') => open.push(b')'),
                Some(b'\'' | b'"') => {
                    let text = self.string("a field")?;
                    let code = text.trim_start_matches(['<', '>', '|', '=']);
                    if code
                        .strip_prefix('O')
                        .is_some_and(|size| size.bytes().all(|c| c.is_ascii_digit()))
                    {
                        let message = "the dtype has a field of Python objects in a pickle, which could run \
                        arbitrary code and is never loaded; save numbers instead";
                        return Err(self.unsupported("object", message.into(), at));
                    }
                    continue;
                }
                Some(close @ (b']' | b')')) if open.last() == Some(&close) => {
                    open.pop();
                }
                Some(b',' | b'0'..=b'9' | b'L') => {}
                _ => {
                    let message = "the dtype is a list of fields that NumPy would not write";
                    return Err(self.unsupported("structured", message.into(), start));
                }
            }
            self.at += 1;
            if open.is_empty() {
                break;
            }
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        Ok(Descr {
            text: String::from_utf8_lossy(text).into_owned(),
            at: start..self.at,
            is_records: true,
        })
    }

    fn boolean(&mut self) -> Result<bool> {
        self.blank();
        let rest = self.text.get(self.at..).unwrap_or_default();
        for (word, value) in [(&b"True"[..], true), (b"False", false)] {
            let ends =
                |byte: Option<&u8>| !byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
            if rest.starts_with(word) && ends(rest.get(word.len())) {
                self.at += word.len();
                return Ok(value);
            }
        }
        let at = self.at;
        let message = format!(
            "fortran_order must be True or False, found {}",
            self.found()
        );
        Err(self.refuse("fortran-order", message, at))
    }

    fn shape(&mut self) -> Result<(Vec<u64>, Range<usize>)> {
        let start = self.at;
        if !self.take(b'(') {
            let message = format!(
                "the shape must be a tuple of numbers, found {}",
                self.found()
            );
            return Err(self.refuse("shape", message, self.at));
        }
        let mut shape = Vec::new();
        let mut comma = true;
        while !self.take(b')') {
            if !comma {
                return Err(self.unexpected("a comma or the end of the shape"));
            }
            if shape.len() == self.rules.max_rank {
                return Err(self.too_many_dimensions());
            }
            shape.push(self.dimension()?);
            comma = self.take(b',');
        }
        if shape.len() == 1 && !comma {
            let message = "a shape of one number needs a comma after it to be a tuple";
            return Err(self.refuse("shape", message.into(), start));
        }
        Ok((shape, start..self.at))
    }

    fn too_many_dimensions(&self) -> Error {
        let most = self.rules.max_rank;
        let message = format!("more than {most} dimensions");
        if most < MAX_RANK {
            (Error::limit("rank", message).at(self.rest(self.at))).raised_by("rank", None)
        } else {
            self.refuse("rank", message, self.at)
        }
    }

    fn dimension(&mut self) -> Result<u64> {
        self.blank();
        let start = self.at;
        let rest = self.text.get(start..).unwrap_or_default();
        let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = rest.get(..len).unwrap_or_default();
        let after = rest.get(len).copied();
        let zeros = len > 1 && digits.first() == Some(&b'0');
        let odd = after.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte))
            && !(after == Some(b'L') && self.rules.long);
        if len == 0 || zeros || odd {
            let message = format!(
                "a dimension must be a plain decimal number, found {}",
                self.found()
            );
            return Err(self.refuse("shape", message, start));
        }
        self.at += len;
        if after == Some(b'L') {
            self.at += 1;
        }
        let add =
            |number: u64, digit: &u8| number.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
        digits.iter().try_fold(0, add).ok_or_else(|| {
            self.refuse("overflow", "a dimension does not fit 64 bits".into(), start)
        })
    }

    fn string(&mut self, what: &str) -> Result<String> {
        let quote = match self.peek() {
            Some(quote @ (b'\'' | b'"')) => quote,
            _ => return Err(self.unexpected(what)),
        };
        let start = self.at;
        self.at += 1;
        let mut text = Vec::new();
        loop {
            let byte = self.byte(start)?;
            match byte {
                b'\n' | b'\r' => {
                    return Err(self.refuse("header", "a string ends with its line".into(), start));
                }
                b'\\' => self.escape(start, &mut text)?,
                byte if byte == quote => break,
                byte if self.rules.utf8 => text.push(byte),
                byte => push(&mut text, char::from(byte)),
            }
        }
        String::from_utf8(text).map_err(|cause| {
            let message = "a string of the header is not UTF-8";
            self.refuse("utf8", message.into(), start).because(cause)
        })
    }

    fn escape(&mut self, start: usize, text: &mut Vec<u8>) -> Result<()> {
        let c = match self.byte(start)? {
            byte @ (b'\\' | b'\'' | b'"') => char::from(byte),
            b'n' => '\n',
            b't' => '\t',
            b'x' => self.hexadecimal(2, start)?,
            b'u' => self.hexadecimal(4, start)?,
            other => {
                let message = format!("a string has the unknown escape \\{}", other.escape_ascii());
                return Err(self.refuse("header", message, start));
            }
        };
        push(text, c);
        Ok(())
    }

    fn hexadecimal(&mut self, digits: usize, start: usize) -> Result<char> {
        let mut code = 0;
        for _ in 0..digits {
            let digit = char::from(self.byte(start)?).to_digit(16);
            code = code * 16 + digit.ok_or_else(|| self.bad_code(start))?;
        }
        char::from_u32(code).ok_or_else(|| self.bad_code(start))
    }

    fn bad_code(&self, start: usize) -> Error {
        self.refuse(
            "header",
            "a string has a code that is not a character".into(),
            start,
        )
    }

    fn byte(&mut self, start: usize) -> Result<u8> {
        let byte = self.text.get(self.at).copied();
        self.at += 1;
        byte.ok_or_else(|| self.refuse("header", "a string has no end".into(), start))
    }

    fn unexpected(&self, wanted: &str) -> Error {
        let message = format!("the header: expected {wanted}, found {}", self.found());
        self.refuse("header", message, self.at)
    }

    /// What stands at the place that is looked at, for messages.
    fn found(&self) -> String {
        match self.text.get(self.at..).unwrap_or_default() {
            [] => "the end".into(),
            rest => {
                let shown = rest.get(..rest.len().min(16)).unwrap_or_default();
                format!("\"{}\"", shown.trim_ascii_end().escape_ascii())
            }
        }
    }

    fn refuse(&self, rule: &'static str, message: String, at: usize) -> Error {
        Error::malformed(rule, message).at(self.rest(at))
    }

    fn unsupported(&self, rule: &'static str, message: String, at: usize) -> Error {
        Error::unsupported(rule, message).at(self.rest(at))
    }

    fn rest(&self, at: usize) -> Range<u64> {
        let end = self.text.len();
        at.min(end) as u64..(at + 1).min(end) as u64
    }
}

fn push(text: &mut Vec<u8>, c: char) {
    text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests;
