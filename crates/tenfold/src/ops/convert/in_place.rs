//! A conversion of a file to itself that changes its index alone.

use std::path::Path;

use super::Conversion;
use crate::archive::{Archive, OpenOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::io::{InPlace, Patch, Patched, Source};
use crate::model::{Manifest, TensorInfo, Value};
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
        if !(self.from.manifest().tensors.len() == stored.tensors.len()
            && (self.from.manifest().tensors.iter())
                .zip(&stored.tensors)
                .all(|(read, stored)| is_same_data(read, stored)))
        {
            return Err(self.needs_rewriting("its tensors would not stay as they are"));
        }
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
            let message = "a model of several files is not edited in place";
            return Err(Error::unsupported("in-place", message));
        }
        let path = from.path();
        let path = path.ok_or_else(|| Error::argument("there is no file to be edited"))?;
        let same = from.format().map(|spec| spec.id) == Some(self.format.spec().id);
        if !same || from.version() != self.profile.version {
            let spec = self.format.spec();
            let written = spec.with_version(self.profile.version);
            let message =
                format!("it would become {written}, and a file stays what it is in place");
            return Err(Error::unsupported("in-place", message));
        }
        Ok(path)
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
            return Err(self.needs_rewriting("its tensors would not stay as they are"));
        }
        let is_there = |(key, value): (&str, &Value)| match new.metadata().get(key) {
            Some(Value::Elsewhere(_)) => true,
            // Numbers need not be equal to themselves.
            Some(new) => new == value || format!("{new:?}") == format!("{value:?}"),
            None => false,
        };
        if wanted.metadata.iter().all(is_there) {
            Ok(())
        } else {
            Err(self.needs_rewriting("its metadata would not come back as it is"))
        }
    }

    fn needs_rewriting(&self, why: &str) -> Error {
        let message = format!("it cannot be edited in place: {why}");
        let error = Error::new(ErrorKind::Unsupported, "in-place", message);
        error.in_format(self.format.spec().id)
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
            same && a.role == b.role && a.payload.stored() == b.payload.stored()
        })
}
