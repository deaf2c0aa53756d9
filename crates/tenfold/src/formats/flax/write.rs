//! From the model to one object of maps within maps.

use super::codec::missing;
use super::{CHUNK, CHUNKED, DEFAULT_CHUNK, MOST_BYTES, dtypes};
use crate::error::{Error, Result};
use crate::format::{
    Arranged, Effect, FilePlan, Form, Loss, Lost, Plan, PlanOptions, Segment, Want,
};
use crate::model::{Manifest, TensorInfo, Value};
use crate::prelude::*;
use crate::wire::msgpack::Encoder;

/// A map, or what is under a key.
enum Node {
    Map(Branch),
    /// The place among the tensors.
    Tensor(usize),
    /// The place among the metadata.
    Value(usize),
}

/// Keys and what is under them, in the order in which they were met.
#[derive(Default)]
struct Branch {
    entries: Vec<(String, Node)>,
    places: LookupMap<String, usize>,
}

impl Branch {
    /// Puts something under a path; false where something else is there, or on the way.
    fn insert(&mut self, path: &str, node: Node) -> bool {
        let (key, rest) = match path.split_once('.') {
            Some((key, rest)) => (key, Some(rest)),
            None => (path, None),
        };
        let known = self.places.get(key).copied();
        match (known, rest) {
            (None, rest) => {
                self.places.insert(key.to_owned(), self.entries.len());
                let node = match rest {
                    None => node,
                    Some(rest) => {
                        let mut branch = Self::default();
                        branch.insert(rest, node);
                        Node::Map(branch)
                    }
                };
                self.entries.push((key.to_owned(), node));
                true
            }
            (Some(place), Some(rest)) => match self.entries.get_mut(place) {
                Some((_, Node::Map(branch))) => branch.insert(rest, node),
                _ => false,
            },
            (Some(_), None) => false,
        }
    }

    /// The tensors in the order of the file.
    fn tensors(&self, out: &mut Vec<usize>) {
        for (_, node) in &self.entries {
            match node {
                Node::Map(branch) => branch.tensors(out),
                Node::Tensor(place) => out.push(*place),
                Node::Value(_) => {}
            }
        }
    }
}

/// The tree of what has a place in it, and the names of tensors and keys of metadata that have none.
fn tree(what: &Manifest) -> (Branch, Vec<usize>, Vec<String>) {
    let mut root = Branch::default();
    let (mut tensors, mut keys) = (Vec::new(), Vec::new());
    for (place, tensor) in what.tensors.iter().enumerate() {
        if !root.insert(&tensor.name, Node::Tensor(place)) {
            tensors.push(place);
        }
    }
    let values = what.metadata.entries().enumerate();
    for (place, (key, _, _)) in values.filter(|(_, (.., is_fact))| !is_fact) {
        if !root.insert(key, Node::Value(place)) {
            keys.push(key.to_owned());
        }
    }
    (root, tensors, keys)
}

/// Puts the tensors into the order of the file, and says what has the name of something else, or of a map.
pub(super) fn arrange(what: &Manifest) -> Arranged {
    let (root, tensors, keys) = tree(what);
    let mut manifest = what.clone();
    let mut losses = Vec::new();
    for place in tensors.iter().copied() {
        if let Some(tensor) = what.tensors.get(place) {
            let why = "a part of it is the name of another tensor";
            let name = Some(tensor.name.clone());
            losses.push(Loss::new(name, Lost::Name, why, Effect::Impossible));
        }
    }
    for tensor in &what.tensors {
        // Elements below a byte are written as bytes, which would be cast from what is stored, and not from them.
        let is_cast = tensor.stored_dtype() != tensor.dtype;
        if is_cast && dtypes::written(tensor.dtype).is_some_and(|(_, to)| to != tensor.dtype) {
            let why = "it would be cast twice on the way; write the cast to another format first";
            let (name, lost) = (Some(tensor.name.clone()), Lost::DType(tensor.dtype));
            losses.push(Loss::new(name, lost, why, Effect::Impossible));
        }
    }
    for key in keys {
        let why = "its key, or a part of it, is the name of a tensor or of another value";
        let what = Lost::Metadata(key.clone());
        losses.push(Loss::new(None, what, why, Effect::Dropped));
        manifest.metadata.remove(&key);
    }
    let mut order = Vec::new();
    root.tensors(&mut order);
    order.extend(tensors);
    if !order.is_sorted() {
        let sorted = order
            .iter()
            .filter_map(|place| what.tensors.get(*place).cloned());
        manifest.tensors = sorted.collect();
    }
    Arranged::new(manifest, losses)
}

pub(super) fn plan(what: &Manifest, options: &PlanOptions) -> Result<Plan> {
    let (root, tensors, keys) = tree(what);
    if !tensors.is_empty() || !keys.is_empty() {
        return Err(missing());
    }
    let mut file = File {
        what,
        encoder: Encoder::new(),
        segments: Vec::new(),
        chunk: chunk(options)?,
    };
    file.map(&root)?;
    file.flush();
    Ok(Plan {
        files: vec![FilePlan::new(options.file_name.clone(), file.segments)],
    })
}

