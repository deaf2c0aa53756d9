//! A conversion of a file to itself that changes its index alone.

use std::path::Path;

use super::Conversion;
use crate::archive::{Archive, OpenOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::io::{DirectorySiblings, InPlace, Patch, Patched, Siblings, Source};
use crate::model::{Manifest, Metadata, TensorInfo, Value};
use crate::prelude::*;

/// What an edit in place did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct EditedInPlace {
    /// Bytes of the file that were written.
    pub written: u64,
    /// How long the file is now.
    pub len: u64,
}

impl Conversion {
    /// Changes the file that was read instead of writing another one: names and metadata, with the data of all tensors where
    /// it is. Where the new index does not fit, that is an error, and nothing was changed.
    ///
    /// Until it is done, a journal beside the file (`.NAME.tenfold-undo`) holds what is overwritten. If the program is killed
    /// meanwhile, this library reads the file as it was, and the next edit puts it back. Other programs may see some of
    /// both. With `sync` all of this holds for power failures, too.
    ///
    /// ```
    /// use tenfold::format::Registry;
    /// use tenfold::ops::{self, Conversion, ConvertOptions};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("model.safetensors");
    /// let registry = Registry::standard();
    /// let format = registry.get("safetensors")?;
    /// let mut b = tenfold::Archive::builder();
    /// b.tensor("x", [2], [1f32, 2.0])?;
    /// let options = ConvertOptions::new().option("reserve", "1000");
    /// Conversion::prepare(&b.finish(), format, &options)?.write_file(&path)?;
    ///
    /// let archive = tenfold::Archive::open(&path)?;
    /// let renamed = ops::rename(&archive, |_| Some("y".into()))?;
    /// Conversion::prepare(&renamed, format, &ConvertOptions::new())?.edit_in_place(true)?;
    /// assert!(tenfold::Archive::open(&path)?.get("y").is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn edit_in_place(self, sync: bool) -> Result<EditedInPlace> {
        self.refuse_losses()?;
        let path = self.one_file()?.to_owned();
        let name = path.file_name().map(|name| name.to_string_lossy());
        let name = name.unwrap_or_default();
        let edit = InPlace::begin(&path, sync)?;
        let file = edit.source()?;
        let stored = self.describe(file.clone(), &name)?.manifest().clone();
        if !says_the_same(self.source.manifest_as_read(), &stored) {
            let message = format!("{} changed since it was read; try again", path.display());
            return Err(Error::mismatch("changed", message));
        }
        if !is_same_content(self.from.manifest(), &stored) {
            return Err(self.needs_rewriting("its tensors would change"));
        }
        self.refuse_indexed(&path, &stored)?;
        let options = self.plan_options(&name);
        let patches = (self.format)
            .amend(&self.adapted, &stored, file.len(), &options)
            .map_err(|error| error.in_format(self.format.spec().id))?;
        let len = patches.iter().map(Patch::end).fold(file.len(), u64::max);
        self.check(&stored, &patches, file, len, &name)?;
        let written = patches.iter().map(|patch| patch.bytes.len() as u64).sum();
        edit.write(patches)?;
        Ok(EditedInPlace { written, len })
    }

    /// The file that was read, if it is one, of the format and version that is written.
    fn one_file(&self) -> Result<&Path> {
        let from = &self.source;
        if from.source_count() > 1 || from.path().is_some_and(|path| !path.is_file()) {
            let message = "only a single file can be edited in place, not a model of several";
            return Err(Error::unsupported("in-place", message));
        }
        let path = from.path();
        let path = path.ok_or_else(|| Error::argument("there is no file to edit"))?;
        let same = from.format().map(|spec| spec.id) == Some(self.format.spec().id);
        if !same || from.version() != self.profile.version {
            let spec = self.format.spec();
            let written = spec.with_version(self.profile.version);
            let message =
                format!("it would become {written}; in place, a file keeps its format and version");
            return Err(Error::unsupported("in-place", message));
        }
        Ok(path)
    }

    /// Refuses other names in a file whose tensors an index beside it names.
    fn refuse_indexed(&self, path: &Path, stored: &Manifest) -> Result<()> {
        let mut names = self.adapted.tensors.iter().zip(&stored.tensors);
        if names.all(|(new, old)| new.name == old.name) {
            return Ok(());
        }
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Ok(());
        };
        let options = OpenOptions::new().registry(self.options.registry.clone());
        let beside = DirectorySiblings::of(path);
        let names = beside.names()?.unwrap_or_default().into_iter();
        for index in names.filter(|beside| self.format.is_index(beside)) {
            // One that cannot be opened leads to no tensor of this file.
            let Ok(model) = options.open(path.with_file_name(&index)) else {
                continue;
            };
            if model.sources().any(|(source, _)| source == Some(name)) {
                let message = format!(
                    "{index} lists the tensors of {name} by their names, and would no longer match; rename the whole model into another directory"
                );
                return Err(Error::unsupported("in-place", message));
            }
        }
        Ok(())
    }

    fn describe(&self, file: Arc<dyn Source>, name: &str) -> Result<Archive> {
        let options = OpenOptions::new()
            .registry(self.options.registry.clone())
            .limits(*self.from.limits())
            .format(Some(self.format.spec().id));
        options.read(file, Some(name))
    }

    /// Reads the file as it will be, before it is.
    fn check(
        &self,
        stored: &Manifest,
        patches: &[Patch],
        file: Arc<dyn Source>,
        len: u64,
        name: &str,
    ) -> Result<()> {
        let patched = Patched::new(file, patches.to_vec(), len);
        let new = self.describe(Arc::new(patched), name)?;
        let wanted = &self.adapted;
        let mut tensors = wanted.tensors.iter().zip(&stored.tensors);
        let all = tensors.all(|(wanted, stored)| {
            let new = new.get(&wanted.name);
            new.is_some_and(|new| is_same_data(new.info(), stored))
        });
        if !all || new.tensors().len() != wanted.tensors.len() {
            return Err(self.needs_rewriting("its tensors would change"));
        }
        let is_there = |(key, value): (&str, &Value)| match new.metadata().get(key) {
            Some(Value::Elsewhere(_)) => true,
            Some(new) => is_same_value(new, value),
            None => false,
        };
        if wanted.metadata.iter().all(is_there) {
            Ok(())
        } else {
            Err(self.needs_rewriting("its metadata would change"))
        }
    }

    fn needs_rewriting(&self, why: &str) -> Error {
        let message = format!("cannot edit it in place: {why}");
        let error = Error::new(ErrorKind::Unsupported, "in-place", message);
        error.in_format(self.format.spec().id)
    }
}

