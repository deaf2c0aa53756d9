//! Every beginning of every golden file, and every change of a single byte, also in the files of a store: an answer or an
//! error, never a panic, never more memory than a file of its size may cost.
//!
//! Exhaustive for files up to 4 KiB, a thousand sampled places in larger ones; in a debug build only a sample of both.

// A test may panic and print.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod support;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use libtest_mimic::{Arguments, Failed, Trial};
use support::memory::{Counting, on_this_thread};
use support::random::Rng;
use support::{Beside, Case, InMemory, Kind, cases};
use tenfold::io::{DirectorySiblings, Limits, Siblings, Source};
use tenfold::model::{DType, Layout};
use tenfold::{Bytes, OpenOptions, Tensor};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Files up to this length are tried at every place.
const EXHAUSTIVE: usize = 4 << 10;
/// Places that are tried in larger ones.
const SAMPLES: usize = if cfg!(debug_assertions) { 25 } else { 1000 };

static TRIED: AtomicUsize = AtomicUsize::new(0);

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut cases = cases(Kind::Valid);
    cases.extend(support::cases(Kind::Reject));
    let count = cases.len();
    let trials = cases
        .into_iter()
        .map(|case| Trial::test(case.title(), move || check(&case).map_err(Failed::from)));
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    let tried = TRIED.load(Relaxed);
    println!("{tried} damaged files");
    let whole = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.list;
    if whole && tried < count * SAMPLES {
        eprintln!("only {tried} damaged files of {count}");
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

fn check(case: &Case) -> Result<(), String> {
    if let Some(file) = case.file() {
        check_file(case, &file)?;
    }
    check_beside(case)
}

/// Damages a file.
fn check_file(case: &Case, file: &InMemory) -> Result<(), String> {
    attempt(file, "as it is")?;
    for len in places(case, file) {
        let mut cut = file.clone();
        cut.bytes = file.bytes.slice(..len);
        attempt(&cut, &format!("its first {len} bytes"))?;
    }
    for at in places(case, file) {
        let byte = file.bytes[at];
        for changed in [byte ^ 0xff, byte ^ 0x01, 0] {
            if changed == byte {
                continue;
            }
            let mut bytes = file.bytes.to_vec();
            bytes[at] = changed;
            let mut damaged = file.clone();
            damaged.bytes = Bytes::from(bytes);
            attempt(&damaged, &format!("byte {at} = {changed:#04x}"))?;
        }
    }
    Ok(())
}

/// Damages the files that a store consists of, or that a file is read with, one at a time.
fn check_beside(case: &Case) -> Result<(), String> {
    let Some((main, files, damaged)) = store(case) else {
        return Ok(());
    };
    let mut rng = Rng::named(&format!("beside {}", case.title()));
    for _ in 0..SAMPLES {
        let name = rng.pick(&damaged);
        let mut bytes = files[name].to_vec();
        let at = rng.below(bytes.len());
        match rng.below(4) {
            0 => bytes.truncate(at),
            1 => bytes[at] = 0,
            2 => bytes[at] ^= 1,
            _ => bytes[at] ^= 0xff,
        }
        let what = format!("{name} with another byte {at}, or cut there");
        let mut files = files.clone();
        files.insert(name.clone(), bytes.into());
        let file = InMemory {
            name: main.clone(),
            bytes: files[&main].clone(),
            beside: Arc::new(Beside::Files(files)),
        };
        attempt(&file, &what)?;
    }
    Ok(())
}

/// The file that a case is opened by, all that are read, and those of them that are to be damaged: `None` for a file that is
/// read alone.
fn store(case: &Case) -> Option<(String, BTreeMap<String, Bytes>, Vec<String>)> {
    let mut files = BTreeMap::new();
    let main = if let Some(file) = case.file() {
        use_all(&file);
        if let Beside::Directory { read, .. } = &*file.beside {
            files.clone_from(&read.lock().unwrap());
        }
        let mut damaged: Vec<String> = files.keys().cloned().collect();
        damaged.retain(|name| *name != file.name && !files[name].is_empty());
        files.insert(file.name.clone(), file.bytes);
        return (!damaged.is_empty()).then_some((file.name, files, damaged));
    } else {
        let tree = DirectorySiblings::of(case.path.join("any"))
            .tree()
            .unwrap()
            .unwrap();
        for key in tree.keys() {
            let source = tree.open(key).ok()?;
            files.insert(key.to_owned(), source.read(0..source.len()).unwrap());
        }
        let documents = ["zarr.json", ".zarray", ".zgroup", ".zmetadata"];
        let is_document = |key: &&String| documents.iter().any(|name| key.ends_with(name));
        // That of the root, if there is one: it has the shortest way.
        let documents = files.keys().filter(is_document);
        documents
            .min_by_key(|key| key.matches('/').count())?
            .clone()
    };
    let damaged = files.keys().filter(|name| !files[*name].is_empty());
    let damaged = damaged.cloned().collect();
    Some((main, files, damaged))
}

/// Where the file is cut and changed.
fn places(case: &Case, file: &InMemory) -> Vec<usize> {
    let len = file.bytes.len();
    if len <= EXHAUSTIVE && (!cfg!(debug_assertions) || len <= SAMPLES) {
        return (0..len).collect();
    }
    // Half of them where the file describes itself, because damaged data is seldom more than wrong data.
    let mut rng = Rng::named(&case.title());
    let regions: Vec<usize> = file.open().map_or(Vec::new(), |archive| {
        let regions = &archive.manifest().regions;
        let ranges = regions.iter().map(|region| region.range.clone());
        ranges
            .flat_map(|range| range.start..range.end)
            .filter_map(|at| usize::try_from(at).ok().filter(|&at| at < len))
            .collect()
    });
    (0..SAMPLES)
        .map(|n| {
            if regions.is_empty() || n % 2 == 0 {
                rng.below(len)
            } else {
                *rng.pick(&regions)
            }
        })
        .collect()
}

/// Opens, lists, verifies and reads, if need be what is whole; the answers do not matter.
fn attempt(file: &InMemory, what: &str) -> Result<(), String> {
    TRIED.fetch_add(1, Relaxed);
    let beside = match &*file.beside {
        Beside::Files(files) => files.values().map(Bytes::len).sum(),
        Beside::Directory { .. } => 0,
    };
    let bound = (64 << 20) + 8 * (file.bytes.len() + beside);
    let (outcome, used) = on_this_thread(|| catch_unwind(AssertUnwindSafe(|| use_all(file))));
    if let Err(panic) = outcome {
        let message = (panic.downcast_ref::<String>().map(String::as_str))
            .or(panic.downcast_ref::<&str>().copied());
        return Err(format!("{what}: panicked: {message:?}"));
    }
    if used.peak > bound {
        return Err(format!(
            "{what}: {} bytes at once, {bound} are allowed",
            used.peak
        ));
    }
    Ok(())
}

fn use_all(file: &InMemory) {
    let limits = Limits::default()
        .tensor_memory(16 << 20)
        .dense_bytes(16 << 20);
    let options = OpenOptions::new().limits(limits);
    let opened = file.open_with(&options);
    let Ok(archive) = opened.or_else(|_| file.open_with(&options.salvage(true))) else {
        return;
    };
    let _ = format!("{:?}", archive.manifest());
    let _ = support::verify(&archive, 1);
    for tensor in archive.tensors() {
        agree(&tensor);
        let _ = tensor.stored();
        let _ = tensor.slice(&[]).and_then(|all| all.edges(2).to_bytes());
        for part in 0..tensor.info().parts.len() {
            let _ = tensor.part(part);
        }
    }
}

/// The whole tensor, a slice of everything and its elements one by one are the same, or none of them can be read.
fn agree(tensor: &Tensor<'_>) {
    /// Elements of a tensor that is read one by one.
    const FEW: u64 = 64;
    let info = tensor.info();
    let whole = tensor.canonical();
    let name = tensor.name();
    // What has no numbers of its own, or stands for other numbers, has no elements to compare with.
    let is_plain = matches!(info.dtype, DType::Number(..))
        && (info.decoder.is_none() || info.layout == Layout::Decoded);
    if !is_plain {
        return;
    }
    let sliced = tensor.slice(&[]).and_then(|all| all.to_bytes());
    match (&whole, &sliced) {
        (Ok(whole), Ok(sliced)) => assert_eq!(whole, sliced, "{name}: the slice of everything"),
        (Err(_), Err(_)) => {}
        (Ok(_), Err(error)) => panic!("{name}: only the slice of everything is refused: {error}"),
        (Err(error), Ok(_)) => panic!("{name}: the slice of everything is not refused: {error}"),
    }
    let (Some(count @ 1..=FEW), Some(width)) = (info.elements(), info.dtype.width()) else {
        return;
    };
    let elements: tenfold::Result<Vec<_>> = (0..count)
        .map(|n| {
            let mut rest = n;
            let mut index: Vec<u64> = (info.shape.iter().rev())
                .map(|dim| {
                    let i = rest % dim;
                    rest /= dim;
                    i
                })
                .collect();
            index.reverse();
            let element = tensor.element(&index)?;
            assert_eq!(element.len(), width, "{name}: element {index:?}");
            Ok(element)
        })
        .collect();
    match (whole, elements) {
        (Ok(whole), Ok(elements)) => assert_eq!(whole, elements.concat(), "{name}: its elements"),
        (Err(_), Err(_)) => {}
        (Ok(_), Err(error)) => panic!("{name}: only an element is refused: {error}"),
        (Err(error), Ok(_)) => panic!("{name}: every element is read, the tensor is not: {error}"),
    }
}
