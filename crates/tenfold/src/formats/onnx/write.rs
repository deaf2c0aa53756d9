//! A model that holds tensors and nothing else, and what is common to it and to a model that is written again.

use super::splice::{self, Splice};
use super::{V14, types};
use crate::error::{Error, Hint, Result};
use crate::format::{FilePlan, Plan, PlanOptions, Segment};
use crate::model::{Manifest, Map, Metadata, TensorInfo, Value};
use crate::prelude::*;
use crate::wire::protobuf::Encoder;

/// Protobuf counts the bytes of a message with 31 bits.
const MAX_MESSAGE: u64 = i32::MAX as u64;
/// More bytes of tensors than this go into a file of their own, so that there is room for everything else.
const MAX_INLINE: u64 = 1_900_000_000;
/// Tensors of fewer bytes stay in the model: programs look at them to find out shapes.
const MIN_EXTERNAL: u64 = 1024;
/// Data in a file of its own begins at a multiple of this, so that it can be mapped.
const PAGE: u64 = 4096;

/// The `ir_version` of a new model, and that of one with types of 2 or 6 bits.
const IR_VERSION: u64 = 10;
const IR_NEWEST: u64 = 14;

/// The version of the operators where none is said, and no node uses any.
const OPSET: i64 = 21;

/// Fields of a `TensorProto` that hold its data, or say where it is.
pub(super) const DATA_FIELDS: [u32; 9] = [4, 5, 6, 7, 9, 10, 11, 13, 14];

/// Where data goes.
pub(super) struct Data {
    /// The name of the file beside the model, where there may be one.
    file: Option<String>,
    /// Whether tensors that are in the model now go there too.
    all: bool,
    segments: Vec<Segment>,
    end: u64,
    /// Whether all data is to be in the model.
    none: bool,
}

impl Data {
    /// As the option says; without it, as it is, and in a file of its own where `inline` bytes would be too many.
    pub(super) fn new(options: &PlanOptions, inline: u64) -> Result<Self> {
        let usual = || format!("{}.data", options.file_name);
        let (file, all) = match options.option("external") {
            None => (Some(usual()), inline > MAX_INLINE),
            Some("none") => (None, false),
            Some(name) => {
                let is_plain =
                    !name.contains(['/', '\\', '\0', ':']) && !matches!(name, "" | "." | "..");
                if !is_plain || name == options.file_name {
                    return Err(options.wrong(
                        "external",
                        "expected none, or the name of another file without a folder",
                    ));
                }
                (Some(name.to_owned()), true)
            }
        };
        Ok(Self {
            none: file.is_none(),
            file,
            all,
            segments: Vec::new(),
            end: 0,
        })
    }

    /// Whether data of so many bytes goes into the file beside the model.
    pub(super) fn is_external(&self, len: u64, is_now: bool) -> bool {
        !self.none && len > 0 && (is_now && !self.all || self.all && len >= MIN_EXTERNAL)
    }

    /// Writes the data of a tensor: into its message, or into the other file with the place of it in the message.
    pub(super) fn write(
        &mut self,
        message: &mut Splice,
        (index, tensor): (usize, &TensorInfo),
        is_now: bool,
    ) -> Result<()> {
        let len = len(tensor)?;
        if !self.is_external(len, is_now) {
            message.fields(|fields| {
                fields.head(9, len);
            })?;
            return message.data(index, tensor.dtype, len);
        }
        let offset = self
            .end
            .checked_next_multiple_of(PAGE)
            .ok_or_else(|| too_large(tensor))?;
        self.end = offset.checked_add(len).ok_or_else(|| too_large(tensor))?;
        self.segments.push(Segment::Align { to: PAGE, fill: 0 });
        self.segments.push(splice::data(index, tensor.dtype));
        let location = self.file.clone().unwrap_or_default();
        message.fields(|fields| {
            pair(fields, 13, "location", &location);
            pair(fields, 13, "offset", &offset.to_string());
            pair(fields, 13, "length", &len.to_string());
            fields.number(14, 1);
        })
    }

    /// The files: the model, and the other one if there is anything in it.
    pub(super) fn plan(self, model: Splice, options: &PlanOptions) -> Result<Plan> {
        if model.len() > MAX_MESSAGE {
            let message = format!(
                "the model has {} bytes, protobuf reads 2 GiB at most",
                model.len()
            );
            let error = Error::unsupported("onnx.length", message);
            return Err(error.hinting(Hint::FormatOption {
                key: "external",
                value: "FILE",
                does: "writes the data to another file",
            }));
        }
        let mut plan = Plan::single(options.file_name.clone(), model.into_segments());
        if let (Some(name), false) = (self.file, self.segments.is_empty()) {
            plan.files.push(FilePlan::new(name, self.segments));
        }
        Ok(plan)
    }
}

