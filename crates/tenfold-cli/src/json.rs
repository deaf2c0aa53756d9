//! JSON, written as it goes: nothing is held in memory, numbers may have any length.

use std::fmt::Display;
use std::io::{self, Write};
use std::ops::Range;

use tenfold::format::Loss;
use tenfold::model::{List, Metadata, Value};
use tenfold::ops::Number;

use crate::output::is_unsafe;

/// Arrays of more entries are shortened, unless all of them are asked for.
const LONG: usize = 64;

/// Values of metadata with more characters are cut in listings.
const LONG_VALUE: usize = 100;

/// A value of metadata in one line, cut where it is long.
pub(crate) fn short_value(value: &Value) -> String {
    let mut text = Beginning::default();
    // Writing to memory does not fail.
    let _ = Json::new(&mut text).value(value, false);
    match text.more {
        0 => text.shown(),
        _ => format!("{}…", text.shown()),
    }
}

/// The beginning of a text in one line, and how much more there is of it.
#[derive(Default)]
pub(crate) struct Beginning {
    bytes: Vec<u8>,
    characters: usize,
    /// Characters that are not in it.
    pub(crate) more: usize,
}

impl Beginning {
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

impl Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for &byte in bytes {
            // All but the further bytes of a character of UTF-8.
            if byte & 0xc0 != 0x80 {
                self.characters += 1;
                self.more += usize::from(self.characters > LONG_VALUE);
            }
            if self.more == 0 {
                self.bytes.push(byte);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes one JSON document.
///
/// Characters that a terminal would act on are escaped, which JSON allows for every character.
pub(crate) struct Json<'a> {
    out: &'a mut dyn Write,
    /// Nothing has been written yet in the object or array that is open.
    first: bool,
}

impl<'a> Json<'a> {
    pub(crate) fn new(out: &'a mut dyn Write) -> Self {
        Self { out, first: true }
    }

    /// An object, whose entries `fill` begins with [`key`](Self::key) and its like.
    pub(crate) fn object(
        &mut self,
        fill: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        self.nested(b'{', b'}', fill)
    }

    /// An array, whose entries `fill` begins with [`entry`](Self::entry) or [`line`](Self::line).
    pub(crate) fn array(
        &mut self,
        fill: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        self.nested(b'[', b']', fill)
    }

    fn nested(
        &mut self,
        open: u8,
        close: u8,
        fill: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        self.out.write_all(&[open])?;
        self.first = true;
        fill(self)?;
        self.first = false;
        self.out.write_all(&[close])
    }

    /// Begins an entry of an array.
    pub(crate) fn entry(&mut self) -> io::Result<&mut Self> {
        if !std::mem::replace(&mut self.first, false) {
            self.out.write_all(b", ")?;
        }
        Ok(self)
    }

    /// Begins an entry of an array on a line of its own, for arrays of records.
    pub(crate) fn line(&mut self) -> io::Result<&mut Self> {
        let separator: &[u8] = if std::mem::replace(&mut self.first, false) {
            b"\n"
        } else {
            b",\n"
        };
        self.out.write_all(separator)?;
        Ok(self)
    }

    /// Begins an entry of an object.
    pub(crate) fn key(&mut self, key: &str) -> io::Result<&mut Self> {
        self.entry()?.string(key)?;
        self.out.write_all(b": ")?;
        Ok(self)
    }

    /// An entry that is text, or null.
    pub(crate) fn text(&mut self, key: &str, text: Option<&str>) -> io::Result<()> {
        match text {
            Some(text) => self.key(key)?.string(text),
            None => self.key(key)?.null(),
        }
    }

    /// An entry that is a number, or null.
    pub(crate) fn number(&mut self, key: &str, number: Option<u64>) -> io::Result<()> {
        match number {
            Some(number) => self.key(key)?.plain(number),
            None => self.key(key)?.null(),
        }
    }

    /// An entry that is an array of texts.
    pub(crate) fn texts<T: AsRef<str>>(
        &mut self,
        key: &str,
        texts: impl IntoIterator<Item = T>,
    ) -> io::Result<()> {
        self.key(key)?.array(|json| {
            texts
                .into_iter()
                .try_for_each(|text| json.entry()?.string(text.as_ref()))
        })
    }

    /// An entry that is a range of bytes, its end excluded, or null.
    pub(crate) fn range(&mut self, key: &str, range: Option<Range<u64>>) -> io::Result<()> {
        match range {
            Some(range) => self.key(key)?.array(|json| {
                json.entry()?.plain(range.start)?;
                json.entry()?.plain(range.end)
            }),
            None => self.key(key)?.null(),
        }
    }

