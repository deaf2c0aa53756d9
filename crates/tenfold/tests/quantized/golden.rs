//! The numbers of the packages, to the last bit.

use serde_json::Value as Json;
use tenfold::model::{DType, Slice};
use tenfold::ops::{self, DigestOptions};
use tenfold::{Archive, Work};

use crate::model::{Case, Model, case, cases};
use crate::support::counting::Counting;
use crate::support::hex;

fn sums(archive: &Archive, threads: usize) -> Vec<(String, String)> {
    let options = DigestOptions::new().work(Work::new().threads(threads));
    let digests = ops::digest(archive, &options).unwrap().tensors.into_iter();
    digests
        .map(|(name, sum)| (name, hex(&sum.unwrap())))
        .collect()
}

fn sum_of<'s>(sums: &'s [(String, String)], name: &str) -> &'s str {
    &sums.iter().find(|(known, _)| known == name).unwrap().1
}

fn tensors(case: &Case) -> &[Json] {
    case.expected["tensors"].as_array().unwrap()
}

fn is_read(case: &Case) -> bool {
    case.expected["optional"] != Json::Bool(true)
}

#[test]
fn every_golden_model_has_the_numbers_of_its_package() {
    let mut compared = 0;
    for case in cases().iter().filter(|case| is_read(case)) {
        let archive = Archive::open(&case.directory).unwrap();
        let numbers = ops::dequantize(&archive).unwrap();
        let mut names: Vec<_> = numbers
            .tensors()
            .map(|tensor| tensor.name().to_owned())
            .collect();
        names.sort();
        let mut wanted: Vec<_> = tensors(case)
            .iter()
            .map(|t| t["name"].as_str().unwrap())
            .collect();
        wanted.sort_unstable();
        assert_eq!(names, wanted, "{}: nothing else is left", case.name);
        let sums = sums(&numbers, 1);
        for wanted in tensors(case) {
            let name = wanted["name"].as_str().unwrap();
            let info = numbers.tensor(name).unwrap().info().clone();
            assert_eq!(
                serde_json::json!(&*info.shape),
                wanted["shape"],
                "{} {name}",
                case.name
            );
            assert_eq!(
                info.dtype.to_string(),
                wanted["dtype"].as_str().unwrap(),
                "{} {name}",
                case.name
            );
            assert_eq!(
                sum_of(&sums, name),
                wanted["sha256"],
                "{} {name}",
                case.name
            );
            compared += 1;
        }
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn the_numbers_in_the_type_of_the_package_are_those_of_the_package() {
    let mut compared = 0;
    for case in cases().iter().filter(|case| is_read(case)) {
        for wanted in tensors(case)
            .iter()
            .filter(|t| t["reference"]["equals_f32_cast"] == true)
        {
            let name = wanted["name"].as_str().unwrap();
            let dtype = DType::from_name(wanted["reference"]["dtype"].as_str().unwrap()).unwrap();
            let numbers = ops::dequantize(&Archive::open(&case.directory).unwrap()).unwrap();
            let cast = ops::cast(&numbers, |info| (info.name == name).then_some(dtype)).unwrap();
            assert_eq!(
                sum_of(&sums(&cast, 2), name),
                wanted["reference"]["sha256"],
                "{} {name}",
                case.name
            );
            compared += 1;
        }
    }
    assert!(compared > 10, "{compared}");
}

#[test]
fn slices_and_any_number_of_threads_give_the_same_numbers() {
    for case in cases().iter().filter(|case| is_read(case)) {
        let numbers = ops::dequantize(&Archive::open(&case.directory).unwrap()).unwrap();
        assert_eq!(sums(&numbers, 1), sums(&numbers, 3), "{}", case.name);
        for tensor in numbers
            .tensors()
            .filter(|tensor| tensor.info().shape.len() == 2)
        {
            let whole = tensor.typed::<f32>();
            let Ok(whole) = whole else { continue };
            let whole = whole.to_vec();
            let [rows, cols] = tensor.info().shape[..] else {
                continue;
            };
            let (first, last) = (rows / 3, rows - 1);
            let (left, right) = (cols / 4, cols - cols / 5);
            let slices = [
                Slice::range(first as i64, last as i64 + 1),
                Slice::range(left as i64, right as i64),
            ];
            let part = tensor
                .slice(&slices)
                .unwrap()
                .typed::<f32>()
                .unwrap()
                .to_vec();
            let mut at = 0;
            for row in first..=last {
                for col in left..right {
                    let expected = whole[(row * cols + col) as usize];
                    assert_eq!(
                        part[at].to_bits(),
                        expected.to_bits(),
                        "{} {row} {col}",
                        case.name
                    );
                    at += 1;
                }
            }
            assert_eq!(part.len(), at);
        }
    }
}

#[test]
fn a_slice_reads_what_it_needs() {
    let model = Model::load(&case("fp8-block/deepseek_f32_scale").directory);
    let source = Counting::new(&model.bytes());
    let archive = model.open_as(source.clone()).unwrap();
    let numbers = ops::dequantize(&archive).unwrap();
    let weight = numbers
        .tensor("model.layers.0.mlp.gate_proj.weight")
        .unwrap();
    source.take();
    let row = weight.slice(&[Slice::Index(7)]).unwrap();
    assert_eq!(row.typed::<f32>().unwrap().to_vec().len(), 256);
    // A row of codes and one of scales, and what costs less than another request.
    let cost = source.take();
    assert!(cost.bytes < 8192, "{cost:?}");
}

#[test]
fn recognition_asks_for_small_tensors_together() {
    let model = Model::load(&case("hqq/b4_axis1").directory);
    let source = Counting::new(&model.bytes());
    let archive = model.open_as(source.clone()).unwrap();
    source.take();
    let quantized = ops::quantized(&archive).unwrap();
    assert_eq!(quantized.groups.len(), 1);
    let cost = source.take();
    assert!(cost.trips <= 1, "{cost:?}");
    assert!(cost.bytes < 4096, "{cost:?}");
}
