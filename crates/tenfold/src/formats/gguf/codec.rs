//! Between files and the model.

use super::raw::{Fields, TensorRecord};
use super::{ALIGNMENT, MAX_WRITTEN_NAME, PADDING, SPEC, check, split, upkeep, write};
use crate::error::{Error, Result};
use crate::format::salvage::CutOff;
use crate::format::{Arranged, Belongs, Context, Finding, Format, Plan, PlanOptions, Spec};
use crate::io::{Patch, Source};
use crate::model::{
    BlockSpec, DType, Decode, Endian, Manifest, Metadata, Payload, Region, SourceId, TensorInfo,
    Value, ValueKind,
};
use crate::prelude::*;
use crate::transform::quant;

/// Reads and writes GGUF.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gguf;

impl Format for Gguf {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    /// The first of several parts stands for all of them.
    fn is_index(&self, name: &str) -> bool {
        split::parse(name).is_some_and(|name| name.number == 1)
    }

    fn writes_shards(&self) -> bool {
        true
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        split::describe(cx)
    }

    #[cfg(feature = "write")]
    fn arrange(&self, what: &Manifest, _: &PlanOptions) -> Result<Option<Arranged>> {
        let mut arranged = split::without_keys(what);
        if upkeep::is_outdated(what) {
            upkeep::update_file_type(arranged.get_or_insert_with(|| what.clone()));
        }
        Ok(arranged.map(|manifest| Arranged {
            manifest,
            losses: Vec::new(),
        }))
    }

    #[cfg(feature = "write")]
    fn remarks(&self, what: &Manifest, options: &PlanOptions) -> Vec<Finding> {
        upkeep::remarks(what, options)
    }

    fn owner(&self, key: &str, value: &Value) -> Belongs {
        upkeep::owner(key, value)
    }

    #[cfg(feature = "write")]
    fn plan(&self, what: &Manifest, options: &PlanOptions) -> Result<Plan> {
        write::plan(what, options)
    }

    #[cfg(feature = "write")]
    fn amend(
        &self,
        what: &Manifest,
        stored: &Manifest,
        _: u64,
        options: &PlanOptions,
    ) -> Result<Vec<Patch>> {
        write::amend(what, stored, options)
    }
}

/// One file, described.
pub(super) struct File {
    pub(super) version: u32,
    pub(super) metadata: Metadata,
    pub(super) tensors: Vec<TensorInfo>,
    pub(super) regions: Vec<Region>,
}

/// Describes one file of perhaps several.
pub(super) fn describe_file(
    cx: &mut Context<'_>,
    id: SourceId,
    source: &dyn Source,
) -> Result<File> {
    let limit = cx.limits().header_bytes;
    let (mut fields, header) = Fields::begin(source, limit)?;
    let mut pairs = fields.pairs(header.kv_count, id)?;
    pairs.metadata.remove(PADDING);
    let align = alignment(&pairs.metadata).map_err(|error| match pairs.alignment {
        Some(at) => error.at(at),
        None => error,
    })?;
    let records = fields.tensors(header.tensor_count)?;
    unique(&records)?;
    let header_end = fields.r.pos();
    let begin = header_end.checked_next_multiple_of(align).ok_or_else(|| {
        let message = format!("data aligned to {align} would begin past any end of a file");
        Error::malformed("gguf.alignment", message).at(header_end..header_end)
    })?;
    let file = source.len();
    let layout = check::layout(&records, begin, align, file)?;
    let remarks = remarks(&records, &layout);
    let expected = layout.ranges.iter().map(|range| range.end).max();
    let endian = header.dialect.endian;
    let tensors = records.into_iter().zip(layout.ranges);
    let mut decoders = Decoders::default();
    let tensors = tensors.map(|(record, range)| tensor(record, id, range, endian, &mut decoders));
    let mut tensors: Vec<_> = tensors.collect();
    if let Some(error) = layout.cut_off {
        let cut = CutOff {
            source: id,
            file,
            expected: expected.unwrap_or(file),
            remark: "",
            error: Some(error),
            rule: "gguf.bounds",
            salvaged: "gguf.salvaged",
        };
        cut.settle(cx, &mut tensors)?;
    }
    for (rule, at, message) in remarks {
        cx.warn_in(id, rule, at, message)?;
    }
    if let Some(at) = pairs.nested {
        let message = "an array of arrays; ggml refuses files that have one";
        cx.warn_in(id, "gguf.nested", at..at + 4, message)?;
    }
    let mut regions = vec![Region {
        source: id,
        range: 0..begin.min(file),
        label: "header",
    }];
    if file > layout.end {
        let message = format!(
            "{} bytes after the data, which readers ignore",
            file - layout.end
        );
        cx.warn_in(id, "gguf.trailing", layout.end..file, message)?;
        regions.push(Region {
            source: id,
            range: layout.end..file,
            label: "trailing",
        });
    }
    Ok(File {
        version: header.version,
        metadata: pairs.metadata,
        tensors,
        regions,
    })
}

