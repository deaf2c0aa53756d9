//! From the model to a file: a header, then every variable in one piece.

use super::codec::{self, Placed, Records};
use super::raw::{Header, Variable};
use super::records::Recorded;
use super::types::{self, CHAR};
use super::{BOOL, CDF_5, DIMENSIONS, RECORD_DIMENSION, SPEC, limits};
use crate::error::{Error, Result};
use crate::format::{
    Arranged, Effect, FilePlan, Form, Loss, Lost, Plan, PlanOptions, Segment, Want,
};
use crate::io::Limits;
use crate::model::{
    DType, Endian, Kept, Manifest, Metadata, Order, SourceId, TensorInfo, Value, ValueKind,
};
use crate::prelude::*;

/// Variables begin at a multiple of this.
const ALIGN: u64 = 4;

/// Leaves the names of dimensions only where all tensors agree on their lengths, and says what is written in another form.
pub(super) fn arrange(what: &Manifest, options: &PlanOptions) -> Result<Arranged> {
    let mut manifest = what.clone();
    // What the file said of itself is to be so in the new one.
    if what.metadata.is_fact(RECORD_DIMENSION)
        && let Some(name) = manifest.metadata.remove(RECORD_DIMENSION)
    {
        manifest.metadata.push(RECORD_DIMENSION, name);
    }
    let mut losses = Vec::new();
    let mut lengths = Lengths::default();
    for text in texts(what, options)? {
        lengths.agree(&text.names, &text.placed.shape);
    }
    for place in 0..manifest.tensors.len() {
        let Some(tensor) = what.tensors.get(place) else {
            continue;
        };
        let name = || Some(tensor.name.clone());
        let mut drop_key = |key: &str, why: &str| {
            let what = Lost::Metadata(key.to_owned());
            losses.push(Loss::new(name(), what, why, Effect::Dropped));
            if let Some(tensor) = manifest.tensors.get_mut(place) {
                tensor.metadata.remove(key);
            }
        };
        let said = tensor.metadata.get(DIMENSIONS);
        if said.is_some()
            && !names_of(tensor).is_some_and(|names| lengths.agree(&names, &tensor.shape))
        {
            drop_key(
                DIMENSIONS,
                "no names for these dimensions, or names that stand for other lengths too",
            );
        }
        let (key, _) = BOOL;
        if tensor.dtype == DType::BOOL {
            if tensor.metadata.get(key).is_some() && !tensor.metadata.is_fact(key) {
                drop_key(key, "it says that these are bools");
            }
            let why = "written as i8 with the attribute dtype = \"bool\", as xarray does";
            let what = Lost::DType(DType::BOOL);
            losses.push(Loss::new(name(), what, why, Effect::Rearranged));
        }
    }
    Ok(Arranged::new(manifest, losses))
}

/// The names that a tensor's dimensions are said to have, if they can have them.
fn names_of(tensor: &TensorInfo) -> Option<Vec<String>> {
    let Some(Value::List(list)) = tensor.metadata.get(DIMENSIONS) else {
        return None;
    };
    let names: Vec<String> = list
        .iter()
        .filter_map(|name| match name {
            Value::Str(name) if limits::name(&name).is_ok() => Some(name),
            _ => None,
        })
        .collect();
    (names.len() == list.len() && names.len() == tensor.shape.len()).then_some(names)
}

/// The length that every name of a dimension stands for.
#[derive(Default)]
struct Lengths(LookupMap<String, u64>);

impl Lengths {
    /// Whether dimensions with these names can have these lengths; if so, they have them from now on.
    fn agree(&mut self, names: &[String], shape: &[u64]) -> bool {
        let mut new: Vec<(&String, u64)> = Vec::new();
        for (name, length) in names.iter().zip(shape) {
            let among_new = new.iter().find(|(known, _)| *known == name);
            let known = among_new.map(|(_, length)| *length);
            match known.or_else(|| self.0.get(name).copied()) {
                Some(known) if known != *length => return false,
                Some(_) => {}
                None => new.push((name, *length)),
            }
        }
        let new = new.into_iter().map(|(name, length)| (name.clone(), length));
        self.0.extend(new);
        true
    }
}

/// A variable of text that goes on from another file.
struct Text {
    variable: Variable,
    names: Vec<String>,
    placed: Placed,
    source: SourceId,
}

impl Text {
    /// Its bytes, record by record.
    fn segments(&self) -> Vec<Segment> {
        let copy = |range: Range<u64>| Segment::Copy {
            source: self.source,
            range,
        };
        let Range { start, end } = self.placed.range;
        match self.placed.record {
            Some((block, distance)) if block > 0 && start < end => {
                let count = self.placed.shape.first().copied().unwrap_or(0);
                let starts = (0..count).map(|n| start + n * distance);
                starts.map(|start| copy(start..start + block)).collect()
            }
            _ => vec![copy(start..end)],
        }
    }

