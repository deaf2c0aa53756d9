//! The entries of maps: no key twice, and in order where the encoding is deterministic.

use alloc::borrow::Cow;

use super::Decoder;
use super::head::Kind;
use crate::error::{Error, Result};
use crate::prelude::*;

/// What is done with an entry of a map: its place, and its key if that is text. Must read the value.
pub(super) type Each<'a, 'b> =
    dyn FnMut(&mut Decoder<'b>, u64, Option<Cow<'b, str>>) -> Result<()> + 'a;

/// Map keys that are compared one by one, before a table is made of them.
const FEW_KEYS: usize = 16;

impl<'b> Decoder<'b> {
    /// The head of a map: how many entries it has, if it says so.
    pub(super) fn map_len(&mut self, field: &str) -> Result<Option<u64>> {
        // The innermost map that is permitted is left to the general way.
        if self.depth < self.max_depth
            && let Some(len) = self.short_argument(0xa0)
        {
            return Ok(Some(len.into()));
        }
        self.expect(Kind::Map, field)?;
        self.run(|inner| inner.map())
    }

    /// The entries of a map whose head has been read: the place of a key, and the key itself if it is text.
    pub(super) fn entries(&mut self, mut left: Option<u64>, each: &mut Each<'_, 'b>) -> Result<()> {
        self.depth += 1;
        let first_key = self.keys.len();
        let mut known = KnownKeys::default();
        let mut previous = None;
        while self.more(&mut left) {
            self.pass_tags()?;
            let from = self.inner.position();
            let at = self.pos();
            let key = match self.short_text() {
                Some(key) => Some(Cow::Borrowed(key)),
                None if self.head()? == Kind::Text => Some(self.text_item()?),
                None => {
                    self.skip()?;
                    None
                }
            };
            if self.deterministic {
                previous = Some(self.check_order(previous, from)?);
            } else if let Some(key) = &key {
                self.check_new(key.clone(), first_key, &mut known, at)?;
            }
            each(self, at, key)?;
        }
        self.keys.truncate(first_key);
        self.depth -= 1;
        Ok(())
    }

    /// Deterministic keys rise by their encoded bytes, so that equal ones are neighbours.
    fn check_order(&self, previous: Option<Range<usize>>, from: usize) -> Result<Range<usize>> {
        let this = from..self.inner.position();
        let bytes = |range: Range<usize>| self.inner.input().get(range).unwrap_or_default();
        if let Some(previous) = previous {
            let (rule, message) = match bytes(previous).cmp(bytes(this.clone())) {
                core::cmp::Ordering::Less => return Ok(this),
                core::cmp::Ordering::Equal => (self.rules.duplicate, "the same key twice"),
                core::cmp::Ordering::Greater => (
                    self.rules.form,
                    "map keys are not in the order of their encoded bytes",
                ),
            };
            return Err(Error::malformed(rule, message).at(self.base + from as u64..self.pos()));
        }
        Ok(this)
    }

    pub(super) fn check_new(
        &mut self,
        key: Cow<'b, str>,
        first_key: usize,
        known: &mut KnownKeys<'b>,
        at: u64,
    ) -> Result<()> {
        let keys = self.keys.get(first_key..).unwrap_or_default();
        let order = &mut known.order;
        if matches!(order, KeyOrder::Rising) && keys.last().is_some_and(|last| **last >= *key) {
            *order = KeyOrder::Few;
        }
        if matches!(order, KeyOrder::Few) && keys.len() >= FEW_KEYS {
            let keys = keys.iter().cloned();
            *order = KeyOrder::Many(keys.map(|key| (key, ())).collect());
        }
        let mark = mark(&key);
        let is_new = match order {
            KeyOrder::Rising => true,
            KeyOrder::Few => known.marks & mark == 0 || !keys.contains(&key),
            KeyOrder::Many(table) => table.insert(key.clone(), ()).is_none(),
        };
        known.marks |= mark;
        if !is_new {
            return Err(self.duplicate(&key, at));
        }
        if !matches!(order, KeyOrder::Many(_)) {
            self.keys.push(key);
        }
        Ok(())
    }
}

/// The keys of a map so far.
#[derive(Default)]
pub(super) struct KnownKeys<'b> {
    /// A bit for each, by [`mark`]: most new keys are found to be new by it.
    marks: u64,
    /// How others are found to be new.
    order: KeyOrder<'b>,
}

#[derive(Default)]
enum KeyOrder<'b> {
    /// Each was greater than the one before it.
    #[default]
    Rising,
    /// One by one.
    Few,
    Many(LookupMap<Cow<'b, str>, ()>),
}

/// A bit that is the same for equal keys, and seldom for the different keys of a map.
fn mark(key: &str) -> u64 {
    let bytes = key.as_bytes();
    let first = bytes.first().copied().unwrap_or(0);
    let last = bytes.last().copied().unwrap_or(0);
    1 << ((bytes.len() as u64 * 5 + u64::from(first) + u64::from(last) * 3) % 64)
}
