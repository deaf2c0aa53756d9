//! A walk over a model, its graph and, where that is wanted, the graphs and the constants inside of it.

use super::external::Files;
use super::raw::{self, Pairs, RULES, TensorProto};
use super::{sparse, tensor};
use crate::error::{Error, Result};
use crate::format::Context;
use crate::io::Limits;
use crate::model::{Manifest, Metadata, Payload, SourceId, TensorInfo, Value as Meta};
use crate::prelude::*;
use crate::wire::protobuf::{Field, Value, Walker};

/// Graphs inside of graphs, at most.
pub(super) const MAX_DEPTH: usize = 64;

/// Memory for each byte that describes a file, and what is granted beside that. The least tensors have a dozen bytes in a
/// file and hundreds in memory, and files of millions of them are mostly hostile.
const TIMES: u64 = 16;
const GRANTED: u64 = 14 << 20;
/// What a tensor takes at most: with its name and its place, its region, and its entry of an index.
const TENSOR: u64 = 400;
/// What one takes in addition whose data is made when it is read.
const MADE: u64 = 200;
/// What one takes in addition that cannot be read.
const DEFECT: u64 = 600;

/// What is wanted beside the initializers of the graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Constants of nodes, and the initializers of graphs inside of the graph and of functions.
    pub(super) constants: bool,
    pub(super) sparse: bool,
}

/// What a model says about itself.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) ir_version: i64,
    pub(super) has_graph: bool,
    /// Texts and numbers by their field of the model; the name of the graph is that of field 7.
    pub(super) fields: [Option<Meta>; 8],
    pub(super) opset_import: Pairs,
    pub(super) metadata_props: Pairs,
    /// Whether there is more than tensors and what is said about the file.
    pub(super) is_model: bool,
}

impl Head {
    /// Takes in a field of the model that is not its graph.
    pub(super) fn field(&mut self, w: &mut Walker<'_>, field: &Field) -> Result<()> {
        match (field.number, &field.value) {
            (1, Value::Varint(number)) => self.ir_version = number.cast_signed(),
            (5, Value::Varint(number)) => self.say(5, Meta::I64(number.cast_signed())),
            (number @ (2 | 3 | 4 | 6), Value::Len(range)) => {
                let text = raw::text(w, range)?;
                self.say(number, text);
            }
            (8, Value::Len(entry)) => self.opset_import.read_number(w, entry)?,
            (14, Value::Len(entry)) => self.metadata_props.read(w, entry)?,
            _ => self.is_model = true,
        }
        Ok(())
    }

    /// Takes in a field of the graph that is not a tensor.
    pub(super) fn graph_field(&mut self, w: &mut Walker<'_>, field: &Field) -> Result<()> {
        match (field.number, &field.value) {
            (2, Value::Len(range)) => {
                let text = raw::text(w, range)?;
                self.say(7, text);
            }
            _ => self.is_model = true,
        }
        Ok(())
    }

    fn say(&mut self, field: u32, value: Meta) {
        let place = usize::try_from(field).unwrap_or(0);
        if let Some(said) = self.fields.get_mut(place) {
            *said = Some(value);
        }
    }

    /// What the model says about itself, and a key that it says it under twice.
    pub(super) fn metadata(self) -> Result<(Metadata, Option<String>)> {
        let mut metadata = Metadata::new();
        metadata.push_fact("ir_version", Meta::I64(self.ir_version));
        let is_default =
            |value: &Meta| *value == Meta::Str(String::new()) || *value == Meta::I64(0);
        for (number, value) in (0..).zip(self.fields) {
            if let Some(value) = value.filter(|value| !is_default(value)) {
                metadata.push(super::key_of(number), value);
            }
        }
        let mut repeated = None;
        for (number, pairs) in [(8, self.opset_import), (14, self.metadata_props)] {
            let (map, twice) = pairs.finish()?;
            repeated = twice.or(repeated);
            if let Some(map) = map {
                metadata.push(super::key_of(number), Meta::Map(map));
            }
        }
        Ok((metadata, repeated))
    }
}

pub(super) struct Scan<'c, 'a> {
    pub(super) cx: &'c mut Context<'a>,
    w: Walker<'a>,
    wanted: Wanted,
    files: Files,
    /// The end of the last data.
    covered: u64,
    spent: u64,
    pub(super) head: Head,
    pub(super) manifest: Manifest,
    /// Tensors that are no initializers of the graph.
    pub(super) extras: Vec<TensorInfo>,
    /// Sparse initializers that are not listed: the name of the first, and how many there are.
    pub(super) unlisted: (String, u64),
}

