//! Plain dumps: elements and nothing else, as `numpy.tofile`, `memmap` and C's `fwrite` leave them. What they are is said by
//! whoever opens them, or by a file beside them.
//!
//! | file            | notes                                                                                                  |
//! |-----------------|--------------------------------------------------------------------------------------------------------|
//! | `NAME`          | elements of one array, from any byte on; or of several, each at its offset                              |
//! | `NAME.json`     | `{"tenfold_raw": 1, "arrays": [..], "metadata": {..}}`                                                   |
//!
//! An array of the list has a `name`, a `dtype`, a `shape`, and, where they are not these, `"order": "C"`, `"endian": "little"`,
//! `"offset": 0`. Metadata is text by keys. Without that file, the type is [assumed](crate::OpenOptions::assume_dtype), and the
//! rest are options for reading. The rules are listed in `docs/formats/raw.md`. Source: this table.

#[cfg(feature = "raw")]
mod codec;
#[cfg(feature = "raw")]
mod sidecar;
#[cfg(all(feature = "raw", feature = "write"))]
mod write;

#[cfg(feature = "raw")]
use codec::Raw;

use crate::format::{Capabilities, Entry, Fit, Profile, Spec, written};
use crate::model::{DType, Layout, Value};

/// The row of the table of formats.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "raw")]
    codec: Some(&Raw),
    #[cfg(not(feature = "raw"))]
    codec: None,
};

/// What is known of the format without its codec.
pub static SPEC: Spec = Spec {
    reads: &[VERSION],
    writes: written(WRITES),
    ..Spec::known("raw", "plain dump", &["raw"], &[(0, MARK)])
};

/// The versions that are written.
const WRITES: &[Profile] = &[Profile {
    version: VERSION,
    read_by: "any program that is told what is in it: numpy.memmap, fread",
    can: Capabilities {
        dtype: |dtype| matches!(dtype, DType::Number(..)),
        layout: |layout| matches!(layout, Layout::RowMajor | Layout::ColumnMajor),
        file_value: |_, value| match value {
            Value::Str(_) => Fit::Exact,
            _ => Fit::No,
        },
        ..Capabilities::new()
    },
}];

/// The version of the file beside a dump, as it is called in listings.
const VERSION: &str = "1";
/// How the file beside a dump begins, as it is written here.
const MARK: &[u8] = b"{\"tenfold_raw\"";
/// What the name of the file beside a dump has more.
const SIDECAR: &str = ".json";
