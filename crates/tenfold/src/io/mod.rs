//! Where bytes come from and where they go.

#[cfg(feature = "std")]
mod atomic;
#[cfg(feature = "std")]
mod cached;
#[cfg(feature = "std")]
pub(crate) mod fault;
#[cfg(feature = "std")]
mod file;
#[cfg(feature = "std")]
mod in_place;
mod limits;
mod memory;
mod merged;
#[cfg(feature = "mmap")]
mod mmap;
#[cfg(feature = "mmap")]
mod pages;
mod part;
mod patched;
mod produced;
mod reader;
#[cfg(feature = "remote")]
mod remote;
mod spool;
mod stamp;
#[cfg(feature = "std")]
mod stream;
mod tree;

use core::fmt;
#[cfg(feature = "std")]
use std::fs::File;

use bytes::Bytes;

#[cfg(feature = "std")]
pub use atomic::AtomicOutput;
#[cfg(feature = "std")]
pub use cached::Cached;
#[cfg(feature = "std")]
pub(crate) use file::Access;
#[cfg(feature = "remote")]
pub(crate) use file::check_plain;
#[cfg(feature = "std")]
pub use file::{DirectorySiblings, FileSource};
#[cfg(feature = "std")]
pub(crate) use file::{open_source, write_all_at};
#[cfg(feature = "std")]
pub(crate) use in_place::InPlace;
pub use limits::Limits;
pub use memory::MemoryOutput;
pub use merged::Merged;
#[cfg(feature = "mmap")]
pub use mmap::{MappedFile, map_file};
#[cfg(feature = "mmap")]
pub(crate) use mmap::{Unchanged, map_unchanged};
#[cfg(feature = "mmap")]
pub(crate) use pages::zeroed;
pub(crate) use part::Part;
pub use patched::Patch;
#[cfg(feature = "std")]
pub(crate) use patched::Patched;
pub(crate) use produced::Produced;
pub use reader::Reader;
#[cfg(feature = "remote")]
pub(crate) use remote::Opened;
#[cfg(feature = "remote")]
pub use remote::{
    Location, Remote, RemoteOutput, RemoteSiblings, RemoteSource, RemoteUrl, RequestMade, Traffic,
};
pub(crate) use spool::Spool;
pub use stamp::Stamp;
#[cfg(feature = "std")]
pub use stream::StreamOutput;
#[cfg(feature = "std")]
pub(crate) use stream::spool;
pub use tree::Tree;

use crate::error::{Error, Result};
use crate::prelude::*;

/// Bytes that can be read at any place, by many threads at once.
///
/// A tensor that exists nowhere yet (generated, on a device) can be a source too.
///
/// # What is asked, and in which order
///
/// - A file is described by its first 64 KiB, and by what follows in stretches that grow, twice as long each, or, for formats
///   that have an index there, by its end. Headers that are spread over a file are asked for as [ranges](Self::read_ranges).
/// - A tensor that is written, hashed or read whole is asked for in pieces of a few MiB at most, each once in a pass, which
///   hold whole elements (whole blocks of quantized types). Several threads work on a tensor, each going forward through
///   stretches of it that may be tens of MiB apart. A conversion makes a second pass only where it hashes or compares.
/// - Small neighbours are fetched together with what lies between them: what is asked for may begin before a tensor and
///   end after it, but never lies outside the source.
/// - Slices, and tensors whose rows and columns are exchanged, ask for many short stretches, in ascending order for a
///   batch of elements at a time; those with less than a [`gap`](Self::gap) between them are asked for together.
///
/// A source that answers late, because each read waits for a network, says by [`concurrency`](Self::concurrency) how many
/// reads it answers at once. Where nobody asks for another number, as many threads read it then, in pieces of 1 MiB, and
/// stretches that are known beforehand are asked for by [`read_ranges`](Self::read_ranges).
///
/// Positions are aligned no further than that: if a device wants more, the source rounds. A source that [is in
/// order](Self::is_in_order) is read from its first byte on, each piece after the one before.
pub trait Source: Send + Sync {
    /// The number of bytes.
    fn len(&self) -> u64;

    /// Whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Exactly the bytes of a range. Shares memory where the bytes already are in memory, copies elsewhere.
    ///
    /// The range must lie inside the source.
    fn read(&self, range: Range<u64>) -> Result<Bytes>;

    /// Fills `buffer` with the bytes from `at` on.
    fn read_into(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        let range = at..at.saturating_add(buffer.len() as u64);
        let bytes = self.read(range.clone())?;
        if bytes.len() != buffer.len() {
            return Err(wrong_length(&bytes, range));
        }
        buffer.copy_from_slice(&bytes);
        Ok(())
    }

