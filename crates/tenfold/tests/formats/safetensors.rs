//! What is special to safetensors, beside what every format is tested for. The reference itself is the judge.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use safetensors::SafeTensors;
use tenfold::format::Registry;
use tenfold::io::{Limits, MemoryOutput};
use tenfold::model::{DType, Metadata, Value};
use tenfold::ops::{self, ConvertOptions};
use tenfold::{Archive, ArchiveBuilder, Bytes, ErrorKind, Hint, OpenOptions, Result};

fn fixtures(kind: &str) -> Vec<(String, Vec<u8>)> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/safetensors")
        .join(kind);
    let mut found: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "safetensors"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    found.sort();
    assert!(found.len() > 20);
    found
}

/// A file with this header and this much data.
fn file(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

fn open(bytes: &[u8]) -> Result<Archive> {
    let options = OpenOptions::new().format(Some("safetensors"));
    options.read(
        std::sync::Arc::new(Bytes::copy_from_slice(bytes)),
        Some("m.safetensors"),
    )
}

fn refused(header: &str, data: usize) -> String {
    let error = open(&file(header, data)).map(|_| ()).unwrap_err();
    error.rule().to_owned()
}

fn write(archive: &Archive, options: &ConvertOptions) -> Result<BTreeMap<String, Vec<u8>>> {
    let registry = Registry::standard();
    let mut out = MemoryOutput::new();
    let conversion =
        ops::Conversion::prepare(archive, registry.get("safetensors").unwrap(), options)?;
    conversion.write_to("m.safetensors", &mut out)?;
    Ok(out.into_files())
}

fn write_one(archive: &Archive, options: &ConvertOptions) -> Vec<u8> {
    write(archive, options)
        .unwrap()
        .remove("m.safetensors")
        .unwrap()
}

fn with_option(key: &str, value: &str) -> ConvertOptions {
    ConvertOptions::new().option(key, value)
}

fn warnings(archive: &Archive) -> Vec<String> {
    let warned = |finding: &&tenfold::format::Finding| {
        finding.severity == tenfold::format::Severity::Warning
    };
    let findings = archive.findings().iter().filter(warned);
    findings.map(|finding| finding.rule.clone()).collect()
}

/// Metadata apart, whose order is random in the reference, a file of the reference is written again byte by byte.
#[test]
fn what_the_reference_wrote_is_written_the_same() {
    let mut same = 0;
    for (name, bytes) in fixtures("valid") {
        let description = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../../fixtures/safetensors/valid/{name}.json"));
        let by_reference = fs::read_to_string(description)
            .unwrap()
            .contains("\"written_by\": \"safetensors 0.8.0");
        let archive = open(&bytes).unwrap();
        if !by_reference || archive.metadata().len() > 1 || name == "metadata_empty_map" {
            continue;
        }
        let again = write_one(&archive, &ConvertOptions::default());
        assert!(again == bytes, "{name}");
        same += 1;
    }
    assert!(same > 10, "{same}");
}

#[test]
fn the_reference_reads_what_is_written_and_sees_the_same() {
    for (name, bytes) in fixtures("valid") {
        let archive = open(&bytes).unwrap();
        for options in [
            ConvertOptions::default(),
            with_option("reserve", "1000"),
            with_option("align", "4096"),
        ] {
            let written = write_one(&archive, &options);
            let theirs = SafeTensors::deserialize(&written).unwrap();
            assert_eq!(theirs.len(), archive.tensors().len(), "{name}");
            for tensor in archive.tensors() {
                let theirs = theirs.tensor(tensor.name()).unwrap();
                assert_eq!(theirs.data(), &*tensor.canonical().unwrap(), "{name}");
                let shape: Vec<_> = theirs.shape().iter().map(|&dim| dim as u64).collect();
                assert_eq!(shape, tensor.info().shape, "{name}");
            }
            let (_, header) = SafeTensors::read_metadata(&written).unwrap();
            let theirs = header.metadata().clone().unwrap_or_default();
            assert_eq!(theirs.len(), archive.metadata().len());
            for (key, value) in archive.metadata().iter() {
                assert_eq!(theirs.get(key).map(String::as_str), value.as_str());
            }
        }
    }
}

/// Rules under which this reader refuses what the reference takes.
const STRICTER: [&str; 3] = [
    "safetensors.duplicate",
    "safetensors.header",
    "safetensors.rank",
];

fn has_unknown_dtype(archive: &Archive) -> bool {
    let mut defects = archive
        .tensors()
        .filter_map(|tensor| tensor.info().defect.clone());
    defects.any(|defect| defect.rule() == "safetensors.dtype")
}

/// Compares both readers on one file; gives whether it is taken.
fn agree(bytes: &[u8], what: &dyn Fn() -> String) -> bool {
    let theirs = SafeTensors::deserialize(bytes);
    match (open(bytes), theirs) {
        (Ok(ours), Ok(theirs)) => {
            assert_eq!(ours.tensors().len(), theirs.len(), "{}", what());
            for tensor in ours.tensors() {
                let theirs = theirs.tensor(tensor.name()).expect("the same names");
                assert_eq!(theirs.data(), &*tensor.stored().unwrap(), "{}", what());
            }
            true
        }
        (Err(_), Err(_)) => false,
        (Err(error), Ok(_)) => {
            // An object written as an array, or a name as an object, is an artefact of its decoder.
            let artefact = error.message().contains(" must be ");
            let stricter = STRICTER.contains(&error.rule()) || artefact;
            assert!(stricter, "{}: only we refuse it: {error}", what());
            false
        }
        // Of an unknown type only its tensor is refused.
        (Ok(ours), Err(_)) if has_unknown_dtype(&ours) => false,
        (Ok(_), Err(error)) => {
            // On a machine of 32 bits the reference has only numbers of 32 bits.
            let narrow =
                cfg!(target_pointer_width = "32") && error.to_string().contains("expected usize");
            assert!(narrow, "{}: only the reference refuses it: {error}", what());
            true
        }
    }
}

#[test]
fn headers_with_a_changed_byte_are_taken_or_refused_as_by_the_reference() {
    const BYTES: &[u8] = b"\0\t\n 0129\"\\{}[],:-+.eEnNtu_aFI\x7f\x80\xc3\xff";
    let (mut tried, mut taken) = (0, 0u32);
    for (name, mut bytes) in fixtures("valid") {
        let header = u64::from_le_bytes(bytes[..8].try_into().unwrap());
        if header > 1000 || bytes.len() > 4096 {
            continue;
        }
        for at in 8..8 + usize::try_from(header).unwrap() {
            let before = bytes[at];
            for &byte in BYTES {
                bytes[at] = byte;
                taken += u32::from(agree(&bytes, &|| format!("{name}: {byte:#x} at {at}")));
                tried += 1;
            }
            bytes[at] = before;
        }
    }
    eprintln!("{tried} headers with a changed byte, {taken} taken by both");
    assert!(taken > 1000, "{taken}");
}

#[test]
fn headers_with_a_byte_more_or_less_are_taken_or_refused_as_by_the_reference() {
    const BYTES: &[u8] = b" 0\"\\{}[],:-.e";
    let (mut tried, mut taken) = (0, 0u32);
    for (name, bytes) in fixtures("valid").into_iter().chain(fixtures("reject")) {
        let prefix: Option<[u8; 8]> = bytes.get(..8).and_then(|bytes| bytes.try_into().ok());
        let header = prefix.map_or(0, u64::from_le_bytes);
        if header > 500 || bytes.len() > 4096 || header + 8 > bytes.len() as u64 {
            continue;
        }
        let header = usize::try_from(header).unwrap();
        let mut changed = |at: usize, byte: Option<u8>| {
            let mut new = bytes.clone();
            match byte {
                Some(byte) => new.insert(at, byte),
                None => drop(new.remove(at)),
            }
            let len = header as u64 + u64::from(byte.is_some()) - u64::from(byte.is_none());
            new[..8].copy_from_slice(&len.to_le_bytes());
            taken += u32::from(agree(&new, &|| format!("{name}: {byte:?} at {at}")));
            tried += 1;
        };
        for at in 8..8 + header {
            changed(at, None);
            BYTES.iter().for_each(|&byte| changed(at, Some(byte)));
        }
    }
    eprintln!("{tried} headers with a byte more or less, {taken} taken by both");
    assert!(taken > 1000, "{taken}");
}

#[test]
fn numbers_are_what_the_reference_takes_for_numbers() {
    let numbers = [
        "0",
        "-0",
        "1",
        "1.0",
        "1e0",
        "01",
        "+1",
        "18446744073709551615",
        "18446744073709551616",
        "000",
        "1E2",
        "NaN",
        "null",
        "\"1\"",
        "999999999999999999",
        "1000000000000000000",
    ];
    for number in numbers {
        for header in [
            format!("{{\"a\":{{\"dtype\":\"U8\",\"shape\":[0,{number}],\"data_offsets\":[0,0]}}}}"),
            format!("{{\"a\":{{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,{number}]}}}}"),
            format!(
                "{{\"a\":{{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"x\":{number}}}}}"
            ),
            format!("{{\"a\":{{\"dtype\":\"U8\",\"shape\":[{number}],\"data_offsets\":[0,1]}}}}"),
        ] {
            for data in [0, 1] {
                agree(&file(&header, data), &|| header.clone());
            }
        }
    }
}

#[test]
fn where_the_reference_is_lax_this_reader_is_not() {
    let a = r#""a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}"#;
    let b = r#""\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}"#;
    let cases = [
        (format!("{{{a},{b}}}"), 2, "safetensors.duplicate"),
        (
            format!(r#"{{"__metadata__":{{"k":"1","k":"2"}},{a}}}"#),
            1,
            "safetensors.duplicate",
        ),
        (
            format!(r#"{{"__metadata__":null,{a}}}"#),
            1,
            "safetensors.metadata",
        ),
        (r#"{"a":["U8",[1],[0,1]]}"#.into(), 1, "safetensors.json"),
        (
            r#"{"a":{"dtype":{"U8":null},"shape":[1],"data_offsets":[0,1]}}"#.into(),
            1,
            "safetensors.json",
        ),
        (format!(" {{{a}}}"), 1, "safetensors.header"),
    ];
    for (header, data, rule) in cases {
        assert_eq!(refused(&header, data), rule, "{header}");
    }
    for end in ["\n", "\t", "  \n"] {
        let archive = open(&file(&format!("{{{a}}}{end}"), 1)).unwrap();
        assert_eq!(warnings(&archive), ["safetensors.padding"]);
    }
    let unknown = r#"{"a":{"dtype":"U8","shape":[1],"x":[{}],"data_offsets":[0,1],"y":1}}"#;
    let archive = open(&file(unknown, 1)).unwrap();
    assert_eq!(warnings(&archive), ["safetensors.unknown-field"]);
    assert!(archive.findings()[0].message.contains("and 1 more"));
    let strict = OpenOptions::new().strict(true);
    let bytes = std::sync::Arc::new(Bytes::from(file(unknown, 1)));
    assert!(strict.read(bytes, None).is_err());
}

#[test]
fn a_dimension_of_0_hides_what_is_behind_it() {
    let header = r#"{"a":{"dtype":"F32","shape":[0,9223372036854775808,4],"data_offsets":[0,0]}}"#;
    let archive = open(&file(header, 0)).unwrap();
    assert_eq!(archive.tensor("a").unwrap().canonical().unwrap().len(), 0);
    let again = write_one(&archive, &ConvertOptions::default());
    assert!(agree(&again, &|| header.to_owned()));
    // zTensor counts otherwise, and must not be given what it would not read back.
    let ztensor = Registry::standard();
    let ztensor = ztensor.get("ztensor").unwrap();
    if ztensor.codec.is_some() {
        let conversion =
            ops::Conversion::prepare(&archive, ztensor, &ConvertOptions::default()).unwrap();
        let refused = conversion.refuse_losses().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Lossy);
    }
}

#[test]
fn limits_and_depth_are_kept() {
    let deep = |levels: usize| {
        let value = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        format!("{{\"a\":{{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":{value}}}}}")
    };
    assert!(open(&file(&deep(100), 1)).is_ok());
    assert_eq!(refused(&deep(200), 1), "safetensors.depth");
    let rank = |rank: usize| {
        let shape = vec!["1"; rank].join(",");
        format!("{{\"a\":{{\"dtype\":\"U8\",\"shape\":[{shape}],\"data_offsets\":[0,1]}}}}")
    };
    assert!(open(&file(&rank(1024), 1)).is_ok());
    assert_eq!(refused(&rank(1025), 1), "safetensors.rank");
    let limits = Limits::default().rank(1025);
    let bytes = std::sync::Arc::new(Bytes::from(file(&rank(1025), 1)));
    assert!(OpenOptions::new().limits(limits).read(bytes, None).is_ok());
    let limits = Limits::default().header_bytes(10);
    let bytes = std::sync::Arc::new(Bytes::from(file(&rank(1), 1)));
    let error = OpenOptions::new().limits(limits).read(bytes, None);
    assert_eq!(error.err().unwrap().kind(), ErrorKind::Limit);
}

