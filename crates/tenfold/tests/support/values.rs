//! Comparing metadata and tensors: with what is known of them, and with what was written.

use serde_json::Value as Json;
use tenfold::model::{Metadata, Value};
use tenfold::{Archive, Tensor};

/// Whether a value is the one that the JSON of a fixture says. Widths do not matter, nor does true as 1.
pub fn is_expected(value: &Value, expected: &Json) -> bool {
    match expected {
        Json::Null => *value == Value::Null,
        Json::Bool(expected) => match value {
            Value::Bool(value) => value == expected,
            _ => value.as_i64() == Some((*expected).into()),
        },
        Json::Number(number) => match value {
            Value::Integer(digits) => {
                number.to_string() == *digits || digits.parse().ok() == number.as_f64()
            }
            Value::F32(value) => close(f64::from(*value), number.as_f64().unwrap()),
            Value::F64(value) => close(*value, number.as_f64().unwrap()),
            _ => {
                (value.as_i64().is_some() && value.as_i64() == number.as_i64())
                    || (value.as_u64().is_some() && value.as_u64() == number.as_u64())
            }
        },
        Json::String(text) => match value {
            Value::Str(value) => value == text,
            Value::F32(value) => is_named(f64::from(*value), text),
            Value::F64(value) => is_named(*value, text),
            Value::Integer(digits) => digits == text,
            // More than 53 bits are text in the JSON.
            _ => value
                .as_u64()
                .is_some_and(|number| number.to_string() == *text),
        },
        Json::Array(expected) => match value {
            Value::List(items) => {
                items.len() == expected.len()
                    && items.iter().zip(expected).all(|(a, b)| is_expected(&a, b))
            }
            Value::Empty(_) => expected.is_empty(),
            _ => false,
        },
        Json::Object(expected) => match value {
            Value::Map(entries) => {
                entries.len() == expected.len()
                    && entries.iter().all(|(key, value)| {
                        let known = expected.get(key);
                        known.is_some_and(|known| is_expected(&value, known))
                    })
            }
            Value::Bytes(bytes) | Value::Encoded { bytes, .. } => {
                let hex = expected.get("$bytes").or_else(|| expected.get("bytes_hex"));
                hex.and_then(Json::as_str) == Some(&super::hex(bytes))
            }
            // As Python prints its members, in any order.
            Value::List(items) => expected.get("set").is_some_and(|set| {
                let mut found: Vec<_> = items.iter().map(|item| printed(&item)).collect();
                let mut expected: Vec<_> = (set.as_array().into_iter().flatten())
                    .filter_map(Json::as_str)
                    .map(ToOwned::to_owned)
                    .collect();
                found.sort();
                expected.sort();
                found == expected
            }),
            _ => false,
        },
    }
}

fn printed(value: &Value) -> String {
    match value {
        Value::Str(text) => text.clone(),
        value => value.as_i64().map(|n| n.to_string()).unwrap_or_default(),
    }
}

/// Whether a value of a tensor's metadata says what is so where nothing is said, and may be missing: PyTorch's tensors have
/// no gradient, and begin with their storage, without a gap.
pub fn is_implied(key: &str, expected: &Json, shape: &[u64]) -> bool {
    match key {
        "parameter" | "requires_grad" => *expected == Json::Bool(false),
        "storage_offset" => expected.as_u64() == Some(0),
        // Of elements that share a byte, pairs are counted.
        "stride" => [1, 2].into_iter().any(|pair| {
            let mut shape = shape.to_vec();
            if let Some(last) = shape.last_mut() {
                *last /= pair;
            }
            let strides = expected.as_array().into_iter().flatten();
            let mut step = 1;
            let mut known: Vec<_> = strides.filter_map(Json::as_u64).zip(&shape).collect();
            known.reverse();
            known.iter().all(|(stride, dim)| {
                let expected = step;
                step *= **dim;
                **dim < 2 || shape.contains(&0) || *stride == expected
            })
        }),
        _ => false,
    }
}

fn close(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-7 * b.abs()
}

fn is_named(value: f64, name: &str) -> bool {
    match name {
        "NaN" | "nan" => value.is_nan(),
        "Infinity" | "inf" => value == f64::INFINITY,
        "-Infinity" | "-inf" => value == f64::NEG_INFINITY,
        _ => false,
    }
}

/// Whether a format that holds a value exactly gave it back: the same number in whichever width, the same bits of a
/// floating-point number, everything else as it was.
pub fn is_kept(before: &Value, after: &Value) -> bool {
    let float = |value: &Value| match value {
        Value::F32(value) => Some(f64::from(*value)),
        Value::F64(value) => Some(*value),
        _ => None,
    };
    match (before, after) {
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| is_kept(&a, &b))
        }
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len() && are_kept(&a.into(), &b.into()).is_ok()
        }
        (Value::Empty(_), Value::List(b)) => b.is_empty(),
        _ => match (float(before), float(after)) {
            (Some(a), Some(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
            (None, None) => {
                let (a, b) = (integer(before), integer(after));
                before == after || a.is_some() && a == b
            }
            _ => false,
        },
    }
}

fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Integer(digits) => digits.parse().ok(),
        _ => value
            .as_i64()
            .map(i128::from)
            .or_else(|| value.as_u64().map(i128::from)),
    }
}

/// Whether metadata was given back, in any order; says what was not. A format may say more under keys of its own.
pub fn are_kept(before: &Metadata, after: &Metadata) -> Result<(), String> {
    for (key, value) in before.iter() {
        match after.get(key) {
            Some(found) if is_kept(value, found) => {}
            found => return Err(format!("metadata {key:?}: {value:?} became {found:?}")),
        }
    }
    Ok(())
}

/// The same tensors, by name, with the same metadata.
pub fn compare(before: &Archive, after: &Archive) -> Result<(), String> {
    let (count, found) = (before.tensors().len(), after.tensors().len());
    if count != found {
        return Err(format!("{count} tensors became {found}"));
    }
    are_kept(before.metadata(), after.metadata()).map_err(|why| format!("file: {why}"))?;
    for tensor in before.tensors() {
        let found = match after.manifest().tensors.as_slice() {
            [only] if only.is_unnamed() => after.tensors().next(),
            _ => after.get(tensor.name()),
        };
        let found = found.ok_or_else(|| format!("{:?} is missing", tensor.name()))?;
        compare_tensors(&tensor, &found).map_err(|why| format!("{:?}: {why}", tensor.name()))?;
    }
    Ok(())
}

fn compare_tensors(before: &Tensor<'_>, after: &Tensor<'_>) -> Result<(), String> {
    let (a, b) = (before.info(), after.info());
    if a.dtype != b.dtype || a.shape != b.shape {
        return Err(format!(
            "{} {:?} became {} {:?}",
            a.dtype, a.shape, b.dtype, b.shape
        ));
    }
    are_kept(&a.metadata, &b.metadata)?;
    let bytes = |tensor: &Tensor<'_>| tensor.canonical().map_err(|error| error.to_string());
    if bytes(before)? == bytes(after)? {
        Ok(())
    } else {
        Err(format!(
            "{} {:?} {:?}: its bytes differ",
            a.dtype, a.shape, a.layout
        ))
    }
}
