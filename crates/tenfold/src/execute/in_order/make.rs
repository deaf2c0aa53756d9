//! What workers make of the pieces.

use bytes::Bytes;

use super::blame;
use super::jobs::{Of, Origin, Small, Unit, Unmade};
use crate::archive::Archive;
use crate::error::Result;
use crate::format::Spell;
use crate::model::{Codec, Filter, Over};
use crate::prelude::*;
use crate::transform::{Check, apply_filters, as_size, encode, encode_deflate, read_together};

/// The same when it is ready to be written.
pub(super) struct Ready<'s> {
    pub(super) before: Vec<Small<'s>>,
    pub(super) piece: Option<(Arc<Of<'s>>, Option<Piece>, bool)>,
}

/// A piece that is ready to be written.
pub(super) struct Piece {
    pub(super) stored: Vec<u8>,
    /// The bytes before compression, where a hash over them is wanted.
    pub(super) decoded: Option<Vec<u8>>,
    pub(super) decoded_len: u64,
}

/// What is done to the bytes of a tensor before they are written.
#[derive(Clone, Copy)]
pub(super) enum Change<'s> {
    Keep,
    Encode(Codec),
    /// Each piece is a chunk, and goes through these by itself.
    Filter(&'s [Filter]),
    Spell(Spell),
}

/// Prepares pieces; those whose answers come late are asked for together.
pub(super) fn make_all<'s>(
    units: Vec<Unit<'s, '_>>,
    archive: &Archive,
    check: Check<'_>,
) -> Result<Vec<Ready<'s>>> {
    let inputs: Vec<_> = units
        .iter()
        .map(|unit| unit.piece.as_ref().and_then(Unmade::stored))
        .collect();
    let known = read_together(&inputs)?;
    let units = units.into_iter().zip(known);
    units
        .map(|(unit, known)| make(unit, known, archive, check))
        .collect()
}

/// Prepares a piece, of which the stored bytes may be known.
fn make<'s>(
    unit: Unit<'s, '_>,
    known: Option<Bytes>,
    archive: &Archive,
    check: Check<'_>,
) -> Result<Ready<'s>> {
    let Unit { before, piece } = unit;
    let Some(Unmade {
        of,
        origin,
        is_last,
    }) = piece
    else {
        let piece = None;
        return Ok(Ready { before, piece });
    };
    let decoded = match (origin, known) {
        (_, Some(known)) => Ok(Some(known.to_vec())),
        (Origin::Nowhere, _) if of.frames_nothing() => Ok(Some(Vec::new())),
        (Origin::Nowhere, _) => Ok(None),
        (Origin::Decoded(piece), _) => Ok(Some(piece)),
        (Origin::View { view, at, len }, _) => {
            let mut piece = Vec::new();
            view.read(at, len, &mut piece).map(|()| Some(piece))
        }
        (Origin::Copy { input, at, len }, _) => as_size(len).and_then(|len| {
            let mut piece = vec![0; len];
            input.read_into(at, &mut piece).map(|()| Some(piece))
        }),
    };
    let keep_decoded = matches!(of.digest, Some((_, Over::Decoded))) && of.codec().is_some();
    let made = decoded.and_then(|decoded| {
        let made = decoded.map(|decoded| of.change.apply(decoded, keep_decoded, check));
        made.transpose()
    });
    match made {
        Ok(piece) => Ok(Ready {
            before,
            piece: Some((of, piece, is_last)),
        }),
        Err(error) => Err(blame(error, archive, &of)),
    }
}

impl Change<'_> {
    /// What a worker does with the bytes of a piece.
    fn apply(self, decoded: Vec<u8>, keep_decoded: bool, check: Check<'_>) -> Result<Piece> {
        let decoded_len = decoded.len() as u64;
        let stored = match self {
            Change::Keep => {
                return Ok(Piece {
                    stored: decoded,
                    decoded: None,
                    decoded_len,
                });
            }
            Change::Filter(filters) => {
                return Ok(Piece {
                    stored: apply_filters(filters, decoded, check)?,
                    decoded: None,
                    decoded_len,
                });
            }
            Change::Spell(spell) => {
                let mut text = Vec::new();
                spell(&decoded, &mut text)?;
                text
            }
            Change::Encode(Codec::Deflate { level, .. } | Codec::Zlib { level, .. }) => {
                encode_deflate(level, &decoded, check)?
            }
            Change::Encode(Codec::Zstd { level } | Codec::ZstdSeekable { level, .. }) => {
                encode(level, &decoded, check)?
            }
        };
        Ok(Piece {
            stored,
            decoded: keep_decoded.then_some(decoded),
            decoded_len,
        })
    }
}