    /// One of its records, of so many bytes.
    fn block(&self, record: u64, len: u64) -> Option<Segment> {
        let Range { start, .. } = self.placed.range;
        let distance = self.placed.record.map_or(len, |(_, distance)| distance);
        let start = start.checked_add(record.checked_mul(distance)?)?;
        Some(Segment::Copy {
            source: self.source,
            range: start..start.checked_add(len)?,
        })
    }

    fn len(&self) -> u64 {
        self.placed.shape.iter().product()
    }
}

/// The variables of text in the files that the tensors came from.
fn texts(what: &Manifest, options: &PlanOptions) -> Result<Vec<Text>> {
    let mut texts = Vec::new();
    let own = |kept: &&Kept| kept.format == SPEC.id;
    let mut known: Option<(SourceId, Header, Records)> = None;
    for kept in what.kept.iter().filter(own) {
        if known
            .as_ref()
            .is_none_or(|(source, ..)| *source != kept.source)
        {
            let Some(source) = options.sources.get(kept.source.index()) else {
                continue;
            };
            let header = Header::parse(&**source, &Limits::default())?;
            let records = Records::of(&header, source.len())?;
            known = Some((kept.source, header, records));
        }
        let Some((source, header, records)) = &mut known else {
            continue;
        };
        let place = (header.var_list.iter()).position(|variable| variable.name == kept.name);
        let Some(place) = place else {
            continue;
        };
        let Some(variable) = header.var_list.get(place) else {
            continue;
        };
        let placed = codec::place(header, records, variable)?;
        let names = (variable.dimids.iter())
            .filter_map(|id| header.dimension(*id))
            .map(|dimension| dimension.name.clone())
            .collect();
        // Nothing of length 0 is written.
        if placed.shape.contains(&0) {
            continue;
        }
        texts.push(Text {
            variable: header.var_list.swap_remove(place),
            names,
            placed,
            source: *source,
        });
    }
    Ok(texts)
}

/// A variable to be written.
pub(super) struct Entry<'m> {
    pub(super) name: &'m str,
    nc_type: u32,
    pub(super) dimids: Vec<usize>,
    attributes: &'m Metadata,
    is_bool: bool,
    pub(super) len: u64,
}

