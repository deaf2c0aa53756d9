//! Values from text, with the types that they are given.

use tenfold::digest::unhex;
use tenfold::model::{Value, ValueKind};
use tenfold::{Bytes, Error, Result};

use super::read_json;
use crate::json::short_value;

/// The types that [`parse_value`] knows, and what their text looks like. Any of the first twelve with `[]` after it is a
/// list of them, written as in JSON.
pub(crate) const VALUE_TYPES: &[(&str, &str)] = &[
    ("bool", "true or false"),
    ("u8", "a number from 0 to 255"),
    ("u16", "a number from 0 to 65535"),
    ("u32", "a number from 0 to 4294967295"),
    ("u64", "a number from 0 to 18446744073709551615"),
    ("i8", "a number from -128 to 127"),
    ("i16", "a number from -32768 to 32767"),
    ("i32", "a number from -2147483648 to 2147483647"),
    (
        "i64",
        "a number from -9223372036854775808 to 9223372036854775807",
    ),
    ("f32", "a number"),
    ("f64", "a number"),
    ("string", "any text"),
    ("bytes", "pairs of hexadecimal digits"),
    ("json", "JSON: whole numbers become i64, others f64"),
    ("null", "nothing"),
];

/// A value of one of the [`VALUE_TYPES`]; `str` and `int` are other words for `string` and `i64`.
pub(crate) fn parse_value(kind: &str, text: &str) -> Result<Value> {
    if let Some(of) = kind.strip_suffix("[]") {
        let of = kind_of(of).ok_or_else(|| unknown(kind))?;
        return list(read_json(text)?, of);
    }
    if let Some(kind) = kind_of(kind) {
        return scalar(kind, text);
    }
    match kind {
        "bytes" => bytes(text).map(Value::Bytes),
        "json" => read_json(text),
        "null" if text.is_empty() => Ok(Value::Null),
        "null" => Err(Error::argument(format!("{text:?}: null has no value"))),
        _ => Err(unknown(kind)),
    }
}

/// A value of the type that another one has.
pub(crate) fn parse_value_like(like: &Value, text: &str) -> Result<Value> {
    parse_value(&value_type(like), text)
}

/// The name of a value's type, as [`parse_value`] takes it.
pub(crate) fn value_type(value: &Value) -> String {
    let of = |kind: ValueKind| match kind {
        ValueKind::List => "json".into(),
        kind => format!("{}[]", kind.name()),
    };
    match value {
        Value::Null => "null".into(),
        Value::Bytes(_) => "bytes".into(),
        Value::Integer(_) | Value::Map(_) | Value::Encoded { .. } => "json".into(),
        Value::Empty(kind) => of(*kind),
        Value::Elsewhere(list) => of(list.kind),
        Value::List(items) => items.kind().map_or("json".into(), of),
        value => value
            .kind()
            .map_or("json".into(), |kind| kind.name().into()),
    }
}

/// A value that was read from JSON with the type that another one has, where it can have it.
///
/// A number that does not fit is an error; a value of another kind stays as it is.
pub(crate) fn value_like(like: &Value, value: Value) -> Result<Value> {
    let of = match like {
        Value::List(items) => items.kind(),
        Value::Empty(kind) => Some(*kind),
        Value::Elsewhere(list) => Some(list.kind),
        _ => None,
    };
    match (of, like.kind(), &value) {
        (Some(of), _, Value::List(items))
            if is_numeric(of) && items.iter().all(|item| is_plain(&item)) =>
        {
            list(value, of)
        }
        (_, Some(like), _) if is_numeric(like) && is_plain(&value) => number(like, &value),
        _ => Ok(value),
    }
}

/// Whether JSON has no further type for it.
fn is_plain(value: &Value) -> bool {
    matches!(value, Value::I64(_) | Value::U64(_) | Value::F64(_))
}

fn is_numeric(kind: ValueKind) -> bool {
    !matches!(kind, ValueKind::Bool | ValueKind::Str | ValueKind::List)
}

/// The kind with this name.
pub(super) fn kind_of(name: &str) -> Option<ValueKind> {
    Some(match name {
        "bool" => ValueKind::Bool,
        "u8" => ValueKind::U8,
        "u16" => ValueKind::U16,
        "u32" => ValueKind::U32,
        "u64" => ValueKind::U64,
        "i8" => ValueKind::I8,
        "i16" => ValueKind::I16,
        "i32" => ValueKind::I32,
        "i64" | "int" => ValueKind::I64,
        "f32" => ValueKind::F32,
        "f64" => ValueKind::F64,
        "string" | "str" => ValueKind::Str,
        _ => return None,
    })
}

