//! One function for each fuzz target. Each panics where a promise is broken; what a file is worth is not its concern.

#![allow(unreachable_pub)] // the library of the fuzzers is one place of it, a test the other

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tenfold::format::{Effect, Form};
use tenfold::io::{Limits, Siblings, Source};
use tenfold::model::{DType, Endian, Order, Payload, Scalar, TensorInfo};
use tenfold::ops::{self, ConvertOptions};
use tenfold::{Archive, ArchiveBuilder, Bytes, OpenOptions, Result, fuzzing};

use crate::support::amplifiers;
use crate::support::memory::on_this_thread;
use crate::support::random::{self, Rng};
use crate::support::values::compare;
use crate::support::{
    InMemory, Kind, cases, digest, errors, file_name, first_choices, handled, is_impossible,
    options_for, profiles, verify, write_to_memory,
};

/// Bytes of the files of many small entries that targets begin with; the test `bounds` has large ones.
const AMPLIFIED: usize = 2048;

/// A target, by its name.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: &[Target] = &[
    ("describe", describe),
    ("read", read),
    ("convert", convert),
    ("roundtrip", roundtrip),
    ("transform", transform),
    ("quantized", quantized),
    ("quantize", quantize),
    ("imatrix", imatrix),
    ("scan", scan),
    ("wire_cbor", wire_cbor),
    ("wire_hdf5", wire_hdf5),
    ("wire_json", wire_json),
    ("wire_msgpack", wire_msgpack),
    ("wire_numpy", wire_numpy),
    ("wire_pickle", wire_pickle),
    ("wire_protobuf", wire_protobuf),
    ("wire_zip", wire_zip),
];

/// What a target begins with: the fixtures, or the parts of them that its decoder reads.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let files = || {
        let mut all = cases(Kind::Valid);
        all.extend(cases(Kind::Reject));
        all.into_iter()
    };
    let whole = || files().filter_map(|case| Some((case.format, case.file()?)));
    let of_format = |id: &str| {
        let files = whole().filter(|(format, _)| *format == id);
        files.map(|(_, file)| file.bytes.to_vec()).collect()
    };
    let regions = |formats: &[&str]| {
        let mut parts = Vec::new();
        for (_, file) in whole().filter(|(format, _)| formats.contains(format)) {
            let Ok(archive) = file.open() else { continue };
            for region in &archive.manifest().regions {
                let bytes = file.bytes.read(region.range.clone());
                parts.extend(bytes.ok().map(|bytes| bytes.to_vec()));
            }
        }
        parts.sort();
        parts.dedup();
        parts
    };
    match target {
        "describe" | "read" | "convert" => {
            let files = whole().map(|(_, file)| file.bytes.to_vec());
            let amplifiers = amplifiers::all().into_iter();
            let amplifiers = amplifiers.map(|amplifier| amplifier.make(AMPLIFIED).to_vec());
            files.chain(amplifiers).collect()
        }
        "quantized" => quantized_models(),
        "imatrix" => importance_matrices(),
        "wire_cbor" => regions(&["ztensor", "burnpack"]),
        "wire_hdf5" => of_format("hdf5"),
        "wire_json" => {
            let mut texts = regions(&["mag", "safetensors"]);
            texts.extend(files().map(|case| case.expected.to_string().into_bytes()));
            texts
        }
        "wire_msgpack" => of_format("primitiv"),
        "wire_protobuf" => of_format("onnx"),
        "wire_numpy" => of_format("npy"),
        "wire_pickle" => {
            let mut programs = regions(&["pytorch"]);
            programs.extend(of_format("pytorch"));
            programs
        }
        "scan" => {
            let mut files: Vec<Vec<u8>> = of_format("pytorch");
            files.extend(of_format("npz"));
            files.extend(of_format("npy"));
            files
        }
        "wire_zip" => of_format("npz"),
        _ => (0..64)
            .map(|seed| Rng::new(seed).bytes(16 + 3 * usize::try_from(seed).unwrap_or(0)))
            .collect(),
    }
}

