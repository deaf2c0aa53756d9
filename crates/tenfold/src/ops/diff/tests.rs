use super::*;
use crate::model::{Endian, Layout, Payload, Scheme, Value};
use crate::ops::Number;
use crate::{ArchiveBuilder, Bytes};

fn bytes(values: &[f32]) -> Bytes {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect::<Vec<u8>>()
        .into()
}

fn archive(tensors: &[(&str, &[u64], &[f32])]) -> Archive {
    let mut builder = ArchiveBuilder::new();
    for (name, shape, values) in tensors {
        builder
            .push(*name, DType::F32, shape, bytes(values))
            .unwrap();
    }
    builder.finish()
}

fn kinds(diff: &Diff) -> Vec<(&str, &'static str)> {
    let kind = |change: &Change| match &change.kind {
        ChangeKind::Added => "added",
        ChangeKind::Changed(_) => "changed",
        ChangeKind::Removed => "removed",
        ChangeKind::Renamed => "renamed",
        ChangeKind::Unreadable { .. } => "unreadable",
    };
    let changes = diff.changes.iter();
    changes
        .map(|change| (change.name.as_str(), kind(change)))
        .collect()
}

fn values(diff: &Diff) -> &Difference {
    match &diff.changes[0].kind {
        ChangeKind::Changed(Some(values)) => values,
        other => panic!("{other:?}"),
    }
}

fn tolerant(rtol: f64, atol: f64, ulp: u64) -> DiffOptions {
    DiffOptions::new().tolerance(Some(Tolerance { rtol, atol, ulp }))
}

#[test]
fn changes_come_in_the_order_of_the_first_archive() {
    let a = archive(&[
        ("gone", &[1], &[9.0]),
        ("same", &[2], &[1.0, 2.0]),
        ("shape", &[2], &[1.0, 2.0]),
        ("old", &[3], &[1.0, 2.0, 3.0]),
        ("value", &[1], &[1.0]),
    ]);
    let b = archive(&[
        ("new", &[3], &[1.0, 2.0, 3.0]),
        ("value", &[1], &[1.5]),
        ("more", &[1], &[8.0]),
        ("shape", &[2, 1], &[1.0, 2.0]),
        ("same", &[2], &[1.0, 2.0]),
    ]);
    let found = diff(&a, &b, &DiffOptions::default()).unwrap();
    assert_eq!(
        kinds(&found),
        [
            ("gone", "removed"),
            ("shape", "changed"),
            ("old", "renamed"),
            ("value", "changed"),
            ("more", "added")
        ]
    );
    assert_eq!(found.equal, 1);
    assert_eq!(found.changes[2].b.as_ref().unwrap().name, "new");
    let options = DiffOptions::new().names_only(true);
    let found = diff(&a, &b, &options).unwrap();
    assert_eq!(
        kinds(&found),
        [
            ("gone", "removed"),
            ("old", "removed"),
            ("new", "added"),
            ("more", "added")
        ]
    );
}

#[test]
fn of_several_with_the_same_content_the_most_alike_name_is_the_new_one() {
    let ones: &[f32] = &[1.0; 4];
    let a = archive(&[("model.l0.norm", &[4], ones), ("model.l1.norm", &[4], ones)]);
    let b = archive(&[("l1.norm", &[4], ones), ("l0.norm", &[4], ones)]);
    let found = diff(&a, &b, &DiffOptions::default()).unwrap();
    let new: Vec<_> = (found.changes.iter())
        .map(|change| change.b.as_ref().unwrap().name.as_str())
        .collect();
    assert_eq!(new, ["l0.norm", "l1.norm"]);
}

#[test]
fn errors_are_relative_to_the_first() {
    let a = archive(&[("x", &[2, 2], &[0.0, 2.0, 3.0, 4.0])]);
    let b = archive(&[("x", &[2, 2], &[0.0, 2.0, 6.0, 8.0])]);
    let found = diff(&a, &b, &DiffOptions::default()).unwrap();
    let found = values(&found);
    assert_eq!((found.numbers, found.different), (4, 2));
    assert_eq!((found.max_abs, found.max_rel), (Some(4.0), Some(1.0)));
    // |b - a| = 5, |a| = sqrt(29), |b| = sqrt(104), a * b = 54.
    assert!((found.relative_l2.unwrap() - 5.0 / 29f64.sqrt()).abs() < 1e-15);
    assert!((found.cosine.unwrap() - 54.0 / (29f64 * 104.0).sqrt()).abs() < 1e-15);
    let first = found.first.as_ref().unwrap();
    assert_eq!(first.index, [1, 0]);
    assert_eq!((first.a, first.b), (Number::Float(3.0), Number::Float(6.0)));
}

