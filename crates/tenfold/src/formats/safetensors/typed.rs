//! Metadata that is not text: its text under its own key, and what it was under one key of ours.
//!
//! Other programs find `"llama.context_length": "2048"` and can use it. `tenfold.types` holds a JSON object,
//! `{"llama.context_length":"u32"}`, from which the value comes back as it was. Whoever edits the text edits the value; a
//! text that its type cannot be read from stays text.

use super::TYPES;
use super::raw::{MAX_DEPTH, RULES};
use crate::error::Result;
use crate::format::Fit;
use crate::model::{Metadata, Packer, Value, ValueKind};
use crate::prelude::*;
use crate::wire::json::{self, Json, encode_str};

/// What a value was before it was text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Type {
    One(ValueKind),
    /// A list whose entries are all of one kind.
    List(ValueKind),
    /// A whole number of any length.
    Integer,
    /// What JSON itself tells apart.
    Json,
}

/// Kinds that have a text of their own.
const KINDS: [ValueKind; 12] = [
    ValueKind::Bool,
    ValueKind::U8,
    ValueKind::U16,
    ValueKind::U32,
    ValueKind::U64,
    ValueKind::I8,
    ValueKind::I16,
    ValueKind::I32,
    ValueKind::I64,
    ValueKind::F32,
    ValueKind::F64,
    ValueKind::Str,
];

impl Type {
    /// The type of a value that is not text.
    fn of(value: &Value) -> Self {
        match value {
            Value::Integer(_) => Type::Integer,
            Value::Empty(kind) => Type::List(*kind),
            Value::List(items) => match items.kind() {
                Some(kind) if KINDS.contains(&kind) && !items.is_empty() => Type::List(kind),
                _ => Type::Json,
            },
            value => value.kind().map_or(Type::Json, Type::One),
        }
    }

    fn name(self) -> String {
        match self {
            Type::One(kind) => kind.name().to_owned(),
            Type::List(kind) => format!("{}[]", kind.name()),
            Type::Integer => "integer".to_owned(),
            Type::Json => "json".to_owned(),
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        let kind = |name| KINDS.into_iter().find(|kind| kind.name() == name);
        match name {
            "integer" => Some(Type::Integer),
            "json" => Some(Type::Json),
            name => match name.strip_suffix("[]") {
                Some(name) => kind(name).map(Type::List),
                None => kind(name).map(Type::One),
            },
        }
    }

    /// The value that a text stands for.
    fn read(self, text: &str) -> Option<Value> {
        let kind = match self {
            Type::Integer => {
                let digits = text.strip_prefix('-').unwrap_or(text);
                let is_whole = !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
                return is_whole.then(|| Value::Integer(text.to_owned()));
            }
            Type::One(ValueKind::Str) => return Some(Value::Str(text.to_owned())),
            Type::One(kind) => return number(kind, text),
            Type::Json => return any(text).ok(),
            Type::List(kind) => kind,
        };
        list(kind, text).ok().flatten()
    }
}

/// What becomes of a value.
pub(super) fn fit(key: &str, value: &Value) -> Fit {
    match value {
        // Its text would be taken for types.
        Value::Str(_) if key == TYPES => return Fit::No,
        Value::Str(_) => return Fit::Exact,
        _ => {}
    }
    match text(value) {
        Some(text) if key != TYPES => match Type::of(value).read(&text) {
            Some(back) if back == *value => Fit::Typed,
            _ => Fit::As(Value::Str(text)),
        },
        _ => Fit::No,
    }
}

/// The entries of a header: keys and texts, with the types of those that are not text, in the order of the keys.
pub(super) fn entries(metadata: &Metadata) -> Vec<(&str, String)> {
    let mut types = String::new();
    let mut entries: Vec<_> = metadata
        .iter()
        .filter_map(|(key, value)| {
            if let Value::Str(text) = value {
                return Some((key, text.clone()));
            }
            let text = text(value)?;
            types.push(if types.is_empty() { '{' } else { ',' });
            encode_str(key, &mut types);
            types.push(':');
            encode_str(&Type::of(value).name(), &mut types);
            Some((key, text))
        })
        .collect();
    if !types.is_empty() {
        types.push('}');
        entries.push((TYPES, types));
    }
    entries.sort_by_key(|(key, _)| *key);
    entries
}

/// Gives values the types that they had. What the entry does not name, or what does not fit, stays text.
pub(super) fn restore(metadata: &mut Metadata) {
    let Some(Value::Str(text)) = metadata.get(TYPES) else {
        return;
    };
    let text = text.clone();
    let Ok(types) = types(&text) else {
        return;
    };
    let typed = |(key, value): (&str, &Value)| types.get(key)?.read(value.as_str()?);
    for place in 0..metadata.len() {
        if let Some(value) = metadata.entry_at(place).and_then(typed) {
            metadata.set_at(place, value);
        }
    }
    metadata.remove(TYPES);
}

/// The types by their keys.
fn types(text: &str) -> Result<LookupMap<String, Type>> {
    let mut json = Json::new(text.as_bytes(), 0, MAX_DEPTH, &RULES)?;
    let mut types = LookupMap::new();
    json.object(TYPES)?;
    while let Some(key) = json.key()? {
        // A type of a later version is left alone.
        if let Some(known) = Type::from_name(&json.string("a type")?) {
            types.insert(key.into_owned(), known);
        }
    }
    json.end()?;
    Ok(types)
}

/// A value as text; `None` where it has none.
fn text(value: &Value) -> Option<String> {
    let mut text = String::new();
    match value {
        Value::F32(value) => put_float(*value, &mut text),
        Value::List(items) if items.kind() == Some(ValueKind::F32) => {
            text.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                if let Value::F32(value) = item {
                    put_float(value, &mut text);
                }
            }
            text.push(']');
        }
        value => json::encode(value, &mut text).ok()?,
    }
    Some(text)
}

