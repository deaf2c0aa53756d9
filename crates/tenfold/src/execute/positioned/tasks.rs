//! How the work is divided.

use super::{Job, Placed, SMALL, TensorPart, What};
use crate::error::Result;
use crate::prelude::*;
use crate::transform::{LATE_PIECE, View};

/// Bytes that are put together and written at once.
const TOGETHER: u64 = 1 << 20;
/// Bytes of one large segment that one worker moves before it takes other work.
const PIECE: u64 = 64 << 20;

/// Something for one worker to do.
pub(super) enum Task<'p> {
    /// Neighbouring segments, written together.
    Together(&'p [Placed<'p>]),
    /// Bytes `from..from + len` of a segment that can be entered anywhere.
    Piece {
        of: &'p Placed<'p>,
        from: u64,
        len: u64,
    },
    /// One of the tiles of a tensor that is written tile by tile.
    Tile {
        of: &'p Placed<'p>,
        tensor: &'p TensorPart<'p>,
        tile: u64,
    },
    /// A tensor from its beginning to its end.
    Whole {
        of: &'p Placed<'p>,
        tensor: &'p TensorPart<'p>,
    },
}

/// Divides the work so that every worker can take any of it.
pub(super) fn divide<'p>(
    job: &Job<'_, '_>,
    mut segments: &'p [Placed<'p>],
) -> Result<Vec<Task<'p>>> {
    let mut tasks = Vec::new();
    while let Some((first, rest)) = segments.split_first() {
        if is_large(first) {
            large(job, first, &mut tasks)?;
            segments = rest;
            continue;
        }
        let fits =
            |next: &&Placed<'_>| !is_large(next) && next.range.end - first.range.start <= TOGETHER;
        let more = rest.iter().take_while(fits).count();
        let (together, rest) = segments.split_at(1 + more);
        tasks.push(Task::Together(together));
        segments = rest;
    }
    Ok(tasks)
}

/// Whether a segment is not put together with others.
fn is_large(segment: &Placed<'_>) -> bool {
    segment.len() > SMALL
        && matches!(
            segment.what,
            What::Tensor(_) | What::Copy(_) | What::Align(0)
        )
}

impl Job<'_, '_> {
    /// What of a large segment is made: what lies in the window, from the beginning of a piece on where pieces are made whole.
    fn wanted(&self, of: &Placed<'_>) -> Result<Range<u64>> {
        let inside = self.inside(&of.range, of.range.start);
        let What::Tensor(tensor) = &of.what else {
            return Ok(inside);
        };
        if inside.start == 0 {
            return Ok(inside);
        }
        let view = self.view(tensor)?;
        let step = match view.direct() {
            Some(_) => 1,
            None => view.piece(),
        };
        Ok(inside.start / step * step..inside.end)
    }

    /// Whether a tile may have bytes in the window.
    fn has_tile(&self, of: &Placed<'_>, tensor: &TensorPart<'_>, tile: u64) -> Result<bool> {
        if !self.is_part() {
            return Ok(true);
        }
        let span = self.view(tensor)?.tile_span(tile);
        let start = of.range.start;
        Ok(span.is_some_and(|span| {
            !self
                .inside(&(start + span.start..start + span.end), 0)
                .is_empty()
        }))
    }
}

fn large<'p>(job: &Job<'_, '_>, of: &'p Placed<'p>, tasks: &mut Vec<Task<'p>>) -> Result<()> {
    match &of.what {
        What::Tensor(tensor) => {
            if tensor.digest.is_some()
                || !View::is_light(job.executor.data(), tensor.info, tensor.want)
            {
                tasks.push(Task::Whole { of, tensor });
                return Ok(());
            }
            if let Some(tiles) = job.view(tensor)?.tiles() {
                for tile in 0..tiles {
                    if job.has_tile(of, tensor, tile)? {
                        tasks.push(Task::Tile { of, tensor, tile });
                    }
                }
                return Ok(());
            }
        }
        What::Copy(_) => {}
        What::Align(_) if job.is_part() => {}
        // Zeros come by themselves: the file is longer in the end.
        What::Bytes(_) | What::Align(_) | What::Late => return Ok(()),
    }
    // Where answers come late, many are waited for.
    let piece = match job.executor.from.waiting() {
        Some(_) => LATE_PIECE,
        None => PIECE,
    };
    let wanted = job.wanted(of)?;
    let mut from = wanted.start;
    while from < wanted.end {
        let len = piece.min(wanted.end - from);
        tasks.push(Task::Piece { of, from, len });
        from += len;
    }
    Ok(())
}
