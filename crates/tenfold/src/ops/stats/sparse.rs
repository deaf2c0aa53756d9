//! Sparse tensors: where nothing is stored, zeros are counted and not looked at.
//!
//! A small file can stand for any number of zeros. What comes out is what the dense tensor has, to the last digit, because
//! the same blocks and chunks are added in the same order.

use super::kernel::{self, Figures};
use super::{Job, Run, Scratch};
use crate::error::Result;
use crate::ops::shared::values::CHUNK;
use crate::prelude::*;
use crate::threads::Control;
use crate::transform::{BLOCK, as_size};

/// What follows in a piece.
pub(super) enum Stretch<'b> {
    /// Whole chunks of zeros.
    Chunks(u64),
    /// So many numbers of a block, all of them 0.
    Zeros(usize),
    /// So many numbers of a block.
    Block(&'b [u8], usize),
    /// The end of a chunk that was not all zeros.
    End,
}

/// Goes over the numbers of a piece.
pub(super) fn walk(
    job: &Job<'_>,
    piece: u64,
    control: &Control,
    buffer: &mut Vec<u8>,
    visit: &mut dyn FnMut(Stretch<'_>),
) -> Result<()> {
    let (view, numbers) = (&job.values.view, &job.values.numbers);
    let stored_from = |at: u64| view.stored_from(at).unwrap_or(at);
    let (block_len, chunk_len) = (numbers.len_of(BLOCK as u64), job.values.chunk());
    let mut chunks = job.cut.range(piece);
    while let Some(chunk) = chunks.next() {
        let start = chunk * chunk_len;
        let empty = (stored_from(start) - start) / chunk_len;
        let empty = empty.min(chunks.end - chunk);
        if empty > 0 {
            visit(Stretch::Chunks(empty));
            chunks.start = chunk + empty;
            control.advance(empty * chunk_len)?;
            continue;
        }
        let end = (start + chunk_len).min(view.len());
        let mut at = start;
        while at < end {
            let before = at / block_len * BLOCK as u64;
            let left = job.values.count().saturating_sub(before);
            let count = usize::try_from(left).map_or(BLOCK, |left| left.min(BLOCK));
            let len = block_len.min(end - at);
            if stored_from(at) >= at + len {
                visit(Stretch::Zeros(count));
            } else {
                view.read(at, len, buffer)?;
                visit(Stretch::Block(buffer, count));
            }
            at += len;
        }
        visit(Stretch::End);
        control.advance(end - start)?;
    }
    Ok(())
}

/// The figures of the chunks of a piece.
pub(super) fn figures(
    job: &Job<'_>,
    piece: u64,
    scratch: &mut Scratch,
    control: &Control,
) -> Result<Vec<Run>> {
    let Scratch { bytes, buffers } = scratch;
    let numbers = &job.values.numbers;
    let zeros = vec![0; as_size(numbers.len_of(BLOCK as u64))?];
    let whole = kernel::figures(numbers, &zeros, BLOCK, buffers);
    let mut empty = Figures::default();
    for _ in 0..CHUNK / BLOCK as u64 {
        empty.add(&whole);
    }
    let mut runs = Vec::new();
    let mut of_chunk = Figures::default();
    walk(job, piece, control, bytes, &mut |stretch| match stretch {
        Stretch::Chunks(count) => runs.push((count, empty.clone())),
        Stretch::Zeros(BLOCK) => of_chunk.add(&whole),
        Stretch::Zeros(count) => {
            let len = usize::try_from(numbers.len_of(count as u64)).unwrap_or(0);
            let zeros = zeros.get(..len).unwrap_or_default();
            of_chunk.add(&kernel::figures(numbers, zeros, count, buffers));
        }
        Stretch::Block(bytes, count) => {
            of_chunk.add(&kernel::figures(numbers, bytes, count, buffers));
        }
        Stretch::End => runs.push((1, core::mem::take(&mut of_chunk))),
    })?;
    Ok(runs)
}
