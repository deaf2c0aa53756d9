//! Between a dump and the model.

use super::sidecar::{self, Array, Sidecar};
#[cfg(feature = "write")]
use super::write;
use super::{SIDECAR, SPEC, VERSION};
use crate::error::{Error, Hint, Result};
use crate::format::{Confidence, Context, Format, Head, OptionSpec, Spec};
#[cfg(feature = "write")]
use crate::format::{Plan, PlanOptions};
use crate::io::Source;
use crate::model::{
    DType, Manifest, Order, Part, Payload, Region, Role, Shape, SourceId, TensorInfo, element_count,
};
use crate::prelude::*;

/// Reads and writes plain dumps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw;

const SHAPE: OptionSpec = OptionSpec::new(
    "shape",
    "N,N,...",
    "read the dump as an array of this shape; one side may be -1: what there is (default: all of it as one line)",
);
const OFFSET: OptionSpec =
    OptionSpec::new("offset", "N", "the array begins at this byte (default: 0)");
const ORDER: OptionSpec = OptionSpec::new(
    "order",
    "C or F",
    "C: the last index runs fastest; F: the first one (default: C)",
);
const ENDIAN: OptionSpec = OptionSpec::new(
    "endian",
    "little or big",
    "the order of the bytes of a number (default: little)",
);

impl Format for Raw {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn detect(&self, head: &Head<'_>) -> Result<Confidence> {
        if sidecar::begins(head.first()) {
            return Ok(Confidence::Certain);
        }
        // A dump says nothing: only its name does, where no other format knows it.
        let is_named = head.name().is_some_and(|name| name.ends_with(".raw"));
        Ok(if is_named {
            Confidence::Possible
        } else {
            Confidence::No
        })
    }

    fn reading_options(&self) -> &'static [OptionSpec] {
        const { &[SHAPE, OFFSET, ORDER, ENDIAN] }
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        let is_asked = [SHAPE, OFFSET, ORDER, ENDIAN]
            .iter()
            .any(|option| cx.option(option.key).is_some());
        if !is_asked && cx.assumed_dtype().is_none() {
            if Sidecar::is_one(cx.source(), cx.limits())? {
                return beside(cx);
            }
            if let Some(manifest) = with_sidecar(cx)? {
                return Ok(manifest);
            }
        }
        assumed(cx)
    }

    #[cfg(feature = "write")]
    fn plan(&self, what: &Manifest, options: &PlanOptions) -> Result<Plan> {
        write::plan(what, options)
    }
}

/// The dump that the file which was opened is beside.
fn beside(cx: &mut Context<'_>) -> Result<Manifest> {
    let sidecar = Sidecar::read(cx.source(), cx.limits())?;
    let name = cx.name().and_then(|name| name.strip_suffix(SIDECAR));
    let Some(name) = name.map(ToOwned::to_owned) else {
        let message =
            "it says what is in a dump, whose name is its own without .json: it has another ending";
        return Err(Error::unsupported("raw.name", message));
    };
    let len = cx.source().len();
    let dump = cx.sibling(&name)?;
    let mut manifest = describe(cx, dump, sidecar)?;
    manifest.region(0..len, "description");
    Ok(manifest)
}

/// A dump by what the file beside it says, if there is one.
fn with_sidecar(cx: &mut Context<'_>) -> Result<Option<Manifest>> {
    let Some(name) = cx.name().map(|name| format!("{name}{SIDECAR}")) else {
        return Ok(None);
    };
    if !cx.siblings()?.contains(&name) {
        return Ok(None);
    }
    let id = cx.sibling(&name)?;
    let file = cx
        .open(id)
        .ok_or_else(|| Error::argument("a file that is gone"))?;
    if !Sidecar::is_one(&*file, cx.limits())? {
        return Ok(None);
    }
    let sidecar = Sidecar::read(&*file, cx.limits()).map_err(|error| error.in_file(id, &name))?;
    let mut manifest = describe(cx, SourceId::MAIN, sidecar)?;
    manifest
        .regions
        .push(Region::new(id, 0..file.len(), "description"));
    Ok(Some(manifest))
}

fn describe(cx: &mut Context<'_>, dump: SourceId, sidecar: Sidecar) -> Result<Manifest> {
    let file = cx
        .open(dump)
        .ok_or_else(|| Error::argument("a file that is gone"))?;
    let mut manifest = Manifest::new(VERSION);
    manifest.metadata = sidecar.metadata;
    for array in sidecar.arrays {
        push_tight(&mut manifest.tensors, tensor(array, dump, file.len())?);
    }
    Ok(manifest)
}