/// A model for these tensors.
pub(super) fn plan(what: &Manifest, options: &PlanOptions) -> Result<Plan> {
    let mut inline = 0u64;
    for tensor in &what.tensors {
        inline = inline
            .checked_add(len(tensor)?)
            .ok_or_else(|| too_large(tensor))?;
    }
    let mut data = Data::new(options, inline)?;
    let metadata = &what.metadata;
    let mut graph = Splice::default();
    graph.fields(|fields| {
        match metadata.get("graph_name") {
            Some(_) => file_field(fields, metadata, 7),
            // The checker of onnx wants a name.
            None => {
                fields.bytes(2, b"tensors");
            }
        }
    })?;
    for (index, tensor) in what.tensors.iter().enumerate() {
        let mut message = Splice::default();
        message.fields(|fields| head(fields, tensor))?;
        data.write(&mut message, (index, tensor), false)?;
        graph.message(5, message)?;
    }
    let mut model = Splice::default();
    model.fields(|fields| {
        fields.number(1, newest(options).unwrap_or(IR_VERSION));
        for number in 2..=6 {
            file_field(fields, metadata, number);
        }
        if metadata.get("producer_name").is_none() {
            fields.bytes(2, b"tenfold");
        }
    })?;
    model.message(7, graph)?;
    model.fields(|fields| {
        match metadata.get("opset_import") {
            Some(_) => file_field(fields, metadata, 8),
            None => operators(fields, "", OPSET),
        }
        file_field(fields, metadata, 14);
    })?;
    data.plan(model, options)
}

/// The newest version, where it was asked for, or tensors need it.
pub(super) fn newest(options: &PlanOptions) -> Option<u64> {
    (options.version == V14).then_some(IR_NEWEST)
}

/// A tensor without its data.
fn head(fields: &mut Encoder, tensor: &TensorInfo) {
    for number in [1, 2, 8, 12, 16] {
        tensor_field(fields, tensor, number);
    }
}

/// One of the fields of a tensor that are not its data.
pub(super) fn tensor_field(fields: &mut Encoder, tensor: &TensorInfo, number: u32) {
    match number {
        1 => {
            for dim in &*tensor.shape {
                fields.number(1, *dim);
            }
        }
        2 => {
            // All types have numbers: the capabilities say so.
            let number = types::number(tensor.dtype).unwrap_or(0);
            fields.number(2, number.unsigned_abs().into());
        }
        8 => {
            fields.bytes(8, tensor.name.as_bytes());
        }
        12 => text(fields, 12, tensor.metadata.get("doc_string")),
        16 => pairs(fields, 16, tensor.metadata.get("metadata_props")),
        _ => {}
    }
}

/// One of the fields of a model that say something about the file; 7 is the name of its graph, as a field of that.
pub(super) fn file_field(fields: &mut Encoder, metadata: &Metadata, number: u32) {
    let value = metadata.get(super::key_of(number));
    match (number, value) {
        (5, Some(value)) => {
            if let Some(version) = value.as_i64() {
                fields.number(5, version.cast_unsigned());
            }
        }
        (7, value) => text(fields, 2, value),
        (8, Some(Value::Map(map))) => {
            for (domain, version) in map.iter() {
                operators(fields, domain, version.as_i64().unwrap_or(0));
            }
        }
        (14, value) => pairs(fields, 14, value),
        (number, value) => text(fields, number, value),
    }
}

fn operators(fields: &mut Encoder, domain: &str, version: i64) {
    fields.message(8, |entry| {
        if !domain.is_empty() {
            entry.bytes(1, domain.as_bytes());
        }
        entry.number(2, version.cast_unsigned());
    });
}

fn text(fields: &mut Encoder, number: u32, value: Option<&Value>) {
    match value {
        Some(Value::Str(text)) => {
            fields.bytes(number, text.as_bytes());
        }
        Some(Value::Bytes(bytes)) => {
            fields.bytes(number, bytes);
        }
        _ => {}
    }
}

fn pairs(fields: &mut Encoder, number: u32, value: Option<&Value>) {
    let empty = Map::new();
    let map = match value {
        Some(Value::Map(map)) => map,
        _ => &empty,
    };
    for (key, value) in map.iter() {
        pair(fields, number, key, value.as_str().unwrap_or_default());
    }
}

fn pair(fields: &mut Encoder, number: u32, key: &str, value: &str) {
    fields.message(number, |entry| {
        entry.bytes(1, key.as_bytes()).bytes(2, value.as_bytes());
    });
}

/// Bytes of a tensor.
pub(super) fn len(tensor: &TensorInfo) -> Result<u64> {
    tensor.dense_len().ok_or_else(|| too_large(tensor))
}

fn too_large(tensor: &TensorInfo) -> Error {
    let error = Error::unsupported("onnx.length", "its end does not fit 64 bits");
    error.in_tensor(&tensor.name)
}
