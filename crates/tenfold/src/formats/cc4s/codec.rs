//! From what is in the files to the model.

use bytes::Bytes;

use super::blocks::Conditions;
use super::yaml::{Node, Yaml};
use super::{SPEC, VERSION, elements, scalar_type, write};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    Arranged, Belongs, Confidence, Context, Finding, Format, Head, Plan, PlanOptions, Spec,
};
use crate::io::Source;
use crate::model::{
    DType, Layout, Manifest, Metadata, Part, Payload, Role, SourceId, TensorInfo, Value,
    element_count,
};
use crate::prelude::*;

/// Bytes at the beginning in which a file must show what it is.
const HEAD: u64 = 64 << 10;
/// Bytes of memory that a component takes beside its metadata, at most, sound or not.
const COMPONENT: u64 = 1536;
/// Keys that are not known and are named; more are counted.
const NAMED: usize = 64;
/// Keys of a Tensor that are understood.
const KEYS: &[&str] = &[
    "version",
    "type",
    "scalarType",
    "dimensions",
    "elements",
    "unit",
    "metaData",
    "nonZeroCondition",
];

/// Reads and writes the YAML tensors of cc4s.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cc4s;

impl Format for Cc4s {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn detect(&self, head: &Head<'_>) -> Result<Confidence> {
        // What cannot be text is not fetched.
        let first = head.first();
        let first = first.get(..64).unwrap_or(first);
        if first.is_empty() || first.iter().any(|&byte| byte < b'\t') {
            return Ok(Confidence::No);
        }
        head.read(0..head.len().min(HEAD))
            .map(|text| likeness(&text))
    }

    /// cc4s requires a unit; 1 is the one of files that say nothing of it.
    fn owner(&self, key: &str, value: &Value) -> Belongs {
        match (key, value.as_f64()) {
            ("unit", Some(1.0)) => Belongs::ToContainer,
            _ => Belongs::ToContent,
        }
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        let yaml = Yaml::read(cx.source(), cx.limits())?;
        let root = yaml.root();
        let mut manifest = Manifest::new(VERSION);
        manifest.region(0..cx.source().len(), "header");
        let kind = root.get("type").and_then(Node::text);
        match kind {
            Some("Tensor") => {
                check_version(root, None)?;
                let (name, stem) = (cx.tensor_name(), cx.stem());
                let mut tensor = tensor(cx, root, &name, stem).map_err(|e| e.in_tensor(&name))?;
                tensor.set_unnamed(true);
                manifest.tensors.push(tensor);
            }
            Some("TensorSet") => manifest.tensors = components(cx, root)?.into(),
            _ => {
                // The version comes first: in another one, types may have other names.
                check_version(root, None)?;
                let message = "the type is neither Tensor nor TensorSet";
                let place = root.get("type").unwrap_or(root);
                return Err(place.error("cc4s.type", message));
            }
        }
        Ok(manifest)
    }

    #[cfg(feature = "write")]
    fn arrange(&self, what: &Manifest, options: &PlanOptions) -> Result<Option<Arranged>> {
        write::arrange(what, options).map(Some)
    }

    #[cfg(feature = "write")]
    fn plan(&self, what: &Manifest, options: &PlanOptions) -> Result<Plan> {
        write::plan(what, options)
    }
}

/// How much text looks like the description of a tensor: by words that only these files have together.
fn likeness(head: &[u8]) -> Confidence {
    let text = String::from_utf8_lossy(head);
    if text.contains('\0') {
        return Confidence::No;
    }
    let (mut words, mut keys) = (0, 0);
    for piece in text.split(['\n', ',', '{', '}']) {
        let Some((key, value)) = piece.split_once(':') else {
            continue;
        };
        let bare = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
        let value = value.split(" #").next().unwrap_or_default();
        match (bare(key).as_str(), bare(value).as_str()) {
            ("scalarType", _)
            | ("type", "Tensor" | "TensorSet" | "IeeeBinaryFile" | "TextFile") => words += 1,
            ("version" | "dimensions" | "elements" | "components" | "unit", _) => keys += 1,
            _ => {}
        }
    }
    match (words, keys) {
        (2.., 1..) => Confidence::Certain,
        (1.., 1..) => Confidence::Likely,
        _ => Confidence::No,
    }
}

/// The version of a tensor's map, or else that of the set around it.
fn check_version(node: Node<'_>, around: Option<Node<'_>>) -> Result<()> {
    let version = node.get("version").or_else(|| around?.get("version"));
    let Some(version) = version else {
        let message = format!("there is no version; expected {VERSION}");
        return Err(node.error("cc4s.version", message));
    };
    match version.text() {
        Some(VERSION) => Ok(()),
        Some("v1.0") => {
            let message = "version v1.0, of mid 2020, is not read; cc4s has used 100 since then";
            Err(version.error("cc4s.version", message))
        }
        found => {
            let found = found.unwrap_or("something else");
            let message = format!("version {found}, expected {VERSION}");
            Err(version.error("cc4s.version", message))
        }
    }
}

