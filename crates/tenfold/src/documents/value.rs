//! Metadata and numbers.

use core::borrow::Borrow;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::digest::Hex;
use crate::model::{List, Metadata, Value};
use crate::ops::Number;
use crate::prelude::*;

/// Lists of more entries are shortened, unless all of them are asked for.
const LONG: usize = 64;

/// How `serde_json`'s `RawValue` asks to be written as it is, which keeps the digits of integers that no type of Rust holds.
const RAW: &str = "$serde_json::private::RawValue";

/// Metadata as an object of keys and values.
#[derive(Clone, Copy, Debug)]
pub struct ShownMetadata<'a> {
    metadata: &'a Metadata,
    full: bool,
}

impl<'a> ShownMetadata<'a> {
    /// Lists of more than 64 entries are only counted, unless `full`.
    pub fn new(metadata: &'a Metadata, full: bool) -> Self {
        Self { metadata, full }
    }
}

impl Serialize for ShownMetadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = self.metadata.iter();
        serializer.collect_map(entries.map(|(key, value)| (key, ShownValue::new(value, self.full))))
    }
}

/// One value of metadata: without its type, where JSON has no form for that.
#[derive(Clone, Copy, Debug)]
pub struct ShownValue<V> {
    value: V,
    full: bool,
}

impl<V: Borrow<Value>> ShownValue<V> {
    /// Lists of more than 64 entries are only counted, unless `full`.
    pub fn new(value: V, full: bool) -> Self {
        Self { value, full }
    }
}

impl<V: Borrow<Value>> Serialize for ShownValue<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let full = self.full;
        match self.value.borrow() {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::U8(value) => serializer.serialize_u8(*value),
            Value::U16(value) => serializer.serialize_u16(*value),
            Value::U32(value) => serializer.serialize_u32(*value),
            Value::U64(value) => serializer.serialize_u64(*value),
            Value::I8(value) => serializer.serialize_i8(*value),
            Value::I16(value) => serializer.serialize_i16(*value),
            Value::I32(value) => serializer.serialize_i32(*value),
            Value::I64(value) => serializer.serialize_i64(*value),
            // So few digits identify a number among the f32 only, and readers of JSON have f64.
            Value::F32(value) if value.is_finite() && !value.is_subnormal() => {
                serializer.serialize_f32(*value)
            }
            Value::F32(value) => Float((*value).into()).serialize(serializer),
            Value::F64(value) => Float(*value).serialize(serializer),
            Value::Integer(digits) => match (digits.parse(), digits.parse()) {
                (Ok(value), _) => serializer.serialize_i128(value),
                (_, Ok(value)) => serializer.serialize_u128(value),
                _ => {
                    let mut raw = serializer.serialize_struct(RAW, 1)?;
                    raw.serialize_field(RAW, digits)?;
                    raw.end()
                }
            },
            Value::Str(text) => serializer.serialize_str(text),
            Value::Bytes(bytes) => said(serializer, "bytes", bytes),
            Value::Encoded { encoding, bytes } => said(serializer, encoding.name(), bytes),
            Value::List(items) if items.len() > LONG && !full => Counted {
                count: items.len() as u64,
                of: common_type(items),
            }
            .serialize(serializer),
            Value::Elsewhere(list) => Counted {
                count: list.count,
                of: list.kind.name(),
            }
            .serialize(serializer),
            Value::List(items) => {
                serializer.collect_seq(items.iter().map(|item| ShownValue::new(item, full)))
            }
            Value::Empty(_) => serializer.collect_seq::<[(); 0]>([]),
            Value::Map(entries) => {
                let entries = entries.iter();
                serializer
                    .collect_map(entries.map(|(key, value)| (key, ShownValue::new(value, full))))
            }
        }
    }
}

/// `{"$NAME": "00ff"}`
fn said<S: Serializer>(serializer: S, name: &str, bytes: &[u8]) -> Result<S::Ok, S::Error> {
    serializer.collect_map([(format!("${name}"), Digits(Hex(bytes)))])
}

/// Bytes as hexadecimal digits.
pub(super) struct Digits<'a>(pub(super) Hex<'a>);

impl Serialize for Digits<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// A list that is not shown.
#[derive(Serialize)]
struct Counted {
    #[serde(rename = "$array")]
    count: u64,
    of: &'static str,
}

/// The type that all items have.
fn common_type(items: &List) -> &'static str {
    if let Some(kind) = items.kind() {
        return kind.name();
    }
    let mut types = items.iter().map(|item| item.type_name());
    let first = types.next().unwrap_or("mixed");
    if types.all(|name| name == first) {
        first
    } else {
        "mixed"
    }
}

/// A floating-point number.
#[derive(Debug)]
pub(super) struct Float(pub(super) f64);

impl Serialize for Float {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() {
            serializer.serialize_f64(self.0)
        } else if self.0.is_nan() {
            serializer.serialize_str("NaN")
        } else if self.0 > 0.0 {
            serializer.serialize_str("Infinity")
        } else {
            serializer.serialize_str("-Infinity")
        }
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Number::Float(value) => Float(value).serialize(serializer),
            Number::Signed(value) => serializer.serialize_i128(value),
            Number::Unsigned(value) => serializer.serialize_u128(value),
        }
    }
}