/// Every format describes any bytes, or refuses them, in memory that is in proportion to them.
pub fn describe(data: &[u8]) {
    let file = File::new(data);
    for entry in handled() {
        let extension = entry.spec.extensions.first().unwrap_or(&"x");
        // Parts of split files are known by such names.
        let name = format!("fuzz-00001-of-00002.{extension}");
        for (strict, checksums) in [(false, true), (false, false), (true, true)] {
            let options = limited()
                .format(Some(entry.spec.id))
                .strict(strict)
                .checksums(checksums)
                .salvage(!checksums);
            file.proportional(|| {
                let opened = file.open(&options, &name);
                if let Err(error) = &opened {
                    check_error(error);
                }
                opened.is_ok()
            });
        }
    }
    file.proportional(|| file.open(&limited(), "fuzz").is_ok());
}

/// Whatever opens is listed, verified, hashed and read, in memory within the limits.
pub fn read(data: &[u8]) {
    let file = File::new(data);
    for checksums in [true, false] {
        let options = limited().checksums(checksums).salvage(!checksums);
        let Ok(archive) = file.open(&options, "fuzz") else {
            continue;
        };
        file.proportional(|| amplifiers::use_metadata(&archive).is_ok());
        file.bounded(|| {
            let _ = format!("{:?}", archive.manifest());
            let _ = verify(&archive, 1);
            let _ = digest(&archive, 1);
            archive.tensors().take(32).for_each(|tensor| {
                let info = tensor.info();
                let _ = tensor.canonical();
                let _ = tensor.stored();
                for part in 0..info.parts.len().min(8) {
                    let _ = tensor.part(part);
                }
                let last: Vec<u64> = info.shape.iter().map(|n| n.saturating_sub(1)).collect();
                let _ = tensor.element(&last);
                let _ = tensor.element(&[]);
            });
        });
    }
}

/// What a sound file is converted to is a sound file.
pub fn convert(data: &[u8]) {
    let file = File::new(data);
    let Ok(archive) = file.open(&limited(), "fuzz") else {
        return;
    };
    let targets = first_choices();
    let Some((entry, _)) = targets.get(data.len() % targets.len()) else {
        return;
    };
    let options = ConvertOptions::new().allow(Effect::Dropped);
    let few = archive.select(|tensor| tensor.dense_len().is_some_and(|len| len < 1 << 20));
    if !errors(&verify(&few, 1)).is_empty() {
        return; // compressed data is passed on as it is
    }
    let Ok(files) = write_to_memory(&few, entry, &options) else {
        return;
    };
    let what =
        |error: &dyn std::fmt::Display| format!("{} of a conversion: {error}", entry.spec.id);
    let written = InMemory::written(files, &file_name(entry))
        .open()
        .unwrap_or_else(|error| panic!("{}", what(&error)));
    assert_eq!(
        written.tensors().len(),
        few.tensors().len(),
        "tensors of {}",
        entry.spec.id
    );
    let findings = verify(&written, 1);
    assert!(
        errors(&findings).is_empty(),
        "{}: {findings:?}",
        entry.spec.id
    );
}

/// Archives that fit a version come back as they were.
pub fn roundtrip(data: &[u8]) {
    let mut rng = Rng::scripted(data);
    let all = profiles();
    let (entry, profile) = rng.pick(&all);
    let options = random::options(&mut rng.clone(), profile);
    let archive = random::archive(&mut rng, &profile.can);
    if is_impossible(&archive, entry, &options) {
        return;
    }
    let what = format!("{} {}", entry.spec.id, profile.version);
    let files = write_to_memory(&archive, entry, &options)
        .unwrap_or_else(|error| panic!("{what}: not written: {error}"));
    let written = InMemory::written(files, &file_name(entry))
        .open()
        .unwrap_or_else(|error| panic!("{what}: not opened: {error}"));
    compare(&archive, &written).unwrap_or_else(|why| panic!("{what}: {why}"));
    let findings = verify(&written, 1);
    assert!(errors(&findings).is_empty(), "{what}: {findings:?}");
}

