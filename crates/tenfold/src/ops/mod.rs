//! Operations on archives. They print nothing.

mod cast;
mod convert;
mod dequantize;
mod diff;
#[cfg(feature = "digest")]
mod digest;
mod extents;
mod groups;
mod metadata;
mod picture;
#[cfg(any(feature = "gguf", feature = "ztensor"))]
mod quantize;
mod rename;
#[cfg(feature = "std")]
pub(crate) mod save;
#[cfg(feature = "scale")]
pub mod scale;
#[cfg(feature = "pytorch")]
mod scan;
mod shards;
mod shared;
mod sparse;
mod stats;
mod summary;
mod verify;

pub use crate::archive::complete::{MissingFiles, missing_files};
pub use crate::archive::merge::{Conflict, Conflicts, Merged, merge};
pub use crate::threads::Progress;
pub use cast::{cast, is_exact};
#[cfg(feature = "std")]
pub use convert::EditedInPlace;
pub use convert::{
    Conversion, ConvertOptions, PlannedContent, PlannedFile, PlannedSegment, Report,
};
pub use dequantize::{QuantizedGroup, QuantizedGroups, decoded, dequantize, quantized};
pub use diff::{
    Change, ChangeKind, Diff, DiffOptions, DiffSteps, Difference, First, MetadataChange, Side,
    Tolerance, Which, diff,
};
#[cfg(feature = "digest")]
pub use digest::{CONTENT_VERSION, DigestOptions, Digests, digest};
pub use extents::{Extent, ExtentKind, FileExtents, extents};
pub use groups::{NameGroup, group_names, name_pattern};
pub use metadata::{Edit, edit_metadata};
pub use picture::{Cell, Picture, PictureOptions, PictureSteps, picture};
#[cfg(any(feature = "gguf", feature = "ztensor"))]
pub use quantize::{
    Choice, ImportanceMatrix, Mixture, Quality, QuantizeOptions, QuantizeTo, Quantized,
    TensorQuality, quality, quantize, quantized_types,
};
pub use rename::rename;
#[cfg(feature = "pytorch")]
pub use scan::{Scan, ScanOptions, ScannedImport, ScannedPickle, Verdict, scan};
pub use shards::{Shards, natural_order};
pub use shared::parts::Parts;
pub use sparse::Sparse;
pub use stats::{ArchiveStats, Histogram, Number, Stats, StatsOptions, StatsSteps, stats};
pub use summary::elements_by_type;
pub use verify::{
    Checked, Verified, VerifyOptions, VerifySteps, check_numbers, compare_checksums, verify,
};
#[cfg(feature = "digest")]
pub use verify::{Expected, compare_digests};
