//! Any numbers: what comes back is as near as the type allows, and what has no place is refused or counted.

use crate::imatrix::{old, read};
use crate::*;
use tenfold::format::Registry;
use tenfold::io::MemoryOutput;
use tenfold::ops::{Conversion, ConvertOptions, ImportanceMatrix};

/// Numbers that look random, and are the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// From -1 to 1.
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    /// 256 numbers of one kind.
    fn row(&mut self, kind: u64) -> Vec<f32> {
        let scale = 10f32.powi((self.next() % 4) as i32 - 2);
        let constant = self.unit() * scale;
        let mut number = || match kind {
            0 => self.unit() * scale,
            1 => constant,
            2 => 0.0,
            3 => self.unit().abs() * scale,
            4 if self.next().is_multiple_of(16) => self.unit() * scale * 100.0,
            4 => self.unit() * scale,
            _ => self.unit() * 1e-40,
        };
        (0..256).map(|_| number()).collect()
    }
}

fn archive(rows: &[Vec<f32>]) -> Archive {
    let mut builder = ArchiveBuilder::new();
    let shape = [rows.len() as u64, 256];
    builder.tensor("x", shape, rows.concat()).unwrap();
    builder.finish()
}

/// Types that are written with importances only.
const WITH_IMPORTANCES_ONLY: [&str; 3] = ["IQ1_S", "IQ2_XS", "IQ2_XXS"];

/// Every matrix as blocks of a type, with equal importances where there is no other way.
fn to(spec: &'static BlockSpec) -> QuantizeOptions {
    let options = QuantizeOptions::new().every_matrix(Some(spec));
    if WITH_IMPORTANCES_ONLY.contains(&spec.name) {
        options.importance(importance(&[1.0; 256]))
    } else {
        options
    }
}

fn importance(of_x: &[f32]) -> ImportanceMatrix {
    read(old(&[("x", 1, of_x)], None)).unwrap()
}

/// What the numbers are after they were blocks.
fn there_and_back(archive: &Archive, options: &QuantizeOptions) -> Vec<f32> {
    let quantized = ops::quantize(archive, options).unwrap().archive;
    let bytes = write(&quantized, 1);
    let written = Archive::from_bytes(bytes).unwrap();
    written.tensor("x").unwrap().to::<f32>().unwrap().to_vec()
}

fn write(archive: &Archive, threads: usize) -> Vec<u8> {
    let registry = Registry::standard();
    let work = tenfold::Work::new().threads(threads);
    let options = ConvertOptions::new().work(work);
    let mut out = MemoryOutput::new();
    let conversion = Conversion::prepare(archive, registry.get("gguf").unwrap(), &options);
    conversion.unwrap().write_to("x.gguf", &mut out).unwrap();
    out.into_files().remove("x.gguf").unwrap()
}

/// How far a number can be from itself: as a part of the largest of its 256 or fewer, where a search may take more at the
/// edges to be nearer elsewhere; and the largest whole number that the scale, which is rounded, is multiplied by.
const BOUNDS: &[(&str, f32, f32)] = &[
    ("Q8_0", 0.006, 127.0),
    ("Q6_K", 0.06, 128.0 * 32.0),
    ("Q5_K", 0.12, 63.0 * 31.0 + 63.0),
    ("Q5_1", 0.04, 31.0 + 1.0),
    ("Q5_0", 0.07, 16.0),
    ("Q4_K", 0.25, 63.0 * 15.0 + 63.0),
    ("Q4_1", 0.08, 15.0 + 1.0),
    ("Q4_0", 0.14, 8.0),
    ("IQ4_NL", 0.25, 127.0),
    ("IQ4_XS", 0.3, 32.0 * 127.0),
    ("MXFP4", 0.34, 0.0),
    ("NVFP4", 0.25, 0.0),
    ("Q3_K", 0.5, 32.0 * 4.0),
    ("IQ3_S", 0.6, 31.0 * 15.0),
    ("IQ3_XXS", 0.75, 15.5 * 0.5 * 62.0),
    ("Q2_K", 0.8, 15.0 * 3.0 + 15.0),
    ("IQ2_S", 1.0, 15.5 * 0.25 * 43.0),
    ("IQ2_XS", 1.0, 15.5 * 0.25 * 43.0),
    ("IQ2_XXS", 1.0, 15.5 * 0.25 * 43.0),
    ("IQ1_S", 1.0, 15.0 * 1.125),
    ("TQ1_0", 0.51, 1.0),
    ("TQ2_0", 0.51, 1.0),
    ("Q2_0", 0.51, 1.0),
];

