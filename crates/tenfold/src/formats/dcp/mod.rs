//! PyTorch's distributed checkpoints (DCP): a directory with `.metadata`, which says what was saved and where each piece of
//! it lies, and files with the pieces.
//!
//! | file           | content                                                                                        |
//! |----------------|------------------------------------------------------------------------------------------------|
//! | `.metadata`    | a pickle: names with types, shapes and chunks; for each chunk a file, an offset and a length    |
//! | `__R_N.distcp` | items back to back, each a whole archive of `torch.save`: one tensor, or one object             |
//! | `__R.metadata` | of a checkpoint that was saved without collectives: what one rank has; refused                  |
//!
//! A tensor is put together from its chunks, which must be inside of it, must not overlap and must leave nothing out. Its
//! items are looked at when it is read: opening a checkpoint reads `.metadata` and the items of objects. These are metadata
//! under their names; tensors in them are listed. The pickles are read as data, by a list of the classes and functions that
//! may occur in them; nothing is imported or called. An item may be compressed with zstd.
//!
//! Read only. The rules are listed in `docs/formats/dcp.md`. Source: the behaviour of torch 2.15 and 2.1.

#[cfg(feature = "dcp")]
mod codec;
#[cfg(feature = "dcp")]
mod globals;
#[cfg(feature = "dcp")]
mod items;
#[cfg(feature = "dcp")]
mod metadata;
#[cfg(feature = "dcp")]
mod objects;

#[cfg(feature = "dcp")]
use codec::Dcp;

use crate::format::{Entry, Spec};

/// The row of the table of formats.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "dcp")]
    codec: Some(&Dcp),
    #[cfg(not(feature = "dcp"))]
    codec: None,
};

/// What is known of the format without its codec.
pub static SPEC: Spec = Spec {
    reads: &["1.0.0", "none"],
    ..Spec::known("dcp", "PyTorch distributed checkpoint", &["distcp"], &[])
};

/// The file that says what there is.
#[cfg(feature = "dcp")]
const METADATA: &str = ".metadata";
/// What the names of files with items end with.
#[cfg(feature = "dcp")]
const DATA: &str = ".distcp";
