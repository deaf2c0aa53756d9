//! What a file that is written can hold.

use super::types;
use crate::format::Fit;
use crate::model::{DType, TensorInfo, Value, ValueKind};
use crate::prelude::*;

/// Bytes of a name, at most: `NC_MAX_NAME`.
const MAX_NAME: usize = 256;
/// Bytes of a variable and entries of a list in CDF-2: readers count with a sign, and pad to 4.
const MOST_OLD: u64 = (i32::MAX - 3) as u64;

/// Whether netCDF-C takes a name.
pub(super) fn name(name: &str) -> Result<(), &'static str> {
    let Some(first) = name.chars().next() else {
        return Err("NetCDF has no empty names");
    };
    if name.len() > MAX_NAME {
        return Err("NetCDF's names have at most 256 bytes");
    }
    if first.is_ascii() && !first.is_ascii_alphanumeric() && first != '_' {
        return Err("NetCDF's names begin with a letter, a digit or _");
    }
    if name.contains('/') {
        return Err("NetCDF's names have no /");
    }
    if name.chars().any(|c| c.is_ascii_control()) {
        return Err("NetCDF's names have no control characters");
    }
    if name.ends_with(char::is_whitespace) {
        return Err("NetCDF's names end with no space");
    }
    if !is_normalized(name) {
        return Err("netCDF-C finds names only in Unicode's normalization form C");
    }
    Ok(())
}

#[cfg(feature = "netcdf")]
fn is_normalized(name: &str) -> bool {
    name.is_ascii() || unicode_normalization::is_nfc(name)
}

/// Without the codec nothing is written either.
#[cfg(not(feature = "netcdf"))]
fn is_normalized(_: &str) -> bool {
    true
}

pub(super) fn dtype(dtype: DType) -> bool {
    types::of_dtype(dtype).is_some()
}

/// Without those that only CDF-5 has.
pub(super) fn old_dtype(dtype: DType) -> bool {
    types::of_dtype(dtype).is_some_and(|number| number <= types::LAST_OLD)
}

pub(super) fn countable(tensor: &TensorInfo) -> Result<(), String> {
    match tensor.dense_len() {
        Some(len) if i64::try_from(len).is_ok() => Ok(()),
        _ => Err("its elements have 2^63 bytes or more".to_owned()),
    }
}

pub(super) fn small(tensor: &TensorInfo) -> Result<(), String> {
    match tensor.dense_len() {
        Some(len) if len <= MOST_OLD => Ok(()),
        _ => Err("variables of CDF-2 have less than 2 GiB".to_owned()),
    }
}

/// What becomes of a value as an attribute, or of the names of a tensor's dimensions.
pub(super) fn value(key: &str, value: &Value) -> Fit {
    if name(key).is_err() {
        return Fit::No;
    }
    match value {
        // What is not UTF-8 is text all the same.
        Value::Str(_) => Fit::Exact,
        Value::Bytes(bytes) if core::str::from_utf8(bytes).is_err() => Fit::Exact,
        Value::Bool(flag) => Fit::As(Value::I8((*flag).into())),
        Value::Integer(digits) => Fit::As(Value::Str(digits.clone())),
        Value::List(list) if key == super::DIMENSIONS && list.kind() == Some(ValueKind::Str) => {
            Fit::Exact
        }
        // A list of one could not be told from the number.
        Value::List(list) if list.len() > 1 => match list.kind() {
            Some(kind) if kind != ValueKind::Str && types::of_kind(kind).is_some() => Fit::Exact,
            _ => Fit::No,
        },
        Value::List(list) => match list.first() {
            Some(only) if !matches!(only, Value::List(_)) => match self::value(key, &only) {
                Fit::Exact => Fit::As(only),
                other => other,
            },
            _ => Fit::No,
        },
        Value::Empty(kind) if *kind != ValueKind::Str && types::of_kind(*kind).is_some() => {
            Fit::Exact
        }
        value => match value.kind().and_then(types::of_kind) {
            Some(_) => Fit::Exact,
            None => Fit::No,
        },
    }
}

/// The same without types that only CDF-5 has: whole numbers that fit 32 bits become such.
pub(super) fn old_value(key: &str, value: &Value) -> Fit {
    let fit = self::value(key, value);
    let kept = match &fit {
        Fit::Exact => value,
        Fit::As(other) => other,
        _ => return fit,
    };
    let kind = match kept {
        Value::List(list) => list.kind(),
        Value::Empty(kind) => Some(*kind),
        value => value.kind(),
    };
    let is_old = |kind| types::of_kind(kind).is_none_or(|number| number <= types::LAST_OLD);
    if kind.is_none_or(is_old) {
        return fit;
    }
    let narrow = |value: &Value| Some(Value::I32(i32::try_from(value.as_i64()?).ok()?));
    let narrowed = match kept {
        Value::Empty(_) => Some(Value::Empty(ValueKind::I32)),
        Value::List(list) => {
            let numbers: Option<Vec<Value>> = list.iter().map(|entry| narrow(&entry)).collect();
            numbers.map(|numbers| Value::List(numbers.into()))
        }
        value => narrow(value),
    };
    narrowed.map_or(Fit::No, Fit::As)
}