/// How far a scale of 16 bits is from what it should be at most, where it is too small for all of its digits.
const STEP: f32 = 1.0 / 33_554_432.0;

/// Numbers that were blocks of a type are near to what they were: within the bound of the type, as many times.
fn assert_near(spec: &BlockSpec, rows: &[Vec<f32>], back: &[f32], times: f32) {
    let (_, bound, codes) = BOUNDS.iter().find(|(name, ..)| *name == spec.name).unwrap();
    for (row, back) in rows.iter().zip(back.chunks(256)) {
        let most = row.iter().fold(0f32, |most, x| most.max(x.abs()));
        let coarse = match spec.name {
            // Scales of 8 bits, 0.002 apart, that are multiplied by 6.
            "NVFP4" => 6.0 / 1024.0,
            // Powers of 2 from 2^-127 on.
            "MXFP4" => f32::MIN_POSITIVE / 2.0,
            _ => STEP * codes,
        };
        for (x, y) in row.iter().zip(back) {
            let off = (x - y).abs();
            assert!(
                off <= times * bound * most + coarse,
                "{}: {x} became {y}, the largest is {most}",
                spec.name
            );
            assert!(y.is_finite());
        }
    }
}

#[test]
fn what_comes_back_is_near() {
    // One bit says no more than a sign.
    for spec in ops::quantized_types().filter(|spec| spec.name != "Q1_0") {
        let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
        let rows: Vec<_> = (0..96).map(|n| numbers.row(n % 6)).collect();
        let back = there_and_back(&archive(&rows), &to(spec));
        assert_near(spec, &rows, &back, 1.0);
    }
}

#[test]
fn what_comes_back_is_near_with_any_importances_of_several_matrices() {
    for spec in ops::quantized_types().filter(|spec| spec.name != "Q1_0") {
        let mut numbers = Numbers(0x1234_5678_9abc_def1);
        let rows: Vec<_> = (0..24).map(|n| numbers.row(n % 6)).collect();
        let mut builder = ArchiveBuilder::new();
        builder.tensor("x", [3, 8, 256], rows.concat()).unwrap();
        let archive = builder.finish();
        // Of each matrix its own: one half of the columns counts little.
        let columns: Vec<f32> = (0..768)
            .map(|n| (numbers.unit() + 1.5) * if (n / 256 + n) % 2 == 0 { 1.0 } else { 0.25 })
            .collect();
        let with = |columns: &[f32]| {
            let options = QuantizeOptions::new().every_matrix(Some(spec));
            there_and_back(&archive, &options.importance(importance(columns)))
        };
        let back = with(&columns);
        if !spec.name.starts_with("IQ") {
            // What counts a quarter may be twice as far off: errors are squared.
            assert_near(spec, &rows, &back, 2.0);
        }
        assert!(back.iter().all(|x| x.is_finite()), "{}", spec.name);
        // Other importances of the second matrix change that one alone, in types that use them.
        let mut others = columns.clone();
        others[256..512].reverse();
        let changed = with(&others);
        assert!(
            changed[..2048] == back[..2048] && changed[4096..] == back[4096..],
            "{}",
            spec.name
        );
        let is_used = changed[2048..4096] != back[2048..4096];
        let uses = !["Q8_0", "TQ1_0", "TQ2_0", "MXFP4", "NVFP4", "Q2_0"].contains(&spec.name);
        assert_eq!(is_used, uses, "{}", spec.name);
    }
}

