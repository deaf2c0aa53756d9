//! Objects as tensors.

use crate::error::{Error, Result};
use crate::format::Context;
use crate::formats::ztensor::assemble::{Assembler, Assembly, Misfit, StoredPart};
use crate::formats::ztensor::checksum::Sum;
use crate::formats::ztensor::raw::{Object, RawPart};
use crate::formats::ztensor::v2::ALIGN;
use crate::formats::ztensor::v2::shards::Shards;
use crate::formats::ztensor::{names, read};
use crate::model::{
    BlockSpec, Codec, DType, Endian, Layout, Metadata, Part, Payload, Role, SourceId, TensorInfo,
    Value,
};
use crate::prelude::*;
use crate::transform::quant;

pub(in crate::formats::ztensor) const CSR: &str = "zt.sparse_csr/1";
pub(in crate::formats::ztensor) const COO: &str = "zt.sparse_coo/1";
pub(in crate::formats::ztensor) const SEEKABLE: &str = "zt.zstd-seekable/1";
/// Attributes of the layouts of blocks.
pub(in crate::formats::ztensor) const ELEMS_PER_BLOCK: &str = "elems_per_block";
pub(in crate::formats::ztensor) const BLOCK_BYTES: &str = "block_bytes";
const QUANT_GROUP: &str = "zt.quant_group/1";
const MX: &str = "zt.mx/1";
/// Decoded bytes of a frame; what a file has is in its seek table.
pub(in crate::formats::ztensor) const FRAME: u32 = 1 << 20;

/// Stands for a file that is not there, until the parts in it are left out.
const NOWHERE: SourceId = SourceId(u32::MAX);

/// What objects are turned into tensors with.
pub(super) struct Reading<'r, 'c> {
    pub(super) cx: &'r mut Context<'c>,
    pub(super) shards: &'r mut Shards,
    /// Where the data of this file must end.
    pub(super) data_end: u64,
    pub(super) blobs: &'r mut Vec<read::Blob>,
}

impl Reading<'_, '_> {
    /// The tensor. Rules that hold for every file are errors; what is wrong with this tensor alone is its defect.
    pub(super) fn tensor(&mut self, name: &str, object: Object<'_>) -> Result<TensorInfo> {
        let Object {
            shape,
            layout,
            parts: raw,
            attributes,
            at,
            ..
        } = object;
        let elements = read::elements(&shape, &at)?;
        let mut defect = None;
        let mut parts = Vec::new();
        for part in raw {
            parts.push(self.part(part, &mut defect)?);
        }
        let assembler = Assembler {
            shape: &shape,
            elements,
            narrow_indices: true,
            at: at.clone(),
            measure: &|part| Ok(part.len.unwrap_or(0)),
        };
        let unknown = parts.iter().any(|part| part.dtype == DType::UNKNOWN);
        let assembled = match &*layout {
            // Without a size there is nothing to compare.
            "dense" if unknown && parts.len() == 1 => Ok(unreadable(parts)),
            "dense" => assembler.dense(parts).map(Some),
            CSR if unknown => Ok(unreadable(parts)),
            CSR => assembler.csr(parts).map(Some),
            COO => match assembler.coo(parts) {
                Err(misfit) => {
                    defect.get_or_insert(misfit.into());
                    Ok(None)
                }
                assembly => assembly.map(Some),
            },
            scheme => self.opaque(scheme, &attributes, assembler, parts).map(Some),
        };
        let assembly = match assembled {
            // Data that cannot decode to its size is a matter of the tensor.
            Err(Misfit::Ratio(error)) => {
                defect.get_or_insert(error);
                None
            }
            assembled => assembled?,
        };
        let mut info = TensorInfo::new(name, DType::UNKNOWN, shape.clone(), Layout::RowMajor);
        info.metadata = attributes.into_owned();
        info.defect = defect;
        if let Some(assembly) = assembly {
            (info.dtype, info.layout) = (assembly.dtype, assembly.layout);
            info.parts = assembly.parts;
            if let DType::Block(spec) = info.dtype {
                info.decoder = quant::decoder(spec, Endian::Little);
                info.set_derived(&[ELEMS_PER_BLOCK, BLOCK_BYTES]);
            }
        }
        // Data of a file that is not there has no place.
        let is_there = |part: &Part| {
            let stored = part.payload.stored();
            stored.is_some_and(|(source, _)| source != NOWHERE)
        };
        if !info.parts.iter().all(is_there) {
            let parts = core::mem::take(&mut info.parts).into_iter();
            info.parts = parts.filter(is_there).collect();
        }
        Ok(info)
    }

