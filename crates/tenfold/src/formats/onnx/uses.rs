//! Where a graph refers to its tensors by name: what is renamed there, and what keeps a tensor from being renamed.

use super::graph::MAX_DEPTH;
use super::splice::Splice;
use crate::error::{Error, Result};
use crate::model::{SourceId, TensorInfo};
use crate::prelude::*;
use crate::wire::protobuf::{Field, Value, Walker};

/// Tensors that get other names.
#[derive(Debug)]
pub(super) struct Renames<'r> {
    /// The new name of each old one. No name is none: a node has it where an input is left out.
    to: LookupMap<&'r str, &'r str>,
    new: LookupMap<&'r str, ()>,
}

impl<'r> Renames<'r> {
    pub(super) fn new(tensors: &'r [TensorInfo]) -> Self {
        let renamed = tensors
            .iter()
            .filter(|tensor| tensor.name != tensor.name_before());
        let renamed = renamed.map(|tensor| (tensor.name_before(), tensor.name.as_str()));
        let to: LookupMap<_, _> = renamed.filter(|(old, _)| !old.is_empty()).collect();
        let all = tensors
            .iter()
            .filter(|tensor| tensor.name != tensor.name_before());
        Self {
            to,
            new: all.map(|tensor| (tensor.name.as_str(), ())).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.new.is_empty()
    }
}

/// A message that has names in it.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A graph at this depth.
    Graph(usize),
    Node(usize),
    Attribute(usize),
    /// A value that is defined somewhere else, or here.
    ValueInfo(Name),
    Annotation,
    AnnotationEntry,
    Tensor,
    SparseTensor,
}

/// What a name is for.
#[derive(Clone, Copy, Debug)]
enum Name {
    Use,
    Definition,
}

/// What a field of a message is.
enum Inside {
    Message(Kind),
    Name(Name),
    /// Names that are not looked for.
    Unknown,
    Nothing,
}

/// The table of all names.
fn inside(kind: Kind, field: u32) -> Inside {
    use Inside::{Message, Nothing, Unknown};
    match (kind, field) {
        (Kind::Graph(depth), 1) => Message(Kind::Node(depth)),
        (Kind::Graph(0), 11) | (Kind::Graph(_), 12 | 13) => Message(Kind::ValueInfo(Name::Use)),
        (Kind::Graph(_), 11) => Message(Kind::ValueInfo(Name::Definition)),
        (Kind::Graph(_), 5) => Message(Kind::Tensor),
        (Kind::Graph(_), 14) => Message(Kind::Annotation),
        (Kind::Graph(_), 15) => Message(Kind::SparseTensor),
        (Kind::Node(_), 1) | (Kind::Annotation, 1) | (Kind::AnnotationEntry, 2) => {
            Inside::Name(Name::Use)
        }
        (Kind::Node(_), 2) | (Kind::Tensor, 8) => Inside::Name(Name::Definition),
        (Kind::Node(depth), 5) => Message(Kind::Attribute(depth)),
        // How tensors are spread over devices.
        (Kind::Node(_), 10) => Unknown,
        (Kind::Attribute(depth), 6 | 11) => Message(Kind::Graph(depth + 1)),
        (Kind::ValueInfo(name), 1) => Inside::Name(name),
        (Kind::Annotation, 2) => Message(Kind::AnnotationEntry),
        (Kind::SparseTensor, 1) => Message(Kind::Tensor),
        _ => Nothing,
    }
}

/// What a field of the graph becomes; `None` where no name in it changes. A name that would mean something else is an error.
pub(super) fn renamed(
    w: &mut Walker<'_>,
    renames: &Renames<'_>,
    source: SourceId,
    field: &Field,
) -> Result<Option<Splice>> {
    let names = Names { renames, source };
    match (inside(Kind::Graph(0), field.number), &field.value) {
        (Inside::Message(kind), Value::Len(range)) if !renames.is_empty() => {
            names.message(w, kind, range)
        }
        _ => Ok(None),
    }
}

struct Names<'n> {
    renames: &'n Renames<'n>,
    source: SourceId,
}

impl Names<'_> {
    fn message(
        &self,
        w: &mut Walker<'_>,
        kind: Kind,
        message: &Range<u64>,
    ) -> Result<Option<Splice>> {
        if matches!(kind, Kind::Graph(depth) if depth > MAX_DEPTH) {
            let message_ = format!("more than {MAX_DEPTH} graphs inside of each other");
            return Err(Error::malformed("onnx.depth", message_).at(message.clone()));
        }
        let mut out = Splice::default();
        let mut is_changed = false;
        w.enter(message);
        while let Some(field) = w.next(message.end)? {
            let Value::Len(range) = &field.value else {
                out.copy(self.source, field.at)?;
                continue;
            };
            match inside(kind, field.number) {
                Inside::Message(kind) => match self.message(w, kind, range)? {
                    Some(message) => {
                        out.message(field.number, message)?;
                        is_changed = true;
                    }
                    None => out.copy(self.source, field.at)?,
                },
                Inside::Name(name) => match self.name(w, name, range)? {
                    Some(new) => {
                        out.fields(|fields| {
                            fields.bytes(field.number, new.as_bytes());
                        })?;
                        is_changed = true;
                    }
                    None => out.copy(self.source, field.at)?,
                },
                Inside::Unknown => {
                    let message =
                        "a node says how its tensors are spread over devices, by their names";
                    return Err(Error::unsupported("onnx.rename", message).at(field.at));
                }
                Inside::Nothing => out.copy(self.source, field.at)?,
            }
        }
        Ok(is_changed.then_some(out))
    }

    /// The new name, where it is another one.
    fn name(&self, w: &mut Walker<'_>, role: Name, range: &Range<u64>) -> Result<Option<&str>> {
        let bytes = w.bytes(range, "name")?;
        let Ok(name) = core::str::from_utf8(&bytes) else {
            return Ok(None);
        };
        let refuse = |message: String| Error::unsupported("onnx.rename", message).at(range.clone());
        match (self.renames.to.get(name), role) {
            (Some(new), Name::Use) => Ok(Some(new)),
            (Some(new), Name::Definition) => Err(refuse(format!(
                "{name:?} cannot become {new:?}: something else in the model is called {name:?} too"
            ))),
            (None, _) if self.renames.new.contains_key(name) => Err(refuse(format!(
                "a tensor cannot become {name:?}: something else in the model is called so"
            ))),
            (None, _) => Ok(None),
        }
    }
}
