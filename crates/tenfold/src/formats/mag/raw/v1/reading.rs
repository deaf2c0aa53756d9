//! What the checksum of version 1 covers.

use crate::digest::Hasher;
use crate::error::{Error, Result};
use crate::io::Source;
use crate::model::DigestKind;
use crate::prelude::*;

/// What the checksum may have been computed over. The specification says less than it takes to know.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reading {
    /// CRC-32C of what follows the field: what magnetron computed, and what is written here.
    Crc32cBehind,
    /// CRC-32C of everything, with the field as 0.
    Crc32cZeroed,
    /// CRC-32C of everything but the field.
    Crc32cWithout,
    /// CRC-32 of what follows the field.
    Crc32Behind,
    /// CRC-32 of everything, with the field as 0.
    Crc32Zeroed,
    /// CRC-32 of everything but the field.
    Crc32Without,
}

/// What is in front of the bytes that follow the field.
enum Front {
    Nothing,
    FieldAsZero,
    NoField,
}

impl Reading {
    /// All of them, the usual one first.
    pub(crate) const ALL: [Reading; 6] = [
        Reading::Crc32cBehind,
        Reading::Crc32cZeroed,
        Reading::Crc32cWithout,
        Reading::Crc32Behind,
        Reading::Crc32Zeroed,
        Reading::Crc32Without,
    ];

    /// The one that is called so by [`word`](Self::word).
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reading| reading.word() == word)
    }

    /// What it is called where one is chosen.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Reading::Crc32cBehind => "crc32c-behind",
            Reading::Crc32cZeroed => "crc32c-zeroed",
            Reading::Crc32cWithout => "crc32c-without",
            Reading::Crc32Behind => "crc32-behind",
            Reading::Crc32Zeroed => "crc32-zeroed",
            Reading::Crc32Without => "crc32-without",
        }
    }

    /// What it is, for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Reading::Crc32cBehind => "CRC-32C of bytes 12 to the end of the records",
            Reading::Crc32cZeroed => "CRC-32C of header and records with the field as 0",
            Reading::Crc32cWithout => "CRC-32C of header and records without the field",
            Reading::Crc32Behind => "CRC-32 of bytes 12 to the end of the records",
            Reading::Crc32Zeroed => "CRC-32 of header and records with the field as 0",
            Reading::Crc32Without => "CRC-32 of header and records without the field",
        }
    }

    /// Computes it for records that end at `end`.
    pub(crate) fn compute(self, source: &dyn Source, end: u64) -> Result<u32> {
        let (kind, front) = match self {
            Reading::Crc32cBehind => (DigestKind::Crc32c, Front::Nothing),
            Reading::Crc32cZeroed => (DigestKind::Crc32c, Front::FieldAsZero),
            Reading::Crc32cWithout => (DigestKind::Crc32c, Front::NoField),
            Reading::Crc32Behind => (DigestKind::Crc32, Front::Nothing),
            Reading::Crc32Zeroed => (DigestKind::Crc32, Front::FieldAsZero),
            Reading::Crc32Without => (DigestKind::Crc32, Front::NoField),
        };
        let mut hasher = Hasher::new(kind)
            .ok_or_else(|| Error::unsupported("mag.checksum", format!("{kind} is not built in")))?;
        match front {
            Front::Nothing => {}
            Front::FieldAsZero => {
                hasher.update(&source.read(0..8)?);
                hasher.update(&[0; 4]);
            }
            Front::NoField => hasher.update(&source.read(0..8)?),
        }
        super::super::hash(&mut hasher, source, 12..end)?;
        Ok(super::super::as_number(&hasher.finish()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::mag::SPEC;

    #[test]
    fn the_option_names_every_reading() {
        let words: Vec<_> = Reading::ALL.map(Reading::word).into();
        let option = SPEC.options.iter().find(|option| option.key == "checksum");
        assert_eq!(option.map(|option| option.value), Some(&*words.join("|")));
        for reading in Reading::ALL {
            assert_eq!(Reading::from_word(reading.word()), Some(reading));
        }
    }
}
