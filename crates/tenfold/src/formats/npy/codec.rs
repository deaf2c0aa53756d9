//! Between an array's header and the model.

use super::SPEC;
use crate::error::{Error, Result};
use crate::format::{
    Arranged, Context, FilePlan, Form, Format, Plan, PlanOptions, Segment, Spec, Want,
};
use crate::io::{Reader, Source};
use crate::model::{Manifest, Payload, TensorInfo};
use crate::prelude::*;
use crate::wire::numpy::{self, Header, Place};

const TRUNCATED: &str = "npy.truncated";
/// Arrays after the first that are told about.
const MOST_APPENDED: usize = 8;

/// Reads and writes `.npy`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Npy;

impl Format for Npy {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        let (header, data) = read(cx, 0)?;
        if let Some(at) = header.native {
            let message =
                "the byte order is that of the machine that wrote the file; read as little-endian";
            cx.warn("npy.byte-order", at, message)?;
        }
        let mut manifest = Manifest::new(header.version);
        manifest.region(0..data.start, "header");
        let end = data.end;
        let mut tensor = TensorInfo::dense(
            cx.tensor_name(),
            header.dtype,
            header.shape,
            Payload::main(data),
        );
        tensor.set_unnamed(true);
        tensor.layout = header.layout;
        for part in &mut tensor.parts {
            part.endian = header.endian;
        }
        manifest.tensors.push(tensor);
        let file = cx.source().len();
        if end < file {
            let message = format!(
                "{} bytes follow the array and are ignored, as NumPy does: {}",
                file - end,
                appended(cx, end)
            );
            cx.warn("npy.trailing", end..file, message)?;
            manifest.region(end..file, "trailing bytes");
        }
        Ok(manifest)
    }

    #[cfg(feature = "write")]
    fn arrange(&self, what: &Manifest, _: &PlanOptions) -> Result<Option<Arranged>> {
        Ok(crate::formats::numpy::arrange(what, Vec::new()))
    }

    #[cfg(feature = "write")]
    fn plan(&self, what: &Manifest, options: &PlanOptions) -> Result<Plan> {
        let [tensor] = what.tensors.as_slice() else {
            return Err(Error::argument("a .npy file holds exactly one array"));
        };
        let header = numpy::encode(tensor.dtype, &tensor.shape).ok_or_else(|| {
            Error::unsupported("dtype", format!("{} cannot be written", tensor.dtype))
        })?;
        let data = Segment::Tensor {
            index: 0,
            part: 0,
            want: Want::Dense(Form::canonical(tensor.dtype)),
            codec: None,
            digest: None,
        };
        Ok(Plan {
            files: vec![FilePlan::new(
                options.file_name.clone(),
                vec![Segment::Bytes(header), data],
            )],
        })
    }
}

/// The header at `at`, and where its elements are.
fn read(cx: &Context<'_>, at: u64) -> Result<(Header, Range<u64>)> {
    let source: &dyn Source = cx.source();
    let mut r = Reader::over(source, at..source.len(), TRUNCATED);
    let header = Header::parse(
        &mut |n, field| r.take(n, field),
        &Place::At(at),
        cx.assumed_dtype(),
        cx.limits().rank,
    )?;
    if let Some(other) = &header.other {
        return Err(other.refusal());
    }
    let from = r.pos();
    if header.data_len > r.remaining() {
        let message = format!(
            "{} of {:?} has {} bytes, {} follow the header: the file is truncated",
            header.dtype,
            header.shape,
            header.data_len,
            r.remaining()
        );
        return Err(Error::malformed(TRUNCATED, message).at(from..source.len()));
    }
    let data = from..from + header.data_len;
    Ok((header, data))
}

/// What follows the first array: `numpy.save` can be called on one file over and over.
fn appended(cx: &Context<'_>, mut at: u64) -> String {
    let mut found = Vec::new();
    while found.len() < MOST_APPENDED
        && let Ok((header, data)) = read(cx, at)
    {
        found.push(format!("{} {:?}", header.dtype, header.shape));
        at = data.end;
    }
    let more = if at < cx.source().len() {
        ", and more"
    } else {
        ""
    };
    match found.len() {
        0 => "they are not an array".into(),
        1 => format!("one more array, {}{more}", found.join("")),
        n => format!("{n} more arrays, {}{more}", found.join(", ")),
    }
}
