//! A model that is written again: every byte of it that is not part of a tensor which changed.

use super::graph::Head;
use super::raw::{RULES, TensorProto};
use super::splice::Splice;
use super::write::{self, DATA_FIELDS, Data};
use super::{SPEC, tensor, types, uses};
use crate::error::{Error, Result};
use crate::format::{Effect, Loss, Lost, PlanOptions};
use crate::io::Source;
use crate::model::{Kept, Layout, Manifest, Payload, SourceId, TensorInfo};
use crate::prelude::*;
use crate::wire::protobuf::{Field, Value, Walker};

/// Fields of a model that say something about the file, and of a tensor that are not its data.
const FILE_FIELDS: [u32; 8] = [2, 3, 4, 5, 6, 7, 8, 14];
const TENSOR_FIELDS: [u32; 5] = [1, 2, 8, 12, 16];

/// The models that are kept among what is to be written.
pub(super) fn models(what: &Manifest) -> impl Iterator<Item = &Kept> {
    what.kept.iter().filter(|kept| kept.format == SPEC.id)
}

/// A model with the tensors that it is to have.
pub(super) struct Rewritten {
    pub(super) model: Splice,
    pub(super) data: Data,
    /// What its nodes do not expect.
    pub(super) losses: Vec<Loss>,
}

/// The only model that is kept with other tensors in the place of its own; `None` where there is not exactly one, or where
/// its tensors are not those that are to be written.
pub(super) fn rewrite(what: &Manifest, options: &PlanOptions) -> Result<Option<Rewritten>> {
    let mut models = models(what);
    let (Some(kept), None) = (models.next(), models.next()) else {
        return Ok(None);
    };
    let Some(source) = options.sources.get(kept.source.index()) else {
        return Ok(None);
    };
    let Some(mut rewriter) = Rewriter::new(what, options, kept, &**source)? else {
        return Ok(None);
    };
    let model = rewriter.model()?;
    let is_same = rewriter.found == what.tensors.len();
    Ok(is_same.then_some(Rewritten {
        model,
        data: rewriter.data,
        losses: rewriter.losses,
    }))
}

struct Rewriter<'r> {
    what: &'r Manifest,
    kept: &'r Kept,
    source: &'r dyn Source,
    w: Walker<'r>,
    /// The places of the tensors, by the names that the model has for them.
    places: LookupMap<&'r str, usize>,
    /// Tensors of the model that were found among them; one more than there are if one was not.
    found: usize,
    renames: uses::Renames<'r>,
    /// Fields of the model that change, and those of them that are written already.
    changed: Vec<u32>,
    named: bool,
    ir_version: u64,
    newest: Option<u64>,
    data: Data,
    losses: Vec<Loss>,
}

impl<'r> Rewriter<'r> {
    /// `None` where two tensors have the same name in the model.
    fn new(
        what: &'r Manifest,
        options: &PlanOptions,
        kept: &'r Kept,
        source: &'r dyn Source,
    ) -> Result<Option<Self>> {
        let mut places = LookupMap::with_capacity(what.tensors.len());
        let mut inline = 0u64;
        for (place, tensor) in what.tensors.iter().enumerate() {
            if places.insert(tensor.name_before(), place).is_some() {
                return Ok(None);
            }
            if !is_elsewhere(tensor, kept.source) {
                inline = inline.saturating_add(write::len(tensor)?);
            }
        }
        let (ir_version, changed) = changes(what, source)?;
        Ok(Some(Self {
            what,
            kept,
            source,
            w: Walker::over(source, 0..source.len(), RULES),
            places,
            found: 0,
            renames: uses::Renames::new(&what.tensors),
            changed,
            named: false,
            ir_version,
            newest: write::newest(options),
            data: Data::new(options, inline)?,
            losses: Vec::new(),
        }))
    }

    fn model(&mut self) -> Result<Splice> {
        let end = self.source.len();
        let mut model = Splice::default();
        let newer = self.newest.filter(|&newest| newest > self.ir_version);
        while let Some(field) = self.w.next(end)? {
            match (field.number, &field.value) {
                (7, Value::Len(graph)) => match self.graph(graph)? {
                    Some(graph) => model.message(7, graph)?,
                    None => model.copy(self.kept.source, field.at)?,
                },
                (1, _) if newer.is_some() => {}
                (20, _) if !self.renames.is_empty() => {
                    let message =
                        "the model says how it is trained, and refers to its tensors there by name";
                    return Err(Error::unsupported("onnx.rename", message).at(field.at));
                }
                (number, _) if self.changed.contains(&number) => {}
                _ => model.copy(self.kept.source, field.at)?,
            }
        }
        let metadata = &self.what.metadata;
        let changed = self.changed.iter().filter(|&&number| number != 7);
        model.fields(|fields| {
            if let Some(version) = newer {
                fields.number(1, version);
            }
            for number in changed {
                write::file_field(fields, metadata, *number);
            }
        })?;
        Ok(model)
    }

    /// The graph; `None` where nothing in it changes.
    fn graph(&mut self, graph: &Range<u64>) -> Result<Option<Splice>> {
        let mut out = Splice::default();
        let mut is_changed = false;
        self.w.enter(graph);
        while let Some(field) = self.w.next(graph.end)? {
            let changed = match (field.number, &field.value) {
                (2, _) if self.changed.contains(&7) => {
                    is_changed = true;
                    continue;
                }
                (5, Value::Len(message)) => self.tensor(message)?,
                _ => uses::renamed(&mut self.w, &self.renames, self.kept.source, &field)?,
            };
            match changed {
                Some(message) => {
                    out.message(field.number, message)?;
                    is_changed = true;
                }
                None => out.copy(self.kept.source, field.at)?,
            }
        }
        if self.changed.contains(&7) && !self.named {
            let metadata = &self.what.metadata;
            out.fields(|fields| write::file_field(fields, metadata, 7))?;
            (self.named, is_changed) = (true, true);
        }
        Ok(is_changed.then_some(out))
    }

