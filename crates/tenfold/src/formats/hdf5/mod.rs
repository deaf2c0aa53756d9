//! HDF5: a tree of groups, datasets and attributes, as h5py, Keras and netCDF-4 write it.
//!
//! | part          | notes                                                                                            |
//! |---------------|--------------------------------------------------------------------------------------------------|
//! | superblock    | `\x89HDF\r\n\x1a\n`, at byte 0 or at a power of two from 512 on; leads to the root group            |
//! | object header | messages: a type, a shape, a layout, filters, links, attributes                                  |
//! | groups        | old: a B-tree of lists and a heap of names; new: messages, or a heap with a B-tree               |
//! | data          | in the header, in one piece, or in chunks that five kinds of indexes find                        |
//!
//! A tensor's name is its path without the first slash; tensors are listed in the order of the bytes of their names, group
//! by group. The attributes of the root are the file's metadata, those of a dataset the tensor's, and those of another
//! group a map under its path with the first slash. What is no numbers is skipped with a note. Read are superblocks 0 to 3, the filters
//! deflate, shuffle, Fletcher-32 and LZF, and the plug-ins Blosc, LZ4 and zstd. Written are version 2 superblocks with data in one piece, or in chunks as they
//! were before or as the option `chunk` says. Data in other files is never opened. The rules are listed in `docs/formats/hdf5.md`. Source: the
//! HDF5 File Format Specification, and the behaviour of h5py 3.16 with HDF5 2.0.

#[cfg(feature = "hdf5")]
mod codec;
mod limits;
#[cfg(all(feature = "hdf5", feature = "write"))]
mod write;

#[cfg(feature = "hdf5")]
use codec::Hdf5;

use crate::format::{Capabilities, Entry, OptionSpec, Profile, Spec, written};
use crate::model::Layout;

/// The row of the table of formats.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "hdf5")]
    codec: Some(&Hdf5),
    #[cfg(not(feature = "hdf5"))]
    codec: None,
};

/// What is known of the format without its codec.
pub static SPEC: Spec = Spec {
    reads: &["superblock 0", "superblock 1", VERSION, "superblock 3"],
    writes: written(WRITES),
    options: &[
        OptionSpec::new(
            "chunk",
            "auto, none or sides",
            "write chunks: of about 1 MiB, or of these sides for tensors of as many dimensions, as in 64x64; none writes data in one piece (default: as before)",
        ),
        OptionSpec::new(
            "deflate",
            "0-9",
            "compress chunks, 1 fast to 9 small, 0 not at all",
        ),
        OptionSpec::new(
            "shuffle",
            "true or false",
            "put bytes of equal significance together before they are compressed, which makes most numbers smaller",
        ),
    ],
    ..Spec::known(
        "hdf5",
        "HDF5",
        &["h5", "hdf5"],
        &[(0, b"\x89HDF\r\n\x1a\n")],
    )
};

/// The versions that are written.
const WRITES: &[Profile] = &[Profile {
    version: VERSION,
    read_by: "HDF5 1.8 and later, h5py, Keras; bf16 and 8-bit floats as numbers by h5py 3",
    can: Capabilities {
        max_rank: limits::MOST_RANK,
        name: limits::name,
        dtype: limits::dtype,
        layout: |layout| matches!(layout, Layout::RowMajor | Layout::Chunked),
        file_value: limits::file_value,
        tensor_value: limits::named,
        ..Capabilities::new()
    },
}];

/// The version that is written.
const VERSION: &str = "superblock 2";
