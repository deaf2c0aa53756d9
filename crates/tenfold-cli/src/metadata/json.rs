//! Metadata as JSON that says the types.
//!
//! Text, true and false, null, signed 64-bit integers, 64-bit floats, lists of these and maps are written as JSON has
//! them. What has another type is an object with one key: `{"$u32": 7}`, `{"$f32": [0.5, "NaN"]}`, `{"$bytes": "00ff"}`,
//! `{"$cbor": "d8…"}`; a map whose only key begins with `$` is `{"$map": …}`.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::fmt;
use std::io::{self, Write};

use serde::de::{self, MapAccess, Visitor};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use tenfold::documents::ShownValue;
use tenfold::model::{Encoding, List, Map, Metadata, Value, ValueKind};
use tenfold::{Error, Result};

use super::typed::{self, kind_of};
use crate::json;

/// Nesting that is read, at most.
const DEPTH: usize = 64;

/// Keys and values from JSON: an object, with types as [`write_metadata`] writes them where there are any.
pub(crate) fn read_metadata(text: &str) -> Result<Metadata> {
    let Value::Map(entries) = read_plain(text)? else {
        let message = "expected a JSON object of keys and values";
        return Err(Error::argument(message));
    };
    let mut metadata = Metadata::new();
    for (key, value) in entries.iter() {
        metadata.push(key, typed(value)?);
    }
    Ok(metadata)
}

/// One value, with the types that it says.
pub(crate) fn read_json(text: &str) -> Result<Value> {
    typed(read_plain(text)?)
}

/// One value as JSON has it.
fn read_plain(text: &str) -> Result<Value> {
    plain(parse(text)?, 0)
}

fn parse<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T> {
    serde_json::from_str(text).map_err(|cause| Error::argument(format!("not JSON: {cause}")))
}

/// Whole numbers keep every digit, and others are those that are nearest to their digits.
fn plain(raw: &RawValue, depth: usize) -> Result<Value> {
    let text = raw.get();
    if depth > DEPTH {
        let message = format!("the JSON is nested deeper than {DEPTH} levels");
        return Err(Error::argument(message));
    }
    match text.as_bytes() {
        [b'{', ..] => {
            let Entries(entries) = parse(text)?;
            let entries = entries.into_iter();
            let entries = entries.map(|(key, value)| Ok((key, plain(value, depth + 1)?)));
            entries.collect::<Result<_>>().map(Value::Map)
        }
        [b'[', ..] => {
            let items: Vec<&RawValue> = parse(text)?;
            let items = items.into_iter().map(|item| plain(item, depth + 1));
            items.collect::<Result<_>>().map(Value::List)
        }
        [b'"', ..] => parse(text).map(Value::Str),
        b"null" => Ok(Value::Null),
        b"true" | b"false" => parse(text).map(Value::Bool),
        _ if text.contains(['.', 'e', 'E']) => match text.parse() {
            Ok(value) => Ok(Value::F64(value)),
            Err(_) => Err(Error::argument(format!("not a number: {text}"))),
        },
        _ => Ok(match (text.parse(), text.parse()) {
            (Ok(value), _) => Value::I64(value),
            (_, Ok(value)) => Value::U64(value),
            _ => Value::Integer(text.to_owned()),
        }),
    }
}

/// The keys and values of an object, in its order.
struct Entries<'t>(Vec<(String, &'t RawValue)>);

impl<'t> Deserialize<'t> for Entries<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'t> Visitor<'t> for Collect {
            type Value = Entries<'t>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries: Vec<(String, &RawValue)> = Vec::new();
                let mut known = HashSet::new();
                while let Some((key, value)) = map.next_entry::<String, _>()? {
                    if !known.insert(key.clone()) {
                        let message = format!("the key {key:?} appears twice");
                        return Err(de::Error::custom(message));
                    }
                    entries.push((key, value));
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(Collect)
    }
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
        ("bytes", Value::Str(hex)) => typed::bytes(hex).map(Value::Bytes),
        ("cbor", Value::Str(hex)) => Ok(Value::Encoded {
            encoding: Encoding::Cbor,
            bytes: typed::bytes(hex)?,
        }),
        ("map", Value::Map(entries)) => map(entries),
        _ => {
            let message = format!(
                "{{{key:?}: …}} is not known; a number with a type is {{\"$u32\": 7}}, bytes are {{\"$bytes\": \
                \"00ff\"}}"
            );
            Err(Error::argument(message))
        }
    }
}

