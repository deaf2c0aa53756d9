//! What a version of a format can hold, and what a conversion to it would lose.

use alloc::borrow::Cow;
use core::fmt;

use crate::error::Hint;
use crate::model::{
    DType, DigestKind, Effect, Endian, Layout, Manifest, Metadata, Part, Payload, Quoted, Role,
    Shape, TensorInfo, Value,
};
use crate::prelude::*;

/// What a version of a format can hold. Losses, refusals, documentation and property tests are derived from it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Capabilities {
    /// Tensors in one file, at most.
    pub max_tensors: u64,
    /// Dimensions, at least.
    pub min_rank: usize,
    /// Dimensions, at most.
    pub max_rank: usize,
    /// Whether a dimension can be 0.
    pub zero_sizes: bool,
    /// Whether a name can be held, or why not.
    pub name: fn(&str) -> Result<(), &'static str>,
    /// Whether elements of a type can be held.
    pub dtype: fn(DType) -> bool,
    /// Whether a layout can be held. What cannot is written densely: row-major, or column-major where that is the only
    /// dense layout that can be held.
    pub layout: fn(&Layout) -> bool,
    /// What no field above can say.
    pub tensor: fn(&TensorInfo) -> Result<(), String>,
    /// What becomes of a value of the file's metadata.
    pub file_value: fn(&str, &Value) -> Fit,
    /// What becomes of a value of a tensor's metadata.
    pub tensor_value: fn(&str, &Value) -> Fit,
    /// Whether it can hold parts of a file of the same format that tenfold does not understand.
    pub kept: bool,
    /// Whether numbers are big-endian in it. Swapping little-endian ones is not worth a word, as everywhere.
    pub big_endian: bool,
    /// Whether tensors can be compressed with zstd.
    pub zstd: bool,
    /// The checksums that tensors can have.
    pub checksums: &'static [DigestKind],
}

impl Capabilities {
    /// Any number of row-major tensors with any name and shape, but elements of no type and nothing else: a format
    /// starts from this and changes what differs.
    pub const fn new() -> Self {
        Self {
            max_tensors: u64::MAX,
            min_rank: 0,
            max_rank: usize::MAX,
            zero_sizes: true,
            name: |_| Ok(()),
            dtype: |_| false,
            layout: |layout| matches!(layout, Layout::RowMajor),
            tensor: |_| Ok(()),
            file_value: |_, _| Fit::No,
            tensor_value: |_, _| Fit::No,
            kept: false,
            big_endian: false,
            zstd: false,
            checksums: &[],
        }
    }
}

impl Default for Capabilities {
    fn default() -> Self {
        Self::new()
    }
}

/// What becomes of a value of metadata.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Fit {
    /// It is held as it is.
    Exact,
    /// It is held as text, and comes back as it is.
    Typed,
    /// It is held in another form.
    As(Value),
    /// It cannot be held.
    No,
}

impl Fit {
    /// In attributes that are JSON, with lists and objects in each other `levels` deep.
    pub(crate) fn in_json(value: &Value, levels: usize) -> Self {
        fn fits(value: &Value, levels: usize) -> bool {
            match value {
                Value::Bytes(_) | Value::Elsewhere(_) | Value::Encoded { .. } => false,
                Value::List(_) | Value::Map(_) if levels == 0 => false,
                Value::List(items) => items.iter().all(|item| fits(&item, levels - 1)),
                Value::Map(entries) => entries.iter().all(|(_, item)| fits(&item, levels - 1)),
                _ => true,
            }
        }
        if fits(value, levels) {
            Self::Exact
        } else {
            Self::No
        }
    }
}

/// Something that a conversion would not carry over as it is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loss {
    /// The tensor it is about.
    pub tensor: Option<String>,
    /// What it is.
    pub what: Lost,
    /// Why it cannot be carried over, or what becomes of it.
    pub why: String,
    /// What would keep it; any one of them is enough.
    pub hints: Vec<Hint>,
    /// How bad it is.
    pub effect: Effect,
}

impl Loss {
    /// Something of a tensor, or of the file, that is not carried over.
    pub fn new(tensor: Option<String>, what: Lost, why: impl Into<String>, effect: Effect) -> Self {
        Self {
            tensor,
            what,
            why: why.into(),
            hints: Vec::new(),
            effect,
        }
    }

    /// Adds something that would keep it.
    #[must_use]
    pub fn hinting(mut self, hint: Hint) -> Self {
        self.hints.push(hint);
        self
    }

    /// What it is and why, without how bad it is.
    pub fn in_words(&self) -> String {
        let (what, why) = (&self.what, &self.why);
        match &self.tensor {
            Some(tensor) => format!("tensor {}: {what}: {why}", Quoted(tensor)),
            None => format!("{what}: {why}"),
        }
    }

