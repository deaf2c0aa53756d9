//! Archives that are built from memory, and the short way to write them.

// A test may panic and print.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

use support::memory::{Counting, on_all_threads};
use tempfile::tempdir;
use tenfold::half::{bf16, f16};
use tenfold::model::{DType, Strides, Value};
use tenfold::{Archive, Bytes, Error, ErrorKind, Typed, Values};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The counters are those of the whole process: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    (ALONE.lock()).unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn canonical(archive: &Archive, name: &str) -> Bytes {
    archive.tensor(name).unwrap().canonical().unwrap()
}

#[test]
fn numbers_of_any_type_come_from_vectors_slices_arrays_and_iterators() {
    let _alone = alone();
    let halves = vec![f16::from_f32(1.0); 4];
    let mut b = Archive::builder();
    b.tensor("vec", [2, 3], vec![1f32; 6]).unwrap();
    b.tensor("slice", [4], &halves[..]).unwrap();
    b.tensor("borrowed", [2, 2], &halves).unwrap();
    b.tensor("array", [2], [-1i64, 2]).unwrap();
    b.tensor("box", [1], Box::<[u16]>::from([7])).unwrap();
    b.tensor("scalar", [], [bf16::from_f32(-2.0)]).unwrap();
    let made: Typed<u32> = (1..=3).collect();
    b.tensor("iterator", vec![3], made).unwrap();
    let archive = b.finish();
    let one = 1f32.to_le_bytes();
    assert_eq!(canonical(&archive, "vec"), one.repeat(6));
    assert_eq!(canonical(&archive, "slice"), [0x00, 0x3c].repeat(4));
    assert_eq!(canonical(&archive, "borrowed"), [0x00, 0x3c].repeat(4));
    let array = [[0xff; 8], [2, 0, 0, 0, 0, 0, 0, 0]].concat();
    assert_eq!(canonical(&archive, "array"), array);
    assert_eq!(canonical(&archive, "box")[..], [7, 0]);
    assert_eq!(canonical(&archive, "scalar")[..], [0x00, 0xc0]);
    assert_eq!(
        canonical(&archive, "iterator")[..],
        [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]
    );
    assert!(archive.tensor("scalar").unwrap().dims().unwrap().is_empty());
}

#[test]
fn a_vector_is_not_copied() {
    let _alone = alone();
    let numbers = vec![1f64; 1000];
    let place = numbers.as_ptr();
    let mut b = Archive::builder();
    b.tensor("x", [1000], numbers).unwrap();
    let archive = b.finish();
    let found = archive.tensor("x").unwrap().typed::<f64>().unwrap();
    assert_eq!(found.as_ptr(), place);
}

#[test]
fn what_does_not_fit_its_shape_is_refused_by_name() {
    let _alone = alone();
    let mut b = Archive::builder();
    let wrong = b.tensor("w", [2, 2], vec![1f32; 3]).map(drop).unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Argument);
    assert_eq!(wrong.tensor(), Some("w"));
    b.tensor("w", [3], vec![1f32; 3]).unwrap();
    let twice = b.tensor("w", [3], vec![1f32; 3]).map(drop).unwrap_err();
    assert!(twice.message().contains("\"w\""), "{twice}");
    assert_eq!(b.finish().tensors().len(), 1);
}

#[test]
fn strided_column_major_and_big_endian_bytes_are_taken_as_they_are() {
    let _alone = alone();
    // 1 to 6, as 16 bits: three rows of two in the order of columns.
    let big: Vec<u8> = (1..=6u16).flat_map(u16::to_be_bytes).collect();
    let big = Bytes::from(big);
    let mut b = Archive::builder();
    let turned = b.strided("turned", DType::U16, [3, 2], [1, 3], big.clone());
    turned.unwrap().big_endian().meta("from", "fortran");
    let some = b.strided("some", DType::U16, [2], Strides::new(1, [3]), big.clone());
    some.unwrap().big_endian();
    let plain = b.push("plain", DType::U16, [6], big.clone());
    plain.unwrap().big_endian();
    for (shape, strides) in [([3, 2], [2, 2]), ([4, 2], [1, 3]), ([2, 2], [1, u64::MAX])] {
        let refused = b.strided("outside", DType::U16, shape, strides, big.clone());
        let refused = refused.map(drop).unwrap_err();
        assert_eq!(refused.tensor(), Some("outside"), "{refused}");
    }
    let few = b.strided("few", DType::U16, [3, 2], [1], big.clone());
    assert!(few.is_err());
    let archive = b.finish();
    let numbers = |name: &str| {
        let tensor = archive.tensor(name).unwrap();
        tensor.typed::<u16>().unwrap().to_vec()
    };
    assert_eq!(numbers("turned"), [1, 4, 2, 5, 3, 6]);
    assert_eq!(numbers("some"), [2, 5]);
    assert_eq!(numbers("plain"), [1, 2, 3, 4, 5, 6]);
    let turned = archive.tensor("turned").unwrap();
    assert_eq!(turned.info().layout.name(), "column-major");
    assert_eq!(turned.in_place().unwrap().bytes.as_ptr(), big.as_ptr());
    let said = turned.info().metadata.get("from");
    assert_eq!(said.and_then(Value::as_str), Some("fortran"));
}

