//! What is special to MATLAB: columns, numbers stored apart and narrow, sparse matrices, names, compressed variables.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenfold::format::{Effect, Lost, Registry};
use tenfold::io::{MemoryOutput, Source};
use tenfold::model::{DType, Layout, Payload, Value};
use tenfold::ops::{Conversion, ConvertOptions};
use tenfold::{Archive, ArchiveBuilder, Bytes, OpenOptions};

use crate::support::{Case, Kind, cases, digest, errors, verify};

fn valid() -> Vec<Case> {
    let mut cases = cases(Kind::Valid);
    cases.retain(|case| case.format == "mat");
    assert!(cases.len() > 30);
    cases
}

fn fixture(name: &str) -> Case {
    let mut cases = valid().into_iter();
    cases.find(|case| case.name == name).expect("a fixture")
}

type Losses = Vec<(Option<String>, Lost, Effect)>;

/// Writes an archive as MATLAB's; `None` where that is impossible.
fn write(archive: &Archive, options: &ConvertOptions) -> (Option<Vec<u8>>, Losses) {
    let registry = Registry::standard();
    let entry = registry.get("mat").unwrap();
    let options = options.clone().allow(Effect::Dropped);
    let conversion = Conversion::prepare(archive, entry, &options).unwrap();
    let losses = conversion.losses.iter();
    let losses: Losses = losses
        .map(|loss| (loss.tensor.clone(), loss.what.clone(), loss.effect))
        .collect();
    if losses
        .iter()
        .any(|(.., effect)| *effect == Effect::Impossible)
    {
        return (None, losses);
    }
    let mut out = MemoryOutput::new();
    conversion.write_to("out.mat", &mut out).unwrap();
    (out.into_files().remove("out.mat"), losses)
}

fn compressed() -> ConvertOptions {
    ConvertOptions::new().option("deflate", "6")
}

#[test]
fn every_file_goes_on_as_level_5_plain_and_compressed_with_its_text() {
    for case in valid() {
        let archive = case.open().unwrap();
        for options in [ConvertOptions::new(), compressed()] {
            let (file, losses) = write(&archive, &options);
            let file = file.unwrap_or_else(|| panic!("{}: {losses:?}", case.name));
            let again = Archive::from_bytes(file).unwrap();
            assert_eq!(again.version(), "5");
            let names = |archive: &Archive| -> Vec<String> {
                let mut names: Vec<String> = archive
                    .tensors()
                    .map(|tensor| tensor.name().to_owned())
                    .collect();
                names.sort();
                names
            };
            assert_eq!(names(&again), names(&archive), "{}", case.name);
            let (before, after) = (digest(&archive, 1), digest(&again, 1));
            assert_eq!(after.content, before.content, "{}", case.name);
            for (key, value) in archive.metadata().iter() {
                assert_eq!(again.metadata().get(key), Some(value), "{}", case.name);
            }
            assert_eq!(again.metadata().len(), archive.metadata().len());
        }
    }
}

#[test]
fn what_is_skipped_is_noted_and_lost_by_name() {
    for case in valid() {
        let archive = case.open().unwrap();
        let notes = archive.findings().iter();
        let notes = notes.filter(|note| note.rule == "mat.skipped").count();
        assert_eq!(notes, case.list("not_tensors").len(), "{}", case.name);
    }
    // A function handle as SciPy and MATLAB have it: class 16, with a matrix inside.
    let mut file = std::fs::read(fixture("basic").path).unwrap();
    let variable = matrix(16, &[1, 1], "f", &element(14, &[]));
    let end = file.len();
    file.extend_from_slice(&variable);
    let archive = Archive::from_bytes(file).unwrap();
    assert_eq!(archive.tensors().len(), 2);
    let note = archive
        .findings()
        .iter()
        .find(|note| note.rule == "mat.skipped");
    assert!(note.unwrap().message.contains("a function"));
    assert_eq!(archive.manifest().kept[0].range.start, end as u64);
    let (_, losses) = write(&archive, &ConvertOptions::new());
    let is_lost = |(_, what, effect): &(Option<String>, Lost, Effect)| {
        matches!(what, Lost::Kept { name, .. } if name == "f") && *effect == Effect::Dropped
    };
    assert!(losses.iter().any(is_lost), "{losses:?}");
}

