//! A sparse or packed tensor that is cast is what the dense one is when it is cast, bit by bit: read as a whole, in slices
//! and by single elements, and written in every version of every format that has a place for it.

// A test may panic.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

mod support;

use support::{InMemory, Kind, cases, file_name, options_for, profiles};
use tenfold::format::{Effect, Entry, Registry};
use tenfold::io::MemoryOutput;
use tenfold::model::{
    CastCounts, DType, Lanes, Layout, Operation, PairIndex, Pairs, Part, Payload, Role, Scalar,
    Slice, Symmetry, TensorInfo,
};
use tenfold::ops::{self, Conversion, ConvertOptions, Sparse};
use tenfold::{Archive, ArchiveBuilder, Bytes};

/// Tensors of the fixtures with more bytes are left out: they are expanded.
const MOST: u64 = 1 << 16;

#[test]
fn entries_and_packed_elements_are_cast_as_the_dense_tensor_is() {
    let mut compared = 0;
    for (title, archive) in subjects() {
        let dense = dense_form(&archive);
        for to in targets(&archive) {
            let context = format!("{title} to {to}");
            let cast = ops::cast(&archive, |_| Some(to));
            let cast = cast.unwrap_or_else(|error| panic!("{context}: {error}"));
            let expected = ops::cast(&dense, |_| Some(to)).unwrap();
            assert_eq!(whole(&cast), whole(&expected), "{context}");
            check_slices(&cast, &expected, &context);
            check_elements(&cast, &expected, &context);
            compared += 1;
        }
    }
    println!("{compared} casts");
    assert!(compared > 1000, "{compared}");
}

#[test]
fn what_is_written_of_a_cast_is_the_cast_of_what_is_written() {
    let mut written = 0;
    let mut sparse = 0;
    // A debug build takes every fourth version for a subject and a type, each time others.
    let step = if cfg!(debug_assertions) { 4 } else { 1 };
    let profiles = profiles();
    for (n, (title, archive)) in subjects().into_iter().enumerate() {
        let dense = dense_form(&archive);
        for (k, to) in targets(&archive).into_iter().enumerate() {
            let cast = ops::cast(&archive, |_| Some(to)).unwrap();
            let expected_archive = ops::cast(&dense, |_| Some(to)).unwrap();
            let expected = whole(&expected_archive);
            for &(entry, profile) in profiles.iter().skip((n + k) % step).step_by(step) {
                if !(profile.can.dtype)(to) {
                    continue;
                }
                for keep in [Sparse::AsIs, Sparse::Keep, Sparse::All] {
                    let context = format!(
                        "{title} to {to} in {} {} {keep:?}",
                        entry.spec.id, profile.version
                    );
                    let options = options_for(profile).sparse(keep);
                    let Some((found, casts)) = convert(&cast, &entry, &options, &context) else {
                        continue;
                    };
                    assert!(whole(&found) == expected, "{context}");
                    let tensor = found.tensors().next().unwrap();
                    written += 1;
                    sparse += usize::from(!tensor.info().layout.is_dense());
                    let counted = if is_symmetric(&tensor.info().layout) {
                        ops::cast(&stored_form(&archive), |_| Some(to)).unwrap()
                    } else {
                        expected_archive.clone()
                    };
                    let (_, counts) =
                        convert(&counted, &entry, &options_for(profile), &context).unwrap();
                    let of =
                        |counts: CastCounts| (counts.overflows, counts.underflows, counts.nans);
                    assert_eq!(of(casts), of(counts), "{context}");
                }
            }
        }
    }
    println!("{written} files, {sparse} of them sparse or packed");
    assert!(written > 5000 && sparse > 1000, "{written} {sparse}");
}