/// Whether two descriptions of a file have the same tensors, at the same places.
fn is_same_content(a: &Manifest, b: &Manifest) -> bool {
    let mut tensors = a.tensors.iter().zip(&b.tensors);
    a.tensors.len() == b.tensors.len() && tensors.all(|(a, b)| is_same_data(a, b))
}

/// Whether two descriptions of a file say the same, names and metadata too: then nobody edited it in between.
fn says_the_same(a: &Manifest, b: &Manifest) -> bool {
    let mut tensors = a.tensors.iter().zip(&b.tensors);
    is_same_content(a, b)
        && has_same_entries(&a.metadata, &b.metadata)
        && tensors.all(|(a, b)| a.name == b.name && has_same_entries(&a.metadata, &b.metadata))
}

fn has_same_entries(a: &Metadata, b: &Metadata) -> bool {
    let mut entries = a.iter().zip(b.iter());
    a.iter().count() == b.iter().count()
        && entries.all(|(a, b)| a.0 == b.0 && is_same_value(a.1, b.1))
}

/// Numbers need not be equal to themselves. What was not loaded stays where it is.
fn is_same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Elsewhere(a), Value::Elsewhere(b)) => (a.count, &a.range) == (b.count, &b.range),
        _ => a == b || format!("{a:?}") == format!("{b:?}"),
    }
}

/// Whether the same bytes at the same place stand for the same numbers.
fn is_same_data(a: &TensorInfo, b: &TensorInfo) -> bool {
    let mut parts = a.parts.iter().zip(&b.parts);
    (a.dtype, &a.shape, &a.layout) == (b.dtype, &b.shape, &b.layout)
        && a.parts.len() == b.parts.len()
        && a.defect.is_none() == b.defect.is_none()
        && parts.all(|(a, b)| {
            let same = (a.dtype, a.endian, &a.checksum) == (b.dtype, b.endian, &b.checksum);
            let place = |part: &crate::model::Part| (part.payload.stored(), part.payload.within());
            same && a.role == b.role && place(a) == place(b)
        })
}