/// A dump by what whoever opens it says.
fn assumed(cx: &mut Context<'_>) -> Result<Manifest> {
    let len = cx.source().len();
    let Some(dtype) = cx.assumed_dtype() else {
        let message = "a plain dump does not say what its elements are, and there is no file beside it that does";
        let error = Error::unsupported("raw.dtype", message).at(0..len);
        return Err(error.hinting(Hint::Assume(None)));
    };
    let DType::Number(..) = dtype else {
        let message = format!("elements of {dtype} in a plain dump");
        return Err(Error::unsupported("raw.dtype", message));
    };
    let offset = match cx.option(OFFSET.key) {
        None => 0,
        Some(offset) => offset.parse().map_err(|cause| {
            Error::argument(format!("an offset {offset:?}, a number is expected")).because(cause)
        })?,
    };
    let room = len.checked_sub(offset);
    let room = room.ok_or_else(|| truncated(offset, "the array begins", len))?;
    let array = Array {
        name: cx.tensor_name().into_owned(),
        dtype,
        shape: shape(cx.option(SHAPE.key), dtype, room)?,
        order: cx
            .option(ORDER.key)
            .map_or(Ok(Order::RowMajor), sidecar::order)?,
        endian: cx
            .option(ENDIAN.key)
            .map_or(Ok(Default::default()), sidecar::endian)?,
        offset,
    };
    let mut tensor = tensor(array, SourceId::MAIN, len)?;
    tensor.set_unnamed(true);
    let end = tensor.parts.first().and_then(|part| part.payload.stored());
    let end = end.map_or(0, |(_, range)| range.end);
    let mut manifest = Manifest::new(VERSION);
    manifest.tensors.push(tensor);
    if offset > 0 {
        manifest.region(0..offset, "in front of the array");
    }
    if end < len {
        let message = format!("{} bytes follow the array and are not read", len - end);
        cx.warn("raw.trailing", end..len, message)?;
        manifest.region(end..len, "trailing bytes");
    }
    Ok(manifest)
}

/// The sides that an option says; what is not said follows from the bytes that there are.
fn shape(said: Option<&str>, dtype: DType, room: u64) -> Result<Shape> {
    let whole = |known: u64| -> Option<u64> {
        // Of 8 elements, so that those below a byte are counted too.
        let bits = dtype.bytes_for(8)?.checked_mul(known)?;
        (bits > 0).then(|| room.saturating_mul(8) / bits)
    };
    let wrong =
        |why: &str| Error::argument(format!("a shape {:?}: {why}", said.unwrap_or_default()));
    let Some(text) = said else {
        let all = whole(1).ok_or_else(|| wrong("elements without a length"))?;
        return Ok(Shape::from([all].as_slice()));
    };
    let text = text.trim_matches(|c: char| matches!(c, '(' | ')' | '[' | ']' | ' '));
    let sides = text
        .split([',', 'x'])
        .map(str::trim)
        .filter(|side| !side.is_empty());
    let mut dims = Vec::new();
    let mut open = None;
    for side in sides {
        if side == "-1" && open.is_none() {
            open = Some(dims.len());
            dims.push(1);
            continue;
        }
        dims.push(
            side.parse()
                .map_err(|_| wrong("sides are numbers, and one may be -1"))?,
        );
    }
    if let Some(open) = open {
        let known = element_count(&dims).ok_or_else(|| wrong("it is too large"))?;
        let side = whole(known).ok_or_else(|| wrong("-1 beside a side of 0"))?;
        if let Some(dim) = dims.get_mut(open) {
            *dim = side;
        }
    }
    Ok(Shape::from(dims.as_slice()))
}

fn truncated(end: u64, what: &str, len: u64) -> Error {
    let message = format!("{what} at byte {end}, the dump has {len} bytes");
    Error::malformed("raw.truncated", message).at(len..len)
}

fn tensor(array: Array, dump: SourceId, len: u64) -> Result<TensorInfo> {
    let Array {
        name,
        dtype,
        shape,
        order,
        endian,
        offset,
    } = array;
    let bytes = element_count(&shape).and_then(|count| dtype.bytes_for(count));
    let end = bytes.and_then(|bytes| offset.checked_add(bytes));
    let Some(end) = end else {
        let message = format!("{dtype} of {shape:?} has more bytes than 64 bits can count");
        return Err(Error::malformed("raw.shape", message).in_tensor(&name));
    };
    if end > len {
        let error = truncated(end, &format!("{dtype} of {shape:?} ends"), len);
        return Err(error.in_tensor(&name));
    }
    let mut tensor = TensorInfo::new(name, dtype, shape, order.into());
    let payload = Payload::Raw {
        source: dump,
        range: offset..end,
    };
    let mut part = Part::new(Role::Values, dtype, payload);
    part.endian = endian;
    tensor.parts = part.into();
    Ok(tensor)
}
