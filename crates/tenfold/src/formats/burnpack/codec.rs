//! Between what is on disk and the model.

mod place;

use super::dequantize::QFloat;
use super::raw::{Descriptor, Header, Others, Root, StoredType, TRUNCATED, Tensors};
use super::scheme::Arrangement;
use super::{
    BOOL_STORE, BOOL_STORES, BURN_DTYPE, BURN_FIELDS, BURN_SCHEME, FLEX32, Mode, PARAM_ID, QFLOAT,
    QFLOAT_NAME, SCALARS, SPEC, Scheme, V019, V023, VERSION, quantized,
};
use crate::error::{Error, Result};
use crate::format::salvage::CutOff;
use crate::format::{Context, FilePlan, Form, Format, Plan, PlanOptions, Segment, Spec, Want};
use crate::io::Reader;
use crate::model::{
    self, DType, Endian, Kept, Layout, Manifest, Metadata, Part, Payload, Role, SourceId,
    TensorInfo, Value, element_count,
};
use crate::prelude::*;
use place::Place;

/// What data is aligned to since Burn 0.20.
const ALIGN: u64 = 256;

/// Reads and writes `.bpk`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burnpack;

impl Format for Burnpack {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        let mut r = Reader::new(cx.source(), TRUNCATED);
        let header = Header::parse(&mut r)?;
        let size = u64::from(header.metadata_size);
        if size > cx.limits().header_bytes {
            let message = format!("{size} bytes of metadata are more than the limit for headers");
            let error = Error::limit("burnpack.limit", message).at(6..10);
            return Err(error.raised_by("header_bytes", size));
        }
        let cbor = r.take(size, "metadata")?;
        let header_end = r.pos();
        let expected = header_end.next_multiple_of(ALIGN);
        let mut found = Found {
            cx,
            expected,
            tensors: Vec::new(),
            places: Vec::new(),
        };
        let (root, end) = Root::parse_into(&mut found, &cbor, Header::LEN)?;
        let Found {
            mut tensors,
            places,
            ..
        } = found;
        check_rest(cx, &cbor, end..header_end)?;
        let placed: Vec<_> = tensors.iter().zip(&places).collect();
        let start = place::data_start(cx, &placed, root.scalars.is_some(), header_end)?;
        if start.at != expected {
            for (tensor, place) in tensors.iter_mut().zip(&places) {
                for part in &mut tensor.parts {
                    part.payload = Payload::main(place.range(start.at));
                }
            }
        }
        if let Some(cut) = start.cut {
            cut_off(cx, &cut, &mut tensors)?;
        }
        let mut manifest = Manifest::new(VERSION);
        manifest.region(0..header_end, "header");
        manifest.metadata = root.metadata;
        let others = root.others.into_iter();
        manifest.kept = others
            .map(|(name, range)| Kept::new(SPEC.id, name, SourceId::MAIN, range))
            .collect();
        if let Some(scalars) = root.scalars.filter(|scalars| !scalars.is_empty()) {
            if manifest.metadata.get(SCALARS).is_some() {
                let message =
                    format!("there are both scalars and metadata under the key {SCALARS:?}");
                return Err(Error::unsupported("burnpack.scalar", message));
            }
            manifest.metadata.push(SCALARS, Value::Map(scalars));
        }
        manifest.tensors = tensors.into();
        Ok(manifest)
    }

    #[cfg(feature = "write")]
    fn plan(&self, what: &Manifest, options: &PlanOptions) -> Result<Plan> {
        let align = match options.version {
            V019 => 1,
            _ => ALIGN,
        };
        let mut root = Root::default();
        for (key, value) in what.metadata.iter() {
            match value {
                Value::Map(scalars) => root.scalars = Some(scalars.clone()),
                value => root.metadata.push(key, value.clone()),
            }
        }
        let mut data = Vec::new();
        let mut offset = 0u64;
        for index in place::data_order(&what.tensors) {
            let Some(tensor) = what.tensors.get(index) else {
                continue;
            };
            let (descriptor, want) = to_descriptor(tensor, offset, align, options.version)
                .map_err(|error| error.in_tensor(&tensor.name))?;
            offset = descriptor.data_offsets.end;
            root.tensors.push(descriptor);
            data.push(Segment::Align { to: align, fill: 0 });
            data.push(Segment::Tensor {
                index,
                part: 0,
                want,
                codec: None,
                digest: None,
            });
        }
        let kept = kept(what)?;
        root.others = kept
            .iter()
            .map(|kept| (kept.name.clone(), kept.range.clone()))
            .collect();
        let cbor = root.encode();
        let lens = kept.iter().map(|kept| kept.range.end - kept.range.start);
        let mut head = Vec::new();
        Header::encode(lens.fold(cbor.len() as u64, u64::saturating_add), &mut head)?;
        head.extend(cbor);
        let mut segments = vec![Segment::Bytes(head)];
        segments.extend(kept.into_iter().map(|kept| Segment::Copy {
            source: kept.source,
            range: kept.range.clone(),
        }));
        // An aligned file without tensors ends with its padding too.
        segments.push(Segment::Align { to: align, fill: 0 });
        segments.extend(data);
        let name = options.file_name.clone();
        Ok(Plan {
            files: vec![FilePlan::new(name, segments)],
        })
    }
}

