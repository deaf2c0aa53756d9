//! The objects of a file, from the root on.

use super::attributes::{self, Attributes, Collections};
use super::block::{File, Space};
use super::dataset::{self, Dataset};
use super::header::{Header, kind};
use super::links::{self, Link};
use super::superblock::{Superblock, find};
use crate::error::{Error, Result};
use crate::io::{Limits, Source};
use crate::model::{Metadata, Payload, SourceId, TensorInfo, Value};
use crate::prelude::*;

/// Groups within each other, at most.
const MOST_DEPTH: usize = 64;
/// Remarks that are kept; more are counted.
const MOST_REMARKS: usize = 4096;

/// What a file holds.
pub(crate) struct Content {
    /// The version of the superblock.
    pub(crate) version: u8,
    pub(crate) tensors: Vec<TensorInfo>,
    /// The attributes of the root.
    pub(crate) metadata: Metadata,
    /// The attributes of other groups, by their paths.
    pub(crate) groups: Vec<(String, Metadata)>,
    /// Datasets of addresses, which are not tensors; only where they were asked for.
    pub(crate) references: Vec<TensorInfo>,
    /// The paths of all objects by their addresses; only where references were asked for.
    pub(crate) addresses: LookupMap<u64, String>,
    /// What is not a tensor, and what has several names.
    pub(crate) remarks: Vec<Remark>,
    /// Remarks that were too many to be kept.
    pub(crate) unlisted: u64,
    /// The bytes of the file.
    pub(crate) range: Range<u64>,
}

/// Something in a file that is not a tensor of its own.
pub(crate) struct Remark {
    pub(crate) kind: RemarkKind,
    pub(crate) path: String,
    pub(crate) why: String,
}

/// What a [`Remark`] is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RemarkKind {
    /// Another name of an object.
    Alias,
    /// An attribute that is neither numbers nor text.
    Attribute,
    /// A link into another file.
    External,
    /// Numbers with names, which are not kept.
    Named,
    /// No tensor.
    Skipped,
}

/// Reads the file that is in `range` of a source.
pub(crate) fn read(
    source: &dyn Source,
    id: SourceId,
    range: Range<u64>,
    limits: &Limits,
) -> Result<Content> {
    read_all(source, id, range, limits, false)
}

/// The same with references from object to object.
pub(crate) fn read_with_references(
    source: &dyn Source,
    id: SourceId,
    range: Range<u64>,
    limits: &Limits,
) -> Result<Content> {
    read_all(source, id, range, limits, true)
}

fn read_all(
    source: &dyn Source,
    id: SourceId,
    range: Range<u64>,
    limits: &Limits,
    with_references: bool,
) -> Result<Content> {
    let at = find(source, &range)?.ok_or_else(|| {
        Error::malformed("hdf5.signature", "not an HDF5 file: it has no signature")
            .at(range.start..range.end.min(range.start.saturating_add(8)))
    })?;
    let space = Space {
        base: at,
        end: range.end.saturating_sub(at),
    };
    let mut file = File::new(source, space, limits);
    let superblock = Superblock::read(&mut file, at, range.end)?;
    file.space.end = superblock.end;
    let mut walk = Walk {
        file,
        source: id,
        collections: Collections::default(),
        seen: LookupMap::new(),
        other_attributes: (None, 0),
        with_references,
        content: Content {
            version: superblock.version,
            tensors: Vec::new(),
            metadata: Metadata::new(),
            groups: Vec::new(),
            references: Vec::new(),
            addresses: LookupMap::new(),
            remarks: Vec::new(),
            unlisted: 0,
            range: at..at + superblock.end,
        },
    };
    walk.all(superblock.root)?;
    if let (Some((path, first)), objects) = core::mem::take(&mut walk.other_attributes) {
        let more = match objects {
            1 => String::new(),
            n => format!("; attributes of {} more objects are left out", n - 1),
        };
        let why = format!("{first}{more}");
        walk.remark(RemarkKind::Attribute, &path, why)?;
    }
    walk.content.check_overlap()?;
    Ok(walk.content)
}

