//! Between a model and the description of its constants.

use super::SPEC;
use super::quantization::{self, Quantization};
use crate::error::{Error, Hint, Result};
use crate::format::{Context, Format, Spec};
use crate::model::{
    DType, Lanes, Layout, Manifest, Part, Payload, Role, Scalar, Shape, TensorInfo, Value,
    element_count,
};
use crate::prelude::*;
use crate::wire::flatbuffer::{Buffer, Rules, Table, Vector};

const RULES: Rules = Rules {
    truncated: "tflite.truncated",
    offset: "tflite.offset",
    vtable: "tflite.vtable",
    utf8: "tflite.utf8",
};

/// The version of the schema.
const VERSION: u32 = 3;
/// What may be made of a file of any length, and for every byte of it that was not read before.
const FREE: u64 = 12 << 20;
const FOR_A_BYTE: u64 = 16;
/// What is made for a tensor, at most, beside its name and its scales, and bytes that describe one.
const TENSOR: u64 = 700;
const DESCRIPTION: u64 = 64;
/// Tensors may have so many bytes together without a limit, and so many times those of the file.
const MOST_SHARED: u64 = 1 << 30;
const SHARED: u64 = 64;

/// `TensorType` and the type of elements; strings have none.
const TYPES: &[(u8, DType)] = &[
    (0, DType::F32),
    (1, DType::F16),
    (2, DType::I32),
    (3, DType::U8),
    (4, DType::I64),
    (6, DType::BOOL),
    (7, DType::I16),
    (8, DType::C64),
    (9, DType::I8),
    (10, DType::F64),
    (11, DType::C128),
    (12, DType::U64),
    (15, DType::U32),
    (16, DType::U16),
    (17, DType::Number(Scalar::I4, Lanes::Real)),
    (18, DType::BF16),
    (19, DType::Number(Scalar::I2, Lanes::Real)),
    (20, DType::Number(Scalar::U4, Lanes::Real)),
];
const STRING: u8 = 5;

/// Reads TensorFlow Lite's models.
#[derive(Clone, Copy, Debug)]
pub(super) struct TfLite;

impl Format for TfLite {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        let source = cx.source();
        let buffer = Buffer::new(source, RULES);
        let root = buffer.root()?;
        let version = buffer.number_u32(root, 0)?;
        if version != VERSION {
            let message = format!("version {version} of the schema, {VERSION} is known");
            return Err(Error::unsupported("tflite.version", message).at(root.at..root.at + 4));
        }
        let mut model = Model {
            file: source.len(),
            header: cx.limits().header_bytes,
            rank: cx.limits().rank,
            buffers: Vec::new(),
            ledger: Ledger {
                seen: LookupMap::default(),
                budget: FREE,
                read: 0,
                limit: cx.limits().header_bytes,
            },
            total: 0,
            activations: 0,
            scaled: None,
            manifest: Manifest::new("3"),
            buffer,
        };
        model.read(root)?;
        model.remark(cx)?;
        let Model {
            mut manifest, file, ..
        } = model;
        manifest.region_of_rest(file, "model");
        Ok(manifest)
    }
}

/// A model as far as it has been read.
struct Model<'a> {
    buffer: Buffer<'a>,
    file: u64,
    /// The limits on headers and on dimensions.
    header: u64,
    rank: usize,
    /// The data of every buffer, and whether it is behind the tables.
    buffers: Vec<(Option<Range<u64>>, bool)>,
    ledger: Ledger,
    /// Bytes of all tensors.
    total: u64,
    activations: u64,
    /// How many tensors that are no integers have scales, and where the first ones are.
    scaled: Option<(u64, u64)>,
    manifest: Manifest,
}