    /// The bytes of several ranges, in the order of the ranges.
    ///
    /// Those with less than a [`gap`](Self::gap) between them are read together. A source that answers late asks for all
    /// of them at once; elsewhere they are read one after the other.
    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if self.is_memory() {
            return ranges
                .iter()
                .map(|range| self.read(range.clone()))
                .collect();
        }
        let merged = Merged::new(ranges, self.gap());
        let read = merged.ranges().iter().map(|range| self.read(range.clone()));
        merged.split(&read.collect::<Result<Vec<_>>>()?)
    }

    /// How many bytes between two ranges cost less than another read.
    fn gap(&self) -> u64 {
        1 << 10
    }

    /// How many reads it answers sooner at once than one after the other; `None` where each takes a processor, so that
    /// one per processor is best. Waiting for a network takes none.
    fn concurrency(&self) -> Option<usize> {
        None
    }

    /// How many bytes the parsing of headers should fetch at once.
    fn window(&self) -> u64 {
        64 << 10
    }

    /// Whether [`read`](Self::read) shares memory instead of copying.
    fn is_memory(&self) -> bool {
        false
    }

    /// Whether its bytes are cheap only in order, from the first on, as those of a stream are. It is then read in order
    /// where possible; work that needs other places holds all of it in memory.
    fn is_in_order(&self) -> bool {
        false
    }

    /// What shows that it is unchanged, if its system or its server says so; asked again, it gives the state of now.
    fn stamp(&self) -> Option<Stamp> {
        None
    }

    /// The file behind it, if there is one: lets the kernel move bytes.
    #[cfg(feature = "std")]
    fn as_file(&self) -> Option<&File> {
        None
    }
}

impl Source for Bytes {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        check_range(Source::len(self), &range)?;
        // Inside a slice in memory: both ends fit usize.
        #[allow(clippy::cast_possible_truncation)]
        Ok(self.slice(range.start as usize..range.end as usize))
    }

    fn is_memory(&self) -> bool {
        true
    }
}

/// What points to a source is one.
macro_rules! pointer {
    ($pointer:ty) => {
        impl<S: Source + ?Sized> Source for $pointer {
            fn len(&self) -> u64 {
                (**self).len()
            }

            fn read(&self, range: Range<u64>) -> Result<Bytes> {
                (**self).read(range)
            }

            fn read_into(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
                (**self).read_into(at, buffer)
            }

            fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
                (**self).read_ranges(ranges)
            }

            fn gap(&self) -> u64 {
                (**self).gap()
            }

            fn concurrency(&self) -> Option<usize> {
                (**self).concurrency()
            }

            fn window(&self) -> u64 {
                (**self).window()
            }

            fn is_memory(&self) -> bool {
                (**self).is_memory()
            }

            fn is_in_order(&self) -> bool {
                (**self).is_in_order()
            }

            fn stamp(&self) -> Option<Stamp> {
                (**self).stamp()
            }

            #[cfg(feature = "std")]
            fn as_file(&self) -> Option<&File> {
                (**self).as_file()
            }
        }
    };
}

pointer!(&S);
pointer!(Arc<S>);

impl fmt::Debug for dyn Source + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({} bytes)", self.len())
    }
}

impl fmt::Debug for dyn Siblings + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Siblings")
    }
}

/// Refuses a range that is not inside a source of `len` bytes.
#[inline]
fn check_range(len: u64, range: &Range<u64>) -> Result<()> {
    if range.start > range.end || range.end > len {
        return Err(outside(len, range));
    }
    Ok(())
}

#[cold]
fn outside(len: u64, range: &Range<u64>) -> Error {
    let Range { start, end } = range;
    let message = format!("bytes {start}..{end} were asked for, but there are only {len}");
    Error::mismatch("range", message).at(range.clone())
}

/// The bytes of a range, as many as it has: sources are written by users of the library too.
pub(crate) fn read_exactly(source: &dyn Source, range: Range<u64>) -> Result<Bytes> {
    let bytes = source.read(range.clone())?;
    if bytes.len() as u64 == range.end.saturating_sub(range.start) {
        Ok(bytes)
    } else {
        Err(wrong_length(&bytes, range))
    }
}

/// The bytes of several ranges, as many as each has.
pub(crate) fn read_ranges_exactly(
    source: &dyn Source,
    ranges: &[Range<u64>],
) -> Result<Vec<Bytes>> {
    let read = source.read_ranges(ranges)?;
    let mut answers = read.iter();
    for range in ranges {
        let bytes = answers.next().map_or(&[][..], |bytes| bytes);
        if bytes.len() as u64 != range.end.saturating_sub(range.start) {
            return Err(wrong_length(bytes, range.clone()));
        }
    }
    Ok(read)
}

/// A source that gave another number of bytes than it was asked for.
fn wrong_length(bytes: &[u8], range: Range<u64>) -> Error {
    let (got, wanted) = (bytes.len(), range.end.saturating_sub(range.start));
    let message = format!("{wanted} bytes were asked for, the source gave {got}");
    Error::mismatch("changed", message).at(range)
}

