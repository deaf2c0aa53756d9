//! TensorFlow Lite's models (`.tflite`): the constants of a FlatBuffer with the identifier `TFL3`.
//!
//! | table        | fields that are read                                                                             |
//! |--------------|--------------------------------------------------------------------------------------------------|
//! | Model        | 0 version (3), 2 subgraphs, 3 description, 4 buffers, 6 metadata                                 |
//! | SubGraph     | 0 tensors                                                                                        |
//! | Tensor       | 0 shape, 1 type, 2 buffer, 3 name, 4 quantization, 6 sparsity                                    |
//! | Quantization | 2 scale, 3 zero_point, 6 quantized_dimension                                                     |
//! | Buffer       | 0 data, 1 offset, 2 size                                                                         |
//! | Metadata     | 0 name                                                                                           |
//!
//! A tensor is listed if its buffer has data, in the buffer or at an offset of the file; the others are activations. Tensors
//! of one subgraph may have the same name: those get `#` and their place behind it. With several subgraphs names begin
//! with the number of theirs. Quantized tensors are integers, with their scales as metadata and a decoder. Read only.
//! The rules are listed in `docs/formats/tflite.md`. Source: the schema of TensorFlow 2.21 and the behaviour of its
//! interpreter.

#[cfg(feature = "tflite")]
mod codec;
#[cfg(feature = "tflite")]
mod quantization;

#[cfg(feature = "tflite")]
use codec::TfLite;

use crate::format::{Entry, Spec};

/// The row of the table of formats.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "tflite")]
    codec: Some(&TfLite),
    #[cfg(not(feature = "tflite"))]
    codec: None,
};

/// What is known of the format without its codec.
pub static SPEC: Spec = Spec {
    reads: &["3"],
    ..Spec::known("tflite", "TensorFlow Lite", &["tflite"], &[(4, b"TFL3")])
};
