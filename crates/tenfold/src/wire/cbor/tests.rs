use bytes::Bytes;

use super::*;
use crate::model::{Metadata, Value};

static RULES: Rules = Rules {
    syntax: "t.syntax",
    depth: "t.depth",
    form: "t.form",
    duplicate: "t.duplicate",
    schema: "t.schema",
};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn read(text: &str) -> Result<Value> {
    let bytes = hex(text);
    let mut decoder = Decoder::new(&bytes, 0, &RULES, 64);
    let value = decoder.value()?;
    decoder.finish()?;
    Ok(value)
}

fn read_strictly(text: &str) -> Result<Value> {
    let bytes = hex(text);
    let mut decoder = Decoder::new(&bytes, 1000, &RULES, 32).deterministic();
    let value = decoder.value()?;
    decoder.finish()?;
    Ok(value)
}

fn written(value: &Value) -> Vec<u8> {
    let mut encoder = Encoder::deterministic();
    encoder.value(value);
    encoder.into_bytes()
}

fn refused(text: &str) -> String {
    read_strictly(text).unwrap_err().rule().to_owned()
}

#[test]
fn any_legal_form_is_read() {
    assert_eq!(read("1b 0000000000000005").unwrap(), Value::U64(5));
    assert_eq!(read("20").unwrap(), Value::I64(-1));
    assert_eq!(
        read("7f 61 61 62 6263 ff").unwrap(),
        Value::Str("abc".into())
    );
    assert_eq!(
        read("5f 41 01 42 0203 ff").unwrap(),
        Value::Bytes(Bytes::from_static(&[1, 2, 3]))
    );
    assert_eq!(
        read("9f 01 f6 ff").unwrap(),
        Value::List(vec![Value::U64(1), Value::Null].into())
    );
    assert_eq!(read("f9 3e00").unwrap(), Value::F32(1.5));
    assert_eq!(read("fb 3ff8000000000000").unwrap(), Value::F64(1.5));
    assert_eq!(
        read("bf 61 61 f5 ff").unwrap(),
        Value::Map([("a".to_owned(), Value::Bool(true))].into_iter().collect())
    );
}

#[test]
fn long_integers_keep_their_value() {
    assert_eq!(
        read("3b ffffffffffffffff").unwrap(),
        Value::Integer("-18446744073709551616".into())
    );
    assert_eq!(
        read("c2 49 010000000000000000").unwrap(),
        Value::Integer("18446744073709551616".into())
    );
    assert_eq!(
        read("c3 49 010000000000000000").unwrap(),
        Value::Integer("-18446744073709551617".into())
    );
    assert_eq!(read("c2 42 0100").unwrap(), Value::U64(256));
    assert_eq!(
        written(&Value::Integer("-18446744073709551616".into())),
        hex("3b ffffffffffffffff")
    );
    assert_eq!(
        written(&Value::Integer("18446744073709551616".into())),
        hex("c2 49 010000000000000000")
    );
}

#[test]
fn what_has_no_form_stays_encoded() {
    for text in [
        "c1 1a 6553f100",
        "f7",
        "f8 20",
        "e0",
        "a1 01 02",
        "a2 61 61 01 02 03",
        "d8 20 61 61",
    ] {
        let value = read(text).unwrap();
        assert_eq!(
            value,
            Value::Encoded {
                encoding: crate::model::Encoding::Cbor,
                bytes: hex(text).into()
            },
            "{text}"
        );
        assert_eq!(written(&value), hex(text));
    }
    // Only the map that has such a key, not the one around it.
    let Value::Map(outer) = read("a1 61 61 a1 01 02").unwrap() else {
        panic!()
    };
    assert!(matches!(outer.get("a"), Some(Value::Encoded { .. })));
}

#[test]
fn malformed_items_are_refused_with_their_place() {
    for text in [
        "",
        "1c",
        "ff",
        "18",
        "61",
        "62 61",
        "61 ff",
        "9f 01",
        "82 01",
        "a1 61 61",
        "bf 61 61 ff",
        "f8 10",
        "5f 61 61 ff",
        "01 02",
    ] {
        assert_eq!(read(text).unwrap_err().rule(), "t.syntax", "{text}");
    }
    assert_eq!(read("9b 1000000000000000").unwrap_err().rule(), "t.syntax");
    assert_eq!(read("7b 1000000000000000").unwrap_err().rule(), "t.syntax");
    assert_eq!(read("82 01 1c").unwrap_err().range().unwrap().1, 2..3);
    assert_eq!(
        read_strictly("82 01 1c").unwrap_err().range().unwrap().1,
        1002..1003
    );
    assert_eq!(
        read("a2 61 61 01 61 61 02").unwrap_err().rule(),
        "t.duplicate"
    );
}