/// The shortest digits that read back as the same number of 32 bits, in the words of JSON.
fn put_float(value: f32, out: &mut String) {
    use core::fmt::Write;
    // Writing into memory does not fail.
    let _ = match value {
        value if value.is_nan() => out.write_str("NaN"),
        f32::INFINITY => out.write_str("Infinity"),
        f32::NEG_INFINITY => out.write_str("-Infinity"),
        value => write!(out, "{value:?}"),
    };
}

fn any(text: &str) -> Result<Value> {
    let mut json = Json::new(text.as_bytes(), 0, MAX_DEPTH, &RULES)?;
    let value = json.value(&mut |_, _| Ok(()))?;
    json.end()?;
    Ok(value)
}

fn list(kind: ValueKind, text: &str) -> Result<Option<Value>> {
    let mut json = Json::new(text.as_bytes(), 0, MAX_DEPTH, &RULES)?;
    let mut packer = Packer::list();
    let mut is_empty = true;
    json.list("a list")?;
    while json.item()? {
        is_empty = false;
        if kind == ValueKind::Str {
            packer.str(&json.string("text")?);
            continue;
        }
        match number(kind, json.scalar()?) {
            Some(value) => packer.value(&value),
            None => return Ok(None),
        }
    }
    json.end()?;
    Ok(Some(if is_empty {
        Value::Empty(kind)
    } else {
        Value::List(packer.into_list())
    }))
}

