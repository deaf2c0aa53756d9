use bytes::Bytes;

use super::*;

const RULES: Rules = Rules {
    truncated: "test.truncated",
    length: "test.length",
    varint: "test.varint",
    tag: "test.tag",
    utf8: "test.utf8",
};

fn fields(bytes: &'static [u8]) -> Result<Vec<Field>> {
    let bytes = Bytes::from_static(bytes);
    let len = Source::len(&bytes);
    let mut walker = Walker::over(&bytes, 0..len, RULES);
    let mut fields = Vec::new();
    while let Some(field) = walker.next(len)? {
        fields.push(field);
    }
    Ok(fields)
}

fn rule(bytes: &'static [u8]) -> String {
    fields(bytes).unwrap_err().rule().to_owned()
}

#[test]
fn every_wire_type_is_walked_over_and_located() {
    let found =
        fields(b"\x08\x96\x01\x12\x02ab\x19\0\0\0\0\0\0\0\0\x25\0\0\0\0\x2b\x08\x01\x2c").unwrap();
    let found: Vec<_> = (found.into_iter())
        .map(|field| (field.number, field.value, field.at))
        .collect();
    assert_eq!(
        found,
        [
            (1, Value::Varint(150), 0..3),
            (2, Value::Len(5..7), 3..7),
            (3, Value::Fixed64, 7..16),
            (4, Value::Fixed32, 16..21),
            (5, Value::Group, 21..25),
        ]
    );
}

#[test]
fn numbers_may_be_longer_than_needed_up_to_ten_bytes() {
    let long = fields(b"\x08\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00").unwrap();
    assert_eq!(long[0].value, Value::Varint(1));
    let minus_one = fields(b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").unwrap();
    assert_eq!(minus_one[0].value, Value::Varint(u64::MAX));
    assert_eq!(
        rule(b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
        "test.varint"
    );
}

#[test]
fn what_is_not_protobuf_is_refused_under_its_rule() {
    assert_eq!(rule(b"\x00\x01"), "test.tag", "field 0");
    assert_eq!(rule(b"\x0e"), "test.tag", "wire type 6");
    assert_eq!(rule(b"\x0c"), "test.tag", "an end without a begin");
    assert_eq!(rule(b"\x0b\x08\x01"), "test.tag", "an open group");
    assert_eq!(rule(b"\x0b\x14\x0c"), "test.tag", "another group's end");
    assert_eq!(rule(b"\x12\x05ab"), "test.truncated");
    assert_eq!(
        rule(b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        "test.truncated"
    );
    assert_eq!(rule(b"\x08\x80"), "test.truncated");
    assert_eq!(rule(b"\x09\0"), "test.truncated");
    // 64 groups at most.
    let deep: &'static [u8] = Box::leak([vec![0x0b; 65], vec![0x0c; 65]].concat().into());
    assert_eq!(rule(deep), "test.tag");
    assert_eq!(fields(&deep[1..129]).unwrap().len(), 1);
}

#[test]
fn a_message_is_entered_and_what_is_left_of_it_passed_over() {
    let bytes = Bytes::from_static(b"\x0a\x06\x12\x01x\x18\x05\x18\x22\x01");
    let mut walker = Walker::over(&bytes, 0..10, RULES);
    let Some(Field {
        value: Value::Len(inside),
        ..
    }) = walker.next(10).unwrap()
    else {
        panic!("a message");
    };
    walker.enter(&inside);
    let Some(Field {
        value: Value::Len(text),
        ..
    }) = walker.next(inside.end).unwrap()
    else {
        panic!("text");
    };
    assert_eq!(walker.text(&text, "text").unwrap(), "x");
    assert_eq!(walker.next(inside.end).unwrap().unwrap().number, 3);
    // The number that follows would reach out of the message.
    let error = walker.next(inside.end).unwrap_err();
    assert_eq!(error.rule(), "test.length");
}

#[test]
fn what_is_written_is_read() {
    let mut out = Encoder::new();
    out.number(1, 300).bytes(2, b"ab").message(3, |inside| {
        inside.number(1, u64::MAX);
    });
    let bytes = Bytes::from(out.finish());
    assert_eq!(
        &bytes[..],
        b"\x08\xac\x02\x12\x02ab\x1a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    );
    for (value, len) in [(0, 1), (127, 1), (128, 2), (1 << 14, 3), (1 << 63, 10)] {
        let mut out = Encoder::new();
        out.number(1, value);
        assert_eq!(out.len(), 1 + len, "{value}");
    }
}
