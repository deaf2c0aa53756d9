//! How the data of a dataset is stored: its layout, its filters, its fill value.

use bytes::Bytes;

use super::block::Block;
use super::header::number;
use crate::error::{Error, Result};
use crate::io::Reader;
use crate::model::Filter;
use crate::prelude::*;

/// Where the data of a dataset is.
#[derive(Clone, Debug)]
pub(super) enum Storage {
    /// In the header itself: its bytes in the file.
    Compact(Range<u64>),
    /// In one piece; the size is not always said.
    Contiguous {
        address: u64,
        size: Option<u64>,
    },
    Chunked(ChunkStorage),
    /// Put together from other datasets.
    Virtual,
}

/// Where chunks are.
#[derive(Clone, Debug)]
pub(super) struct ChunkStorage {
    /// Elements of a chunk along every dimension.
    pub(super) dims: Vec<u64>,
    pub(super) element: u64,
    pub(super) index: IndexKind,
    pub(super) address: u64,
    /// Chunks that reach over the edge are stored without filters.
    pub(super) plain_edges: bool,
}

/// How chunks are found.
#[derive(Clone, Copy, Debug)]
pub(super) enum IndexKind {
    OldTree,
    /// One chunk: its size and the filters that were left out, where there are filters.
    Single(Option<(u64, u32)>),
    Implicit,
    Fixed,
    Extensible,
    Tree,
}

impl Storage {
    pub(super) fn read(block: &Block) -> Result<Self> {
        let at = block.at;
        block.parse(|r| match r.u8("version of a layout")? {
            1 | 2 => old(r, at),
            3 => new(r, at, 3),
            version @ (4 | 5) => new(r, at, version),
            version => {
                let message = format!("a layout of version {version}, 1 to 5 are known");
                Err(Error::unsupported("hdf5.layout", message))
            }
        })
    }
}

fn unknown_class(class: u8) -> Error {
    let message = format!("a layout of class {class}, which is not known");
    Error::unsupported("hdf5.layout", message)
}

fn old(r: &mut Reader<'_>, at: u64) -> Result<Storage> {
    let rank = r.u8("rank of a layout")?;
    let class = r.u8("class of a layout")?;
    r.skip(5, "reserved")?;
    let address = if class == 0 {
        0
    } else {
        r.u64("address of data")?
    };
    let dims = (0..rank).map(|_| r.u32("a dimension").map(u64::from));
    let dims: Vec<u64> = dims.collect::<Result<_>>()?;
    match class {
        0 => {
            let size = r.u32("size of compact data")?;
            let data = r.skip(size.into(), "compact data")?;
            Ok(Storage::Compact(at + data.start..at + data.end))
        }
        1 => Ok(Storage::Contiguous {
            address,
            size: None,
        }),
        2 => chunked(dims, IndexKind::OldTree, address, false),
        class => Err(unknown_class(class)),
    }
}

fn new(r: &mut Reader<'_>, at: u64, version: u8) -> Result<Storage> {
    match r.u8("class of a layout")? {
        0 => {
            let size = r.u16("size of compact data")?;
            let data = r.skip(size.into(), "compact data")?;
            Ok(Storage::Compact(at + data.start..at + data.end))
        }
        1 => {
            let address = r.u64("address of data")?;
            let size = Some(r.u64("size of data")?);
            Ok(Storage::Contiguous { address, size })
        }
        2 if version == 3 => {
            let rank = r.u8("rank of chunks")?;
            let address = r.u64("address of a B-tree")?;
            let dims = (0..rank).map(|_| r.u32("a dimension of a chunk").map(u64::from));
            let dims = dims.collect::<Result<_>>()?;
            chunked(dims, IndexKind::OldTree, address, false)
        }
        2 => {
            let flags = r.u8("flags of chunks")?;
            let rank = r.u8("rank of chunks")?;
            let width = r.u8("width of dimensions")?;
            let dims = (0..rank).map(|_| number(r, width.into(), "a dimension of a chunk"));
            let dims = dims.collect::<Result<_>>()?;
            let index = match r.u8("type of an index")? {
                1 if flags & 2 == 0 => IndexKind::Single(None),
                1 => {
                    let size = r.u64("size of a chunk")?;
                    IndexKind::Single(Some((size, r.u32("filters left out")?)))
                }
                2 => IndexKind::Implicit,
                3 => r.skip(1, "bits of a page").map(|_| IndexKind::Fixed)?,
                4 => r
                    .skip(5, "sizes of blocks")
                    .map(|_| IndexKind::Extensible)?,
                5 => r.skip(6, "sizes of nodes").map(|_| IndexKind::Tree)?,
                index => {
                    let message = format!("an index of chunks of type {index}, 1 to 5 are known");
                    return Err(Error::unsupported("hdf5.layout", message));
                }
            };
            chunked(dims, index, r.u64("address of an index")?, flags & 1 != 0)
        }
        3 if version > 3 => Ok(Storage::Virtual),
        class => Err(unknown_class(class)),
    }
}

