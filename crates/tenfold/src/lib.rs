#![doc = include_str!("../README.md")]
#![no_std]
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
// Writers are reached through the table of formats alone: without `write` nothing calls them, and no program has them.
#[cfg_attr(not(feature = "write"), allow(dead_code, unused_imports))]
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
#[cfg_attr(not(feature = "write"), allow(dead_code, unused_imports))]
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
