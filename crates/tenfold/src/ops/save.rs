//! The short way to write files: the format by the name, and nothing lost.

use std::path::Path;

use crate::archive::{Archive, Values};
use crate::error::{Error, Result};
use crate::format::{Entry, Registry};
use crate::ops::{Conversion, ConvertOptions, Report};
use crate::prelude::*;

impl Archive {
    /// Writes the tensors and the metadata to a new file, in the format that its name says. The file appears whole or not at
    /// all, and replaces nothing; what the format would lose is an error that lists it.
    ///
    /// For anything else there are [`Conversion::prepare`] and [`ConvertOptions`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("model.safetensors");
    /// let mut b = tenfold::Archive::builder();
    /// b.tensor("w", [2, 3], vec![1f32; 6])?;
    /// b.meta("by", "me");
    /// b.finish().save(&path)?;
    /// assert_eq!(tenfold::Archive::open(&path)?.tensor("w")?.dims()?, [2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<Report> {
        let path = path.as_ref();
        let registry = Registry::standard();
        let target = by_name(path, &registry)?;
        Conversion::prepare(self, target, &ConvertOptions::default())?.write_file(path)
    }
}

/// Writes tensors that are in memory to a new file, in the format that its name says, as [`Archive::save`] does.
///
/// Vectors, arrays and slices are tensors of one dimension; [`Values::new`] gives them others. For metadata, streams
/// and the like, use [`Archive::builder`].
///
/// ```
/// use tenfold::Values;
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("model.safetensors");
/// tenfold::save(&path, [("bias", vec![0f32; 3]), ("scale", vec![1.0; 3])])?;
/// # let path = directory.path().join("other.safetensors");
/// tenfold::save(&path, [
///     ("w", Values::new([2, 3], vec![1f32; 6])),
///     ("steps", Values::from([1i64, 2])),
/// ])?;
/// # assert_eq!(tenfold::Archive::open(&path)?.tensor("w")?.dims()?, [2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn save<N: Into<String>, V: Into<Values>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (N, V)>,
) -> Result<Report> {
    let mut builder = Archive::builder();
    for (name, values) in tensors {
        builder.values(name, values)?;
    }
    builder.finish().save(path)
}

/// Writes a file, or all files of a directory, to a new file in the format that its name says, as [`Archive::save`] does.
///
/// ```no_run
/// tenfold::convert("model.gguf", "model.zt")?;
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn convert(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Report> {
    // Of a name that nobody can write nothing has to be read.
    by_name(to.as_ref(), &Registry::standard())?;
    Archive::open(from)?.save(to)
}

fn by_name<'r>(path: &Path, registry: &'r Registry) -> Result<&'r Entry> {
    let name = path.to_string_lossy();
    registry.by_extension(&name).ok_or_else(|| {
        let written = (registry.entries().iter()).filter(|entry| !entry.spec.writes.is_empty());
        let known: Vec<_> = written
            .filter_map(|entry| entry.spec.extensions.first())
            .map(|extension| format!(".{extension}"))
            .collect();
        let known = known.join(", ");
        Error::argument(format!(
            "{name}: its extension names no format; these do: {known}"
        ))
    })
}
