//! JSON as real files hold it: order kept, repeated keys seen, integers of any length, `NaN` and `Infinity`.
//!
//! [`Json`] is read by pulling: who knows what a document should hold asks for exactly that, without a tree in
//! between. No call recurses into the document, so its depth costs memory that a limit bounds, never the stack.

mod encode;
mod token;
mod value;

use alloc::borrow::Cow;

pub(crate) use encode::{encode, encode_str};
pub(crate) use value::Repeated;

use crate::error::{Error, Result};
use crate::prelude::*;

/// The rules under which a format reports what is wrong with its JSON.
#[derive(Debug)]
pub(crate) struct Rules {
    /// Not JSON, or not the JSON that was expected.
    pub(crate) syntax: &'static str,
    /// Not UTF-8, or an escape that is not a character.
    pub(crate) text: &'static str,
    /// Nested too deeply.
    pub(crate) depth: &'static str,
}

/// A document that is being read from its beginning to its end.
pub(crate) struct Json<'a> {
    text: &'a str,
    pos: usize,
    /// Where the last key began.
    key_pos: usize,
    /// Where the document begins in the file.
    base: u64,
    /// The containers that are open, outermost first.
    open: Vec<Open>,
    max_depth: usize,
    /// The depth is that of this limit, and not one of the format.
    limit: Option<&'static str>,
    /// `NaN` and `Infinity` are numbers.
    not_finite: bool,
    rules: &'static Rules,
}

#[derive(Clone, Copy)]
struct Open {
    object: bool,
    /// Nothing has been read of it yet, so that no comma may come.
    fresh: bool,
}

/// What comes next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Bool,
    List,
    Null,
    Number,
    Object,
    Str,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Bool => "true or false",
            Kind::List => "a list",
            Kind::Null => "null",
            Kind::Number => "a number",
            Kind::Object => "an object",
            Kind::Str => "a string",
        }
    }
}

/// A number as it is written: whole numbers may have any length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number<'a> {
    /// Digits, perhaps after a minus sign.
    Whole(&'a str),
    /// Written with a point or an exponent, or not finite.
    Float(f64),
}

impl<'a> Json<'a> {
    /// Begins to read a document that stands at `base` of a file and may nest up to `max_depth`.
    pub(crate) fn new(
        bytes: &'a [u8],
        base: u64,
        max_depth: usize,
        rules: &'static Rules,
    ) -> Result<Self> {
        let text = core::str::from_utf8(bytes).map_err(|cause| {
            let bad = base + cause.valid_up_to() as u64;
            Error::malformed(rules.text, "the JSON text is not UTF-8")
                .at(bad..bad + 1)
                .because(cause)
        })?;
        let json = Self {
            text,
            pos: 0,
            key_pos: 0,
            base,
            open: Vec::new(),
            max_depth,
            limit: None,
            not_finite: true,
            rules,
        };
        if text.starts_with('\u{feff}') {
            Err(json.wrong("begins with a byte order mark, which JSON does not allow"))
        } else {
            Ok(json)
        }
    }