#[test]
fn metadata_is_said_in_rust_values_and_the_last_word_counts() {
    let _alone = alone();
    let mut b = Archive::builder();
    b.meta("epoch", 3)
        .meta("rate", 0.5)
        .meta("by", "me")
        .meta("done", true)
        .meta("sizes", vec![1u64, 2])
        .meta("epoch", 4)
        .meta("none", None::<bool>);
    let archive = b.finish();
    let metadata = archive.metadata();
    assert_eq!(metadata.len(), 6);
    assert_eq!(metadata.get("epoch"), Some(&Value::I32(4)));
    assert_eq!(metadata.get("rate"), Some(&Value::F64(0.5)));
    assert_eq!(metadata.get("by"), Some(&Value::Str("me".into())));
    assert_eq!(metadata.get("done"), Some(&Value::Bool(true)));
    let sizes = vec![Value::U64(1), Value::U64(2)];
    assert_eq!(metadata.get("sizes"), Some(&Value::List(sizes.into())));
    assert_eq!(metadata.get("none"), Some(&Value::Null));
}

/// Writes a stream of so many MiB, whose bytes say their place, and opens it again.
fn write_stream(mebibytes: u64, name: &str) -> (Archive, usize, usize) {
    let begun = Arc::new(AtomicUsize::new(0));
    let count = begun.clone();
    let mut b = Archive::builder();
    b.stream("made", DType::U32, [mebibytes, 1 << 18], move |put| {
        count.fetch_add(1, Relaxed);
        for mebibyte in 0..u32::try_from(mebibytes).unwrap() {
            // In pieces that divide nothing.
            let numbers = (0..1 << 18).flat_map(|n| (mebibyte << 18 | n).to_le_bytes());
            let numbers: Vec<u8> = numbers.collect();
            numbers.chunks(99_991).try_for_each(&mut *put)?;
        }
        Ok(())
    })
    .unwrap();
    let archive = b.finish();
    let directory = tempdir().unwrap();
    let path = directory.path().join(name);
    let (saved, peak) = on_all_threads(|| archive.save(&path));
    saved.unwrap();
    // Its bytes stay readable while it is open.
    (Archive::open(&path).unwrap(), peak, begun.load(Relaxed))
}

#[test]
fn a_stream_is_made_once_while_it_is_written_in_bounded_memory() {
    let _alone = alone();
    for name in ["model.safetensors", "model.npy"] {
        let (written, peak, begun) = write_stream(64, name);
        assert_eq!(begun, 1, "{name}");
        assert!(peak < 24 << 20, "{name}: {peak}");
        let mut expected = 0u32;
        let tensor = written.tensor_at(0).unwrap();
        tensor
            .numbers(&mut |numbers| {
                for number in numbers {
                    assert_eq!(*number, f64::from(expected));
                    expected += 1;
                }
                Ok(())
            })
            .unwrap();
        assert_eq!(expected, 64 << 18);
    }
}