#[test]
fn what_a_cast_to_a_narrow_type_makes_zero_is_counted_and_not_listed() {
    let mut builder = ArchiveBuilder::new();
    let values = bytes([1.0f64, 1e-200, 0.0, 1e200].map(f64::to_le_bytes));
    builder
        .push("t", DType::F64, &[4], Bytes::from(values))
        .unwrap();
    let archive = ops::cast(&builder.finish(), |_| Some(DType::F32)).unwrap();
    let registry = Registry::standard();
    for id in ["ztensor", "tens"] {
        let entry = registry.get(id).unwrap();
        let options = ConvertOptions::default().sparse(Sparse::All);
        let conversion = Conversion::prepare(&archive, entry, &options).unwrap();
        assert_eq!(conversion.casts.len(), 1, "{id}");
        let (found, casts) = convert(&archive, entry, &options, id).unwrap();
        assert_eq!((casts.overflows, casts.underflows), (1, 1), "{id}");
        let layout = &found.tensors().next().unwrap().info().layout;
        assert_eq!(layout.nnz(), Some(2), "{id}: {layout:?}");
    }
}

#[test]
fn indices_that_get_wider_are_not_counted_as_cast() {
    let archive = coo(
        DType::F32,
        &[5],
        &bytes([1.0f32, 2.0].map(f32::to_le_bytes)),
    );
    let registry = Registry::standard();
    let entry = registry.get("ztensor").unwrap();
    let options = ConvertOptions::default().version(Some("1.2"));
    let (_, casts) = convert(&archive, entry, &options, "coo").unwrap();
    assert_eq!(casts.numbers, 0);
}

#[test]
fn equal_bytes_of_different_types_are_not_shared_when_they_are_cast() {
    let mut builder = ArchiveBuilder::new();
    let one = Bytes::copy_from_slice(&1f32.to_le_bytes());
    builder.push("a", DType::F32, &[1], one.clone()).unwrap();
    builder.push("b", DType::I32, &[1], one.clone()).unwrap();
    let cast = ops::cast(&builder.finish(), |_| Some(DType::I32)).unwrap();
    let registry = Registry::standard();
    let options = ConvertOptions::default()
        .version(Some("2"))
        .option("canonical", "true");
    let (found, _) = convert(&cast, registry.get("ztensor").unwrap(), &options, "").unwrap();
    assert_eq!(
        found.tensor("a").unwrap().canonical().unwrap(),
        1i32.to_le_bytes()[..]
    );
    assert_eq!(found.tensor("b").unwrap().canonical().unwrap(), one);
}

/// Whether some of the elements are not stored because a symmetry gives them back.
fn is_symmetric(layout: &Layout) -> bool {
    match layout {
        Layout::Packed(_) => true,
        Layout::Pairs(pairs) => !pairs.orbits.is_empty(),
        _ => false,
    }
}

/// The stored values of a packed tensor, or of records, as a vector.
fn stored_form(archive: &Archive) -> Archive {
    let tensor = archive.tensors().next().unwrap();
    let info = tensor.info();
    let part = tensor.part(0).unwrap();
    let width = info.dtype.width().unwrap();
    let values: Vec<u8> = match &info.layout {
        Layout::Pairs { .. } => {
            let records = part.chunks_exact(8 + width);
            records.flat_map(|record| record[8..].to_vec()).collect()
        }
        _ => part.to_vec(),
    };
    let shape = vec![values.len() as u64 / width as u64];
    let payload = Payload::Inline(values.into());
    let mut vector = TensorInfo::dense("t", info.dtype, shape, payload);
    vector.parts[0].endian = info.parts[0].endian;
    alone(vector)
}

fn archive_dtype(archive: &Archive) -> DType {
    archive.tensors().next().unwrap().info().dtype
}

/// What was written, opened again, and the counts of the report; `None` where there is no place for the tensor.
fn convert(
    archive: &Archive,
    entry: &Entry,
    options: &ConvertOptions,
    context: &str,
) -> Option<(Archive, CastCounts)> {
    let conversion = match Conversion::prepare(archive, entry, options) {
        Ok(conversion) => conversion,
        // No sparse layout to write.
        Err(error) if error.rule().ends_with("sparse") => return None,
        Err(error) => panic!("{context}: {error}"),
    };
    let is_impossible = |loss: &tenfold::format::Loss| loss.effect == Effect::Impossible;
    if conversion.losses.iter().any(is_impossible) {
        return None;
    }
    let mut out = MemoryOutput::new();
    let report = conversion.write_to(&file_name(entry), &mut out);
    let report = report.unwrap_or_else(|error| panic!("{context}: {error}"));
    let written = InMemory::written(out.into_files(), &file_name(entry));
    let opened = written.open();
    let opened = opened.unwrap_or_else(|error| panic!("{context}: {error}"));
    Some((opened, report.casts))
}