    /// An entry that says what is lost.
    pub(crate) fn losses(&mut self, key: &str, losses: &[Loss]) -> io::Result<()> {
        self.key(key)?.array(|json| {
            losses.iter().try_for_each(|loss| {
                json.line()?.object(|json| {
                    json.text("tensor", loss.tensor.as_deref())?;
                    json.text("what", Some(&loss.what))?;
                    json.text("why", Some(&loss.why))?;
                    json.text("effect", Some(&loss.effect.to_string()))
                })
            })
        })
    }

    pub(crate) fn null(&mut self) -> io::Result<()> {
        self.plain("null")
    }

    /// What is JSON already: a number, true, false, null.
    pub(crate) fn plain(&mut self, token: impl Display) -> io::Result<()> {
        write!(self.out, "{token}")
    }

    /// A floating-point number; one that JSON does not have, as text.
    pub(crate) fn float(&mut self, value: f64) -> io::Result<()> {
        match value.is_finite() {
            true => self.plain(format_args!("{value:?}")),
            false => self.string(not_finite(value)),
        }
    }

    /// A number of a tensor; integers with all of their digits.
    pub(crate) fn exact(&mut self, number: Number) -> io::Result<()> {
        match number {
            Number::Float(value) => self.float(value),
            integer => self.plain(integer),
        }
    }

    pub(crate) fn string(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(b"\"")?;
        let mut rest = text;
        while let Some(at) = rest.find(|c| c == '"' || c == '\\' || is_unsafe(c)) {
            let (safe, tail) = rest.split_at(at);
            self.out.write_all(safe.as_bytes())?;
            let mut chars = tail.chars();
            match chars.next() {
                Some('"') => self.out.write_all(b"\\\"")?,
                Some('\\') => self.out.write_all(b"\\\\")?,
                Some('\n') => self.out.write_all(b"\\n")?,
                Some('\t') => self.out.write_all(b"\\t")?,
                Some(c) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        write!(self.out, "\\u{unit:04x}")?;
                    }
                }
                None => {}
            }
            rest = chars.as_str();
        }
        self.out.write_all(rest.as_bytes())?;
        self.out.write_all(b"\"")
    }

    /// Text of lower-case hexadecimal digits.
    fn hex(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(b"\"")?;
        for piece in bytes.chunks(4096) {
            self.out.write_all(hex(piece).as_bytes())?;
        }
        self.out.write_all(b"\"")
    }

    /// Metadata as an object. Lists of more than 64 entries are only counted unless `full`.
    pub(crate) fn metadata(&mut self, metadata: &Metadata, full: bool) -> io::Result<()> {
        self.object(|json| {
            metadata
                .iter()
                .try_for_each(|(key, value)| json.key(key)?.value(value, full))
        })
    }

    /// One value of metadata.
    pub(crate) fn value(&mut self, value: &Value, full: bool) -> io::Result<()> {
        match value {
            Value::Null => self.null(),
            Value::Bool(value) => self.plain(value),
            Value::U8(value) => self.plain(value),
            Value::U16(value) => self.plain(value),
            Value::U32(value) => self.plain(value),
            Value::U64(value) => self.plain(value),
            Value::I8(value) => self.plain(value),
            Value::I16(value) => self.plain(value),
            Value::I32(value) => self.plain(value),
            Value::I64(value) => self.plain(value),
            // So few digits identify a number among the f32 only, and readers of JSON have f64.
            Value::F32(value) if value.is_subnormal() => {
                self.value(&Value::F64((*value).into()), full)
            }
            Value::F32(value) if value.is_finite() => self.plain(format_args!("{value:?}")),
            Value::F32(value) => self.float((*value).into()),
            Value::F64(value) => self.float(*value),
            Value::Integer(digits) => self.plain(digits),
            Value::Str(text) => self.string(text),
            Value::Bytes(bytes) => self.object(|json| json.key("$bytes")?.hex(bytes)),
            Value::List(items) if items.len() > LONG && !full => self.object(|json| {
                json.number("$array", Some(items.len() as u64))?;
                json.text("of", Some(common_kind(items)))
            }),
            Value::List(items) => self.array(|json| {
                items
                    .iter()
                    .try_for_each(|item| json.entry()?.value(&item, full))
            }),
            Value::Empty(_) => self.array(|_| Ok(())),
            Value::Elsewhere(list) => self.object(|json| {
                json.number("$array", Some(list.count))?;
                json.text("of", Some(list.kind.name()))
            }),
            Value::Map(entries) => self.object(|json| {
                entries
                    .iter()
                    .try_for_each(|(key, value)| json.key(key)?.value(&value, full))
            }),
            Value::Encoded { encoding, bytes } => {
                self.object(|json| json.key(&format!("${}", encoding.name()))?.hex(bytes))
            }
            // A kind that a later version of the library adds: at least it is visible.
            other => self.string(&format!("{other:?}")),
        }
    }
}

