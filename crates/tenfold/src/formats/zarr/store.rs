//! Where keys are: in a directory, or in a zip archive.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::format::Context;
use crate::io::{Source, Tree};
use crate::model::{Make, Payload, ReadFile, SourceId};
use crate::prelude::*;
use crate::transform::{Inflate, Input};
use crate::wire::zip::{self, Member, Zip};

/// A store that was listed.
#[derive(Debug)]
pub(super) enum Store {
    Tree(Arc<Tree>),
    /// The members that are files, in the order of their names.
    Zip(Vec<Member>),
}

/// The file of an archive that an index of chunks speaks of.
const FILE: SourceId = SourceId(0);
/// A deflated member is held in memory: as many times its stored bytes, or so many bytes.
const MOST_RATIO: u64 = 1032;
/// Documents that are asked for at once.
const BATCH: usize = 256;

/// Stored bytes.
#[derive(Clone)]
pub(super) enum Place {
    /// In the one file that the archive is.
    Inside(Range<u64>),
    /// In a file of its own.
    Beside(Arc<dyn Source>, Range<u64>),
    Memory(Bytes),
}

impl Place {
    pub(super) fn len(&self) -> u64 {
        match self {
            Place::Inside(range) | Place::Beside(_, range) => range.end.saturating_sub(range.start),
            Place::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Some of them; `None` where they are not all there.
    pub(super) fn part(&self, part: Range<u64>) -> Option<Self> {
        if part.start > part.end || part.end > self.len() {
            return None;
        }
        let of = |range: &Range<u64>| {
            let start = range.start.checked_add(part.start)?;
            Some(start..range.start.checked_add(part.end)?)
        };
        Some(match self {
            Place::Inside(range) => Place::Inside(of(range)?),
            Place::Beside(source, range) => Place::Beside(source.clone(), of(range)?),
            Place::Memory(bytes) => {
                let place = |at: u64| usize::try_from(at).ok();
                Place::Memory(bytes.slice(place(part.start)?..place(part.end)?))
            }
        })
    }

    pub(super) fn read(&self, read: &ReadFile<'_>) -> Result<Bytes> {
        match self {
            Place::Inside(range) => read(FILE, range.clone()),
            Place::Beside(source, range) => crate::io::read_exactly(&**source, range.clone()),
            Place::Memory(bytes) => Ok(bytes.clone()),
        }
    }

    pub(super) fn payload(self) -> Payload {
        match self {
            Place::Inside(range) => Payload::Raw {
                source: FILE,
                range,
            },
            Place::Beside(source, range) => Payload::Lazy {
                len: range.end.saturating_sub(range.start),
                maker: Arc::new(Piece(source, range)),
            },
            Place::Memory(bytes) => Payload::Inline(bytes),
        }
    }
}

/// Bytes of a file that is opened for them.
#[derive(Debug)]
struct Piece(Arc<dyn Source>, Range<u64>);

impl Make for Piece {
    fn make(&self) -> Result<Bytes> {
        crate::io::read_exactly(&*self.0, self.1.clone())
    }

    fn part(&self, range: Range<u64>) -> Result<Bytes> {
        let start = self.1.start.saturating_add(range.start);
        let end = self.1.start.saturating_add(range.end).min(self.1.end);
        crate::io::read_exactly(&*self.0, start..end.max(start))
    }
}

impl Store {
    /// The members of the archive that is opened.
    pub(super) fn zip(cx: &mut Context<'_>) -> Result<Self> {
        let source = cx.source();
        let Some(zip) = Zip::open(source, cx.limits().header_bytes)? else {
            return Err(zip::no_end(source));
        };
        for (rule, at, message) in zip.remarks {
            cx.warn(rule, at, message)?;
        }
        let mut members = zip.members;
        members.retain(|member| !member.name.ends_with('/'));
        members.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Store::Zip(members))
    }

    /// All keys, in the order of their bytes.
    pub(super) fn keys(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Store::Tree(tree) => Box::new(tree.keys()),
            Store::Zip(members) => Box::new(members.iter().map(|member| member.name.as_str())),
        }
    }

    /// Whether what is not listed is not there: behind a link that was not followed it may be.
    #[cfg(feature = "std")]
    pub(super) fn is_known_whole(&self) -> bool {
        match self {
            Store::Tree(tree) => tree.is_listed() && !tree.has_links(),
            Store::Zip(_) => true,
        }
    }