/// The alignment of a file with this metadata.
pub(super) fn alignment(metadata: &Metadata) -> Result<u64> {
    let why = match metadata.get(ALIGNMENT) {
        None => return Ok(32),
        Some(Value::U32(align)) if align.is_power_of_two() => return Ok((*align).into()),
        Some(Value::U32(align)) => format!("{ALIGNMENT} is {align}, expected a power of two"),
        Some(value) => {
            let kind = value.kind().map_or("an array", ValueKind::name);
            format!("{ALIGNMENT} is stored as {kind}, expected a u32")
        }
    };
    Err(Error::malformed("gguf.alignment", why))
}

fn unique(records: &[TensorRecord]) -> Result<()> {
    match crate::model::repeated(records.iter().map(|record| record.name.as_str())) {
        Some((place, name)) => {
            let at = records.get(place).map_or(0..0, |record| record.at.clone());
            let message = "two tensors have this name";
            Err(Error::malformed("gguf.duplicate", message)
                .at(at)
                .in_tensor(name))
        }
        None => Ok(()),
    }
}

/// The decoders of a file, one for each type of blocks.
#[derive(Default)]
struct Decoders(Vec<(&'static BlockSpec, Option<Arc<dyn Decode>>)>);

impl Decoders {
    fn of(&mut self, spec: &'static BlockSpec, endian: Endian) -> Option<Arc<dyn Decode>> {
        if let Some((_, decoder)) = self.0.iter().find(|(known, _)| *known == spec) {
            return decoder.clone();
        }
        let decoder = quant::decoder(spec, endian);
        self.0.push((spec, decoder.clone()));
        decoder
    }
}

fn tensor(
    record: TensorRecord,
    source: SourceId,
    range: Range<u64>,
    endian: Endian,
    decoders: &mut Decoders,
) -> TensorInfo {
    let TensorRecord {
        name,
        shape,
        dtype,
        at,
        ..
    } = record;
    let payload = Payload::Raw { source, range };
    let dtype = match dtype {
        Ok(dtype) => dtype,
        Err(defect) => {
            let mut info = TensorInfo::dense(name, DType::UNKNOWN, shape, payload);
            info.defect = Some(defect.in_source(source));
            return info;
        }
    };
    let mut info = TensorInfo::dense(name, dtype, shape, payload);
    if let Some(part) = info.parts.first_mut() {
        part.endian = endian;
    }
    if let DType::Block(spec) = dtype {
        info.decoder = decoders.of(spec, endian);
        if endian == Endian::Big && spec.halves.is_none() {
            let message = format!(
                "no program writes {} in big-endian files, so how its blocks would be stored is unknown",
                spec.name
            );
            let defect = Error::unsupported("gguf.big-endian", message);
            info.defect = Some(defect.at_source(source, at));
        }
    }
    info
}

/// What ggml refuses and others read: rule, place, message.
fn remarks(
    records: &[TensorRecord],
    layout: &check::Layout,
) -> Vec<(&'static str, Range<u64>, String)> {
    let mut remarks = Vec::new();
    if let Some((place, expected)) = layout.out_of_order
        && let Some(record) = records.get(place)
    {
        let message = format!(
            "tensor {:?} is at offset {}, not right after the one before it at {expected}: ggml will refuse this file",
            record.name, record.offset
        );
        remarks.push(("gguf.gap", record.at.clone(), message));
    }
    if let Some(record) = records.iter().find(|record| record.shape.len() > 4) {
        let message = format!(
            "tensor {:?} has {} dimensions: ggml reads at most 4",
            record.name,
            record.shape.len()
        );
        remarks.push(("gguf.rank-over-4", record.at.clone(), message));
    }
    let long = |record: &&TensorRecord| record.name.len() > MAX_WRITTEN_NAME;
    if let Some(record) = records.iter().find(long) {
        let message = format!(
            "a name of {} bytes: ggml reads at most {MAX_WRITTEN_NAME}",
            record.name.len()
        );
        remarks.push(("gguf.long-name", record.at.clone(), message));
    }
    remarks
}
