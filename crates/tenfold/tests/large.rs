//! Tensors of more than 4 GiB, on machines of 32 bits too: streamed or refused, never cut.

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
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use support::random::common_dtype;
use support::{file_name, first_choices, is_impossible, options_for};
use tenfold::format::{Checksums, Compression, Form};
use tenfold::io::{Output, Siblings, Sink, Source};
use tenfold::model::{DType, Slice};
use tenfold::ops::Conversion;
use tenfold::{Archive, ArchiveBuilder, Bytes, Error, ErrorKind, OpenOptions, Result};

/// More than 32 bits can say, by a little.
const LARGE: u64 = (4 << 30) + (1 << 20);
/// What can be asked for at once: nobody needs more than a few pieces.
const AT_ONCE: u64 = 64 << 20;

const PAGE: u64 = ZEROS.len() as u64;
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Zeros, with pages of anything else in between.
#[derive(Clone, Default)]
struct Pages {
    len: u64,
    pages: BTreeMap<u64, Vec<u8>>,
}

impl Pages {
    fn append(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let at = usize::try_from(self.len % PAGE).unwrap();
            let (now, later) = bytes.split_at(bytes.len().min(ZEROS.len() - at));
            if now != &ZEROS[..now.len()] {
                let page = self.pages.entry(self.len / PAGE);
                let page = page.or_insert_with(|| ZEROS.to_vec());
                page[at..at + now.len()].copy_from_slice(now);
            }
            self.len += now.len() as u64;
            bytes = later;
        }
    }

    /// Zeros of a length, with some bytes in places.
    fn with(len: u64, marks: &[(u64, &[u8])]) -> Self {
        let mut all = Self::default();
        for (at, mark) in marks {
            all.len = *at;
            all.append(mark);
        }
        all.len = len;
        all
    }
}

impl Source for Pages {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        assert!(range.start <= range.end && range.end <= self.len);
        assert!(range.end - range.start <= AT_ONCE, "{range:?} at once");
        let mut bytes = vec![0; usize::try_from(range.end - range.start).unwrap()];
        self.read_into(range.start, &mut bytes)?;
        Ok(bytes.into())
    }

    fn read_into(&self, mut at: u64, mut buffer: &mut [u8]) -> Result<()> {
        assert!(buffer.len() as u64 <= AT_ONCE, "{} at once", buffer.len());
        while !buffer.is_empty() {
            let in_page = usize::try_from(at % PAGE).unwrap();
            let n = buffer.len().min(ZEROS.len() - in_page);
            let page = self.pages.get(&(at / PAGE)).map_or(&ZEROS[..], |page| page);
            let (now, later) = buffer.split_at_mut(n);
            now.copy_from_slice(&page[in_page..in_page + n]);
            at += n as u64;
            buffer = later;
        }
        Ok(())
    }
}

/// Files that are written and read without being anywhere.
#[derive(Clone, Default)]
struct Files(BTreeMap<String, Pages>);

struct Appending<'a>(&'a mut Pages);

impl Sink for Appending<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.append(bytes);
        Ok(())
    }
}

