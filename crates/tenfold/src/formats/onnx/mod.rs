//! ONNX: the tensors of a model file, which is one protobuf message.
//!
//! | message        | fields that are read                                                                             |
//! |----------------|--------------------------------------------------------------------------------------------------|
//! | `ModelProto`   | 1 ir_version, 2 producer_name, 3 producer_version, 4 domain, 5 model_version, 6 doc_string, 7 graph, 8 opset_import, 14 metadata_props, 25 functions |
//! | `GraphProto`   | 1 node, 2 name, 5 initializer, 15 sparse_initializer                                             |
//! | `TensorProto`  | 1 dims, 2 data_type, 3 segment, 8 name, 9 raw_data, 12 doc_string, 13 external_data, 14 data_location, 16 metadata_props; typed data in 4 float_data, 5 int32_data, 6 string_data, 7 int64_data, 10 double_data, 11 uint64_data |
//!
//! Fields come in any order, repeated ones packed or not, and a message that is there twice is merged, as protobuf has it.
//! Data is little-endian and row-major, in `raw_data`, in one of the typed fields, or in files beside the model
//! (`external_data`).
//!
//! The tensors are those of `graph.initializer`, in file order. Options list constants of nodes, of subgraphs and of
//! functions, and sparse initializers. The graph itself is not interpreted: a model that is written again keeps every byte
//! of it that is not part of a tensor which changed. Tensors of other files become a model without nodes.
//!
//! Refused are strings, segments, data in two places or of a wrong size, and paths that lead out of the directory. The rules
//! are listed in `docs/formats/onnx.md`. Source: `onnx.proto` of onnx 1.23, and what its Python package does.

#[cfg(feature = "onnx")]
mod arrange;
mod capability;
#[cfg(feature = "onnx")]
mod codec;
#[cfg(feature = "onnx")]
mod external;
#[cfg(feature = "onnx")]
mod graph;
#[cfg(feature = "onnx")]
mod raw;
#[cfg(feature = "onnx")]
mod rewrite;
#[cfg(feature = "onnx")]
mod sparse;
#[cfg(feature = "onnx")]
mod splice;
#[cfg(feature = "onnx")]
mod tensor;
#[cfg(feature = "onnx")]
mod typed;
mod types;
#[cfg(feature = "onnx")]
mod uses;
#[cfg(feature = "onnx")]
mod write;

#[cfg(feature = "onnx")]
use codec::Onnx;

use crate::format::{Entry, OptionSpec, Profile, Spec, written};
use capability::{capabilities, is_any, is_usual};

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "onnx")]
    codec: Some(&Onnx),
    #[cfg(not(feature = "onnx"))]
    codec: None,
};

/// The facts about ONNX.
pub static SPEC: Spec = Spec {
    reads: &["ir_version 1 and later"],
    writes: written(WRITES),
    options: &[OptionSpec {
        key: "external",
        value: "FILE|none",
        help: "data goes to this file beside the model, or into it (default: as before; beyond 1.9 GB to OUT.data)",
    }],
    ..Spec::known("onnx", "ONNX", &["onnx"], &[])
};

/// The versions that are written.
const WRITES: &[Profile] = &[
    Profile {
        version: V10,
        read_by: "onnx 1.16 and later, onnxruntime 1.18 and later",
        can: capabilities(is_usual),
    },
    Profile {
        version: V14,
        read_by: "onnx 1.23 and later; onnxruntime 1.31 reads versions up to 13",
        can: capabilities(is_any),
    },
];

/// The version of a new model, and that of one with types of 2 or 6 bits.
const V10: &str = "ir_version 10";
const V14: &str = "ir_version 14";

/// The key of the file's metadata for a field of the model; that of field 7 is the name of the graph.
#[cfg(feature = "onnx")]
fn key_of(field: u32) -> &'static str {
    match field {
        1 => "ir_version",
        2 => "producer_name",
        3 => "producer_version",
        4 => "domain",
        5 => "model_version",
        6 => "doc_string",
        7 => "graph_name",
        8 => "opset_import",
        14 => "metadata_props",
        _ => "",
    }
}
