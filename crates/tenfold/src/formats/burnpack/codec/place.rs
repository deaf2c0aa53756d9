//! Where data begins, and in which order it lies.

use alloc::borrow::Cow;

use super::super::raw::Descriptor;
use super::ALIGN;
use crate::error::{Error, Result};
use crate::format::Context;
use crate::model::{Payload, TensorInfo};
use crate::prelude::*;

/// Where the data of a tensor is said to be.
pub(super) struct Place {
    /// The bytes, from the beginning of the data.
    offsets: Range<u64>,
    /// The type is a map, which no release writes whose data follows the CBOR at once.
    has_map: bool,
    /// Where the description is in the file.
    at: Range<u64>,
}

impl Place {
    /// The place of a tensor, in a file whose data begins at `start` or before.
    pub(super) fn new(tensor: &Descriptor, start: u64) -> Result<Self> {
        let offsets = tensor.data_offsets.clone();
        if start.checked_add(offsets.end).is_none() {
            let message = format!(
                "data ends at offset {}, past any end of a file",
                offsets.end
            );
            return Err(Error::malformed("burnpack.overflow", message).at(tensor.at.clone()));
        }
        Ok(Self {
            offsets,
            has_map: tensor.dtype.is_map(),
            at: tensor.at.clone(),
        })
    }

    /// The bytes in a file whose data begins at `start`.
    pub(super) fn range(&self, start: u64) -> Range<u64> {
        start + self.offsets.start..start + self.offsets.end
    }
}

/// A tensor, and where its data is.
pub(super) type Placed<'a> = (&'a TensorInfo, &'a Place);

/// Where data begins, in a file that is whole or not.
pub(super) struct Start {
    pub(super) at: u64,
    /// The file ends before the data does.
    pub(super) cut: Option<Cut>,
}

/// What is known of a file that lost its end.
pub(super) struct Cut {
    /// Where it should have ended.
    pub(super) expected: u64,
    /// How it is known where data begins, for the message; `None` where it is not.
    pub(super) known: Option<&'static str>,
}

/// Where the data begins. Nothing in the file says it; its size does.
///
/// Burn 0.19 puts data right after the metadata and packs it, later releases begin it and every tensor at multiples of
/// 256. Both end the file with the last tensor.
pub(super) fn data_start(
    cx: &mut Context<'_>,
    placed: &[Placed<'_>],
    has_scalars: bool,
    header_end: u64,
) -> Result<Start> {
    let whole = |at| Start { at, cut: None };
    let file = cx.source().len();
    let aligned = header_end.next_multiple_of(ALIGN);
    let Some(end) = placed.iter().map(|(_, place)| place.offsets.end).max() else {
        return Ok(whole(header_end));
    };
    let key = |(_, place): &Placed<'_>| (place.offsets.start, place.offsets.end);
    let mut by_place = Cow::Borrowed(placed);
    if !placed.is_sorted_by_key(key) {
        by_place.to_mut().sort_by_key(key);
    }
    check_overlap(&by_place)?;
    let aligned_end = aligned + end;
    let packed_end = header_end + end;
    if file >= aligned_end {
        let message = if header_end == aligned {
            format!("data begins at byte {aligned}, where the metadata ends, a multiple of {ALIGN}")
        } else {
            format!(
                "data begins at byte {aligned}, a multiple of {ALIGN}, as Burn 0.20 and later write it"
            )
        };
        cx.note("burnpack.layout", header_end..aligned, message);
        // Where the metadata ends at such a place by chance, Burn 0.19 may have packed the data.
        if header_end != aligned {
            check_alignment(cx, &by_place)?;
        }
        check_gaps(cx, &by_place, aligned, ALIGN)?;
        if file > aligned_end {
            let message = format!(
                "{} bytes after the last tensor, which should end the file",
                file - aligned_end
            );
            cx.warn("burnpack.trailing", aligned_end..file, message)?;
        }
        return Ok(whole(aligned));
    }
    if file == packed_end && !has_scalars && is_packed(&by_place) {
        let message = format!(
            "data begins at byte {header_end}, right after the metadata, as Burn 0.19 writes it; later releases \
            read wrong \
             values or refuse the file, and converting it makes it readable"
        );
        cx.note("burnpack.layout", header_end..header_end, message);
        check_gaps(cx, &by_place, header_end, 1)?;
        return Ok(whole(header_end));
    }
    let ends = Ends {
        header: header_end,
        aligned,
        data: end,
    };
    ends.start(cx, &by_place, has_scalars)
}

/// Where the header ends, the next multiple of 256, and how long the data is.
struct Ends {
    header: u64,
    aligned: u64,
    data: u64,
}

impl Ends {
    /// Where data begins in a file whose size does not say it, because it lost its end.
    fn start(&self, cx: &Context<'_>, by_place: &[Placed<'_>], has_scalars: bool) -> Result<Start> {
        let Self {
            header, aligned, ..
        } = *self;
        let cut = |at, known| Start {
            at,
            cut: Some(Cut {
                expected: at + self.data,
                known,
            }),
        };
        if header == aligned || has_scalars || !is_packed(by_place) {
            return Ok(cut(aligned, Some("")));
        }
        let file = cx.source().len();
        let between = cx.source().read(header.min(file)..aligned.min(file))?;
        let is_blank = between.iter().all(|&byte| byte == 0);
        Ok(match (by_place.iter().any(is_unaligned), is_blank) {
            (_, false) if file < header + self.data => cut(header, Some(NO_PADDING)),
            (false, true) => cut(aligned, Some(PADDING)),
            // Zeros can be padding or data, and none of the releases puts such tensors after padding.
            _ => cut(aligned, None),
        })
    }
}

