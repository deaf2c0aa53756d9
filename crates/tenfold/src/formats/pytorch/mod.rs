//! PyTorch's checkpoints: a pickle that says what was saved, and the raw bytes of every storage.
//!
//! Since 1.6 a zip archive with one folder:
//!
//! | member                | content                                                                                  |
//! |-----------------------|------------------------------------------------------------------------------------------|
//! | `data.pkl`            | a pickle of what was saved; storages are persistent ids in it                            |
//! | `data/KEY`            | the bytes of a storage, stored at a multiple of 64                                       |
//! | `version`             | `3`, or up to `10` in TorchScript                                                        |
//! | `byteorder`           | `little` or `big`; little where it is missing                                            |
//! | `constants.pkl`, `code/` | only in TorchScript archives                                                          |
//!
//! Before that a stream: five pickles (a magic number, the protocol 1001, facts about the machine, what was saved, a list
//! of keys), then for each key the number of elements (i64) and the elements.
//!
//! Both are read. The pickles are read as data, by a list of the classes and functions that may occur in them; nothing is
//! imported or called. Names are paths through dicts and lists, joined by dots; what is no tensor is metadata under its
//! path. Written is the archive. Refused are every other class and function, quantized, sparse and meta tensors, and the
//! tar form of the first releases. A model in several files is opened through its index, `pytorch_model.bin.index.json`.
//! The rules are listed in `docs/formats/pytorch.md`. Source: the behaviour of torch 2.15 and 1.6.

#[cfg(feature = "pytorch")]
mod codec;
#[cfg(feature = "pytorch")]
mod container;
mod dtypes;
#[cfg(feature = "pytorch")]
mod flatten;
#[cfg(feature = "pytorch")]
mod globals;
#[cfg(feature = "pytorch")]
mod leaves;
#[cfg(feature = "pytorch")]
mod legacy;
#[cfg(feature = "pytorch")]
mod tensors;

#[cfg(feature = "pytorch")]
use codec::PyTorch;

use crate::format::{Entry, Spec};

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "pytorch")]
    codec: Some(&PyTorch),
    #[cfg(not(feature = "pytorch"))]
    codec: None,
};

/// The facts about PyTorch's files.
pub static SPEC: Spec = Spec {
    id: "pytorch",
    name: "PyTorch",
    extensions: &["pt", "pth", "bin", "ckpt"],
    // Of the stream. Archives are looked into.
    magic: &[(0, MAGIC)],
    reads: &[ZIP, LEGACY],
    writes: &[],
    options: &[],
    advice: None,
};

/// The archive.
const ZIP: &str = "zip";
/// The stream of before 1.6.
const LEGACY: &str = "legacy";
/// The pickle of a number that streams begin with.
const MAGIC: &[u8] = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e";