    /// An initializer; `None` where it stays as it is.
    fn tensor(&mut self, message: &Range<u64>) -> Result<Option<Splice>> {
        let mut proto = TensorProto::default();
        proto.merge(&mut self.w, message, usize::MAX)?;
        let what = self.what;
        let place = self.places.get(proto.name.as_str()).copied();
        let tensor = place.and_then(|place| Some((place, what.tensors.get(place)?)));
        let Some((place, tensor)) = tensor else {
            self.found = what.tensors.len() + 1;
            return Ok(None);
        };
        self.found += 1;
        self.check_expected(&proto, tensor);
        let changed = changed_fields(&mut proto, tensor)?;
        let is_external = self
            .data
            .is_external(write::len(tensor)?, proto.is_external);
        let stays = self.is_original(&proto, tensor) && !is_external && !proto.is_external;
        if stays && changed.is_empty() {
            return Ok(None);
        }
        let mut out = Splice::default();
        let mut w = Walker::over(self.source, message.clone(), RULES);
        while let Some(Field { number, at, .. }) = w.next(message.end)? {
            let is_replaced = changed.contains(&number) || !stays && DATA_FIELDS.contains(&number);
            if !is_replaced {
                out.copy(self.kept.source, at)?;
            }
        }
        out.fields(|fields| {
            for number in changed {
                write::tensor_field(fields, tensor, number);
            }
        })?;
        if !stays {
            self.data
                .write(&mut out, (place, tensor), proto.is_external)?;
        }
        Ok(Some(out))
    }

    /// Nodes were made for the types and shapes that are there.
    fn check_expected(&mut self, proto: &TensorProto, tensor: &TensorInfo) {
        if self.kept.is_frame {
            return;
        }
        let mut lose = |what, why: String| {
            let loss = Loss::new(Some(tensor.name.clone()), what, why, Effect::Changed);
            self.losses.push(loss);
        };
        if let Some((dtype, _)) = types::known(proto.data_type)
            && dtype != tensor.dtype
        {
            let why = format!("the graph was made for it, and gets {}", tensor.dtype);
            lose(Lost::DType(dtype), why);
        }
        if proto.dims != tensor.shape {
            let why = format!("the graph was made for it, and gets {:?}", tensor.shape);
            lose(Lost::Shape(proto.dims.clone()), why);
        }
    }

    /// Whether the elements are those of the model, as it stores them.
    fn is_original(&self, proto: &TensorProto, tensor: &TensorInfo) -> bool {
        let [part] = &*tensor.parts else {
            return false;
        };
        let is_plain = tensor.layout == Layout::RowMajor && part.dtype == tensor.dtype;
        let stored = match &part.payload {
            Payload::Raw { source, range } => Some((*source, range.clone())),
            Payload::Lazy { maker, .. } => maker.made_from(),
            _ => None,
        };
        let Some((source, range)) = stored else {
            return false;
        };
        let is_inside = proto.at.start <= range.start && range.end <= proto.at.end;
        is_plain && source == self.kept.source && is_inside
    }
}

/// Whether a tensor has data in a file, and not in this one.
fn is_elsewhere(tensor: &TensorInfo, model: SourceId) -> bool {
    let mut parts = tensor.parts.iter();
    parts.any(|part| matches!(&part.payload, Payload::Raw { source, .. } if *source != model))
}

/// The version of a model, and the fields that are to say something else about the file.
fn changes(what: &Manifest, source: &dyn Source) -> Result<(u64, Vec<u32>)> {
    let end = source.len();
    let mut w = Walker::over(source, 0..end, RULES);
    let mut head = Head::default();
    while let Some(field) = w.next(end)? {
        if let (7, Value::Len(graph)) = (field.number, &field.value) {
            w.enter(graph);
            while let Some(field) = w.next(graph.end)? {
                head.graph_field(&mut w, &field)?;
            }
        } else {
            head.field(&mut w, &field)?;
        }
    }
    let ir_version = u64::try_from(head.ir_version).unwrap_or(0);
    let (before, _) = head.metadata()?;
    let mut changed = FILE_FIELDS.to_vec();
    changed.retain(|&number| {
        let key = super::key_of(number);
        before.get(key) != what.metadata.get(key)
    });
    Ok((ir_version, changed))
}

/// The fields of a tensor beside its data that are to be other ones.
fn changed_fields(proto: &mut TensorProto, tensor: &TensorInfo) -> Result<Vec<u32>> {
    let (metadata, _) = tensor::metadata(proto)?;
    let is_changed = |number: u32| match number {
        1 => proto.dims != tensor.shape,
        2 => types::known(proto.data_type).map(|(dtype, _)| dtype) != Some(tensor.dtype),
        8 => proto.name != tensor.name,
        12 => metadata.get("doc_string") != tensor.metadata.get("doc_string"),
        _ => metadata.get("metadata_props") != tensor.metadata.get("metadata_props"),
    };
    Ok(TENSOR_FIELDS
        .into_iter()
        .filter(|&number| is_changed(number))
        .collect())
}
