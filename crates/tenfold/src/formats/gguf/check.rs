//! Where the data of the tensors is, and that no byte belongs to two of them.

use super::raw::TensorRecord;
use super::types;
use crate::error::{Error, Result};
use crate::model::DType;
use crate::prelude::*;

/// The data of a file.
pub(super) struct Layout {
    /// Where each tensor is.
    pub(super) ranges: Vec<Range<u64>>,
    /// Where the last of them ends, with its padding.
    pub(super) end: u64,
    /// The first tensor that is not where ggml wants it, and where that would be.
    pub(super) out_of_order: Option<(usize, u64)>,
    /// Why the first tensor is refused that ends past the end of the file.
    pub(super) cut_off: Option<Error>,
}

/// Finds the tensors of a file of `file` bytes whose data begins at `begin`.
pub(super) fn layout(
    records: &[TensorRecord],
    begin: u64,
    align: u64,
    file: u64,
) -> Result<Layout> {
    let mut layout = Layout {
        ranges: Vec::new(),
        end: begin,
        out_of_order: None,
        cut_off: None,
    };
    let placed = layout.place(records, begin, align, file);
    match placed.and_then(|()| overlap(records, &layout.ranges)) {
        Ok(()) => {
            layout.stretch(records, file);
            Ok(layout)
        }
        // The first thing that is wrong is reported.
        Err(error) => Err(layout.cut_off.unwrap_or(error)),
    }
}

impl Layout {
    fn place(&mut self, records: &[TensorRecord], begin: u64, align: u64, file: u64) -> Result<()> {
        let mut expected = Some(0u64);
        for (place, record) in records.iter().enumerate() {
            let blame = |error: Error| match error.range() {
                Some(_) => error.in_tensor(&record.name),
                None => error.at(record.at.clone()).in_tensor(&record.name),
            };
            let size = size(record).map_err(blame)?;
            let range = range(record, size, begin, align, file).map_err(blame)?;
            if let Some(expected) = expected.filter(|&expected| expected != record.offset) {
                self.out_of_order.get_or_insert((place, expected));
            }
            // Where the next one would be is not known after an unknown type.
            let padded = size.checked_next_multiple_of(align);
            let padded = padded.filter(|_| record.dtype.is_ok());
            expected = padded.and_then(|padded| expected?.checked_add(padded));
            if range.end > file && self.cut_off.is_none() {
                let end = format!("at byte {}", range.end);
                self.cut_off = Some(blame(out_of_bounds(record, size, &end, file)));
            }
            let padded = range.end.checked_next_multiple_of(align);
            self.end = self.end.max(padded.unwrap_or(range.end));
            self.ranges.push(range);
        }
        Ok(())
    }

    /// Tensors of unknown types have all bytes up to the next tensor, or else up to the end of the file.
    fn stretch(&mut self, records: &[TensorRecord], file: u64) {
        if records.iter().all(|record| record.dtype.is_ok()) {
            return;
        }
        let filled = self.ranges.iter().filter(|range| !range.is_empty());
        let mut starts: Vec<u64> = filled.map(|range| range.start).collect();
        starts.sort_unstable();
        for (range, record) in self.ranges.iter_mut().zip(records) {
            if record.dtype.is_err() && !range.is_empty() {
                let next = starts.partition_point(|&start| start <= range.start);
                let end = starts.get(next).map_or(file, |&next| next.min(file));
                range.end = range.end.max(end);
                self.end = self.end.max(range.end);
            }
        }
    }
}

/// Bytes of a tensor; of an unknown type, those that it has at least.
fn size(record: &TensorRecord) -> Result<u64> {
    let TensorRecord { shape, dtype, .. } = record;
    let dtype = dtype.as_ref().map_or(DType::UNKNOWN, |dtype| *dtype);
    types::check_row(dtype, shape).map_err(|why| Error::malformed("gguf.block", why))?;
    let size = match dtype {
        DType::UNKNOWN => types::data_len(DType::U8, shape).map(|elements| elements.min(1)),
        dtype => types::data_len(dtype, shape),
    };
    size.ok_or_else(|| {
        let message =
            format!("shape {shape:?} of {dtype} has more elements or bytes than 63 bits can count");
        Error::malformed("gguf.overflow", message)
    })
}

fn range(
    record: &TensorRecord,
    size: u64,
    begin: u64,
    align: u64,
    file: u64,
) -> Result<Range<u64>> {
    let offset = record.offset;
    if !offset.is_multiple_of(align) {
        let message = format!("its offset {offset} is not a multiple of the alignment {align}");
        return Err(Error::malformed("gguf.offset", message));
    }
    if size == 0 && offset <= file.saturating_sub(begin) {
        // The padding before the data may be missing where there is no data.
        let at = begin.saturating_add(offset).min(file);
        return Ok(at..at);
    }
    let start = begin.checked_add(offset);
    let end = start.and_then(|start| start.checked_add(size));
    match (start, end) {
        (Some(start), Some(end)) => Ok(start..end),
        _ => Err(out_of_bounds(record, size, "past any end", file)),
    }
}

fn out_of_bounds(record: &TensorRecord, size: u64, end: &str, file: u64) -> Error {
    let offset = record.offset;
    let least = if record.dtype.is_ok() {
        ""
    } else {
        "at least "
    };
    let message = format!(
        "its {least}{size} bytes at offset {offset} end {end}, the file has {file}: truncated or damaged"
    );
    Error::malformed("gguf.bounds", message)
}

fn overlap(records: &[TensorRecord], ranges: &[Range<u64>]) -> Result<()> {
    let filled = ranges.iter().zip(records).filter(|(r, _)| !r.is_empty());
    let mut places: Vec<_> = filled.collect();
    let key = |(range, _): &(&Range<u64>, &TensorRecord)| range.start;
    if !places.is_sorted_by_key(key) {
        places.sort_by_key(key);
    }
    for pair in places.windows(2) {
        if let [(first, a), (second, b)] = pair
            && second.start < first.end
        {
            let begin = second.start;
            let message = match &a.dtype {
                Ok(_) => format!(
                    "its data begins at byte {begin}, that of {:?} ends at {}: they overlap",
                    a.name, first.end
                ),
                Err(_) => format!(
                    "its data begins at byte {begin}, and so does that of {:?}: they overlap",
                    a.name
                ),
            };
            let error = Error::malformed("gguf.overlap", message).at((*second).clone());
            return Err(error.in_tensor(&b.name));
        }
    }
    Ok(())
}
