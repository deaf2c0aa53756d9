//! zTensor `.zt`: tensors one after the other, described by a CBOR index at the end, in five generations.
//!
//! | generation | first 8 bytes | at the end | index |
//! |------------|---------------|------------|-------|
//! | 0.1 | `ZTEN0001` | index, u64 LE its size | array of maps, one for each tensor |
//! | 1.0 | `ZTEN1000` | manifest, u64 LE its size | map with `tensors` |
//! | 1.1, 1.2 | `ZTEN1000` | manifest, u64 LE its size, the magic again | map with `objects` |
//! | 2 | `89 5A 54 32 0D 0A 1A 0A` | footer of 40 bytes, see `v2/mod.rs` | map in deterministic encoding |
//!
//! Tensor data begins at multiples of 64 bytes (4096 in generation 2), and everything is little-endian unless an entry of
//! 0.1 says otherwise. All five are read; 0.1, 1.2 and 2 are written. What each refuses is in `docs/formats/ztensor.md`.
//!
//! Source: the zTensor 0.1.0 specification, and the files that the packages `ztensor` 0.1 to 2.1 write.

#[cfg(feature = "ztensor")]
mod assemble;
mod capability;
#[cfg(feature = "ztensor")]
mod checksum;
mod names;
#[cfg(feature = "ztensor")]
mod raw;
#[cfg(feature = "ztensor")]
mod read;
#[cfg(feature = "ztensor")]
mod v01;
#[cfg(feature = "ztensor")]
mod v1;
#[cfg(feature = "ztensor")]
mod v2;
#[cfg(feature = "ztensor")]
mod write;

#[cfg(feature = "ztensor")]
use crate::error::{Error, Result};
#[cfg(feature = "ztensor")]
use crate::format::{Confidence, Context, Format, Head, Plan, PlanOptions, Survey};
use crate::format::{Entry, OptionSpec, Profile, Spec, written};
#[cfg(feature = "ztensor")]
use crate::io::{Patch, Source};
#[cfg(feature = "ztensor")]
use crate::model::Manifest;
#[cfg(feature = "ztensor")]
use crate::prelude::*;

/// The facts about zTensor.
pub static SPEC: Spec = Spec {
    id: "ztensor",
    name: "zTensor",
    extensions: &["zt"],
    // Shorter than the magics, so that a generation which is not known yet is named as such.
    magic: &[(0, b"ZTEN"), (0, b"\x89ZT2")],
    reads: &["0.1", "1.0", "1.1", "1.2", "2"],
    writes: written(WRITES),
    options: &[
        OptionSpec {
            key: "align",
            value: "bytes",
            help: "where data begins: a multiple of 64 (default 64), in 2 of 4096 (default 4096)",
        },
        OptionSpec {
            key: "canonical",
            value: "true",
            help: "2 only: the same tensors give the same bytes, with equal data stored once",
        },
        OptionSpec {
            key: "endian",
            value: "big",
            help: "0.1 only: uncompressed numbers with the most significant byte first",
        },
        OptionSpec {
            key: "reserve",
            value: "bytes",
            help: "leaves room in front of the index, so that it can be edited without making the file longer",
        },
    ],
};

/// The versions that are written.
const WRITES: &[Profile] = &[
    Profile {
        version: "0.1",
        read_by: "ztensor 0.1.x; ztensor 1.1.x and 1.2.x",
        can: capability::IN_01,
    },
    Profile {
        version: "1.2",
        read_by: "ztensor 1.2.x; ztensor 1.1.x if the file's metadata is text",
        can: capability::IN_12,
    },
    Profile {
        version: "2",
        read_by: "ztensor 2.x and its command zt",
        can: capability::IN_2,
    },
];

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "ztensor")]
    codec: Some(&ZTensor),
    #[cfg(not(feature = "ztensor"))]
    codec: None,
};

/// Reads and writes zTensor files.
#[cfg(feature = "ztensor")]
#[derive(Clone, Copy, Debug)]
struct ZTensor;

#[cfg(feature = "ztensor")]
impl Format for ZTensor {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn detect(&self, head: &Head<'_>) -> Result<Confidence> {
        let found = SPEC.match_magic(head)?;
        let len = head.len();
        // A file of generation 2 whose beginning was overwritten still has its footer.
        if found == Confidence::No && len >= v2::MIN_FILE && head.read(len - 8..len)? == v2::MAGIC {
            return Ok(Confidence::Likely);
        }
        Ok(found)
    }

    fn keeps_shared(&self) -> bool {
        true
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        let source = cx.source();
        let magic = source.read(0..source.len().min(8))?;
        match &*magic {
            v01::MAGIC => v01::describe(cx),
            v1::MAGIC => v1::describe(cx),
            v2::MAGIC => v2::describe(cx),
            other => {
                let what = if other.len() < 8 {
                    "ztensor.truncated"
                } else {
                    "ztensor.magic"
                };
                let message = format!(
                    "begins with {}, which is not the magic of any known generation (ZTEN0001, \
                     ZTEN1000, \\x89ZT2\\r\\n\\x1a\\n)",
                    other.escape_ascii()
                );
                Err(Error::malformed(what, message).at(0..other.len() as u64))
            }
        }
    }

    #[cfg(feature = "write")]
    fn survey(&self, options: &PlanOptions) -> Result<Survey> {
        write::survey(options)
    }

    #[cfg(feature = "write")]
    fn plan(&self, what: &Manifest, options: &PlanOptions) -> Result<Plan> {
        write::plan(what, options)
    }

    #[cfg(feature = "write")]
    fn amend(
        &self,
        what: &Manifest,
        stored: &Manifest,
        len: u64,
        options: &PlanOptions,
    ) -> Result<Vec<Patch>> {
        write::amend(what, stored, len, options)
    }
}
