//! Metadata as JSON that says the types.
//!
//! Text, true and false, null, signed 64-bit integers, 64-bit floats, lists of these and maps are written as JSON has
//! them. What has another type is an object with one key: `{"$u32": 7}`, `{"$f32": [0.5, "NaN"]}`, `{"$bytes": "00ff"}`,
//! `{"$cbor": "d8…"}`; a map whose only key begins with `$` is `{"$map": …}`.

use core::fmt::Write;

use super::typed::{self, kind_of};
use crate::error::{Error, Result};
use crate::model::{Encoding, List, Map, Metadata, Value, ValueKind};
use crate::prelude::*;
use crate::wire::json::{self, Json, Rules};

/// Nesting that is read, at most.
const DEPTH: usize = 64;

const RULES: Rules = Rules {
    syntax: "json.syntax",
    text: "json.text",
    depth: "json.depth",
};

/// Metadata as JSON, a key on every line, with the types that [`metadata_from_json`] gives back. Facts of the file are
/// left out: the file that takes the metadata has its own.
///
/// Lists that are not loaded, see [`Archive::load_metadata`](crate::Archive::load_metadata), are an error.
pub fn metadata_to_json(metadata: &Metadata) -> Result<String> {
    let mut text = String::new();
    write_metadata_json::<Error>(metadata, &mut |piece| {
        text.push_str(piece);
        Ok(())
    })?;
    Ok(text)
}

/// The same in pieces, for text that may be long.
pub fn write_metadata_json<E: From<Error>>(
    metadata: &Metadata,
    write: &mut dyn FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let mut out = Pieces {
        text: String::from("{"),
        write,
    };
    let mut any = false;
    for (key, value, _) in metadata.entries().filter(|(_, _, is_fact)| !is_fact) {
        out.text.push_str(if any { ",\n  " } else { "\n  " });
        any = true;
        put_text(key, &mut out)?;
        out.text.push_str(": ");
        put(value, &mut out)?;
    }
    out.text.push_str(if any { "\n}\n" } else { "}\n" });
    (out.write)(&out.text)
}

/// Text that is passed on as it grows long.
struct Pieces<'w, E> {
    text: String,
    write: &'w mut dyn FnMut(&str) -> Result<(), E>,
}

impl<E> Pieces<'_, E> {
    fn pass_on(&mut self) -> Result<(), E> {
        if self.text.len() > 1 << 13 {
            (self.write)(&self.text)?;
            self.text.clear();
        }
        Ok(())
    }
}

/// Keys and values from JSON: an object, with types as [`metadata_to_json`] writes them where there are any.
pub fn metadata_from_json(text: &str) -> Result<Metadata> {
    match raw(text)? {
        Value::Map(entries) => Metadata::from(&entries).try_map(|value| typed(value.clone())),
        _ => Err(Error::argument(
            "a JSON object of keys and values is expected",
        )),
    }
}

/// One value.
pub(super) fn read(text: &str) -> Result<Value> {
    typed(raw(text)?)
}

fn raw(text: &str) -> Result<Value> {
    let wrong = |error: Error| match error.range() {
        Some((_, range)) => Error::argument(format!(
            "JSON: {} (at byte {})",
            error.message(),
            range.start
        )),
        None => Error::argument(format!("JSON: {}", error.message())),
    };
    let mut json = Json::new(text.as_bytes(), 0, DEPTH, &RULES).map_err(wrong)?;
    let value = json.value(&mut |key, _| {
        let message = format!("the key {key:?} is there twice");
        Err(Error::malformed("json.syntax", message))
    });
    let value = value.map_err(wrong)?;
    json.end().map_err(wrong)?;
    Ok(value)
}

/// Gives what was read the types that it says.
fn typed(value: Value) -> Result<Value> {
    match value {
        Value::List(items) => items
            .iter()
            .map(typed)
            .collect::<Result<_>>()
            .map(Value::List),
        Value::Map(entries) => {
            let mut only = entries.iter();
            match (only.next(), only.next()) {
                (Some((key, inner)), None) if key.starts_with('$') => said(key, &inner),
                _ => map(&entries),
            }
        }
        value => Ok(value),
    }
}

fn map(entries: &Map) -> Result<Value> {
    let entries = entries.iter();
    let entries = entries.map(|(key, value)| Ok((key, typed(value)?)));
    entries.collect::<Result<_>>().map(Value::Map)
}

