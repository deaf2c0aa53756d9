//! Other names for tensors.

use crate::archive::Archive;
use crate::error::lists::first_of;
use crate::error::{Error, Result};
use crate::model::Quoted;
use crate::prelude::*;

/// The same tensors under other names: `to` says which, and `None` leaves one as it is. Two tensors with one name are an
/// error that names them.
///
/// What the metadata of a renamed tensor says about its name, see [`TensorInfo::derived`](crate::model::TensorInfo), is
/// left out: it follows from the new name where the format wants it.
///
/// ```
/// use tenfold::{ArchiveBuilder, Bytes, model::DType, ops};
/// let mut builder = ArchiveBuilder::new();
/// builder.push("model.bias", DType::U8, &[2], Bytes::from_static(&[1, 2]))?;
/// let strip = |name: &str| name.strip_prefix("model.").map(str::to_owned);
/// let renamed = ops::rename(&builder.finish(), strip)?;
/// assert!(renamed.get("bias").is_some());
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn rename(archive: &Archive, mut to: impl FnMut(&str) -> Option<String>) -> Result<Archive> {
    let mut manifest = archive.manifest().clone();
    for tensor in &mut manifest.tensors {
        let Some(name) = to(&tensor.name).filter(|name| *name != tensor.name) else {
            continue;
        };
        tensor.rename(name);
        tensor.set_unnamed(false);
        for key in tensor.derived() {
            tensor.metadata.remove(key);
        }
    }
    let names = manifest.tensors.iter().map(|tensor| tensor.name.as_str());
    refuse_collisions(archive, names)?;
    Ok(archive.with_manifest(manifest))
}

/// Refuses new names, given in the order of the tensors, that two tensors would have.
fn refuse_collisions<'n>(archive: &Archive, names: impl Iterator<Item = &'n str>) -> Result<()> {
    let mut taken: LookupMap<&str, &str> = LookupMap::default();
    let mut collisions = Vec::new();
    for (name, before) in names.zip(archive.tensors()) {
        match taken.get(name) {
            Some(other) => collisions.push((name, *other, before.name())),
            None => drop(taken.insert(name, before.name())),
        }
    }
    if collisions.is_empty() {
        return Ok(());
    }
    let sentences = (collisions.iter()).map(|(name, first, second)| {
        let [first, second, name] = [first, second, name].map(|name| Quoted(name));
        format!("{first} and {second} would both become {name}")
    });
    Err(Error::argument(first_of(sentences)))
}
