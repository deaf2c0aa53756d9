//! The keys of maps: none twice, and in order where the encoding is deterministic.

use alloc::borrow::Cow;
use core::cmp::Ordering;
use core::hash::BuildHasher;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::Decoder;
use super::head::Head;
use crate::error::{Error, Result};
use crate::prelude::*;

/// Keys that are compared one by one, before a table is made of them.
const FEW_KEYS: usize = 16;

/// The keys of a map so far.
pub(super) struct KnownKeys {
    /// Where those of this map begin in [`Decoder::keys`].
    first: usize,
    /// A bit for each, by [`mark`]: most new keys are found to be new by it.
    marks: u64,
    /// How others are found to be new.
    order: KeyOrder,
}

enum KeyOrder {
    /// Each was greater than the one before it.
    Rising,
    /// One by one.
    Few,
    Many(KeyTable),
}

impl<'b> Decoder<'b> {
    pub(super) fn known_keys(&self) -> KnownKeys {
        KnownKeys {
            first: self.keys.len(),
            marks: 0,
            order: KeyOrder::Rising,
        }
    }

    /// Forgets the keys of a map that has been read, and their memory if there were many.
    pub(super) fn forget_keys(&mut self, known: &KnownKeys) {
        const FEW: usize = 1024;
        self.keys.truncate(known.first);
        if self.keys.capacity() > FEW + 4 * self.keys.len() {
            self.keys.shrink_to(FEW + 2 * self.keys.len());
        }
    }

    /// Refuses a key that is not new; it begins at `from` and has been read.
    pub(super) fn check_new(
        &mut self,
        key: &str,
        from: usize,
        known: &mut KnownKeys,
    ) -> Result<()> {
        let input = self.input;
        let keys = self.keys.get(known.first..).unwrap_or_default();
        let order = &mut known.order;
        let is_less = |&last: &usize| *key_at(input, last) < *key.as_bytes();
        if matches!(order, KeyOrder::Rising) && !keys.last().is_none_or(is_less) {
            *order = KeyOrder::Few;
        }
        let mark = mark(key);
        let is_new = match order {
            KeyOrder::Rising => true,
            KeyOrder::Few if keys.len() < FEW_KEYS => {
                known.marks & mark == 0
                    || !(keys.iter()).any(|&at| *key_at(input, at) == *key.as_bytes())
            }
            KeyOrder::Few => {
                let mut table = KeyTable::default();
                for &at in keys {
                    table.insert(input, at);
                }
                self.keys.truncate(known.first);
                let is_new = table.insert(input, from);
                *order = KeyOrder::Many(table);
                is_new
            }
            KeyOrder::Many(table) => table.insert(input, from),
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

    /// Deterministic keys rise by their encoded bytes, so that equal ones are neighbours. The key begins at `from` and
    /// has been read.
    pub(super) fn check_order(
        &self,
        previous: &mut Option<Range<usize>>,
        from: usize,
    ) -> Result<()> {
        let this = from..self.at;
        let bytes = |range: Range<usize>| self.input.get(range).unwrap_or_default();
        let Some(last) = previous.replace(this.clone()) else {
            return Ok(());
        };
        let (rule, message) = match bytes(last).cmp(bytes(this)) {
            Ordering::Less => return Ok(()),
            Ordering::Equal => (self.rules.duplicate, "the same key twice"),
            Ordering::Greater => (
                self.rules.form,
                "map keys are not in the order of their encoded bytes",
            ),
        };
        Err(Error::malformed(rule, message).at(self.base + from as u64..self.pos()))
    }

    /// The error for a key at `at`, which has been read, that appears twice.
    pub(super) fn duplicate(&self, key: &str, at: u64) -> Error {
        let message = format!("the key {key:?} appears twice");
        Error::malformed(self.rules.duplicate, message).at(at..self.pos())
    }
}

/// The text that begins at a place where it was read before.
fn key_at(input: &[u8], at: usize) -> Cow<'_, [u8]> {
    let text = Head::read(input, at).and_then(|head| head.string(input).ok());
    text.map_or(Cow::Borrowed(&[]), |(text, _)| text)
}

/// Where keys are, found by what they are: a file may have millions of three bytes.
#[derive(Default)]
struct KeyTable {
    hasher: DefaultHashBuilder,
    places: HashTable<usize>,
}

impl KeyTable {
    /// Adds the key at a place, and says whether it is new.
    fn insert(&mut self, input: &[u8], at: usize) -> bool {
        let Self { hasher, places } = self;
        let key = key_at(input, at);
        let is_it = |&at: &usize| key_at(input, at) == key;
        let hash = |&at: &usize| hasher.hash_one(&*key_at(input, at));
        match places.entry(hasher.hash_one(&*key), is_it, hash) {
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
