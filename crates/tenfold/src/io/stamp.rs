//! What shows that a file is unchanged.

use crate::prelude::*;

/// What shows that a file is unchanged, from one process to another: its length, and what its system or its server says
/// that changes with its bytes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Stamp {
    /// Its bytes.
    pub len: u64,
    /// A store's tag.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub etag: Option<String>,
    /// When it was written, of a file in seconds since 1970.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub modified: Option<String>,
    /// When anything about it changed, which no program can set: also where another file took its name, or a date was set
    /// back.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub changed: Option<String>,
}

impl Stamp {
    /// By a store's tag alone, where there is one: what it says of times may differ from one answer to another.
    #[cfg(feature = "remote")]
    pub(crate) fn of_object(len: u64, etag: Option<String>, modified: Option<String>) -> Self {
        Self {
            len,
            modified: modified.filter(|_| etag.is_none()),
            etag,
            changed: None,
        }
    }

    /// That of a file of a system.
    #[cfg(feature = "std")]
    pub(crate) fn of_file(found: &std::fs::Metadata) -> Self {
        let since = |time: std::io::Result<std::time::SystemTime>| {
            let since = time.ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
            Some(format!("{}.{:09}", since.as_secs(), since.subsec_nanos()))
        };
        #[cfg(unix)]
        let changed = {
            use std::os::unix::fs::MetadataExt;
            Some(format!("{}.{:09}", found.ctime(), found.ctime_nsec()))
        };
        #[cfg(not(unix))]
        let changed = None;
        Self {
            len: found.len(),
            etag: None,
            modified: since(found.modified()),
            changed,
        }
    }
}
