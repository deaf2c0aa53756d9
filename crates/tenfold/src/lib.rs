//! Opens every tensor file.

#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod digest;
mod error;
pub mod format;
pub mod formats;
pub mod io;
pub mod model;
mod prelude;

pub use bytes::Bytes;
pub use error::{Error, ErrorKind, Result};
