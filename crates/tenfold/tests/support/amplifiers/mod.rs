//! Files that are made to take much more memory than their bytes: every list-like thing of every format, full of the
//! smallest entries that it can have. Of any length.

// Lengths are chosen to fit the few bytes that they are written in.
#![allow(clippy::cast_possible_truncation)]

pub mod cbor;
pub mod dcp;
pub mod flax;
pub mod gguf;
pub mod hdf5;
pub mod json;
pub mod mag;
pub mod mat;
pub mod netcdf;
pub mod numpy;
pub mod onnx;
pub mod paddle;
pub mod primitiv;
pub mod pytorch;
pub mod tens;
pub mod tf_checkpoint;
pub mod tflite;
pub mod zarr;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tenfold::documents::ShownMetadata;
use tenfold::io::Source;
use tenfold::model::Metadata;
use tenfold::{Archive, Bytes, Error, OpenOptions, Result};

use super::memory::on_this_thread;

/// A kind of file.
pub struct Amplifier {
    /// What it is full of.
    pub what: String,
    /// What the file is called.
    pub name: &'static str,
    /// Whether it is a file that opens.
    pub opens: bool,
    /// Bytes that are known to be taken for it, however short it is, because so many of its entries are read.
    pub room: usize,
    make: Box<dyn Fn(usize) -> Vec<u8>>,
}

impl Amplifier {
    /// A file of about `len` bytes.
    pub fn make(&self, len: usize) -> Bytes {
        (self.make)(len).into()
    }
}

/// Opens a file and does all that is done with metadata: what it took at most, how many bytes were read for it, and
/// whether it opened.
pub fn measure(bytes: &Bytes, name: &str) -> (usize, usize, Result<()>) {
    let file = Arc::new(Read {
        bytes: bytes.clone(),
        read: AtomicU64::new(0),
    });
    let (done, used) = on_this_thread(|| {
        let options = OpenOptions::new().checksums(false);
        let archive = options.read(file.clone(), Some(name))?;
        use_metadata(&archive)
    });
    let read = file.read.load(Relaxed).min(bytes.len() as u64);
    (used.peak, usize::try_from(read).unwrap_or(0), done)
}

/// Loads metadata, prints it, and looks at it again.
pub fn use_metadata(archive: &Archive) -> Result<()> {
    let metadata = archive.load_metadata()?;
    let print = |metadata: &Metadata| {
        let document = ShownMetadata::new(metadata, true);
        let printed = serde_json::to_writer(std::io::sink(), &document);
        printed.map_err(|cause| Error::argument(cause.to_string()))
    };
    print(&metadata)?;
    for tensor in archive.tensors() {
        print(&tensor.info().metadata)?;
    }
    Ok(())
}

/// A file that is not in memory, and counts what is read of it.
#[derive(Debug)]
struct Read {
    bytes: Bytes,
    read: AtomicU64,
}

impl Source for Read {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, range: std::ops::Range<u64>) -> Result<Bytes> {
        let bytes = Source::read(&self.bytes, range)?;
        self.read.fetch_add(bytes.len() as u64, Relaxed);
        Ok(Bytes::copy_from_slice(&bytes))
    }
}

/// All of them.
pub fn all() -> Vec<Amplifier> {
    let mut all = Vec::new();
    cbor::fill(&mut all);
    json::fill(&mut all);
    gguf::fill(&mut all);
    primitiv::fill(&mut all);
    numpy::fill(&mut all);
    tens::fill(&mut all);
    mag::fill(&mut all);
    onnx::fill(&mut all);
    pytorch::fill(&mut all);
    hdf5::fill(&mut all);
    mat::fill(&mut all);
    netcdf::fill(&mut all);
    flax::fill(&mut all);
    paddle::fill(&mut all);
    tflite::fill(&mut all);
    tf_checkpoint::fill(&mut all);
    zarr::fill(&mut all);
    dcp::fill(&mut all);
    all
}

fn add(
    all: &mut Vec<Amplifier>,
    what: impl Into<String>,
    name: &'static str,
    make: impl Fn(usize) -> Vec<u8> + 'static,
) {
    all.push(Amplifier {
        what: what.into(),
        name,
        opens: true,
        room: 0,
        make: Box::new(make),
    });
}

/// The same for a file that is refused.
fn add_refused(
    all: &mut Vec<Amplifier>,
    what: impl Into<String>,
    name: &'static str,
    make: impl Fn(usize) -> Vec<u8> + 'static,
) {
    add(all, what, name, make);
    if let Some(last) = all.last_mut() {
        last.opens = false;
    }
}

/// The `n`th of many short keys, which rise by their lengths and then by their bytes.
fn key(n: usize) -> String {
    // Without quotes, backslashes and what a path could not have.
    const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let base = DIGITS.len();
    let (width, mut rest) = if n < base.pow(3) {
        (3, n)
    } else {
        (4, n - base.pow(3))
    };
    let mut text = vec![b'0'; width];
    for digit in text.iter_mut().rev() {
        *digit = DIGITS[rest % base];
        rest /= base;
    }
    String::from_utf8(text).unwrap()
}

/// `item` as often as it fits.
fn repeated(item: &[u8], len: usize) -> (usize, Vec<u8>) {
    let count = (len / item.len()).max(1);
    (count, item.repeat(count))
}
