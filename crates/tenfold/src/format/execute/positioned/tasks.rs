//! How the work is divided.

use super::{Job, SMALL};
use crate::error::Result;
use crate::format::Segment;
use crate::format::execute::tensor;
use crate::prelude::*;
use crate::transform::View;

/// Gathered bytes that are written at once.
const GATHER: u64 = 1 << 20;
/// Bytes of one large segment that one worker moves before it takes other work.
const SHARE: u64 = 64 << 20;

/// Something for one worker to do.
pub(super) enum Task {
    /// Neighbouring segments, written together.
    Gather { segments: Range<usize> },
    /// Bytes `from..from + len` of a tensor that can be entered anywhere.
    Share { segment: usize, from: u64, len: u64 },
    /// One of the tiles of a tensor that is written tile by tile.
    Tile { segment: usize, tile: u64 },
    /// A tensor from its beginning to its end.
    Whole { segment: usize },
}

/// How a segment that is not gathered is written.
enum Large {
    Nothing,
    Shares,
    Whole,
}

impl Job<'_> {
    /// Divides the work so that every worker can take any of it.
    pub(super) fn tasks(&self) -> Result<Vec<Task>> {
        let mut tasks = Vec::new();
        let mut first = 0;
        for (segment, what) in self.run.iter().enumerate() {
            let range = self.range(segment);
            let len = range.end - range.start;
            let large = match what {
                Segment::Tensor {
                    index,
                    want,
                    digest,
                    ..
                } if len > SMALL => Some(
                    match View::is_light(tensor(self.from, *index)?, want) && digest.is_none() {
                        true => Large::Shares,
                        false => Large::Whole,
                    },
                ),
                Segment::Copy { .. } if len > SMALL => Some(Large::Shares),
                // Zeros come by themselves: the file is longer in the end.
                Segment::Align { fill: 0, .. } if len > SMALL => Some(Large::Nothing),
                _ => None,
            };
            let gathered = range.end - self.range(first).start;
            if large.is_some() || gathered > GATHER {
                if first < segment {
                    tasks.push(Task::Gather {
                        segments: first..segment,
                    });
                }
                first = segment;
            }
            match large {
                Some(Large::Shares) => match self.tiles(segment)? {
                    Some(tiles) => {
                        tasks.extend((0..tiles).map(|tile| Task::Tile { segment, tile }));
                    }
                    None => {
                        let share = |n| (n * SHARE, SHARE.min(len - n * SHARE));
                        let shares = (0..len.div_ceil(SHARE)).map(share);
                        tasks.extend(shares.map(|(from, len)| Task::Share { segment, from, len }));
                    }
                },
                Some(Large::Whole) => tasks.push(Task::Whole { segment }),
                Some(Large::Nothing) | None => {}
            }
            if large.is_some() {
                first = segment + 1;
            }
        }
        if first < self.run.len() {
            tasks.push(Task::Gather {
                segments: first..self.run.len(),
            });
        }
        Ok(tasks)
    }

    /// How many tiles a segment is written in, if it is.
    fn tiles(&self, segment: usize) -> Result<Option<u64>> {
        match self.run.get(segment) {
            Some(Segment::Tensor { .. }) => Ok(self.view(segment)?.tiles()),
            _ => Ok(None),
        }
    }
}