#[test]
fn bits_count_without_a_tolerance_and_numbers_with_one() {
    let nan = f32::from_bits(0x7fc0_0001);
    let a = archive(&[("x", &[4], &[0.0, f32::NAN, f32::INFINITY, 1.0])]);
    let b = archive(&[("x", &[4], &[-0.0, nan, f32::NEG_INFINITY, 1.0])]);
    let found = diff(&a, &b, &DiffOptions::default()).unwrap();
    let exact = values(&found);
    assert_eq!(exact.different, 3);
    assert_eq!(
        (exact.signs_of_zero, exact.nan_bits, exact.not_finite),
        (1, 1, 1)
    );
    let found = diff(&a, &b, &tolerant(0.0, 0.0, 0)).unwrap();
    assert_eq!(values(&found).different, 1);
    assert_eq!(values(&found).first.as_ref().unwrap().index, [2]);
}

#[test]
fn tolerances_are_bounds() {
    let a = archive(&[("x", &[3], &[1.0, 100.0, 0.0])]);
    let b = archive(&[("x", &[3], &[1.0625, 101.0, 0.015_625])]);
    let different = |options: &DiffOptions| match diff(&a, &b, options).unwrap() {
        found if found.changes.is_empty() => 0,
        found => values(&found).different,
    };
    assert_eq!(different(&DiffOptions::default()), 3);
    assert_eq!(different(&tolerant(0.0, 0.0625, 0)), 1);
    assert_eq!(different(&tolerant(0.01, 0.0, 0)), 2);
    assert_eq!(different(&tolerant(0.01, 0.0625, 0)), 0);
    let next = archive(&[("x", &[1], &[1.0 + f32::EPSILON * 2.0])]);
    let one = archive(&[("x", &[1], &[1.0])]);
    assert!(
        !diff(&one, &next, &tolerant(0.0, 0.0, 1))
            .unwrap()
            .is_equal()
    );
    assert!(
        diff(&one, &next, &tolerant(0.0, 0.0, 2))
            .unwrap()
            .is_equal()
    );
}

#[test]
fn types_are_ignored_when_told() {
    let a = archive(&[("x", &[2], &[1.0, 3.0])]);
    let mut builder = ArchiveBuilder::new();
    builder
        .push("x", DType::U8, &[2], Bytes::from_static(&[1, 3]))
        .unwrap();
    let b = builder.finish();
    let found = diff(&a, &b, &DiffOptions::default()).unwrap();
    assert_eq!(kinds(&found), [("x", "changed")]);
    assert_eq!(values(&found).different, 0);
    let options = DiffOptions::new().ignore_dtype(true);
    assert!(diff(&a, &b, &options).unwrap().is_equal());
}

#[test]
fn byte_order_and_layout_are_no_difference() {
    let values = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let plain = archive(&[("x", &[2, 3], &values)]);
    let turned = [1.0f32, 4.0, 2.0, 5.0, 3.0, 6.0];
    let stored: Vec<u8> = turned
        .iter()
        .flat_map(|value| value.to_be_bytes())
        .collect();
    let mut info = TensorInfo::dense("x", DType::F32, vec![2, 3], Payload::Inline(stored.into()));
    info.layout = Layout::ColumnMajor;
    info.parts[0].endian = Endian::Big;
    let mut builder = ArchiveBuilder::new();
    builder.push_info(info).unwrap();
    let other = builder.finish();
    for (a, b) in [(&plain, &other), (&other, &plain), (&other, &other)] {
        assert!(diff(a, b, &DiffOptions::default()).unwrap().is_equal());
    }
}

