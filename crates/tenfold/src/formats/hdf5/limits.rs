//! What a file that is written can hold.

use crate::format::Fit;
use crate::model::{DType, Value, ValueKind};
use crate::prelude::*;

/// Dimensions, at most.
pub(super) const MOST_RANK: usize = 32;
/// Bytes of a message, at most.
const MOST_MESSAGE: usize = 65535;
/// What a message takes beside the name of a link, or beside the name and the data of an attribute: more than enough for
/// the type and 32 dimensions.
const BESIDE: usize = 512;
/// Bytes of a reference to a text that is written elsewhere.
const REFERENCE: u64 = 16;
/// Parts of a path, at most: so many groups within each other are read.
const MOST_PARTS: usize = 64;

/// Whether a path can be made of a name.
pub(super) fn name(name: &str) -> Result<(), &'static str> {
    let mut parts = 0;
    for part in name.split('/') {
        parts += 1;
        if part.is_empty() || part == "." {
            return Err("HDF5 has no groups and datasets with the name \"\" or \".\"");
        }
        if part.contains('\0') {
            return Err("HDF5 ends names at a zero byte");
        }
        if part.len() > MOST_MESSAGE - BESIDE {
            return Err("a part of a path has at most 65023 bytes");
        }
    }
    if parts > MOST_PARTS {
        return Err("a path has at most 64 parts");
    }
    Ok(())
}

pub(super) fn dtype(dtype: DType) -> bool {
    [
        DType::BOOL,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F8_E4M3,
        DType::F8_E5M2,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::C64,
        DType::C128,
    ]
    .contains(&dtype)
}

/// What becomes of the file's metadata: a map under the path of a group is that group's attributes.
pub(super) fn file_value(key: &str, value: &Value) -> Fit {
    let (Some(path), Value::Map(map)) = (key.strip_prefix('/'), value) else {
        return named(key, value);
    };
    let fits = |(key, value): (&str, Value)| matches!(named(key, &value), Fit::Exact);
    if name(path).is_ok() && map.iter().all(fits) {
        Fit::Exact
    } else {
        Fit::No
    }
}

pub(super) fn named(key: &str, value: &Value) -> Fit {
    if key.is_empty() || key.contains('\0') || key.len() > MOST_MESSAGE / 2 {
        return Fit::No;
    }
    match attribute(value) {
        Fit::Exact if is_too_long(key, value) && !is_long_text(key, value) => Fit::No,
        fit => fit,
    }
}

/// Whether an attribute with its data does not fit a message.
fn is_too_long(key: &str, value: &Value) -> bool {
    key.len() + bytes(value) + BESIDE > MOST_MESSAGE
}

/// Whether the texts of an attribute are written elsewhere, because they do not fit a message; references to them do.
pub(super) fn is_long_text(key: &str, value: &Value) -> bool {
    let Some((ValueKind::Str, dims)) = grid(value) else {
        return false;
    };
    let count = dims.iter().copied().try_fold(1u64, u64::checked_mul);
    let references = count.and_then(|count| usize::try_from(count.checked_mul(REFERENCE)?).ok());
    let room = MOST_MESSAGE - BESIDE - key.len().min(MOST_MESSAGE / 2);
    is_too_long(key, value) && references.is_some_and(|len| len <= room)
}

/// What becomes of a value as an attribute.
fn attribute(value: &Value) -> Fit {
    match value {
        Value::Integer(digits) => Fit::As(Value::Str(digits.clone())),
        Value::Empty(kind) if *kind != ValueKind::List => Fit::Exact,
        value if empty(value).is_some() => Fit::Exact,
        value if grid(value).is_some() => Fit::Exact,
        _ => Fit::No,
    }
}

/// The type of an attribute that has a type and no value; `Some(None)` is text.
pub(super) fn empty(value: &Value) -> Option<Option<DType>> {
    let Value::Map(map) = value else {
        return None;
    };
    let mut entries = map.iter();
    let (Some(("empty", Value::Str(name))), None) = (entries.next(), entries.next()) else {
        return None;
    };
    if name == "object" {
        return Some(None);
    }
    let found = DType::parse(&name).ok()?;
    (dtype(found) && found.numpy_name() == Some(&*name)).then_some(Some(found))
}

/// What the elements of a value are, and its dimensions; `None` where it is no regular grid of one kind.
pub(super) fn grid(value: &Value) -> Option<(ValueKind, Vec<u64>)> {
    grid_within(value, MOST_RANK)
}

/// The same, of at most so many dimensions. Every value is looked at once, however deep it is.
fn grid_within(value: &Value, rank: usize) -> Option<(ValueKind, Vec<u64>)> {
    match value {
        Value::Str(text) => (!text.contains('\0')).then_some((ValueKind::Str, Vec::new())),
        Value::Empty(kind) => Some((*kind, vec![0])),
        Value::List(list) => {
            let below = rank.checked_sub(1)?;
            let mut entries = list.iter();
            let (kind, mut dims) = grid_within(&entries.next()?, below)?;
            // Lists of nothing could not be told from others.
            let is_grid = !dims.contains(&0)
                && entries.all(|entry| {
                    grid_within(&entry, below).is_some_and(|(k, d)| k == kind && d == dims)
                });
            dims.insert(0, list.len() as u64);
            is_grid.then_some((kind, dims))
        }
        value => value.kind().map(|kind| (kind, Vec::new())),
    }
}

/// Bytes of a value's data.
fn bytes(value: &Value) -> usize {
    let Some((kind, dims)) = grid(value) else {
        return 0;
    };
    let count = dims.iter().copied().try_fold(1u64, u64::checked_mul);
    let len = count.and_then(|count| count.checked_mul(width(kind, value) as u64));
    len.and_then(|len| usize::try_from(len).ok())
        .unwrap_or(usize::MAX / 2)
}

/// Bytes of an element: of text, those of the longest and a zero byte.
pub(super) fn width(kind: ValueKind, value: &Value) -> usize {
    match kind {
        ValueKind::Bool | ValueKind::U8 | ValueKind::I8 => 1,
        ValueKind::U16 | ValueKind::I16 => 2,
        ValueKind::U32 | ValueKind::I32 | ValueKind::F32 => 4,
        ValueKind::U64 | ValueKind::I64 | ValueKind::F64 => 8,
        ValueKind::Str | ValueKind::List => longest(value) + 1,
    }
}

fn longest(value: &Value) -> usize {
    match value {
        Value::Str(text) => text.len(),
        Value::List(list) => list.iter().map(|entry| longest(&entry)).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::List;

    /// A value in so many lists of one entry.
    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::from(1u8), |value, _| List::from_iter([value]).into())
    }

    /// The test takes longer than anybody waits if every level is looked at twice.
    #[test]
    fn lists_in_lists_are_a_grid_up_to_the_rank_of_the_format() {
        let (kind, dims) = grid(&nested(MOST_RANK)).unwrap();
        assert_eq!((kind, dims), (ValueKind::U8, vec![1; MOST_RANK]));
        assert!(grid(&nested(MOST_RANK + 1)).is_none());
        assert!(matches!(attribute(&nested(200)), Fit::No));
    }
}
