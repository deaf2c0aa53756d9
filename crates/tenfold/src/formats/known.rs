//! Formats that are recognized by their magic, so that a file of them is named, and not read yet.

use crate::format::{Entry, Spec};

const fn known(spec: &'static Spec) -> Entry {
    Entry { spec, codec: None }
}

pub(super) const BURNPACK: Entry = known(&Spec::known(
    "burnpack",
    "Burnpack",
    &["bpk"],
    &[(0, b"NRUB")],
));
pub(super) const PRIMITIV: Entry = known(&Spec::known(
    "primitiv",
    "primitiv",
    &["primitiv"],
    &[(0, b"\xce\0\0\0\0\xce\0\0\0\x01\xce")],
));
pub(super) const SAFETENSORS: Entry = known(&Spec::known(
    "safetensors",
    "safetensors",
    &["safetensors"],
    &[(8, b"{\"")],
));
pub(super) const GGUF: Entry = known(&Spec::known("gguf", "GGUF", &["gguf"], &[(0, b"GGUF")]));
pub(super) const NPY: Entry = known(&Spec::known("npy", "NumPy", &["npy"], &[(0, b"\x93NUMPY")]));
pub(super) const HDF5: Entry = known(&Spec::known(
    "hdf5",
    "HDF5",
    &["h5", "hdf5"],
    &[(0, b"\x89HDF\r\n\x1a\n")],
));
