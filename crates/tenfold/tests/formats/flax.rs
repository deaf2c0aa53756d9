//! What is special to Flax: chunks, elements below a byte, keys of every kind.

use tenfold::Archive;
use tenfold::model::Value;

fn open(file: &[u8]) -> tenfold::Result<Archive> {
    let options = tenfold::OpenOptions::new().format(Some("flax"));
    options.read(
        std::sync::Arc::new(tenfold::Bytes::copy_from_slice(file)),
        Some("f.msgpack"),
    )
}

/// An array of one dimension: the type and its bytes, of which each is an element.
fn array(dtype: &str, data: &[u8]) -> Vec<u8> {
    let mut body = vec![0x93, 0x91, u8::try_from(data.len()).unwrap()];
    body.push(0xa0 + u8::try_from(dtype.len()).unwrap());
    body.extend_from_slice(dtype.as_bytes());
    body.extend_from_slice(&[0xc4, u8::try_from(data.len()).unwrap()]);
    body.extend_from_slice(data);
    [&[0xc7, u8::try_from(body.len()).unwrap(), 1], &body[..]].concat()
}

fn text(text: &str) -> Vec<u8> {
    [&[0xa0 + u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
}

/// `w` in chunks with these keys, each of one byte.
fn chunked(keys: &[(&str, u8)]) -> Vec<u8> {
    let count = u8::try_from(keys.len()).unwrap();
    let mut file = b"\x81\xa1w\x83\xb9__msgpack_chunked_array__\xc3\xa5shape\x81\xa10".to_vec();
    file.push(count);
    file.extend_from_slice(b"\xa6chunks");
    file.push(0x80 + count);
    for (key, byte) in keys {
        file.extend(text(key));
        file.extend(array("uint8", &[*byte]));
    }
    file
}

#[test]
fn chunks_are_in_the_order_of_their_numbers() {
    let keys = ["10", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    let keys = keys.map(|key| (key, key.parse().unwrap()));
    let archive = open(&chunked(&keys)).unwrap();
    let w = archive.get("w").unwrap();
    assert_eq!(w.canonical().unwrap(), (0..11).collect::<Vec<u8>>());
    let hole = open(&chunked(&[("0", 0), ("2", 2)])).unwrap_err();
    let twice = open(&chunked(&[("0", 0), ("0", 2)])).unwrap_err();
    let padded = open(&chunked(&[("0", 0), ("01", 2)])).unwrap_err();
    let huge = open(&chunked(&[("0", 0), ("18446744073709551616", 2)])).unwrap_err();
    for error in [hole, twice, padded, huge] {
        assert_eq!(error.rule(), "flax.chunks");
    }
}

#[test]
fn of_elements_below_a_byte_the_low_bits_count() {
    // -2 as flax writes it, and as TensorFlow does.
    for (dtype, bytes, packed) in [
        ("int4", &[0xfe, 0x0e, 0x07][..], &[0xee, 0x07][..]),
        ("uint4", &[0x0f, 0x01, 0xf2], &[0x1f, 0x02]),
        ("int2", &[0xff, 0x01, 0x02, 0x03, 0x01], &[0xe7, 0x01]),
        ("float4_e2m1fn", &[0x0f, 0x01], &[0x1f]),
    ] {
        let file = [b"\x81\xa1w", &array(dtype, bytes)[..]].concat();
        let archive = open(&file).unwrap();
        assert_eq!(
            archive.get("w").unwrap().canonical().unwrap(),
            packed,
            "{dtype}"
        );
    }
}

#[test]
fn keys_may_be_numbers_and_arrays_are_counted() {
    let one = array("uint8", &[1]);
    let file = [&b"\x82\x07"[..], &one, b"\xa1l\x92", &one, b"\x2a"].concat();
    let archive = open(&file).unwrap();
    let names: Vec<_> = archive
        .tensors()
        .map(|tensor| tensor.name().to_owned())
        .collect();
    assert_eq!(names, ["7", "l.0"]);
    assert_eq!(archive.metadata().get("l.1"), Some(&Value::I64(42)));
    // Two paths that are one when they are joined.
    let file = [&b"\x82\xa3a.b"[..], &one, b"\xa1a\x81\xa1b", &one].concat();
    assert_eq!(open(&file).unwrap_err().rule(), "flax.duplicate");
}

#[test]
#[cfg(feature = "write")]
fn long_arrays_are_written_in_chunks_as_flax_cuts_them() {
    use tenfold::format::Registry;
    use tenfold::io::MemoryOutput;
    use tenfold::model::DType;
    use tenfold::ops::{Conversion, ConvertOptions};

    let mut builder = tenfold::ArchiveBuilder::new();
    let bytes: Vec<u8> = (0..=239).collect();
    builder
        .push(
            "w",
            DType::F32,
            &[3, 20],
            tenfold::Bytes::from(bytes.clone()),
        )
        .unwrap();
    builder
        .push(
            "b",
            DType::U8,
            &[16],
            tenfold::Bytes::copy_from_slice(&bytes[..16]),
        )
        .unwrap();
    let archive = builder.finish();
    let registry = Registry::standard();
    let write = |chunk: &str| {
        let options = ConvertOptions::new().option("chunk", chunk);
        let entry = registry.get("flax").unwrap();
        let conversion = Conversion::prepare(&archive, entry, &options)?;
        let mut out = MemoryOutput::new();
        conversion.write_to("f.msgpack", &mut out)?;
        Ok::<_, tenfold::Error>(out.into_files().remove("f.msgpack").unwrap())
    };
    for chunk in ["16", "100", "239"] {
        let file = write(chunk).unwrap();
        let marks = file.windows(5).filter(|text| text == b"shape").count();
        assert_eq!(marks, 1, "{chunk}");
        let again = open(&file).unwrap();
        let w = again.get("w").unwrap();
        assert_eq!(w.info().shape[..], [3, 20]);
        assert_eq!(w.canonical().unwrap(), bytes);
        assert_eq!(again.get("b").unwrap().canonical().unwrap(), bytes[..16]);
    }
    let whole = write("240").unwrap();
    assert!(!whole.windows(5).any(|text| text == b"shape"));
    assert!(write("15").is_err());
}

#[test]
fn the_mark_of_an_array_in_chunks_may_come_behind_its_other_keys() {
    let shape = b"\xa5shape\x81\xa10\x02".to_vec();
    let mut chunks = b"\xa6chunks\x82\xa10".to_vec();
    chunks.extend(array("uint8", &[5]));
    chunks.extend(b"\xa11");
    chunks.extend(array("uint8", &[6]));
    let mark = b"\xb9__msgpack_chunked_array__\xc3".to_vec();
    for order in [[0, 1, 2], [1, 0, 2], [1, 2, 0], [2, 1, 0]] {
        let keys = order.map(|n| [&mark, &shape, &chunks][n].as_slice());
        let mut file = b"\x82\xa1v\x07\xa1w\x83".to_vec();
        file.extend(keys.concat());
        let archive = open(&file).unwrap();
        let names: Vec<_> = archive
            .tensors()
            .map(|tensor| tensor.name().to_owned())
            .collect();
        assert_eq!(names, ["w"], "{order:?}");
        assert_eq!(archive.get("w").unwrap().canonical().unwrap()[..], [5, 6]);
        assert_eq!(archive.metadata().len(), 1);
        assert_eq!(archive.metadata().get("v"), Some(&Value::I64(7)));
    }
    let twice = [&b"\x81\xa1w\x83"[..], &shape, &shape, &mark].concat();
    let more = [&b"\x81\xa1w\x84"[..], &shape, &chunks, b"\xa1x\x01", &mark].concat();
    for file in [twice, more] {
        assert_eq!(open(&file).unwrap_err().rule(), "flax.chunks");
    }
}
