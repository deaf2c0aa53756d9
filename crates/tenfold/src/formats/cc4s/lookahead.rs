//! What the YAML parser reads, watched: it holds every token since its last event, a hundred times what it reads.
//!
//! A list or map in brackets that could be a key is such a case, because the parser first looks for the colon after it.

use core::cell::Cell;

use saphyr_parser::input::SkipTabs;
use saphyr_parser::{Input, StrInput};

use crate::prelude::*;

/// Bytes that a token takes, at most: the list of them grows by doubling.
const TOKEN: u64 = 384;
/// Bytes that a character takes, at most, of a scalar that grows by doubling.
const CHARACTER: u64 = 4;

/// Text that ends when the parser has read too much of it at once.
pub(super) struct Watched<'t> {
    text: StrInput<'t>,
    /// Bytes of memory that the parser may still take before its next event; none once it took too many.
    room: &'t Cell<Option<u64>>,
}

impl<'t> Watched<'t> {
    pub(super) fn new(text: &'t str, room: &'t Cell<Option<u64>>) -> Self {
        Self {
            text: StrInput::new(text),
            room,
        }
    }

    #[inline]
    fn read(&mut self, character: char) {
        let tokens = match character {
            // Itself, what makes a map of one entry of it, and the scalar after it.
            ':' | '?' => 4,
            ',' | '[' | ']' | '{' | '}' => 2,
            '"' | '\'' | '&' | '*' | '!' => 1,
            _ => 0,
        };
        self.take(tokens * TOKEN + CHARACTER);
    }

    #[inline]
    fn take(&mut self, bytes: u64) {
        let left = self.room.get().and_then(|room| room.checked_sub(bytes));
        self.room.set(left);
        if left.is_none() {
            // What was looked at stays looked at.
            let ahead = self.text.buflen();
            self.text = StrInput::new("");
            self.text.lookahead(ahead);
        }
    }
}

impl Input for Watched<'_> {
    #[inline]
    fn lookahead(&mut self, count: usize) {
        self.text.lookahead(count);
    }

    #[inline]
    fn buflen(&self) -> usize {
        self.text.buflen()
    }

    #[inline]
    fn bufmaxlen(&self) -> usize {
        self.text.bufmaxlen()
    }

    fn raw_read_ch(&mut self) -> char {
        self.read(self.text.peek());
        self.text.raw_read_ch()
    }

    fn raw_read_non_breakz_ch(&mut self) -> Option<char> {
        self.take(CHARACTER);
        self.text.raw_read_non_breakz_ch()
    }

    #[inline]
    fn skip(&mut self) {
        self.read(self.text.peek());
        self.text.skip();
    }

    fn skip_n(&mut self, count: usize) {
        self.take(CHARACTER.saturating_mul(count as u64));
        self.text.skip_n(count);
    }

    #[inline]
    fn peek(&self) -> char {
        self.text.peek()
    }

    #[inline]
    fn peek_nth(&self, n: usize) -> char {
        self.text.peek_nth(n)
    }

    #[inline]
    fn peek_opt(&self) -> Option<char> {
        self.text.peek_opt()
    }

    // These are faster than what they would be made of.

    #[inline]
    fn look_ch(&mut self) -> char {
        self.text.look_ch()
    }

    #[inline]
    fn next_is_document_indicator(&self) -> bool {
        self.text.next_is_document_indicator()
    }

    #[inline]
    fn next_can_be_plain_scalar(&self, in_flow: bool) -> bool {
        self.text.next_can_be_plain_scalar(in_flow)
    }

    #[inline]
    fn next_is_blank_or_break(&self) -> bool {
        self.text.next_is_blank_or_break()
    }

    #[inline]
    fn next_is_blank_or_breakz(&self) -> bool {
        self.text.next_is_blank_or_breakz()
    }

    #[inline]
    fn next_is_blank(&self) -> bool {
        self.text.next_is_blank()
    }

    #[inline]
    fn next_is_break(&self) -> bool {
        self.text.next_is_break()
    }

    fn skip_ws_to_eol(&mut self, skip_tabs: SkipTabs) -> (usize, Result<SkipTabs, &'static str>) {
        self.text.skip_ws_to_eol(skip_tabs)
    }

    fn skip_while_non_breakz(&mut self) -> usize {
        self.text.skip_while_non_breakz()
    }

    fn skip_while_blank(&mut self) -> usize {
        self.text.skip_while_blank()
    }

    fn fetch_while_is_alpha(&mut self, out: &mut String) -> usize {
        self.text.fetch_while_is_alpha(out)
    }

    fn fetch_while_is_yaml_non_space(&mut self, out: &mut String) -> usize {
        self.text.fetch_while_is_yaml_non_space(out)
    }
}
