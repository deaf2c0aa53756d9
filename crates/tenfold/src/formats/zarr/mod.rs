//! Zarr: arrays in a tree of groups, each chunk of them a file of its own, or a member of a zip archive.
//!
//! | key                        | what                                                                                    |
//! |----------------------------|-----------------------------------------------------------------------------------------|
//! | `zarr.json`                | version 3: a group or an array, with its attributes, as JSON                             |
//! | `.zgroup`, `.zarray`       | version 2: a group, an array                                                             |
//! | `.zattrs`                  | version 2: attributes of either                                                          |
//! | `c/0/1`                    | version 3: a chunk, by its number along every dimension; `c` where there is none         |
//! | `0.1`, `0/1`               | version 2: the same; `0` where there is none                                             |
//! | `.zmetadata`               | version 2: a copy of all metadata, for stores that cannot be listed                      |
//!
//! A chunk that is not there is all fill value. A tensor's name is the path of its array; one at the root is called like the
//! directory. Attributes are metadata: those of the root the file's, those of another group a map under its path with a
//! slash in front. Directories without metadata of their own whose children are arrays are read too, as Orbax and tensorstore
//! write them. Arrays of text, times, records and objects are no tensors. The rules are listed in `docs/formats/zarr.md`.
//! Source: the Zarr specifications 2 and 3, and the behaviour of zarr-python 2.18 and 3.1 and tensorstore 0.1.

#[cfg(feature = "zarr")]
mod array;
#[cfg(feature = "zarr")]
mod codec;
#[cfg(feature = "zarr")]
mod fill;
#[cfg(feature = "zarr")]
mod json;
mod limits;
#[cfg(feature = "zarr")]
mod locate;
#[cfg(feature = "zarr")]
mod nodes;
#[cfg(feature = "zarr")]
mod packed;
#[cfg(feature = "zarr")]
mod pipeline;
#[cfg(feature = "zarr")]
mod store;
mod types;
#[cfg(feature = "zarr")]
mod v2;
#[cfg(feature = "zarr")]
mod v3;
#[cfg(all(feature = "zarr", feature = "write"))]
mod write;
#[cfg(all(feature = "zarr", feature = "write"))]
mod zip;

#[cfg(feature = "zarr")]
use codec::Zarr;

use crate::format::{Capabilities, Entry, OptionSpec, Profile, Spec, written};

/// The row of the table of formats.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "zarr")]
    codec: Some(&Zarr),
    #[cfg(not(feature = "zarr"))]
    codec: None,
};

/// What is known of the format without its codec.
pub static SPEC: Spec = Spec {
    reads: &[V2, V3],
    writes: written(WRITES),
    options: &[
        OptionSpec::new(
            "chunk",
            "bytes",
            "cut tensors along their first dimension into chunks of about so many bytes (default: 4 MiB)",
        ),
        OptionSpec::new(
            "shard",
            "true or false",
            "put the chunks of each tensor into one file (v3)",
        ),
    ],
    ..Spec::known("zarr", "Zarr", &["zarr"], &[])
};

/// The versions that are written.
const WRITES: &[Profile] = &[
    Profile {
        version: V3,
        read_by: "zarr-python 3, tensorstore, zarrs, zarrita.js; bf16 and smaller floats by tensorstore alone",
        can: CAN,
    },
    Profile {
        version: V2,
        read_by: "zarr-python 2 and 3, tensorstore, zarrs, z5, GDAL; bf16 and smaller floats by tensorstore alone",
        can: CAN,
    },
];

const CAN: Capabilities = Capabilities {
    max_rank: limits::MOST_RANK,
    name: limits::name,
    dtype: types::is_written,
    file_value: limits::value,
    tensor_value: limits::value,
    zstd: true,
    ..Capabilities::new()
};

const V2: &str = "v2";
const V3: &str = "v3";
/// The names of metadata, without the path of the node in front of it.
#[cfg(feature = "zarr")]
const NODE: &str = "zarr.json";
#[cfg(feature = "zarr")]
const ARRAY: &str = ".zarray";
#[cfg(feature = "zarr")]
const GROUP: &str = ".zgroup";
#[cfg(feature = "zarr")]
const ATTRIBUTES: &str = ".zattrs";
#[cfg(feature = "zarr")]
const COPIES: &str = ".zmetadata";
/// The key of a tensor's metadata for the names of its dimensions.
#[cfg(feature = "zarr")]
const DIMENSIONS: &str = "dimension_names";