/// A list whose items have a kind.
pub(super) fn list(value: Value, of: ValueKind) -> Result<Value> {
    let Value::List(items) = value else {
        let kind = of.name();
        return Err(Error::argument(format!(
            "expected a list of {kind}, such as [1, 2]"
        )));
    };
    if items.is_empty() {
        return Ok(Value::Empty(of));
    }
    let item = |item: Value| match (of, &item) {
        (ValueKind::Bool, Value::Bool(_)) | (ValueKind::Str, Value::Str(_)) => Ok(item),
        (of, item) => number(of, item),
    };
    items
        .iter()
        .map(item)
        .collect::<Result<_>>()
        .map(Value::List)
}

/// A number, or a word for one that is not finite, as a kind.
pub(super) fn number(of: ValueKind, value: &Value) -> Result<Value> {
    let text = match value {
        Value::F64(value) => format!("{value:?}"),
        Value::Str(text) if matches!(of, ValueKind::F32 | ValueKind::F64) => text.clone(),
        value => match (value.as_i64(), value.as_u64()) {
            (Some(value), _) => value.to_string(),
            (_, Some(value)) => value.to_string(),
            _ => return Err(wrong(of, &short_value(value))),
        },
    };
    match of {
        ValueKind::Bool | ValueKind::Str | ValueKind::List => Err(wrong(of, &format!("{text:?}"))),
        of => scalar(of, &text),
    }
}

fn scalar(kind: ValueKind, text: &str) -> Result<Value> {
    fn parse<T: std::str::FromStr>(text: &str, make: fn(T) -> Value) -> Option<Value> {
        text.parse().ok().map(make)
    }
    let value = match kind {
        ValueKind::Bool => parse(text, Value::Bool),
        ValueKind::U8 => parse(text, Value::U8),
        ValueKind::U16 => parse(text, Value::U16),
        ValueKind::U32 => parse(text, Value::U32),
        ValueKind::U64 => parse(text, Value::U64),
        ValueKind::I8 => parse(text, Value::I8),
        ValueKind::I16 => parse(text, Value::I16),
        ValueKind::I32 => parse(text, Value::I32),
        ValueKind::I64 => parse(text, Value::I64),
        ValueKind::F32 => parse(text, Value::F32).filter(|value| is_meant(value, text)),
        ValueKind::F64 => parse(text, Value::F64).filter(|value| is_meant(value, text)),
        ValueKind::Str => Some(Value::Str(text.to_owned())),
        _ => None,
    };
    value.ok_or_else(|| wrong(kind, &format!("{text:?}")))
}

/// A number that is too large for its type is not meant to be infinite.
fn is_meant(value: &Value, text: &str) -> bool {
    let word = text.trim_start_matches(['+', '-']);
    let infinite = value.as_f64().is_some_and(f64::is_infinite);
    !infinite || word.starts_with(['i', 'I'])
}

/// That something, as it is shown, is not of a kind.
fn wrong(kind: ValueKind, shown: &str) -> Error {
    let name = kind.name();
    let row = VALUE_TYPES.iter().find(|(known, _)| *known == name);
    let expected = row.map_or("something else", |(_, expected)| expected);
    Error::argument(format!(
        "{shown} is not a valid {name}: expected {expected}"
    ))
}

fn unknown(kind: &str) -> Error {
    let known: Vec<_> = VALUE_TYPES.iter().map(|(name, _)| *name).collect();
    let message = format!(
        "there is no metadata type {kind:?}; the types are {}, and lists such as u32[]",
        known.join(", ")
    );
    Error::argument(message)
}

pub(super) fn bytes(text: &str) -> Result<Bytes> {
    let message = || format!("{text:?}: expected pairs of hexadecimal digits");
    let bytes = unhex(text).map(Bytes::from);
    bytes.ok_or_else(|| Error::argument(message()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_a_value_of_its_type_or_is_refused() {
        assert_eq!(parse_value("u32", "7").unwrap(), Value::U32(7));
        let list = Value::List(vec![Value::U8(1), Value::U8(2)].into());
        assert_eq!(parse_value("u8[]", "[1, 2]").unwrap(), list);
        assert!(parse_value("u8", "256").is_err());
    }
}