impl Model<'_> {
    fn read(&mut self, root: Table) -> Result<()> {
        self.buffers(root)?;
        if let Some((text, _)) = self.buffer.text(root, 3, self.header, "the description")?
            && !text.is_empty()
        {
            self.manifest.metadata.push("description", Value::Str(text));
        }
        let mut names = Vec::new();
        for entry in self.buffer.tables(root, 6, "the metadata")? {
            let name = self
                .buffer
                .text(entry?, 0, self.header, "a name of metadata")?;
            if let Some((name, place)) = name {
                self.ledger
                    .spend(place.start, name.len() as u64 + 32, name.len() as u64)?;
                names.push(Value::Str(name));
            }
        }
        if !names.is_empty() {
            self.manifest
                .metadata
                .push("metadata", Value::List(names.into()));
        }
        let subgraphs = self.buffer.tables(root, 2, "the subgraphs")?;
        let subgraphs: Vec<Table> = subgraphs.collect::<Result<_>>()?;
        if subgraphs.is_empty() {
            let message = "a model without subgraphs";
            return Err(Error::malformed("tflite.subgraph", message).at(root.at..root.at + 4));
        }
        let is_single = subgraphs.len() == 1;
        for (number, subgraph) in subgraphs.iter().enumerate() {
            let prefix = if is_single {
                String::new()
            } else {
                format!("{number}/")
            };
            self.subgraph(*subgraph, &prefix)?;
        }
        let count = Value::U64(subgraphs.len() as u64);
        self.manifest.metadata.push_fact("subgraphs", count);
        let activations = Value::U64(self.activations);
        self.manifest.metadata.push_fact("activations", activations);
        self.unique_names()
    }

    fn buffers(&mut self, root: Table) -> Result<()> {
        for table in self.buffer.tables(root, 4, "the buffers")? {
            let table = table?;
            let inside = self.buffer.vector(table, 0, 1, "the data of a buffer")?;
            let inside = inside.filter(|data| data.count > 0).map(|data| data.range);
            let (offset, size) = (
                self.buffer.number_u64(table, 1)?,
                self.buffer.number_u64(table, 2)?,
            );
            let place = match inside {
                Some(range) => (Some(range), false),
                None if offset > 1 && size > 0 => {
                    let end = offset.checked_add(size).filter(|end| *end <= self.file);
                    let Some(end) = end else {
                        let message = format!(
                            "a buffer of {size} bytes at byte {offset}, the file has {}",
                            self.file
                        );
                        return Err(Error::malformed("tflite.truncated", message)
                            .at(table.at..table.at + 4));
                    };
                    (Some(offset..end), true)
                }
                None => (None, false),
            };
            push_tight(&mut self.buffers, place);
        }
        Ok(())
    }

    fn subgraph(&mut self, subgraph: Table, prefix: &str) -> Result<()> {
        let mut counts: LookupMap<String, u32> = LookupMap::default();
        for tensor in self.buffer.tables(subgraph, 0, "the tensors")? {
            let tensor = tensor?;
            let text = self
                .buffer
                .text(tensor, 3, self.header, "the name of a tensor")?;
            let (name, place) = text.unwrap_or_default();
            let len = name.len() as u64;
            self.ledger.spend(place.start, len + 64, len)?;
            *counts.entry(name).or_default() += 1;
        }
        let tensors = self.buffer.tables(subgraph, 0, "the tensors")?.enumerate();
        // What is borrowed is read again tensor by tensor.
        let tensors: Vec<(usize, Table)> = tensors
            .map(|(index, tensor)| Ok((index, tensor?)))
            .collect::<Result<_>>()?;
        for (index, tensor) in tensors {
            let place = self.buffer.number_u32(tensor, 2)?;
            let data = usize::try_from(place)
                .ok()
                .and_then(|place| self.buffers.get(place));
            // A model without any buffer has activations alone.
            let data = match (data, place) {
                (Some((data, _)), _) => data.clone(),
                (None, 0) => None,
                (None, place) => {
                    let message = format!(
                        "tensor {index} has buffer {place} of {}",
                        self.buffers.len()
                    );
                    return Err(
                        Error::malformed("tflite.buffer", message).at(tensor.at..tensor.at + 4)
                    );
                }
            };
            let Some(data) = data else {
                self.activations += 1;
                continue;
            };
            let text = self
                .buffer
                .text(tensor, 3, self.header, "the name of a tensor")?;
            let own = text.map(|(name, _)| name).unwrap_or_default();
            let is_unique = counts.get(&own) == Some(&1) && !own.is_empty();
            let name = if is_unique {
                format!("{prefix}{own}")
            } else {
                format!("{prefix}{own}#{index}")
            };
            let len = name.len() as u64;
            self.ledger
                .spend(tensor.at, TENSOR + 2 * len, DESCRIPTION + len)?;
            self.tensor(tensor, name.clone(), data)
                .map_err(|error| error.in_tensor(&name))?;
        }
        Ok(())
    }

    fn tensor(&mut self, table: Table, name: String, data: Range<u64>) -> Result<()> {
        let shape = self.shape(table)?;
        let kind = self.buffer.number_u8(table, 1)?;
        if kind == STRING {
            let texts = self.strings(data)?;
            self.manifest.metadata.push(name, texts);
            return Ok(());
        }
        let known = TYPES.iter().find(|(number, _)| *number == kind);
        let dtype = known.map_or(DType::UNKNOWN, |(_, dtype)| *dtype);
        let len = self.len(&shape, dtype, table)?;
        let mut tensor = TensorInfo::new(name, dtype, shape, Layout::RowMajor);
        let found = data.end - data.start;
        let is_sparse = self
            .buffer
            .inner(table, 6, "the sparsity of a tensor")?
            .is_some();
        let at = table.at..table.at + 4;
        tensor.defect = if known.is_none() {
            let message = match kind {
                13 => "its type is a resource, which has no elements".to_owned(),
                14 => "its type is a variant, which has no elements".to_owned(),
                kind => format!("type {kind}, 0 to 20 are known"),
            };
            Some(Error::unsupported("tflite.type", message).at(at))
        } else if is_sparse {
            let message = "it is sparse, which is not read";
            Some(Error::unsupported("tflite.sparsity", message).at(at))
        } else if found != len {
            let message = format!(
                "its buffer has {found} bytes, {dtype} of {:?} has {len}",
                tensor.shape
            );
            Some(Error::malformed("tflite.size", message).at(data.clone()))
        } else {
            None
        };
        self.total = self.total.saturating_add(found);
        let limit = MOST_SHARED.max(self.file.saturating_mul(SHARED));
        if self.total > limit {
            let message = format!("tensors that share buffers have more than {limit} bytes");
            return Err(Error::limit("tflite.limit", message)
                .at(data)
                .hinting(Hint::Exclude));
        }
        tensor.parts = Part::new(Role::Values, dtype, Payload::main(data)).into();
        self.quantization(table, &mut tensor)?;
        push_tight(&mut self.manifest.tensors, tensor);
        Ok(())
    }

    fn shape(&self, table: Table) -> Result<Shape> {
        let mut shape = Shape::new();
        let Some(vector) = self.buffer.vector(table, 0, 4, "a shape")? else {
            return Ok(shape);
        };
        if vector.count > self.rank as u64 {
            let message = format!("{} dimensions, the limit is {}", vector.count, self.rank);
            let error = Error::limit("tflite.rank", message).at(vector.range);
            return Err(error.raised_by("rank", vector.count));
        }
        for dim in self.buffer.bytes(vector.range.clone())?.chunks_exact(4) {
            let dim = dim
                .first_chunk()
                .map_or(0, |bytes| i32::from_le_bytes(*bytes));
            let Ok(dim) = u64::try_from(dim) else {
                let message = format!("a dimension of {dim}, expected a number from 0");
                return Err(Error::malformed("tflite.shape", message).at(vector.range));
            };
            shape.push(dim);
        }
        Ok(shape)
    }

    /// Bytes of a tensor; of one of an unknown type, its elements.
    fn len(&self, shape: &[u64], dtype: DType, table: Table) -> Result<u64> {
        let dtype = if dtype == DType::UNKNOWN {
            DType::U8
        } else {
            dtype
        };
        // Other sizes count beside one of 0.
        let others: Vec<u64> = shape.iter().copied().filter(|dim| *dim > 0).collect();
        let most = element_count(&others).and_then(|count| dtype.bytes_for(count));
        let len = element_count(shape).and_then(|count| dtype.bytes_for(count));
        match (len, most) {
            (Some(len), Some(_)) => Ok(len),
            _ => {
                let message = format!("shape {shape:?} has more bytes than 64 bits can count");
                Err(Error::malformed("tflite.overflow", message).at(table.at..table.at + 4))
            }
        }
    }

    fn quantization(&mut self, table: Table, tensor: &mut TensorInfo) -> Result<()> {
        let Some(said) = self
            .buffer
            .inner(table, 4, "the quantization of a tensor")?
        else {
            return Ok(());
        };
        let scale = self.list(said, 2, 4, "scales")?;
        let zero_point = self.list(said, 3, 8, "zero points")?;
        if scale.is_empty() {
            return Ok(());
        }
        let number = |bytes: &[u8]| {
            bytes
                .first_chunk()
                .map_or(0.0, |bytes| f32::from_le_bytes(*bytes))
        };
        let scale = scale.chunks_exact(4).map(number).collect();
        let number = |bytes: &[u8]| {
            bytes
                .first_chunk()
                .map_or(0, |bytes| i64::from_le_bytes(*bytes))
        };
        let zero_point = zero_point.chunks_exact(8).map(number).collect();
        let quantized_dimension = self.buffer.number_u32(said, 6)?;
        let quantization = Quantization {
            scale,
            zero_point,
            quantized_dimension,
        };
        tensor.metadata = quantization.metadata();
        if !quantization::is_integer(tensor.dtype) {
            let (count, first) = self.scaled.take().unwrap_or((0, said.at));
            self.scaled = Some((count + 1, first));
            return Ok(());
        }
        match quantization.fault(&tensor.shape) {
            None => tensor.decoder = Some(Arc::new(quantization)),
            Some(fault) if tensor.defect.is_none() => {
                let error = Error::malformed("tflite.quantization", fault);
                tensor.defect = Some(error.at(said.at..said.at + 4));
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// The bytes of a list of numbers.
    fn list(
        &mut self,
        table: Table,
        index: u64,
        width: u64,
        what: &'static str,
    ) -> Result<bytes::Bytes> {
        let Some(Vector { range, count }) = self.buffer.vector(table, index, width, what)? else {
            return Ok(bytes::Bytes::new());
        };
        let len = count * width;
        // Once as numbers, and once as metadata, which grows.
        self.ledger.spend(range.start, 4 * len, len)?;
        self.buffer.bytes(range)
    }

    /// The texts of a tensor of strings: a count, offsets from the beginning of the buffer, and bytes.
    fn strings(&mut self, data: Range<u64>) -> Result<Value> {
        let len = data.end - data.start;
        if len > self.header {
            let message = format!(
                "strings of {len} bytes, the limit for headers is {}",
                self.header
            );
            let error = Error::limit("tflite.limit", message).at(data);
            return Err(error.raised_by("header_bytes", len));
        }
        self.ledger.spend(data.start, 8 * len, len)?;
        let bytes = self.buffer.bytes(data.clone())?;
        let wrong = || {
            Error::malformed(
                "tflite.string",
                "offsets of strings that lead out of their buffer",
            )
            .at(data.clone())
        };
        let number = |place: usize| {
            let bytes = bytes.get(place.checked_mul(4)?..)?.first_chunk()?;
            usize::try_from(i32::from_le_bytes(*bytes)).ok()
        };
        let count = number(0)
            .filter(|count| *count < bytes.len())
            .ok_or_else(wrong)?;
        let mut texts = crate::model::Packer::list();
        for place in 0..count {
            let (start, end) = (number(place + 1), number(place + 2));
            let range = start
                .zip(end)
                .and_then(|(start, end)| bytes.get(start..end));
            match core::str::from_utf8(range.ok_or_else(wrong)?) {
                Ok(text) => texts.str(text),
                Err(_) => {
                    let bytes = range.unwrap_or_default().to_vec();
                    texts.value(&Value::Bytes(bytes.into()));
                }
            }
        }
        Ok(Value::List(texts.into_list()))
    }

    fn unique_names(&self) -> Result<()> {
        let mut known = LookupMap::default();
        for tensor in &self.manifest.tensors {
            if known.insert(tensor.name.as_str(), ()).is_some() {
                let message = format!("two tensors are called {:?}", tensor.name);
                return Err(Error::malformed("tflite.duplicate", message));
            }
        }
        Ok(())
    }

    fn remark(&self, cx: &mut Context<'_>) -> Result<()> {
        if let Some((count, at)) = self.scaled {
            let message = format!(
                "{count} tensors have scales, which integers have, and are none: they are read as they are"
            );
            cx.warn("tflite.quantization", at..at + 4, message)?;
        }
        let count = self.activations;
        if count > 0 {
            let message = format!("{count} tensors without data are activations, and not listed");
            cx.note("tflite.activations", 0..0, message);
        }
        let outside = self.buffers.iter().filter(|(_, is_outside)| *is_outside);
        let first = outside.clone().find_map(|(range, _)| range.clone());
        if let Some(range) = first {
            let message = format!(
                "{} buffers are at offsets of the file, not in its tables",
                outside.count()
            );
            cx.note("tflite.external", range, message);
        }
        Ok(())
    }
}

/// What was read, and what may be made of it.
struct Ledger {
    /// Tables, names and lists that were read before: they can be shared.
    seen: LookupMap<u64, ()>,
    /// What may still be made.
    budget: u64,
    read: u64,
    /// The limit on headers.
    limit: u64,
}

impl Ledger {
    /// Takes some of what may be made; what is read for the first time adds to it.
    fn spend(&mut self, at: u64, made: u64, read: u64) -> Result<()> {
        if self.seen.insert(at, ()).is_none() {
            self.budget = self.budget.saturating_add(read.saturating_mul(FOR_A_BYTE));
            self.read = self.read.saturating_add(read);
        }
        let (read, limit) = (self.read, self.limit);
        if read > limit {
            let message = format!("more than {limit} bytes beside the data of tensors");
            return Err(Error::limit("tflite.limit", message).raised_by("header_bytes", read));
        }
        match self.budget.checked_sub(made) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => {
                let message = "it describes many times more than its bytes";
                Err(Error::limit("tflite.limit", message))
            }
        }
    }
}
