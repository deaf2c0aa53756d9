//! What can be written.

use super::types;
use crate::format::Fit;
use crate::model::{DType, Layout, List, TensorInfo, Value};
use crate::prelude::*;

/// Bytes of a name of a variable or of a field, at most.
const MOST_NAME: usize = 63;
/// Parts of a name, at most: as deep is read.
const MOST_PARTS: usize = 60;
/// Entries of a cell that nothing is known of, for each that is.
const MOST_GAPS: u64 = 16;
/// Bytes of a variable, with what is in front of its data.
pub(super) const MOST_BYTES: u64 = (u32::MAX as u64) - (64 << 10);

/// What part of a name is the number of an entry.
pub(super) fn entry(part: &str) -> Option<u64> {
    let number: u64 = part.parse().ok()?;
    // No second spelling of it.
    (number.to_string() == part && number <= i32::MAX.unsigned_abs().into()).then_some(number)
}

/// Whether so many entries can be those of a cell that goes up to a number.
pub(super) fn is_cell(entries: usize, last: u64) -> bool {
    last < (entries as u64 + 1).saturating_mul(MOST_GAPS)
}

/// Whether a variable, a field or an entry can have each part of a name.
pub(super) fn name(name: &str) -> Result<(), &'static str> {
    let mut parts = 0;
    for part in name.split('.') {
        parts += 1;
        let is_word = part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_word && (parts == 1 || entry(part).is_none()) {
            return Err(
                "names of variables and fields are letters, digits and _, and begin with a letter; entries of cells are numbers",
            );
        }
        if part.len() > MOST_NAME {
            return Err("names of variables and fields have at most 63 characters");
        }
    }
    if parts > MOST_PARTS {
        return Err("a name has at most 60 parts between dots");
    }
    Ok(())
}

pub(super) fn layout(layout: &Layout) -> bool {
    matches!(layout, Layout::ColumnMajor | Layout::Csc { .. })
}

pub(super) fn dtype(dtype: DType) -> bool {
    types::has_class(dtype)
}

/// What level 5 counts with 32 bits.
pub(super) fn small(tensor: &TensorInfo) -> Result<(), String> {
    let is_sparse = matches!(tensor.layout, Layout::Csc { .. });
    if is_sparse && !matches!(tensor.dtype, DType::F64 | DType::BOOL | DType::C128) {
        return Err("sparse matrices are of f64, c128 and bool".to_owned());
    }
    let too_long = |dim: &u64| i32::try_from(*dim).is_err();
    if tensor.shape.iter().any(too_long) {
        return Err("dimensions have at most 31 bits".to_owned());
    }
    let len = if is_sparse {
        tensor.parts.iter().map(|part| part.payload.len()).sum()
    } else {
        tensor.dense_len().unwrap_or(u64::MAX)
    };
    if len > MOST_BYTES {
        return Err("a variable of level 5 has less than 4 GiB".to_owned());
    }
    Ok(())
}

/// Text stays text: a line, or several of equal length.
pub(super) fn value(key: &str, value: &Value) -> Fit {
    if name(key).is_err() {
        return Fit::No;
    }
    match value {
        Value::Str(text) if is_text(text) => Fit::Exact,
        Value::List(rows) if is_matrix(rows) => Fit::Exact,
        _ => Fit::No,
    }
}

fn is_text(text: &str) -> bool {
    (text.len() as u64) < MOST_BYTES / 4
}

fn is_matrix(rows: &List) -> bool {
    let mut columns = None;
    let mut count = 0u64;
    for row in rows.iter() {
        let Value::Str(row) = row else {
            return false;
        };
        let len = row.encode_utf16().count() as u64;
        // Rows of nothing would not be known again.
        if len == 0 || *columns.get_or_insert(len) != len {
            return false;
        }
        count += 1;
    }
    count > 1 && columns.is_some_and(|columns| columns.saturating_mul(count) < MOST_BYTES / 4)
}