/// The tensors of a set. One that is not sound loses only itself.
fn components(cx: &mut Context<'_>, root: Node<'_>) -> Result<Vec<TensorInfo>> {
    if root.get("version").is_some() {
        check_version(root, None)?;
    }
    let Some(entries) = root.get("components").and_then(Node::entries) else {
        let message = "a TensorSet without a map of components";
        return Err(root.error("cc4s.components", message));
    };
    let stem = cx.stem();
    let count = entries.size_hint().0;
    root.take(COMPONENT.saturating_mul(count as u64))?;
    let mut tensors = Vec::with_capacity(count);
    let mut first = None;
    for (name, node) in entries {
        let described = component(cx, root, node, name, stem, &mut first);
        tensors.push(described.unwrap_or_else(|error| {
            let mut tensor = TensorInfo::new(name, DType::UNKNOWN, Vec::new(), Layout::RowMajor);
            tensor.defect = Some(error.in_tensor(name));
            tensor
        }));
    }
    Ok(tensors)
}

fn component<'n>(
    cx: &mut Context<'_>,
    root: Node<'_>,
    node: Node<'n>,
    name: &str,
    stem: &str,
    first: &mut Option<&'n str>,
) -> Result<TensorInfo> {
    check_version(node, Some(root))?;
    if node.get("type").and_then(Node::text) != Some("Tensor") {
        let message = "the type of a component is not Tensor";
        return Err(node.error("cc4s.type", message));
    }
    if let Some(found) = node.get("scalarType").and_then(Node::text) {
        let first = *first.get_or_insert(found);
        if first != found {
            let message =
                format!("{found}, but the first component is {first}: cc4s treats it as that");
            return Err(node.error("cc4s.scalar-type", message));
        }
    }
    tensor(cx, node, name, &format!("{stem}.components.{name}"))
}

/// A dimension as the file has it.
pub(super) struct Dimension {
    pub length: u64,
    pub kind: Option<String>,
}

/// A tensor whose elements are in `base.elements`. What is wrong with these is its defect.
fn tensor(cx: &mut Context<'_>, node: Node<'_>, name: &str, base: &str) -> Result<TensorInfo> {
    let dtype = element_type(node)?;
    let dimensions = dimensions(node, cx.limits().rank)?;
    let shape: Vec<u64> = dimensions
        .iter()
        .map(|dimension| dimension.length)
        .collect();
    // A size of 0 hides no others that cannot be counted.
    let others: Vec<u64> = shape.iter().copied().filter(|&dim| dim > 0).collect();
    let most = element_count(&others).and_then(|count| dtype.bytes_for(count));
    let Some(count) = most.and_then(|_| element_count(&shape)) else {
        let message = format!("shape {shape:?} has more elements than 64 bits can count");
        return Err(node.error("cc4s.overflow", message));
    };
    let text = match node
        .get("elements")
        .and_then(|elements| elements.get("type"))
    {
        Some(kind) => match kind.text() {
            Some("IeeeBinaryFile") => false,
            Some("TextFile") => true,
            _ => {
                let message = "the type of the elements is neither IeeeBinaryFile nor TextFile";
                return Err(kind.error("cc4s.elements-type", message));
            }
        },
        None => {
            let message = "the type of the elements is missing";
            return Err(node.error("cc4s.elements-type", message));
        }
    };
    let mut tensor = TensorInfo::new(name, dtype, shape, Layout::ColumnMajor);
    tensor.metadata = metadata(cx, node, dtype, &dimensions)?;
    let has_kinds = dimensions.iter().any(|dimension| dimension.kind.is_some());
    tensor.set_derived(if has_kinds {
        &["scalarType"]
    } else {
        &["scalarType", "dimensions"]
    });
    let conditions = Conditions::parse(node, dimensions.len())?;
    let file = File { base, text, count };
    if let Err(error) = file.locate(cx, &mut tensor, conditions, &dimensions) {
        tensor.defect = Some(error.in_tensor(name));
    }
    Ok(tensor)
}

fn element_type(node: Node<'_>) -> Result<DType> {
    let Some(found) = node.get("scalarType") else {
        return Err(node.error("cc4s.scalar-type", "there is no scalarType"));
    };
    match found.text() {
        Some("Real64") => Ok(DType::F64),
        Some("Complex64") => Ok(DType::C128),
        other => {
            let message = format!(
                "scalarType {:?}, expected Real64 or Complex64",
                other.unwrap_or_default()
            );
            Err(found.error("cc4s.scalar-type", message))
        }
    }
}

fn dimensions(node: Node<'_>, most: usize) -> Result<Vec<Dimension>> {
    let Some(list) = node.get("dimensions") else {
        return Err(node.error("cc4s.dimensions", "there are no dimensions"));
    };
    let Some(items) = list.items() else {
        let message = "the dimensions are neither a list nor a map with the keys 0, 1, ...";
        return Err(list.error("cc4s.dimensions", message));
    };
    let count = items.clone().count();
    if count > most {
        let message = format!("{count} dimensions, at most {most} are read");
        let error = Error::limit("cc4s.dimensions", message).at(list.at()..list.at() + 1);
        return Err(error.raised_by("rank", count as u64));
    }
    items.map(dimension).collect()
}