#[test]
fn zeros_of_either_sign_stay_zeros() {
    for spec in ops::quantized_types() {
        let row: Vec<f32> = (0..256)
            .map(|n| if n % 3 == 0 { -0.0 } else { 0.0 })
            .collect();
        let back = there_and_back(&archive(&[row.clone(), row]), &to(spec));
        assert_eq!(back.len(), 512);
        assert!(back.iter().all(|x| *x == 0.0), "{}", spec.name);
    }
}

#[test]
fn what_is_no_number_is_refused_by_name() {
    for spec in ops::quantized_types() {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut row = vec![1f32; 256];
            row[77] = value;
            let rows = [vec![0f32; 256], row];
            let quantized = ops::quantize(&archive(&rows), &to(spec)).unwrap().archive;
            let error = quantized
                .tensor("x")
                .unwrap()
                .canonical()
                .map(drop)
                .unwrap_err();
            assert_eq!(error.tensor(), Some("x"), "{}", spec.name);
            assert!(error.message().contains("333"), "{error}");
        }
    }
}

#[test]
fn huge_and_tiny_numbers_are_counted_and_nothing_panics() {
    for spec in ops::quantized_types() {
        let huge: Vec<f32> = (0..=255u8)
            .map(|n| f32::MAX * (f32::from(n) / 255.0 - 0.5))
            .collect();
        let tiny: Vec<f32> = (1..=256u32).map(f32::from_bits).collect();
        let rows = [huge, tiny, vec![1.0; 256]];
        let quantized = ops::quantize(&archive(&rows), &to(spec)).unwrap().archive;
        let registry = Registry::standard();
        let gguf = registry.get("gguf").unwrap();
        let conversion = Conversion::prepare(&quantized, gguf, &ConvertOptions::new()).unwrap();
        let report = conversion
            .write_to("x.gguf", &mut MemoryOutput::new())
            .unwrap();
        let casts = report.casts;
        assert_eq!(casts.numbers, 768, "{}", spec.name);
        match spec.name {
            "MXFP4" => assert_eq!((casts.overflows, casts.underflows), (0, 256)),
            // All of them are far beyond it, for none is 0.
            "NVFP4" => assert_eq!((casts.overflows, casts.underflows), (256, 256)),
            name => {
                assert_eq!(casts.overflows, 256, "{name}");
                assert_eq!(casts.underflows, 256, "{name}");
            }
        }
    }
}

#[test]
fn a_type_that_is_not_written_is_refused_by_its_name() {
    let spec = BlockSpec::from_name("IQ1_M");
    let options = QuantizeOptions::new().every_matrix(spec);
    let rows = [vec![1.0; 256], vec![0.5; 256]];
    let error = ops::quantize(&archive(&rows), &options)
        .map(drop)
        .unwrap_err();
    assert!(
        error.message().contains("cannot be written as IQ1_M"),
        "{error}"
    );
}

#[test]
fn numbers_whose_scale_is_zero_in_bytes_are_counted_as_lost() {
    // 64 numbers that are too small for the scales of NVFP4, and 192 that are not; two zeros are no loss.
    let mut row = vec![0.001f32; 64];
    (row[3], row[40]) = (0.0, -0.0);
    row.resize(256, 0.1);
    let spec = BlockSpec::from_name("NVFP4").unwrap();
    let archive = archive(&[row, vec![0.1; 256]]);
    let back = there_and_back(&archive, &to(spec));
    let (small, others) = back.split_at(64);
    assert!(small.iter().all(|x| *x == 0.0), "{small:?}");
    assert!(others.iter().all(|x| *x > 0.0), "{others:?}");
    let quantized = ops::quantize(&archive, &to(spec)).unwrap().archive;
    let registry = Registry::standard();
    let gguf = registry.get("gguf").unwrap();
    let conversion = Conversion::prepare(&quantized, gguf, &ConvertOptions::new()).unwrap();
    let report = conversion
        .write_to("x.gguf", &mut MemoryOutput::new())
        .unwrap();
    assert_eq!((report.casts.overflows, report.casts.underflows), (0, 62));
}

