//! 7.3: HDF5, with the dimensions in reverse, and with attributes that say what is meant.

use super::SPEC;
use super::found::{self, Found};
use super::text;
use crate::error::{Error, Result};
use crate::format::Context;
use crate::model::{
    DType, Endian, Layout, Metadata, Part, Payload, Role, SourceId, TensorInfo, Value,
    element_count,
};
use crate::prelude::*;
use crate::transform::{Data, View};
use crate::wire::hdf5::{self, Content, RemarkKind};

/// Cells and structures within each other, at most.
const MOST_DEPTH: usize = 64;
/// What is counted for an entry that is gone through, whatever it is: the same object can be that of many.
const ENTRY: u64 = 64;
/// What is counted for every tensor beside what it takes: parts and chunks.
const OBJECT: u64 = 512;
/// Groups that are no variables.
const INNER: [&str; 3] = ["#refs#", "#subsystem#", "#local_variables#"];

/// Reads all variables of the HDF5 file behind the header.
pub(super) fn describe(cx: &mut Context<'_>, found: &mut Found<'_>) -> Result<Vec<Range<u64>>> {
    let source = cx.source();
    let limits = *cx.limits();
    let shared = cx.open(SourceId::MAIN);
    let shared = shared.ok_or_else(|| Error::argument("a file that is gone"))?;
    let mut content = hdf5::read_with_references(source, SourceId::MAIN, 0..source.len(), &limits)?;
    report(cx, &content);
    let regions = content.others();
    found.read = regions.iter().map(|range| range.end - range.start).sum();
    let tensors = core::mem::take(&mut content.tensors);
    let references = core::mem::take(&mut content.references);
    let objects = Objects::new(&content, tensors, references);
    let mut walk = Walk {
        cx,
        found,
        objects: &objects,
        addresses: &content.addresses,
        data: Data::new(core::slice::from_ref(&shared), &limits),
        place: content.range.clone(),
    };
    for name in objects.inside("") {
        if !INNER.contains(&name) {
            walk.object(name, name, 0)?;
        }
    }
    Ok(regions)
}

/// Says what HDF5 has beyond variables.
fn report(cx: &mut Context<'_>, content: &Content) {
    for remark in &content.remarks {
        let is_inner = INNER.iter().any(|inner| remark.path.starts_with(inner));
        if is_inner || remark.kind == RemarkKind::Attribute {
            continue;
        }
        let message = format!("{:?}: {}", remark.path, remark.why);
        cx.note("mat.skipped", content.range.clone(), message);
    }
}

/// What is at a path.
enum Object {
    Group(Metadata),
    Numbers(TensorInfo),
    /// A dataset of references.
    References(TensorInfo),
}

/// All objects by their paths, in the order of the bytes of their names.
struct Objects(Vec<(String, Object)>);

impl Objects {
    fn new(content: &Content, tensors: Vec<TensorInfo>, references: Vec<TensorInfo>) -> Self {
        let groups = content.groups.iter();
        let groups =
            groups.map(|(path, attributes)| (path.clone(), Object::Group(attributes.clone())));
        let tensors = tensors
            .into_iter()
            .map(|info| (info.name.clone(), Object::Numbers(info)));
        let references = references.into_iter();
        let references = references.map(|info| (info.name.clone(), Object::References(info)));
        let mut objects: Vec<_> = groups.chain(tensors).chain(references).collect();
        objects.sort_by(|(a, _), (b, _)| a.split('/').cmp(b.split('/')));
        Self(objects)
    }

    fn get(&self, path: &str) -> Option<&Object> {
        let found = self
            .0
            .binary_search_by(|(known, _)| known.split('/').cmp(path.split('/')));
        self.0.get(found.ok()?).map(|(_, object)| object)
    }

    /// The names of what is directly in a group.
    fn inside<'o>(&'o self, group: &str) -> Vec<&'o str> {
        let from = if group.is_empty() {
            0
        } else {
            let found = self
                .0
                .binary_search_by(|(known, _)| known.split('/').cmp(group.split('/')));
            found.map_or(self.0.len(), |place| place + 1)
        };
        let after = |path: &'o str| -> Option<&'o str> {
            if group.is_empty() {
                return Some(path);
            }
            path.strip_prefix(group)?.strip_prefix('/')
        };
        let paths = self.0.iter().skip(from).map(|(path, _)| path.as_str());
        let inside = paths.map_while(after);
        inside.filter(|name| !name.contains('/')).collect()
    }
}

