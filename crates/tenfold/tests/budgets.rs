//! How many requests files far away take: numbers that may only fall.

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
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use support::counting::{Cost, Counting};
use support::random::common_dtype;
use support::{InMemory, file_name, first_choices, options_for, write_to_memory};
use tenfold::format::{Effect, Entry, Registry};
use tenfold::io::{AtomicOutput, Siblings, Source, StreamOutput};
use tenfold::model::Slice;
use tenfold::ops::{Conversion, ConvertOptions, Shards};
use tenfold::{Archive, ArchiveBuilder, Bytes, OpenOptions, Result};

const TENSORS: u64 = 1000;
/// Bytes of a tensor: rows of 512 bytes.
const ROWS: u64 = 32;
const ROW: usize = 512;

/// What a format may take with 1 000 tensors of 16 KiB, or with as many as it can have. A number that becomes smaller is made
/// smaller here, and none becomes larger.
///
/// Files of primitiv, ONNX, Flax and Paddle have no index: who lists their tensors comes by all of them. The arrays of `.npz` and the
/// storages of PyTorch have checksums, which a conversion compares before.
struct Budget {
    id: &'static str,
    /// Round trips, requests and KiB.
    open: [u64; 3],
    /// A tensor in the middle, and ten of its rows.
    tensor: [u64; 3],
    rows: [u64; 3],
    /// All of it, to a file and to a stream: requests and KiB.
    to_file: [u64; 2],
    to_stream: [u64; 2],
}

/// A format without a row of its own: one with an index.
const INDEXED: Budget = Budget {
    id: "",
    open: [3, 3, 256],
    tensor: [1, 1, 16],
    rows: [1, 1, 16],
    to_file: [41, 16064],
    to_stream: [41, 16064],
};

const BUDGETS: &[Budget] = &[
    Budget {
        id: "mag",
        open: [2, 2, 192],
        tensor: [1, 1, 16],
        rows: [1, 1, 5],
        to_file: [16, 16000],
        to_stream: [16, 16000],
    },
    Budget {
        id: "ztensor",
        open: [2, 2, 192],
        tensor: [1, 1, 16],
        rows: [1, 1, 5],
        to_file: [16, 16000],
        to_stream: [16, 16000],
    },
    Budget {
        id: "burnpack",
        open: [2, 2, 192],
        tensor: [1, 1, 16],
        rows: [1, 1, 5],
        to_file: [41, 16000],
        to_stream: [41, 16000],
    },
    Budget {
        id: "primitiv",
        open: [8, 8, 16048],
        tensor: [1, 1, 16],
        rows: [1, 1, 16],
        to_file: [1000, 16000],
        to_stream: [1000, 16000],
    },
    Budget {
        id: "flax",
        open: [8, 8, 16032],
        tensor: [1, 1, 16],
        rows: [1, 1, 5],
        to_file: [16, 16031],
        to_stream: [16, 16031],
    },
    Budget {
        id: "paddle",
        open: [8, 8, 16142],
        tensor: [1, 1, 16],
        rows: [1, 1, 5],
        to_file: [16, 16140],
        to_stream: [16, 16140],
    },
    // Rows are columns in the file.
    Budget {
        id: "mat",
        open: [8, 8, 16100],
        tensor: [1, 1, 16],
        rows: [1, 1, 16],
        to_file: [1000, 16000],
        to_stream: [1000, 16000],
    },
    // Numbers that begin with their highest byte are turned one tensor at a time.
    Budget {
        id: "netcdf",
        open: [1, 1, 64],
        tensor: [1, 1, 16],
        rows: [1, 1, 5],
        to_file: [1000, 16000],
        to_stream: [1000, 16000],
    },
    Budget {
        id: "tens",
        open: [1, 1, 17],
        tensor: [1, 1, 16],
        rows: [1, 1, 16],
        to_file: [1, 16],
        to_stream: [1, 16],
    },
    Budget {
        id: "cc4s",
        open: [2, 2, 267],
        tensor: [0, 0, 0],
        rows: [0, 0, 0],
        to_file: [0, 0],
        to_stream: [0, 0],
    },
    Budget {
        id: "safetensors",
        open: [2, 2, 192],
        tensor: [1, 1, 16],
        rows: [1, 1, 5],
        to_file: [16, 16000],
        to_stream: [16, 16000],
    },
    Budget {
        id: "gguf",
        open: [1, 1, 64],
        tensor: [1, 1, 16],
        rows: [1, 1, 5],
        to_file: [16, 16000],
        to_stream: [16, 16000],
    },
    Budget {
        id: "npy",
        open: [1, 1, 17],
        tensor: [1, 1, 16],
        rows: [1, 1, 5],
        to_file: [1, 16],
        to_stream: [1, 16],
    },
    Budget {
        id: "npz",
        open: [3, 995, 558],
        tensor: [1, 1, 16],
        rows: [1, 1, 5],
        to_file: [1016, 32185],
        to_stream: [1016, 32185],
    },
    Budget {
        id: "pytorch",
        open: [5, 1000, 584],
        tensor: [1, 1, 16],
        rows: [1, 1, 5],
        to_file: [1016, 32062],
        to_stream: [1016, 32062],
    },
    Budget {
        id: "onnx",
        open: [10, 10, 16167],
        tensor: [1, 1, 16],
        rows: [1, 1, 5],
        to_file: [16, 16039],
        to_stream: [16, 16039],
    },
    Budget {
        id: "hdf5",
        open: [2, 2, 192],
        tensor: [1, 1, 16],
        rows: [1, 1, 5],
        to_file: [16, 16000],
        to_stream: [16, 16000],
    },
];