/// `{"$KEY": inner}`
fn said(key: &str, inner: &Value) -> Result<Value> {
    let name = key.trim_start_matches('$');
    if let Some(of) = kind_of(name) {
        return match inner {
            Value::List(_) => typed::list(inner.clone(), of),
            inner => typed::number(of, inner),
        };
    }
    match (name, inner) {
        ("bytes", Value::Str(hex)) => typed::unhex(hex).map(Value::Bytes),
        ("cbor", Value::Str(hex)) => Ok(Value::Encoded {
            encoding: Encoding::Cbor,
            bytes: typed::unhex(hex)?,
        }),
        ("map", Value::Map(entries)) => map(entries),
        _ => {
            let message = format!(
                "{{{key:?}: …}} is not known; a number of a type is {{\"$u32\": 7}}, bytes are {{\"$bytes\": \"00ff\"}}"
            );
            Err(Error::argument(message))
        }
    }
}

fn put<E: From<Error>>(value: &Value, out: &mut Pieces<'_, E>) -> Result<(), E> {
    let text = &mut out.text;
    match value {
        Value::Null | Value::Bool(_) | Value::I64(_) | Value::Integer(_) => {
            json::encode(value, text)?;
        }
        Value::Str(text) => put_text(text, out)?,
        Value::F64(number) if number.is_finite() => json::encode(value, text)?,
        Value::U64(number) if i64::try_from(*number).is_err() => json::encode(value, text)?,
        Value::Bytes(bytes) => put_hex("bytes", bytes, out)?,
        Value::Encoded { encoding, bytes } => put_hex(encoding.name(), bytes, out)?,
        Value::Empty(ValueKind::List) => text.push_str("[]"),
        Value::Empty(kind) => put_typed(kind.name(), text, |out| out.push_str("[]")),
        Value::Map(entries) => put_map(entries, out)?,
        Value::List(items) => put_list(items, out)?,
        Value::Elsewhere(_) => return Err(Error::argument("a list that is not loaded").into()),
        number => match number.kind() {
            Some(kind) => put_typed(kind.name(), text, |out| put_number(number, out)),
            None => return Err(Error::argument(format!("JSON cannot hold {number:?}")).into()),
        },
    }
    out.pass_on()
}

fn put_map<E: From<Error>>(entries: &Map, out: &mut Pieces<'_, E>) -> Result<(), E> {
    let mut keys = entries.iter().map(|(key, _)| key);
    let looks_typed = entries.len() == 1 && keys.next().is_some_and(|key| key.starts_with('$'));
    out.text
        .push_str(if looks_typed { "{\"$map\": {" } else { "{" });
    for (index, (key, value)) in entries.iter().enumerate() {
        out.text.push_str(if index == 0 { "" } else { ", " });
        put_text(key, out)?;
        out.text.push_str(": ");
        put(&value, out)?;
    }
    out.text.push_str(if looks_typed { "}}" } else { "}" });
    Ok(())
}

fn put_list<E: From<Error>>(items: &List, out: &mut Pieces<'_, E>) -> Result<(), E> {
    let plain = |item: Value| match item {
        Value::F64(number) => number.is_finite(),
        item => matches!(
            item.kind(),
            None | Some(ValueKind::Bool | ValueKind::I64 | ValueKind::Str)
        ),
    };
    // Its type is said once.
    if let Some(kind) = items.kind().filter(|_| !items.iter().all(plain)) {
        out.text.push_str(&format!("{{\"${}\": [", kind.name()));
        for (index, item) in items.iter().enumerate() {
            out.text.push_str(if index == 0 { "" } else { ", " });
            put_number(&item, &mut out.text);
            out.pass_on()?;
        }
        out.text.push_str("]}");
        return Ok(());
    }
    out.text.push('[');
    for (index, item) in items.iter().enumerate() {
        out.text.push_str(if index == 0 { "" } else { ", " });
        put(&item, out)?;
    }
    out.text.push(']');
    Ok(())
}

fn put_typed(name: &str, out: &mut String, put: impl FnOnce(&mut String)) {
    out.push_str(&format!("{{\"${name}\": "));
    put(out);
    out.push('}');
}

/// The shortest digits that lead back to the same number of its type; text for what JSON has no number for.
fn put_number(value: &Value, out: &mut String) {
    let text = match value {
        Value::F32(number) => format!("{number:?}"),
        Value::F64(number) => format!("{number:?}"),
        value => match (value.as_i64(), value.as_u64()) {
            (Some(number), _) => number.to_string(),
            (_, Some(number)) => number.to_string(),
            _ => String::new(),
        },
    };
    match text.ends_with(|c: char| c.is_ascii_digit()) {
        true => out.push_str(&text),
        false => json::encode_str(&text, out),
    }
}

