//! B-trees of the second version: names of links and attributes, and chunks.

use core::cmp::Ordering;

use bytes::Bytes;

use super::block::{Block, Fetch};
use super::header::number;
use crate::error::{Error, Result};
use crate::prelude::*;

/// Bytes in front of the records of a node.
const FRONT: u64 = 6;
/// Bytes in front of the records and of the checksum after them.
const OVERHEAD: u64 = 10;
/// Levels, at most.
const MOST_DEPTH: u16 = 32;

/// What the header of a tree says.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) kind: u8,
    /// Bytes of a record.
    pub(super) record: u64,
    depth: u16,
    root: Node,
    /// For every level from the leaves up: records of a node, and of everything below it, at most.
    most: Vec<(u64, u64)>,
}

/// A node, and how many records it has.
#[derive(Clone, Debug)]
struct Node {
    address: u64,
    records: u64,
}

fn bytes_for(most: u64) -> u64 {
    u64::from(most.max(1).ilog2()) / 8 + 1
}

impl Tree {
    pub(super) fn read(file: &mut dyn Fetch, address: u64) -> Result<Self> {
        let head = file.sealed(address, 38, *b"BTHD", "a B-tree")?;
        head.parse(|r| {
            let wrong = |message: String| Error::malformed("hdf5.btree", message);
            r.skip(4, "signature")?;
            if r.u8("version of a B-tree")? != 0 {
                return Err(Error::unsupported(
                    "hdf5.btree",
                    "a B-tree of a version that is not known",
                ));
            }
            let kind = r.u8("type of a B-tree")?;
            let node = u64::from(r.u32("size of a node")?);
            let record = u64::from(r.u16("size of a record")?);
            let depth = r.u16("depth of a B-tree")?;
            r.skip(2, "percentages")?;
            let root = Node {
                address: r.u64("address of the root")?,
                records: r.u16("records of the root")?.into(),
            };
            if record == 0 || depth > MOST_DEPTH || node <= OVERHEAD {
                return Err(wrong(format!(
                    "a B-tree of depth {depth} with nodes of {node} and records of {record} bytes"
                )));
            }
            let leaf = (node - OVERHEAD) / record;
            let mut most = vec![(leaf, leaf)];
            for level in 1..=depth {
                let (below, total) = most.last().copied().unwrap_or_default();
                let pointer = 8 + bytes_for(below) + if level > 1 { bytes_for(total) } else { 0 };
                let here = node.saturating_sub(OVERHEAD + pointer) / (record + pointer);
                let all = (here.saturating_add(1))
                    .saturating_mul(total)
                    .saturating_add(here);
                most.push((here, all));
            }
            Ok(Self {
                kind,
                record,
                depth,
                root,
                most,
            })
        })
    }

    /// Gives all records, in their order.
    pub(super) fn walk(
        &self,
        file: &mut dyn Fetch,
        visit: &mut dyn FnMut(&mut dyn Fetch, &Block) -> Result<()>,
    ) -> Result<()> {
        if self.root.records == 0 {
            return Ok(());
        }
        self.walk_node(file, &self.root, self.depth, visit)
    }

    fn walk_node(
        &self,
        file: &mut dyn Fetch,
        node: &Node,
        level: u16,
        visit: &mut dyn FnMut(&mut dyn Fetch, &Block) -> Result<()>,
    ) -> Result<()> {
        let block = self.node(file, node, level)?;
        for place in 0..=node.records {
            if level > 0 {
                let child = self.child(&block, node, level, place)?;
                self.walk_node(file, &child, level - 1, visit)?;
            }
            if place < node.records {
                visit(file, &self.record(&block, place)?)?;
            }
        }
        Ok(())
    }

    /// A part of every record, copied one after the other: what they were fetched with is not kept.
    pub(super) fn collect(&self, file: &mut dyn Fetch, part: Range<u64>) -> Result<Vec<Block>> {
        let mut all = Vec::new();
        self.walk(file, &mut |_, record| {
            let part = record.part(part.start, part.end.saturating_sub(part.start), "an id")?;
            let bytes = Bytes::copy_from_slice(&part.bytes);
            push_tight(&mut all, Block { bytes, at: part.at });
            Ok(())
        })?;
        Ok(all)
    }

    /// The record that `order` says is equal to what is wanted; it compares what is wanted with a record.
    pub(super) fn find(
        &self,
        file: &mut dyn Fetch,
        order: &dyn Fn(&Block) -> Result<Ordering>,
    ) -> Result<Option<Block>> {
        let mut node = self.root.clone();
        let mut level = self.depth;
        if node.records == 0 {
            return Ok(None);
        }
        loop {
            let block = self.node(file, &node, level)?;
            let (mut low, mut high) = (0, node.records);
            while low < high {
                let middle = low + (high - low) / 2;
                let record = self.record(&block, middle)?;
                match order(&record)? {
                    Ordering::Equal => return Ok(Some(record)),
                    Ordering::Less => high = middle,
                    Ordering::Greater => low = middle + 1,
                }
            }
            if level == 0 {
                return Ok(None);
            }
            node = self.child(&block, &node, level, low)?;
            level -= 1;
        }
    }

    fn node(&self, file: &mut dyn Fetch, node: &Node, level: u16) -> Result<Block> {
        let pointers = if level > 0 {
            (node.records + 1).saturating_mul(self.pointer(level))
        } else {
            0
        };
        let len = node
            .records
            .saturating_mul(self.record)
            .saturating_add(pointers);
        let len = len.saturating_add(OVERHEAD);
        let signature = if level > 0 { *b"BTIN" } else { *b"BTLF" };
        file.sealed(node.address, len, signature, "a node of a B-tree")
    }

    fn record(&self, block: &Block, place: u64) -> Result<Block> {
        block.part(
            FRONT + place * self.record,
            self.record,
            "a record of a B-tree",
        )
    }

    /// Records of a node at a level, and of everything below it, at most.
    fn most(&self, level: u16) -> (u64, u64) {
        self.most
            .get(usize::from(level))
            .copied()
            .unwrap_or_default()
    }

    /// Bytes of a pointer to a child, in a node at a level.
    fn pointer(&self, level: u16) -> u64 {
        let (below, total) = self.most(level - 1);
        8 + bytes_for(below) + if level > 1 { bytes_for(total) } else { 0 }
    }

    fn child(&self, block: &Block, node: &Node, level: u16, place: u64) -> Result<Node> {
        let at = FRONT + node.records * self.record + place * self.pointer(level);
        let (below, _) = self.most(level - 1);
        block.parse(|r| {
            r.skip(at, "a pointer to a node")?;
            Ok(Node {
                address: r.u64("address of a node")?,
                records: number(r, bytes_for(below), "records of a node")?,
            })
        })
    }
}
