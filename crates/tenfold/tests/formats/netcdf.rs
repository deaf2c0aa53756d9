//! What is special to NetCDF: records, text, dimensions, bools.

use tenfold::format::{Effect, Lost, Registry};
use tenfold::io::MemoryOutput;
use tenfold::model::{DType, Layout, Value};
use tenfold::ops::{Conversion, ConvertOptions};
use tenfold::{Archive, ArchiveBuilder, Bytes, OpenOptions};

use crate::support::{Case, Kind, cases, digest};

fn valid() -> Vec<Case> {
    let mut cases = cases(Kind::Valid);
    cases.retain(|case| case.format == "netcdf");
    assert!(cases.len() > 10);
    cases
}

fn fixture(name: &str) -> Case {
    let mut cases = valid().into_iter();
    cases.find(|case| case.name == name).expect("a fixture")
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(fixture(name).path).unwrap()
}

fn convert(archive: &Archive, format: &str) -> (Archive, Vec<(Option<String>, Lost, Effect)>) {
    let registry = Registry::standard();
    let entry = registry.get(format).unwrap();
    let options = ConvertOptions::new().allow(Effect::Dropped);
    let conversion = Conversion::prepare(archive, entry, &options).unwrap();
    let losses = conversion.losses.iter();
    let losses = losses
        .map(|loss| (loss.tensor.clone(), loss.what.clone(), loss.effect))
        .collect();
    let mut out = MemoryOutput::new();
    conversion.write_to("out.nc", &mut out).unwrap();
    let file = out.into_files().remove("out.nc").unwrap();
    (Archive::from_bytes(file).unwrap(), losses)
}

#[test]
fn records_that_interleave_are_a_layout_and_a_single_variable_is_none() {
    let archive = fixture("scipy_records_v2").open().unwrap();
    // 16 bytes of the one and 2 of the other, padded to 4: no multiple of 8.
    for name in ["r", "h"] {
        let layout = &archive.get(name).unwrap().info().layout;
        assert_eq!(*layout, Layout::Records { distance: 20 }, "{name}");
    }
    for name in ["i1", "i2", "f4"] {
        let archive = fixture(&format!("one_record_variable_{name}"))
            .open()
            .unwrap();
        assert_eq!(archive.get("only").unwrap().info().layout, Layout::RowMajor);
    }
}

#[test]
fn a_number_of_records_that_is_left_open_follows_from_the_length() {
    for name in ["cdf1_records", "cdf2_records", "cdf5_records"] {
        let mut file = bytes(name);
        let len = if name.starts_with("cdf5") { 8 } else { 4 };
        file[4..4 + len].fill(0xff);
        let archive = Archive::from_bytes(file.clone()).unwrap();
        let whole = fixture(name).open().unwrap();
        assert_eq!(
            digest(&archive, 1).content,
            digest(&whole, 1).content,
            "{name}"
        );
        let mut findings = archive.findings().iter();
        assert!(findings.any(|finding| finding.rule == "netcdf.streaming"));
        let strict = OpenOptions::new().strict(true);
        let error = strict
            .read(std::sync::Arc::new(Bytes::from(file)), None)
            .unwrap_err();
        assert_eq!(error.rule(), "netcdf.streaming");
    }
}

#[test]
fn text_is_noted_and_stays_in_netcdf_alone() {
    let mut noted = 0;
    for case in valid() {
        let archive = case.open().unwrap();
        let texts = archive
            .findings()
            .iter()
            .filter(|note| note.rule == "netcdf.text");
        assert_eq!(
            texts.count(),
            case.list("not_tensors").len(),
            "{}",
            case.name
        );
        for text in case.list("not_tensors") {
            let name = text["path"].as_str().unwrap();
            let kept = &archive.manifest().kept;
            assert!(kept.iter().any(|kept| kept.name == name));
            let (again, losses) = convert(&archive, "netcdf");
            assert!(
                !losses
                    .iter()
                    .any(|(_, what, _)| matches!(what, Lost::Kept { .. }))
            );
            let read = |archive: &Archive| {
                let kept = archive
                    .manifest()
                    .kept
                    .iter()
                    .find(|kept| kept.name == name)
                    .unwrap();
                let source = archive.source(kept.source).unwrap();
                source.read(kept.range.clone()).unwrap()
            };
            assert_eq!(read(&again), read(&archive));
            let (_, losses) = convert(&archive, "safetensors");
            let is_lost = |(_, what, effect): &(Option<String>, Lost, Effect)| {
                matches!(what, Lost::Kept { name: lost, .. } if lost == name)
                    && *effect == Effect::Dropped
            };
            assert!(losses.iter().any(is_lost), "{losses:?}");
            noted += 1;
        }
    }
    assert!(noted >= 3);
}