#[test]
fn metadata_is_compared_by_value() {
    let with = |entries: &[(&str, Value)]| {
        let mut builder = ArchiveBuilder::new();
        for (key, value) in entries {
            builder.metadata().push(*key, value.clone());
        }
        builder.finish()
    };
    let a = with(&[
        ("n", Value::U8(7)),
        ("x", Value::F32(0.1)),
        ("s", Value::Str("a".into())),
        ("gone", Value::Null),
    ]);
    let b = with(&[
        ("x", Value::F64(0.1)),
        ("n", Value::I64(7)),
        ("s", Value::Str("b".into())),
        ("more", Value::Bool(true)),
    ]);
    let found = diff(&a, &b, &DiffOptions::default()).unwrap();
    let keys: Vec<_> = found
        .metadata
        .iter()
        .map(|change| change.key.as_str())
        .collect();
    assert_eq!(keys, ["s", "gone", "more"]);
    let options = DiffOptions::new().ignore_metadata(true);
    assert!(diff(&a, &b, &options).unwrap().is_equal());
}

#[test]
fn long_integers_of_different_types_are_compared_to_the_last_digit() {
    let of = |dtype, numbers: [[u8; 8]; 3]| {
        let mut builder = ArchiveBuilder::new();
        builder
            .push("ids", dtype, &[3], Bytes::from(numbers.concat()))
            .unwrap();
        builder.finish()
    };
    let long = (1i64 << 60) + 1;
    let signed = of(DType::I64, [5, long, -long].map(i64::to_le_bytes));
    let float = long as f64;
    let floats = of(DType::F64, [5.0, float, -float].map(f64::to_le_bytes));
    let unsigned = of(DType::U64, [5, 1 << 60, 7].map(u64::to_le_bytes));
    let options = DiffOptions::new().ignore_dtype(true);
    let found = diff(&signed, &floats, &options).unwrap();
    assert_eq!(values(&found).different, 2);
    assert_eq!(values(&found).max_abs, Some(1.0));
    let found = diff(&unsigned, &signed, &options).unwrap();
    assert_eq!(values(&found).different, 2);
    assert_eq!(values(&found).first.as_ref().unwrap().index, [1]);
    let same = of(DType::U64, [5, 1 << 60, 7].map(u64::to_le_bytes));
    let same = diff(&unsigned, &same, &options).unwrap();
    assert_eq!(same.equal, 1);
}

fn parts(name: &str, scheme: &str, role: &str, dtype: DType) -> Archive {
    let layout = Layout::from(Scheme::new(scheme, ""));
    let mut info = TensorInfo::new(name, DType::PARTS, vec![2], layout);
    for (role, dtype) in [(role, dtype), ("scales", DType::F16)] {
        let payload = Payload::Inline(Bytes::from_static(&[1, 2, 3, 4]));
        let role = crate::model::Role::Named(role.into());
        info.parts
            .push(crate::model::Part::new(role, dtype, payload));
    }
    let mut builder = ArchiveBuilder::new();
    builder.push_info(info).unwrap();
    builder.finish()
}

#[test]
fn what_parts_are_is_compared_beside_their_bytes() {
    let a = parts("q", "group", "codes", DType::U8);
    let same = diff(&a, &a, &DiffOptions::default()).unwrap();
    assert!(same.is_equal());
    for b in [
        parts("q", "group/2", "codes", DType::U8),
        parts("q", "group", "data", DType::U8),
        parts("q", "group", "codes", DType::I8),
    ] {
        let found = diff(&a, &b, &DiffOptions::default()).unwrap();
        assert_eq!(kinds(&found), [("q", "changed")]);
        let change = &found.changes[0];
        let of = |side: &Option<Side>| side.as_ref().unwrap().parts.clone();
        assert_ne!(of(&change.a), of(&change.b));
    }
}

#[test]
fn parts_of_another_kind_are_not_renamed() {
    let a = parts("q", "group", "codes", DType::U8);
    let renamed = parts("r", "group", "codes", DType::U8);
    let found = diff(&a, &renamed, &DiffOptions::default()).unwrap();
    assert_eq!(kinds(&found), [("q", "renamed")]);
    for b in [
        parts("r", "group/2", "codes", DType::U8),
        parts("r", "group", "codes", DType::I8),
    ] {
        let found = diff(&a, &b, &DiffOptions::default()).unwrap();
        assert_eq!(kinds(&found), [("q", "removed"), ("r", "added")]);
    }
}

