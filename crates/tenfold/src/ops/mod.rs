//! Operations on archives. They print nothing.

mod convert;
#[cfg(feature = "digest")]
mod digest;
mod join;
mod parallel;
mod readback;
mod sparse;
mod survey;
mod verify;

pub use convert::{Conversion, ConvertOptions, Report, prepare};
#[cfg(feature = "digest")]
pub use digest::{Digests, digest};
pub use join::join;
pub use sparse::Sparse;
pub use survey::{Surveyed, survey};
pub use verify::verify;