/// Every sparse and packed tensor of the fixtures, and some with numbers that are hard to cast, each by itself.
fn subjects() -> Vec<(String, Archive)> {
    let mut subjects = Vec::new();
    for case in cases(Kind::Valid) {
        let archive = case.open().unwrap();
        for tensor in archive.tensors() {
            let info = tensor.info();
            let other = !info.layout.is_dense()
                && !matches!(info.layout, Layout::Opaque { .. } | Layout::Decoded);
            let is_small = info.dense_len().is_some_and(|len| len <= MOST);
            if other && is_small && info.defect.is_none() && tensor.canonical().is_ok() {
                let alone = archive.select(|other| other.name == info.name);
                subjects.push((format!("{} {}", case.title(), info.name), alone));
            }
        }
    }
    assert!(subjects.len() > 20, "{}", subjects.len());
    subjects.extend(hard());
    subjects
}

/// Tensors with the least integers, NaN, infinities, zeros of both signs and numbers beyond other types.
fn hard() -> Vec<(String, Archive)> {
    let floats = [
        -0.0f32,
        f32::NAN,
        f32::INFINITY,
        1e20,
        -1e20,
        300.5,
        -1e-30,
        2.5,
        -3.5,
        0.1,
    ];
    let floats = bytes(floats.map(f32::to_le_bytes));
    let doubles = [1e300f64, -0.0, -1e300, f64::NAN, 1e-310, -7.5];
    let doubles = bytes(doubles.map(f64::to_le_bytes));
    let least = [i32::MIN, -1, 200, -200, i32::MAX, 7];
    let least = bytes(least.map(i32::to_le_bytes));
    let complex = DType::Number(Scalar::F32, Lanes::Complex);
    let mut all = vec![
        ("coo f32".to_owned(), coo(DType::F32, &[40], &floats)),
        ("coo i32".to_owned(), coo(DType::I32, &[40], &least)),
        ("coo c64".to_owned(), coo(complex, &[40], &floats)),
    ];
    for operation in Operation::ALL {
        for (dtype, values) in [
            (DType::F32, &floats),
            (DType::F64, &doubles),
            (DType::I32, &least),
            (complex, &floats),
        ] {
            let title = |kind: &str| format!("{kind} {dtype} by {operation:?}");
            all.push((title("packed"), packed(operation, dtype, values)));
            all.push((title("orbits"), orbits(operation, dtype, values)));
        }
    }
    // Elements of a type without 0: those that are not stored are what no bits stand for.
    let powers = DType::from_name("f8_e8m0").unwrap();
    all.push((
        "coo e8m0".to_owned(),
        coo(powers, &[9], &[1, 127, 200, 255]),
    ));
    all
}

fn bytes<const N: usize>(numbers: impl IntoIterator<Item = [u8; N]>) -> Vec<u8> {
    numbers.into_iter().flatten().collect()
}

fn alone(info: TensorInfo) -> Archive {
    let mut builder = ArchiveBuilder::new();
    builder.push_info(info).unwrap();
    builder.finish()
}

/// As many entries as there are values, at every other place.
fn coo(dtype: DType, shape: &[u64], values: &[u8]) -> Archive {
    let nnz = values.len() as u64 / dtype.width().unwrap() as u64;
    let mut info = TensorInfo::new("t", dtype, shape.to_vec(), Layout::Coo { nnz });
    let coords: Vec<u8> = (0..nnz)
        .flat_map(|n| u32::try_from(2 * n).unwrap().to_le_bytes())
        .collect();
    let inline = |bytes: &[u8]| Payload::Inline(Bytes::copy_from_slice(bytes));
    info.parts = vec![
        Part::new(Role::Values, dtype, inline(values)),
        Part::new(Role::Coords, DType::U32, inline(&coords)),
    ]
    .into();
    alone(info)
}

fn exchange(operation: Operation) -> Symmetry {
    Symmetry::new(operation, [1, 0])
}