/// JSON has no such numbers.
fn not_finite(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// The kind that all items have.
fn common_kind(items: &List) -> &'static str {
    if let Some(kind) = items.kind() {
        return kind.name();
    }
    let mut kinds = items.iter().map(|item| kind(&item));
    let first = kinds.next().unwrap_or("mixed");
    if kinds.all(|kind| kind == first) {
        first
    } else {
        "mixed"
    }
}

/// The name of a value's type.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::U8(_) => "u8",
        Value::U16(_) => "u16",
        Value::U32(_) => "u32",
        Value::U64(_) => "u64",
        Value::I8(_) => "i8",
        Value::I16(_) => "i16",
        Value::I32(_) => "i32",
        Value::I64(_) => "i64",
        Value::F32(_) => "f32",
        Value::F64(_) => "f64",
        Value::Integer(_) => "integer",
        Value::Str(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::List(_) | Value::Empty(_) | Value::Elsewhere(_) => "list",
        Value::Map(_) => "map",
        _ => "encoded",
    }
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(*DIGITS.get(usize::from(nibble)).unwrap_or(&b'?'));
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: &Value, full: bool) -> String {
        let mut out = Vec::new();
        Json::new(&mut out).value(value, full).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_that_json_does_not_have_are_text() {
        assert_eq!(written(&Value::F32(f32::NAN), false), "\"NaN\"");
        assert_eq!(written(&Value::F64(f64::INFINITY), false), "\"Infinity\"");
        assert_eq!(
            written(&Value::F32(f32::NEG_INFINITY), false),
            "\"-Infinity\""
        );
    }

    #[test]
    fn long_integers_keep_their_digits() {
        let digits = "123456789012345678901234567890";
        assert_eq!(written(&Value::Integer(digits.into()), false), digits);
    }

    #[test]
    fn floats_are_valid_json_and_lead_back_to_the_same_number() {
        for value in [
            0.1,
            1.0,
            -0.0,
            1e300,
            5e-324,
            f64::MAX,
            1e16,
            123_456_789.125,
        ] {
            let text = written(&Value::F64(value), false);
            let parsed: f64 = serde_json::from_str(&text).unwrap();
            assert_eq!(parsed.to_bits(), value.to_bits(), "{text}");
        }
        assert_eq!(written(&Value::F32(0.1), false), "0.1");
        // The smallest f32 is 2^-149.
        let smallest = Value::F32(f32::from_bits(1));
        assert_eq!(written(&smallest, false), "1.401298464324817e-45");
    }

    #[test]
    fn every_string_survives() {
        let nasty = "a\"b\\c\nd\u{0}\u{1b}[31m\u{7f}\u{85}\u{202e}\u{10ffff}é\u{e0001}";
        let text = written(&Value::Str(nasty.into()), false);
        assert!(!text.chars().any(is_unsafe), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), nasty);
    }

    #[test]
    fn long_arrays_are_counted_unless_asked_for() {
        let list = Value::List(vec![Value::U8(1); 65].into());
        assert_eq!(written(&list, false), "{\"$array\": 65, \"of\": \"u8\"}");
        assert!(written(&list, true).starts_with("[1, 1, "));
        let mixed = Value::List([vec![Value::U8(1); 64], vec![Value::Null]].concat().into());
        assert_eq!(
            written(&mixed, false),
            "{\"$array\": 65, \"of\": \"mixed\"}"
        );
    }

    #[test]
    fn nested_values_keep_their_separators() {
        let inner: Metadata = [(
            "k".to_owned(),
            Value::List(vec![Value::from(Metadata::new())].into()),
        )]
        .into_iter()
        .collect();
        let outer = Value::List(vec![Value::from(inner), Value::Bytes(vec![0, 255].into())].into());
        assert_eq!(
            written(&outer, false),
            "[{\"k\": [{}]}, {\"$bytes\": \"00ff\"}]"
        );
    }
}
