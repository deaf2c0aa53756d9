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
