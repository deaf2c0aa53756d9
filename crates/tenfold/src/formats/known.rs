//! Formats that are recognized, so that a file of them is named, and not read yet.

use crate::format::{Entry, Spec};

const fn known(spec: &'static Spec) -> Entry {
    Entry { spec, codec: None }
}

pub(super) const HDF5: Entry = known(&Spec::known(
    "hdf5",
    "HDF5",
    &["h5", "hdf5"],
    &[(0, b"\x89HDF\r\n\x1a\n")],
));

/// Without a magic: known by its name alone.
pub(super) const ONNX: Entry = known(&Spec::known("onnx", "ONNX", &["onnx"], &[]));

/// Since 1.6 a zip archive, which is looked into; before, pickles behind each other, the first of which is this number.
/// `.bin` is a name of it too, and of too much else.
pub(super) const TORCH: Entry = known(&Spec::known(
    "torch",
    "PyTorch",
    &["pt", "pth"],
    &[(0, b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9")],
));

/// What a file of a format is that is not read, and what to do with it.
pub(crate) fn advice(id: &str) -> Option<(&'static str, &'static str)> {
    match id {
        "hdf5" => Some((
            "an HDF5 file",
            "read it with h5py and save its arrays with numpy.savez, or as safetensors",
        )),
        "onnx" => Some((
            "an ONNX model",
            "read its initializers with the onnx package and save them as safetensors",
        )),
        "torch" => Some((
            "a PyTorch checkpoint",
            "convert it with safetensors.torch.save_file(torch.load(FILE, weights_only=True), OUT)",
        )),
        _ => None,
    }
}
