//! An array, as its metadata says it.

use bytes::Bytes;

use super::pipeline::Pipeline;
use super::types::Type;
use crate::model::{DType, Endian, Metadata};
use crate::prelude::*;

/// An array of numbers, in the words of both versions.
#[derive(Debug)]
pub(super) struct Array {
    pub(super) shape: Vec<u64>,
    /// Elements of what a file holds, along every dimension.
    pub(super) sides: Vec<u64>,
    pub(super) dtype: DType,
    pub(super) endian: Endian,
    /// An element of what is not stored; nothing for zeros.
    pub(super) fill: Bytes,
    pub(super) keys: Keys,
    pub(super) pipeline: Pipeline,
}

/// What an array turns out to be.
#[derive(Debug)]
pub(super) enum Content {
    Numbers(Box<Array>),
    /// Something else, in words.
    Other(String),
}

/// A node of the tree, as its metadata says it.
#[derive(Debug)]
pub(super) enum Node {
    Group,
    Array(Content),
}

impl Content {
    /// No array of numbers, if that is so.
    pub(super) fn other(found: &Type) -> Option<Self> {
        match found {
            Type::Other(what) => Some(Content::Other(what.clone())),
            Type::Numbers(..) => None,
        }
    }
}

/// What the files of chunks are called.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Keys {
    /// They begin with `c`, and where there are no dimensions that is all.
    pub(super) has_prefix: bool,
    pub(super) separator: char,
}

impl Keys {
    /// The name of a chunk below its array.
    pub(super) fn name(self, numbers: &[u64]) -> String {
        let mut name = String::new();
        if self.has_prefix {
            name.push('c');
        } else if numbers.is_empty() {
            name.push('0');
        }
        for (place, number) in numbers.iter().enumerate() {
            if place > 0 || self.has_prefix {
                name.push(self.separator);
            }
            name += &number.to_string();
        }
        name
    }

    /// The numbers in the name of a chunk; `None` in that of something else.
    #[cfg(feature = "std")]
    pub(super) fn numbers(self, name: &str) -> Option<Vec<u64>> {
        let numbers = match self.has_prefix {
            true if name == "c" => return Some(Vec::new()),
            true => name.strip_prefix('c')?.strip_prefix(self.separator)?,
            false => name,
        };
        let numbers = numbers.split(self.separator);
        numbers.map(|number| number.parse().ok()).collect()
    }
}

/// What a document says: a node and its attributes.
#[derive(Debug)]
pub(super) struct Described {
    pub(super) node: Node,
    pub(super) metadata: Metadata,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_called_by_their_numbers() {
        let name = |has_prefix, separator, numbers: &[u64]| {
            let keys = Keys {
                has_prefix,
                separator,
            };
            keys.name(numbers)
        };
        assert_eq!(name(true, '/', &[0, 12]), "c/0/12");
        assert_eq!(name(true, '.', &[0, 12]), "c.0.12");
        for (has_prefix, separator, numbers) in [
            (true, '/', vec![0, 12]),
            (true, '.', vec![7]),
            (true, '/', vec![]),
            (false, '.', vec![0, 12]),
            (false, '/', vec![3]),
        ] {
            let keys = Keys {
                has_prefix,
                separator,
            };
            assert_eq!(keys.numbers(&keys.name(&numbers)), Some(numbers));
        }
        assert_eq!(name(true, '/', &[]), "c");
        assert_eq!(name(false, '.', &[0, 12]), "0.12");
        assert_eq!(name(false, '/', &[3]), "3");
        assert_eq!(name(false, '.', &[]), "0");
    }
}
