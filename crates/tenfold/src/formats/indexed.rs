//! Files that an index names: they lie beside it, and they are not the index itself.

use crate::error::{Error, ErrorKind, Result};
use crate::format::Context;
use crate::io::Source;
use crate::model::SourceId;
use crate::prelude::*;

/// Files that an index can name, at most: they all lie in one directory.
pub(super) const MAX_FILES: usize = 1 << 14;

/// Refuses names that lead elsewhere; `at` is where the index says it.
pub(super) fn check_name(name: &str, at: u64) -> Result<()> {
    let elsewhere = name.contains(['/', '\\', '\0', ':']);
    if !elsewhere && !matches!(name, "" | "." | "..") {
        return Ok(());
    }
    let message = format!("{name:?} is not the plain name of a file beside the index");
    Err(Error::malformed("shard-name", message).at(at..at + 1))
}

/// Opens a file; `at` is where the index names it.
pub(super) fn open(
    cx: &mut Context<'_>,
    name: &str,
    at: u64,
) -> Result<(SourceId, Arc<dyn Source>)> {
    let id = cx.sibling(name).map_err(|cause| match cause.kind() {
        ErrorKind::NotFound => {
            let message = format!("the index names {name:?}, which is missing");
            Error::new(ErrorKind::NotFound, "shard-missing", message)
                .at(at..at + 1)
                .because(cause)
        }
        _ => cause,
    })?;
    let source = cx.open(id).filter(|_| id != SourceId::MAIN);
    let source = source.ok_or_else(|| {
        let message = "the index names itself as a file of tensors";
        Error::malformed("shard-name", message).at(at..at + 1)
    })?;
    Ok((id, source))
}
