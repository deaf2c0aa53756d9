//! Whose an archive is: several formats are zip archives, and this is the one place that tells them apart.

use core::ops::ControlFlow;

use super::Directory;
use crate::error::{ErrorKind, Result};
use crate::io::Source;

/// Bytes of a directory that are looked at where its first members are arrays.
const ENOUGH: u64 = 512;

/// What an archive holds, by the names of its members.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// NumPy's arrays.
    Arrays,
    /// A model of Keras.
    Keras,
    Nothing,
    Others,
    /// What `torch.save` writes.
    Torch,
    /// There is no directory that can be read.
    Unknown,
    /// A Zarr store.
    Zarr,
}

impl Kind {
    /// Looks through the directory until the members tell. A disk that fails is not an answer.
    pub(crate) fn of(source: &dyn Source) -> Result<Self> {
        let mut found = Found::default();
        let scanned = Directory::scan(source, &mut |name, read| {
            found.add(name);
            if found.is_telling() || found.array && read > ENOUGH {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        match scanned {
            Err(error) if error.kind() == ErrorKind::Io => Err(error),
            Err(_) => Ok(Self::Unknown),
            Ok(()) => Ok(found.kind()),
        }
    }
}

/// The members that were met.
#[derive(Default)]
struct Found {
    any: bool,
    array: bool,
    pickle: bool,
    weights: bool,
    config: bool,
    zarr: bool,
}

impl Found {
    fn add(&mut self, name: &str) {
        self.any = true;
        self.array |= name.ends_with(".npy");
        self.pickle |= torch_root(name).is_some();
        self.weights |= name == KERAS_WEIGHTS;
        self.config |= name == KERAS_CONFIG;
        self.zarr |= ["zarr.json", ".zarray", ".zgroup"].contains(&name);
    }

    fn is_telling(&self) -> bool {
        self.pickle && !self.begins_keras() || self.zarr || self.weights && self.config
    }

    /// Models of Keras have members at the top, and may have folders with anything in them.
    fn begins_keras(&self) -> bool {
        self.weights || self.config
    }

    fn kind(&self) -> Kind {
        if self.weights && self.config {
            Kind::Keras
        } else if self.pickle {
            Kind::Torch
        } else if self.zarr {
            Kind::Zarr
        } else if self.array {
            Kind::Arrays
        } else if self.any {
            Kind::Others
        } else {
            Kind::Nothing
        }
    }
}

/// The members that make an archive a model of Keras.
pub(crate) const KERAS_WEIGHTS: &str = "model.weights.h5";
pub(crate) const KERAS_CONFIG: &str = "config.json";
/// The pickle of `torch.save`, in the one folder of its archives.
pub(crate) const TORCH_PICKLE: &str = "data.pkl";

/// The folder of an archive of `torch.save`, if a member's name is that of its pickle.
pub(crate) fn torch_root(name: &str) -> Option<&str> {
    let root = name.strip_suffix(TORCH_PICKLE)?.strip_suffix('/')?;
    (!root.contains('/')).then_some(root)
}