/// The entries of the map that are not known here. Within one file, readers pass over one that appears twice.
fn kept(what: &Manifest) -> Result<Vec<&Kept>> {
    let mut sources = LookupMap::default();
    let kept: Vec<_> = (what.kept.iter())
        .filter(|kept| kept.format == SPEC.id)
        .collect();
    for kept in &kept {
        let first = *sources.entry(kept.name.as_str()).or_insert(kept.source);
        if first != kept.source {
            let message = format!(
                "two of the files have the field {:?}, which tenfold does not know and cannot merge",
                kept.name
            );
            return Err(Error::argument(message));
        }
    }
    Ok(kept)
}

/// A file that lost its end.
fn cut_off(cx: &mut Context<'_>, cut: &place::Cut, tensors: &mut [TensorInfo]) -> Result<()> {
    let file = cx.source().len();
    let Some(remark) = cut.known else {
        let message = format!(
            "truncated: the file has {file} bytes, its tensors need {}; which of them are complete is not known, because the \
             data could begin right after the metadata or at the next multiple of {ALIGN}",
            cut.expected
        );
        return Err(Error::malformed(TRUNCATED, message).at(file..cut.expected));
    };
    let cut = CutOff {
        source: SourceId::MAIN,
        file,
        expected: cut.expected,
        remark,
        error: None,
        rule: TRUNCATED,
        salvaged: "burnpack.salvaged",
    };
    cut.settle(cx, tensors)
}

/// Bytes that are counted as metadata and are none; some writers could count the padding there.
fn check_rest(cx: &mut Context<'_>, cbor: &[u8], rest: Range<u64>) -> Result<()> {
    let from = usize::try_from(rest.start.saturating_sub(Header::LEN)).unwrap_or(usize::MAX);
    let bytes = cbor.get(from..).unwrap_or_default();
    if bytes.is_empty() {
        return Ok(());
    }
    let zeros = bytes.iter().all(|&byte| byte == 0);
    let what = if zeros { "zero" } else { "not zero" };
    let message = format!(
        "{} bytes after the map, counted as metadata, are {what}; expected none",
        bytes.len()
    );
    cx.warn("burnpack.metadata-rest", rest, message)
}

/// A shape within limits, and as many bytes as it says.
fn check_shape(cx: &mut Context<'_>, tensor: &Descriptor) -> Result<()> {
    const USUAL: u64 = 10 << 30;
    let Descriptor { shape, at, .. } = tensor;
    let limit = cx.limits().rank;
    if shape.len() > limit {
        let message = format!("{} dimensions, the limit is {limit}", shape.len());
        let error = Error::limit("burnpack.limit", message).at(at.clone());
        return Err(error.raised_by("rank", shape.len() as u64));
    }
    let overflow = || {
        let message = format!("shape {shape:?} has more elements or bytes than 64 bits can count");
        Error::malformed("burnpack.overflow", message).at(at.clone())
    };
    // A dimension of 0 makes any product 0, whatever the others are.
    let elements = if shape.contains(&0) {
        0
    } else {
        element_count(shape).ok_or_else(overflow)?
    };
    let len = tensor.data_offsets.end - tensor.data_offsets.start;
    if let Some(dtype) = tensor.dtype.number() {
        let needed = dtype.bytes_for(elements).ok_or_else(overflow)?;
        if needed != len {
            let message = format!("{len} bytes of data, shape {shape:?} of {dtype} needs {needed}");
            return Err(Error::malformed("burnpack.length", message).at(at.clone()));
        }
    }
    if len > USUAL {
        let message = format!(
            "tensor {:?} has {len} bytes; Burn refuses more than {USUAL} by default",
            tensor.name
        );
        cx.warn("burnpack.size", at.clone(), message)?;
    }
    Ok(())
}

/// The tensors that were found so far.
struct Found<'c, 's> {
    cx: &'c mut Context<'s>,
    /// Where data begins, nearly always. Where that turns out to be wrong, the tensors are moved.
    expected: u64,
    tensors: Vec<TensorInfo>,
    places: Vec<Place>,
}

impl Tensors for Found<'_, '_> {
    fn reserve(&mut self, count: usize) {
        self.tensors.reserve_exact(count);
        self.places.reserve_exact(count);
    }

