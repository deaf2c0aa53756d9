//! Checked, offset-aware parsing over a [`Source`].

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::io::{Source, read_exactly, wrong_length};
use crate::prelude::*;

/// Reads fields one after the other. Every method takes the field's name, which goes into the error.
///
/// Nothing is allocated because a file says so: lengths are compared with the bytes that remain first.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    source: &'a dyn Source,
    /// The rule under which running out of bytes is reported, such as `mag.truncated`.
    rule: &'static str,
    pos: u64,
    end: u64,
    /// Bytes that were fetched together, and where they begin.
    window: Bytes,
    window_at: u64,
}

impl<'a> Reader<'a> {
    /// A reader over the whole source. `truncated` is the rule under which missing bytes are reported.
    pub fn new(source: &'a dyn Source, truncated: &'static str) -> Self {
        Self::over(source, 0..source.len(), truncated)
    }

    /// A reader over a part of the source; a part that reaches past the end is cut there.
    pub fn over(source: &'a dyn Source, range: Range<u64>, truncated: &'static str) -> Self {
        let end = range.end.min(source.len());
        Self {
            source,
            rule: truncated,
            pos: range.start.min(end),
            end,
            window: Bytes::new(),
            window_at: 0,
        }
    }

    /// Lets it take what lies in bytes that were fetched before from there.
    #[must_use]
    pub(crate) fn knowing(mut self, at: u64, bytes: Bytes) -> Self {
        self.window = bytes;
        self.window_at = at;
        self
    }

    /// Where the next field begins.
    pub fn pos(&self) -> u64 {
        self.pos
    }

    /// Goes to any place in its part, or to its end; what has been fetched is kept.
    pub fn go_to(&mut self, at: u64) {
        self.pos = at.min(self.end);
    }

    /// Bytes that are left.
    pub fn remaining(&self) -> u64 {
        self.end - self.pos
    }

    /// The next `n` bytes. Shares the window, or reads exactly them when they are many.
    pub fn take(&mut self, n: u64, field: &'static str) -> Result<Bytes> {
        let range = self.claim(n, field)?;
        if n == 0 {
            return Ok(Bytes::new());
        }
        if n > self.source.window() {
            return read_exactly(self.source, range);
        }
        self.fetch(&range)?;
        let from = self.in_window(range.start);
        let to = self.in_window(range.end);
        Ok(self.window.slice(from..to))
    }

    /// Passes over `n` bytes without fetching them, and says where they are.
    pub fn skip(&mut self, n: u64, field: &'static str) -> Result<Range<u64>> {
        self.claim(n, field)
    }

    /// Passes over everything before `at`, which may be neither before the reader nor past the end.
    pub fn skip_to(&mut self, at: u64, field: &'static str) -> Result<Range<u64>> {
        match at.checked_sub(self.pos) {
            Some(n) => self.claim(n, field),
            None => Err(Error::malformed(
                self.rule,
                format!("{field} lies before byte {}", self.pos),
            )
            .at(at..at)),
        }
    }

    /// The next `n` bytes as UTF-8 text; anything else is refused under `rule`.
    pub fn text(&mut self, n: u64, rule: &'static str, field: &'static str) -> Result<String> {
        let at = self.pos;
        let bytes = self.take(n, field)?;
        match core::str::from_utf8(&bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(cause) => {
                let bad = at + cause.valid_up_to() as u64;
                Err(Error::malformed(rule, format!("{field} is not UTF-8"))
                    .at(bad..at + n)
                    .because(cause))
            }
        }
    }

    /// Checks that `count` records of at least `min_record` bytes can follow, and gives it as a size.
    pub fn count(&self, count: u64, min_record: u64, field: &'static str) -> Result<usize> {
        let room = self.remaining() / min_record.max(1);
        match usize::try_from(count) {
            Ok(size) if count <= room => Ok(size),
            _ => Err(Error::malformed(
                self.rule,
                format!(
                    "{field} is {count}, but the {} bytes that follow have room for at most {room}",
                    self.remaining()
                ),
            )
            .at(self.pos..self.end)),
        }
    }