/// A number, or true or false, from its text.
fn number(kind: ValueKind, text: &str) -> Option<Value> {
    Some(match kind {
        ValueKind::Bool => Value::Bool(text.parse().ok()?),
        ValueKind::U8 => Value::U8(text.parse().ok()?),
        ValueKind::U16 => Value::U16(text.parse().ok()?),
        ValueKind::U32 => Value::U32(text.parse().ok()?),
        ValueKind::U64 => Value::U64(text.parse().ok()?),
        ValueKind::I8 => Value::I8(text.parse().ok()?),
        ValueKind::I16 => Value::I16(text.parse().ok()?),
        ValueKind::I32 => Value::I32(text.parse().ok()?),
        ValueKind::I64 => Value::I64(text.parse().ok()?),
        ValueKind::F32 => Value::F32(text.parse().ok()?),
        ValueKind::F64 => Value::F64(text.parse().ok()?),
        ValueKind::Str | ValueKind::List => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Map;

    fn back(value: &Value) -> Option<Value> {
        let metadata: Metadata = [("format", Value::Str("pt".into())), ("k", value.clone())]
            .into_iter()
            .collect();
        let mut read: Metadata = (entries(&metadata).into_iter())
            .map(|(key, text)| (key, Value::Str(text)))
            .collect();
        restore(&mut read);
        assert_eq!(read.get("format"), Some(&Value::Str("pt".into())));
        assert_eq!(read.get(TYPES), None);
        read.get("k").cloned()
    }

    #[test]
    fn what_fits_exactly_comes_back_as_it_was() {
        let map: Map = [("a", Value::I64(1)), ("b", Value::Null)]
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        for value in [
            Value::Null,
            Value::Bool(true),
            Value::U8(255),
            Value::U32(2048),
            Value::U64(u64::MAX),
            Value::I8(-128),
            Value::I64(i64::MIN),
            Value::F32(1e-5),
            Value::F32(f32::NEG_INFINITY),
            Value::F64(0.1),
            Value::F64(-0.0),
            Value::Integer("123456789012345678901234567890".into()),
            Value::Str("[1]".into()),
            Value::Empty(ValueKind::F32),
            Value::from(vec![0.1f32, f32::MAX, 1e-45]),
            Value::from(vec!["<s>", "\"\n", ""]),
            Value::from(vec![true, false]),
            Value::from(vec![1u16, 2]),
            Value::List(vec![Value::I64(1), Value::Str("a".into())].into()),
            Value::Map(map),
        ] {
            let expected = match value {
                Value::Str(_) => Fit::Exact,
                _ => Fit::Typed,
            };
            assert_eq!(fit("k", &value), expected, "{value:?}");
            assert_eq!(back(&value), Some(value));
        }
    }

    #[test]
    fn what_json_cannot_tell_apart_is_said_to_change() {
        let mixed = Value::List(vec![Value::U8(1), Value::Str("a".into())].into());
        assert_eq!(fit("k", &mixed), Fit::As(Value::Str("[1,\"a\"]".into())));
        assert_eq!(
            fit("k", &Value::Bytes(bytes::Bytes::from_static(b"x"))),
            Fit::No
        );
        assert_eq!(fit(TYPES, &Value::Str("{}".into())), Fit::No);
    }

    #[test]
    fn numbers_have_their_shortest_digits() {
        assert_eq!(text(&Value::F32(1e-5)).as_deref(), Some("1e-5"));
        let list = Value::from(vec![0.1f32, 2.0]);
        assert_eq!(text(&list).as_deref(), Some("[0.1,2.0]"));
    }

    #[test]
    fn what_does_not_fit_its_type_stays_text() {
        let read = |types: &str| {
            let mut metadata = Metadata::new();
            metadata.push("k", Value::Str("300".into()));
            metadata.push(TYPES, Value::Str(types.into()));
            restore(&mut metadata);
            (metadata.get("k").cloned(), metadata.len())
        };
        let text = Some(Value::Str("300".into()));
        assert_eq!(read("{\"k\":\"u16\"}"), (Some(Value::U16(300)), 1));
        assert_eq!(read("{\"k\":\"u8\"}"), (text.clone(), 1));
        assert_eq!(read("{\"k\":\"u128\"}"), (text.clone(), 1));
        assert_eq!(read("{\"k\":\"u16[]\"}"), (text.clone(), 1));
        // It is not an entry of ours.
        assert_eq!(read("no JSON"), (text, 2));
    }
}
