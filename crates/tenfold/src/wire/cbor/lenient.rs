//! What only readers of lenient encodings ask for.

use alloc::borrow::Cow;

use super::Decoder;
use super::head::Kind;
use crate::error::Result;

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
}