fn archive(entry: &Entry) -> Option<Archive> {
    let profile = entry.spec.writes.first()?;
    let dtype = common_dtype(&profile.can);
    let mut builder = ArchiveBuilder::new();
    let columns = (ROW / dtype.width()?) as u64;
    for n in 0..profile.can.max_tensors.min(TENSORS) {
        let data = Bytes::from(vec![1; ROW * usize::try_from(ROWS).unwrap()]);
        let name = format!("model.layers.{n}.weight");
        builder.push(name, dtype, &[ROWS, columns], data).unwrap();
    }
    Some(builder.finish())
}

fn in_kib(cost: Cost) -> [u64; 3] {
    [cost.trips, cost.requests, cost.bytes.div_ceil(1024)]
}

fn without_trips(cost: Cost) -> [u64; 2] {
    [cost.requests, cost.bytes.div_ceil(1024)]
}

/// Where everything is written to.
fn target() -> Entry {
    *Registry::standard().get("gguf").unwrap()
}

#[test]
fn no_format_takes_more_than_its_budget() {
    let directory = tempfile::tempdir().unwrap();
    let mut failed = Vec::new();
    for (entry, profile) in first_choices() {
        let id = entry.spec.id;
        let Some(archive) = archive(&entry) else {
            continue;
        };
        let files = write_to_memory(&archive, &entry, &options_for(profile)).unwrap();
        let file = InMemory::written(files, &file_name(&entry));
        let source = Counting::new(&file.bytes);
        let opened = file.open_as(source.clone(), &OpenOptions::new()).unwrap();
        let open = in_kib(source.take());
        let tensors: Vec<_> = opened.tensors().collect();
        let middle = &tensors[tensors.len() / 2];
        middle.canonical().unwrap();
        let tensor = in_kib(source.take());
        let rows = Slice::range(10, 20);
        middle.slice(&[rows]).unwrap().to_bytes().unwrap();
        let rows = in_kib(source.take());
        let convert = |out: &mut dyn tenfold::io::Output| {
            let options = ConvertOptions::new().allow(Effect::Dropped);
            let conversion = Conversion::prepare(&opened, &target(), &options).unwrap();
            conversion.write_to("out.gguf", out).unwrap();
            without_trips(source.take())
        };
        let path = directory.path().join("out.gguf");
        let mut out = AtomicOutput::file(&path).unwrap().force(true).sync(false);
        let to_file = convert(&mut out);
        drop(out);
        let to_stream = convert(&mut StreamOutput::new(std::io::sink()));
        println!(
            "Budget {{ id: {id:?}, open: {open:?}, tensor: {tensor:?}, rows: {rows:?}, to_file: {to_file:?}, to_stream: {to_stream:?} }},"
        );
        let budget = BUDGETS.iter().find(|budget| budget.id == id);
        let budget = budget.unwrap_or(&INDEXED);
        let within = |found: &[u64], most: &[u64]| found.iter().zip(most).all(|(a, b)| a <= b);
        for (what, found, most) in [
            ("open", &open[..], &budget.open[..]),
            ("tensor", &tensor, &budget.tensor),
            ("rows", &rows, &budget.rows),
            ("to_file", &to_file, &budget.to_file),
            ("to_stream", &to_stream, &budget.to_stream),
        ] {
            if !within(found, most) {
                failed.push(format!("{id} {what}: {found:?}, at most {most:?}"));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Files far away that cannot be listed, as on a plain web server.
struct Far {
    files: BTreeMap<String, Arc<Counting>>,
    asked: AtomicU64,
}

impl Siblings for Far {
    fn names(&self) -> Result<Option<Vec<String>>> {
        Ok(None)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Source>> {
        self.open_all(&[name]).remove(0)
    }

    fn open_all(&self, names: &[&str]) -> Vec<Result<Arc<dyn Source>>> {
        self.asked.fetch_add(1, Relaxed);
        let open = |name: &&str| Ok(self.files[*name].clone() as Arc<dyn Source>);
        names.iter().map(open).collect()
    }
}

#[test]
fn two_hundred_shards_are_opened_at_once_and_take_a_request_each() {
    let entry = *Registry::standard().get("safetensors").unwrap();
    let options = options_for(&entry.spec.writes[0]).shards(Some(Shards::Parts(200)));
    let files = write_to_memory(&archive(&entry).unwrap(), &entry, &options).unwrap();
    let index = files.keys().find(|name| name.ends_with(".index.json"));
    let index = index.unwrap().clone();
    let delay = Duration::from_millis(4);
    let files = files.into_iter();
    let files = files.map(|(name, bytes)| (name, Counting::late(&bytes.into(), delay)));
    let far = Far {
        files: files.collect(),
        asked: AtomicU64::new(0),
    };
    let source = far.files[&index].clone();
    let options = OpenOptions::new();
    let opened = options.read_beside(source, Some(&index), &far).unwrap();
    assert_eq!(opened.tensors().len() as u64, TENSORS);
    assert_eq!(far.asked.load(Relaxed), 1);
    let shards = far.files.iter().filter(|(name, _)| **name != index);
    for (name, shard) in shards {
        assert_eq!(shard.take().requests, 1, "{name}");
    }
}

/// Reads behind the beginning of any of some files that are under way at once, and the most that there were.
#[derive(Default)]
struct Gauge {
    now: AtomicU64,
    most: AtomicU64,
}

/// A file far away with one gauge for many.
struct Gauged(Bytes, Arc<Gauge>);

impl Source for Gauged {
    fn len(&self) -> u64 {
        Source::len(&self.0)
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        if range.start > 0 {
            let now = self.1.now.fetch_add(1, Relaxed) + 1;
            self.1.most.fetch_max(now, Relaxed);
            std::thread::sleep(Duration::from_millis(20));
            self.1.now.fetch_sub(1, Relaxed);
        }
        self.0.read(range)
    }

    fn concurrency(&self) -> Option<usize> {
        Some(32)
    }
}

/// Files beside an index.
struct Beside(BTreeMap<String, Bytes>, Arc<Gauge>);

impl Siblings for Beside {
    fn names(&self) -> Result<Option<Vec<String>>> {
        Ok(None)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Source>> {
        Ok(Arc::new(Gauged(self.0[name].clone(), self.1.clone())))
    }
}

#[test]
fn shards_with_headers_longer_than_what_comes_first_are_described_at_once() {
    let entry = *Registry::standard().get("safetensors").unwrap();
    let mut builder = Archive::builder();
    let long = "a-part-of-a-long-name.".repeat(20);
    for n in 0..4000u32 {
        let name = format!("{long}{n}");
        builder.tensor(&name, [2], vec![n; 2]).unwrap();
    }
    let options = options_for(&entry.spec.writes[0]).shards(Some(Shards::Parts(16)));
    let files = write_to_memory(&builder.finish(), &entry, &options).unwrap();
    let index = files.keys().find(|name| name.ends_with(".index.json"));
    let index = index.unwrap().clone();
    let files = files.into_iter().map(|(name, bytes)| (name, bytes.into()));
    let beside = Beside(files.collect(), Arc::default());
    assert!(beside.0.values().all(|bytes| bytes.len() > 100 << 10));
    let source = Arc::new(beside.0[&index].clone());
    let options = OpenOptions::new();
    let opened = options.read_beside(source, Some(&index), &beside).unwrap();
    assert_eq!(opened.tensors().len(), 4000);
    assert!(beside.1.most.load(Relaxed) > 8);
}

#[test]
fn conversions_keep_many_requests_under_way() {
    let entry = *Registry::standard().get("safetensors").unwrap();
    let archive = archive(&entry).unwrap();
    let options = options_for(&entry.spec.writes[0]);
    let files = write_to_memory(&archive, &entry, &options).unwrap();
    let file = InMemory::written(files, &file_name(&entry));
    let source = Counting::late(&file.bytes, Duration::from_millis(4));
    let opened = file.open_as(source.clone(), &OpenOptions::new()).unwrap();
    let conversion = Conversion::prepare(&opened, &target(), &ConvertOptions::new()).unwrap();
    let mut out = StreamOutput::new(std::io::sink());
    conversion.write_to("out.gguf", &mut out).unwrap();
    let most = source.most_at_once();
    assert!(most >= 4, "{most} at once");
}
