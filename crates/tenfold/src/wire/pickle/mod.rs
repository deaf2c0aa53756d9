//! Python's pickles, read as data: a program for a small machine with a stack becomes a description of what it would
//! build. Nothing is imported and nothing is called.
//!
//! Which classes and functions a program may name is up to the format ([`Policy`]); any other is refused where it is
//! loaded, used or not. What they mean is up to the format too: a call becomes a node with the function and its arguments,
//! and so do the state, the items and the entries that an object gets later.
//!
//! Memory is bounded: values are places in the program, nodes take a few words, and a program that asks for much more than
//! its own length is refused. Errors have bare rules: the format that reads the pickle puts its id in front.

mod condense;
#[cfg(all(feature = "paddle", feature = "write"))]
mod encode;
mod machine;
mod op;
mod stream;
mod text;
mod tree;

pub(crate) use condense::{Condensed, Taken};
#[cfg(all(feature = "paddle", feature = "write"))]
pub(crate) use encode::Encoder;
pub(crate) use machine::{Import, Policy, run};
pub(crate) use stream::{find_end, outline, read_next};
pub(crate) use text::decimal;
#[cfg(feature = "write")]
pub(crate) use text::integer;
pub(crate) use tree::{Kind, Node, Object, Tree, Value};

use crate::error::Error;
use crate::prelude::*;

/// Bytes of a program, at most: places in it are numbers of 28 bits.
pub(crate) const MAX_LEN: u64 = 256 << 20;
/// Entries of the stack and of the memo, at most.
const MAX_ENTRIES: usize = 10_000_000;
/// Bytes of an integer, at most.
pub(crate) const MAX_INTEGER: usize = 128;

/// Where the bytes of a program are in its file.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// They begin here.
    At(u64),
    /// Somewhere in these compressed bytes.
    Within(Range<u64>),
}

impl Place {
    /// Where some bytes of the program are.
    pub(crate) fn of(&self, range: Range<usize>) -> Range<u64> {
        match self {
            Place::At(at) => {
                at.saturating_add(range.start as u64)..at.saturating_add(range.end as u64)
            }
            Place::Within(range) => range.clone(),
        }
    }
}

/// What a program and everything that is made of it may take: a multiple of its bytes.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u64,
}

impl Budget {
    /// So many bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        Self { left: bytes }
    }

    /// What is left of it.
    #[cfg(feature = "pytorch")]
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Takes some of it.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), Error> {
        match self.left.checked_sub(bytes as u64) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Error::limit(
                "limit",
                "the pickle describes many times its own length, which takes too much memory",
            )),
        }
    }
}

#[cfg(test)]
mod tests;
