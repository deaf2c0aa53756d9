//! The formats: a folder each, and one line each in the table.

mod known;
pub mod mag;
pub mod tens;
pub mod ztensor;

use crate::format::Entry;

/// Every format that is known. Detection, the command, documentation and tests go through this table.
pub static FORMATS: &[Entry] = &[
    mag::ENTRY,
    ztensor::ENTRY,
    known::BURNPACK,
    known::PRIMITIV,
    tens::ENTRY,
    known::SAFETENSORS,
    known::GGUF,
    known::NPY,
    known::HDF5,
];