    /// The keys that begin with a prefix.
    #[cfg(feature = "std")]
    pub(super) fn below<'s>(&'s self, prefix: &'s str) -> Box<dyn Iterator<Item = &'s str> + 's> {
        match self {
            Store::Tree(tree) => Box::new(tree.below(prefix)),
            Store::Zip(_) => Box::new(self.keys().filter(move |key| key.starts_with(prefix))),
        }
    }

    /// Whether keys that are not listed may be there all the same.
    pub(super) fn is_listed(&self) -> bool {
        match self {
            Store::Tree(tree) => tree.is_listed(),
            Store::Zip(_) => true,
        }
    }

    fn member(&self, key: &str) -> Option<&Member> {
        match self {
            Store::Tree(_) => None,
            Store::Zip(members) => {
                let found = members.binary_search_by(|member| member.name.as_str().cmp(key));
                members.get(found.ok()?)
            }
        }
    }

    /// What is stored under a key, if anything is.
    pub(super) fn open(&self, read: &ReadFile<'_>, key: &str) -> Result<Option<Place>> {
        match self {
            Store::Tree(tree) => {
                if tree.is_listed() && !tree.contains(key)? {
                    return Ok(None);
                }
                match tree.open(key) {
                    Ok(source) => {
                        let len = source.len();
                        Ok(Some(Place::Beside(source, 0..len)))
                    }
                    Err(error) if error.kind() == ErrorKind::NotFound && !tree.is_listed() => {
                        Ok(None)
                    }
                    Err(error) => Err(error),
                }
            }
            Store::Zip(_) => match self.member(key) {
                None => Ok(None),
                Some(member) if member.is_deflated => {
                    unpacked(read, member).map(|bytes| Some(Place::Memory(bytes)))
                }
                Some(member) => Ok(Some(Place::Inside(member.data.clone()))),
            },
        }
    }

    /// Where all bytes of a key are in the archive, as they are.
    pub(super) fn raw(&self, key: &str) -> Option<Range<u64>> {
        let member = self.member(key).filter(|member| !member.is_deflated);
        member.map(|member| member.data.clone())
    }

    /// Bytes below a prefix, or as many as are enough: not more files than that takes are looked at.
    pub(super) fn bytes_below(&self, prefix: &str, enough: u64) -> Result<u64> {
        let mut sum = 0u64;
        match self {
            Store::Zip(members) => {
                let below = members
                    .iter()
                    .filter(|member| member.name.starts_with(prefix));
                sum = below
                    .map(|member| member.data.end - member.data.start)
                    .sum();
            }
            Store::Tree(tree) => {
                for key in tree.below(prefix) {
                    sum = sum.saturating_add(tree.measure(key)?);
                    if sum >= enough {
                        break;
                    }
                }
            }
        }
        Ok(sum)
    }

    /// Reads documents, as many at once as is faster; what they say is given out in the order of the keys.
    pub(super) fn documents(
        &self,
        cx: &Context<'_>,
        keys: &[String],
        visit: &mut dyn FnMut(&str, Result<Bytes>) -> Result<()>,
    ) -> Result<()> {
        let limit = cx.limits().header_bytes;
        let mut sum = 0u64;
        let mut check = |len: u64| {
            sum = sum.saturating_add(len);
            if sum <= limit {
                return Ok(());
            }
            let message = format!("metadata of {sum} bytes and more, the limit is {limit}");
            Err(Error::limit("zarr.limit", message).raised_by("header_bytes", sum))
        };
        for keys in keys.chunks(BATCH) {
            match self {
                Store::Tree(tree) => {
                    let all: Vec<&str> = keys.iter().map(String::as_str).collect();
                    for (key, source) in keys.iter().zip(tree.open_all(&all)) {
                        let bytes = match source {
                            Ok(source) => {
                                check(source.len())?;
                                source.read(0..source.len())
                            }
                            Err(error) => Err(error),
                        };
                        visit(key, bytes)?;
                    }
                }
                Store::Zip(_) => {
                    let members: Vec<_> = (keys.iter())
                        .filter_map(|key| Some((key, self.member(key)?)))
                        .collect();
                    for (_, member) in &members {
                        check(member.size)?;
                    }
                    let ranges = members.iter().map(|(_, member)| member.data.clone());
                    let stored = cx.source().read_ranges(&ranges.collect::<Vec<_>>())?;
                    for ((key, member), stored) in members.into_iter().zip(stored) {
                        let bytes = if member.is_deflated {
                            unpacked(&|_, _| Ok(stored.clone()), member)
                        } else {
                            Ok(stored)
                        };
                        visit(key, bytes)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The bytes of a deflated member.
fn unpacked(read: &ReadFile<'_>, member: &Member) -> Result<Bytes> {
    let stored = member.data.end - member.data.start;
    let at = member.data.clone();
    let refused = |what: &str| {
        let message = format!("member {:?} {what}", member.name);
        Error::malformed("zarr.member-size", message).at(at.clone())
    };
    if member.size > stored.saturating_mul(MOST_RATIO) {
        return Err(refused("is said to unpack to more than it can"));
    }
    let mut inflate = Inflate::new(Input::Memory(read(FILE, at.clone())?));
    let mut bytes = crate::io::zeros(member.size)?;
    let is_whole = inflate.fill(&mut bytes)? && inflate.read(&mut [0])? == 0;
    if !is_whole {
        return Err(refused(&format!(
            "unpacks to another length than {}",
            member.size
        )));
    }
    let found = crc32fast::hash(&bytes);
    if found != member.crc32 {
        let message = format!(
            "the CRC-32 of member {:?} is {found:08x}, {:08x} is stored",
            member.name, member.crc32
        );
        return Err(Error::mismatch("zarr.checksum", message).at(at.clone()));
    }
    Ok(bytes.into())
}