    /// Whether it is about metadata, of the file or of a tensor.
    pub fn is_metadata(&self) -> bool {
        matches!(self.what, Lost::Metadata(_))
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.effect, self.in_words())
    }
}

/// What a [`Loss`] is about: of the tensor that it names, else of the file.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Lost {
    /// Which byte of a number comes first.
    ByteOrder,
    /// A checksum, as the file has it, that cannot be computed here.
    Checksum(String),
    /// A kind of checksum that was asked for.
    Checksums(DigestKind),
    /// Compression that was asked for.
    Compression,
    /// Data that cannot be read.
    Data,
    /// The type of the elements.
    DType(DType),
    /// Something that only its own format understands.
    Kept {
        /// The format, by its id.
        format: &'static str,
        /// What the file calls it.
        name: String,
    },
    /// How the elements are laid out, by its name.
    Layout(String),
    /// The metadata with this key.
    Metadata(String),
    /// What a file holds that is not there.
    MissingFile,
    /// The name.
    Name,
    /// That there is no tensor.
    NoTensors,
    /// The place among the other tensors.
    Place,
    /// The number of dimensions.
    Rank(usize),
    /// The shape.
    Shape(Shape),
    /// That its data is that of the tensor with this name too.
    Sharing(String),
    /// So many bytes.
    Size(u64),
    /// So many tensors.
    Tensors(usize),
    /// Values, because a cast was asked for.
    Values {
        /// The type of the numbers.
        from: DType,
        /// The type that is written.
        to: DType,
        /// In so many tensors.
        tensors: usize,
    },
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lost::ByteOrder => f.write_str("big-endian numbers"),
            Lost::Checksum(text) => write!(f, "checksum {}", Quoted(text)),
            Lost::Checksums(kind) => write!(f, "a {kind} checksum"),
            Lost::Compression => f.write_str("compression with zstd"),
            Lost::Data => f.write_str("data"),
            Lost::DType(dtype) => write!(f, "dtype {dtype}"),
            Lost::Kept { format, name } => write!(f, "{format} {}", Quoted(name)),
            Lost::Layout(name) => write!(f, "layout {name}"),
            Lost::Metadata(key) => write!(f, "metadata {}", Quoted(key)),
            Lost::MissingFile => f.write_str("what a missing file holds"),
            Lost::Name => f.write_str("name"),
            Lost::NoTensors => f.write_str("a file without tensors"),
            Lost::Place => f.write_str("place"),
            Lost::Rank(rank) => write!(f, "{rank} dimensions"),
            Lost::Shape(shape) => write!(f, "shape {shape:?}"),
            Lost::Sharing(with) => write!(f, "data that is shared with {}", Quoted(with)),
            Lost::Size(len) => write!(f, "{len} bytes"),
            Lost::Tensors(count) => write!(f, "{count} tensors"),
            Lost::Values { from, to, tensors } => match tensors {
                1 => write!(f, "cast from {from} to {to}"),
                n => write!(f, "{n} tensors cast from {from} to {to}"),
            },
        }
    }
}

/// What of `what` survives in a file that can hold `can`, and what does not.
///
/// The tensors of the result are those of `what`, one for one, so that a place in one list is a place in the other.
pub fn adapt(what: &Manifest, can: &Capabilities) -> (Manifest, Vec<Loss>) {
    let mut losses = Vec::new();
    if what.tensors.len() as u64 > can.max_tensors {
        losses.push(Loss::new(
            None,
            Lost::Tensors(what.tensors.len()),
            format!("at most {} fit", can.max_tensors),
            Effect::Impossible,
        ));
    }
    if can.max_tensors == 1 && what.tensors.is_empty() {
        losses.push(Loss::new(
            None,
            Lost::NoTensors,
            "it holds exactly one",
            Effect::Impossible,
        ));
    }
    let mut adapted = Manifest::new(what.version.clone());
    if can.kept {
        adapted.kept.clone_from(&what.kept);
    }
    adapted.metadata = adapt_metadata(&what.metadata, can.file_value, None, &mut losses);
    adapted.tensors = what.tensors.clone();
    for (place, tensor) in what.tensors.iter().enumerate() {
        if let Cow::Owned(changed) = adapt_tensor(tensor, can, &mut losses)
            && let Some(adapted) = adapted.tensors.get_mut(place)
        {
            *adapted = changed;
        }
    }
    (adapted, losses)
}