#[test]
fn data_is_not_copied() {
    let bytes = Bytes::from(fixtures("valid").remove(0).1);
    let archive = Archive::from_bytes(bytes.clone()).unwrap();
    for tensor in archive.tensors() {
        let (_, range) = tensor.info().parts[0].payload.stored().unwrap();
        let at = usize::try_from(range.start).unwrap();
        assert_eq!(tensor.stored().unwrap().as_ptr(), bytes[at..].as_ptr());
    }
}

#[test]
fn headers_have_the_room_that_was_asked_for() {
    let (_, bytes) = fixtures("valid").remove(0);
    let archive = open(&bytes).unwrap();
    let data = |options: &ConvertOptions| {
        let bytes = write_one(&archive, options);
        8 + u64::from_le_bytes(bytes[..8].try_into().unwrap())
    };
    let plain = data(&ConvertOptions::default());
    assert_eq!(plain % 8, 0);
    let reserved = data(&with_option("reserve", "100"));
    assert!((plain + 96..plain + 108).contains(&reserved) && reserved % 8 == 0);
    assert_eq!(data(&with_option("align", "4096")) % 4096, 0);
    for (key, value) in [
        ("align", "12"),
        ("align", "0"),
        ("reserve", "-1"),
        ("reserve", "100000000"),
        ("reserve", "18446744073709551615"),
    ] {
        assert!(
            write(&archive, &with_option(key, value)).is_err(),
            "{key}={value}"
        );
    }
}