    /// One byte.
    pub fn u8(&mut self, field: &'static str) -> Result<u8> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    /// A little-endian number of 16 bits.
    pub fn u16(&mut self, field: &'static str) -> Result<u16> {
        self.array(field).map(u16::from_le_bytes)
    }

    /// A little-endian number of 32 bits.
    pub fn u32(&mut self, field: &'static str) -> Result<u32> {
        self.array(field).map(u32::from_le_bytes)
    }

    /// A little-endian number of 64 bits.
    pub fn u64(&mut self, field: &'static str) -> Result<u64> {
        self.array(field).map(u64::from_le_bytes)
    }

    /// A signed little-endian number of 64 bits.
    pub fn i64(&mut self, field: &'static str) -> Result<i64> {
        self.array(field).map(i64::from_le_bytes)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N]> {
        let range = self.claim(N as u64, field)?;
        self.fetch(&range)?;
        let from = self.in_window(range.start);
        let bytes = self
            .window
            .get(from..)
            .and_then(|rest| rest.first_chunk::<N>());
        // `fetch` has made sure that the window holds the range.
        bytes
            .copied()
            .ok_or_else(|| self.truncated(N as u64, field))
    }

    /// Moves past `n` bytes, if there are as many.
    fn claim(&mut self, n: u64, field: &'static str) -> Result<Range<u64>> {
        if n > self.remaining() {
            return Err(self.truncated(n, field));
        }
        let at = self.pos;
        self.pos += n;
        Ok(at..self.pos)
    }

    /// Makes the window hold `range`, which lies inside the reader's part.
    fn fetch(&mut self, range: &Range<u64>) -> Result<()> {
        let window_end = self.window_at + self.window.len() as u64;
        if range.start < self.window_at || range.end > window_end {
            let size = self.source.window().max(range.end - range.start);
            let wanted = range.start..range.start.saturating_add(size).min(self.end);
            let window = self.source.read(wanted.clone())?;
            if window.len() as u64 != wanted.end - wanted.start {
                return Err(wrong_length(&window, wanted));
            }
            self.window = window;
            self.window_at = range.start;
        }
        Ok(())
    }

    fn in_window(&self, at: u64) -> usize {
        // The window is in memory, so a place in it fits usize.
        usize::try_from(at - self.window_at).unwrap_or(usize::MAX)
    }

    fn truncated(&self, n: u64, field: &'static str) -> Error {
        Error::malformed(
            self.rule,
            format!(
                "{field} needs {n} bytes, {} are left: the file is truncated or damaged",
                self.remaining()
            ),
        )
        .at(self.pos..self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(bytes: &Bytes) -> Reader<'_> {
        Reader::new(bytes, "test.truncated")
    }

    #[test]
    fn fields_are_read_in_order() {
        let bytes = Bytes::from_static(&[1, 2, 0, 3, 0, 0, 0, b'a', b'b', 9]);
        let mut r = reader(&bytes);
        assert_eq!(r.u8("a").unwrap(), 1);
        assert_eq!(r.u16("b").unwrap(), 2);
        assert_eq!(r.u32("c").unwrap(), 3);
        assert_eq!(r.text(2, "test.utf8", "d").unwrap(), "ab");
        assert_eq!(r.skip(1, "e").unwrap(), 9..10);
        assert_eq!(r.remaining(), 0);
    }

    #[test]
    fn a_field_past_the_end_names_itself_and_its_place() {
        let bytes = Bytes::from_static(&[1, 2, 3]);
        let mut r = reader(&bytes);
        r.u8("first").unwrap();
        let error = r.u32("second").unwrap_err();
        assert_eq!(error.rule(), "test.truncated");
        assert!(
            error.message().contains("second needs 4 bytes, 2 are left"),
            "{error}"
        );
        assert_eq!(error.range().unwrap().1, 1..3);
    }

    #[test]
    fn a_lying_count_is_refused_before_anything_is_allocated() {
        let bytes = Bytes::from_static(&[0; 64]);
        assert_eq!(reader(&bytes).count(4, 16, "records").unwrap(), 4);
        assert!(reader(&bytes).count(5, 16, "records").is_err());
        assert!(reader(&bytes).count(u64::MAX, 1, "records").is_err());
    }

    #[test]
    fn text_that_is_not_utf8_points_at_the_bad_byte() {
        let bytes = Bytes::from_static(b"ab\xffd");
        let error = reader(&bytes).text(4, "test.utf8", "name").unwrap_err();
        assert_eq!(error.range().unwrap().1, 2..4);
    }
}