struct Walk<'a> {
    file: File<'a>,
    source: SourceId,
    collections: Collections,
    /// Objects that were met, and which of the tensors they are.
    seen: LookupMap<u64, Option<usize>>,
    /// The first attribute that is neither numbers nor text, with its object, and how many objects have such.
    other_attributes: (Option<(String, String)>, u64),
    with_references: bool,
    content: Content,
}

/// A group whose entries are being looked at.
struct Level {
    entries: alloc::vec::IntoIter<(String, Link)>,
    /// Bytes of its path.
    path: usize,
}

impl Walk<'_> {
    fn all(&mut self, root: u64) -> Result<()> {
        let header = Header::read(&mut self.file, root)?;
        self.seen.insert(root, None);
        let attributes = self.attributes(&header, "")?;
        self.content.metadata = attributes;
        let mut levels = vec![Level {
            entries: links::of(&mut self.file, &header)?.into_iter(),
            path: 0,
        }];
        let mut path = String::new();
        while let Some(level) = levels.last_mut() {
            path.truncate(level.path);
            let Some((name, link)) = level.entries.next() else {
                levels.pop();
                continue;
            };
            if level.path > 0 {
                path.push('/');
            }
            path.push_str(&name);
            let Some(header) = self.follow(&path, link)? else {
                continue;
            };
            if levels.len() >= MOST_DEPTH {
                let message = format!("more than {MOST_DEPTH} groups within each other");
                return Err(Error::limit("hdf5.depth", message));
            }
            let entries = links::of(&mut self.file, &header)?.into_iter();
            let path = path.len();
            levels.push(Level { entries, path });
        }
        Ok(())
    }

    /// What an entry leads to; the header where that is a group that is not known yet.
    fn follow(&mut self, path: &str, link: Link) -> Result<Option<Header>> {
        let address = match link {
            Link::Hard(address) => address,
            Link::Soft(target) => {
                let why = format!("soft link to {target}");
                return self.remark(RemarkKind::Skipped, path, why).map(|()| None);
            }
            Link::External => {
                let why = "external link, which is never followed".to_owned();
                return self.remark(RemarkKind::External, path, why).map(|()| None);
            }
            Link::Other(kind) => {
                let why = format!("a link of type {kind}");
                return self.remark(RemarkKind::Skipped, path, why).map(|()| None);
            }
        };
        if let Some(known) = self.seen.get(&address) {
            let first = known.and_then(|place| self.content.tensors.get(place));
            let why = match first {
                Some(tensor) => format!("another name of {:?}", tensor.name),
                None => "another name of an earlier object".to_owned(),
            };
            return self.remark(RemarkKind::Alias, path, why).map(|()| None);
        }
        self.seen.insert(address, None);
        if self.with_references {
            self.content.addresses.insert(address, path.to_owned());
        }
        let header = Header::read(&mut self.file, address)?;
        if header.has(kind::LAYOUT) {
            self.dataset(path, address, &header)?;
            return Ok(None);
        }
        let is_group = [
            kind::SYMBOL_TABLE,
            kind::LINK_INFO,
            kind::LINK,
            kind::GROUP_INFO,
        ];
        if is_group.iter().any(|kind| header.has(*kind)) {
            let attributes = self.attributes(&header, path)?;
            // Without references, a group that says nothing is nothing but part of names.
            if !attributes.is_empty() || self.with_references {
                self.file.make(path.len())?;
                push_tight(&mut self.content.groups, (path.to_owned(), attributes));
            }
            return Ok(Some(header));
        }
        let why = if header.has(kind::DATATYPE) {
            "committed datatype"
        } else {
            "an object of no known kind"
        };
        self.remark(RemarkKind::Skipped, path, why.to_owned())?;
        Ok(None)
    }

    fn dataset(&mut self, path: &str, address: u64, header: &Header) -> Result<()> {
        let attributes = self.attributes(header, path)?;
        self.file.make(path.len())?;
        let found = dataset::read(&mut self.file, self.source, header, &attributes, path)?;
        match found {
            Dataset::Skipped(why) => self.remark(RemarkKind::Skipped, path, why),
            Dataset::References(mut info) if self.with_references => {
                info.metadata = attributes;
                push_tight(&mut self.content.references, info);
                Ok(())
            }
            Dataset::References(_) => {
                let why = "not numeric: reference".to_owned();
                self.remark(RemarkKind::Skipped, path, why)
            }
            Dataset::Tensor { mut info, named } => {
                info.metadata = attributes;
                self.seen.insert(address, Some(self.content.tensors.len()));
                push_tight(&mut self.content.tensors, info);
                if named {
                    let why = "its numbers have names, which are not kept".to_owned();
                    self.remark(RemarkKind::Named, path, why)?;
                }
                Ok(())
            }
        }
    }

    fn attributes(&mut self, header: &Header, path: &str) -> Result<Metadata> {
        let found = attributes::of(&mut self.file, header, &mut self.collections)?;
        let Attributes { values, skipped } = found;
        if let Some(first) = skipped {
            self.other_attributes.1 += 1;
            if self.other_attributes.0.is_none() {
                self.other_attributes.0 = Some((path.to_owned(), first));
            }
        }
        Ok(values)
    }

    fn remark(&mut self, kind: RemarkKind, path: &str, why: String) -> Result<()> {
        if self.content.remarks.len() >= MOST_REMARKS {
            self.content.unlisted += 1;
            return Ok(());
        }
        self.file.make(path.len() + why.len())?;
        let path = path.to_owned();
        push_tight(&mut self.content.remarks, Remark { kind, path, why });
        Ok(())
    }
}

