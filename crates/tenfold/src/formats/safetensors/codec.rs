//! Between one file and the model.

use super::check::Tensors;
use super::raw::{self, MAX_HEADER, PREFIX};
use super::{FAMILY, FILE, SPEC, write};
use crate::error::{Error, Result};
use crate::format::salvage::CutOff;
use crate::format::{Belongs, Confidence, Context, Format, Head, Plan, PlanOptions, Spec};
use crate::formats::sharded::{self, Shard};
use crate::io::{Patch, Source};
use crate::model::{Manifest, Metadata, Region, SourceId, TensorInfo, Value};
use crate::prelude::*;

/// Reads and writes safetensors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Safetensors;

impl Format for Safetensors {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn detect(&self, head: &Head<'_>) -> Result<Confidence> {
        if sharded::is_index(head)? {
            return Ok(Confidence::Likely);
        }
        let bytes = head.first();
        let (Some(prefix), Some(first)) = (bytes.first_chunk::<8>(), bytes.get(8)) else {
            return Ok(Confidence::No);
        };
        let len = u64::from_le_bytes(*prefix);
        let fits = (2..=MAX_HEADER).contains(&len) && PREFIX + len <= head.len();
        let is_text = prefix
            .iter()
            .all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
        Ok(match first {
            b'{' if fits => Confidence::Likely,
            // Perhaps damaged or cut off: describing it says how.
            b'{' if !is_text => Confidence::Possible,
            b'[' | b' ' | b'\n' | b'\r' | b'\t' if fits => Confidence::Possible,
            _ => Confidence::No,
        })
    }

    fn is_index(&self, name: &str) -> bool {
        FAMILY.is_index_name(name)
    }

    fn writes_shards(&self) -> bool {
        true
    }

    /// Which program the file is for: transformers asks for it.
    fn owner(&self, key: &str, value: &Value) -> Belongs {
        match (key, value.as_str()) {
            ("format", Some("pt" | "tf" | "flax" | "np" | "mlx")) => Belongs::ToContainer,
            _ => Belongs::ToContent,
        }
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        if sharded::is_text(cx.source())? {
            return sharded::describe(cx, &FAMILY);
        }
        let file = describe_file(cx, SourceId::MAIN, cx.source())?;
        let mut manifest = Manifest::new(FILE);
        manifest.region(0..file.data, "header");
        manifest.metadata = file.metadata;
        manifest.tensors = file.tensors.into();
        Ok(manifest)
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
        _: &PlanOptions,
    ) -> Result<Vec<Patch>> {
        write::amend(what, stored)
    }
}

/// One file, described.
pub(super) struct File {
    pub(super) metadata: Metadata,
    pub(super) tensors: Vec<TensorInfo>,
    /// Where the data begins.
    pub(super) data: u64,
}

/// Describes one of several files.
pub(super) fn describe_shard(
    cx: &mut Context<'_>,
    id: SourceId,
    source: &dyn Source,
) -> Result<Shard> {
    let file = describe_file(cx, id, source)?;
    Ok(Shard {
        metadata: file.metadata,
        tensors: file.tensors,
        regions: vec![Region::new(id, 0..file.data, "header")],
        sealed: Vec::new(),
    })
}

/// How many bytes describe a file that begins like this.
pub(super) fn described_by(first: &[u8]) -> Option<u64> {
    let len = u64::from_le_bytes(*first.first_chunk()?);
    (len <= MAX_HEADER).then_some(PREFIX + len)
}

/// Describes one file of perhaps several.
pub(super) fn describe_file(
    cx: &mut Context<'_>,
    id: SourceId,
    source: &dyn Source,
) -> Result<File> {
    let (header, data) = header(cx, source)?;
    let mut tensors = Tensors::new(data);
    let max_rank = cx.limits().rank;
    let rest = raw::parse(&header, max_rank, &mut |entry| tensors.push(entry, id))?;
    tensors.unique_names()?;
    tensors.sort();
    if let Some(expected) = tensors.cover(source.len())? {
        let cut = CutOff {
            source: id,
            file: source.len(),
            expected,
            remark: "",
            error: None,
            rule: "safetensors.truncated",
            salvaged: "safetensors.salvaged",
        };
        cut.settle(cx, &mut tensors.infos)?;
    }
    report(cx, id, &rest, &tensors, data)?;
    Ok(File {
        metadata: rest.metadata,
        tensors: tensors.infos,
        data,
    })
}

/// The header's bytes, and where the data begins.
fn header(cx: &Context<'_>, source: &dyn Source) -> Result<(bytes::Bytes, u64)> {
    let file = source.len();
    let prefix = source.read(0..file.min(PREFIX))?;
    let Some(prefix) = prefix.first_chunk::<8>() else {
        let message = format!("the file has {file} bytes, the length of the header alone takes 8");
        return Err(Error::malformed("safetensors.truncated", message).at(0..file));
    };
    let len = u64::from_le_bytes(*prefix);
    if len > MAX_HEADER {
        let message = format!("the header has {len} bytes, at most {MAX_HEADER} are allowed");
        return Err(Error::malformed("safetensors.header-length", message).at(0..PREFIX));
    }
    let limit = cx.limits().header_bytes;
    if len > limit {
        let message = format!("the header has {len} bytes, the limit for headers is {limit}");
        let error = Error::limit("safetensors.limit", message).at(0..PREFIX);
        return Err(error.raised_by("header_bytes", len));
    }
    let data = PREFIX + len;
    if data > file {
        let message = format!(
            "the header ends at byte {data}, the file has {file}: truncated, or not a safetensors file"
        );
        return Err(Error::malformed("safetensors.truncated", message).at(0..PREFIX));
    }
    Ok((source.read(PREFIX..data)?, data))
}

/// What readers tolerate, and what costs them time.
fn report(
    cx: &mut Context<'_>,
    id: SourceId,
    rest: &raw::Rest,
    tensors: &Tensors,
    data: u64,
) -> Result<()> {
    if let Some(unknown) = &rest.unknown {
        let raw::Unknown {
            field,
            tensor,
            at,
            count,
        } = unknown;
        let more = match count {
            1 => String::new(),
            _ => format!(", and {} more", count - 1),
        };
        let message = format!("tensor {tensor:?} has a field {field:?} that readers ignore{more}");
        cx.warn_in(id, "safetensors.unknown-field", *at..*at + 1, message)?;
    }
    if let Some(at) = rest.odd_padding {
        let message = "the header is padded with something other than spaces";
        cx.warn_in(id, "safetensors.padding", at..data, message)?;
    }
    let count = tensors.misaligned;
    if count > 0 {
        let message = format!(
            "{count} of {} tensors are not aligned and must be copied to be used",
            tensors.infos.len()
        );
        cx.note_in(id, "safetensors.alignment", data..data, message);
    }
    Ok(())
}
