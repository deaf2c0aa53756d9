//! Blocks of indexes that were used a moment ago.
//!
//! Chunks are looked for one after the other, and neighbours are found by the same blocks. Only the last few are
//! held, however large an index is, and for all datasets of a file together.

use super::block::Block;
use crate::error::Result;
#[cfg(feature = "std")]
use crate::prelude::*;

/// Blocks that are held. An index has four levels at most, and several threads are at different places of it.
#[cfg(feature = "std")]
const MOST: usize = 32;
/// A longer block is not held.
#[cfg(feature = "std")]
const LONGEST: u64 = 128 << 10;

#[derive(Debug, Default)]
pub(super) struct Recent {
    /// The one that was used last is at the end.
    #[cfg(feature = "std")]
    blocks: std::sync::Mutex<Vec<Held>>,
}

#[cfg(feature = "std")]
#[derive(Debug)]
struct Held {
    key: Key,
    block: Block,
}

/// What a block is asked for by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Key {
    pub(super) address: u64,
    pub(super) len: u64,
    /// Whether its checksum was compared, and its signature, if it should have one.
    pub(super) is_sealed: bool,
    pub(super) signature: Option<[u8; 4]>,
}

impl Recent {
    /// The block as it was made a moment ago, or made now.
    #[cfg(feature = "std")]
    pub(super) fn get(&self, key: Key, make: impl FnOnce() -> Result<Block>) -> Result<Block> {
        use std::sync::PoisonError;

        // Nothing is left half done while it is locked.
        let blocks = || self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut held = blocks();
        if let Some(place) = held.iter().rposition(|held| held.key == key) {
            let used = held.remove(place);
            let block = used.block.clone();
            held.push(used);
            return Ok(block);
        }
        // Reading takes its time: others do not wait for it.
        drop(held);
        let block = make()?;
        if key.len <= LONGEST {
            let mut held = blocks();
            if held.len() >= MOST {
                held.remove(0);
            }
            held.push(Held {
                key,
                block: block.clone(),
            });
        }
        Ok(block)
    }

    /// Without locks nothing is held.
    #[cfg(not(feature = "std"))]
    pub(super) fn get(&self, _: Key, make: impl FnOnce() -> Result<Block>) -> Result<Block> {
        make()
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn key(address: u64, len: u64) -> Key {
        Key {
            address,
            len,
            is_sealed: true,
            signature: None,
        }
    }

    #[test]
    fn a_block_that_is_used_again_and_again_is_made_once_and_few_are_held() {
        let recent = Recent::default();
        let mut made = 0;
        for round in 0..100 {
            for address in [0, 1000 + round] {
                let block = recent.get(key(address, 8), || {
                    made += 1;
                    Ok(Block {
                        bytes: Bytes::from(address.to_le_bytes().to_vec()),
                        at: address,
                    })
                });
                assert_eq!(*block.unwrap().bytes, address.to_le_bytes());
            }
        }
        assert_eq!(made, 101);
        assert_eq!(recent.blocks.lock().unwrap().len(), MOST);
    }

    #[test]
    fn a_long_block_and_one_that_is_not_sound_are_not_held() {
        let recent = Recent::default();
        let long = key(0, LONGEST + 1);
        let bytes = Bytes::new();
        recent.get(long, || Ok(Block { bytes, at: 0 })).unwrap();
        let wrong = || Err(crate::Error::malformed("test", "wrong"));
        recent.get(key(0, 8), wrong).unwrap_err();
        assert!(recent.blocks.lock().unwrap().is_empty());
    }
}