/// Reading in another order, byte order or type is what a loop over single elements gives.
pub fn transform(data: &[u8]) {
    let mut rng = Rng::scripted(data);
    let number = |dtype: &DType| dtype.width().is_some_and(usize::is_power_of_two);
    let dtypes: Vec<DType> = DType::all().filter(number).collect();
    let dtype = *rng.pick(&dtypes);
    let shape: Vec<u64> = (0..rng.below(5)).map(|_| rng.below(9) as u64).collect();
    let elements = usize::try_from(shape.iter().product::<u64>()).expect("a small shape");
    let plain = random::data(&mut rng, dtype, elements);
    let width = dtype.width().unwrap_or(1);
    let orders = [Order::RowMajor, Order::ColumnMajor];
    let (from, to) = (*rng.pick(&orders), *rng.pick(&orders));
    let endians = [Endian::Little, Endian::Big];
    let (from_endian, to_endian) = (*rng.pick(&endians), *rng.pick(&endians));

    let stored = arranged(&plain, dtype, &shape, from, from_endian);
    let mut info = TensorInfo::dense("t", dtype, shape.clone(), Payload::Inline(stored.into()));
    info.layout = from.into();
    for part in &mut info.parts {
        part.endian = from_endian;
    }
    let mut builder = ArchiveBuilder::new();
    builder.push_info(info).expect("one tensor");
    let archive = builder.finish();
    let tensor = archive.get("t").expect("the tensor");

    let canonical = tensor.canonical().expect("a dense tensor");
    assert_eq!(canonical, plain, "{dtype} {shape:?} canonical");
    let wanted = arranged(&plain, dtype, &shape, to, to_endian);
    let mut form = Form::canonical(dtype);
    (form.order, form.endian) = (to, to_endian);
    let mut streamed = Vec::new();
    let put = &mut |piece: &[u8]| {
        streamed.extend_from_slice(piece);
        Ok(())
    };
    tensor.stream(&form, put).expect("a dense tensor");
    assert_eq!(streamed, wanted, "{dtype} {shape:?} {form:?}");
    if elements > 0 {
        let at = rng.below(elements);
        let index = index_of(at, &shape);
        let element = tensor.element(&index).expect("an element");
        let expected = plain.get(at * width..(at + 1) * width);
        assert_eq!(Some(&*element), expected, "{dtype} {shape:?} {index:?}");
    }
    casts(&mut rng, &archive, dtype, &plain);
}

/// Casts to wider and narrower numbers, against the language's own.
fn casts(rng: &mut Rng, archive: &Archive, dtype: DType, plain: &[u8]) {
    let types = [DType::F64, DType::F32, DType::I64, DType::U8, DType::I16];
    let to = *rng.pick(&types);
    let Some(numbers) = numbers(dtype, plain) else {
        return;
    };
    let Ok(cast) = tenfold::ops::cast(archive, |_| Some(to)) else {
        panic!("{dtype} is not cast to {to}");
    };
    let found = cast.get("t").expect("the tensor").canonical();
    let expected: Vec<Vec<u8>> = numbers.iter().map(|number| number.as_bytes(to)).collect();
    let found = found.expect("a cast never fails on what it finds");
    assert_eq!(*found, expected.concat(), "{dtype} to {to}: {numbers:?}");
}

#[derive(Clone, Copy, Debug)]
enum Number {
    Float(f64),
    Whole(i128),
}

impl Number {
    /// The number in another type: the nearest one, the even one of two that are equally near; integers that do not fit
    /// become the least or the greatest.
    fn as_bytes(self, to: DType) -> Vec<u8> {
        let (as_f64, as_f32) = match self {
            Number::Float(x) => (x, x as f32),
            Number::Whole(n) => (n as f64, n as f32),
        };
        let whole = match self {
            Number::Whole(n) => n,
            // Far outside of all types here, `as` stays outside of them.
            Number::Float(x) => x.round_ties_even() as i128,
        };
        // Two's complement: the bytes of a narrower integer are the lowest of a wider one.
        let within = |least: i128, greatest: i128, width: usize| {
            whole.clamp(least, greatest).to_le_bytes()[..width].to_vec()
        };
        match to {
            DType::F64 => as_f64.to_le_bytes().to_vec(),
            DType::F32 => as_f32.to_le_bytes().to_vec(),
            DType::I64 => within(i64::MIN.into(), i64::MAX.into(), 8),
            DType::U8 => within(0, u8::MAX.into(), 1),
            DType::I16 => within(i16::MIN.into(), i16::MAX.into(), 2),
            _ => panic!("{to} is not among the types"),
        }
    }
}

