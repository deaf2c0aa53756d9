//! Operations on archives. They print nothing.

#[cfg(feature = "digest")]
mod against;
mod cast;
mod chunks;
pub(crate) mod complete;
mod convert;
mod dequantize;
mod diff;
#[cfg(feature = "digest")]
mod digest;
mod join;
mod metadata;
mod parallel;
mod parts;
mod pieces;
#[cfg(any(feature = "gguf", feature = "ztensor"))]
mod quantize;
mod readback;
mod rename;
mod shards;
mod sparse;
mod stats;
mod survey;
mod values;
mod verify;

pub use crate::transform::CastCounts;
#[cfg(feature = "digest")]
pub use against::{Expected, against};
pub use cast::{cast, is_exact};
pub use complete::{Incomplete, incomplete};
pub use convert::{Conversion, ConvertOptions, Report, prepare};
pub use dequantize::dequantize;
pub use diff::{
    Change, ChangeKind, Diff, DiffOptions, Difference, First, MetadataChange, Side, Tolerance,
    Which, diff,
};
#[cfg(feature = "digest")]
pub use digest::{CONTENT_VERSION, Digests, digest};
pub use join::{Conflict, Merged, Prefer, join, merge};
pub use metadata::{Edit, edit_metadata};
#[cfg(any(feature = "gguf", feature = "mag", feature = "safetensors"))]
pub use metadata::{
    VALUE_TYPES, metadata_from_json, metadata_to_json, parse_value, parse_value_like, value_like,
    value_type, write_metadata_json,
};
pub use parts::Parts;
#[cfg(any(feature = "gguf", feature = "ztensor"))]
pub use quantize::quantize;
pub use rename::rename;
pub use shards::{Shards, layer};
pub use sparse::Sparse;
pub use stats::{ArchiveStats, Histogram, Number, Stats, StatsOptions, check_numbers, stats};
pub use survey::{Surveyed, survey};
pub use verify::{compare_checksums, verify};
