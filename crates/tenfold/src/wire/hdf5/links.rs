//! What is in a group.

use super::block::{Block, Fetch as _, File, UNDEFINED};
use super::header::{Header, kind, sized};
use super::heap::{FractalHeap, LocalHeap};
use super::tree2::Tree;
use crate::error::{Error, Result};
use crate::prelude::*;

/// Levels of an old B-tree, at most.
const MOST_LEVELS: u8 = 32;

/// Where a name leads.
#[derive(Clone, Debug)]
pub(super) enum Link {
    /// To an object at an address.
    Hard(u64),
    /// To whatever has a path.
    Soft(String),
    /// Into another file.
    External,
    /// Somewhere that only a program with an extension knows.
    Other(u8),
}

/// The entries of a group, sorted by the bytes of their names.
pub(super) fn of(file: &mut File<'_>, header: &Header) -> Result<Vec<(String, Link)>> {
    let mut links = Vec::new();
    if let Some(message) = header.one(kind::SYMBOL_TABLE)? {
        let (tree, heap) = message
            .data
            .parse(|r| Ok((r.u64("address of a B-tree")?, r.u64("address of a heap")?)))?;
        let heap = LocalHeap::read(file, heap)?;
        old_tree(file, tree, None, &heap, &mut links)?;
    }
    for message in header.of(kind::LINK) {
        let link = link(&message.data)?;
        add(file, &mut links, link, &message.data)?;
    }
    if let Some(message) = header.one(kind::LINK_INFO)? {
        let (heap, names) = message.data.parse(|r| {
            r.skip(1, "version")?;
            let flags = r.u8("flags of links")?;
            r.skip(if flags & 1 == 0 { 0 } else { 8 }, "order of links")?;
            Ok((r.u64("address of a heap")?, r.u64("address of a B-tree")?))
        })?;
        if heap != UNDEFINED {
            dense(file, heap, names, &mut links)?;
        }
    }
    links.sort_unstable_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    if let Some(((name, _), _)) = links
        .iter()
        .zip(links.iter().skip(1))
        .find(|(a, b)| a.0 == b.0)
    {
        let message = format!("a group has two entries {name:?}");
        return Err(Error::malformed("hdf5.duplicate", message).at(header.at..header.at + 1));
    }
    Ok(links)
}

/// Adds an entry, if it can be part of a path.
fn add(
    file: &mut File<'_>,
    links: &mut Vec<(String, Link)>,
    (name, link): (Vec<u8>, Link),
    block: &Block,
) -> Result<()> {
    let name = String::from_utf8(name).map_err(|cause| {
        let message = "the name of an entry of a group is not UTF-8";
        block.wrong("hdf5.name", message).because(cause)
    })?;
    if name.is_empty() || name == "." || name.contains(['/', '\0']) {
        let message = format!("{name:?} cannot be the name of an entry of a group");
        return Err(block.wrong("hdf5.name", message));
    }
    file.make(name.len())?;
    push_tight(links, (name, link));
    Ok(())
}

/// The entries of old groups: a B-tree whose leaves are lists of them.
fn old_tree(
    file: &mut File<'_>,
    address: u64,
    above: Option<u8>,
    heap: &LocalHeap,
    links: &mut Vec<(String, Link)>,
) -> Result<()> {
    let front = file.block(address, 24, "a node of a B-tree")?;
    front.signed(*b"TREE", "a node of a B-tree")?;
    let (level, count) = front.parse(|r| {
        r.skip(4, "signature")?;
        let kind = r.u8("type of a B-tree")?;
        let level = r.u8("level of a node")?;
        if kind != 0
            || level > MOST_LEVELS
            || above.is_some_and(|above| above != level.wrapping_add(1))
        {
            let message =
                format!("a node of type {kind} and level {level} in the B-tree of a group");
            return Err(Error::malformed("hdf5.btree", message));
        }
        Ok((level, r.u16("entries of a node")?))
    })?;
    let len = u64::from(count) * 16 + 8;
    let entries = file.block(address.saturating_add(24), len, "a node of a B-tree")?;
    for place in 0..u64::from(count) {
        let child = entries.parse(|r| {
            r.skip(place * 16 + 8, "key")?;
            r.u64("address of a node")
        })?;
        if level > 0 {
            old_tree(file, child, Some(level), heap, links)?;
        } else {
            symbols(file, child, heap, links)?;
        }
    }
    Ok(())
}

/// A list of entries of an old group.
fn symbols(
    file: &mut File<'_>,
    address: u64,
    heap: &LocalHeap,
    links: &mut Vec<(String, Link)>,
) -> Result<()> {
    let front = file.block(address, 8, "a list of a group's entries")?;
    front.signed(*b"SNOD", "a list of a group's entries")?;
    let count = front.parse(|r| {
        r.skip(6, "version")?;
        r.u16("number of entries")
    })?;
    let start = address.saturating_add(8);
    let entries = file.block(start, u64::from(count) * 40, "a list of a group's entries")?;
    for place in 0..u64::from(count) {
        let (name, object, cached, scratch) = entries.parse(|r| {
            r.skip(place * 40, "entries")?;
            let name = r.u64("name of an entry")?;
            let object = r.u64("address of an object")?;
            let cached = r.u32("kind of an entry")?;
            r.skip(4, "reserved")?;
            Ok((name, object, cached, r.u32("scratch")?))
        })?;
        let link = match cached {
            2 => Link::Soft(String::from_utf8_lossy(heap.text(scratch.into())?).into_owned()),
            _ => Link::Hard(object),
        };
        add(file, links, (heap.text(name)?.to_vec(), link), &entries)?;
    }
    Ok(())
}

/// The entries of new groups with many of them: a B-tree of their places in a heap.
fn dense(
    file: &mut File<'_>,
    heap: u64,
    names: u64,
    links: &mut Vec<(String, Link)>,
) -> Result<()> {
    let mut heap = FractalHeap::read(file, heap)?;
    let tree = Tree::read(file, names)?;
    // Behind the hash of the name.
    for id in tree.collect(file, 4..tree.record)? {
        let body = heap.object(file, &id)?;
        let link = link(&body)?;
        add(file, links, link, &body)?;
    }
    Ok(())
}

/// A link of a new group.
fn link(block: &Block) -> Result<(Vec<u8>, Link)> {
    block.parse(|r| {
        let version = r.u8("version of a link")?;
        if version != 1 {
            let message = format!("a link of version {version}, 1 is known");
            return Err(Error::unsupported("hdf5.link", message));
        }
        let flags = r.u8("flags of a link")?;
        let kind = if flags & 8 == 0 {
            0
        } else {
            r.u8("type of a link")?
        };
        r.skip(if flags & 4 == 0 { 0 } else { 8 }, "order of a link")?;
        r.skip(if flags & 16 == 0 { 0 } else { 1 }, "character set")?;
        let len = sized(r, flags & 3, "length of a name")?;
        let name = r.take(len, "name of a link")?.to_vec();
        let link = match kind {
            0 => Link::Hard(r.u64("address of an object")?),
            1 => {
                let len = r.u16("length of a path")?;
                let path = r.take(len.into(), "path of a soft link")?;
                Link::Soft(String::from_utf8_lossy(&path).into_owned())
            }
            64 => Link::External,
            kind => Link::Other(kind),
        };
        Ok((name, link))
    })
}