#[test]
fn keys_of_large_maps_are_compared_too() {
    let mut bytes = vec![0xbf];
    for n in (0..200).chain([150]) {
        let mut encoder = Encoder::new();
        encoder.text(&format!("key {n}")).unsigned(n);
        bytes.extend(encoder.into_bytes());
    }
    bytes.push(0xff);
    let error = Decoder::new(&bytes, 0, &RULES, 64).value().unwrap_err();
    assert_eq!(error.rule(), "t.duplicate");
    assert!(error.message().contains("key 150"), "{error}");
}

#[test]
fn depth_is_limited_without_using_up_the_stack() {
    let nested = |depth: usize| {
        let mut bytes = vec![0x81; depth];
        bytes.push(0);
        bytes
    };
    assert!(Decoder::new(&nested(32), 0, &RULES, 32).value().is_ok());
    for depth in [33, 100_000] {
        assert_eq!(
            Decoder::new(&nested(depth), 0, &RULES, 32)
                .value()
                .unwrap_err()
                .rule(),
            "t.depth"
        );
    }
    assert_eq!(
        Decoder::new(&[0xc6; 100_000], 0, &RULES, 32)
            .value()
            .unwrap_err()
            .rule(),
        "t.depth"
    );
    assert_eq!(
        Decoder::new(&[0x9f; 100_000], 0, &RULES, 32)
            .value()
            .unwrap_err()
            .rule(),
        "t.depth"
    );
}

#[test]
fn only_the_deterministic_encoding_passes_where_it_is_asked_for() {
    // Keys by encoded bytes: the shorter one first.
    assert!(read_strictly("a2 61 62 01 62 6161 02").is_ok());
    assert_eq!(refused("a2 62 6161 02 61 62 01"), "t.form");
    assert_eq!(refused("a2 61 61 01 61 61 02"), "t.duplicate");
    for text in [
        "18 17",
        "19 00ff",
        "1a 0000ffff",
        "1b 00000000ffffffff",
        "38 17",
        "58 01 00",
        "78 01 61",
        "98 00",
        "b8 00",
    ] {
        assert_eq!(refused(text), "t.form", "{text}");
    }
    for text in [
        "9f ff", "bf ff", "5f ff", "7f ff", "c1 00", "f7", "e0", "f8 20",
    ] {
        assert_eq!(refused(text), "t.syntax", "{text}");
    }
    for text in [
        "fb 3ff8000000000000",
        "fa 3fc00000",
        "f9 7e01",
        "f9 fe00",
        "fa 7fc00000",
        "fb 7ff8000000000000",
        "fa 7f800000",
    ] {
        assert_eq!(refused(text), "t.form", "{text}");
    }
    for text in [
        "f9 7e00",
        "f9 7c00",
        "f9 0001",
        "f9 8000",
        "fa 47800100",
        "fb 3ff199999999999a",
        "18 18",
        "f4",
        "f5",
        "f6",
    ] {
        assert!(read_strictly(text).is_ok(), "{text}");
    }
}

#[test]
fn values_are_written_in_their_shortest_form() {
    for (value, text) in [
        (Value::U64(23), "17"),
        (Value::U8(24), "18 18"),
        (Value::I32(-500), "39 01f3"),
        (Value::I64(7), "07"),
        (Value::F64(1.5), "f9 3e00"),
        (Value::F64(65504.0), "f9 7bff"),
        (Value::F64(65536.0), "fa 47800000"),
        (Value::F64(1.1), "fb 3ff199999999999a"),
        (Value::F32(1.1), "fa 3f8ccccd"),
        (Value::F64(f64::NAN), "f9 7e00"),
        (Value::F32(f32::NAN), "f9 7e00"),
        (Value::F64(-0.0), "f9 8000"),
        (Value::F64(f64::NEG_INFINITY), "f9 fc00"),
        (Value::F64(5.960_464_477_539_063e-8), "f9 0001"),
        (Value::Bytes(Bytes::from_static(&[1])), "41 01"),
        (
            Value::List(vec![Value::Null, Value::Bool(false)].into()),
            "82 f6 f4",
        ),
    ] {
        assert_eq!(written(&value), hex(text), "{value:?}");
    }
    let map: Metadata = [("aa", 1), ("b", 2), ("a", 3)]
        .into_iter()
        .map(|(key, n)| (key.to_owned(), Value::U64(n)))
        .collect();
    assert_eq!(
        written(&map.clone().into()),
        hex("a3 61 61 03 61 62 02 62 6161 01")
    );
    let mut keeping = Encoder::new();
    keeping.value(&map.into());
    assert_eq!(keeping.into_bytes(), hex("a3 62 6161 01 61 62 02 61 61 03"));
}

#[test]
fn a_nan_keeps_its_bits_unless_the_encoding_is_deterministic() {
    let odd = Value::F64(f64::from_bits(0x7ff8_0000_0000_0001));
    let mut keeping = Encoder::new();
    keeping.value(&odd);
    assert_eq!(keeping.into_bytes(), hex("fb 7ff8000000000001"));
    assert_eq!(written(&odd), hex("f9 7e00"));
}
