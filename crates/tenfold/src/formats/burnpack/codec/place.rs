//! Where data begins, and in which order it lies.

use super::super::raw::{Descriptor, Root, TRUNCATED};
use super::ALIGN;
use crate::error::{Error, Result};
use crate::format::Context;
use crate::model::{Payload, TensorInfo};
use crate::prelude::*;

/// Where the data begins. Nothing in the file says it; its size does.
///
/// Burn 0.19 puts data right behind the metadata and packs it, later releases begin it and every tensor at multiples of
/// 256. Both end the file with the last tensor.
pub(super) fn data_start(cx: &mut Context<'_>, root: &Root, header_end: u64) -> Result<u64> {
    let file = cx.source().len();
    let aligned = header_end.next_multiple_of(ALIGN);
    let Some(last) = root
        .tensors
        .iter()
        .max_by_key(|tensor| tensor.data_offsets.end)
    else {
        return Ok(header_end);
    };
    let end = last.data_offsets.end;
    let Some(aligned_end) = aligned.checked_add(end) else {
        let message = format!("data ends at offset {end}, past any end of a file");
        let error = Error::malformed("burnpack.overflow", message).at(last.at.clone());
        return Err(error.in_tensor(&last.name));
    };
    let by_place = sorted(&root.tensors);
    check_overlap(&by_place)?;
    let packed_end = header_end + end;
    if file >= aligned_end {
        let message = match header_end == aligned {
            true => format!(
                "data begins at byte {aligned}, where the metadata ends and which is a multiple of {ALIGN}"
            ),
            false => format!(
                "data begins at byte {aligned}, a multiple of {ALIGN}, as Burn 0.20 and later have it"
            ),
        };
        cx.note("burnpack.layout", header_end..aligned, message);
        // Where the metadata ends at such a place by chance, Burn 0.19 may have packed the data.
        if header_end != aligned {
            check_alignment(cx, &by_place)?;
        }
        check_gaps(cx, &by_place, aligned, ALIGN)?;
        if file > aligned_end {
            let message = format!(
                "{} bytes behind the last tensor, which ends the file",
                file - aligned_end
            );
            cx.warn("burnpack.trailing", aligned_end..file, message)?;
        }
        return Ok(aligned);
    }
    if file == packed_end && is_packed(root, &by_place) {
        let message = format!(
            "data begins at byte {header_end}, right behind the metadata, as Burn 0.19 has it; later releases read wrong \
             values or refuse the file, and converting it makes it readable"
        );
        cx.note("burnpack.layout", header_end..header_end, message);
        check_gaps(cx, &by_place, header_end, 1)?;
        return Ok(header_end);
    }
    Err(cut_off(&root.tensors, file, aligned, aligned_end))
}

/// Whether a file of the right size for it is packed, and not an aligned one that lost its end.
fn is_packed(root: &Root, by_place: &[&Descriptor]) -> bool {
    if root.scalars.is_some() || root.tensors.iter().any(|tensor| tensor.dtype.is_map()) {
        return false;
    }
    let unaligned = |tensor: &&Descriptor| !tensor.data_offsets.start.is_multiple_of(ALIGN);
    if by_place.iter().any(unaligned) {
        return true;
    }
    let mut end = 0;
    by_place.iter().all(|tensor| {
        let follows = tensor.data_offsets.start == end;
        end = tensor.data_offsets.end;
        follows
    })
}

fn sorted(tensors: &[Descriptor]) -> Vec<&Descriptor> {
    let mut by_place: Vec<_> = tensors.iter().collect();
    by_place.sort_by_key(|tensor| (tensor.data_offsets.start, tensor.data_offsets.end));
    by_place
}

fn check_overlap(by_place: &[&Descriptor]) -> Result<()> {
    let mut before: Option<&Descriptor> = None;
    for tensor in by_place
        .iter()
        .filter(|tensor| !tensor.data_offsets.is_empty())
    {
        if let Some(before) =
            before.filter(|before| before.data_offsets.end > tensor.data_offsets.start)
        {
            let message = format!(
                "data at offsets {:?} overlaps that of {:?} at {:?}",
                tensor.data_offsets, before.name, before.data_offsets
            );
            let error = Error::malformed("burnpack.overlap", message).at(tensor.at.clone());
            return Err(error.in_tensor(&tensor.name));
        }
        before = Some(tensor);
    }
    Ok(())
}

fn check_alignment(cx: &mut Context<'_>, by_place: &[&Descriptor]) -> Result<()> {
    let mut unaligned = by_place
        .iter()
        .filter(|tensor| !tensor.data_offsets.start.is_multiple_of(ALIGN));
    let Some(first) = unaligned.next() else {
        return Ok(());
    };
    let message = format!(
        "{} tensors do not begin at a multiple of {ALIGN}; the first is {:?}, at offset {}",
        1 + unaligned.count(),
        first.name,
        first.data_offsets.start
    );
    cx.warn("burnpack.alignment", first.at.clone(), message)
}

/// Bytes between tensors that are more than padding.
fn check_gaps(cx: &mut Context<'_>, by_place: &[&Descriptor], base: u64, align: u64) -> Result<()> {
    let mut end = 0u64;
    for tensor in by_place {
        let Range { start, end: next } = tensor.data_offsets;
        if start > end.next_multiple_of(align) {
            let message = format!(
                "{} bytes before tensor {:?} belong to none",
                start - end,
                tensor.name
            );
            cx.warn("burnpack.gap", base + end..base + start, message)?;
        }
        end = end.max(next);
    }
    Ok(())
}

/// A file that lost its end: which tensors are whole, if its data is aligned.
fn cut_off(tensors: &[Descriptor], file: u64, start: u64, expected: u64) -> Error {
    const SHOWN: usize = 3;
    let complete: Vec<_> = tensors
        .iter()
        .filter(|tensor| start.saturating_add(tensor.data_offsets.end) <= file)
        .map(|tensor| format!("{:?}", tensor.name))
        .collect();
    let mut message = format!(
        "truncated: the file has {file} bytes, its tensors need {expected}; {} of {} tensors are complete",
        complete.len(),
        tensors.len()
    );
    if !complete.is_empty() {
        message += ": ";
        message += &complete
            .iter()
            .take(SHOWN)
            .cloned()
            .collect::<Vec<_>>()
            .join(", ");
    }
    if complete.len() > SHOWN {
        message += ", …";
    }
    Error::malformed(TRUNCATED, message).at(file..expected)
}

/// The order in which data is written: that of the places it comes from, so that a rewritten file keeps its order and is
/// read from its beginning to its end; where some data has no place yet, that of the tensors.
pub(super) fn data_order(tensors: &[TensorInfo]) -> Vec<usize> {
    let place = |index: &usize| {
        let part = tensors.get(*index)?.parts.first()?;
        match &part.payload {
            Payload::Raw { source, range } => Some((*source, range.start, range.end)),
            _ => None,
        }
    };
    let mut order: Vec<_> = (0..tensors.len()).collect();
    if order.iter().all(|index| place(index).is_some()) {
        order.sort_by_key(place);
    }
    order
}