impl<'c, 'a> Scan<'c, 'a> {
    pub(super) fn new(cx: &'c mut Context<'a>, wanted: Wanted) -> Self {
        let source = cx.source();
        Self {
            w: Walker::over(source, 0..source.len(), RULES),
            cx,
            wanted,
            files: Files::default(),
            covered: 0,
            spent: 0,
            head: Head::default(),
            manifest: Manifest::default(),
            extras: Vec::new(),
            unlisted: (String::new(), 0),
        }
    }

    /// The whole model.
    pub(super) fn model(&mut self) -> Result<()> {
        let end = self.cx.source().len();
        while let Some(field) = self.w.next(end)? {
            self.charge(0, &field.at)?;
            match (field.number, &field.value) {
                (7, Value::Len(graph)) => {
                    self.head.has_graph = true;
                    self.graph(graph, 0)?;
                }
                (25, Value::Len(function)) if self.wanted.constants => {
                    self.head.is_model = true;
                    self.function(function)?;
                }
                _ => self.head.field(&mut self.w, &field)?,
            }
        }
        self.manifest.region(self.covered..end, "header");
        self.manifest.sealed = core::mem::take(&mut self.files.sealed);
        Ok(())
    }

    /// A graph: the one of the model, at depth 0, or one inside of it.
    fn graph(&mut self, graph: &Range<u64>, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            let message = format!("more than {MAX_DEPTH} graphs inside of each other");
            return Err(Error::malformed("onnx.depth", message).at(graph.clone()));
        }
        self.w.enter(graph);
        while let Some(field) = self.w.next(graph.end)? {
            self.charge(0, &field.at)?;
            match (field.number, &field.value) {
                (1, Value::Len(node)) if self.wanted.constants => {
                    self.head.is_model = true;
                    self.node(node, depth)?;
                }
                (5, Value::Len(message)) => {
                    let info = self.tensor(message)?;
                    if depth == 0 {
                        self.make_room(graph.end)?;
                        self.manifest.tensors.push(info);
                    } else {
                        push_tight(&mut self.extras, info);
                    }
                }
                (15, Value::Len(message)) => {
                    self.head.is_model = true;
                    self.sparse(message)?;
                }
                _ if depth == 0 => self.head.graph_field(&mut self.w, &field)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// When there is no room for another tensor, makes it for all that follow in the graph, which are counted: doubling
    /// would take three times the memory of what is there.
    fn make_room(&mut self, end: u64) -> Result<()> {
        let tensors = &self.manifest.tensors;
        if tensors.len() < tensors.capacity() {
            return Ok(());
        }
        const FEW: usize = 4096;
        /// What describes a tensor has this many bytes at most, as a rule.
        const HEAD: u64 = 256;
        let mut more = tensors.len().max(16);
        if tensors.len() >= FEW {
            let mut ahead = self.w.clone();
            more = 1;
            let mut bytes = 0u64;
            while let Some(field) = ahead.next(end)? {
                if field.number == 5 {
                    more += 1;
                    bytes = bytes.saturating_add((field.at.end - field.at.start).min(HEAD));
                }
            }
            // No more than will be paid for.
            let paid = self.affordable(bytes) / TENSOR;
            let paid = usize::try_from(paid).unwrap_or(usize::MAX);
            more = more.min(paid).max(tensors.len() / 4);
        }
        self.manifest.tensors.reserve_exact(more);
        Ok(())
    }

    fn tensor(&mut self, message: &Range<u64>) -> Result<TensorInfo> {
        let mut proto = TensorProto::default();
        proto.merge(&mut self.w, message, self.cx.limits().rank)?;
        self.described(proto)
    }

    fn described(&mut self, proto: TensorProto) -> Result<TensorInfo> {
        let at = proto.at.clone();
        let info = tensor::describe(self.cx, &mut self.files, proto)?;
        self.cover(&info, &at)?;
        Ok(info)
    }

    /// Notes where the data of a tensor is, and pays for it.
    fn cover(&mut self, info: &TensorInfo, at: &Range<u64>) -> Result<()> {
        let mut cost = TENSOR;
        if info.defect.is_some() {
            cost += DEFECT;
        }
        for part in &info.parts {
            match &part.payload {
                Payload::Raw { source, range } => {
                    if *source == SourceId::MAIN && !range.is_empty() {
                        self.manifest.region(self.covered..range.start, "header");
                        self.covered = range.end;
                    }
                }
                _ => cost += MADE,
            }
        }
        self.charge(cost, at)
    }

    /// Refuses what takes out of proportion to the bytes that describe it, and more of these than the limit.
    fn charge(&mut self, cost: u64, at: &Range<u64>) -> Result<()> {
        let parsed = self.w.parsed();
        let limit = self.cx.limits().header_bytes;
        if parsed > limit {
            let message = format!(
                "more than {limit} bytes describe the tensors, which is the limit for headers"
            );
            let error = Error::limit("onnx.limit", message).raised_by("header_bytes", None);
            return Err(error.at(at.clone()));
        }
        self.spent = self.spent.saturating_add(cost);
        let affordable = self.affordable(parsed);
        if self.spent > affordable {
            let message = format!(
                "the first {parsed} bytes that describe tensors take {} in memory, the limit for so few is {affordable}: the tensors are very many and very small",
                self.spent
            );
            let error = Error::limit("onnx.amplification", message);
            return Err(error.raised_by("header_bytes", None).at(at.clone()));
        }
        Ok(())
    }

    /// What tensors may take in memory that so many bytes describe. Whoever sets another limit for headers means this too.
    fn affordable(&self, bytes: u64) -> u64 {
        let limit = self.cx.limits().header_bytes;
        let granted = if limit == Limits::default().header_bytes {
            GRANTED
        } else {
            GRANTED.max(limit)
        };
        TIMES.saturating_mul(bytes).saturating_add(granted)
    }

    /// Tells of a sparse initializer, or lists it.
    fn sparse(&mut self, message: &Range<u64>) -> Result<()> {
        let proto = sparse::SparseTensorProto::read(&mut self.w, message, self.cx.limits().rank)?;
        if self.wanted.sparse {
            let info = sparse::describe(self.cx, &mut self.files, proto)?;
            self.cover(&info, message)?;
            push_tight(&mut self.extras, info);
            return Ok(());
        }
        let name = proto.values.name;
        let note = format!("sparse initializer {name:?} is not listed");
        self.cx.note("onnx.sparse", message.clone(), note);
        if self.unlisted.1 == 0 {
            self.unlisted.0 = name;
        }
        self.unlisted.1 += 1;
        Ok(())
    }

    /// A function: its nodes have constants as those of a graph do.
    fn function(&mut self, function: &Range<u64>) -> Result<()> {
        self.w.enter(function);
        while let Some(field) = self.w.next(function.end)? {
            if let (7, Value::Len(node)) = (field.number, &field.value) {
                self.node(node, 0)?;
            }
        }
        Ok(())
    }

    /// A node: the tensor of a `Constant`, called as its first output, and the graphs in its attributes.
    fn node(&mut self, node: &Range<u64>, depth: usize) -> Result<()> {
        let mut output = None;
        let mut is_constant = false;
        let mut value = None;
        self.w.enter(node);
        while let Some(field) = self.w.next(node.end)? {
            match (field.number, &field.value) {
                (2, Value::Len(range)) if output.is_none() => {
                    output = Some(self.w.text(range, "output of a node")?);
                }
                (4, Value::Len(range)) => {
                    is_constant = *self.w.bytes(range, "op_type")? == *b"Constant";
                }
                (5, Value::Len(attribute)) => {
                    if let Some(tensor) = self.attribute(attribute, depth)? {
                        value = Some(tensor);
                    }
                }
                _ => {}
            }
        }
        if let (true, Some(mut proto)) = (is_constant, value) {
            proto.name = output.unwrap_or_default();
            let info = self.described(proto)?;
            push_tight(&mut self.extras, info);
        }
        Ok(())
    }

    /// The tensor of an attribute `value`; graphs are walked over.
    fn attribute(&mut self, attribute: &Range<u64>, depth: usize) -> Result<Option<TensorProto>> {
        let mut is_value = false;
        let mut tensor: Option<TensorProto> = None;
        let rank = self.cx.limits().rank;
        self.w.enter(attribute);
        while let Some(field) = self.w.next(attribute.end)? {
            match (field.number, &field.value) {
                (1, Value::Len(range)) => {
                    is_value = *self.w.bytes(range, "name of an attribute")? == *b"value";
                }
                (5, Value::Len(message)) => {
                    let tensor = tensor.get_or_insert_default();
                    tensor.merge(&mut self.w, message, rank)?;
                }
                (6 | 11, Value::Len(graph)) => self.graph(graph, depth + 1)?,
                _ => {}
            }
        }
        Ok(tensor.filter(|_| is_value))
    }
}