fn put_hex<E>(name: &str, bytes: &[u8], out: &mut Pieces<'_, E>) -> Result<(), E> {
    // Writing into memory does not fail.
    let _ = write!(out.text, "{{\"${name}\": \"");
    for byte in bytes {
        let _ = write!(out.text, "{byte:02x}");
        out.pass_on()?;
    }
    out.text.push_str("\"}");
    Ok(())
}

fn put_text<E>(text: &str, out: &mut Pieces<'_, E>) -> Result<(), E> {
    out.text.push('"');
    let mut rest = text;
    while !rest.is_empty() {
        let cut = rest.char_indices().nth(1 << 10);
        let (piece, behind) = rest.split_at(cut.map_or(rest.len(), |(at, _)| at));
        json::escape(piece, &mut out.text);
        out.pass_on()?;
        rest = behind;
    }
    out.text.push('"');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(value: Value) -> Metadata {
        [("k".to_owned(), value)].into_iter().collect()
    }

    #[test]
    fn every_type_comes_back() {
        let map = |key: &str, value: Value| -> Value {
            Value::Map([(key.to_owned(), value)].into_iter().collect())
        };
        for value in [
            Value::Null,
            Value::Bool(true),
            Value::U8(255),
            Value::I8(-128),
            Value::U16(1),
            Value::I16(-1),
            Value::U32(u32::MAX),
            Value::I32(i32::MIN),
            Value::I64(i64::MIN),
            Value::U64(7),
            Value::U64(u64::MAX),
            Value::Integer("123456789012345678901234567890".into()),
            Value::F32(0.1),
            Value::F32(f32::INFINITY),
            Value::F64(0.1),
            Value::F64(-0.0),
            Value::F64(f64::NEG_INFINITY),
            Value::Str("\u{0}\"é".into()),
            Value::Bytes(vec![0, 255].into()),
            Value::Encoded {
                encoding: Encoding::Cbor,
                bytes: vec![0xc0].into(),
            },
            Value::List(vec![].into()),
            Value::Empty(ValueKind::U16),
            Value::Empty(ValueKind::Str),
            Value::List(vec![Value::F32(1.5), Value::F32(-2.0)].into()),
            Value::List(vec![Value::U8(1), Value::U16(2), Value::Null].into()),
            Value::List(vec![Value::Bool(false), Value::Bool(true)].into()),
            Value::List(
                vec![
                    Value::List(vec![Value::U8(1)].into()),
                    Value::List(List::new()),
                ]
                .into(),
            ),
            map("a", Value::U8(1)),
            map("$u8", Value::U8(1)),
            map("$u8", Value::Str("x".into())),
            Value::Map(Map::new()),
        ] {
            let text = metadata_to_json(&entry(value.clone())).unwrap();
            let back = metadata_from_json(&text).unwrap();
            assert_eq!(back, entry(value), "{text}");
        }
    }

    #[test]
    fn numbers_that_are_not_finite_come_back() {
        let nan = Value::List(vec![Value::F32(f32::NAN), Value::F32(1.0)].into());
        let text = metadata_to_json(&entry(nan.clone())).unwrap();
        assert_eq!(text, "{\n  \"k\": {\"$f32\": [\"NaN\", 1.0]}\n}\n");
        let back = metadata_from_json(&text).unwrap();
        assert_eq!(format!("{back:?}"), format!("{:?}", entry(nan)));
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for wrong in [
            "",
            "[]",
            "{\"a\": 1, \"a\": 2}",
            "{\"a\": {\"$u8\": 256}}",
            "{\"a\": {\"$u8\": -1}}",
            "{\"a\": {\"$u8\": 1.5}}",
            "{\"a\": {\"$u8\": \"1\"}}",
            "{\"a\": {\"$u8\": [1, \"x\"]}}",
            "{\"a\": {\"$f32\": 1e60}}",
            "{\"a\": {\"$what\": 1}}",
            "{\"a\": {\"$bytes\": \"0\"}}",
            "{\"a\": {\"$bytes\": \"0g\"}}",
            "{} {}",
        ] {
            assert!(metadata_from_json(wrong).is_err(), "{wrong}");
        }
    }
}
