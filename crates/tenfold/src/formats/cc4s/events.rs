//! The events of the YAML parser, in one flat list: 8 bytes for each, with its place.

use core::cell::Cell;
use core::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::lookahead::Watched;
use crate::error::{Error, Result};
use crate::prelude::*;

/// Bytes of text that are read, at most: more is data, and belongs into an elements file. All places and sizes below
/// follow from it.
pub(super) const MAX_BYTES: u64 = 64 << 20;
/// Nothing reads them, but the parser remembers each, and more than this no file needs.
const MAX_ANCHORS: usize = 1 << 16;
/// Events that are allocated together: a list that grows by doubling would take three times as much in between.
const CHUNK: usize = 1 << 12;
/// Bits of a size. The rest are those of a tag.
const SIZE_BITS: u32 = 29;

/// What an event is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Tag {
    /// A scalar without quotes, as it is in the text. Its size is its length.
    Plain,
    /// A scalar without quotes that is not: it goes over several lines. Its size is where it is in `made`.
    PlainMade,
    /// A scalar in quotes, or with a tag, as it is in the text. Its size is its length.
    Quoted,
    /// The same with escapes or over several lines. Its size is where it is in `made`.
    QuotedMade,
    /// A list. Its size is the number of events in it, down to the last level.
    List,
    /// A map: keys and values in turn. Its size is as that of a list.
    Map,
}

/// A tag, a size, and where it begins.
#[derive(Clone, Copy)]
struct Recorded {
    at: u32,
    what: u32,
}

/// Everything that a document says.
pub(super) struct Events {
    chunks: Vec<Vec<Recorded>>,
    /// Scalars that are not in the text as they are, each after its length.
    made: Vec<u8>,
}

impl Events {
    /// Reads a text that is one document. Parser and events together take `room` bytes of memory at most.
    pub(super) fn read(text: &str, depth: usize, room: u64) -> Result<Self> {
        // After this, brackets are not a key, and the parser does not look for the end of the text first.
        const MARK: &str = "--- ";
        let marked = text.trim_start().starts_with(['[', '{']);
        let marked = marked.then(|| [MARK, text].concat());
        let left = Cell::new(Some(room));
        let mut recorder = Recorder::new(text, depth);
        recorder.mark = if marked.is_some() { MARK.len() } else { 0 };
        for event in Parser::new(Watched::new(marked.as_deref().unwrap_or(text), &left)) {
            if left.get().is_none() {
                let at = recorder.bytes as u64;
                let message = "a long list or map in brackets where a key could be; write it after its key, or without brackets";
                return Err(Error::limit("cc4s.yaml", message).at(at..at + 1));
            }
            let (event, span) = event.map_err(|cause| {
                let at = recorder.place(cause.marker().index());
                broken(at, format!("not YAML: {}", cause.info()))
            })?;
            recorder.event(event, span)?;
            left.set(room.checked_sub(recorder.events.memory()));
        }
        match recorder.events.len() {
            0 => Err(broken(0, "the text has no YAML document")),
            _ => Ok(recorder.events),
        }
    }

