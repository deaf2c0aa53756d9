//! Between variables and the model.

use super::raw::{self, Header, Variable};
#[cfg(feature = "write")]
use super::write;
use super::{BOOL, DIMENSIONS, RECORD_DIMENSION, SPEC};
use crate::error::{Error, Result};
use crate::format::salvage::CutOff;
#[cfg(feature = "write")]
use crate::format::{Arranged, Plan, PlanOptions};
use crate::format::{Confidence, Context, Format, Head, Spec};
use crate::model::{
    DType, Endian, Kept, Layout, Manifest, Map, Payload, Shape, SourceId, TensorInfo, Value,
    element_count,
};
use crate::prelude::*;

/// Reads and writes NetCDF's classic files.
#[derive(Clone, Copy, Debug)]
pub(super) struct NetCdf;

impl Format for NetCdf {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn detect(&self, head: &Head<'_>) -> Result<Confidence> {
        Ok(match head.first() {
            [b'C', b'D', b'F', 1 | 2 | 5, ..] => Confidence::Certain,
            // No text: a version that is not known, which describing it says.
            [b'C', b'D', b'F', ..=8, ..] => Confidence::Likely,
            _ => Confidence::No,
        })
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        let source = cx.source();
        let mut header = Header::parse(source, cx.limits())?;
        if let Some(at) = header.padding.clone() {
            let message = "what pads a name or a value is not zero";
            cx.warn("netcdf.padding", at, message)?;
        }
        let records = Records::of(&header, source.len())?;
        if header.numrecs.is_none() {
            let message = format!(
                "the number of records is left open; the file has room for {}",
                records.count
            );
            let end = if header.version == 5 { 12 } else { 8 };
            cx.warn("netcdf.streaming", 4..end, message)?;
        }
        let mut manifest = Manifest::new(format!("CDF-{}", header.version));
        manifest.region(0..header.end, "header");
        manifest.metadata = core::mem::take(&mut header.gatt_list);
        say_dimensions(&header, &records, &mut manifest);
        let mut places = Vec::new();
        let mut skipped = Vec::new();
        for mut variable in core::mem::take(&mut header.var_list) {
            let placed = place(&header, &records, &variable)?;
            if let Some(range) = placed.claim() {
                push_tight(&mut places, (range, variable.name.clone()));
            }
            match raw::dtype(&variable) {
                Some(dtype) => {
                    let tensor = tensor(&header, &mut variable, placed, dtype);
                    push_tight(&mut manifest.tensors, tensor);
                }
                None => push_tight(&mut skipped, (variable.name, placed.range)),
            }
        }
        check_overlap(places, &records)?;
        for (name, range) in skipped {
            let message = format!("variable {name:?} is text, and no tensor");
            cx.note("netcdf.text", range.clone(), message);
            manifest.region(range.clone(), "text");
            let kept = Kept::new(SPEC.id, name, SourceId::MAIN, range);
            push_tight(&mut manifest.kept, kept);
        }
        cut_off(cx, &mut manifest)?;
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

/// How records lie.
#[derive(Debug)]
pub(super) struct Records {
    pub(super) count: u64,
    /// Bytes of one, of all variables together.
    len: u64,
    /// Where the first of them begins.
    begin: u64,
}

impl Records {
    pub(super) fn of(header: &Header, file: u64) -> Result<Self> {
        let variables = || {
            let all = header.var_list.iter();
            all.filter(|variable| header.is_record(variable))
        };
        let is_single = variables().count() == 1;
        let mut len = 0u64;
        for variable in variables() {
            let block = block_len(header, variable)?;
            // A single variable is not padded.
            let padded = if is_single {
                Some(block)
            } else {
                block.checked_next_multiple_of(4)
            };
            let sum = padded.and_then(|padded| len.checked_add(padded));
            len = sum.ok_or_else(|| overflow(variable))?;
        }
        let begin = variables().map(|variable| variable.begin).min();
        let begin = begin.unwrap_or(file);
        let count = match header.numrecs {
            Some(count) => count,
            None => file.saturating_sub(begin).checked_div(len).unwrap_or(0),
        };
        Ok(Self { count, len, begin })
    }

    /// The bytes that all of them are in.
    fn range(&self) -> Range<u64> {
        let len = self.count.saturating_mul(self.len);
        self.begin..self.begin.saturating_add(len)
    }
}

/// Where a variable is.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) shape: Shape,
    /// From its first byte to its last: of a record variable, with those of others between.
    pub(super) range: Range<u64>,
    /// Of a record variable, the bytes of one record of it, and how far the next is.
    pub(super) record: Option<(u64, u64)>,
}

impl Placed {
    /// What no other variable may have: of a record variable, its part of the first record.
    fn claim(&self) -> Option<Range<u64>> {
        let start = self.range.start;
        match self.record {
            _ if self.range.is_empty() => None,
            Some((block, _)) => Some(start..start.saturating_add(block)),
            None => Some(self.range.clone()),
        }
    }
}

/// Bytes of a variable, or of one record of it.
fn block_len(header: &Header, variable: &Variable) -> Result<u64> {
    let mut shape = Shape::new();
    let skipped = usize::from(header.is_record(variable));
    for id in variable.dimids.iter().skip(skipped) {
        shape.push(header.dimension(*id).map_or(0, |dim| dim.dim_length));
    }
    let width = raw::dtype(variable).and_then(DType::width).unwrap_or(1);
    let len = element_count(&shape).and_then(|count| count.checked_mul(width as u64));
    len.ok_or_else(|| overflow(variable))
}

fn overflow(variable: &Variable) -> Error {
    let message = "its elements have more bytes than 64 bits can count";
    let error = Error::malformed("netcdf.overflow", message).at(variable.at.clone());
    error.in_tensor(&variable.name)
}

pub(super) fn place(header: &Header, records: &Records, variable: &Variable) -> Result<Placed> {
    let block = block_len(header, variable)?;
    let is_record = header.is_record(variable);
    let mut shape = Shape::new();
    for id in &variable.dimids {
        let length = header.dimension(*id).map_or(0, |dim| dim.dim_length);
        shape.push(length);
    }
    let len = if is_record {
        if let Some(first) = shape.first_mut() {
            *first = records.count;
        }
        let last = records.count.saturating_sub(1).checked_mul(records.len);
        let len = last.and_then(|last| last.checked_add(block));
        let len = len.ok_or_else(|| overflow(variable))?;
        if records.count == 0 { 0 } else { len }
    } else {
        block
    };
    // Strides are made of all sizes.
    if element_count(&shape).is_none() {
        return Err(overflow(variable));
    }
    let end = variable.begin.checked_add(len);
    let end = end.ok_or_else(|| overflow(variable))?;
    if variable.begin < header.end && len > 0 {
        let message = format!(
            "its data begins at byte {}, in the header, which ends at byte {}",
            variable.begin, header.end
        );
        let error = Error::malformed("netcdf.begin", message).at(variable.at.clone());
        return Err(error.in_tensor(&variable.name));
    }
    Ok(Placed {
        shape,
        range: variable.begin..end,
        record: is_record.then_some((block, records.len)),
    })
}

/// What a variable of numbers is.
fn tensor(header: &Header, variable: &mut Variable, placed: Placed, dtype: DType) -> TensorInfo {
    let attributes = core::mem::take(&mut variable.vatt_list);
    let (key, value) = BOOL;
    // As xarray writes them.
    let is_bool = dtype == DType::I8 && attributes.get(key).and_then(Value::as_str) == Some(value);
    let dtype = if is_bool { DType::BOOL } else { dtype };
    let name = core::mem::take(&mut variable.name);
    let range = if placed.range.is_empty() {
        header.end..header.end
    } else {
        placed.range
    };
    let mut tensor = TensorInfo::dense(name, dtype, placed.shape, Payload::main(range));
    if let Some((block, distance)) = placed.record
        && block != distance
        && block > 0
    {
        tensor.layout = Layout::Records { distance };
    }
    for part in &mut tensor.parts {
        part.endian = Endian::Big;
    }
    tensor.metadata = attributes;
    if is_bool {
        tensor.metadata.remove(key);
        tensor.metadata.push_fact(key, Value::from(value));
    }
    if !variable.dimids.is_empty() && tensor.metadata.get(DIMENSIONS).is_none() {
        let names = variable
            .dimids
            .iter()
            .filter_map(|id| header.dimension(*id));
        let names = names.map(|dimension| Value::Str(dimension.name.clone()));
        tensor
            .metadata
            .push(DIMENSIONS, Value::List(names.collect()));
    }
    tensor
}

/// All dimensions, also those that no variable has, and which of them counts records.
fn say_dimensions(header: &Header, records: &Records, manifest: &mut Manifest) {
    let lengths: Map = (header.dim_list.iter())
        .map(|dimension| {
            let length = match dimension.dim_length {
                0 => records.count,
                length => length,
            };
            (dimension.name.clone(), Value::U64(length))
        })
        .collect();
    let open = header.dim_list.iter().find(|dim| dim.dim_length == 0);
    let open = open.map(|dimension| Value::Str(dimension.name.clone()));
    let dimensions = (!lengths.is_empty()).then_some(Value::Map(lengths));
    for (key, value) in [("dimensions", dimensions), (RECORD_DIMENSION, open)] {
        // An attribute of that name is what the file says.
        if let Some(value) = value.filter(|_| manifest.metadata.get(key).is_none()) {
            manifest.metadata.push_fact(key, value);
        }
    }
}

/// Refuses data that several variables have: no program writes it, and a small file could claim any amount.
fn check_overlap(mut places: Vec<(Range<u64>, String)>, records: &Records) -> Result<()> {
    places.sort_unstable_by_key(|(range, _)| (range.start, range.end));
    let all = records.range();
    let mut neighbours = places.iter().zip(places.iter().skip(1));
    let refuse = |a: &str, b: &str, at: Range<u64>| {
        let message = format!("the data of {a:?} and of {b:?} overlap");
        Err(Error::malformed("netcdf.overlap", message).at(at))
    };
    if let Some(((_, a), (at, b))) = neighbours.find(|((a, _), (b, _))| a.end > b.start) {
        return refuse(a, b, at.clone());
    }
    // Behind the first record there are only others.
    let first = all.start.saturating_add(records.len).min(all.end);
    let inside = |range: &Range<u64>| range.end > first && range.start < all.end;
    match places
        .iter()
        .find(|(range, _)| range.start >= all.start && inside(range))
    {
        Some((range, name)) => refuse(name, "the records", range.clone()),
        None => Ok(()),
    }
}

/// A file that ends before its last variable does.
fn cut_off(cx: &mut Context<'_>, manifest: &mut Manifest) -> Result<()> {
    let file = cx.source().len();
    let stored = (manifest.tensors.iter())
        .flat_map(|tensor| tensor.parts.iter().filter_map(|part| part.payload.stored()))
        .map(|(_, range)| range.end);
    let kept = manifest.kept.iter().map(|kept| kept.range.end);
    let expected = stored.chain(kept).max().unwrap_or(0);
    if expected <= file {
        return Ok(());
    }
    let cut = CutOff {
        source: SourceId::MAIN,
        file,
        expected,
        remark: "",
        error: None,
        rule: "netcdf.truncated",
        salvaged: "netcdf.salvaged",
    };
    cut.settle(cx, &mut manifest.tensors)?;
    // What was cut off of text cannot be written again.
    manifest.kept.retain(|kept| kept.range.end <= file);
    Ok(())
}
