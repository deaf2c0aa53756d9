//! What the checksum of version 1 covers.

use crate::digest::Hasher;
use crate::error::{Error, Result};
use crate::io::Source;
use crate::model::DigestKind;
use crate::prelude::*;

/// What the checksum may have been computed over. The specification says less than it takes to know.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reading {
    /// CRC-32C of what follows the field: what magnetron computed, and what is written here.
    Crc32cBehind,
    /// CRC-32C of everything, with the field as 0.
    Crc32cZeroed,
    /// CRC-32 of what follows the field.
    Crc32Behind,
    /// CRC-32 of everything, with the field as 0.
    Crc32Zeroed,
}

impl Reading {
    /// All of them, the usual one first.
    pub const ALL: [Reading; 4] = [
        Reading::Crc32cBehind,
        Reading::Crc32cZeroed,
        Reading::Crc32Behind,
        Reading::Crc32Zeroed,
    ];

    /// What it is, for people.
    pub fn name(self) -> &'static str {
        match self {
            Reading::Crc32cBehind => "CRC-32C of bytes 12 to the end of the records",
            Reading::Crc32cZeroed => "CRC-32C of header and records with the field as 0",
            Reading::Crc32Behind => "CRC-32 of bytes 12 to the end of the records",
            Reading::Crc32Zeroed => "CRC-32 of header and records with the field as 0",
        }
    }

    /// Computes it for records that end at `end`.
    pub fn compute(self, source: &dyn Source, end: u64) -> Result<u32> {
        let (kind, zeroed) = match self {
            Reading::Crc32cBehind => (DigestKind::Crc32c, false),
            Reading::Crc32cZeroed => (DigestKind::Crc32c, true),
            Reading::Crc32Behind => (DigestKind::Crc32, false),
            Reading::Crc32Zeroed => (DigestKind::Crc32, true),
        };
        let mut hasher = Hasher::new(kind)
            .ok_or_else(|| Error::unsupported("mag.checksum", format!("{kind} is not built in")))?;
        if zeroed {
            hasher.update(&source.read(0..8)?);
            hasher.update(&[0; 4]);
        }
        super::super::hash(&mut hasher, source, 12..end)?;
        Ok(super::super::as_number(&hasher.finish()))
    }
}
