//! The last step of reading: numbers of a Rust type, memory of the caller, and what costs nothing.

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

use support::memory::{Counting, on_this_thread};
use support::{Kind, cases};
use tempfile::tempdir;
use tenfold::half::{bf16, f16};
use tenfold::io::Source;
use tenfold::model::{DType, Endian, Form, Layout, Order, Part, Payload, Role, Slice, TensorInfo};
use tenfold::{Archive, Bytes, Component, Control, ErrorKind, Values, Work, ops};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn bytes(numbers: &[f32]) -> Bytes {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

/// One tensor of each kind, with what it is worked out by hand.
fn kinds() -> Archive {
    let mut b = Archive::builder();
    b.tensor("small", [2, 2], [1i8, -2, 3, -4]).unwrap();
    let brains = [1.5, -2.0].map(bf16::from_f32);
    b.tensor("brain", [2], brains).unwrap();
    b.tensor("wide", [2], [0.1f64, 1e300]).unwrap();
    b.strided(
        "turned",
        DType::F32,
        [2, 2],
        [1, 2],
        bytes(&[1., 2., 3., 4.]),
    )
    .unwrap();
    // A block of 32: the scale as f16, then the numbers of 8 bits.
    let mut block = f16::from_f32(0.5).to_le_bytes().to_vec();
    block.extend((0..32u8).map(|n| n.wrapping_sub(16)));
    b.push(
        "block",
        DType::parse("Q8_0").unwrap(),
        [32],
        Bytes::from(block),
    )
    .unwrap();
    let mut sparse = TensorInfo::new("sparse", DType::F32, vec![2, 3], Layout::Coo { nnz: 2 });
    // (0, 1) and (1, 2).
    let coords: Vec<u8> = [0u64, 1, 1, 2]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    let part = |role, dtype, bytes: Vec<u8>| Part::new(role, dtype, Payload::Inline(bytes.into()));
    sparse.parts = vec![
        part(Role::Values, DType::F32, bytes(&[5.0, -6.0]).to_vec()),
        part(Role::Coords, DType::U64, coords),
    ]
    .into();
    b.push_info(sparse).unwrap();
    b.push(
        "bits",
        DType::parse("u1").unwrap(),
        [3],
        Bytes::from_static(&[0b101]),
    )
    .unwrap();
    b.push("z", DType::C64, [2], bytes(&[3., 4., -1., 0.]))
        .unwrap();
    b.finish()
}

#[test]
fn elements_become_numbers_whatever_they_are_stored_as() {
    let archive = kinds();
    let to = |name: &str| {
        archive
            .tensor(name)
            .unwrap()
            .to::<f32>()
            .map(|found| found.to_vec())
    };
    assert_eq!(to("small").unwrap(), [1., -2., 3., -4.]);
    assert_eq!(to("brain").unwrap(), [1.5, -2.0]);
    assert_eq!(to("wide").unwrap(), [0.1, f32::INFINITY]);
    assert_eq!(to("turned").unwrap(), [1., 3., 2., 4.]);
    assert_eq!(to("sparse").unwrap(), [0., 5., 0., 0., 0., -6.]);
    assert_eq!(to("bits").unwrap(), [1., 0., 1.]);
    // Two numbers cannot be made one.
    assert!(to("z").is_err());
    let integers = archive.tensor("brain").unwrap().to::<i16>().unwrap();
    assert_eq!(integers[..], [2, -2]);
}

#[test]
fn what_is_cast_already_is_cast_from_that() {
    let archive = kinds();
    let narrow = ops::cast(&archive, |tensor| {
        (tensor.name == "wide").then_some(DType::F32)
    });
    let narrow = narrow.unwrap();
    let wide = narrow.tensor("wide").unwrap();
    assert_eq!(
        wide.to::<f64>().unwrap()[..],
        [f64::from(0.1f32), f64::INFINITY]
    );
    assert_eq!(wide.to::<f32>().unwrap()[..], [0.1, f32::INFINITY]);
}

#[test]
fn slices_have_numbers_too() {
    let archive = kinds();
    let slice = |name: &str, text: &str| {
        let tensor = archive.tensor(name).unwrap();
        tensor.slice(&Slice::parse(text).unwrap()).unwrap()
    };
    let last = slice("small", ":, 1");
    assert_eq!(last.typed::<i8>().unwrap()[..], [-2, -4]);
    assert_eq!(last.to::<f64>().unwrap()[..], [-2.0, -4.0]);
    assert_eq!(last.typed::<u8>().unwrap_err().kind(), ErrorKind::Argument);
    let mut out = [0; 2];
    last.read_into(&mut out).unwrap();
    assert_eq!(out, [0xfe, 0xfc]);
    assert!(last.read_into(&mut [0; 3]).is_err());
    assert_eq!(slice("sparse", "1").to::<i32>().unwrap()[..], [0, 0, -6]);
}

#[test]
fn numbers_of_every_type_and_their_components() {
    let archive = kinds();
    let numbers = |name: &str| {
        let mut found = Vec::new();
        let tensor = archive.tensor(name).unwrap();
        tensor
            .numbers(&mut |numbers| {
                found.extend_from_slice(numbers);
                Ok(())
            })
            .map(|()| found)
    };
    assert_eq!(numbers("bits").unwrap(), [1.0, 0.0, 1.0]);
    assert_eq!(numbers("wide").unwrap(), [0.1, 1e300]);
    assert_eq!(numbers("z").unwrap(), [3.0, 4.0, -1.0, 0.0]);
    assert_eq!(numbers("turned").unwrap(), [1.0, 3.0, 2.0, 4.0]);
    // Nobody said how to decode it: it was built from bytes.
    assert!(numbers("block").is_err());

    let z = archive.tensor("z").unwrap().slice(&[]).unwrap();
    let component = |component| {
        let mut found = Vec::new();
        z.component(component, &mut |numbers| {
            found.extend_from_slice(numbers);
            Ok(())
        })
        .map(|()| found)
    };
    assert_eq!(component(Component::Number(0)).unwrap(), [3.0, -1.0]);
    assert_eq!(component(Component::Number(1)).unwrap(), [4.0, 0.0]);
    assert_eq!(component(Component::Modulus).unwrap(), [5.0, 1.0]);
    let phase = component(Component::Phase).unwrap();
    assert!(
        (phase[0] - 0.927_295_218_001_612).abs() < 1e-15,
        "{phase:?}"
    );
    assert_eq!(phase[1], std::f64::consts::PI);
    assert!(component(Component::Number(2)).is_err());
}

#[test]
fn quantized_tensors_of_a_file_are_the_numbers_they_stand_for() {
    let mut seen = 0;
    for case in cases(Kind::Valid) {
        let Ok(archive) = case.open() else { continue };
        for tensor in archive.tensors() {
            let is_block = matches!(tensor.info().dtype, DType::Block(_));
            if !is_block || tensor.info().decoder.is_none() {
                continue;
            }
            seen += 1;
            let plain = ops::dequantize(&archive.select(|info| info.name == tensor.name()));
            let plain = plain.unwrap();
            let expected = plain.tensor(tensor.name()).unwrap().typed::<f32>().unwrap();
            let found = tensor.to::<f32>().unwrap();
            let bits = |numbers: &[f32]| numbers.iter().map(|n| n.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&found), bits(&expected), "{}", case.title());
        }
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn every_way_to_read_a_tensor_gives_the_same() {
    let mut shared = 0;
    for case in cases(Kind::Valid) {
        // In memory, where much can be shared.
        let Some(Ok(archive)) = case.file().map(|file| file.open()) else {
            continue;
        };
        for (place, tensor) in archive.tensors().enumerate() {
            let title = format!("{}: {}", case.title(), tensor.name());
            assert_eq!(archive.index_of(tensor.name()), Some(place), "{title}");
            let Ok(canonical) = tensor.canonical() else {
                assert!(tensor.in_place().is_none(), "{title}");
                continue;
            };
            let mut out = vec![0xaa; canonical.len()];
            tensor.read_into(&mut out).expect(&title);
            assert_eq!(out, canonical, "{title}");
            let Some(found) = tensor.in_place() else {
                continue;
            };
            shared += 1;
            let form = Form::new(tensor.info().dtype, found.order, found.endian);
            let mut streamed = Vec::new();
            tensor
                .stream(&form, &mut |piece| {
                    streamed.extend_from_slice(piece);
                    Ok(())
                })
                .expect(&title);
            assert_eq!(streamed, found.bytes, "{title}");
        }
    }
    assert!(shared > 500, "{shared}");
}

#[test]
fn what_is_in_place_is_said_with_its_orders() {
    let archive = kinds();
    let in_place = |name: &str| {
        let found = archive.tensor(name).unwrap().in_place()?;
        Some((found.bytes.len(), found.endian, found.order))
    };
    let rows = Order::RowMajor;
    assert_eq!(in_place("small"), Some((4, Endian::Little, rows)));
    assert_eq!(
        in_place("turned"),
        Some((16, Endian::Little, Order::ColumnMajor))
    );
    assert_eq!(in_place("bits"), Some((1, Endian::Little, rows)));
    assert_eq!(in_place("sparse"), None);
    let cast = ops::cast(&archive, |tensor| {
        (tensor.name == "small").then_some(DType::F32)
    });
    assert!(cast.unwrap().tensor("small").unwrap().in_place().is_none());
}

#[test]
#[allow(unsafe_code, reason = "nobody changes the file")]
fn a_mapped_tensor_is_found_and_typed_without_an_allocation() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("model.safetensors");
    let tensors = (0..100).map(|n| {
        (
            format!("layers.{n}.weight"),
            Values::new([4, 8], vec![1f32; 32]),
        )
    });
    tenfold::save(&path, tensors).unwrap();
    // SAFETY: nobody changes the file.
    let archive = unsafe { Archive::map(&path) }.unwrap();
    let (sum, used) = on_this_thread(|| {
        let mut sum = 0.0;
        for name in ["layers.0.weight", "layers.50.weight", "layers.99.weight"] {
            let weight = archive.get(name).unwrap().typed::<f32>().unwrap();
            sum += weight.iter().sum::<f32>();
        }
        sum
    });
    assert_eq!(sum, 96.0);
    assert_eq!(used.allocations, 0);
    let (_, used) = on_this_thread(|| archive.tensor_at(7).unwrap().in_place().unwrap());
    assert_eq!(used.allocations, 0);
    assert_eq!(archive.sources().len(), 1);
    let name = archive.sources().next().unwrap().0;
    assert_eq!(name, Some("model.safetensors"));
}

#[test]
fn many_tensors_are_read_into_memory_of_the_caller() {
    for case in cases(Kind::Valid) {
        let Ok(archive) = case.open() else { continue };
        let expected: Vec<_> = archive
            .tensors()
            .filter_map(|tensor| Some((tensor, tensor.canonical().ok()?)))
            .collect();
        for threads in [1, 3] {
            let mut memory: Vec<Vec<u8>> = expected
                .iter()
                .map(|(_, canonical)| vec![0xaa; canonical.len()])
                .collect();
            let reads = (expected.iter().zip(&mut memory))
                .map(|((tensor, _), out)| (*tensor, out.as_mut_slice()));
            let control = Arc::new(Control::new());
            let work = Work::new().threads(threads).control(control.clone());
            Archive::read_many(reads, &work)
                .unwrap_or_else(|error| panic!("{}: {error}", case.title()));
            let total: usize = memory.iter().map(Vec::len).sum();
            assert_eq!(control.total(), total as u64);
            assert_eq!(control.done(), total as u64);
            for ((tensor, canonical), out) in expected.iter().zip(&memory) {
                assert_eq!(out, canonical, "{}: {}", case.title(), tensor.name());
            }
        }
    }
    let archive = kinds();
    let small = archive.tensor("small").unwrap();
    let slice = small.slice(&Slice::parse("0").unwrap()).unwrap();
    let mut out = [0; 2];
    Archive::read_many([(slice, &mut out[..])], &Work::new()).unwrap();
    assert_eq!(out, [1, 0xfe]);
    let wrong = Archive::read_many([(small, &mut out[..])], &Work::new());
    assert_eq!(wrong.unwrap_err().tensor(), Some("small"));
}

/// Zeros; the first read of which stops the work.
struct Stopping(Arc<Control>, u64);

impl Source for Stopping {
    fn len(&self) -> u64 {
        self.1
    }

    fn read(&self, range: std::ops::Range<u64>) -> tenfold::Result<Bytes> {
        self.0.cancel();
        Ok(vec![0; usize::try_from(range.end - range.start).unwrap()].into())
    }
}

#[test]
fn reading_many_can_be_stopped() {
    let control = Arc::new(Control::new());
    let work = Work::new().threads(2).control(control.clone());
    let mut b = Archive::builder();
    let len = 64 << 20;
    let source = Stopping(control.clone(), len);
    b.push("slow", DType::U8, [len], source).unwrap();
    let archive = b.finish();
    let slow = archive.tensor("slow").unwrap();
    let mut out = vec![0; 64 << 20];
    let stopped = Archive::read_many([(slow, &mut out[..])], &work).unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::Canceled);
    assert!(control.done() < len / 2);
}
