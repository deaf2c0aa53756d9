//! What only readers of lenient encodings ask for.

use alloc::borrow::Cow;

use super::Decoder;
use super::head::Kind;
use crate::error::{Error, Result};
use crate::prelude::*;

impl<'b> Decoder<'b> {
    /// A map of which some keys are known, in the order in which writers have them: `entry` must read the value of the
    /// key at a place of `keys`. Others are passed over.
    pub(crate) fn known_map(
        &mut self,
        field: &str,
        keys: &[&str],
        mut entry: impl FnMut(&mut Self, usize) -> Result<()>,
    ) -> Result<()> {
        let mut left = self.map_len(field)?;
        self.depth += 1;
        let mut seen = 0u64;
        let mut next = 0;
        while self.more(&mut left) {
            let at = self.pos();
            let place = match self.take_key(keys.get(next)) {
                true => Some(next),
                false => self.other_key(keys)?,
            };
            let Some(place) = place else {
                self.skip()?;
                continue;
            };
            if seen & (1 << place) != 0 {
                let key = keys.get(place).unwrap_or(&"");
                let message = format!("the key {key:?} is there twice");
                return Err(Error::malformed(self.rules.duplicate, message).at(at..self.pos()));
            }
            seen |= 1 << place;
            next = place + 1;
            entry(self, place)?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// Passes over a short text in its shortest form, if that is the next item.
    fn take_key(&mut self, key: Option<&&str>) -> bool {
        let from = self.inner.position();
        let rest = self.inner.input().get(from..);
        let (Some(key), Some([first, rest @ ..])) = (key, rest) else {
            return false;
        };
        let is_it = usize::from(first ^ 0x60) == key.len() && rest.starts_with(key.as_bytes());
        if is_it && key.len() < 24 {
            self.inner.set_position(from + 1 + key.len());
        }
        is_it && key.len() < 24
    }

    /// The place of the next item among `keys`.
    fn other_key(&mut self, keys: &[&str]) -> Result<Option<usize>> {
        match self.take_text()? {
            Some(text) => Ok(keys.iter().position(|key| *key == text)),
            None => self.skip().map(|()| None),
        }
    }

    /// The next item, if it is text.
    pub(crate) fn take_text(&mut self) -> Result<Option<Cow<'b, str>>> {
        if let Some(text) = self.short_text() {
            return Ok(Some(Cow::Borrowed(text)));
        }
        self.pass_tags()?;
        match self.head()? {
            Kind::Text => self.text_item().map(Some),
            _ => Ok(None),
        }
    }

    /// Passes over null, if that is the next item, and says whether it was.
    pub(crate) fn take_null(&mut self) -> Result<bool> {
        self.pass_tags()?;
        if self.peek().and_then(Kind::of) != Some(Kind::Null) {
            return Ok(false);
        }
        self.head()?;
        self.run(|inner| inner.null()).map(|()| true)
    }
}
