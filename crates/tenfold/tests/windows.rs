//! What is found in a file does not depend on how much of it is fetched at once, and opening reads no tensor data.

// A test may panic and print.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod support;

use std::ops::Range;
use std::sync::{Arc, Mutex};

use support::random::common_dtype;
use support::{InMemory, Kind, cases, file_name, options_for, profiles, write_to_memory};
use tenfold::format::Registry;
use tenfold::io::Source;
use tenfold::model::{Manifest, Payload, SourceId};
use tenfold::{Archive, ArchiveBuilder, Bytes, OpenOptions, Result};

/// A file far away: it is read in windows of a size, and remembers what was read.
struct Remote {
    bytes: Bytes,
    window: u64,
    reads: Mutex<Vec<Range<u64>>>,
}

impl Remote {
    fn new(bytes: &Bytes, window: u64) -> Arc<Self> {
        Arc::new(Self {
            bytes: bytes.clone(),
            window,
            reads: Mutex::default(),
        })
    }

    fn reads(&self) -> Vec<Range<u64>> {
        self.reads.lock().unwrap().clone()
    }
}

impl Source for Remote {
    fn len(&self) -> u64 {
        Source::len(&self.bytes)
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.reads.lock().unwrap().push(range.clone());
        self.bytes.read(range)
    }

    fn window(&self) -> u64 {
        self.window
    }

    /// Nothing is read in vain where windows are small.
    fn gap(&self) -> u64 {
        self.window / 64
    }
}

/// Everything that is known of a file after it was opened, or why it was not.
fn outcome(opened: &Result<Archive>) -> String {
    match opened {
        Ok(archive) => format!("{:#?}\n{:#?}", archive.manifest(), archive.findings()),
        Err(error) => format!("{error:?}"),
    }
}

#[test]
fn every_window_gives_the_same_description_or_the_same_refusal() {
    let mut compared = 0;
    for case in cases(Kind::Valid).into_iter().chain(cases(Kind::Reject)) {
        // What finds the chunks of a store names what it reads them from.
        let file = case.file().filter(|_| case.format != "zarr");
        let Some(file) = file else { continue };
        let whole = outcome(&file.open());
        for window in [1, 7, 64, 65_536] {
            let remote = Remote::new(&file.bytes, window);
            let found = outcome(&file.open_as(remote, &OpenOptions::new()));
            assert!(
                found == whole,
                "{}: with windows of {window} bytes {found}, in memory {whole}",
                case.title()
            );
            compared += 1;
        }
    }
    assert!(compared > 100, "only {compared} comparisons");
}

/// The bytes of the main file that only tensors have: no header, no index.
///
/// Compressed parts of sparse tensors do not count: where a file does not say how many entries they hold, they have to be
/// measured.
fn data_only(manifest: &Manifest) -> Vec<Range<u64>> {
    let main = |source: SourceId| source == SourceId::MAIN;
    let headers: Vec<_> = (manifest.regions.iter())
        .filter(|region| main(region.source))
        .map(|region| region.range.clone())
        .collect();
    let parts = manifest.tensors.iter().flat_map(|tensor| {
        let dense = tensor.layout.is_dense();
        tensor
            .parts
            .iter()
            .filter(move |part| dense || !matches!(part.payload, Payload::Encoded { .. }))
    });
    parts
        .filter_map(|part| part.payload.stored())
        .filter(|(source, _)| main(*source))
        .map(|(_, range)| range)
        .filter(|range| !headers.iter().any(|header| overlap(header, range)))
        .collect()
}

/// How many reads it takes to recognize a file: a few bytes each, at its beginning and at its end.
fn detection_reads(file: &InMemory) -> usize {
    let remote = Remote::new(&file.bytes, 1);
    let registry = Registry::standard();
    registry.detect(&*remote, Some(&file.name)).unwrap();
    let reads = remote.reads();
    let bytes: u64 = reads.iter().map(|read| read.end - read.start).sum();
    // Text has no magic: one of the formats that are text must recognize what it says.
    let text = std::str::from_utf8(&file.bytes).is_ok_and(|text| !text.contains('\0'));
    let bound = if text { 2048 } else { 1024 };
    assert!(
        bytes < bound,
        "{}: {bytes} bytes to recognize it: {reads:?}",
        file.name
    );
    reads.len()
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start.max(b.start) < a.end.min(b.end)
}

#[test]
fn opening_a_golden_file_byte_by_byte_reads_no_tensor_data() {
    for case in cases(Kind::Valid) {
        let Some(file) = case.file() else { continue };
        let remote = Remote::new(&file.bytes, 1);
        let archive = file
            .open_as(remote.clone(), &OpenOptions::new())
            .unwrap_or_else(|error| panic!("{}: {error}", case.title()));
        let data = data_only(archive.manifest());
        // HDF5 has the data of small tensors in the header of their object, which is read as a whole; MATLAB that of the
        // smallest ones within the tag in front, and headers in the compressed stream of the data.
        let is_in_header = |range: &Range<u64>, read: &Range<u64>| {
            let may_be = matches!(case.format, "hdf5" | "keras");
            may_be && read.start < range.start && range.end <= read.end || case.format == "mat"
        };
        for read in remote.reads().into_iter().skip(detection_reads(&file)) {
            let touched = data
                .iter()
                .find(|range| overlap(range, &read) && !is_in_header(range, &read));
            assert_eq!(touched, None, "{}: {read:?} was read", case.title());
        }
    }
}

#[test]
fn opening_a_large_file_reads_its_headers_and_at_most_a_window_beyond_each() {
    const LARGE: usize = 2 << 20;
    for (entry, profile) in profiles() {
        let dtype = common_dtype(&profile.can);
        let width = dtype.width().unwrap();
        let mut builder = ArchiveBuilder::new();
        let count = profile.can.max_tensors.min(3);
        for n in 0..count {
            let data = Bytes::from(vec![1; LARGE]);
            let shape = [(LARGE / width) as u64];
            builder.push(format!("t{n}"), dtype, &shape, data).unwrap();
        }
        let archive = builder.finish();
        let files = write_to_memory(&archive, &entry, &options_for(profile)).unwrap();
        let file = InMemory::written(files, &file_name(&entry));
        let what = format!("{} {}", entry.spec.id, profile.version);

        let remote = Remote::new(&file.bytes, 65_536);
        let opened = file
            .open_as(remote.clone(), &OpenOptions::new())
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(opened.tensors().len() as u64, count, "{what}");
        let regions = &opened.manifest().regions;
        // A store has its metadata in many members, and a dump is looked at everywhere: nothing tells what it is.
        let is_store = matches!(entry.spec.id, "zarr" | "raw");
        assert!(
            !regions.is_empty() || is_store,
            "{what}: no header is described"
        );
        let headers: u64 = regions.iter().map(|r| r.range.end - r.range.start).sum();
        let read: u64 = remote.reads().iter().map(|r| r.end - r.start).sum();
        // Detection looks at the beginning once more.
        let allowed = headers + (regions.len() as u64 + 1) * 65_536;
        assert!(
            read <= allowed || is_store,
            "{what}: {read} bytes were read, {allowed} are allowed: {:?}",
            remote.reads()
        );
        assert!(read < LARGE as u64 / 4, "{what}: {read} bytes were read");
    }
}
