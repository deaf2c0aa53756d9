//! Keras 3 models: a zip archive, a directory, or weights in several files.
//!
//! | part                | notes                                                                          |
//! |---------------------|--------------------------------------------------------------------------------|
//! | `metadata.json`     | `keras_version` and `date_saved`: the file's metadata                          |
//! | `config.json`       | the architecture; never interpreted                                            |
//! | `model.weights.h5`  | an HDF5 file, stored or deflated                                               |
//! | `assets/…`          | vocabularies and the like                                                      |
//! | `NAME.weights.json` | of weights in several files: which files (`NAME_00000.weights.h5`) a group is in |
//!
//! A tensor's name is its path in the HDF5 file, `layers/dense/vars/0`; the name that its layer has in the model is its
//! metadata `layer`, or stands in the path with the option `names=layer`. The architecture is metadata with the option
//! `config=true`. Nothing is written: a model needs its architecture. Refused are weights in other files, in `.npz`
//! form, and whatever is refused of zip archives and of HDF5 files. The rules are listed in `docs/formats/keras.md`.
//! Source: Keras 3.15.

#[cfg(feature = "keras")]
mod codec;
#[cfg(feature = "keras")]
mod layers;
#[cfg(feature = "keras")]
mod shards;

#[cfg(feature = "keras")]
use codec::Keras;

use crate::format::{Entry, Spec};

/// The row of the table of formats.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "keras")]
    codec: Some(&Keras),
    #[cfg(not(feature = "keras"))]
    codec: None,
};

/// What is known of the format without its codec.
pub static SPEC: Spec = Spec {
    reads: &["zip", "directory", "shards"],
    ..Spec::known("keras", "Keras", &["keras"], &[])
};

/// The member with the weights, and the one that every model has beside it.
#[cfg(feature = "keras")]
use crate::wire::zip::{KERAS_CONFIG as CONFIG, KERAS_WEIGHTS as WEIGHTS};
#[cfg(feature = "keras")]
const METADATA: &str = "metadata.json";
