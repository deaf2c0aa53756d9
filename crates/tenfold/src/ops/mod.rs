//! Operations on archives. They print nothing.

#[cfg(feature = "digest")]
mod against;
mod cast;
mod convert;
mod dequantize;
#[cfg(feature = "digest")]
mod digest;
mod join;
mod parallel;
#[cfg(any(feature = "gguf", feature = "ztensor"))]
mod quantize;
mod readback;
mod sparse;
mod survey;
mod verify;

#[cfg(feature = "digest")]
pub use against::{Expected, against};
pub use cast::{cast, is_exact};
pub use convert::{Conversion, ConvertOptions, Report, prepare};
pub use dequantize::dequantize;
#[cfg(feature = "digest")]
pub use digest::{Digests, digest};
pub use join::join;
#[cfg(any(feature = "gguf", feature = "ztensor"))]
pub use quantize::quantize;
pub use sparse::Sparse;
pub use survey::{Surveyed, survey};
pub use verify::verify;