fn dimension(item: Node<'_>) -> Result<Dimension> {
    let Some(length) = item.get("length") else {
        return Err(item.error("cc4s.length", "a dimension without a length"));
    };
    let Some(number) = length.scalar().and_then(|value| value.as_u64()) else {
        let found = length.text().unwrap_or_default();
        let message = format!("length {found:?}, expected a whole number of 0 or more");
        return Err(length.error("cc4s.length", message));
    };
    let kind = match item.get("type") {
        None => None,
        Some(kind) => match kind.text() {
            Some(text) => Some(text.to_owned()),
            None => {
                let message = "the type of a dimension is not a word";
                return Err(kind.error("cc4s.dimensions", message));
            }
        },
    };
    Ok(Dimension {
        length: number,
        kind,
    })
}

/// What the file says beyond type and shape.
fn metadata(
    cx: &mut Context<'_>,
    node: Node<'_>,
    dtype: DType,
    dimensions: &[Dimension],
) -> Result<Metadata> {
    let mut metadata = Metadata::new();
    let scalar = scalar_type(dtype).unwrap_or_default().to_owned();
    metadata.push("scalarType", Value::Str(scalar));
    let kinds = dimensions.iter().map(|dimension| &dimension.kind);
    let kinds = kinds.map(|kind| kind.clone().map_or(Value::Null, Value::Str));
    metadata.push("dimensions", Value::List(kinds.collect()));
    match node.get("unit").map(|unit| (unit, unit.scalar())) {
        Some((_, Some(value))) if value.as_f64().is_some() => metadata.push("unit", value),
        Some((unit, _)) => return Err(unit.error("cc4s.unit", "the unit is not a number")),
        None => {
            let message =
                "there is no unit, which cc4s requires; `unit: 1` stands for atomic units";
            return Err(node.error("cc4s.unit", message));
        }
    }
    if let Some(more) = node.get("metaData") {
        metadata.push("metaData", more.value()?);
    }
    let entries = node.entries().into_iter().flatten();
    let mut unknown = entries.filter(|(key, _)| !KEYS.contains(key));
    for (key, value) in unknown.by_ref().take(NAMED) {
        let message = format!("the key {key:?} is not known, and not kept");
        node.take((size_of::<Finding>() + 2 * message.len()) as u64)?;
        cx.warn("cc4s.key", value.at()..value.at() + 1, message)?;
    }
    let more = unknown.count();
    if more > 0 {
        let message = format!("{more} more keys are not known, and not kept");
        cx.warn("cc4s.key", node.at()..node.at() + 1, message)?;
    }
    Ok(metadata)
}

/// The file with the elements of a tensor.
struct File<'b> {
    base: &'b str,
    text: bool,
    /// Elements of the dense tensor.
    count: u64,
}

impl File<'_> {
    /// Gives the tensor its parts.
    fn locate(
        &self,
        cx: &mut Context<'_>,
        tensor: &mut TensorInfo,
        conditions: Option<Conditions>,
        dimensions: &[Dimension],
    ) -> Result<()> {
        let blocks = conditions
            .map(|conditions| conditions.resolve(cx, dimensions))
            .transpose()?;
        let nnz = match &blocks {
            Some(blocks) => blocks.count()?,
            None => self.count,
        };
        let payload = self.payload(cx, tensor.dtype, nnz)?;
        tensor.parts = Part::new(Role::Values, tensor.dtype, payload).into();
        if let Some(blocks) = blocks {
            let (len, maker) = blocks.coords(nnz, cx.limits())?;
            let payload = Payload::Lazy { len, maker };
            tensor.layout = Layout::Coo { nnz };
            tensor
                .parts
                .push(Part::new(Role::Coords, DType::U64, payload));
        }
        Ok(())
    }

    fn payload(&self, cx: &mut Context<'_>, dtype: DType, count: u64) -> Result<Payload> {
        let name = format!("{}.elements", self.base);
        let missing = || {
            let message = format!("its elements should be in {name:?}, which is missing");
            Error::new(ErrorKind::NotFound, "cc4s.elements-missing", message)
        };
        let id = cx.sibling(&name).map_err(|cause| match cause.kind() {
            ErrorKind::NotFound => missing().because(cause),
            _ => cause,
        })?;
        let source = cx.open(id).filter(|_| id != SourceId::MAIN);
        let source = source.ok_or_else(missing)?;
        if self.text {
            let bytes = elements::parse(&*source, id, dtype, count, cx.limits());
            let bytes = bytes.map_err(|error| error.in_file(id, &name))?;
            return Ok(Payload::Inline(Bytes::from(bytes)));
        }
        let (len, expected) = (source.len(), dtype.bytes_for(count));
        if Some(len) != expected {
            let message = format!(
                "{name} has {len} bytes, {count} elements of {dtype} take {}",
                expected.map_or("more than can be counted".to_owned(), |n| n.to_string())
            );
            return Err(Error::malformed("cc4s.size", message).at_source(id, 0..len));
        }
        Ok(Payload::Raw {
            source: id,
            range: 0..len,
        })
    }
}
