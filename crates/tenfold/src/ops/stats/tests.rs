use super::*;
use crate::model::{DType, Layout, Part, Payload, Role, Scheme};
use crate::ops::{VerifyOptions, check_numbers};
use crate::{ArchiveBuilder, Bytes};

fn one(dtype: &str, elements: u64, bytes: &[u8]) -> Archive {
    let mut builder = ArchiveBuilder::new();
    let dtype = DType::from_name(dtype).unwrap();
    let bytes = Bytes::copy_from_slice(bytes);
    builder.push("x", dtype, &[elements], bytes).unwrap();
    builder.finish()
}

fn of(dtype: &str, elements: u64, bytes: &[u8]) -> Stats {
    let mut found = stats(&one(dtype, elements, bytes), &StatsOptions::default()).unwrap();
    found.tensors.remove(0).1.unwrap()
}

fn floats(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

#[test]
fn what_is_not_finite_is_counted_and_left_out() {
    let values = [
        1.0,
        f32::NAN,
        f32::INFINITY,
        -3.0,
        f32::NEG_INFINITY,
        f32::INFINITY,
        -0.0,
        1e-40,
    ];
    let found = of("f32", 8, &floats(&values));
    assert_eq!((found.numbers, found.finite, found.nans), (8, 4, 1));
    assert_eq!(
        (found.positive_infinities, found.negative_infinities),
        (2, 1)
    );
    assert_eq!((found.zeros, found.subnormals), (1, 1));
    assert_eq!(found.min, Some(Number::Float(-3.0)));
    assert_eq!(found.max, Some(Number::Float(1.0)));
    assert_eq!(found.abs_max(), Some(Number::Float(3.0)));
    let mean = (1.0 - 3.0 + f64::from(1e-40f32)) / 4.0;
    assert_eq!(found.mean, Some(mean));
}

#[test]
fn nothing_has_no_figures() {
    for found in [of("f32", 0, &[]), of("f32", 2, &floats(&[f32::NAN; 2]))] {
        assert_eq!(
            (found.min, found.max, found.mean, found.std_dev),
            (None, None, None, None)
        );
        assert_eq!(found.abs_max(), None);
    }
}

#[test]
fn integers_keep_their_digits() {
    let values = [i64::MIN, i64::MAX, 0].map(i64::to_le_bytes).concat();
    let found = of("i64", 3, &values);
    assert_eq!(found.min, Some(Number::Signed(i64::MIN.into())));
    assert_eq!(found.max, Some(Number::Signed(i64::MAX.into())));
    assert_eq!(found.abs_max(), Some(Number::Unsigned(1 << 63)));
    let values = [u128::MAX, 5].map(u128::to_le_bytes).concat();
    let found = of("u128", 2, &values);
    assert_eq!(found.max, Some(Number::Unsigned(u128::MAX)));
    assert_eq!(found.min, Some(Number::Unsigned(5)));
    let found = of("i4", 3, &[0x8f, 0x07]);
    assert_eq!(found.min, Some(Number::Signed(-8)));
    assert_eq!(found.max, Some(Number::Signed(7)));
}

#[test]
fn components_of_complex_numbers_are_numbers() {
    let found = of("c64", 2, &floats(&[1.0, -2.0, 0.0, 4.0]));
    assert_eq!((found.elements, found.numbers, found.zeros), (2, 4, 1));
    assert_eq!(found.mean, Some(0.75));
    assert_eq!(found.min, Some(Number::Float(-2.0)));
}

#[test]
fn quads_are_classified_by_their_own_bits() {
    let numbers = [
        1u128,
        0,
        0x7fff << 112,
        0x7ffe << 112,
        16384 << 112,
        0x7fff << 112 | 1,
    ];
    let found = of("f128", 6, &numbers.map(u128::to_le_bytes).concat());
    assert_eq!((found.zeros, found.subnormals), (1, 1));
    assert_eq!(
        (found.nans, found.positive_infinities, found.finite),
        (1, 1, 4)
    );
    assert_eq!(found.max, Some(Number::Float(f64::MAX)));
}

#[test]
fn a_mean_far_from_zero_leaves_the_spread_alone() {
    let values: Vec<u8> = (0..100_000u32)
        .flat_map(|n| (1e9 + f64::from(n % 2)).to_le_bytes())
        .collect();
    let found = of("f64", 100_000, &values);
    assert_eq!(found.mean, Some(1e9 + 0.5));
    assert!((found.std_dev.unwrap() - 0.5).abs() < 1e-9, "{found:?}");
}

#[test]
fn histograms_count_every_finite_number_once() {
    let values: Vec<f32> = (0..10).map(|n| n as f32).chain([f32::NAN]).collect();
    let options = StatsOptions::new().bins(Some(3));
    let found = stats(&one("f32", 11, &floats(&values)), &options).unwrap();
    let histogram = found.tensors[0]
        .1
        .as_ref()
        .unwrap()
        .histogram
        .as_ref()
        .unwrap();
    // 0, 1, 2 below 3; 3, 4, 5 below 6; 6 to 9 up to the end.
    assert_eq!(histogram.edges, [0.0, 3.0, 6.0, 9.0]);
    assert_eq!(histogram.counts, [3, 3, 4]);
    assert_eq!(found.total.histogram.as_ref(), Some(histogram));
    let found = stats(&one("f32", 2, &floats(&[7.0; 2])), &options).unwrap();
    let histogram = found.total.histogram.unwrap();
    assert_eq!((histogram.edges[0], histogram.edges[3]), (6.5, 7.5));
    assert_eq!(histogram.counts, [0, 2, 0]);
}

#[test]
fn what_is_no_number_is_an_error_that_loses_only_itself() {
    let mut builder = ArchiveBuilder::new();
    builder
        .push("x", DType::U8, &[1], Bytes::from_static(&[3]))
        .unwrap();
    let layout = Layout::from(Scheme::new("mystery", ""));
    let mut info = crate::model::TensorInfo::new("y", DType::PARTS, vec![1], layout);
    let role = Role::Named("codes".into());
    let bytes = Payload::Inline(Bytes::from_static(&[1]));
    info.parts.push(Part::new(role, DType::U8, bytes));
    builder.push_info(info).unwrap();
    let found = stats(&builder.finish(), &StatsOptions::default()).unwrap();
    assert!(found.tensors[0].1.is_ok());
    assert_eq!(found.tensors[1].1.as_ref().unwrap_err().tensor(), Some("y"));
    assert_eq!(found.total.numbers, 1);
}

#[test]
fn numbers_that_should_not_be_there_are_warnings() {
    let mut builder = ArchiveBuilder::new();
    let mut push = |name: &str, values: &[f32]| {
        let bytes = Bytes::from(floats(values));
        builder
            .push(name, DType::F32, &[values.len() as u64], bytes)
            .unwrap();
    };
    push("fine", &[0.0, 1.0]);
    push("nan", &[f32::NAN, 1.0]);
    push("infinite", &[f32::INFINITY, f32::NEG_INFINITY]);
    push("zeros", &[0.0, -0.0]);
    push("empty", &[]);
    let found = check_numbers(&builder.finish(), &VerifyOptions::new()).unwrap();
    assert_eq!(found.checked.tensors, 5);
    assert!(found.is_sound(), "warnings alone");
    let warnings: Vec<_> = (found.findings.iter())
        .map(|finding| (finding.tensor.as_deref().unwrap(), finding.rule.as_str()))
        .collect();
    assert_eq!(
        warnings,
        [
            ("nan", "file.nan"),
            ("infinite", "file.infinite"),
            ("zeros", "file.zeros")
        ]
    );
}