/// The last dimension is the size of an element.
fn chunked(
    mut dims: Vec<u64>,
    index: IndexKind,
    address: u64,
    plain_edges: bool,
) -> Result<Storage> {
    let element = dims.pop().unwrap_or(0);
    if element == 0 || dims.contains(&0) {
        let message = format!("chunks of {dims:?} elements of {element} bytes");
        return Err(Error::malformed("hdf5.layout", message));
    }
    Ok(Storage::Chunked(ChunkStorage {
        dims,
        element,
        index,
        address,
        plain_edges,
    }))
}

/// Filters that are known and not read.
const NAMES: &[(u16, &str)] = &[
    (4, "szip"),
    (5, "n-bit"),
    (6, "scale-offset"),
    (305, "LZO"),
    (307, "bzip2"),
    (32008, "bitshuffle"),
    (32013, "zfp"),
    (32017, "sz"),
    (32019, "jpeg"),
    (32026, "blosc2"),
];

/// The filters of chunks, in the order in which they were applied.
pub(super) fn filters(block: &Block, element: u64) -> Result<Vec<Filter>> {
    block.parse(|r| {
        let version = r.u8("version of filters")?;
        let count = r.u8("number of filters")?;
        match version {
            1 => r.skip(6, "reserved").map(drop)?,
            2 => {}
            _ => {
                let message = format!("filters of version {version}, 1 and 2 are known");
                return Err(Error::unsupported("hdf5.filter", message));
            }
        }
        if count > 32 {
            let message = format!("{count} filters, at most 32 are allowed");
            return Err(Error::malformed("hdf5.filter", message));
        }
        (0..count).map(|_| filter(r, version, element)).collect()
    })
}

fn filter(r: &mut Reader<'_>, version: u8, element: u64) -> Result<Filter> {
    let id = r.u16("number of a filter")?;
    let has_name = version == 1 || id >= 256;
    let name_len = if has_name {
        r.u16("length of a name")?
    } else {
        0
    };
    let _flags = r.u16("flags of a filter")?;
    let count = r.u16("number of values")?;
    let name_len = u64::from(name_len);
    let padded = if version == 1 {
        name_len.next_multiple_of(8)
    } else {
        name_len
    };
    let name = r.take(padded, "name of a filter")?;
    let values = (0..count).map(|_| r.u32("a value of a filter"));
    let values: Vec<u32> = values.collect::<Result<_>>()?;
    if version == 1 && count % 2 == 1 {
        r.skip(4, "padding of a filter")?;
    }
    Ok(match id {
        1 => Filter::Deflate {
            level: values
                .first()
                .and_then(|level| i32::try_from(*level).ok())
                .unwrap_or(0),
        },
        2 => Filter::Shuffle {
            width: match values.first() {
                Some(width) => *width,
                None => u32::try_from(element).unwrap_or(1),
            },
        },
        3 => Filter::Fletcher32,
        32000 => Filter::Lzf,
        32001 => Filter::Blosc,
        32004 => Filter::Lz4Blocks,
        32015 => Filter::Zstd {
            level: values
                .first()
                .and_then(|level| i32::try_from(*level).ok())
                .unwrap_or(3),
        },
        id => {
            let own = name.split(|byte| *byte == 0).next().unwrap_or_default();
            let own = String::from_utf8_lossy(own).into_owned();
            let known = NAMES.iter().find(|(known, _)| *known == id);
            let name = known.map_or(own, |(_, name)| (*name).to_owned());
            let message = format!("chunks went through filter {id} ({name}), which is not read");
            return Err(Error::unsupported("hdf5.filter", message));
        }
    })
}

/// An element of what is not stored; empty for zeros.
pub(super) fn fill(block: &Block, is_old: bool) -> Result<Bytes> {
    block.parse(|r| {
        if !is_old {
            match r.u8("version of a fill value")? {
                version @ (1 | 2) => {
                    r.skip(2, "times of a fill value")?;
                    if r.u8("whether a fill value is defined")? == 0 && version == 2 {
                        return Ok(Bytes::new());
                    }
                }
                3 => {
                    if r.u8("flags of a fill value")? & 0x20 == 0 {
                        return Ok(Bytes::new());
                    }
                }
                version => {
                    let message = format!("a fill value of version {version}, 1 to 3 are known");
                    return Err(Error::unsupported("hdf5.fill", message));
                }
            }
        }
        let len = r.u32("size of a fill value")?;
        // Not defined.
        if len == u32::MAX {
            return Ok(Bytes::new());
        }
        r.take(len.into(), "a fill value")
    })
}