    /// Says which limit the depth is.
    pub(crate) fn limited_by(mut self, limit: &'static str) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Refuses `NaN` and `Infinity`, which JSON does not have.
    pub(crate) fn finite(mut self) -> Self {
        self.not_finite = false;
        self
    }

    /// Where the next token begins in the file.
    pub(crate) fn at(&mut self) -> u64 {
        self.space();
        self.place(self.pos)
    }

    /// Where the last key began in the file.
    pub(crate) fn key_at(&self) -> u64 {
        self.place(self.key_pos)
    }

    /// Where what was read last ends in the file.
    pub(crate) fn end_at(&self) -> u64 {
        self.place(self.pos)
    }

    /// An error about what comes next.
    pub(crate) fn wrong(&self, message: impl Into<String>) -> Error {
        self.error(self.rules.syntax, self.pos, message)
    }

    /// What comes next, without reading it.
    pub(crate) fn kind(&mut self) -> Result<Kind> {
        self.space();
        match self.peek() {
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::List),
            Some(b'"') => Ok(Kind::Str),
            Some(b't' | b'f') => Ok(Kind::Bool),
            Some(b'n') => Ok(Kind::Null),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b'N' | b'I') if self.not_finite => Ok(Kind::Number),
            _ => Err(self.unexpected("a value")),
        }
    }

    /// Begins an object; [`key`](Self::key) gives what is in it. `what` names it in the error.
    pub(crate) fn object(&mut self, what: &str) -> Result<()> {
        self.expect(Kind::Object, what)?;
        self.enter(true)
    }

    /// The next key of the innermost object, whose value must be read then; `None` when the object has ended.
    pub(crate) fn key(&mut self) -> Result<Option<Cow<'a, str>>> {
        if !self.next_entry(b'}')? {
            return Ok(None);
        }
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("a key in quotes"));
        }
        self.key_pos = self.pos;
        let key = self.quoted()?;
        self.space();
        if self.peek() != Some(b':') {
            return Err(self.unexpected("a colon"));
        }
        self.pos += 1;
        Ok(Some(key))
    }

    /// Begins a list; [`item`](Self::item) goes through it. `what` names it in the error.
    pub(crate) fn list(&mut self, what: &str) -> Result<()> {
        self.expect(Kind::List, what)?;
        self.enter(false)
    }

    /// Whether the innermost list has another item, which must be read then.
    pub(crate) fn item(&mut self) -> Result<bool> {
        self.next_entry(b']')
    }

    /// A whole number, as its digits; `what` names it in the error.
    pub(crate) fn whole(&mut self, what: &str) -> Result<&'a str> {
        self.expect(Kind::Number, what)?;
        let begin = self.pos;
        match self.number()? {
            Number::Whole(digits) => Ok(digits),
            Number::Float(value) => {
                let message = format!("{what} must be a whole number, found {value:?}");
                Err(self.error(self.rules.syntax, begin, message))
            }
        }
    }

    /// Text; `what` names it in the error.
    pub(crate) fn string(&mut self, what: &str) -> Result<Cow<'a, str>> {
        self.expect(Kind::Str, what)?;
        self.quoted()
    }

    /// A whole number from 0 to 2^64 - 1; `what` names it in the error.
    pub(crate) fn unsigned(&mut self, what: &str) -> Result<u64> {
        self.space();
        let begin = self.pos;
        if let Some(number) = self.short_unsigned() {
            return Ok(number);
        }
        let digits = self.whole(what)?;
        digits.parse().map_err(|cause| {
            let message = format!("{what} must be from 0 to 2^64 - 1, found {digits}");
            self.error(self.rules.syntax, begin, message).because(cause)
        })
    }

    /// The text of the next value, which is a number, true, false or null.
    pub(crate) fn scalar(&mut self) -> Result<&'a str> {
        let kind = self.kind()?;
        let begin = self.pos;
        match kind {
            Kind::Number => drop(self.number()?),
            Kind::Bool | Kind::Null => drop(self.literal()?),
            other => {
                return Err(self.wrong(format!("expected a number, found {}", other.name())));
            }
        }
        Ok(self.text.get(begin..self.pos).unwrap_or_default())
    }

    /// Passes over the next value, whatever it is.
    pub(crate) fn skip(&mut self) -> Result<()> {
        let outside = self.open.len();
        loop {
            match self.kind()? {
                Kind::Object => self.object("")?,
                Kind::List => self.list("")?,
                Kind::Str => drop(self.quoted()?),
                Kind::Number => drop(self.number()?),
                Kind::Bool | Kind::Null => drop(self.literal()?),
            }
            loop {
                if self.open.len() == outside {
                    return Ok(());
                }
                let object = self.open.last().is_some_and(|open| open.object);
                if if object {
                    self.key()?.is_some()
                } else {
                    self.item()?
                } {
                    break;
                }
            }
        }
    }

    /// Makes sure that nothing follows.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.space();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.unexpected("nothing after the value")),
        }
    }

    /// Moves into a container whose opening bracket comes next.
    fn enter(&mut self, object: bool) -> Result<()> {
        if self.open.len() >= self.max_depth {
            let message = format!("nested deeper than {} levels", self.max_depth);
            let at = self.place(self.pos);
            let error = Error::limit(self.rules.depth, message).at(at..at + 1);
            return Err(match self.limit {
                Some(limit) => error.raised_by(limit, None),
                None => error,
            });
        }
        self.pos += 1;
        self.open.push(Open {
            object,
            fresh: true,
        });
        Ok(())
    }

    /// Moves to the next entry of the innermost container, or out of it: then there is none.
    fn next_entry(&mut self, close: u8) -> Result<bool> {
        self.space();
        let fresh = self.open.last().is_some_and(|open| open.fresh);
        let next = self.peek();
        if next == Some(close) {
            self.pos += 1;
            self.open.pop();
            return Ok(false);
        }
        if fresh {
            if let Some(open) = self.open.last_mut() {
                open.fresh = false;
            }
            return Ok(true);
        }
        if next != Some(b',') {
            let expected = format!("a comma or {:?}", char::from(close));
            return Err(self.unexpected(&expected));
        }
        self.pos += 1;
        self.space();
        if self.peek() == Some(close) {
            Err(self.unexpected("another entry after the comma"))
        } else {
            Ok(true)
        }
    }

    fn expect(&mut self, kind: Kind, what: &str) -> Result<()> {
        let found = self.kind()?;
        if found != kind {
            let (kind, found) = (kind.name(), found.name());
            return Err(self.wrong(format!("{what} must be {kind}, found {found}")));
        }
        Ok(())
    }

    /// Passes over `word` if it comes next.
    fn take(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word.as_bytes());
        if found {
            self.pos += word.len();
        }
        found
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.pos += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.pos).copied()
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.pos..).unwrap_or_default()
    }

    fn place(&self, pos: usize) -> u64 {
        self.base + pos as u64
    }

    fn unexpected(&self, expected: &str) -> Error {
        let found = match self
            .text
            .get(self.pos..)
            .and_then(|rest| rest.chars().next())
        {
            Some(found) => format!("{found:?}"),
            None => "the end of the text".to_owned(),
        };
        self.wrong(format!("not JSON: found {found}, expected {expected}"))
    }

    fn error(&self, rule: &'static str, pos: usize, message: impl Into<String>) -> Error {
        let at = self.place(pos);
        let end = self.place(self.text.len()).max(at);
        Error::malformed(rule, message).at(at..end.min(at + 1))
    }
}

#[cfg(test)]
mod tests;