    fn take(&mut self, from: Descriptor) -> Result<()> {
        let place = Place::new(&from, self.expected)
            .and_then(|place| check_shape(self.cx, &from).map(|()| place))
            .map_err(|error| error.in_tensor(&from.name))?;
        let ours = match from.dtype {
            StoredType::Bool | StoredType::BoolStore(_) => DType::BOOL,
            _ => from.dtype.number().unwrap_or(QFLOAT),
        };
        let stored = from.dtype.number().unwrap_or(QFLOAT);
        let data = place.range(self.expected);
        let len = data.end - data.start;
        // In its place at once: moving so many large structs takes longer than reading them.
        let tensor = TensorInfo::new(from.name, ours, from.shape, Layout::RowMajor);
        self.tensors.push(tensor);
        self.places.push(place);
        let Some(tensor) = self.tensors.last_mut() else {
            return Ok(());
        };
        tensor.parts = Part::new(Role::Values, stored, Payload::main(data)).into();
        if let Some(id) = from.param_id {
            tensor.metadata = Metadata::one(PARAM_ID, Value::U64(id));
        }
        match from.dtype {
            StoredType::BoolStore(store) => {
                tensor.metadata.push(BOOL_STORE, Value::Str(store.into()));
            }
            StoredType::Flex32 => tensor.metadata.push(BURN_DTYPE, Value::Str(FLEX32.into())),
            StoredType::Quantized(scheme) | StoredType::QuantizedOlder(scheme) => {
                tensor.layout = model::Scheme::new(QFLOAT_NAME, scheme.parameters()).into();
                tensor.metadata.push(BURN_SCHEME, scheme.to_value());
                tensor.decoder = decoder(self.cx, &scheme, tensor, len, from.at)?;
            }
            StoredType::Bool | StoredType::Number(_) => {}
        }
        if let Some(others) = from.others {
            tensor.metadata.push(BURN_FIELDS, others.to_value());
        }
        Ok(())
    }
}

/// What turns codes into numbers, where the bytes are as many as the scheme says.
fn decoder(
    cx: &mut Context<'_>,
    scheme: &Scheme,
    tensor: &TensorInfo,
    len: u64,
    at: Range<u64>,
) -> Result<Option<Arc<dyn crate::model::Decode>>> {
    if scheme.mode == Mode::Lookup {
        let message = format!(
            "tensor {:?} is quantized by a table that is not in the file: it cannot be dequantized",
            tensor.name
        );
        cx.note("burnpack.lookup", at, message);
        return Ok(None);
    }
    let arrangement = scheme.arrangement(&tensor.shape, len);
    if arrangement == Arrangement::Unknown {
        let message = format!(
            "tensor {:?} has {len} bytes, which is not what its quantization needs: it can be copied, but not \
            dequantized",
            tensor.name
        );
        cx.warn("burnpack.quant-length", at, message)?;
        return Ok(None);
    }
    let decoder = QFloat::new(scheme, &tensor.shape, arrangement);
    Ok(decoder.map(|decoder| Arc::new(decoder) as _))
}

/// The description of a tensor whose data begins at the next place after `offset`, and the form of its data.
fn to_descriptor(
    tensor: &TensorInfo,
    offset: u64,
    align: u64,
    version: &str,
) -> Result<(Descriptor, Want)> {
    let too_large = || Error::unsupported("burnpack.overflow", "larger than 64 bits can count");
    let dtype = stored_type(tensor, version)?;
    let (len, want) = match dtype.number() {
        Some(number) => {
            let elements = tensor.elements().ok_or_else(too_large)?;
            let len = number.bytes_for(elements).ok_or_else(too_large)?;
            (len, Want::Dense(Form::canonical(number)))
        }
        None => {
            let len = tensor.parts.first().map_or(0, |part| part.payload.len());
            let want = Want::Part {
                dtype: QFLOAT,
                endian: Endian::Little,
            };
            (len, want)
        }
    };
    let start = offset
        .checked_next_multiple_of(align)
        .ok_or_else(too_large)?;
    let end = start.checked_add(len).ok_or_else(too_large)?;
    let descriptor = Descriptor {
        name: tensor.name.clone(),
        dtype,
        shape: tensor.shape.clone(),
        data_offsets: start..end,
        param_id: tensor.metadata.get(PARAM_ID).and_then(Value::as_u64),
        others: (tensor.metadata.get(BURN_FIELDS))
            .and_then(Others::from_value)
            .map(Box::new),
        at: 0..0,
    };
    Ok((descriptor, want))
}

fn stored_type(tensor: &TensorInfo, version: &str) -> Result<StoredType> {
    let said = |key| tensor.metadata.get(key).and_then(Value::as_str);
    let newest = version == V023;
    Ok(match tensor.dtype {
        QFLOAT => {
            let wrong = |message: String| Error::unsupported("burnpack.quant", message);
            let scheme = quantized(tensor).map_err(wrong)?;
            let (scheme, _) = scheme.ok_or_else(|| wrong("not quantized".into()))?;
            if newest {
                StoredType::Quantized(Box::new(scheme))
            } else {
                StoredType::QuantizedOlder(Box::new(scheme))
            }
        }
        DType::BOOL if newest => {
            let said = said(BOOL_STORE).unwrap_or("Native");
            let store = BOOL_STORES.iter().find(|store| **store == said);
            StoredType::BoolStore(store.copied().unwrap_or("Native"))
        }
        DType::BOOL => StoredType::Bool,
        DType::F32 if said(BURN_DTYPE) == Some(FLEX32) => StoredType::Flex32,
        dtype => StoredType::Number(dtype),
    })
}
