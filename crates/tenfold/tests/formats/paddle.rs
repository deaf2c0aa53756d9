//! What is special to Paddle: names of parameters, and what is never read.

use tenfold::Archive;
use tenfold::format::{Effect, Registry};
use tenfold::io::MemoryOutput;
use tenfold::model::{Layout, Payload, Value};
use tenfold::ops::{self, Conversion, ConvertOptions, Edit};

use crate::support::{Case, Kind, cases, digest};

fn valid() -> Vec<Case> {
    let mut cases = cases(Kind::Valid);
    cases.retain(|case| case.format == "paddle");
    assert!(cases.len() > 10);
    cases
}

fn write(archive: &Archive) -> Vec<u8> {
    let registry = Registry::standard();
    let entry = registry.get("paddle").unwrap();
    let options = ConvertOptions::new().allow(Effect::Dropped);
    let mut out = MemoryOutput::new();
    let conversion = Conversion::prepare(archive, entry, &options).unwrap();
    conversion.write_to("a.pdparams", &mut out).unwrap();
    out.into_files().remove("a.pdparams").unwrap()
}

fn open(file: Vec<u8>) -> Archive {
    let options = tenfold::OpenOptions::new();
    options
        .read(
            std::sync::Arc::new(tenfold::Bytes::from(file)),
            Some("a.pdparams"),
        )
        .unwrap()
}

#[test]
fn names_of_parameters_are_a_table_or_pairs() {
    let case = valid()
        .into_iter()
        .find(|case| case.name == "linear_bn")
        .unwrap();
    let archive = case.open().unwrap();
    let has_table = |file: &[u8]| {
        file.windows(27)
            .any(|part| part == b"StructuredToParameterName@@")
    };
    let file = write(&archive);
    assert!(has_table(&file));
    let unset = Edit::Unset("parameter_name".to_owned());
    let some = ops::edit_metadata(&archive, Some("0.weight"), &[unset]).unwrap();
    let other = write(&some);
    assert!(!has_table(&other));
    for (archive, file) in [(&archive, file), (&some, other)] {
        let again = open(file);
        assert_eq!(digest(&again, 1).content, digest(archive, 1).content);
        for (a, b) in archive.tensors().zip(again.tensors()) {
            assert_eq!(a.info().metadata, b.info().metadata, "{}", a.name());
        }
    }
    assert_eq!(
        archive
            .get("0.weight")
            .unwrap()
            .info()
            .metadata
            .get("parameter_name"),
        Some(&Value::from("linear_0.w_0"))
    );
}

#[test]
fn arrays_stay_in_the_file_as_they_are() {
    let case = valid()
        .into_iter()
        .find(|case| case.name == "numpy_values")
        .unwrap();
    let archive = case.open().unwrap();
    let of = |name: &str| archive.get(name).unwrap().info().clone();
    assert_eq!(of("f").layout, Layout::ColumnMajor);
    assert_eq!(of("be").parts[0].endian, tenfold::model::Endian::Big);
    for name in ["a", "f", "be"] {
        assert!(
            matches!(of(name).parts[0].payload, Payload::Raw { .. }),
            "{name}"
        );
    }
}