/// Tensors whose names begin with the name of their file.
fn of_file(tensors: &[(&str, &str, f32)]) -> Archive {
    let mut builder = ArchiveBuilder::new();
    for (file, own, value) in tensors {
        let name = format!("{file}{own}");
        let payload = Payload::Inline(bytes(&[*value]));
        let mut info = TensorInfo::dense(name, DType::F32, vec![1], payload);
        info.set_own_name(Some(own.len().try_into().unwrap()));
        builder.push_info(info).unwrap();
    }
    builder.finish()
}

#[test]
fn names_that_begin_with_that_of_the_file_are_paired_by_what_follows() {
    let a = of_file(&[("w", "", 1.0), ("w", "@m", 2.0), ("w", "@v", 3.0)]);
    let b = of_file(&[("copy", "", 1.0), ("copy", "@n", 4.0), ("copy", "@m", 2.5)]);
    let found = diff(&a, &b, &DiffOptions::default()).unwrap();
    assert_eq!(
        kinds(&found),
        [("w@m", "changed"), ("w@v", "removed"), ("copy@n", "added")]
    );
    assert_eq!(found.equal, 1);
    let names = DiffOptions::new().names_only(true);
    assert!(diff(&a, &a, &names).unwrap().is_equal());
    // Two files are told apart by nothing but their names.
    let two = of_file(&[("v", "", 1.0), ("u", "@m", 2.0), ("u", "", 3.0)]);
    let found = diff(&two, &a, &names).unwrap();
    assert_eq!((found.equal, found.changes.len()), (0, 6));
    // A name that is in both is the same tensor.
    let statistic = of_file(&[("w@m", "", 2.0)]);
    let found = diff(&a, &statistic, &DiffOptions::default()).unwrap();
    assert_eq!(kinds(&found), [("w", "removed"), ("w@v", "removed")]);
}

/// Bytes that cannot be read.
struct Broken;

impl crate::io::Source for Broken {
    fn len(&self) -> u64 {
        8
    }

    fn read(&self, _: Range<u64>) -> Result<Bytes> {
        Err(crate::Error::mismatch("test", "broken"))
    }
}

#[test]
fn what_cannot_be_read_is_said_of_the_archive_that_has_it() {
    let archive = |source: Arc<dyn crate::io::Source>| {
        let mut builder = crate::ArchiveBuilder::new();
        builder.push("t", DType::F32, &[2], source).unwrap();
        builder.finish()
    };
    let whole = || archive(Arc::new(Bytes::from_static(&[1; 8])));
    let broken = || archive(Arc::new(Broken));
    for (a, b, expected) in [
        (whole(), broken(), Which::Second),
        (broken(), whole(), Which::First),
        (broken(), broken(), Which::First),
    ] {
        let found = diff(&a, &b, &DiffOptions::default()).unwrap();
        let [change] = found.changes.as_slice() else {
            panic!("{found:?}");
        };
        let ChangeKind::Unreadable { of, error } = &change.kind else {
            panic!("{change:?}");
        };
        assert_eq!((*of, error.rule()), (expected, "file.test"));
    }
}

#[test]
fn of_resized_tensors_the_common_part_is_compared() {
    let old = archive(&[("w", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]);
    let longer = archive(&[("w", &[3, 3], &[1.0, 2.0, 3.0, 4.0, 5.5, 6.0, 7.0, 8.0, 9.0])]);
    let found = diff(&old, &longer, &DiffOptions::new()).unwrap();
    let found = values(&found);
    assert_eq!(found.common.as_deref(), Some(&[2, 3][..]));
    assert_eq!((found.numbers, found.different), (6, 1));
    assert_eq!(found.first.as_ref().unwrap().index, [1, 1]);
    let narrower = archive(&[("w", &[2, 2], &[1.0, 2.0, 4.0, 5.0])]);
    let found = diff(&old, &narrower, &DiffOptions::new()).unwrap();
    let found = values(&found);
    assert_eq!(found.common.as_deref(), Some(&[2, 2][..]));
    assert_eq!((found.numbers, found.different), (4, 0));
    // Two dimensions that differ, or nothing in common: there is nothing to compare.
    for (shape, numbers) in [(&[3, 2][..], &[0.0; 6][..]), (&[0, 3], &[])] {
        let other = archive(&[("w", shape, numbers)]);
        let found = diff(&old, &other, &DiffOptions::new()).unwrap();
        assert!(matches!(found.changes[0].kind, ChangeKind::Changed(None)));
    }
}
