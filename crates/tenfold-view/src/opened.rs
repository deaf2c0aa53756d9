//! An archive, and what was learned of it.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tenfold::model::Metadata;
use tenfold::ops::{self, FileExtents};
use tenfold::{Archive, Bytes, Error, Result, Tensor};

use crate::answer::Refusal;
use crate::query::Query;

type Open = Box<dyn Fn() -> Result<Archive> + Send + Sync>;

/// An archive that is opened when somebody asks about it. What takes long to find out is kept.
pub(crate) struct Opened {
    name: String,
    open: Open,
    archive: OnceLock<Result<Archive>>,
    metadata: OnceLock<Result<Arc<Metadata>>>,
    extents: OnceLock<Result<Vec<FileExtents>>>,
    /// The part that was undone last: who looks at some of its bytes goes on to the next.
    undone: Mutex<Option<((usize, usize), Bytes)>>,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("name", &self.name)
            .field("archive", &self.archive)
            .finish_non_exhaustive()
    }
}

impl Opened {
    pub(crate) fn new(name: &str, open: Open) -> Self {
        Self {
            name: name.to_owned(),
            open,
            archive: OnceLock::new(),
            metadata: OnceLock::new(),
            extents: OnceLock::new(),
            undone: Mutex::default(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What came of opening it, if somebody asked already.
    pub(crate) fn known(&self) -> Option<&Result<Archive>> {
        self.archive.get()
    }

    pub(crate) fn archive(&self) -> Result<&Archive, Refusal> {
        kept(self.archive.get_or_init(|| (self.open)()))
    }

    /// With the long lists.
    pub(crate) fn metadata(&self) -> Result<&Metadata, Refusal> {
        let archive = self.archive()?;
        let load = || Ok(Arc::new(archive.load_metadata()?.into_owned()));
        kept(self.metadata.get_or_init(load)).map(|metadata| &**metadata)
    }

    pub(crate) fn extents(&self) -> Result<&[FileExtents], Refusal> {
        let archive = self.archive()?;
        kept(self.extents.get_or_init(|| ops::extents(archive))).map(Vec::as_slice)
    }

    /// The tensor that a question names by its place.
    pub(crate) fn tensor(&self, query: &Query) -> Result<(usize, Tensor<'_>), Refusal> {
        let place = query.number("t")?;
        let archive = self.archive()?;
        let found = usize::try_from(place)
            .ok()
            .and_then(|place| Some((place, archive.tensor_at(place)?)));
        found.ok_or_else(|| Refusal::unknown(format!("there is no tensor {place}")))
    }

    /// The bytes of a part of a tensor that is in no one place, such as chunks.
    pub(crate) fn undone(&self, place: usize, part: usize) -> Result<Bytes, Refusal> {
        let mut undone = self.undone.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, bytes)) = &*undone
            && *known == (place, part)
        {
            return Ok(bytes.clone());
        }
        // The last one makes room before there are two of them.
        *undone = None;
        let tensor = self.archive()?.tensor_at(place);
        let tensor =
            tensor.ok_or_else(|| Refusal::unknown(format!("there is no tensor {place}")))?;
        let bytes = tensor.part(part)?;
        *undone = Some(((place, part), bytes.clone()));
        Ok(bytes)
    }

    /// The archive with one tensor alone.
    pub(crate) fn only(&self, query: &Query) -> Result<Archive, Refusal> {
        let (_, tensor) = self.tensor(query)?;
        let name = tensor.name();
        Ok(self.archive()?.select(|info| info.name == name))
    }
}

fn kept<T>(found: &Result<T>) -> Result<&T, Refusal> {
    found.as_ref().map_err(|error: &Error| error.clone().into())
}