fn adapt_metadata(
    metadata: &Metadata,
    fit: fn(&str, &Value) -> Fit,
    tensor: Option<&TensorInfo>,
    losses: &mut Vec<Loss>,
) -> Metadata {
    metadata.filter_map(|key, value| {
        let (kept, why, effect) = match fit(key, value) {
            Fit::Exact | Fit::Typed => return Some(value.clone()),
            Fit::As(form) => {
                let why = match &form {
                    // All that become text have the same reason, which is said once.
                    Value::Str(_) => "written as text".to_owned(),
                    form => format!("written as {}", form.in_words()),
                };
                (Some(form), why, Effect::Changed)
            }
            Fit::No if tensor.is_some_and(|tensor| tensor.derived().contains(&key)) => return None,
            Fit::No => (None, "no place in the target".to_owned(), Effect::Dropped),
        };
        losses.push(Loss::new(
            tensor.map(|tensor| tensor.name.clone()),
            Lost::Metadata(key.to_owned()),
            why,
            effect,
        ));
        kept
    })
}

/// Borrowed where nothing changes.
fn adapt_tensor<'t>(
    tensor: &'t TensorInfo,
    can: &Capabilities,
    losses: &mut Vec<Loss>,
) -> Cow<'t, TensorInfo> {
    let mut adapted = Cow::Borrowed(tensor);
    if let Some(defect) = &tensor.defect {
        let why = format!("cannot be read: {}", defect.message());
        let name = Some(tensor.name.clone());
        let mut loss = Loss::new(name, Lost::Data, why, Effect::Impossible);
        loss.hints.extend_from_slice(defect.hints());
        losses.push(loss.hinting(Hint::Exclude));
        return adapted;
    }
    if !tensor.is_numbers() && !(can.dtype)(tensor.dtype) {
        let (name, what) = (Some(tensor.name.clone()), Lost::DType(tensor.dtype));
        let loss = Loss::new(name, what, "these are not numbers", Effect::Impossible);
        losses.push(loss.hinting(Hint::Exclude));
        return adapted;
    }
    let mut lose = |what: Lost, why: String, effect| {
        losses.push(Loss::new(Some(tensor.name.clone()), what, why, effect));
    };
    if let Err(why) = (can.name)(&tensor.name) {
        lose(Lost::Name, why.into(), Effect::Impossible);
    }
    let rank = tensor.shape.len();
    if rank < can.min_rank || rank > can.max_rank {
        let why = format!("{} to {} fit", can.min_rank, can.max_rank);
        lose(Lost::Rank(rank), why, Effect::Impossible);
    }
    if !can.zero_sizes && tensor.shape.contains(&0) {
        lose(
            Lost::Shape(tensor.shape.clone()),
            "the format has no dimensions of 0".into(),
            Effect::Impossible,
        );
    }
    if !(can.layout)(&tensor.layout) || !tensor.casts_as_stored() {
        let layout = Lost::Layout(tensor.layout.name().to_owned());
        if matches!(tensor.layout, Layout::Opaque { .. }) {
            lose(
                layout,
                "the format has no such layout".into(),
                Effect::Impossible,
            );
        } else {
            let dense = if (can.layout)(&Layout::ColumnMajor) && !(can.layout)(&Layout::RowMajor) {
                Layout::ColumnMajor
            } else {
                Layout::RowMajor
            };
            if tensor.layout.is_dense() && has_one_order(&tensor.shape) {
                adapted.to_mut().layout = dense;
            } else if tensor.layout == Layout::Decoded {
                // The numbers themselves are what was asked for.
                densify(adapted.to_mut(), dense);
            } else {
                let why = format!("written {}", dense.name());
                lose(layout, why, Effect::Rearranged);
                densify(adapted.to_mut(), dense);
            }
        }
    }
    if !(can.dtype)(tensor.dtype) {
        let what = Lost::DType(tensor.dtype);
        lose(
            what,
            "the format has no such type".into(),
            Effect::Impossible,
        );
    }
    let is_big = |part: &Part| part.endian == Endian::Big && part.dtype.is_ordered();
    if !can.big_endian && tensor.parts.iter().any(is_big) {
        lose(
            Lost::ByteOrder,
            "written little-endian".into(),
            Effect::Rearranged,
        );
    }
    if let Err(why) = (can.tensor)(&adapted) {
        let what = Lost::Shape(tensor.shape.clone());
        lose(what, why, Effect::Impossible);
    }
    let fits = |(key, value)| matches!((can.tensor_value)(key, value), Fit::Exact | Fit::Typed);
    if !tensor.metadata.iter().all(fits) {
        adapted.to_mut().metadata =
            adapt_metadata(&tensor.metadata, can.tensor_value, Some(tensor), losses);
    }
    adapted
}

/// Whether row-major and column-major are the same order.
fn has_one_order(shape: &[u64]) -> bool {
    shape.iter().filter(|&&dim| dim != 1).count() < 2
}

/// Describes a tensor as dense and not stored yet: what a plan sees of one that is stored in another way.
fn densify(tensor: &mut TensorInfo, layout: Layout) {
    let len = tensor.dense_len().unwrap_or(0);
    tensor.layout = layout;
    tensor.parts = Part::new(Role::Values, tensor.dtype, Payload::Derived { len }).into();
}