#[test]
fn a_stream_of_another_length_is_an_error_that_names_it() {
    let _alone = alone();
    let directory = tempdir().unwrap();
    for (place, made) in [0usize, 1, 399_996, 400_001, 4_000_000]
        .into_iter()
        .enumerate()
    {
        let mut b = Archive::builder();
        b.tensor("before", [2], [1u8, 2]).unwrap();
        b.stream("wrong", DType::F32, [1000, 100], move |put| {
            put(&vec![0; made])
        })
        .unwrap();
        let path = directory.path().join(format!("{place}.safetensors"));
        let error = b.finish().save(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
        assert_eq!(error.tensor(), Some("wrong"), "{error}");
        assert!(!path.exists());
    }
    let mut b = Archive::builder();
    let fails = |put: &mut dyn FnMut(&[u8]) -> tenfold::Result<()>| {
        put(&[0; 4])?;
        Err(Error::argument("the device is gone"))
    };
    b.stream("failing", DType::F32, [1000, 100], fails).unwrap();
    let path = directory.path().join("failing.safetensors");
    let error = b.finish().save(&path).unwrap_err();
    assert_eq!(
        (error.message(), error.tensor()),
        ("the device is gone", Some("failing"))
    );
}

#[test]
fn a_stream_is_sliced_cast_and_put_into_another_order() {
    let _alone = alone();
    let mut b = Archive::builder();
    b.stream("made", DType::U8, [2, 3], |put| put(&[1, 2, 3, 4, 5, 6]))
        .unwrap();
    let archive = b.finish();
    let made = archive.tensor("made").unwrap();
    assert!(made.in_place().is_none());
    let column = made.slice(&tenfold::model::Slice::parse(":, 1").unwrap());
    assert_eq!(column.unwrap().to_bytes().unwrap()[..], [2, 5]);
    assert_eq!(made.to::<f32>().unwrap()[..], [1., 2., 3., 4., 5., 6.]);
    let form = tenfold::model::Form::new(
        DType::U8,
        tenfold::model::Order::ColumnMajor,
        tenfold::model::Endian::Little,
    );
    let mut turned = Vec::new();
    made.stream(&form, &mut |piece| {
        turned.extend_from_slice(piece);
        Ok(())
    })
    .unwrap();
    assert_eq!(turned, [1, 4, 2, 5, 3, 6]);
}

#[test]
fn what_can_be_made_only_once_is_kept_in_bounded_memory() {
    let _alone = alone();
    let mut b = Archive::builder();
    let kept = |mebibytes: u64| {
        move |put: &mut dyn FnMut(&[u8]) -> tenfold::Result<()>| {
            (0..mebibytes).try_for_each(|n| put(&vec![n.to_le_bytes()[0]; 1 << 20]))
        }
    };
    let (pushed, peak) = on_all_threads(|| {
        b.stream_once("long", DType::U8, [64, 1 << 20], kept(64))?;
        b.stream_once("short", DType::U8, [1, 1 << 20], kept(1))?;
        Ok::<_, Error>(())
    });
    pushed.unwrap();
    assert!(peak < 48 << 20, "{peak}");
    for made in [1, 3] {
        let wrong = b.stream_once("wrong", DType::U8, [2, 1 << 20], kept(made));
        assert_eq!(wrong.map(drop).unwrap_err().tensor(), Some("wrong"));
    }
    let archive = b.finish();
    let long = archive.tensor("long").unwrap();
    assert_eq!(long.element(&[63, 17]).unwrap()[..], [63]);
    assert_eq!(long.element(&[0, 0]).unwrap()[..], [0]);
    assert!(archive.tensor("short").unwrap().in_place().is_some());
}

#[test]
fn a_file_is_written_in_the_format_of_its_name_and_nothing_is_lost() {
    let _alone = alone();
    let directory = tempdir().unwrap();
    let path = directory.path().join("model.safetensors");
    let weight = Values::new([2, 3], vec![1f32; 6]);
    let steps = Values::from([1i64, 2]);
    let report = tenfold::save(&path, [("w", weight), ("steps", steps)]).unwrap();
    assert_eq!(report.tensors, 2);
    // As its own library reads it.
    let bytes = std::fs::read(&path).unwrap();
    let read = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(read.tensor("w").unwrap().shape(), [2, 3]);
    assert_eq!(
        read.tensor("w").unwrap().data(),
        1f32.to_le_bytes().repeat(6)
    );
    assert_eq!(
        read.tensor("steps").unwrap().dtype(),
        safetensors::Dtype::I64
    );

    // Nothing is replaced, and no format is guessed.
    let again = tenfold::save(&path, [("w", vec![1f32])]).unwrap_err();
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "{again}");
    let unknown = tenfold::save(directory.path().join("model.xyz"), [("w", vec![1f32])]);
    let unknown = unknown.unwrap_err();
    assert!(unknown.message().contains(".safetensors"), "{unknown}");

    let other = directory.path().join("model.zt");
    tenfold::convert(&path, &other).unwrap();
    let opened = Archive::open(&other).unwrap();
    assert_eq!(opened.format().unwrap().id, "ztensor");
    assert_eq!(opened.path(), Some(&*other));
    assert_eq!(
        opened.tensor("w").unwrap().typed::<f32>().unwrap()[..],
        [1.0; 6]
    );

    // Two tensors do not go into a file of one, and text is not dropped in silence.
    let refused = tenfold::convert(&path, directory.path().join("model.npy"));
    assert!(refused.is_err());
    let mut b = Archive::builder();
    b.tensor("w", [1], [1f32]).unwrap();
    b.meta("by", "me");
    let lost = b.finish().save(directory.path().join("w.npy")).unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Lossy, "{lost}");
    assert!(lost.message().contains("by"), "{lost}");
}

#[cfg(feature = "ndarray")]
#[test]
fn arrays_are_tensors_and_tensors_arrays() {
    let _alone = alone();
    use ndarray::{Array2, array};
    let table = array![[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
    let turned: Array2<f32> = table.t().to_owned();
    let directory = tempdir().unwrap();
    let path = directory.path().join("arrays.safetensors");
    tenfold::save(&path, [("table", &table), ("turned", &turned)]).unwrap();
    let archive = Archive::open(&path).unwrap();
    let of = |name: &str| archive.tensor(name).unwrap().array::<f64>().unwrap();
    assert_eq!(of("table"), table.mapv(f64::from).into_dyn());
    assert_eq!(of("turned"), turned.mapv(f64::from).into_dyn());
    // A part of a larger one, taken with its memory.
    let row = table.slice_move(ndarray::s![1..2, ..]);
    let mut b = Archive::builder();
    b.values("row", row).unwrap();
    let archive = b.finish();
    let row = archive.tensor("row").unwrap();
    assert_eq!(row.dims().unwrap(), [1, 3]);
    assert_eq!(row.typed::<f32>().unwrap()[..], [4.0, 5.0, 6.0]);
}