#[test]
fn what_has_no_place_is_refused_and_what_is_not_text_comes_back_as_it_was() {
    let build = |name: &str, dtype: DType, shape: &[u64], len: usize| {
        let mut builder = ArchiveBuilder::new();
        builder
            .push(name, dtype, shape, Bytes::from(vec![0; len]))
            .unwrap();
        builder
    };
    for (name, dtype, shape, len) in [
        ("__metadata__", DType::U8, &[1][..], 1),
        ("c", DType::C128, &[1], 16),
        ("f4", DType::F4_E2M1, &[3], 2),
    ] {
        let archive = build(name, dtype, shape, len).finish();
        let error = write(&archive, &ConvertOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lossy, "{name}");
    }
    let mut builder = build("a", DType::U8, &[1], 1);
    let nested: Metadata = [("b".to_owned(), Value::List(vec![Value::Null].into()))]
        .into_iter()
        .collect();
    for (key, value) in [
        ("int", Value::I64(-3)),
        ("float", Value::F64(0.5)),
        ("bool", Value::Bool(true)),
        ("map", nested.into()),
        ("text", Value::Str("é\n".into())),
    ] {
        builder.metadata().push(key, value);
    }
    let archive = builder.finish();
    let written = write_one(&archive, &ConvertOptions::default());
    // Other programs read it as text.
    let text = String::from_utf8_lossy(&written);
    for entry in [
        r#""float":"0.5""#,
        r#""int":"-3""#,
        r#""map":"{\"b\":[null]}""#,
    ] {
        assert!(text.contains(entry), "{entry}");
    }
    let back = open(&written).unwrap();
    assert_eq!(back.metadata().len(), archive.metadata().len());
    for (key, value) in archive.metadata().iter() {
        assert_eq!(back.metadata().get(key), Some(value), "{key}");
    }
}

#[test]
fn an_unknown_type_costs_its_tensor_and_a_conversion_says_how_to_go_on() {
    let header = r#"{"a":{"dtype":"F128","shape":[1],"data_offsets":[0,16]},
        "b":{"dtype":"U8","shape":[2],"data_offsets":[16,18]}}"#;
    let archive = open(&file(header, 18)).unwrap();
    let a = archive.tensor("a").unwrap();
    assert_eq!(a.info().dtype, DType::UNKNOWN);
    assert_eq!(a.canonical().unwrap_err().rule(), "safetensors.dtype");
    assert_eq!(archive.tensor("b").unwrap().canonical().unwrap().len(), 2);
    let refused = write(&archive, &ConvertOptions::default()).unwrap_err();
    assert_eq!(refused.hints(), [Hint::Exclude], "{refused}");
}
