//! The entries of maps: no key twice, and in order where the encoding is deterministic.

use alloc::borrow::Cow;
use core::hash::BuildHasher;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

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
                self.check_new(key, from, first_key, &mut known)?;
            }
            each(self, at, key)?;
        }
        self.forget_keys(first_key);
        self.depth -= 1;
        Ok(())
    }

    /// Forgets the keys of a map that has been read, and their memory if there were many.
    pub(super) fn forget_keys(&mut self, first_key: usize) {
        const FEW: usize = 1024;
        self.keys.truncate(first_key);
        if self.keys.capacity() > FEW + 4 * self.keys.len() {
            self.keys.shrink_to(FEW + 2 * self.keys.len());
        }
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

    /// Refuses a key that is not new; it begins at `from` and has been read.
    pub(super) fn check_new(
        &mut self,
        key: &str,
        from: usize,
        first_key: usize,
        known: &mut KnownKeys,
    ) -> Result<()> {
        let input = self.inner.input();
        let keys = self.keys.get(first_key..).unwrap_or_default();
        let order = &mut known.order;
        let is_less = |&last: &usize| *text_at(input, last) < *key;
        if matches!(order, KeyOrder::Rising) && !keys.last().is_none_or(is_less) {
            *order = KeyOrder::Few;
        }
        if matches!(order, KeyOrder::Few) && keys.len() >= FEW_KEYS {
            *order = KeyOrder::Many(KeyTable::new(input, keys));
            self.keys.truncate(first_key);
        }
        let keys = self.keys.get(first_key..).unwrap_or_default();
        let mark = mark(key);
        let is_new = match order {
            KeyOrder::Rising => true,
            KeyOrder::Few => {
                known.marks & mark == 0 || !keys.iter().any(|&at| text_at(input, at) == key)
            }
            KeyOrder::Many(table) => table.insert(input, key, from),
        };
        known.marks |= mark;
        if !is_new {
            return Err(self.duplicate(key, self.base + from as u64));
        }
        if !matches!(order, KeyOrder::Many(_)) {
            self.keys.push(from);
        }
        Ok(())
    }
}

/// The text that begins at a place where it was read before.
fn text_at(input: &[u8], at: usize) -> Cow<'_, str> {
    let mut decoder = minicbor::Decoder::new(input);
    decoder.set_position(at);
    if let Ok(text) = decoder.str() {
        return Cow::Borrowed(text);
    }
    decoder.set_position(at);
    let pieces = decoder.str_iter().map(|pieces| pieces.flatten().collect());
    Cow::Owned(pieces.unwrap_or_default())
}

/// The keys of a map so far.
#[derive(Default)]
pub(super) struct KnownKeys {
    /// A bit for each, by [`mark`]: most new keys are found to be new by it.
    marks: u64,
    /// How others are found to be new.
    order: KeyOrder,
}

#[derive(Default)]
enum KeyOrder {
    /// Each was greater than the one before it.
    #[default]
    Rising,
    /// One by one.
    Few,
    Many(KeyTable),
}

/// Where keys are, found by what they are: a file may have millions of three bytes.
#[derive(Default)]
struct KeyTable {
    hasher: DefaultHashBuilder,
    places: HashTable<usize>,
}

impl KeyTable {
    fn new(input: &[u8], keys: &[usize]) -> Self {
        let mut table = Self::default();
        for &at in keys {
            table.insert(input, &text_at(input, at), at);
        }
        table
    }

    /// Adds a key, and says whether it is new.
    fn insert(&mut self, input: &[u8], key: &str, at: usize) -> bool {
        let Self { hasher, places } = self;
        let is_it = |&at: &usize| text_at(input, at) == key;
        let hash = |&at: &usize| hasher.hash_one(&*text_at(input, at));
        match places.entry(hasher.hash_one(key), is_it, hash) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(at);
                true
            }
        }
    }
}

/// A bit that is the same for equal keys, and seldom for the different keys of a map.
fn mark(key: &str) -> u64 {
    let bytes = key.as_bytes();
    let first = bytes.first().copied().unwrap_or(0);
    let last = bytes.last().copied().unwrap_or(0);
    1 << ((bytes.len() as u64 * 5 + u64::from(first) + u64::from(last) * 3) % 64)
}