fn numbers(dtype: DType, plain: &[u8]) -> Option<Vec<Number>> {
    fn each<const N: usize>(bytes: &[u8], number: fn([u8; N]) -> Number) -> Vec<Number> {
        let arrays = bytes
            .chunks_exact(N)
            .filter_map(|chunk| chunk.try_into().ok());
        arrays.map(number).collect()
    }
    // A NaN may come back with other bits.
    let all = match dtype {
        DType::U8 => each(plain, |b| Number::Whole(u8::from_le_bytes(b).into())),
        DType::I16 => each(plain, |b| Number::Whole(i16::from_le_bytes(b).into())),
        DType::U32 => each(plain, |b| Number::Whole(u32::from_le_bytes(b).into())),
        DType::I64 => each(plain, |b| Number::Whole(i64::from_le_bytes(b).into())),
        DType::U64 => each(plain, |b| Number::Whole(u64::from_le_bytes(b).into())),
        DType::F32 => each(plain, |b| Number::Float(f32::from_le_bytes(b).into())),
        DType::F64 => each(plain, |b| Number::Float(f64::from_le_bytes(b))),
        _ => return None,
    };
    let nan = |number: &Number| matches!(number, Number::Float(x) if x.is_nan());
    (!all.iter().any(nan)).then_some(all)
}

/// Row-major little-endian elements in another order, one by one.
fn arranged(plain: &[u8], dtype: DType, shape: &[u64], order: Order, endian: Endian) -> Vec<u8> {
    let width = dtype.width().unwrap_or(1);
    let mut out = vec![0; plain.len()];
    for (at, element) in plain.chunks_exact(width).enumerate() {
        let index = index_of(at, shape);
        let place = match order {
            Order::ColumnMajor => {
                (index.iter().zip(shape).rev()).fold(0, |place, (index, len)| place * len + index)
            }
            Order::RowMajor => at as u64,
        };
        let from = usize::try_from(place).expect("a small tensor") * width;
        let mut element = element.to_vec();
        if endian == Endian::Big {
            for number in element.chunks_mut(dtype.swap_width()) {
                number.reverse();
            }
        }
        out[from..from + width].copy_from_slice(&element);
    }
    // A complex bool is not swapped, a bool is 0 or 1.
    debug_assert!(!matches!(dtype, DType::Number(Scalar::Bool, _)) || out.iter().all(|b| *b < 2));
    out
}

/// The indices of the element at a row-major place.
fn index_of(mut at: usize, shape: &[u64]) -> Vec<u64> {
    let mut index = vec![0; shape.len()];
    for (index, len) in index.iter_mut().zip(shape).rev() {
        let len = usize::try_from(*len).expect("a small shape");
        *index = (at % len) as u64;
        at /= len;
    }
    index
}

/// What parts a configuration from the file that it lies beside.
const BESIDE: u8 = 0;

/// Where the files are that programs wrote.
fn fixtures() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // This is a place of two crates, at different depths.
    let mut roots = [root.join("../fixtures"), root.join("../../fixtures")].into_iter();
    roots
        .find(|path| path.is_dir())
        .expect("there are fixtures")
}

