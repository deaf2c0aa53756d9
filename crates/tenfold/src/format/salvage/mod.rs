//! Damaged files of which something is whole.

#[cfg(any(
    feature = "burnpack",
    feature = "gguf",
    feature = "mag",
    feature = "safetensors"
))]
mod cut_off;

#[cfg(any(
    feature = "burnpack",
    feature = "gguf",
    feature = "mag",
    feature = "safetensors"
))]
pub(crate) use cut_off::CutOff;

/// What can be done about such a file.
pub(crate) const HINT: &str = "; convert --salvage writes what is complete";
