//! B-trees of the first version.

use core::cmp::Ordering;

use super::Entry;
use crate::error::{Error, Result};
use crate::prelude::*;
use crate::wire::hdf5::block::{Block, Fetch, UNDEFINED};

/// Levels, at most.
const MOST_LEVELS: u8 = 32;
const WHAT: &str = "a node of a B-tree of chunks";

/// Looks for a chunk.
pub(super) fn find(
    file: &mut dyn Fetch,
    root: u64,
    chunk: &[u64],
    sides: &[u64],
) -> Result<Option<Entry>> {
    // Size, filters left out, an offset for every dimension and one for the bytes of an element; then the child.
    let key = 8 + 8 * (sides.len() as u64 + 1);
    let step = key + 8;
    let mut address = root;
    let mut above: Option<u8> = None;
    if root == UNDEFINED {
        return Ok(None);
    }
    loop {
        let front = file.block(address, 24, WHAT)?;
        front.signed(*b"TREE", WHAT)?;
        let (level, count) = front.parse(|r| {
            r.skip(4, "signature")?;
            let kind = r.u8("type of a B-tree")?;
            let level = r.u8("level of a node")?;
            let is_next = above.is_none_or(|above| above == level.wrapping_add(1));
            if kind != 1 || level > MOST_LEVELS || !is_next {
                let message =
                    format!("a node of type {kind} and level {level} in a B-tree of chunks");
                return Err(Error::malformed("hdf5.btree", message));
            }
            Ok((level, u64::from(r.u16("entries of a node")?)))
        })?;
        let entries = file.block(address.saturating_add(24), count * step, WHAT)?;
        // How many keys are not after what is wanted.
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            match compare(&entries, middle * step, chunk, sides)? {
                Ordering::Less => high = middle,
                Ordering::Equal | Ordering::Greater => low = middle + 1,
            }
        }
        let Some(place) = low.checked_sub(1) else {
            return Ok(None);
        };
        let at = place * step;
        let (size, skipped, child) = entries.parse(|r| {
            r.skip(at, "key")?;
            let size = r.u32("size of a chunk")?;
            let skipped = r.u32("filters left out")?;
            r.skip(key - 8, "place of a chunk")?;
            Ok((size, skipped, r.u64("address of a node")?))
        })?;
        if level == 0 {
            let is_same = compare(&entries, at, chunk, sides)? == Ordering::Equal;
            return Ok(is_same.then_some(Entry {
                address: child,
                size: Some(size.into()),
                skipped,
            }));
        }
        above = Some(level);
        address = child;
    }
}

/// Compares the place of a chunk with that of a key.
fn compare(entries: &Block, at: u64, chunk: &[u64], sides: &[u64]) -> Result<Ordering> {
    entries.parse(|r| {
        r.skip(at + 8, "key")?;
        for (number, side) in chunk.iter().zip(sides) {
            let wanted = u128::from(*number) * u128::from(*side);
            let order = wanted.cmp(&r.u64("place of a chunk")?.into());
            if order.is_ne() {
                return Ok(order);
            }
        }
        Ok(Ordering::Equal)
    })
}