impl Output for Files {
    fn create(&mut self, name: &str, _len: Option<u64>) -> Result<Box<dyn Sink + '_>> {
        Ok(Box::new(Appending(
            self.0.entry(name.to_owned()).or_default(),
        )))
    }

    fn written(&self, _name: &str) -> Result<Option<Arc<dyn Source>>> {
        Ok(None)
    }

    fn commit(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Siblings for Files {
    fn names(&self) -> Result<Option<Vec<String>>> {
        Ok(Some(self.0.keys().cloned().collect()))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Source>> {
        match self.0.get(name) {
            Some(file) => Ok(Arc::new(file.clone())),
            None => Err(Error::new(ErrorKind::NotFound, "sibling", "no such file")),
        }
    }
}

/// An element that is not zero, and the same in both byte orders.
fn mark(dtype: DType) -> Vec<u8> {
    vec![0x3f; dtype.width().unwrap()]
}

/// A tensor of zeros with a mark at its beginning, behind 4 GiB and at its end.
fn tensor_of(dtype: DType, shape: &[u64]) -> Archive {
    let mark = mark(dtype);
    let behind = LARGE - PAGE;
    let last = LARGE - mark.len() as u64;
    let data = Pages::with(LARGE, &[(0, &mark), (behind, &mark), (last, &mark)]);
    let mut builder = ArchiveBuilder::new();
    builder.push("large", dtype, shape, data).unwrap();
    builder.finish()
}

/// What was written holds the marks where they were, and nothing else.
fn check(archive: &Archive, dtype: DType) {
    let mark = mark(dtype);
    let tensor = archive.tensors().next().unwrap();
    let shape = &tensor.info().shape;
    let element = |n: u64| {
        let mut index = vec![0; shape.len()];
        let mut left = n;
        for (index, dim) in index.iter_mut().zip(shape).rev() {
            (*index, left) = (left % dim, left / dim);
        }
        tensor.element(&index).unwrap()
    };
    let width = mark.len() as u64;
    let elements = LARGE / width;
    for n in [0, (LARGE - PAGE) / width, elements - 1] {
        assert_eq!(element(n), mark, "element {n}");
    }
    // Where the marks would be if 32 bits had been cut off.
    for n in [1, ((LARGE - PAGE) % (1 << 32)) / width, elements - 2] {
        assert_eq!(element(n), vec![0; mark.len()], "element {n}");
    }
    let ends = vec![Slice::range(-1, i64::MAX); shape.len()];
    assert_eq!(tensor.slice(&ends).unwrap().to_bytes().unwrap(), mark);

    let refused = tensor.canonical().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Limit, "{refused}");
}

#[test]
#[cfg_attr(
    not(target_pointer_width = "32"),
    ignore = "takes a minute, and is about machines of 32 bits"
)]
fn every_format_streams_a_tensor_that_no_memory_holds() {
    let mut written = 0;
    for (entry, profile) in first_choices() {
        let dtype = common_dtype(&profile.can);
        let elements = LARGE / dtype.width().unwrap() as u64;
        let options = options_for(profile)
            .compression(|_| Compression::Raw)
            .checksums(Checksums::None);
        let what = format!("{} {}", entry.spec.id, profile.version);
        let shapes = [vec![elements], vec![elements / 4096, 4096]];
        let fits = |shape: &Vec<u64>| {
            let archive = tensor_of(dtype, shape);
            (!is_impossible(&archive, &entry, &options)).then_some(archive)
        };
        let Some(archive) = shapes.iter().find_map(fits) else {
            println!("{what} cannot hold it");
            continue;
        };
        let mut files = Files::default();
        let name = file_name(&entry);
        (Conversion::prepare(&archive, &entry, &options).unwrap())
            .write_to(&name, &mut files)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let opened = OpenOptions::new()
            .read_beside(files.open(&name).unwrap(), Some(&name), &files)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        println!("{what}: {dtype}");
        check(&opened, dtype);
        written += 1;
    }
    assert!(written > 5, "only {written} formats");
}

#[test]
fn a_tensor_that_no_memory_holds_is_given_in_pieces() {
    let archive = tensor_of(DType::F64, &[LARGE / 8]);
    let tensor = archive.tensors().next().unwrap();
    let (mut len, mut others) = (0, 0);
    let put = &mut |piece: &[u8]| {
        len += piece.len() as u64;
        others += (piece.chunks(ZEROS.len()))
            .filter(|part| *part != &ZEROS[..part.len()])
            .count();
        Ok(())
    };
    tensor.stream(&Form::canonical(DType::F64), put).unwrap();
    assert_eq!(len, LARGE);
    assert!((1..=4).contains(&others), "{others} pages are not zero");
}

/// A file with holes: it takes no room.
#[test]
fn a_file_that_no_memory_holds_is_opened_and_read_in_parts() {
    // The first would fit 32 bits, but not a piece of memory.
    for len in [3 << 30, LARGE] {
        let header =
            format!("{{\"t\":{{\"dtype\":\"U8\",\"shape\":[{len}],\"data_offsets\":[0,{len}]}}}}");
        let header = format!("{header:<128}");
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&128u64.to_le_bytes()).unwrap();
        file.write_all(header.as_bytes()).unwrap();
        file.as_file().set_len(136 + len - 1).unwrap();
        let cut = Archive::open(file.path()).map(drop).unwrap_err();
        assert_eq!(cut.kind(), ErrorKind::Malformed, "{cut}");
        file.as_file().set_len(136 + len).unwrap();

        let archive = Archive::open(file.path()).unwrap();
        let tensor = archive.tensor("t").unwrap();
        assert_eq!(tensor.element(&[len - 1]).unwrap(), [0].as_slice());
        if cfg!(target_pointer_width = "32") {
            for whole in [tensor.stored(), tensor.part(0), tensor.canonical()] {
                let refused = whole.unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Limit, "{refused}");
                assert!(refused.rule().ends_with("memory"), "{refused}");
            }
        } else {
            assert_eq!(tensor.stored().unwrap().len() as u64, len);
        }
    }
}