impl Content {
    /// Where the data of tensors is that is in one piece, in order.
    fn pieces(&self) -> Vec<(Range<u64>, usize)> {
        let stored = |tensor: &TensorInfo| {
            let part = tensor.parts.first()?;
            match &part.payload {
                Payload::Raw { range, .. } if !range.is_empty() => Some(range.clone()),
                _ => None,
            }
        };
        let mut pieces: Vec<_> = (self.tensors.iter().enumerate())
            .filter_map(|(place, tensor)| Some((stored(tensor)?, place)))
            .collect();
        pieces.sort_unstable_by_key(|(range, place)| (range.start, range.end, *place));
        pieces
    }

    /// Refuses data that several tensors have: no program writes it, and a small file could claim any amount.
    fn check_overlap(&self) -> Result<()> {
        let pieces = self.pieces();
        let mut neighbours = pieces.iter().zip(pieces.iter().skip(1));
        let Some(((a, first), (b, second))) = neighbours.find(|((a, _), (b, _))| a.end > b.start)
        else {
            return Ok(());
        };
        let name = |place: &usize| self.tensors.get(*place).map_or("", |tensor| &tensor.name);
        let message = format!(
            "the data of {:?} and of {:?} overlap: {}..{} and {}..{}",
            name(first),
            name(second),
            a.start,
            a.end,
            b.start,
            b.end
        );
        Err(Error::malformed("hdf5.overlap", message).at(b.clone()))
    }

    /// The bytes between the data of tensors in one piece: structures, chunks, and what is not used.
    pub(crate) fn others(&self) -> Vec<Range<u64>> {
        let mut others = Vec::new();
        let mut at = self.range.start;
        for (piece, _) in self.pieces() {
            if piece.start > at {
                push_tight(&mut others, at..piece.start);
            }
            at = at.max(piece.end);
        }
        if at < self.range.end {
            others.push(at..self.range.end);
        }
        others
    }

    /// The attribute of a group.
    pub(crate) fn group(&self, path: &str, key: &str) -> Option<&Value> {
        let known = self
            .groups
            .binary_search_by(|(known, _)| known.split('/').cmp(path.split('/')));
        let (_, attributes) = self.groups.get(known.ok()?)?;
        attributes.get(key)
    }
}