#[test]
fn true_and_false_are_bytes_with_the_attribute_of_xarray() {
    let mut builder = ArchiveBuilder::new();
    builder
        .push("mask", DType::BOOL, &[3], Bytes::from_static(&[1, 0, 1]))
        .unwrap();
    let (archive, _) = convert(&builder.finish(), "netcdf");
    let mask = archive.get("mask").unwrap();
    assert_eq!(mask.info().dtype, DType::BOOL);
    assert_eq!(
        mask.info().metadata.get("dtype"),
        Some(&Value::from("bool"))
    );
    assert_eq!(mask.canonical().unwrap(), [1, 0, 1][..]);
    assert_eq!(archive.version(), "CDF-2");
}

#[test]
fn names_of_dimensions_are_kept_where_they_agree() {
    let archive = fixture("cdf1_basic").open().unwrap();
    let names = |archive: &Archive, tensor: &str| {
        archive
            .get(tensor)
            .unwrap()
            .info()
            .metadata
            .get("dimension_names")
            .cloned()
    };
    let before = [names(&archive, "t"), names(&archive, "i")];
    assert!(before.iter().all(Option::is_some));
    let (again, losses) = convert(&archive, "netcdf");
    assert_eq!([names(&again, "t"), names(&again, "i")], before);
    assert!(
        losses
            .iter()
            .all(|(.., effect)| *effect == Effect::Rearranged),
        "{losses:?}"
    );
    // The same name for two lengths.
    let mut builder = ArchiveBuilder::new();
    for (name, count) in [("a", 2), ("b", 3)] {
        let data = Bytes::from(vec![0; count]);
        let tensor = builder.push(name, DType::I8, &[count as u64], data);
        tensor.unwrap().meta("dimension_names", ["x"]);
    }
    let archive = builder.finish();
    let (again, losses) = convert(&archive, "netcdf");
    assert_eq!(names(&again, "a"), Some(Value::from(["x"])));
    assert_eq!(names(&again, "b"), Some(Value::from(["dim0"])));
    let dropped = losses
        .iter()
        .filter(|(.., effect)| *effect == Effect::Dropped);
    let dropped: Vec<_> = dropped.map(|(tensor, ..)| tensor.as_deref()).collect();
    assert_eq!(dropped, [Some("b")]);
}

#[test]
fn variables_with_the_same_bytes_are_refused() {
    let mut file = bytes("cdf1_basic");
    let archive = Archive::from_bytes(file.clone()).unwrap();
    let stored = |name| {
        archive.get(name).unwrap().info().parts[0]
            .payload
            .stored()
            .unwrap()
            .1
    };
    let header = archive.manifest().regions[0].range.end;
    let place = usize::try_from(header).unwrap() - 4;
    assert_eq!(
        file[place..place + 4],
        u32::try_from(stored("i").start).unwrap().to_be_bytes()
    );
    let other = u32::try_from(stored("t").start + 4).unwrap();
    file[place..place + 4].copy_from_slice(&other.to_be_bytes());
    assert_eq!(
        Archive::from_bytes(file).unwrap_err().rule(),
        "netcdf.overlap"
    );
}

#[test]
fn records_stay_records_where_the_metadata_names_their_dimension() {
    let (mut kept, mut interleaved) = (0, 0);
    for case in valid() {
        let archive = case.open().unwrap();
        let Some(name) = archive.metadata().get("record_dimension") else {
            continue;
        };
        // No records, no data, and no size that could be written.
        if archive
            .tensors()
            .any(|tensor| tensor.info().shape.contains(&0))
        {
            continue;
        }
        let (again, _) = convert(&archive, "netcdf");
        let is_empty = archive.tensors().all(|tensor| {
            let dimensions = tensor.info().metadata.get("dimension_names");
            !matches!(dimensions, Some(Value::List(list)) if list.iter().next().as_ref() == Some(name))
        });
        if is_empty {
            continue;
        }
        assert_eq!(
            again.metadata().get("record_dimension"),
            Some(name),
            "{}",
            case.name
        );
        assert_eq!(
            digest(&again, 1).content,
            digest(&archive, 1).content,
            "{}",
            case.name
        );
        for (before, after) in archive.tensors().zip(again.tensors()) {
            let (before, after) = (&before.info().layout, &after.info().layout);
            assert_eq!(before, after, "{}", case.name);
            interleaved += usize::from(matches!(after, Layout::Records { .. }));
        }
        kept += 1;
    }
    assert!(kept > 3 && interleaved > 3, "{kept} {interleaved}");
}