    fn part<'b>(
        &mut self,
        part: RawPart<'b>,
        defect: &mut Option<Error>,
    ) -> Result<StoredPart<'b>> {
        let at = part.at;
        let mut lose = |error: Error| {
            defect.get_or_insert(error);
        };
        let (file, end, source) = match &part.shard {
            None => (0, self.data_end, Ok(SourceId::MAIN)),
            Some(name) => {
                let (file, shard) = self.shards.get(name, &at)?;
                (file, shard.data_end(), shard.source())
            }
        };
        let [offset, length] = part.blob;
        let range = read::place(offset, length, ALIGN, end, &at)?;
        let blob = read::Blob {
            file,
            range: range.clone(),
            at: at.clone(),
        };
        push_tight(self.blobs, blob);
        let source = source.unwrap_or_else(|error| {
            lose(error);
            NOWHERE
        });
        let name = part.dtype.as_deref().unwrap_or_default();
        let storage = names::from_storage(name).filter(|dtype| *dtype != DType::BOOL);
        let Some(storage) = storage else {
            let message = format!("dtype {name:?} is not one of generation 2");
            return Err(Error::malformed("ztensor.dtype", message).at(at));
        };
        let dtype = match part
            .logical
            .as_deref()
            .map(|name| (name, names::from_logical(name, true)))
        {
            None => storage,
            Some((_, Some((over, dtype)))) if over == storage => dtype,
            Some((name, Some((over, _)))) => {
                let message = format!("type {name:?} over {storage}, but it should be over {over}");
                return Err(Error::malformed("ztensor.dtype", message).at(at));
            }
            Some((name, None)) => {
                let message = format!("type {name:?} is not known");
                lose(Error::unsupported("ztensor.dtype", message).at(at.clone()));
                DType::UNKNOWN
            }
        };
        let mut unknown = None;
        let codec = match part.encoding {
            None => None,
            Some(encoding) if encoding == SEEKABLE => Some(Codec::ZstdSeekable {
                level: 0,
                frame: FRAME,
            }),
            Some(encoding) => {
                let message = format!("encoding {encoding:?} is not known");
                lose(Error::unsupported("ztensor.encoding", message).at(at.clone()));
                unknown = Some(encoding.into_owned());
                None
            }
        };
        let digest = part.digest.as_deref();
        let sum = Sum::parse(self.cx, digest, true, &at).unwrap_or_else(|error| {
            lose(error);
            Sum::listed(digest, true)
        });
        Ok(StoredPart {
            name: part.name,
            dtype,
            source,
            range,
            codec,
            len: Some(part.decoded_length.unwrap_or(length)),
            sum,
            encoding: unknown,
            at,
        })
    }

    /// Layouts that are passed on as they are, and blocks of GGUF, which are known by themselves.
    fn opaque(
        &mut self,
        scheme: &str,
        attributes: &Metadata,
        assembler: Assembler<'_>,
        parts: Vec<StoredPart<'_>>,
    ) -> Result<Assembly, Misfit> {
        if let Some(block) = block_of(scheme, attributes) {
            let dtype = DType::Block(block);
            if let [data] = parts.as_slice() {
                let len = dtype.bytes_for(assembler.elements);
                if data.name == "data" && data.dtype == DType::U8 && data.len == len {
                    let mut assembly = assembler.opaque(scheme, parts)?;
                    for part in &mut assembly.parts {
                        (part.role, part.dtype) = (Role::Values, dtype);
                    }
                    return Ok(Assembly {
                        dtype,
                        layout: Layout::RowMajor,
                        ..assembly
                    });
                }
            }
            let message =
                format!("{scheme} does not fit the shape: its parts are passed on as they are");
            self.cx
                .warn("ztensor.layout", assembler.at.clone(), message)?;
        }
        if let Some(message) = odd_parts(scheme, &parts) {
            self.cx
                .warn("ztensor.layout", assembler.at.clone(), message)?;
        }
        assembler.opaque(scheme, parts)
    }
}

/// Parts that can be listed, of a tensor that cannot be read.
fn unreadable(parts: Vec<StoredPart<'_>>) -> Option<Assembly> {
    let parts = parts.into_iter().map(
        |StoredPart {
             name,
             dtype,
             source,
             range,
             codec,
             sum,
             encoding,
             ..
         }| {
            let role = Role::Named(name.into_owned());
            let encoding = encoding.or_else(|| codec.map(|codec| codec.name().to_owned()));
            sum.on(
                Part::new(role, dtype, Payload::Raw { source, range }),
                encoding,
            )
        },
    );
    let parts = parts.collect();
    Some(Assembly {
        dtype: DType::UNKNOWN,
        layout: Layout::RowMajor,
        parts,
    })
}

/// The block type that a layout `gguf.<type>/1` with these attributes speaks of.
fn block_of(scheme: &str, attributes: &Metadata) -> Option<&'static BlockSpec> {
    let name = scheme.strip_prefix("gguf.")?.strip_suffix("/1")?;
    let block = BlockSpec::from_name(name)?;
    let is = |key, expected: u32| {
        attributes
            .get(key)
            .and_then(Value::as_u64)
            .is_none_or(|found| found == u64::from(expected))
    };
    (is(ELEMS_PER_BLOCK, block.elements) && is(BLOCK_BYTES, block.bytes)).then_some(block)
}

/// What the parts of a layout of zTensor's own lack; readers of it do not look.
fn odd_parts(scheme: &str, parts: &[StoredPart<'_>]) -> Option<String> {
    let dtype_of = |name: &str| {
        parts
            .iter()
            .find(|part| part.name == name)
            .map(|part| part.dtype)
    };
    let optional: &[&str] = match scheme {
        QUANT_GROUP => &["zeros"],
        MX => &[],
        _ => return None,
    };
    let known = |name: &str| matches!(name, "data" | "scales") || optional.contains(&name);
    if let Some(part) = parts.iter().find(|part| !known(&part.name)) {
        return Some(format!("{scheme} has no part {:?}", part.name));
    }
    let (Some(data), Some(scales)) = (dtype_of("data"), dtype_of("scales")) else {
        return Some(format!("{scheme} lacks its parts data and scales"));
    };
    let elements = [DType::F4_E2M1, DType::F8_E4M3, DType::F8_E5M2, DType::I8];
    if scheme == MX && (scales != DType::F8_E8M0 || !elements.contains(&data)) {
        return Some(format!(
            "{scheme} with data of {data} and scales of {scales}"
        ));
    }
    None
}