/// A matrix of which one half is stored, with the values again and again.
fn packed(operation: Operation, dtype: DType, values: &[u8]) -> Archive {
    let n = 7;
    let stored = match operation {
        Operation::Negate => n * (n - 1) / 2,
        _ => n * (n + 1) / 2,
    };
    let len = stored * dtype.width().unwrap();
    let values: Vec<u8> = values.iter().copied().cycle().take(len).collect();
    let layout = Layout::Packed(Box::new(exchange(operation)));
    let mut info = TensorInfo::new("t", dtype, vec![n as u64; 2], layout);
    let payload = Payload::Inline(values.into());
    info.parts = vec![Part::new(Role::Values, dtype, payload)].into();
    alone(info)
}

/// A matrix of which entries below the diagonal are stored.
fn orbits(operation: Operation, dtype: DType, values: &[u8]) -> Archive {
    let n = 12u64;
    let width = dtype.width().unwrap();
    let mut records = Vec::new();
    let mut nnz = 0;
    for (k, value) in (1u64..).zip(values.chunks_exact(width)) {
        // Column k - 1, row k.
        records.extend_from_slice(&(k + (k - 1) * n).to_le_bytes());
        records.extend_from_slice(value);
        nnz += 1;
    }
    let mut pairs = Pairs::new(nnz, PairIndex::ColumnMajor);
    pairs.orbits = vec![exchange(operation)];
    let mut info = TensorInfo::new("t", dtype, vec![n; 2], pairs.into());
    let payload = Payload::Inline(records.into());
    info.parts = vec![Part::new(Role::Values, dtype, payload)].into();
    alone(info)
}

/// Every type that the tensor of an archive can be cast to.
fn targets(archive: &Archive) -> Vec<DType> {
    let DType::Number(from, lanes) = archive_dtype(archive) else {
        panic!("not numbers");
    };
    let mut all: Vec<_> = Scalar::all().map(|to| DType::Number(to, lanes)).collect();
    if lanes == Lanes::Real && from.bits() >= 8 {
        all.push(DType::C64);
        all.push(DType::Number(Scalar::I16, Lanes::Complex));
    }
    all
}

/// The tensor of an archive as a dense one that knows nothing of how it was stored.
fn dense_form(archive: &Archive) -> Archive {
    let tensor = archive.tensors().next().unwrap();
    let mut builder = ArchiveBuilder::new();
    let info = tensor.info();
    let canonical = tensor.canonical().unwrap();
    builder
        .push("t", info.dtype, &info.shape, canonical)
        .unwrap();
    builder.finish()
}

fn whole(archive: &Archive) -> Bytes {
    archive.tensors().next().unwrap().canonical().unwrap()
}

fn check_slices(found: &Archive, expected: &Archive, context: &str) {
    let rank = archive_shape(found).len();
    let texts: &[&str] = match rank {
        0 => &["..."],
        1 => &["::2", "::-1", "1:3"],
        _ => &["::2, ::-1", "..., -1", "0"],
    };
    for text in texts {
        let slices = Slice::parse(text).unwrap();
        let of = |archive: &Archive| {
            let tensor = archive.tensors().next().unwrap();
            tensor.slice(&slices).and_then(|sliced| sliced.to_bytes())
        };
        match (of(found), of(expected)) {
            (Ok(found), Ok(expected)) => assert!(found == expected, "{context} [{text}]"),
            // A dimension of length 0 has no first index.
            (Err(_), Err(_)) => {}
            (found, expected) => panic!("{context} [{text}]: {found:?} {expected:?}"),
        }
    }
}

fn check_elements(found: &Archive, expected: &Archive, context: &str) {
    let shape = archive_shape(found);
    if shape.contains(&0) || archive_dtype(found).width().is_none() {
        return;
    }
    let reader = |archive: &Archive, index: &[u64]| {
        let tensor = archive.tensors().next().unwrap();
        tensor.element(index).unwrap()
    };
    for n in 0..5u64 {
        let index: Vec<u64> = (0..)
            .zip(&shape)
            .map(|(k, dim)| (n * 7 + k * 3) % dim)
            .collect();
        let (found, expected) = (reader(found, &index), reader(expected, &index));
        assert_eq!(found, expected, "{context} {index:?}");
    }
}

fn archive_shape(archive: &Archive) -> Vec<u64> {
    archive.tensors().next().unwrap().info().shape.to_vec()
}
