//! Editing metadata.

use crate::archive::Archive;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Metadata, Quoted, Value};
use crate::prelude::*;

/// A change of metadata.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Edit {
    /// A key gets a value, in its place or at the end.
    Set(String, Value),
    /// A key is removed. One that is not there is an error.
    Unset(String),
}

/// The same tensors with other metadata: of the archive, or of one of its tensors.
///
/// What a file says of itself in its own words, such as a count of its parts, cannot be changed: it follows from what is
/// written.
///
/// ```
/// use tenfold::model::Value;
/// use tenfold::ops::{self, Edit};
/// let archive = tenfold::Archive::builder().finish();
/// let edit = Edit::Set("license".into(), Value::Str("MIT".into()));
/// let edited = ops::edit_metadata(&archive, None, &[edit])?;
/// assert_eq!(edited.metadata().get("license").and_then(Value::as_str), Some("MIT"));
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn edit_metadata(archive: &Archive, tensor: Option<&str>, edits: &[Edit]) -> Result<Archive> {
    let mut manifest = archive.manifest().clone();
    let (metadata, derived) = match tensor {
        None => (&mut manifest.metadata, &[][..]),
        Some(name) => {
            let derived = archive.tensor(name)?.info().derived();
            let mut tensors = manifest.tensors.iter_mut();
            let tensor = tensors.find(|tensor| tensor.name == name);
            let tensor = tensor
                .ok_or_else(|| Error::argument(format!("there is no tensor {}", Quoted(name))))?;
            (&mut tensor.metadata, derived)
        }
    };
    for edit in edits {
        apply(metadata, derived, edit)?;
    }
    Ok(archive.with_manifest(manifest))
}

fn apply(metadata: &mut Metadata, derived: &[&str], edit: &Edit) -> Result<()> {
    let (Edit::Set(key, _) | Edit::Unset(key)) = edit;
    if metadata.is_fact(key) || derived.contains(&key.as_str()) {
        let message = format!("{} is set by the format and cannot be changed", Quoted(key));
        return Err(Error::argument(message));
    }
    match edit {
        Edit::Set(key, value) => metadata.set(key, value.clone()),
        Edit::Unset(key) => {
            metadata.remove(key).ok_or_else(|| no_key(key))?;
        }
    }
    Ok(())
}

fn no_key(key: &str) -> Error {
    let message = format!("there is no metadata {}", Quoted(key));
    Error::new(ErrorKind::NotFound, "metadata", message)
}