fn element(kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = [
        kind.to_le_bytes(),
        u32::try_from(data.len()).unwrap().to_le_bytes(),
    ]
    .concat();
    bytes.extend_from_slice(data);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

fn matrix(flags: u32, dims: &[i32], name: &str, rest: &[u8]) -> Vec<u8> {
    let words = [flags.to_le_bytes(), [0; 4]].concat();
    let dims: Vec<u8> = dims.iter().flat_map(|dim| dim.to_le_bytes()).collect();
    let parts = [
        element(6, &words),
        element(5, &dims),
        element(1, name.as_bytes()),
        rest.to_vec(),
    ];
    element(14, &parts.concat())
}

fn file(variables: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"MATLAB 5.0 MAT-file".to_vec();
    file.resize(124, b' ');
    file.extend_from_slice(b"\0\x01IM");
    file.extend_from_slice(&variables.concat());
    file
}

#[test]
fn columns_are_a_layout_and_lines_are_none() {
    let archive = fixture("octave_v6").open().unwrap();
    let layout = |name: &str| archive.get(name).unwrap().info().layout.clone();
    assert_eq!(layout("a"), Layout::ColumnMajor);
    assert_eq!(layout("u16"), Layout::RowMajor);
    // Whole doubles can be stored narrow, and are doubles.
    let archive = fixture("narrow_storage").open().unwrap();
    let info = archive.get("as_u1").unwrap().info().clone();
    assert_eq!((info.dtype, info.parts[0].dtype), (DType::F64, DType::F64));
    let Payload::Planes(planes) = &info.parts[0].payload else {
        panic!("{info:?}");
    };
    assert_eq!(planes.planes[0].dtype, DType::U8);
}

#[test]
fn a_sparse_matrix_is_kept_by_columns() {
    let archive = fixture("sparse").open().unwrap();
    for tensor in archive.tensors() {
        assert!(
            matches!(tensor.info().layout, Layout::Csc { .. }),
            "{}",
            tensor.name()
        );
    }
    let (file, _) = write(&archive, &ConvertOptions::new());
    let again = Archive::from_bytes(file.unwrap()).unwrap();
    for tensor in again.tensors() {
        assert!(
            matches!(tensor.info().layout, Layout::Csc { .. }),
            "{}",
            tensor.name()
        );
    }
    assert!(errors(&verify(&again, 1)).is_empty());
}

#[test]
fn names_with_dots_are_structures_and_numbers_cells() {
    let mut builder = ArchiveBuilder::new();
    let mut push = |name: &str, shape: &[u64]| {
        let len = usize::try_from(shape.iter().product::<u64>()).unwrap() * 4;
        let bytes = Bytes::from(vec![1; len]);
        builder.push(name, DType::F32, shape, bytes).unwrap();
    };
    push("layers.1.weight", &[2, 3]);
    push("bias", &[3]);
    push("layers.0.weight", &[2, 2]);
    push("scale", &[]);
    push("layers.4.weight", &[1, 2]);
    let archive = builder.finish();
    let (file, losses) = write(&archive, &ConvertOptions::new());
    let again = Archive::from_bytes(file.unwrap()).unwrap();
    let found: Vec<(String, Vec<u64>)> = again
        .tensors()
        .map(|tensor| (tensor.name().to_owned(), tensor.info().shape.to_vec()))
        .collect();
    let expected = [
        ("layers.0.weight", vec![2, 2]),
        ("layers.1.weight", vec![2, 3]),
        ("layers.4.weight", vec![1, 2]),
        ("bias", vec![1, 3]),
        ("scale", vec![1, 1]),
    ];
    let expected = expected.map(|(name, shape)| (name.to_owned(), shape));
    assert_eq!(found, expected);
    let changed: Vec<_> = losses
        .iter()
        .filter(|(_, what, _)| matches!(what, Lost::Shape(_)))
        .filter_map(|(name, ..)| name.as_deref())
        .collect();
    assert_eq!(changed, ["bias", "scale"]);
}

#[test]
fn names_that_matlab_cannot_have_are_refused() {
    for names in [
        &["0.weight"][..],
        &["a-b"],
        &["a..b"],
        &["_a"],
        &["a", "a.b"],
        &["a.b", "a"],
        &["a.0", "a.b"],
        &["a.01"],
        &["a.1000000"],
        &["größe"],
    ] {
        let mut builder = ArchiveBuilder::new();
        for name in names {
            let bytes = Bytes::from(vec![0; 4]);
            builder.push(*name, DType::F32, &[1, 1], bytes).unwrap();
        }
        let (file, losses) = write(&builder.finish(), &ConvertOptions::new());
        assert!(file.is_none(), "{names:?}");
        let is_name = |(_, what, effect): &(Option<String>, Lost, Effect)| {
            *what == Lost::Name && *effect == Effect::Impossible
        };
        assert!(losses.iter().any(is_name), "{names:?} {losses:?}");
    }
}

#[test]
fn types_without_a_class_are_refused() {
    for dtype in [DType::F16, DType::BF16, DType::F8_E4M3] {
        let mut builder = ArchiveBuilder::new();
        let bytes = Bytes::from(vec![0; dtype.width().unwrap()]);
        builder.push("a", dtype, &[1, 1], bytes).unwrap();
        let (file, _) = write(&builder.finish(), &ConvertOptions::new());
        assert!(file.is_none(), "{dtype}");
    }
}

#[test]
fn text_of_octaves_that_counts_too_much_is_read_with_a_warning() {
    let mut cases = cases(Kind::Reject).into_iter();
    let case = cases
        .find(|case| case.name == "octave_char_matrix_v6")
        .unwrap();
    let archive = case.open().unwrap();
    let rules: Vec<_> = archive
        .findings()
        .iter()
        .map(|found| found.rule.as_str())
        .collect();
    assert_eq!(rules, ["mat.length"]);
    let rows: Value = vec![Value::from("ab"), Value::from("cd")].into();
    assert_eq!(archive.metadata().get("ch"), Some(&rows));
    assert!(archive.tensors().len() > 0);
    let strict = OpenOptions::new().strict(true);
    let bytes = std::fs::read(&case.path).unwrap();
    let error = strict
        .read(std::sync::Arc::new(Bytes::from(bytes)), None)
        .unwrap_err();
    assert_eq!(error.rule(), "mat.length");
}

#[test]
fn a_fault_of_one_variable_costs_that_one() {
    let doubles =
        |values: &[f64]| -> Vec<u8> { values.iter().flat_map(|n| n.to_le_bytes()).collect() };
    let good = matrix(6, &[1, 2], "good", &element(9, &doubles(&[1.0, 2.0])));
    let bad = [
        (
            "mat.size",
            matrix(6, &[1, 2], "bad", &element(9, &doubles(&[1.0]))),
        ),
        (
            "mat.data-type",
            matrix(6, &[1, 2], "bad", &element(10, &[0; 16])),
        ),
        (
            "mat.complex",
            matrix(
                0x808,
                &[1, 1],
                "bad",
                &[element(1, &[1]), element(1, &[2])].concat(),
            ),
        ),
        (
            "mat.truncated",
            matrix(0x806, &[1, 1], "bad", &element(9, &doubles(&[1.0]))),
        ),
    ];
    for (rule, bad) in bad {
        let archive = Archive::from_bytes(file(&[bad, good.clone()])).unwrap();
        let defect = archive.get("bad").unwrap().info().defect.clone().unwrap();
        assert_eq!(defect.rule(), rule);
        let good = archive.get("good").unwrap().canonical().unwrap();
        assert_eq!(good, doubles(&[1.0, 2.0]));
    }
}

#[test]
fn a_compressed_variable_is_checked_to_its_end() {
    let archive = fixture("classes").open().unwrap();
    let (whole, _) = write(&archive, &compressed());
    let whole = whole.unwrap();
    // The last bytes are the checksum of the last variable.
    let mut damaged = whole.clone();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    let error = Archive::from_bytes(damaged).unwrap_err();
    assert_eq!(error.rule(), "mat.deflate");
    // A stream that goes on behind its element.
    assert!(Archive::from_bytes(whole[..whole.len() - 2].to_vec()).is_err());
}

#[test]
fn shared_and_circular_cells_of_7_3_end() {
    // The references of a cell lead to itself.
    let mut file = std::fs::read(fixture("v73_struct_cell").path).unwrap();
    let archive = Archive::from_bytes(file.clone()).unwrap();
    assert!(archive.get("c.0").is_some());
    let mut changed = 0;
    for at in (512..file.len() - 8).step_by(8) {
        let word = u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
        if word > 0 && word < 1 << 20 && word % 8 == 0 {
            let before: [u8; 8] = file[at..at + 8].try_into().unwrap();
            for target in (0..4096u64).step_by(256) {
                file[at..at + 8].copy_from_slice(&target.to_le_bytes());
                // Whatever it leads to: no endless loop, and no panic.
                let _ = Archive::from_bytes(file.clone());
            }
            file[at..at + 8].copy_from_slice(&before);
            changed += 1;
        }
    }
    assert!(changed > 10);
}

#[test]
fn the_byte_order_of_level_4_is_that_of_its_words() {
    // A double of a big-endian machine, as its type says, in little-endian words: scipy goes by the words.
    let mut file = Vec::new();
    for word in [1000u32, 1, 2, 0, 2] {
        file.extend(word.to_le_bytes());
    }
    file.extend(b"a\0");
    file.extend(
        [1.5f64, -2.0]
            .iter()
            .flat_map(|number| number.to_le_bytes()),
    );
    let archive = Archive::from_bytes(file).unwrap();
    let values = archive.tensor("a").unwrap().typed::<f64>().unwrap();
    assert_eq!(values.iter().copied().collect::<Vec<_>>(), [1.5, -2.0]);
    let rules: Vec<_> = archive
        .findings()
        .iter()
        .map(|finding| &*finding.rule)
        .collect();
    assert_eq!(rules, ["mat.type"]);
}

/// Counts the bytes that are read of a file.
struct Counted(Bytes, Arc<AtomicU64>);

impl Source for Counted {
    fn len(&self) -> u64 {
        Source::len(&self.0)
    }

    fn read(&self, range: std::ops::Range<u64>) -> tenfold::Result<Bytes> {
        self.1.fetch_add(range.end - range.start, Ordering::Relaxed);
        Source::read(&self.0, range)
    }
}

#[test]
fn the_arrays_of_a_compressed_struct_are_decoded_in_one_pass() {
    const ARRAYS: u32 = 60;
    let mut builder = ArchiveBuilder::new();
    let mut state = 1u32;
    for n in 0..ARRAYS {
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_le_bytes()[3]
        };
        let bytes: Vec<u8> = (0..8 << 10).map(|_| noise()).collect();
        let name = format!("s.f{n}");
        builder
            .push(&*name, DType::U8, &[8 << 10], Bytes::from(bytes))
            .unwrap();
    }
    let (file, _) = write(&builder.finish(), &compressed());
    let file = Bytes::from(file.unwrap());
    let read = Arc::new(AtomicU64::new(0));
    let source = Arc::new(Counted(file.clone(), read.clone()));
    let archive = OpenOptions::new().read(source, Some("s.mat")).unwrap();
    assert_eq!(archive.tensors().len(), ARRAYS as usize);
    let opened = read.swap(0, Ordering::Relaxed);
    let whole = file.len() as u64;
    assert!(opened < 2 * whole, "{opened} of {whole}");
    digest(&archive, 1);
    let digested = read.swap(0, Ordering::Relaxed);
    // Decoded anew for every array, it would be half of the file for each.
    assert!(digested < 2 * whole, "{digested} of {whole}");
    // Asked for backwards, nothing goes on where another one stopped, and everything is the same.
    let first = archive.tensor("s.f0").unwrap().canonical().unwrap();
    let last = archive.tensor("s.f59").unwrap().canonical().unwrap();
    assert_ne!(first, last);
    assert_eq!(archive.tensor("s.f0").unwrap().canonical().unwrap(), first);
    assert_eq!(archive.tensor("s.f59").unwrap().canonical().unwrap(), last);
}
