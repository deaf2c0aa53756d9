//! Results as documents: what `tenfold --json` prints, and what other shells give to their programs.
//!
//! Each document says by its `schema` what it is; `docs/cli.md` describes them. They borrow what they are made of, and
//! lists are made as they are written. Numbers that are not finite are strings. Integers of more than 128 bits keep
//! their digits with `serde_json` and its feature `raw_value`; for other serializers they are what its `RawValue` is to
//! them.

mod diff;
mod failure;
mod inspect;
#[cfg(any(feature = "gguf", feature = "ztensor"))]
mod quantized;
#[cfg(feature = "pytorch")]
mod scan;
mod stats;
mod value;
mod verify;
mod written;

use core::fmt::Display;

use serde::Serializer;

use crate::error::{Error, Hint};
use crate::prelude::*;

pub use diff::DiffDocument;
pub use failure::{ErrorDocument, LossDocument};
pub use inspect::Inspection;
#[cfg(any(feature = "gguf", feature = "ztensor"))]
pub use quantized::{ChoiceDocument, QualityDocument};
#[cfg(feature = "pytorch")]
pub use scan::ScanDocument;
pub use stats::StatsDocument;
pub use value::{ShownMetadata, ShownValue};
#[cfg(feature = "digest")]
pub use verify::DigestDocument;
pub use verify::{FindingDocument, Verification};
pub use written::{ConflictDocument, DequantizedDocument, RemarkDocument, Written};

/// How a shell says what would help: text after a message, such as `; --limit rank=9 raises it`, or nothing.
pub type Words = fn(&[Hint]) -> String;

/// What is text in the words that people read.
fn text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// An error as a line, with what would help.
fn line(error: &Error, words: Words) -> String {
    error.clone().adding(&words(error.hints())).to_string()
}

/// A list that is made as it is written.
struct Each<F>(F);

impl<F, I> serde::Serialize for Each<F>
where
    F: Fn() -> I,
    I: IntoIterator<Item: serde::Serialize>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}