pub(super) fn plan(what: &Manifest, options: &PlanOptions) -> Result<Plan> {
    let texts = texts(what, options)?;
    let mut dimensions = Dimensions::default();
    let named = texts
        .iter()
        .map(|text| (text.names.clone(), &*text.placed.shape));
    let tensors = what.tensors.iter();
    let said = tensors.filter_map(|tensor| Some((names_of(tensor)?, &*tensor.shape)));
    // What has names keeps them, also where it comes last.
    for (names, shape) in named.chain(said) {
        for (name, length) in names.into_iter().zip(shape) {
            dimensions.name(name, *length);
        }
    }
    let mut entries = Vec::new();
    for tensor in &what.tensors {
        let too_large =
            || Error::unsupported("netcdf.write", "it is too large").in_tensor(&tensor.name);
        let nc_type = types::of_dtype(tensor.dtype).ok_or_else(|| {
            let message = format!("{} cannot be written", tensor.dtype);
            Error::unsupported("netcdf.write", message).in_tensor(&tensor.name)
        })?;
        entries.push(Entry {
            name: &tensor.name,
            nc_type,
            dimids: dimensions.ids(names_of(tensor), &tensor.shape),
            attributes: &tensor.metadata,
            is_bool: tensor.dtype == DType::BOOL,
            len: tensor.dense_len().ok_or_else(too_large)?,
        });
    }
    for text in &texts {
        if what
            .tensors
            .iter()
            .any(|tensor| tensor.name == text.variable.name)
        {
            let message = format!(
                "a tensor and a variable of text are called {:?}",
                text.variable.name
            );
            return Err(Error::unsupported("netcdf.write", message));
        }
        entries.push(Entry {
            name: &text.variable.name,
            nc_type: CHAR,
            dimids: dimensions.ids(Some(text.names.clone()), &text.placed.shape),
            attributes: &text.variable.vatt_list,
            is_bool: false,
            len: text.len(),
        });
    }
    let records = Recorded::of(&what.metadata, &dimensions, &entries);
    let encoder = |begins: &[u64]| {
        let mut header = Encoder::new(options.version == CDF_5);
        // What the dimension itself says is no attribute.
        let mut metadata = what.metadata.clone();
        if records.dimension.is_some() {
            metadata.remove(RECORD_DIMENSION);
        }
        header.file(&dimensions, &records, &metadata, &entries, begins);
        header.out
    };
    // How long the header is depends on no offset.
    let begins = records.begins(&entries, ALIGN, encoder(&[]).len() as u64)?;
    let mut segments = vec![Segment::Bytes(encoder(&begins))];
    let align = || Segment::Align { to: ALIGN, fill: 0 };
    let data = |index: usize, tensor: &TensorInfo, elements: Option<Range<u64>>| {
        let of = Want::Dense(Form::new(tensor.dtype, Order::RowMajor, Endian::Big));
        Segment::Tensor {
            index,
            part: 0,
            want: match elements {
                None => of,
                Some(elements) => Want::Stretch {
                    elements,
                    of: Box::new(of),
                },
            },
            codec: None,
            digest: None,
        }
    };
    let all: Vec<(&Entry<'_>, Data<'_>)> = {
        let tensors = what.tensors.iter().enumerate();
        let tensors = tensors.map(|(index, tensor)| Data::Tensor(index, tensor));
        let variables = tensors.chain(texts.iter().map(Data::Text));
        entries.iter().zip(variables).collect()
    };
    for (_, variable) in all.iter().filter(|(entry, _)| !records.has(entry)) {
        segments.push(align());
        match variable {
            Data::Tensor(index, tensor) => segments.push(data(*index, tensor, None)),
            Data::Text(text) => segments.extend(text.segments()),
        }
    }
    let recorded: Vec<_> = all.iter().filter(|(entry, _)| records.has(entry)).collect();
    segments.push(align());
    if let [(_, only)] = recorded.as_slice() {
        // Records of a single variable are neighbours, and not padded.
        match only {
            Data::Tensor(index, tensor) => segments.push(data(*index, tensor, None)),
            Data::Text(text) => segments.extend(text.segments()),
        }
        return Ok(Plan {
            files: vec![FilePlan::new(options.file_name.clone(), segments)],
        });
    }
    for record in 0..records.count {
        for (entry, variable) in &recorded {
            match variable {
                Data::Tensor(index, tensor) => {
                    let count = tensor.elements().unwrap_or(0) / records.count.max(1);
                    let elements = record * count..(record + 1) * count;
                    segments.push(data(*index, tensor, Some(elements)));
                }
                Data::Text(text) => segments.extend(text.block(record, records.block(entry))),
            }
            segments.push(align());
        }
    }
    // The last variable is padded too.
    segments.push(Segment::Align { to: ALIGN, fill: 0 });
    Ok(Plan {
        files: vec![FilePlan::new(options.file_name.clone(), segments)],
    })
}