fn entries(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Importance matrices in both forms.
fn importance_matrices() -> Vec<Vec<u8>> {
    let is_one = |path: &PathBuf| path.to_string_lossy().ends_with(".imatrix.gguf");
    let quantized = fixtures().join("quantized");
    let files = ["gguf", "gguf-mixture"].map(|of| entries(&quantized.join(of)));
    let files = files.into_iter().flatten().filter(is_one);
    // One entry with two values of four calls, seven chunks of a file.
    let words =
        |words: &[i32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let values = [8f32, 2.0].map(f32::to_le_bytes).concat();
    let old = [
        words(&[1, 1]),
        vec![b'a'],
        words(&[4, 2]),
        values,
        words(&[7, 0]),
    ]
    .concat();
    let files = files.filter_map(|path| fs::read(path).ok());
    files.chain([old]).collect()
}

/// Configurations of quantized models, each with its file.
fn quantized_models() -> Vec<Vec<u8>> {
    let mut models = Vec::new();
    for scheme in entries(&fixtures().join("quantized")) {
        for case in entries(&scheme) {
            let read = |name| fs::read(case.join(name));
            if let (Ok(config), Ok(file)) = (read("config.json"), read("model.safetensors")) {
                models.push([config, vec![BESIDE], file].concat());
            }
        }
    }
    models
}

/// Any numbers become blocks of any type, with any importances, and what comes back is numbers; or it is an error.
pub fn quantize(data: &[u8]) {
    let mut rng = Rng::scripted(data);
    let types: Vec<_> = ops::quantized_types().collect();
    let spec = *rng.pick(&types);
    let block = u64::from(spec.elements);
    let shape = [1 + rng.below(2), 1 + rng.below(3), 1 + rng.below(2)].map(|n| n as u64);
    let shape = [shape[0], shape[1], shape[2] * block];
    let elements = shape.iter().product::<u64>();
    // All of them finite, or below 2, or any.
    let kept = *rng.pick(&[0xff7f_ffff, 0xbfff_ffff, u32::MAX]);
    let bits = (0..elements).flat_map(|_| (rng.next() as u32 & kept).to_le_bytes());
    let bytes: Vec<u8> = bits.collect();
    let mut builder = ArchiveBuilder::new();
    let pushed = builder.push("t", DType::F32, &shape, Bytes::from(bytes));
    pushed.expect("a tensor");
    let mut options = ops::QuantizeOptions::new().rule(move |_| Some(spec));
    if rng.below(2) == 0 {
        let columns = shape[0] * shape[2];
        let mut old = [1u32, 1].map(u32::to_le_bytes).concat();
        old.push(b't');
        old.extend([1, columns as u32].map(u32::to_le_bytes).concat());
        old.extend((0..columns).flat_map(|_| (rng.below(1 << 16) as f32).to_le_bytes()));
        let read = ops::ImportanceMatrix::read(Arc::new(Bytes::from(old)));
        options = options.importance(read.expect("an importance matrix"));
    }
    let quantized = ops::quantize(&builder.finish(), &options);
    let Ok(quantized) = quantized else { return };
    let tensor = quantized.archive.get("t").expect("the tensor");
    if tensor.canonical().is_ok() {
        let targets = first_choices();
        let (gguf, profile) = (targets.iter())
            .find(|(entry, _)| entry.spec.id == "gguf")
            .expect("GGUF is written");
        let files = write_to_memory(&quantized.archive, gguf, &options_for(profile));
        let written = InMemory::written(files.expect("blocks"), &file_name(gguf));
        let archive = written.open().expect("a file of blocks");
        let numbers = archive.get("t").expect("the tensor").to::<f32>();
        numbers.expect("blocks are numbers");
    }
}

/// Any bytes are an importance matrix or an error, in memory that is in proportion to them.
pub fn imatrix(data: &[u8]) {
    let file = File::new(data);
    let read = file.bounded(|| ops::ImportanceMatrix::read(file.0.clone()));
    match read {
        Ok(matrix) => assert!(matrix.names().all(|name| matrix.get(name).is_some())),
        Err(error) => check_error(&error),
    }
}

/// What is taken for quantized tensors becomes numbers, or is refused, in memory that is in proportion to the file.
pub fn quantized(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == BESIDE);
    let (config, file) = data.split_at(at.unwrap_or(0));
    let file = File::new(file.get(1..).unwrap_or_default());
    let files = [("config.json".to_owned(), config.to_vec())];
    let beside = InMemory::written(files.into(), "config.json").beside;
    let options = limited().format(Some("safetensors"));
    let opened = options.read_beside(file.0.clone(), Some("x.safetensors"), &*beside);
    let Ok(archive) = opened else { return };
    let found = file.bounded(|| ops::dequantize(&archive));
    let numbers = match found {
        Ok(numbers) => numbers,
        Err(error) => return check_error(&error),
    };
    for tensor in numbers.tensors() {
        if tensor.info().dense_len().is_some_and(|len| len <= 1 << 20) {
            let read = file.bounded(|| tensor.canonical());
            read.err().iter().for_each(check_error);
        }
    }
}

/// JSON: skipping and reading agree, and what was read and written reads as the same.
pub fn wire_json(data: &[u8]) {
    fuzzing::json(data).unwrap_or_else(|why| panic!("{why}"));
}

/// CBOR: the deterministic form comes back byte by byte.
pub fn wire_cbor(data: &[u8]) {
    fuzzing::cbor(data).unwrap_or_else(|why| panic!("{why}"));
}

/// MessagePack: an object is of one kind.
pub fn wire_msgpack(data: &[u8]) {
    fuzzing::msgpack(data).unwrap_or_else(|why| panic!("{why}"));
}

pub fn wire_protobuf(data: &[u8]) {
    fuzzing::protobuf(data).unwrap_or_else(|why| panic!("{why}"));
}

/// NumPy's headers: what was read and written reads as the same array.
pub fn wire_numpy(data: &[u8]) {
    fuzzing::numpy(data).unwrap_or_else(|why| panic!("{why}"));
}

/// Pickles: a list of names allows nothing that a lenient policy does not, and what is built can be looked at.
pub fn wire_pickle(data: &[u8]) {
    fuzzing::pickle(data).unwrap_or_else(|why| panic!("{why}"));
}

/// Scanning gives a verdict on any bytes, none that is better for a file with the name of a pickle, and no bytes behind a
/// dangerous program hide it.
pub fn scan(data: &[u8]) {
    const EVIL: &[u8] = b"cos\nsystem\n(X\x04\0\0\0truetR.";
    let verdict = |bytes: &[u8], name: &str| {
        let file = File::new(bytes);
        let options = ops::ScanOptions::new().limits(Limits::default().header_bytes(1 << 20));
        let found = file.bounded(|| ops::scan(&*file.0, Some(name), &options));
        found.expect("bytes in memory are read").verdict()
    };
    let (plain, named) = (verdict(data, "x.bin"), verdict(data, "x.pkl"));
    assert!(plain <= named, "{plain}, and as a pickle {named}");
    let behind = verdict(&[EVIL, data].concat(), "x.bin");
    assert_eq!(behind, ops::Verdict::Dangerous);
}

/// HDF5: what is found lies in the file, under a name of its own.
pub fn wire_hdf5(data: &[u8]) {
    fuzzing::hdf5(data).unwrap_or_else(|why| panic!("{why}"));
}

/// Zip: members do not overlap, and an archive of the same members has the same members.
pub fn wire_zip(data: &[u8]) {
    fuzzing::zip(data).unwrap_or_else(|why| panic!("{why}"));
}

/// A file that is its own neighbour under every name, and counts what is read of it and them.
struct File(Arc<Counted>);

#[derive(Debug)]
struct Counted {
    bytes: Bytes,
    read: AtomicU64,
}

impl Source for Counted {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let bytes = Source::read(&self.bytes, range)?;
        self.read.fetch_add(bytes.len() as u64, Relaxed);
        Ok(bytes)
    }

    fn is_memory(&self) -> bool {
        true
    }
}

