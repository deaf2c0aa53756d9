//! JSON as the command prints it.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter};
use tenfold::Archive;
use tenfold::documents::ShownValue;
use tenfold::model::{List, Value, ValueKind};

use crate::output::{is_unsafe, thousands};

/// Values of metadata with more characters are cut in listings.
const LONG_VALUE: usize = 100;

/// Lists of more entries are counted in listings, and their beginning is shown.
const FEW_ENTRIES: usize = 6;
const FIRST_ENTRIES: usize = 3;

/// A value of metadata in one line, cut where it is long.
pub(crate) fn short_value(value: &Value) -> String {
    match value {
        Value::List(items) if items.len() > FEW_ENTRIES => list_line(items.len() as u64, items),
        value => {
            let text = beginning(value);
            match text.more {
                0 => text.shown(),
                _ => format!("{}…", text.shown()),
            }
        }
    }
}

/// The same for a listing of the archive, which says how to see the rest; lists that were not loaded show their beginning.
pub(crate) fn one_line(archive: &Archive, value: &Value) -> String {
    match value {
        Value::List(_) => short_value(value),
        Value::Elsewhere(list) => match archive.load_first(list, FIRST_ENTRIES) {
            Ok(items) => list_line(list.count, &items),
            // Whatever is wrong is said by whoever reads all of it.
            Err(_) => short_value(value),
        },
        value => {
            let text = beginning(value);
            match (text.shown(), text.more) {
                (shown, 0) => shown,
                (shown, rest) => format!("{shown}… ({rest} more characters; --full shows all)"),
            }
        }
    }
}

fn beginning(value: &Value) -> Beginning {
    let mut text = Beginning::default();
    // Writing to memory does not fail.
    let _ = write_line(&mut text, &ShownValue::new(value, false));
    text
}

/// `3 200 strings: "<s>", "</s>", …`
fn list_line(count: u64, first: &List) -> String {
    let mut line = format!("{} {}: ", thousands(count), entries_of(first));
    for item in first.iter().take(FIRST_ENTRIES) {
        line += &short_value(&item);
        line += ", ";
    }
    line + "…"
}

/// What the entries of a list are called.
fn entries_of(list: &List) -> &'static str {
    match list.kind() {
        Some(ValueKind::Str) => "strings",
        Some(ValueKind::Bool) => "booleans",
        Some(ValueKind::List) => "lists",
        Some(_) => "numbers",
        None if list.iter().all(|item| matches!(item, Value::Str(_))) => "strings",
        None => "values",
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

/// Writes a document: on one line, but for the records of its lists, which have a line each.
pub(crate) fn write(out: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    write_with(out, document, Lines::Records)
}

/// Writes a document on one line.
pub(crate) fn write_line(out: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    write_with(out, document, Lines::None)
}

/// Writes an object with a line for every key.
pub(crate) fn write_keys(out: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    write_with(out, document, Lines::Keys)
}

fn write_with(out: &mut dyn Write, document: &impl Serialize, lines: Lines) -> io::Result<()> {
    let layout = Layout {
        lines,
        depth: 0,
        has_keys: false,
        entry: None,
    };
    Ok(document.serialize(&mut Serializer::with_formatter(out, layout))?)
}

/// What begins on a line of its own.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Lines {
    None,
    /// The records of lists in the document.
    Records,
    /// The keys of the document.
    Keys,
}

/// Where spaces and lines go, and which characters are escaped: all that a terminal would act on, which JSON allows for
/// every character.
struct Layout {
    lines: Lines,
    /// Objects and lists that are open.
    depth: usize,
    /// Keys have lines of their own, and there are some.
    has_keys: bool,
    /// An entry of a list in the document has begun, the first or another, and nothing is written of it: where it goes
    /// depends on what it is.
    entry: Option<bool>,
}

impl Layout {
    /// Begins what is not a record.
    fn inline<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        match self.entry.take() {
            Some(false) => out.write_all(b", "),
            _ => Ok(()),
        }
    }
}