#[test]
fn any_number_of_threads_writes_the_same_bytes() {
    let mut numbers = Numbers(7);
    let rows: Vec<_> = (0..5000).map(|n| numbers.row(n % 4)).collect();
    let archive = archive(&rows);
    for name in ["Q8_0", "Q4_K", "IQ4_NL"] {
        let options = QuantizeOptions::new().every_matrix(BlockSpec::from_name(name));
        let quantized = ops::quantize(&archive, &options).unwrap().archive;
        let one = write(&quantized, 1);
        for threads in [2, 5] {
            assert!(
                write(&quantized, threads) == one,
                "{name} with {threads} threads"
            );
        }
    }
}

/// The length of the difference of two lists relative to the first, and the cosine of the angle between them.
fn compared(before: &[f32], after: &[f32]) -> (f64, f64) {
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        let pairs = before.iter().zip(after);
        pairs.map(|(x, y)| of((*x).into(), (*y).into())).sum()
    };
    let (squares, others) = (sum(&|x, _| x * x), sum(&|_, y| y * y));
    let difference = sum(&|x, y| (x - y) * (x - y));
    let product = sum(&|x, y| x * y);
    (
        (difference / squares).sqrt(),
        product / (squares * others).sqrt(),
    )
}

#[test]
fn a_report_is_what_a_difference_says() {
    let mut numbers = Numbers(11);
    let rows: Vec<_> = (0..8).map(|_| numbers.row(0)).collect();
    // Whole multiples of a scale come back as they were.
    let exact: Vec<f32> = (0..512u16)
        .map(|n| f32::from(n % 3) * 25.0 - 25.0)
        .collect();
    let mut builder = ArchiveBuilder::new();
    builder.tensor("x", [8, 256], rows.concat()).unwrap();
    builder.tensor("exact", [2, 256], exact.clone()).unwrap();
    let before = builder.finish();
    let types = |name: &str| BlockSpec::from_name(if name == "x" { "Q4_0" } else { "Q2_0" });
    let options = QuantizeOptions::new().rule(move |tensor| types(&tensor.name));
    let quantized = ops::quantize(&before, &options).unwrap();
    let after = Archive::from_bytes(write(&quantized.archive, 1)).unwrap();
    let quality = ops::quality(&before, &after, &quantized.choices, &Default::default()).unwrap();
    let of =
        |archive: &Archive, name: &str| archive.tensor(name).unwrap().to::<f32>().unwrap().to_vec();
    assert_eq!(of(&after, "exact"), exact);
    let near = |found: Option<f64>, expected: f64| {
        assert!(
            (found.unwrap() - expected).abs() < 1e-12,
            "{found:?} {expected}"
        );
    };
    let (alone, cosine_alone) = compared(&rows.concat(), &of(&after, "x"));
    let all = |archive: &Archive| [of(archive, "x"), of(archive, "exact")].concat();
    let (together, cosine) = compared(&all(&before), &all(&after));
    assert!(
        together < alone * 0.5,
        "the exact one counts: {together} {alone}"
    );
    near(quality.relative_l2, together);
    near(quality.cosine, cosine);
    let [worst, best] = &quality.tensors[..] else {
        panic!("{:?}", quality.tensors)
    };
    assert_eq!(
        (worst.name.as_str(), worst.dtype.to_string()),
        ("x", "gguf:Q4_0".into())
    );
    near(worst.relative_l2, alone);
    near(worst.cosine, cosine_alone);
    assert_eq!((best.relative_l2, best.cosine), (Some(0.0), Some(1.0)));
}