/// Writes metadata as JSON, a key on every line, with the types that [`read_metadata`] gives back. Facts of the file are
/// left out: the file that takes the metadata has its own.
pub(crate) fn write_metadata(metadata: &Metadata, out: &mut dyn Write) -> io::Result<()> {
    struct Document<'a>(&'a Metadata);

    impl Serialize for Document<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let entries = self.0.entries().filter(|(_, _, is_fact)| !is_fact);
            serializer.collect_map(entries.map(|(key, value, _)| (key, Typed(value))))
        }
    }

    json::write_keys(out, &Document(metadata))?;
    writeln!(out)
}

/// A value that says its type.
struct Typed<V>(V);

impl<V: Borrow<Value>> Serialize for Typed<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = self.0.borrow();
        match value {
            Value::Empty(kind) if *kind != ValueKind::List => {
                serializer.collect_map([(format!("${}", kind.name()), [(); 0])])
            }
            Value::Map(entries) => {
                let looks_typed = match entries.iter().next() {
                    Some((key, _)) => entries.len() == 1 && key.starts_with('$'),
                    None => false,
                };
                if looks_typed {
                    serializer.collect_map([("$map", Inner(entries))])
                } else {
                    Inner(entries).serialize(serializer)
                }
            }
            Value::List(items) => match items.kind().filter(|_| !items.iter().all(is_plain)) {
                // Its type is said once.
                Some(kind) => {
                    serializer.collect_map([(format!("${}", kind.name()), Numbers(items))])
                }
                None => serializer.collect_seq(items.iter().map(Typed)),
            },
            Value::U64(number) if i64::try_from(*number).is_err() => {
                serializer.serialize_u64(*number)
            }
            Value::Elsewhere(_) => Err(S::Error::custom("a list that is not loaded")),
            value => match value.kind() {
                Some(kind) if !is_plain(value) => {
                    serializer.collect_map([(format!("${}", kind.name()), Number(value))])
                }
                _ => ShownValue::new(value, true).serialize(serializer),
            },
        }
    }
}

/// Whether JSON has a form for it, and for nothing else that this form could be.
fn is_plain(value: impl Borrow<Value>) -> bool {
    match value.borrow() {
        Value::F64(number) => number.is_finite(),
        value => matches!(
            value.kind(),
            None | Some(ValueKind::Bool | ValueKind::I64 | ValueKind::Str)
        ),
    }
}

struct Inner<'a>(&'a Map);

impl Serialize for Inner<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = self.0.iter();
        serializer.collect_map(entries.map(|(key, value)| (key, Typed(value))))
    }
}

struct Numbers<'a>(&'a List);

impl Serialize for Numbers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Number))
    }
}

/// The shortest digits that lead back to the same number of its type; text for what JSON has no number for.
struct Number<V>(V);

impl<V: Borrow<Value>> Serialize for Number<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.borrow() {
            Value::F32(number) if number.is_finite() => serializer.serialize_f32(*number),
            Value::F32(number) => serializer.collect_str(&format_args!("{number:?}")),
            Value::F64(number) if !number.is_finite() => {
                serializer.collect_str(&format_args!("{number:?}"))
            }
            value => ShownValue::new(value, true).serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: Value) -> String {
        let mut out = Vec::new();
        write_metadata(&entry(value), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

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
            Value::Integer("9".repeat(100)),
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
            let text = written(value.clone());
            let back = read_metadata(&text).unwrap();
            assert_eq!(back, entry(value), "{text}");
        }
    }

    #[test]
    fn numbers_that_are_not_finite_come_back() {
        let nan = Value::List(vec![Value::F32(f32::NAN), Value::F32(1.0)].into());
        let text = written(nan.clone());
        assert_eq!(text, "{\n  \"k\": {\"$f32\": [\"NaN\", 1.0]}\n}\n");
        let back = read_metadata(&text).unwrap();
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
            "{\"a\": {\"b\": 1, \"b\": 2}}",
            "{\"a\": NaN}",
            &format!("{}{}", "[".repeat(100), "]".repeat(100)),
        ] {
            assert!(read_metadata(wrong).is_err(), "{wrong}");
        }
    }
}
