//! A dataset as a tensor.

use bytes::Bytes;

use super::block::{File, UNDEFINED};
use super::header::{Header, kind, shared_type};
use super::index::Index;
use super::storage::{self, ChunkStorage, Storage};
use super::types::{Class, Dataspace, Datatype};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{
    Chunks, Cuts, DType, Endian, Layout, Metadata, Part, Payload, Role, SourceId, TensorInfo,
    Value, element_count,
};
use crate::prelude::*;

/// What a dataset is here.
#[allow(clippy::large_enum_variant)] // nearly all of them are tensors
pub(super) enum Dataset {
    Tensor {
        info: TensorInfo,
        /// Whether its numbers had names that are not kept.
        named: bool,
    },
    /// Addresses of objects, as elements of 64 bits.
    References(TensorInfo),
    /// No numbers: why.
    Skipped(String),
}

/// Describes a dataset. What is wrong with it alone is a defect of the tensor.
pub(super) fn read(
    file: &mut File<'_>,
    source: SourceId,
    header: &Header,
    attributes: &Metadata,
    name: &str,
) -> Result<Dataset> {
    let parsed = Parsed::new(file, header, attributes);
    let parsed = match parsed {
        Ok(Ok(parsed)) => parsed,
        Ok(Err(why)) => return Ok(Dataset::Skipped(why)),
        Err(error) => return defective(error, name, DType::UNKNOWN, &[]),
    };
    let Parsed {
        dtype,
        endian,
        dataspace,
        named,
        is_reference,
    } = &parsed;
    let placed = place(file, source, header, &parsed);
    let (layout, payload) = match placed {
        Ok(placed) => placed,
        Err(error) => return defective(error, name, *dtype, &dataspace.dims),
    };
    let mut info = TensorInfo::new(name, *dtype, dataspace.dims.as_slice(), layout);
    let mut part = Part::new(Role::Values, *dtype, payload);
    part.endian = *endian;
    info.parts = part.into();
    if *is_reference {
        return Ok(Dataset::References(info));
    }
    Ok(Dataset::Tensor {
        info,
        named: *named,
    })
}

/// A tensor that cannot be read. A disk that fails costs more than that.
fn defective(error: Error, name: &str, dtype: DType, shape: &[u64]) -> Result<Dataset> {
    if error.kind() == ErrorKind::Io {
        return Err(error);
    }
    let mut info = TensorInfo::new(name, dtype, shape, Layout::RowMajor);
    info.defect = Some(error.in_tensor(name));
    Ok(Dataset::Tensor { info, named: false })
}

/// What the messages of a dataset say about its elements.
struct Parsed {
    dtype: DType,
    endian: Endian,
    dataspace: Dataspace,
    named: bool,
    is_reference: bool,
}

impl Parsed {
    /// An error is about one dataset; why it is not a tensor is a text.
    fn new(
        file: &mut File<'_>,
        header: &Header,
        attributes: &Metadata,
    ) -> Result<Result<Self, String>> {
        let missing = |what: &str| {
            let message = format!("a dataset without a {what}");
            Error::malformed("hdf5.dataset", message).at(header.at..header.at + 1)
        };
        let message = header
            .one(kind::DATASPACE)?
            .ok_or_else(|| missing("dataspace"))?;
        let dataspace = Dataspace::read(&message.data)?;
        if dataspace.is_null {
            return Ok(Err("null dataspace".to_owned()));
        }
        let message = header.one(kind::DATATYPE)?.ok_or_else(|| missing("type"))?;
        let block = if message.is_shared() {
            shared_type(file, &message.data)?
        } else {
            message.data.clone()
        };
        let datatype = Datatype::read(&block)?;
        let is_reference = matches!(datatype.class, Class::Reference);
        let (dtype, endian, named) = match datatype.class {
            Class::Number {
                dtype,
                endian,
                named,
            } => (dtype, endian, named),
            // Addresses are always little-endian.
            Class::Reference => (DType::U64, Endian::Little, false),
            Class::Unknown(error) => return Err(error.at(block.range())),
            Class::Opaque => match attributes.get("dtype").and_then(Value::as_str) {
                // Keras has no other type for it.
                Some("bfloat16") if datatype.size == 2 => (DType::BF16, Endian::Little, false),
                Some("bfloat16") => {
                    let message = format!(
                        "the attribute dtype says bfloat16, but elements have {} bytes",
                        datatype.size
                    );
                    return Err(block.wrong("hdf5.datatype", message));
                }
                _ => return Ok(Err("not numeric: opaque".to_owned())),
            },
            Class::Text | Class::LongText => return Ok(Err("not numeric: string".to_owned())),
            Class::Other(what) => return Ok(Err(format!("not numeric: {what}"))),
        };
        if header.has(kind::EXTERNAL_FILES) {
            let message = "its data is in other files that it names (external storage), which are never opened";
            return Err(Error::unsupported("hdf5.external", message).at(header.at..header.at + 1));
        }
        let width = dtype.width().unwrap_or(0) as u64;
        let count = element_count(&dataspace.dims).and_then(|count| count.checked_mul(width));
        if count.is_none() {
            let message = format!(
                "{dtype} of {:?} has more bytes than 64 bits count",
                dataspace.dims
            );
            return Err(Error::malformed("hdf5.dataspace", message));
        }
        Ok(Ok(Self {
            dtype,
            endian,
            dataspace,
            named,
            is_reference,
        }))
    }

