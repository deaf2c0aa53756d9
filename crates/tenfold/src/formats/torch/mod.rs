//! What `torch.save` writes, wherever it lies: the classes and functions that its pickles may name, tensors as views of
//! storages, and everything else as metadata.
//!
//! Errors have bare rules: the format that reads it puts its id in front.

#[cfg(feature = "pytorch")]
mod archive;
mod dtypes;
#[cfg(feature = "pytorch")]
mod flatten;
#[cfg(feature = "pytorch")]
mod globals;
#[cfg(feature = "pytorch")]
mod leaves;
#[cfg(feature = "pytorch")]
mod tensors;

#[cfg(feature = "pytorch")]
pub(super) use archive::{Archive, crc32, no_pickle, unpack};
pub(super) use dtypes::{STORAGES, TYPES};
#[cfg(feature = "pytorch")]
pub(super) use flatten::{Around, Saved, flatten};
#[cfg(feature = "pytorch")]
pub(super) use globals::{Allowed, Global};
#[cfg(feature = "pytorch")]
pub(super) use leaves::whole;
#[cfg(feature = "pytorch")]
pub(super) use tensors::{Storage, StorageId, Storages, View, checksum};

/// Dimensions, at most.
pub(super) const MAX_RANK: usize = 64;
/// A list of more numbers or texts than this is one value; the others have a path for every entry.
pub(super) const LONG: usize = 4096;

/// What a few bytes may take, however few they are.
#[cfg(feature = "pytorch")]
pub(super) const FREE: u64 = 6 << 20;

/// What a pickle may take, with everything that is made of it: what it holds is counted, and lists that grow take up to
/// twice as much for a moment.
#[cfg(feature = "pytorch")]
pub(super) fn budget(len: u64) -> u64 {
    FREE.saturating_add(len.saturating_mul(13) / 2)
}

/// Whether a class or function is on the list of those that are read as data, also in TorchScript archives.
#[cfg(feature = "pytorch")]
pub(crate) fn is_known(module: &str, name: &str) -> bool {
    let allowed = Allowed {
        script: true,
        opaque: false,
    };
    allowed.find(module, name).is_some()
}
