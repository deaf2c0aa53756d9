//! Maps with keys that are known beforehand, in the order in which writers have them.

use alloc::borrow::Cow;

use super::Decoder;
use super::entries::KnownKeys;
use super::head::Kind;
use crate::error::{Error, Result};
use crate::prelude::*;

/// The key of an entry.
pub(crate) enum Key<'b> {
    /// The field at this place of the list.
    Field(usize),
    /// None of them.
    Other(Cow<'b, str>),
}

impl<'b> Decoder<'b> {
    /// A map, each of whose values `entry` must read. Keys that come in the order of `fields`, of which there are at most
    /// 64, are found without being decoded.
    ///
    /// All keys are text and none is there twice; in lenient CBOR that is so for the fields only.
    pub(crate) fn fields(
        &mut self,
        what: &str,
        fields: &[&'static str],
        mut entry: impl FnMut(&mut Self, Key<'b>) -> Result<()>,
    ) -> Result<()> {
        let mut left = self.map_len(what)?;
        self.depth += 1;
        let first_key = self.keys.len();
        let mut others = KnownKeys::default();
        let mut seen = 0u64;
        let mut next = 0;
        while self.more(&mut left) {
            let from = self.inner.position();
            let at = self.pos();
            let key = match fields.get(next) {
                Some(field) if self.take_key(field) => Key::Field(next),
                _ => match self.other_key(what, fields)? {
                    Some(key) => key,
                    None => continue,
                },
            };
            match &key {
                Key::Field(place) if seen & 1 << place != 0 => {
                    let field = fields.get(*place).copied().unwrap_or_default();
                    return Err(self.duplicate(field, at));
                }
                Key::Field(place) => {
                    seen |= 1 << place;
                    next = place + 1;
                }
                Key::Other(_) if self.lenient => {}
                Key::Other(key) => self.check_new(key, from, first_key, &mut others)?,
            }
            entry(self, key)?;
        }
        self.forget_keys(first_key);
        self.depth -= 1;
        Ok(())
    }

    /// Passes over a short text in its shortest form, if that is the next item.
    fn take_key(&mut self, key: &str) -> bool {
        let from = self.inner.position();
        let Some([first, rest @ ..]) = self.inner.input().get(from..) else {
            return false;
        };
        let is_it = key.len() < 24
            && usize::from(first ^ 0x60) == key.len()
            && rest.starts_with(key.as_bytes());
        if is_it {
            self.inner.set_position(from + 1 + key.len());
        }
        is_it
    }

    /// The next key, whatever it is. `None` if it is no text and that is permitted: it has been passed over with its
    /// value then.
    fn other_key(&mut self, what: &str, fields: &[&str]) -> Result<Option<Key<'b>>> {
        self.pass_tags()?;
        let at = self.pos();
        let key = match self.short_text() {
            Some(key) => Cow::Borrowed(key),
            None if self.head()? == Kind::Text => self.text_item()?,
            None => {
                self.skip()?;
                if self.lenient {
                    return self.skip().map(|()| None);
                }
                return Err(self.not_text(what, at));
            }
        };
        let place = fields.iter().position(|field| *field == key);
        Ok(Some(place.map_or(Key::Other(key), Key::Field)))
    }

    /// The error for a key at `at`, which has been read, that is no text.
    pub(super) fn not_text(&self, what: &str, at: u64) -> Error {
        let message = format!("{what} has a key that is not text");
        Error::malformed(self.rules.schema, message).at(at..self.pos())
    }

    /// The error for a key at `at`, which has been read, that is there twice.
    pub(super) fn duplicate(&self, key: &str, at: u64) -> Error {
        let message = format!("the key {key:?} is there twice");
        Error::malformed(self.rules.duplicate, message).at(at..self.pos())
    }
}
