//! Writing JSON: compact, with characters as they are.

use core::fmt::Write;

use crate::error::{Error, Result};
use crate::model::Value;
use crate::prelude::*;

/// Writes a value. Numbers that are not finite become `NaN`, `Infinity` and `-Infinity`; numbers of 32 bits are
/// written as the 64 bits that they equal. Bytes have no form in JSON.
pub(crate) fn encode(value: &Value, out: &mut String) -> Result<()> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::F32(value) => encode_float((*value).into(), out),
        Value::F64(value) => encode_float(*value, out),
        Value::Integer(digits) => out.push_str(digits),
        Value::Str(text) => encode_str(text, out),
        Value::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                separate(index, out);
                encode(&item, out)?;
            }
            out.push(']');
        }
        Value::Map(entries) => {
            out.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                separate(index, out);
                encode_str(key, out);
                out.push(':');
                encode(&value, out)?;
            }
            out.push('}');
        }
        Value::Empty(_) => out.push_str("[]"),
        Value::Bytes(_) | Value::Encoded { .. } => {
            return Err(Error::argument("JSON cannot hold bytes"));
        }
        number => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => push(out, format_args!("{value}")),
            (_, Some(value)) => push(out, format_args!("{value}")),
            _ => {
                return Err(Error::argument(format!(
                    "JSON cannot hold {}",
                    number.in_words()
                )));
            }
        },
    }
    Ok(())
}

/// Writes text in quotes.
pub(crate) fn encode_str(text: &str, out: &mut String) {
    out.push('"');
    escape(text, out);
    out.push('"');
}

/// Writes text as it stands between quotes.
fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..'\u{20}' => push(out, format_args!("\\u{:04x}", u32::from(c))),
            _ => out.push(c),
        }
    }
}

/// The shortest digits that read back as the same number, never without a point or an exponent.
fn encode_float(value: f64, out: &mut String) {
    if value.is_nan() {
        out.push_str("NaN");
    } else if value.is_infinite() {
        out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    } else {
        push(out, format_args!("{value:?}"));
    }
}

fn separate(index: usize, out: &mut String) {
    if index > 0 {
        out.push(',');
    }
}

/// Writing into memory does not fail.
fn push(out: &mut String, text: core::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::super::{Json, Rules};
    use super::*;

    const RULES: Rules = Rules {
        syntax: "test.syntax",
        text: "test.text",
        depth: "test.depth",
    };

    fn written(value: &Value) -> String {
        let mut out = String::new();
        encode(value, &mut out).unwrap();
        out
    }

    #[test]
    fn floats_stay_floats_and_read_back_the_same() {
        for value in [
            1.0,
            -0.0,
            0.1,
            1e300,
            5e-324,
            f64::MAX,
            -1.5e-7,
            f64::INFINITY,
        ] {
            let text = written(&Value::F64(value));
            let mut json = Json::new(text.as_bytes(), 0, 1, &RULES).unwrap();
            match json.value(&mut |_, _| Ok(())).unwrap() {
                Value::F64(back) => assert_eq!(back.to_bits(), value.to_bits(), "{text}"),
                other => panic!("{text} became {other:?}"),
            }
        }
        assert_eq!(written(&Value::F64(1.0)), "1.0");
        assert_eq!(written(&Value::F64(f64::NAN)), "NaN");
        assert_eq!(written(&Value::F32(0.1)), "0.10000000149011612");
    }

    #[test]
    fn text_is_compact_and_characters_stay_as_they_are() {
        let text = r#"{"ключ":["a\"b\\\n\u0000\u001f/","é😀",null,true,-1,18446744073709551615,{}],"x":123456789012345678901234567890}"#;
        let mut json = Json::new(text.as_bytes(), 0, 8, &RULES).unwrap();
        assert_eq!(written(&json.value(&mut |_, _| Ok(())).unwrap()), text);
    }

    #[test]
    fn bytes_have_no_form() {
        let bytes = Value::Bytes(bytes::Bytes::from_static(b"x"));
        assert!(encode(&Value::List(vec![bytes].into()), &mut String::new()).is_err());
    }
}