/// A file as far as it is planned.
struct File<'m> {
    what: &'m Manifest,
    encoder: Encoder,
    segments: Vec<Segment>,
    /// Bytes of an array, at most: longer ones are cut.
    chunk: u64,
}

/// What the option says, or what flax itself does.
fn chunk(options: &PlanOptions) -> Result<u64> {
    match options.number(CHUNK)? {
        None => Ok(DEFAULT_CHUNK),
        Some(bytes @ 16..=MOST_BYTES) => Ok(bytes),
        Some(_) => Err(options.wrong(CHUNK, "expected 16 to 4294966271 bytes")),
    }
}

impl File<'_> {
    fn flush(&mut self) {
        let bytes = self.encoder.take();
        if !bytes.is_empty() {
            self.segments.push(Segment::Bytes(bytes));
        }
    }

    fn map(&mut self, branch: &Branch) -> Result<()> {
        self.encoder.map(branch.entries.len())?;
        for (key, node) in &branch.entries {
            self.encoder.text(key)?;
            match node {
                Node::Map(branch) => self.map(branch)?,
                Node::Tensor(place) => {
                    let tensor = self.what.tensors.get(*place).ok_or_else(missing)?;
                    self.tensor(*place, tensor)?;
                }
                Node::Value(place) => {
                    let value = self.what.metadata.at(*place).ok_or_else(missing)?;
                    self.value(value)?;
                }
            }
        }
        Ok(())
    }

    fn tensor(&mut self, index: usize, tensor: &TensorInfo) -> Result<()> {
        let refuse = || {
            let message = format!("{} {:?} cannot be written", tensor.dtype, tensor.shape);
            Error::unsupported("flax.write", message).in_tensor(&tensor.name)
        };
        let (name, stored) = dtypes::written(tensor.dtype).ok_or_else(refuse)?;
        let count = tensor.elements().ok_or_else(refuse)?;
        let len = stored.bytes_for(count).ok_or_else(refuse)?;
        let of = Want::Dense(Form::canonical(stored));
        if len <= self.chunk {
            return self.array(index, &tensor.shape, name, len, of);
        }
        // As flax cuts it: the elements as one line, in pieces of as many as fit.
        let width = stored.width().ok_or_else(refuse)? as u64;
        let most = (self.chunk / width).max(1);
        self.encoder.map(3)?.text(CHUNKED)?.bool(true);
        self.encoder.text("shape")?.map(tensor.shape.len())?;
        for (place, dim) in tensor.shape.iter().enumerate() {
            self.encoder.text(&place.to_string())?.unsigned(*dim);
        }
        let chunks = usize::try_from(count.div_ceil(most)).map_err(|_| refuse())?;
        self.encoder.text("chunks")?.map(chunks)?;
        for place in 0..chunks as u64 {
            self.encoder.text(&place.to_string())?;
            let elements = place * most..count.min((place + 1) * most);
            let len = elements.end - elements.start;
            let of = Box::new(of.clone());
            let want = Want::Stretch { elements, of };
            self.array(index, &[len], name, len * width, want)?;
        }
        Ok(())
    }

    /// An extension that is an array.
    fn array(
        &mut self,
        index: usize,
        shape: &[u64],
        name: &str,
        len: u64,
        want: Want,
    ) -> Result<()> {
        let mut head = Encoder::new();
        head.array(3)?.array(shape.len())?;
        for dim in shape {
            head.unsigned(*dim);
        }
        head.text(name)?.bin(len)?;
        let head = head.take();
        let body = len.saturating_add(head.len() as u64);
        self.encoder.ext(1, body)?.raw(&head);
        self.flush();
        self.segments.push(Segment::Tensor {
            index,
            part: 0,
            want,
            codec: None,
            digest: None,
        });
        Ok(())
    }

    fn value(&mut self, value: &Value) -> Result<()> {
        let encoder = &mut self.encoder;
        match value {
            Value::Null => drop(encoder.nil()),
            Value::Bool(value) => drop(encoder.bool(*value)),
            Value::F32(number) => drop(encoder.f32(*number)),
            Value::F64(number) => drop(encoder.f64(*number)),
            Value::Str(text) => drop(encoder.text(text)?),
            Value::Bytes(bytes) => drop(encoder.bin(bytes.len() as u64)?.raw(bytes)),
            Value::Map(_) => drop(encoder.map(0)?),
            // A complex number, as it is shown.
            Value::List(list) => {
                let mut body = Encoder::new();
                body.array(2)?;
                for part in list.iter() {
                    body.f64(part.as_f64().unwrap_or(f64::NAN));
                }
                let body = body.take();
                encoder.ext(2, body.len() as u64)?.raw(&body);
            }
            other => match (other.as_i64(), other.as_u64()) {
                (Some(number), _) => drop(encoder.signed(number)),
                (_, Some(number)) => drop(encoder.unsigned(number)),
                _ => {
                    let message = format!("{} cannot be written", other.in_words());
                    return Err(Error::unsupported("flax.write", message));
                }
            },
        }
        Ok(())
    }
}
