//! Items that may be of several kinds, and entries that nobody understands.

use alloc::borrow::Cow;

use super::Decoder;
use super::head::Kind;
#[cfg(feature = "burnpack")]
use crate::error::Error;
use crate::error::Result;
#[cfg(feature = "burnpack")]
use crate::prelude::*;

impl<'b> Decoder<'b> {
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

    /// Refuses the next item, which is no text, unless it is a map.
    #[cfg(feature = "burnpack")]
    pub(crate) fn text_or_map(&mut self, field: &str) -> Result<()> {
        self.pass_tags()?;
        match self.head()? {
            // Whoever reads the map refuses a break.
            Kind::Map | Kind::Break => Ok(()),
            found => {
                let message = format!("{field} is {}, text or a map is expected", found.name());
                let at = self.pos()..self.pos() + 1;
                Err(Error::malformed(self.rules.schema, message).at(at))
            }
        }
    }

    /// Passes over the value of the entry that [`fields`](Self::fields) gave out last; where the entry begins, and its
    /// bytes from the key on.
    #[cfg(feature = "burnpack")]
    pub(crate) fn skip_entry(&mut self) -> Result<(u64, &'b [u8])> {
        let at = self.entry_at;
        self.skip()?;
        let from = usize::try_from(at - self.base).unwrap_or(usize::MAX);
        let bytes = self.inner.input().get(from..self.inner.position());
        Ok((at, bytes.unwrap_or_default()))
    }
}