    /// How many there are.
    fn len(&self) -> usize {
        let full = self.chunks.len().saturating_sub(1) * CHUNK;
        full + self.chunks.last().map_or(0, Vec::len)
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> u64 {
        (self.len() * size_of::<Recorded>() + self.made.capacity()) as u64
    }

    /// What an event is, its size, and where it begins.
    pub(super) fn get(&self, index: usize) -> Option<(Tag, usize, u64)> {
        let recorded = self.chunks.get(index / CHUNK)?.get(index % CHUNK)?;
        let tag = match recorded.what >> SIZE_BITS {
            0 => Tag::Plain,
            1 => Tag::PlainMade,
            2 => Tag::Quoted,
            3 => Tag::QuotedMade,
            4 => Tag::List,
            _ => Tag::Map,
        };
        let size = recorded.what & ((1 << SIZE_BITS) - 1);
        Some((tag, usize::try_from(size).ok()?, recorded.at.into()))
    }

    /// The text of a scalar; `None` for lists and maps.
    pub(super) fn scalar<'t>(&'t self, text: &'t [u8], index: usize) -> Option<&'t str> {
        let (tag, size, at) = self.get(index)?;
        let at = usize::try_from(at).ok()?;
        let bytes = match tag {
            Tag::Plain => text.get(at..at + size)?,
            // Behind the quote.
            Tag::Quoted => text.get(at + 1..at + 1 + size)?,
            Tag::PlainMade | Tag::QuotedMade => {
                let (len, rest) = self.made.get(size..)?.split_first_chunk()?;
                rest.get(..usize::try_from(u32::from_le_bytes(*len)).ok()?)?
            }
            Tag::List | Tag::Map => return None,
        };
        core::str::from_utf8(bytes).ok()
    }

    /// The event after this one and everything in it.
    pub(super) fn next(&self, index: usize) -> usize {
        match self.get(index) {
            Some((Tag::List | Tag::Map, size, _)) => index + 1 + size,
            _ => index + 1,
        }
    }

    fn push(&mut self, at: u64, tag: Tag, size: usize) -> Result<()> {
        let recorded = recorded(at, tag, size)?;
        match self.chunks.last_mut().filter(|chunk| chunk.len() < CHUNK) {
            Some(chunk) => chunk.push(recorded),
            None => self.chunks.push(vec![recorded]),
        }
        Ok(())
    }

    /// Gives a list or a map its size, which is known at its end.
    fn close(&mut self, open: &Open) -> Result<()> {
        let size = self.len().saturating_sub(open.index + 1);
        let tag = if open.is_map { Tag::Map } else { Tag::List };
        let chunk = self.chunks.get_mut(open.index / CHUNK);
        if let Some(begin) = chunk.and_then(|chunk| chunk.get_mut(open.index % CHUNK)) {
            *begin = recorded(begin.at.into(), tag, size)?;
        }
        Ok(())
    }
}

fn recorded(at: u64, tag: Tag, size: usize) -> Result<Recorded> {
    let size = u32::try_from(size).ok();
    let size = size.filter(|&size| size < 1 << SIZE_BITS);
    match (u32::try_from(at), size) {
        (Ok(at), Some(size)) => {
            let what = (tag as u32) << SIZE_BITS | size;
            Ok(Recorded { at, what })
        }
        _ => Err(Error::limit("cc4s.yaml", "more YAML than tenfold reads").at(at..at + 1)),
    }
}

fn broken(at: u64, message: impl Into<String>) -> Error {
    Error::malformed("cc4s.yaml", message).at(at..at + 1)
}

/// A list or map that is not complete yet.
struct Open {
    index: usize,
    is_map: bool,
    /// Whether a key comes next.
    is_key: bool,
}

/// Takes down events.
struct Recorder<'t> {
    text: &'t str,
    depth: usize,
    anchors: usize,
    open: Vec<Open>,
    events: Events,
    /// Characters that the parser reads before the text.
    mark: usize,
    /// The parser counts characters: so many are passed, and so many bytes.
    chars: usize,
    bytes: usize,
}

impl<'t> Recorder<'t> {
    fn new(text: &'t str, depth: usize) -> Self {
        Self {
            text,
            depth,
            anchors: 0,
            open: Vec::new(),
            events: Events {
                chunks: Vec::new(),
                made: Vec::new(),
            },
            mark: 0,
            chars: 0,
            bytes: 0,
        }
    }

