//! From the model to a dump, and to the file beside it that says what it is.

use super::SIDECAR;
use crate::error::{Error, Result};
use crate::format::{FilePlan, Form, Plan, PlanOptions, Segment, Want};
use crate::model::{Endian, Manifest, Order, Value};
use crate::prelude::*;
use crate::wire::json::{encode, encode_str};

/// Arrays begin at a multiple of this.
const ALIGN: u64 = 64;

pub(super) fn plan(what: &Manifest, options: &PlanOptions) -> Result<Plan> {
    let mut text = String::from("{\"tenfold_raw\": 1, \"arrays\": [");
    let mut segments = Vec::new();
    let mut at = 0u64;
    for (index, tensor) in what.tensors.iter().enumerate() {
        let too_large = || {
            let message = "the dump would be too large";
            Error::unsupported("raw.write", message).in_tensor(&tensor.name)
        };
        let begin = at.checked_next_multiple_of(ALIGN).ok_or_else(too_large)?;
        let len = tensor.dense_len().ok_or_else(too_large)?;
        at = begin.checked_add(len).ok_or_else(too_large)?;
        let order = tensor.layout.order().unwrap_or_default();
        text.push_str(if index == 0 { "\n " } else { ",\n " });
        text.push_str("{\"name\": ");
        encode_str(&tensor.name, &mut text);
        text.push_str(&format!(
            ", \"dtype\": \"{}\", \"shape\": {:?}, \"order\": \"{}\", \"endian\": \"little\", \"offset\": {begin}}}",
            tensor.dtype,
            &*tensor.shape,
            if order == Order::RowMajor { "C" } else { "F" }
        ));
        segments.push(Segment::Align { to: ALIGN, fill: 0 });
        segments.push(Segment::Tensor {
            index,
            part: 0,
            want: Want::Dense(Form::new(tensor.dtype, order, Endian::Little)),
            codec: None,
            digest: None,
        });
    }
    text.push_str("\n], \"metadata\": {");
    for (n, (key, value)) in what.metadata.iter().enumerate() {
        text.push_str(if n == 0 { "\n " } else { ",\n " });
        encode_str(key, &mut text);
        text.push_str(": ");
        let value = match value {
            Value::Str(_) => value,
            _ => &Value::Null,
        };
        encode(value, &mut text)?;
    }
    text.push_str("\n}}\n");
    let dump = FilePlan::new(options.file_name.clone(), segments);
    let name = format!("{}{SIDECAR}", options.file_name);
    let sidecar = FilePlan::new(name, vec![Segment::Bytes(text.into_bytes())]);
    Ok(Plan {
        files: vec![dump, sidecar],
    })
}
