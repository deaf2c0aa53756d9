//! Operations on archives. They print nothing.

#[cfg(feature = "digest")]
mod against;
mod cast;
mod chunks;
mod convert;
mod dequantize;
mod diff;
#[cfg(feature = "digest")]
mod digest;
mod join;
mod parallel;
mod pieces;
#[cfg(any(feature = "gguf", feature = "ztensor"))]
mod quantize;
mod readback;
mod sparse;
mod stats;
mod survey;
mod values;
mod verify;

#[cfg(feature = "digest")]
pub use against::{Expected, against};
pub use cast::{cast, is_exact};
pub use convert::{Conversion, ConvertOptions, Report, prepare};
pub use dequantize::dequantize;
pub use diff::{
    Change, ChangeKind, Diff, DiffOptions, Difference, First, MetadataChange, Side, Tolerance, diff,
};
#[cfg(feature = "digest")]
pub use digest::{Digests, digest};
pub use join::join;
#[cfg(any(feature = "gguf", feature = "ztensor"))]
pub use quantize::quantize;
pub use sparse::Sparse;
pub use stats::{ArchiveStats, Histogram, Number, Stats, StatsOptions, check_numbers, stats};
pub use survey::{Surveyed, survey};
pub use verify::verify;