const NO_PADDING: &str =
    " (data begins right after the metadata, as Burn 0.19 writes it: there is no padding)";
const PADDING: &str = " (data is taken to begin at a multiple of 256, as Burn 0.20 and later write it: the \
bytes before that are zeros)";

/// Whether a file of the right size for it is packed, and not an aligned one that lost its end.
fn is_packed(by_place: &[Placed<'_>]) -> bool {
    if by_place.iter().any(|(_, place)| place.has_map) {
        return false;
    }
    if by_place.iter().any(is_unaligned) {
        return true;
    }
    let mut end = 0;
    by_place.iter().all(|(_, place)| {
        let follows = place.offsets.start == end;
        end = place.offsets.end;
        follows
    })
}

fn is_unaligned((_, place): &Placed<'_>) -> bool {
    !place.offsets.start.is_multiple_of(ALIGN)
}

fn check_overlap(by_place: &[Placed<'_>]) -> Result<()> {
    let mut before: Option<&Placed<'_>> = None;
    for tensor in (by_place.iter()).filter(|(_, place)| !place.offsets.is_empty()) {
        let (TensorInfo { name, .. }, Place { offsets, at, .. }) = tensor;
        if let Some((other, before)) =
            before.filter(|(_, before)| before.offsets.end > offsets.start)
        {
            let message = format!(
                "data at offsets {offsets:?} overlaps that of {:?} at {:?}",
                other.name, before.offsets
            );
            let error = Error::malformed("burnpack.overlap", message).at(at.clone());
            return Err(error.in_tensor(name));
        }
        before = Some(tensor);
    }
    Ok(())
}

fn check_alignment(cx: &mut Context<'_>, by_place: &[Placed<'_>]) -> Result<()> {
    let mut unaligned = by_place.iter().filter(|placed| is_unaligned(placed));
    let Some((TensorInfo { name, .. }, first)) = unaligned.next() else {
        return Ok(());
    };
    let message = format!(
        "{} tensors do not begin at a multiple of {ALIGN}; the first is {name:?}, at offset {}",
        1 + unaligned.count(),
        first.offsets.start
    );
    cx.warn("burnpack.alignment", first.at.clone(), message)
}

/// Bytes between tensors that are more than padding.
fn check_gaps(cx: &mut Context<'_>, by_place: &[Placed<'_>], base: u64, align: u64) -> Result<()> {
    let mut end = 0u64;
    for (TensorInfo { name, .. }, place) in by_place {
        let Range { start, end: next } = place.offsets;
        if start > end.next_multiple_of(align) {
            let message = format!(
                "{} bytes before tensor {name:?} belong to no tensor",
                start - end
            );
            cx.warn("burnpack.gap", base + end..base + start, message)?;
        }
        end = end.max(next);
    }
    Ok(())
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
