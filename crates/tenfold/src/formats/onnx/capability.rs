//! What a model can hold beside tensors.

use super::types;
use crate::format::{Capabilities, Fit};
use crate::model::{DType, Map, Value, element_count};
use crate::prelude::*;

/// What every version holds, with types of its own.
pub(super) const fn capabilities(dtype: fn(DType) -> bool) -> Capabilities {
    Capabilities {
        dtype,
        tensor: |tensor| {
            if tensor.shape.iter().any(|&dim| dim > i64::MAX as u64) {
                return Err("a dimension has at most 63 bits".to_owned());
            }
            // As it is read: other dimensions count beside one of 0.
            let others: Vec<u64> = tensor
                .shape
                .iter()
                .copied()
                .filter(|&dim| dim > 0)
                .collect();
            let bytes = element_count(&others).and_then(|count| tensor.dtype.bytes_for(count));
            match bytes {
                Some(_) => Ok(()),
                None => Err("its size does not fit 64 bits".to_owned()),
            }
        },
        file_value,
        tensor_value,
        kept: true,
        ..Capabilities::new()
    }
}

/// Types that every version has.
pub(super) fn is_usual(dtype: DType) -> bool {
    types::number(dtype).is_some() && !types::is_new(dtype)
}

/// Types that the newest version has.
pub(super) fn is_any(dtype: DType) -> bool {
    types::number(dtype).is_some()
}

pub(super) fn file_value(key: &str, value: &Value) -> Fit {
    match (key, value) {
        ("producer_name" | "producer_version" | "domain" | "doc_string" | "graph_name", value) => {
            text(value)
        }
        ("model_version", Value::I64(0)) => Fit::No,
        ("model_version", Value::I64(_)) => Fit::Exact,
        ("model_version", value) => match value.as_i64() {
            Some(number) if number != 0 => Fit::As(Value::I64(number)),
            _ => Fit::No,
        },
        ("opset_import", Value::Map(map)) => versions(map),
        ("metadata_props", value) => pairs(value),
        _ => Fit::No,
    }
}

fn tensor_value(key: &str, value: &Value) -> Fit {
    match key {
        "doc_string" => text(value),
        "metadata_props" => pairs(value),
        _ => Fit::No,
    }
}

/// Text that is not there is the same as none.
fn text(value: &Value) -> Fit {
    match value {
        Value::Str(text) if !text.is_empty() => Fit::Exact,
        Value::Bytes(bytes) if core::str::from_utf8(bytes).is_err() => Fit::Exact,
        _ => Fit::No,
    }
}

fn pairs(value: &Value) -> Fit {
    match value {
        Value::Map(map)
            if !map.is_empty() && map.iter().all(|(_, value)| value.as_str().is_some()) =>
        {
            Fit::Exact
        }
        _ => Fit::No,
    }
}

fn versions(map: &Map) -> Fit {
    if map.is_empty() || map.iter().any(|(_, value)| value.as_i64().is_none()) {
        return Fit::No;
    }
    if map.iter().all(|(_, value)| matches!(value, Value::I64(_))) {
        return Fit::Exact;
    }
    let numbers = map.iter().map(|(key, value)| {
        let number = value.as_i64().unwrap_or_default();
        (key.to_owned(), Value::I64(number))
    });
    Fit::As(Value::Map(numbers.collect()))
}