    /// The byte at which a character is. Events come in order, so that all of them together take one walk.
    fn place(&mut self, index: usize) -> u64 {
        let rest = self.text.get(self.bytes..).unwrap_or_default();
        let passed = self.chars + self.mark;
        for character in rest.chars().take(index.saturating_sub(passed)) {
            self.chars += 1;
            self.bytes += character.len_utf8();
        }
        self.bytes as u64
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<()> {
        let at = self.place(span.start.index());
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.anchor(at, anchor)?;
                let plain = style == ScalarStyle::Plain && tag.is_none();
                self.scalar(at, &text, plain)
            }
            Event::SequenceStart(anchor, _) => self.begin(at, anchor, false),
            Event::MappingStart(anchor, _) => self.begin(at, anchor, true),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.end(&open),
                None => Err(broken(at, "an end without a beginning")),
            },
            Event::Alias(_) => Err(broken(at, "aliases are not supported")),
            Event::DocumentStart(_) if self.events.len() > 0 => {
                Err(broken(at, "a second document; expected one"))
            }
            _ => Ok(()),
        }
    }

    fn anchor(&mut self, at: u64, anchor: usize) -> Result<()> {
        self.anchors += usize::from(anchor > 0);
        if self.anchors > MAX_ANCHORS {
            let message = format!("more than {MAX_ANCHORS} anchors");
            return Err(Error::limit("cc4s.yaml", message).at(at..at + 1));
        }
        Ok(())
    }

    fn scalar(&mut self, at: u64, found: &str, plain: bool) -> Result<()> {
        if let Some(open) = self.open.last_mut() {
            open.is_key = !open.is_key;
        }
        // Behind a quote, if there is one: most scalars are in the text as they are.
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        let start = start.saturating_add(usize::from(!plain));
        let there = self.text.as_bytes().get(start..);
        if there.is_some_and(|there| there.starts_with(found.as_bytes())) {
            let tag = if plain { Tag::Plain } else { Tag::Quoted };
            return self.events.push(at, tag, found.len());
        }
        let tag = if plain {
            Tag::PlainMade
        } else {
            Tag::QuotedMade
        };
        self.events.push(at, tag, self.events.made.len())?;
        // No longer than half as long again as the text, which has its limit.
        let len = u32::try_from(found.len()).unwrap_or(u32::MAX);
        self.events.made.extend_from_slice(&len.to_le_bytes());
        self.events.made.extend_from_slice(found.as_bytes());
        Ok(())
    }

    fn begin(&mut self, at: u64, anchor: usize, is_map: bool) -> Result<()> {
        self.anchor(at, anchor)?;
        if self.open.len() >= self.depth {
            let message = format!("nested deeper than {}", self.depth);
            let error = Error::limit("cc4s.yaml", message).at(at..at + 1);
            return Err(error.raised_by("depth", None));
        }
        if let Some(open) = self.open.last_mut() {
            if open.is_map && open.is_key {
                return Err(broken(at, "a key that is not a scalar"));
            }
            open.is_key = true;
        }
        self.open.push(Open {
            index: self.events.len(),
            is_map,
            is_key: true,
        });
        self.events.push(at, Tag::List, 0)
    }

    fn end(&mut self, open: &Open) -> Result<()> {
        self.events.close(open)?;
        if open.is_map {
            self.check_keys(open.index)
        } else {
            Ok(())
        }
    }

    /// Refuses a key that appears twice.
    fn check_keys(&self, map: usize) -> Result<()> {
        /// So few are compared with each other.
        const FEW: usize = 8;
        let (events, text) = (&self.events, self.text.as_bytes());
        let word = |index: usize| events.scalar(text, index).unwrap_or_default();
        let end = events.next(map);
        let mut keys = Vec::new();
        let mut place = map + 1;
        while place < end && keys.len() <= FEW {
            let twice = keys.iter().any(|&other| word(other) == word(place));
            if twice {
                return Err(self.twice(place));
            }
            keys.push(place);
            place = events.next(place + 1);
        }
        if place >= end {
            return Ok(());
        }
        // Only the places are in the table, which is large enough from the beginning.
        let hasher = DefaultHashBuilder::default();
        let hash = |index: usize| hasher.hash_one(word(index));
        let count = core::iter::successors(Some(map + 1), |&key| {
            Some(events.next(key + 1)).filter(|&next| next < end)
        });
        let mut known: HashTable<u32> = HashTable::with_capacity(count.clone().count());
        for key in count {
            // An event has more than 32 bits of text only where that was refused before.
            let number = u32::try_from(key).unwrap_or(u32::MAX);
            let same = |&other: &u32| word(other as usize) == word(key);
            if known.find(hash(key), same).is_some() {
                return Err(self.twice(key));
            }
            known.insert_unique(hash(key), number, |&other| hash(other as usize));
        }
        Ok(())
    }

    fn twice(&self, key: usize) -> Error {
        let text = self.events.scalar(self.text.as_bytes(), key);
        let message = format!("the key {:?} appears twice", text.unwrap_or_default());
        let at = self.events.get(key).map_or(0, |(_, _, at)| at);
        Error::malformed("cc4s.duplicate", message).at(at..at + 1)
    }
}