    /// Bytes of all elements.
    fn len(&self) -> u64 {
        let count = element_count(&self.dataspace.dims).unwrap_or(0);
        self.dtype.bytes_for(count).unwrap_or(0)
    }
}

/// Where the elements are.
fn place(
    file: &File<'_>,
    source: SourceId,
    header: &Header,
    parsed: &Parsed,
) -> Result<(Layout, Payload)> {
    let message = header.one(kind::LAYOUT)?;
    let message =
        message.ok_or_else(|| Error::malformed("hdf5.layout", "a dataset without a layout"))?;
    let len = parsed.len();
    let raw = |range: Range<u64>| (Layout::RowMajor, Payload::Raw { source, range });
    let too_short = |size: u64| {
        let message = format!(
            "{} of {:?} takes {len} bytes, but {size} are stored",
            parsed.dtype, parsed.dataspace.dims
        );
        message_error(message, header)
    };
    match Storage::read(&message.data)? {
        Storage::Compact(range) => {
            let size = range.end - range.start;
            if size < len {
                return Err(too_short(size));
            }
            Ok(raw(range.start..range.start + len))
        }
        Storage::Contiguous { address, size } => {
            if size.is_some_and(|size| size < len) && address != UNDEFINED {
                return Err(too_short(size.unwrap_or(0)));
            }
            if len == 0 {
                let at = header.at;
                return Ok(raw(at..at));
            }
            if address == UNDEFINED {
                let chunks = Chunks::new(parsed.dataspace.dims.as_slice(), parsed.width());
                return finish(file, source, header, parsed, chunks);
            }
            Ok(raw(file.space.range(address, len, "data")?))
        }
        Storage::Chunked(storage) => chunked(file, source, header, parsed, storage),
        Storage::Virtual => {
            let message =
                "a virtual dataset, put together from other datasets and files, which is not read";
            Err(Error::unsupported("hdf5.virtual", message).at(header.at..header.at + 1))
        }
    }
}

fn message_error(message: String, header: &Header) -> Error {
    Error::malformed("hdf5.size", message).at(header.at..header.at + 1)
}

impl Parsed {
    fn width(&self) -> usize {
        self.dtype.width().unwrap_or(0)
    }
}

fn chunked(
    file: &File<'_>,
    source: SourceId,
    header: &Header,
    parsed: &Parsed,
    storage: ChunkStorage,
) -> Result<(Layout, Payload)> {
    let dims = &parsed.dataspace.dims;
    let width = parsed.width() as u64;
    if storage.dims.len() != dims.len() || storage.element != width {
        let message = format!(
            "chunks of {:?} elements of {} bytes, for {} of {dims:?}",
            storage.dims, storage.element, parsed.dtype
        );
        return Err(message_error(message, header));
    }
    let mut chunks = Chunks::new(dims.as_slice(), parsed.width());
    chunks.grid = storage.dims.iter().map(|side| Cuts::Every(*side)).collect();
    if let Some(message) = header.one(kind::FILTERS)? {
        chunks.filters = storage::filters(&message.data, width)?;
    }
    let most = storage
        .dims
        .iter()
        .copied()
        .try_fold(width, u64::checked_mul);
    if most.is_none() {
        let message = format!(
            "the size of chunks of {:?} does not fit 64 bits",
            storage.dims
        );
        return Err(message_error(message, header));
    }
    if storage.address != UNDEFINED {
        let has_filters = !chunks.filters.is_empty();
        let index = Index::new(file, storage, &parsed.dataspace, has_filters);
        chunks.index = Some(Arc::new(index));
    }
    finish(file, source, header, parsed, chunks)
}

/// Chunks with their fill value and their file.
fn finish(
    file: &File<'_>,
    source: SourceId,
    header: &Header,
    parsed: &Parsed,
    mut chunks: Chunks,
) -> Result<(Layout, Payload)> {
    let fill = match (header.one(kind::FILL)?, header.one(kind::OLD_FILL)?) {
        (Some(message), _) => storage::fill(&message.data, false)?,
        (None, Some(message)) => storage::fill(&message.data, true)?,
        (None, None) => Bytes::new(),
    };
    if !fill.is_empty() && fill.len() != parsed.width() {
        let message = format!("a fill value of {} bytes for {}", fill.len(), parsed.dtype);
        return Err(message_error(message, header));
    }
    // Not a slice of what was fetched with it.
    chunks.fill = Bytes::copy_from_slice(&fill);
    chunks.files = vec![source];
    chunks.room = file.space.end;
    Ok((Layout::Chunked, Payload::Chunks(Arc::new(chunks))))
}
