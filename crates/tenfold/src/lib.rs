#![doc = include_str!("../README.md")]
#![no_std]
// What only some formats, or only their writers, use is compiled with each of them: lists of features at every helper would
// be one more place to edit for a new format. A build of everything shows what nobody uses.
#![cfg_attr(
    not(all(
        feature = "formats",
        feature = "remote",
        feature = "scale",
        feature = "write"
    )),
    allow(dead_code, unused_imports)
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod archive;
pub mod digest;
#[cfg(feature = "digits")]
pub mod digits;
#[cfg(feature = "serde")]
pub mod documents;
mod error;
mod execute;
pub mod format;
pub mod formats;
#[cfg(feature = "__fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod io;
pub mod model;
pub mod ops;
mod prelude;
mod schemes;
mod threads;
// Nothing but documentation.
#[cfg(any(doc, doctest))]
pub mod tour;
mod transform;
mod typed;
mod wire;

pub use archive::{
    Archive, ArchiveBuilder, Component, InPlace, OpenOptions, Pushed, Reading, Sliced, Tensor,
    Values,
};
#[cfg(feature = "std")]
pub use archive::{Companion, PassedOver, PassedOverFor};
pub use bytes::Bytes;
pub use error::{Error, ErrorKind, Hint, Result};
pub use half;
#[cfg(feature = "std")]
pub use ops::save::{convert, save};
pub use threads::{Control, Work};
pub use typed::{Element, Typed};