/// Values that begin in their line, written as serde_json writes them.
macro_rules! inline {
    ($($method:ident($type:ty),)*) => {$(
        fn $method<W: ?Sized + Write>(&mut self, out: &mut W, value: $type) -> io::Result<()> {
            self.inline(out)?;
            CompactFormatter.$method(out, value)
        }
    )*};
}

impl Formatter for Layout {
    inline! {
        write_bool(bool),
        write_i8(i8), write_i16(i16), write_i32(i32), write_i64(i64), write_i128(i128),
        write_u8(u8), write_u16(u16), write_u32(u32), write_u64(u64), write_u128(u128),
        write_raw_fragment(&str),
    }

    fn write_null<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.inline(out)?;
        out.write_all(b"null")
    }

    fn write_f32<W: ?Sized + Write>(&mut self, out: &mut W, value: f32) -> io::Result<()> {
        self.inline(out)?;
        write!(out, "{value:?}")
    }

    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        self.inline(out)?;
        write!(out, "{value:?}")
    }

    fn begin_string<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.inline(out)?;
        out.write_all(b"\"")
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_unsafe(*c)) {
            let (safe, tail) = rest.split_at(at);
            out.write_all(safe.as_bytes())?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = tail.get(c.len_utf8()..).unwrap_or_default();
        }
        out.write_all(rest.as_bytes())
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        let escape = match escape {
            CharEscape::Backspace => CharEscape::AsciiControl(8),
            CharEscape::FormFeed => CharEscape::AsciiControl(12),
            CharEscape::CarriageReturn => CharEscape::AsciiControl(13),
            escape => escape,
        };
        CompactFormatter.write_char_escape(out, escape)
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.inline(out)?;
        self.depth += 1;
        out.write_all(b"[")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.entry = Some(first);
        if self.depth == 2 && self.lines == Lines::Records {
            Ok(())
        } else {
            self.inline(out)
        }
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        out.write_all(b"]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        match self.entry.take() {
            Some(true) => out.write_all(b"\n{"),
            Some(false) => out.write_all(b",\n{"),
            None => out.write_all(b"{"),
        }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        let is_line = self.depth == 1 && self.lines == Lines::Keys;
        self.has_keys |= is_line;
        out.write_all(match (is_line, first) {
            (true, true) => b"\n  ",
            (true, false) => b",\n  ",
            (false, true) => b"",
            (false, false) => b", ",
        })
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        if self.depth == 1 && self.has_keys {
            out.write_all(b"\n")?;
        }
        self.depth -= 1;
        out.write_all(b"}")
    }
}

#[cfg(test)]
mod tests {
    use tenfold::model::Metadata;

    use super::*;

    fn written(value: &Value, full: bool) -> String {
        let mut out = Vec::new();
        write_line(&mut out, &ShownValue::new(value, full)).unwrap();
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
    fn long_lists_are_one_line_with_their_first_entries() {
        let tokens = (0..3200).map(|n| Value::Str(format!("<{n}>")));
        let tokens = Value::List(tokens.collect::<Vec<_>>().into());
        let line = "3 200 strings: \"<0>\", \"<1>\", \"<2>\", …";
        assert_eq!(short_value(&tokens), line);
        // GGUF leaves long lists in the file.
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens.gguf");
        let mut builder = Archive::builder();
        builder.meta("tokens", tokens);
        builder.finish().save(&path).unwrap();
        let archive = Archive::open(&path).unwrap();
        let kept = archive.metadata().get("tokens").unwrap();
        assert!(matches!(kept, Value::Elsewhere(_)));
        assert_eq!(one_line(&archive, kept), line);
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

    #[test]
    fn records_of_a_document_have_a_line_each() {
        let records = vec![(("a", 1), [1, 2]); 2].into_iter();
        let records: Vec<_> = records
            .map(|((key, value), list)| serde_json::json!({key: value, "b": list}))
            .collect();
        let document = serde_json::json!({"list": [1, "x", null, true, [0.5]], "records": records});
        let mut out = Vec::new();
        write(&mut out, &document).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"list\": [1, \"x\", null, true, [0.5]], \"records\": [\n{\"a\": 1, \"b\": [1, 2]},\n{\"a\": 1, \"b\": [1, 2]}]}"
        );
    }
}