impl File {
    fn new(data: &[u8]) -> Self {
        Self(Arc::new(Counted {
            bytes: Bytes::copy_from_slice(data),
            read: AtomicU64::new(0),
        }))
    }

    fn open(&self, options: &OpenOptions, name: &str) -> Result<Archive> {
        options.read_beside(self.0.clone(), Some(name), self)
    }

    /// Opening and metadata, in memory that is in proportion to what is read.
    fn proportional<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = self.0.read.load(Relaxed);
        let (result, used) = on_this_thread(work);
        // A file is read to be recognized, and then to be described.
        let read = self.0.read.load(Relaxed) - before;
        let bound = (16 << 20) + 16 * usize::try_from(read).unwrap_or(usize::MAX / 32);
        assert!(
            used.peak <= bound,
            "{} bytes at once, {bound} are allowed for {read} that were read",
            used.peak
        );
        result
    }

    /// Other work on it, in memory that is in proportion to it and within the limits.
    fn bounded<T>(&self, work: impl FnOnce() -> T) -> T {
        let bound = (64 << 20) + 32 * self.0.bytes.len();
        let (result, used) = on_this_thread(work);
        assert!(
            used.peak <= bound,
            "{} bytes at once, {bound} are allowed",
            used.peak
        );
        result
    }
}

impl Siblings for File {
    fn names(&self) -> Result<Option<Vec<String>>> {
        Ok(Some(vec![
            "fuzz-00002-of-00002.gguf".to_owned(),
            "fuzz.dat".to_owned(),
        ]))
    }

    fn open(&self, _: &str) -> Result<Arc<dyn Source>> {
        Ok(self.0.clone())
    }
}

/// Limits at which an answer comes quickly.
fn limited() -> OpenOptions {
    let limits = Limits::default()
        .tensor_memory(1 << 20)
        .dense_bytes(1 << 20);
    OpenOptions::new().limits(limits)
}

/// Every refusal has a rule with a topic, and says something.
fn check_error(error: &tenfold::Error) {
    let rule = error.rule();
    assert!(
        rule.contains('.') && !error.message().is_empty(),
        "{rule:?}: {error}"
    );
    if let Some((_, range)) = error.range() {
        assert!(range.start <= range.end, "{error}: {range:?}");
    }
}
