//! Between variables and the model.

use super::found::Found;
use super::level5::HEADER;
#[cfg(feature = "write")]
use super::write;
use super::{LEVEL_5, LEVEL_7, SPEC, level4, level5, level7};
use crate::error::{Error, Result};
#[cfg(feature = "write")]
use crate::format::{Arranged, Plan, PlanOptions};
use crate::format::{Confidence, Context, Format, Head, Spec, diagnose};
use crate::model::{Endian, Manifest};
use crate::prelude::*;
use crate::wire::hdf5;

/// Reads and writes MATLAB's files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mat;

/// Where the version and the mark of the byte order are.
const VERSION_AT: u64 = 124;

/// What the header says that a file is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Level {
    Four,
    Five(Endian),
    /// HDF5.
    Seven,
}

impl Level {
    /// By the first 128 bytes, or all that there are.
    fn of(head: &[u8]) -> Result<Self> {
        let mark = head.get(124..128).unwrap_or_default();
        let (version, endian) = match *mark {
            [low, high, b'I', b'M'] => (u16::from_le_bytes([low, high]), Endian::Little),
            [high, low, b'M', b'I'] => (u16::from_be_bytes([high, low]), Endian::Big),
            _ if head.starts_with(b"MATLAB ") && !mark.is_empty() => {
                let message = format!(
                    "the mark of the byte order is {:02x?}, IM or MI is expected",
                    mark.get(2..)
                );
                return Err(Error::malformed("mat.endian", message).at(VERSION_AT + 2..HEADER));
            }
            _ if head.starts_with(b"MATLAB ") => {
                let message = format!(
                    "the file ends at byte {}, the header has {HEADER}",
                    head.len()
                );
                return Err(Error::malformed("mat.truncated", message).at(0..head.len() as u64));
            }
            _ => return Ok(Level::Four),
        };
        match version {
            0x0100 => Ok(Level::Five(endian)),
            0x0200 => Ok(Level::Seven),
            other => {
                let message =
                    format!("version {other:#06x}; 0x0100 (level 5) and 0x0200 (7.3) are known");
                let error = Error::unsupported("mat.version", message);
                Err(error.at(VERSION_AT..VERSION_AT + 2))
            }
        }
    }
}

impl Format for Mat {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn detect(&self, head: &Head<'_>) -> Result<Confidence> {
        let first = head.first();
        let first = first.get(..HEADER_LEN).unwrap_or(first);
        if first.starts_with(b"MATLAB ") {
            // No text: what is wrong with it, describing it says.
            return Ok(Confidence::Certain);
        }
        let is_named = head.name().is_some_and(|name| name.ends_with(".mat"));
        Ok(match Level::of(first) {
            Ok(Level::Five(_)) => Confidence::Likely,
            Ok(Level::Four) if level4::is_begin(first) => {
                if is_named {
                    Confidence::Certain
                } else {
                    Confidence::Possible
                }
            }
            // A damaged one: describing it says so.
            _ if is_named && diagnose::instead(head).is_none() => Confidence::Possible,
            _ => Confidence::No,
        })
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        let source = cx.source();
        let len = source.len();
        let head = source.read(0..len.min(HEADER))?;
        let level = Level::of(&head)?;
        let limits = *cx.limits();
        let mut found = Found::new(&limits);
        let mut manifest = match level {
            Level::Four if len == 0 => {
                let message = "the file is empty";
                return Err(Error::malformed("mat.truncated", message).at(0..0));
            }
            Level::Four => {
                level4::describe(cx, &mut found)?;
                Manifest::new("4")
            }
            Level::Five(endian) => {
                level5::describe(cx, endian, &mut found)?;
                Manifest::new(LEVEL_5)
            }
            Level::Seven => {
                if hdf5::find(source, &(0..len))?.is_none() {
                    let message = "the header says 7.3, and there is no HDF5 file behind it";
                    return Err(Error::unsupported("mat.version", message).at(VERSION_AT..HEADER));
                }
                let mut manifest = Manifest::new(LEVEL_7);
                for range in level7::describe(cx, &mut found)? {
                    manifest.region(range, "structures");
                }
                manifest
            }
        };
        found.unique_names()?;
        manifest.metadata = found.metadata;
        manifest.tensors = found.tensors.into();
        manifest.kept = found.kept;
        if level != Level::Seven {
            manifest.region_of_rest(len, "header");
        }
        Ok(manifest)
    }

    #[cfg(feature = "write")]
    fn arrange(&self, what: &Manifest, _: &PlanOptions) -> Result<Option<Arranged>> {
        write::arrange(what).map(Some)
    }

    #[cfg(feature = "write")]
    fn plan(&self, what: &Manifest, options: &PlanOptions) -> Result<Plan> {
        write::plan(what, options)
    }
}

/// Bytes of a header of level 5.
const HEADER_LEN: usize = 128;