/// A length as a size in memory: refused where this machine cannot hold as much in one piece.
pub(crate) fn as_size(len: u64) -> Result<usize> {
    // Nothing in memory is longer than the greatest `isize`: with 32 bits that is 2 GiB.
    match isize::try_from(len).and_then(usize::try_from) {
        Ok(size) => Ok(size),
        Err(cause) => Err(too_long(len).because(cause)),
    }
}

/// Zeros in memory, or an error where there is no room for them.
pub(crate) fn zeros(len: u64) -> Result<Vec<u8>> {
    let size = as_size(len)?;
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(size)
        .map_err(|cause| too_long(len).because(cause))?;
    bytes.resize(size, 0);
    Ok(bytes)
}

fn too_long(len: u64) -> Error {
    let message = format!("{len} bytes do not fit into this machine's memory");
    Error::limit("memory", message)
}

/// The other files beside the one that was opened. Never reaches out of the directory.
pub trait Siblings: Send + Sync {
    /// The names of the files beside it, in no order that means anything; `None` where they cannot be listed, as on a
    /// plain web server.
    fn names(&self) -> Result<Option<Vec<String>>>;

    /// Opens a file beside it.
    fn open(&self, name: &str) -> Result<Arc<dyn Source>>;

    /// Opens a file in a directory below, by the plain names on the way to it; one name is that of a file beside it.
    /// Links do not lead out of the directory. By default, only files beside it.
    fn open_below(&self, path: &[&str]) -> Result<Arc<dyn Source>> {
        match path {
            [name] => self.open(name),
            _ => {
                let message = format!("{:?} is in another directory", path.join("/"));
                Err(Error::unsupported("sibling", message))
            }
        }
    }

    /// Opens several files beside it; the results are in the order of the names. One after the other, where nothing is
    /// gained by asking for all at once.
    fn open_all(&self, names: &[&str]) -> Vec<Result<Arc<dyn Source>>> {
        names.iter().map(|name| self.open(name)).collect()
    }

    /// Everything beside it and in the directories below, hidden files too; `None` where that cannot be listed. Links to
    /// directories are not followed.
    fn tree(&self) -> Result<Option<Tree>> {
        Ok(None)
    }

    /// Bytes of a file that [can be opened](Self::open_below) so.
    fn len_below(&self, path: &[&str]) -> Result<u64> {
        Ok(self.open_below(path)?.len())
    }

    /// [Opens](Self::open_below) several files by their keys in the [tree](Self::tree), as [`open_all`](Self::open_all)
    /// does those beside it.
    fn open_keys(&self, keys: &[&str]) -> Vec<Result<Arc<dyn Source>>> {
        let open = |key: &&str| self.open_below(&key.split('/').collect::<Vec<_>>());
        keys.iter().map(open).collect()
    }

    /// What the directory is called, where that is known.
    fn directory_name(&self) -> Option<String> {
        None
    }

    /// The same files, for whoever looks at them later: what lies beside an archive is asked for when it is needed. `None`
    /// where they are there only while a file is opened.
    fn shared(&self) -> Option<Arc<dyn Siblings>> {
        None
    }
}

/// Where the bytes of one file go, in order.
pub trait Sink: Send {
    /// Writes all of `bytes`.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;

    /// Called once, after the last byte: sends on what is buffered, and reports errors that would be lost when the sink
    /// is dropped.
    fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }

    /// The file behind it, if there is one: lets several threads and the kernel write at any place.
    ///
    /// Whoever writes to the file directly does not use [`write`](Self::write).
    #[cfg(feature = "std")]
    fn as_file(&self) -> Option<&File> {
        None
    }
}

/// Where a conversion puts its files. Nothing is visible before [`commit`](Self::commit), and nothing is left without it.
pub trait Output {
    /// The name that it was made for, if there is one, with links followed: that of a file that is written alone, and
    /// what the names of several are made from.
    fn name(&self) -> Option<&str> {
        None
    }

    /// Says before the first file that a directory is written, whose files are named by their paths: `a/0.0`. The name
    /// that it was made for is that of the directory.
    fn begin_tree(&mut self) -> Result<()> {
        Ok(())
    }

    /// What was written, to be read before it is committed, where that can be looked at without all of it being open.
    fn written_tree(&self) -> Option<Arc<dyn Siblings>> {
        None
    }

    /// Begins a file; `len` is its length where that is known.
    fn create(&mut self, name: &str, len: Option<u64>) -> Result<Box<dyn Sink + '_>>;

    /// What was written under `name`, to be read before it is committed; `None` where that cannot be read back.
    fn written(&self, name: &str) -> Result<Option<Arc<dyn Source>>>;

    /// Makes the files visible, all of them or none. Nothing more is written then.
    fn commit(&mut self) -> Result<()>;

    /// What was written under `name`, to be read since it was committed; `None` where that cannot be read back. Only asked
    /// where nothing could be read [before](Self::written).
    fn committed(&self, name: &str) -> Result<Option<Arc<dyn Source>>> {
        let _ = name;
        Ok(None)
    }

    /// Removes what was committed, because it is not what should have been written. What was replaced stays replaced.
    fn take_back(&mut self) {}
}
