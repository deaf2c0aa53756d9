use bytes::Bytes;

use super::*;

const RULES: Rules = Rules {
    truncated: "test.truncated",
    kind: "test.type",
    utf8: "test.utf8",
};

fn decode<T>(bytes: &[u8], read: impl FnOnce(&mut Decoder<'_>) -> Result<T>) -> Result<T> {
    let bytes = Bytes::copy_from_slice(bytes);
    let mut decoder = Decoder::new(&bytes, RULES);
    read(&mut decoder).inspect(|_| assert_eq!(decoder.remaining(), 0))
}

fn encode(write: impl FnOnce(&mut Encoder)) -> Vec<u8> {
    let mut encoder = Encoder::new();
    write(&mut encoder);
    encoder.take()
}

#[test]
fn numbers_have_one_form() {
    for value in [0, 1, 0x0102_0304, u32::MAX] {
        let bytes = encode(|e| {
            e.u32(value);
        });
        assert_eq!(bytes.len(), 5);
        assert_eq!(decode(&bytes, |d| d.u32("n")).unwrap(), value);
    }
    assert_eq!(
        encode(|e| {
            e.u32(0x0102_0304);
        }),
        [0xce, 1, 2, 3, 4]
    );
    let nan = f32::from_bits(0xffa5_5a01);
    let bytes = encode(|e| {
        e.f32(nan);
    });
    assert_eq!(bytes, [0xca, 0xff, 0xa5, 0x5a, 1]);
    assert_eq!(
        decode(&bytes, |d| d.f32("x")).unwrap().to_bits(),
        nan.to_bits()
    );
}

#[test]
fn other_forms_of_a_number_are_refused_by_name() {
    for (bytes, what) in [
        (&[5][..], "a fixint (0x05)"),
        (&[0xcc, 5], "a uint 8 (0xcc)"),
        (&[0xcd, 0, 5], "a uint 16"),
        (&[0xcf, 0, 0, 0, 0, 0, 0, 0, 5], "a uint 64"),
        (&[0xd2, 0, 0, 0, 5], "an int 32"),
        (&[0xff], "a negative fixint"),
        (&[0xc0], "nil"),
        (&[0xcb, 0, 0, 0, 0, 0, 0, 0, 0], "a float 64"),
    ] {
        let error = decode(bytes, |d| d.u32("count")).unwrap_err();
        assert_eq!(error.rule(), "test.type");
        assert!(error.message().contains(what), "{error}");
        assert!(error.message().ends_with("expected a uint 32"), "{error}");
        assert_eq!(error.range().unwrap().1, 0..1);
    }
}

#[test]
fn lengths_are_written_shortest_and_read_in_any_form() {
    for len in [0, 15, 16, 65535, 65536] {
        let array = encode(|e| {
            e.array(len).unwrap();
        });
        let map = encode(|e| {
            e.map(len).unwrap();
        });
        let wanted = match len {
            0..16 => 1,
            16..65536 => 3,
            _ => 5,
        };
        assert_eq!((array.len(), map.len()), (wanted, wanted), "{len}");
        assert_eq!(decode(&array, |d| d.array("a")).unwrap() as usize, len);
        assert_eq!(decode(&map, |d| d.map("m")).unwrap() as usize, len);
    }
    for len in [0, 31, 32, 255, 256, 65535, 65536] {
        let text = "x".repeat(len);
        let bytes = encode(|e| {
            e.text(&text).unwrap();
        });
        let head = match len {
            0..32 => 1,
            32..256 => 2,
            256..65536 => 3,
            _ => 5,
        };
        assert_eq!(bytes.len(), head + len);
        assert_eq!(decode(&bytes, |d| d.text(1 << 20, "s")).unwrap(), text);
    }
    for (len, head) in [
        (0, 2),
        (255, 2),
        (256, 3),
        (65535, 3),
        (65536, 5),
        (u64::from(u32::MAX), 5),
    ] {
        let bytes = encode(|e| {
            e.bin(len).unwrap();
        });
        assert_eq!(bytes.len(), head, "{len}");
        assert_eq!(u64::from(decode(&bytes, |d| d.bin("b")).unwrap()), len);
    }
    assert!(Encoder::new().bin(1 << 32).is_err());
    assert_eq!(decode(&[0xdd, 0, 0, 0, 1], |d| d.array("a")).unwrap(), 1);
    assert_eq!(
        decode(&[0xdb, 0, 0, 0, 1, b'x'], |d| d.text(9, "s")).unwrap(),
        "x"
    );
}

#[test]
fn binary_data_is_located_and_not_loaded() {
    let range = decode(&[0xc4, 3, 1, 2, 3], |d| {
        let len = d.bin("data")?;
        d.skip(len, "data")
    });
    assert_eq!(range.unwrap(), 2..5);
    let cut = decode(&[0xc6, 0xff, 0xff, 0xff, 0xff, 0], |d| {
        let len = d.bin("data")?;
        d.skip(len, "data")
    });
    assert_eq!(cut.unwrap_err().rule(), "test.truncated");
}

#[test]
fn text_is_held_against_the_file_the_limit_and_utf8() {
    let rule = |bytes: &[u8]| {
        decode(bytes, |d| d.text(4, "name"))
            .unwrap_err()
            .rule()
            .to_owned()
    };
    assert_eq!(
        rule(&[0xdb, 0xff, 0xff, 0xff, 0xff, b'x']),
        "test.truncated"
    );
    assert_eq!(rule(b"\xa5abcde"), "file.limit");
    assert_eq!(rule(b"\xa2a\xff"), "test.utf8");
    assert_eq!(rule(b"\xc4\x01a"), "test.type");
    assert_eq!(rule(b""), "test.truncated");
}
