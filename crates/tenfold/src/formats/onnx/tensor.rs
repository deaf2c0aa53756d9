//! From a `TensorProto` to a tensor.

use super::external::{self, Files};
use super::raw::TensorProto;
use super::typed::Numbers;
use super::types::{self, Field as Typed};
use crate::error::{Error, Result};
use crate::format::Context;
use crate::model::{
    DType, Layout, Metadata, Part, Payload, Role, SourceId, TensorInfo, Value, element_count,
};
use crate::prelude::*;

/// The tensor that a message describes. What is wrong with it alone is its defect; a shape that cannot be counted is an
/// error of the file.
pub(super) fn describe(
    cx: &mut Context<'_>,
    files: &mut Files,
    mut proto: TensorProto,
) -> Result<TensorInfo> {
    check_shape(cx, &proto)?;
    if let Some(key) = &proto.external.unknown {
        let name = &proto.name;
        let message = format!("tensor {name:?}: external_data has a key {key:?} that is ignored");
        cx.warn("onnx.external-key", proto.at.clone(), message)?;
    }
    let (metadata, twice) = metadata(&mut proto)?;
    if let Some(key) = twice {
        let message = format!("tensor {:?}: metadata_props has {key:?} twice", proto.name);
        cx.warn("onnx.duplicate-key", proto.at.clone(), message)?;
    }
    let located = data_type(&proto).and_then(|(dtype, field)| {
        let payload = locate(cx, files, &proto, dtype, field)?;
        Ok((dtype, payload))
    });
    let dtype = types::known(proto.data_type).map_or(DType::UNKNOWN, |(dtype, _)| dtype);
    let mut info = TensorInfo::new(proto.name, dtype, proto.dims, Layout::RowMajor);
    info.metadata = metadata;
    match located {
        Ok((dtype, payload)) => info.parts = Part::new(Role::Values, dtype, payload).into(),
        Err(error) => info.defect = Some(error),
    }
    Ok(info)
}

/// The elements of a tensor, and their bytes.
pub(super) fn sizes(proto: &TensorProto, dtype: DType) -> Result<(u64, u64)> {
    let elements = element_count(&proto.dims);
    let others: Vec<u64> = proto.dims.iter().copied().filter(|&dim| dim > 0).collect();
    let most = element_count(&others).and_then(|count| dtype.bytes_for(count));
    let bytes = elements.and_then(|count| dtype.bytes_for(count));
    match (elements, bytes, most) {
        (Some(elements), Some(bytes), Some(_)) => Ok((elements, bytes)),
        _ => {
            let message = format!(
                "shape {:?} of {dtype} has more bytes than fit 64 bits",
                proto.dims
            );
            Err(proto.refuse("onnx.dims", message))
        }
    }
}

pub(super) fn check_shape(cx: &Context<'_>, proto: &TensorProto) -> Result<()> {
    if let Some(dim) = proto.negative {
        let message = format!("a dimension of {dim}, expected 0 or more");
        return Err(proto.refuse("onnx.dims", message));
    }
    let limit = cx.limits().rank;
    if proto.rank > limit {
        let message = format!("{} dimensions, the limit is {limit}", proto.rank);
        let error = Error::limit("onnx.rank", message).raised_by("rank", proto.rank as u64);
        return Err(error.at(proto.at.clone()).in_tensor(&proto.name));
    }
    // Of a type that is not known, the elements can be counted all the same.
    let dtype = types::known(proto.data_type).map_or(DType::U8, |(dtype, _)| dtype);
    sizes(proto, dtype).map(drop)
}

/// The type, and the field that its elements may be in.
pub(super) fn data_type(proto: &TensorProto) -> Result<(DType, Typed)> {
    if proto.segment {
        let message = "it is a segment of a tensor, which no program reads";
        return Err(proto.refuse("onnx.segment", message));
    }
    types::known(proto.data_type).ok_or_else(|| match proto.data_type {
        types::STRING => proto.refuse("onnx.string", "its elements are strings, not numbers"),
        0 => proto.refuse("onnx.data-type", "it has no data_type (UNDEFINED)"),
        other => {
            let message = format!("data_type {other}, 1 to 28 are known");
            let error = Error::unsupported("onnx.data-type", message);
            error.at(proto.at.clone()).in_tensor(&proto.name)
        }
    })
}

/// Where the data is: in one place, and as much as type and shape say.
pub(super) fn locate(
    cx: &mut Context<'_>,
    files: &mut Files,
    proto: &TensorProto,
    dtype: DType,
    field: Typed,
) -> Result<Payload> {
    let (elements, len) = sizes(proto, dtype)?;
    let mut places: Vec<&str> = proto.typed().map(|(field, _)| field.name()).collect();
    places.extend(proto.is_external.then_some("external_data"));
    // Some programs write the field whether they use it or not.
    let is_unused = |range: &&Range<u64>| range.is_empty() && !places.is_empty();
    let raw_data = proto.raw_data.as_ref().filter(|range| !is_unused(range));
    places.extend(raw_data.map(|_| "raw_data"));
    if let [first, second, ..] = *places.as_slice() {
        let message = format!("its data is both in {first} and in {second}");
        return Err(proto.refuse("onnx.data", message));
    }
    if proto.is_external {
        return external::locate(cx, files, proto, len);
    }
    if let Some(range) = raw_data {
        let found = range.end - range.start;
        if found != len {
            let message = format!(
                "raw_data has {found} bytes, shape {:?} of {dtype} needs {len}",
                proto.dims
            );
            return Err(proto.refuse("onnx.size", message));
        }
        return Ok(Payload::main(range.clone()));
    }
    let Some((found, data)) = proto.typed().next() else {
        if len == 0 {
            return Ok(Payload::main(proto.at.end..proto.at.end));
        }
        let message = format!(
            "it has no data, shape {:?} of {dtype} needs {len} bytes",
            proto.dims
        );
        return Err(proto.refuse("onnx.data", message));
    };
    if found != field {
        let (found, wanted) = (found.name(), field.name());
        let message = format!("its data is in {found}, elements of {dtype} are in {wanted}");
        return Err(proto.refuse("onnx.data", message));
    }
    if let Some(width) = field.width() {
        let (bytes, wanted) = (data.bytes, types::entries(dtype, elements));
        if bytes % width != 0 || Some(bytes / width) != wanted {
            let message = format!(
                "{} has {bytes} bytes, shape {:?} of {dtype} needs {len}",
                field.name(),
                proto.dims
            );
            return Err(proto.refuse("onnx.count", message));
        }
        if data.pieces == 1 {
            return Ok(Payload::main(data.range.clone()));
        }
    }
    let Some(source) = cx.open(SourceId::MAIN) else {
        return Err(proto.refuse("onnx.data", "its file is gone"));
    };
    let numbers = Numbers::new(source, proto, field, dtype, (elements, len), cx.limits());
    Ok(Payload::Lazy {
        len,
        maker: Arc::new(numbers),
    })
}

/// What the file says about a tensor, and a key that it says it under twice. It is taken out of the message.
pub(super) fn metadata(proto: &mut TensorProto) -> Result<(Metadata, Option<String>)> {
    let mut metadata = Metadata::new();
    let doc = proto.doc_string.take();
    if let Some(doc) = doc.filter(|doc| *doc != Value::Str(String::new())) {
        metadata.push("doc_string", doc);
    }
    let (props, twice) = core::mem::take(&mut proto.metadata_props).finish()?;
    if let Some(props) = props {
        metadata.push("metadata_props", Value::Map(props));
    }
    Ok((metadata, twice))
}