struct Walk<'w, 'a, 'f> {
    cx: &'w mut Context<'a>,
    found: &'w mut Found<'f>,
    objects: &'w Objects,
    addresses: &'w LookupMap<u64, String>,
    data: Data<'w>,
    place: Range<u64>,
}

impl Walk<'_, '_, '_> {
    /// An object at a path, which the variable of this name is.
    fn object(&mut self, name: &str, path: &str, depth: usize) -> Result<()> {
        self.found.make(ENTRY, &self.place)?;
        let limit = MOST_DEPTH.min(self.found.limits.depth);
        if depth > limit {
            let message = format!("more than {limit} cells and structures within each other");
            let mut error = Error::limit("mat.depth", message).at(self.place.clone());
            if limit < MOST_DEPTH {
                error = error.raised_by("depth", None);
            }
            return Err(error);
        }
        let objects = self.objects;
        match objects.get(path) {
            Some(Object::Group(attributes)) if attributes.get("MATLAB_sparse").is_some() => {
                self.sparse(name, path, attributes)
            }
            Some(Object::Group(attributes)) => self.structure(name, path, attributes, depth),
            Some(Object::References(info)) => self.cells(name, info, depth),
            Some(Object::Numbers(info)) => self.numbers(name, info),
            // Said already.
            None => Ok(()),
        }
    }

    /// Where a reference leads.
    fn target(&self, address: u64, name: &str) -> Result<&str> {
        let known = self.addresses.get(&address).map(String::as_str);
        known.ok_or_else(|| {
            let message = format!("a reference leads to address {address}, where no object is");
            let error = Error::malformed("mat.reference", message).in_tensor(name);
            error.at(self.place.clone())
        })
    }

    /// The entries of a cell.
    fn cells(&mut self, name: &str, info: &TensorInfo, depth: usize) -> Result<()> {
        if is_empty(info) {
            return Ok(());
        }
        for (n, address) in self.references(info)?.into_iter().enumerate() {
            let entry = format!("{name}.{n}");
            let path = self.target(address, &entry)?.to_owned();
            self.object(&entry, &path, depth + 1)?;
        }
        Ok(())
    }

    fn references(&mut self, info: &TensorInfo) -> Result<Vec<u64>> {
        let bytes = self.bytes(info)?;
        let addresses = bytes.as_chunks::<8>().0.iter();
        Ok(addresses
            .map(|address| u64::from_le_bytes(*address))
            .collect())
    }

    /// All elements of a dataset, as they are stored.
    fn bytes(&mut self, info: &TensorInfo) -> Result<Vec<u8>> {
        let info = info.readable()?;
        let part = info.part(&Role::Values);
        let part = part.ok_or_else(|| Error::argument("a dataset without elements"))?;
        let len = part.payload.len();
        let limit = self.found.limits.header_bytes;
        if len > limit {
            let message = format!("{len} bytes that are no numbers, the limit is {limit}");
            let error = Error::limit("mat.limit", message).raised_by("header_bytes", len);
            return Err(error.at(self.place.clone()).in_tensor(&info.name));
        }
        if part.payload.stored().is_some() {
            self.found.read = self.found.read.saturating_add(len);
        }
        self.found.make(len, &self.place)?;
        View::decoded(self.data, &part.payload)?.collect(limit)
    }

    /// A structure, or an array of them: then each field is a list of references.
    fn structure(
        &mut self,
        name: &str,
        path: &str,
        attributes: &Metadata,
        depth: usize,
    ) -> Result<()> {
        if let Some(class) = opaque(attributes) {
            return self.skip(name, &class);
        }
        let objects = self.objects;
        let mut fields: Vec<&str> = objects.inside(path);
        if let Some(Value::List(order)) = attributes.get("MATLAB_fields") {
            let order: Vec<String> = (order.iter())
                .filter_map(|field| field.as_str().map(ToOwned::to_owned))
                .collect();
            let place = |field: &&str| order.iter().position(|known| known == field);
            fields.sort_by_key(|field| place(field).unwrap_or(usize::MAX));
        }
        let mut arrays = Vec::new();
        for field in &fields {
            let inner = format!("{path}/{field}");
            match objects.get(&inner) {
                Some(Object::References(info)) if class(&info.metadata).is_none() => {
                    arrays.push((*field, self.references(info)?));
                }
                _ => self.object(&format!("{name}.{field}"), &inner, depth + 1)?,
            }
        }
        let count = arrays.iter().map(|(_, entries)| entries.len()).max();
        for n in 0..count.unwrap_or(0) {
            for (field, entries) in &arrays {
                let entry = format!("{name}.{n}.{field}");
                if let Some(address) = entries.get(n) {
                    let path = self.target(*address, &entry)?.to_owned();
                    self.object(&entry, &path, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    fn skip(&mut self, name: &str, class: &str) -> Result<()> {
        self.found.keep(SPEC.id, name, &(0..0))?;
        let message = format!(
            "variable {} is of class {class}, and no tensor",
            crate::model::brief(name)
        );
        self.cx.note("mat.skipped", self.place.clone(), message);
        Ok(())
    }

    fn numbers(&mut self, name: &str, info: &TensorInfo) -> Result<()> {
        let attributes = &info.metadata;
        if let Some(class) = opaque(attributes) {
            return self.skip(name, &class);
        }
        let class = class(attributes);
        let dims: Vec<u64> = if is_empty(info) {
            let dims = self.bytes(info)?;
            let dims = dims.as_chunks::<8>().0.iter();
            dims.map(|dim| u64::from_le_bytes(*dim)).collect()
        } else {
            info.shape.iter().rev().copied().collect()
        };
        if matches!(class, Some("cell" | "struct")) {
            return Ok(());
        }
        // What no program of MATLAB's wrote may have fewer dimensions.
        let shape = match dims.as_slice() {
            [_] | [] => crate::model::Shape::from(dims.as_slice()),
            dims => found::shape(dims, self.found.limits, &self.place)
                .map_err(|error| error.in_tensor(name))?,
        };
        let elements = element_count(&shape).unwrap_or(0);
        if class == Some("char") {
            let units = if is_empty(info) {
                Vec::new()
            } else {
                self.bytes(info)?
            };
            let rows = shape.first().copied().unwrap_or(0);
            let columns = shape.get(1..).and_then(element_count).unwrap_or(0);
            let kind = if info.dtype == DType::U8 { 2 } else { 4 };
            let endian = info
                .parts
                .first()
                .map_or(Endian::Little, |part| part.endian);
            let rows = if elements == 0 { 0 } else { rows };
            let text = text::decode(kind, endian, &units, (rows, columns));
            let text = text.ok_or_else(|| {
                let message = format!(
                    "{} bytes are no text of {:?} characters",
                    units.len(),
                    &*shape
                );
                let error = Error::malformed("mat.text", message).in_tensor(name);
                error.at(self.place.clone())
            })?;
            return self.found.text(name, text, &self.place);
        }
        let dtype = match class {
            Some("logical") if matches!(info.dtype, DType::U8 | DType::I8) => DType::BOOL,
            Some(class) if is_empty(info) => of_class(class).unwrap_or(info.dtype),
            _ => info.dtype,
        };
        self.found.read = self.found.read.saturating_add(OBJECT);
        let mut tensor = TensorInfo::new(name, dtype, shape, Layout::RowMajor);
        tensor.defect = info.defect.clone().map(|defect| defect.in_tensor(name));
        if is_empty(info) {
            let empty = Payload::Inline(crate::Bytes::new());
            tensor.parts = Part::new(Role::Values, dtype, empty).into();
            if elements > 0 {
                let message = format!("{:?} is said to be empty", &*tensor.shape);
                let error = Error::malformed("mat.empty", message).at(self.place.clone());
                tensor.defect = Some(error.in_tensor(name));
            }
        } else {
            tensor.parts = info.parts.clone();
            for part in &mut tensor.parts {
                part.dtype = dtype;
            }
            let is_chunked = matches!(info.layout, Layout::Chunked);
            tensor.layout = match tensor.shape.len() {
                0 | 1 => info.layout.clone(),
                _ if is_chunked => Layout::ColumnMajor,
                _ => found::dense(&tensor.shape),
            };
        }
        for (key, value) in attributes.iter() {
            if !is_own(key) {
                tensor.metadata.push(key, value.clone());
            }
        }
        self.found.tensor(tensor, &self.place)
    }

    /// A sparse matrix: `ir` are the rows of the entries, `jc` where columns begin among them.
    fn sparse(&mut self, name: &str, path: &str, attributes: &Metadata) -> Result<()> {
        let wrong = |message: String, place: &Range<u64>| {
            Error::malformed("mat.sparse", message)
                .in_tensor(name)
                .at(place.clone())
        };
        let Some(rows) = attributes.get("MATLAB_sparse").and_then(Value::as_u64) else {
            return Err(wrong(
                "the number of rows is no number".to_owned(),
                &self.place,
            ));
        };
        let objects = self.objects;
        let part = |field: &str, role: Role| {
            let Some(Object::Numbers(info)) = objects.get(&format!("{path}/{field}")) else {
                return None;
            };
            let mut part = info.parts.first()?.clone();
            part.role = role;
            let count = element_count(&info.shape)?;
            Some((part, count))
        };
        let Some((starts, count)) = part("jc", Role::Indptr) else {
            return Err(wrong("there is no jc".to_owned(), &self.place));
        };
        let columns = count.checked_sub(1);
        let columns = columns.ok_or_else(|| wrong("jc is empty".to_owned(), &self.place))?;
        let shape = found::shape(&[rows, columns], self.found.limits, &self.place)
            .map_err(|error| error.in_tensor(name))?;
        let is_bool = class(attributes) == Some("logical");
        // Without entries, there is nothing to say where they are.
        let none = |role, dtype| {
            (
                Part::new(role, dtype, Payload::Inline(crate::Bytes::new())),
                0,
            )
        };
        let (indices, nnz) = part("ir", Role::Indices).unwrap_or(none(Role::Indices, DType::U64));
        let (mut values, count) = part("data", Role::Values)
            .unwrap_or_else(|| none(Role::Values, if is_bool { DType::BOOL } else { DType::F64 }));
        if count != nnz {
            let message = format!("{nnz} rows and {count} values");
            return Err(wrong(message, &self.place));
        }
        if is_bool && matches!(values.dtype, DType::U8 | DType::I8) {
            values.dtype = DType::BOOL;
        }
        self.found.read = self.found.read.saturating_add(OBJECT);
        let mut tensor = TensorInfo::new(name, values.dtype, shape, Layout::Csc { nnz });
        tensor.parts = vec![values, indices, starts].into();
        self.found.tensor(tensor, &self.place)
    }
}

/// What an object says that it is.
fn class(attributes: &Metadata) -> Option<&str> {
    attributes.get("MATLAB_class").and_then(Value::as_str)
}

/// The class of something that only MATLAB understands.
fn opaque(attributes: &Metadata) -> Option<String> {
    let class = class(attributes)?;
    let is_plain = of_class(class).is_some() || matches!(class, "char" | "cell" | "struct");
    let is_object = attributes.get("MATLAB_object_decode").is_some();
    (is_object || !is_plain).then(|| crate::model::brief(class))
}

/// Whether its elements are not there, but the dimensions that they have.
fn is_empty(info: &TensorInfo) -> bool {
    let says = info.metadata.get("MATLAB_empty").and_then(Value::as_u64);
    says == Some(1)
}

/// Whether an attribute belongs to the format.
fn is_own(key: &str) -> bool {
    key.starts_with("MATLAB_") || matches!(key, "H5PATH")
}

fn of_class(class: &str) -> Option<DType> {
    Some(match class {
        "double" => DType::F64,
        "single" => DType::F32,
        "int8" => DType::I8,
        "uint8" => DType::U8,
        "int16" => DType::I16,
        "uint16" => DType::U16,
        "int32" => DType::I32,
        "uint32" => DType::U32,
        "int64" => DType::I64,
        "uint64" => DType::U64,
        "logical" => DType::BOOL,
        _ => return None,
    })
}