/// Where the data of a variable comes from.
enum Data<'m> {
    Tensor(usize, &'m TensorInfo),
    Text(&'m Text),
}

/// The dimensions of a file: those that have names, and one for every other length.
#[derive(Default)]
pub(super) struct Dimensions {
    pub(super) list: Vec<(String, u64)>,
    by_name: LookupMap<String, usize>,
    /// By length, and by how many dimensions of the same variable have it before: xarray wants them to differ.
    by_length: LookupMap<(u64, usize), usize>,
}

impl Dimensions {
    fn name(&mut self, name: String, length: u64) -> usize {
        let next = self.list.len();
        let place = *self.by_name.entry(name.clone()).or_insert(next);
        if place == next {
            self.list.push((name, length));
        }
        place
    }

    /// The dimensions of a variable.
    fn ids(&mut self, names: Option<Vec<String>>, shape: &[u64]) -> Vec<usize> {
        if let Some(names) = names {
            let dimensions = names.into_iter().zip(shape);
            return dimensions
                .map(|(name, length)| self.name(name, *length))
                .collect();
        }
        let mut ids = Vec::new();
        for (axis, length) in shape.iter().enumerate() {
            let before = shape.iter().take(axis).filter(|other| *other == length);
            ids.push(self.of_length(*length, before.count()));
        }
        ids
    }

    /// The one without a name of its own: `dim0`, `dim1`, and so on.
    fn of_length(&mut self, length: u64, before: usize) -> usize {
        if let Some(place) = self.by_length.get(&(length, before)) {
            return *place;
        }
        let mut number = self.by_length.len();
        let mut name = format!("dim{number}");
        while self.by_name.contains_key(&name) {
            number += 1;
            name = format!("dim{number}");
        }
        let place = self.name(name, length);
        self.by_length.insert((length, before), place);
        place
    }
}

/// The header.
struct Encoder {
    out: Vec<u8>,
    /// Whether counts have 64 bits.
    wide: bool,
}

impl Encoder {
    fn new(wide: bool) -> Self {
        let out = if wide { b"CDF\x05" } else { b"CDF\x02" };
        Self {
            out: out.to_vec(),
            wide,
        }
    }

    fn word(&mut self, number: u32) {
        self.out.extend_from_slice(&number.to_be_bytes());
    }

    fn number(&mut self, number: u64) {
        match u32::try_from(number) {
            Ok(number) if !self.wide => self.word(number),
            // As netCDF-C has it for a size that does not fit.
            Err(_) if !self.wide => self.word(u32::MAX),
            _ => self.out.extend_from_slice(&number.to_be_bytes()),
        }
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
        self.out.resize(self.out.len().next_multiple_of(4), 0);
    }

    fn name(&mut self, name: &str) {
        self.number(name.len() as u64);
        self.padded(name.as_bytes());
    }

    /// The head of a list.
    fn list(&mut self, tag: u32, count: usize) {
        self.word(if count == 0 { 0 } else { tag });
        self.number(count as u64);
    }

    fn file(
        &mut self,
        dimensions: &Dimensions,
        records: &Recorded,
        metadata: &Metadata,
        entries: &[Entry<'_>],
        begins: &[u64],
    ) {
        self.number(records.count);
        self.list(10, dimensions.list.len());
        for (place, (name, length)) in dimensions.list.iter().enumerate() {
            self.name(name);
            let counts_records = records.dimension == Some(place);
            self.number(if counts_records { 0 } else { *length });
        }
        self.attributes(metadata, false);
        self.list(11, entries.len());
        for (place, entry) in entries.iter().enumerate() {
            self.name(entry.name);
            self.number(entry.dimids.len() as u64);
            for id in &entry.dimids {
                self.number(*id as u64);
            }
            self.attributes(entry.attributes, entry.is_bool);
            self.word(entry.nc_type);
            self.number(records.block(entry).next_multiple_of(ALIGN));
            let begin = begins.get(place).copied().unwrap_or(0);
            self.out.extend_from_slice(&begin.to_be_bytes());
        }
    }

    fn attributes(&mut self, metadata: &Metadata, is_bool: bool) {
        let is_attribute = |&(key, value, is_fact): &(&str, &Value, bool)| {
            let names_dimensions = key == DIMENSIONS
                && matches!(value, Value::List(list) if list.kind() == Some(ValueKind::Str));
            !is_fact && !names_dimensions
        };
        let attributes: Vec<_> = metadata.entries().filter(is_attribute).collect();
        let (key, value) = BOOL;
        self.list(12, attributes.len() + usize::from(is_bool));
        for (key, value, _) in attributes {
            self.name(key);
            self.value(value);
        }
        if is_bool {
            self.name(key);
            self.value(&Value::from(value));
        }
    }

    fn value(&mut self, value: &Value) {
        let text = match value {
            Value::Str(text) => Some(text.as_bytes()),
            Value::Bytes(bytes) => Some(&bytes[..]),
            _ => None,
        };
        if let Some(text) = text {
            self.word(CHAR);
            self.number(text.len() as u64);
            return self.padded(text);
        }
        let (kind, count) = match value {
            Value::List(list) => (list.kind(), list.len()),
            Value::Empty(kind) => (Some(*kind), 0),
            value => (value.kind(), 1),
        };
        // All kinds have numbers: the capabilities say so.
        self.word(kind.and_then(types::of_kind).unwrap_or(0));
        self.number(count as u64);
        let mut bytes = Vec::new();
        match value {
            Value::List(list) => list.iter().for_each(|entry| put(&entry, &mut bytes)),
            Value::Empty(_) => {}
            value => put(value, &mut bytes),
        }
        self.padded(&bytes);
    }
}

/// The bytes of a number.
fn put(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::I8(number) => out.extend_from_slice(&number.to_be_bytes()),
        Value::U8(number) => out.push(*number),
        Value::I16(number) => out.extend_from_slice(&number.to_be_bytes()),
        Value::U16(number) => out.extend_from_slice(&number.to_be_bytes()),
        Value::I32(number) => out.extend_from_slice(&number.to_be_bytes()),
        Value::U32(number) => out.extend_from_slice(&number.to_be_bytes()),
        Value::I64(number) => out.extend_from_slice(&number.to_be_bytes()),
        Value::U64(number) => out.extend_from_slice(&number.to_be_bytes()),
        Value::F32(number) => out.extend_from_slice(&number.to_be_bytes()),
        Value::F64(number) => out.extend_from_slice(&number.to_be_bytes()),
        _ => {}
    }
}
