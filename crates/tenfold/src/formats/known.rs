//! Formats that are recognized, so that a file of them is named, and not read yet.

use crate::format::{Entry, Spec};

const fn known(spec: &'static Spec) -> Entry {
    Entry { spec, codec: None }
}

pub(super) const HDF5: Entry = known(&Spec {
    advice: Some((
        "an HDF5 file",
        "read it with h5py and save its arrays with numpy.savez, or as safetensors",
    )),
    ..Spec::known(
        "hdf5",
        "HDF5",
        &["h5", "hdf5"],
        &[(0, b"\x89HDF\r\n\x1a\n")],
    )
});

/// Since 1.6 a zip archive, which is looked into; before, pickles behind each other, the first of which is this number.
/// `.bin` is a name of it too, and of too much else.
pub(super) const TORCH: Entry = known(&Spec {
    advice: Some((
        "a PyTorch checkpoint",
        "convert it with safetensors.torch.save_file(torch.load(FILE, weights_only=True), OUT)",
    )),
    ..Spec::known(
        "torch",
        "PyTorch",
        &["pt", "pth"],
        &[(0, b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9")],
    )
});
