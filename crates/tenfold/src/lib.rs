//! Opens every tensor file: reads, writes, verifies and converts the files that hold neural-network weights and
//! scientific tensors.
//!
//! - [`Archive`] is a file that was opened, [`Tensor`] a tensor of it; [`OpenOptions`] says how.
//! - [`ops`] are the operations on archives: convert, verify, digest, diff, stats.
//! - [`model`] is what files are described in, [`format`](mod@format) what a format is, [`formats`] the formats themselves.
//! - [`io`] is where bytes come from and go to.
//!
//! The [`tour`] shows the usual jobs with examples: open and read, take a slice, convert with a report of losses, write
//! what is not in memory, add a format of your own.
//!
//! Without the feature `std` everything works on bytes in memory.

#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod archive;
pub mod digest;
mod error;
pub mod format;
pub mod formats;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod io;
pub mod model;
pub mod ops;
mod prelude;
#[cfg(feature = "std")]
mod threads;
// Nothing but documentation.
#[cfg(any(doc, doctest))]
pub mod tour;
mod transform;
mod typed;
mod wire;

pub use archive::{Archive, ArchiveBuilder, OpenOptions, Sliced, Tensor};
pub use bytes::Bytes;
pub use error::{Error, ErrorKind, Result};
pub use half;
pub use typed::{Element, Typed};

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}
