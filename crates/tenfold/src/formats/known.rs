//! Formats that are recognized, so that a file of them is named, and not read yet.

use crate::format::{Entry, Spec};

const fn known(spec: &'static Spec) -> Entry {
    Entry { spec, codec: None }
}

/// Without a magic: known by its name alone.
pub(super) const ONNX: Entry = known(&Spec {
    advice: Some((
        "an ONNX model",
        "read its initializers with the onnx package and save them as safetensors",
    )),
    ..Spec::known("onnx", "ONNX", &["onnx"], &[])
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
