//! From the model to a pickle: a dict of arrays.

use super::{NAMES, PARAMETER_NAME};
use crate::error::{Error, Result};
use crate::format::{
    Arranged, Effect, FilePlan, Form, Loss, Lost, Plan, PlanOptions, Segment, Want,
};
use crate::model::{DType, Manifest, TensorInfo, Value};
use crate::prelude::*;
use crate::wire::numpy;
use crate::wire::pickle::Encoder;

/// Leaves out values that are called like a tensor: a dict has every key once.
pub(super) fn arrange(what: &Manifest) -> Option<Arranged> {
    let names: LookupMap<&str, ()> = (what.tensors.iter())
        .map(|tensor| (tensor.name.as_str(), ()))
        .collect();
    let keys = what.metadata.iter().map(|(key, _)| key);
    let taken: Vec<String> = keys
        .filter(|key| names.contains_key(key))
        .map(ToOwned::to_owned)
        .collect();
    if taken.is_empty() {
        return None;
    }
    let mut manifest = what.clone();
    let mut losses = Vec::new();
    for key in taken {
        manifest.metadata.remove(&key);
        let why = "a tensor has this name";
        losses.push(Loss::new(None, Lost::Metadata(key), why, Effect::Dropped));
    }
    Some(Arranged::new(manifest, losses))
}

pub(super) fn plan(what: &Manifest, options: &PlanOptions) -> Result<Plan> {
    let mut file = File::default();
    // PROTO 4, EMPTY_DICT, MARK.
    file.encoder.put(b"\x80\x04}(");
    let parameter = |tensor: &TensorInfo| match tensor.metadata.get(PARAMETER_NAME) {
        Some(Value::Str(name)) => Some(name.clone()),
        _ => None,
    };
    // paddle.load makes tensors of those in the table alone, where there is one.
    let has_table = !what.tensors.is_empty()
        && what
            .tensors
            .iter()
            .all(|tensor| parameter(tensor).is_some());
    for (index, tensor) in what.tensors.iter().enumerate() {
        file.encoder.text(&tensor.name);
        match parameter(tensor).filter(|_| !has_table) {
            Some(name) => {
                // MARK, EMPTY_LIST, MARK .. APPENDS, TUPLE1, REDUCE.
                file.encoder
                    .global("builtins", "tuple")
                    .put(b"](")
                    .text(&name);
                file.array(index, tensor)?;
                file.encoder.put(b"e\x85R");
            }
            None => file.array(index, tensor)?,
        }
    }
    for (key, value, is_fact) in what.metadata.entries() {
        if !is_fact {
            file.encoder.text(key).value(value)?;
        }
    }
    if has_table {
        file.encoder.text(NAMES).put(b"}(");
        for tensor in &what.tensors {
            let name = parameter(tensor).unwrap_or_default();
            file.encoder.text(&tensor.name).text(&name);
        }
        file.encoder.put(b"u");
    }
    // SETITEMS, STOP.
    file.encoder.put(b"u.");
    file.flush();
    Ok(Plan {
        files: vec![FilePlan::new(options.file_name.clone(), file.segments)],
    })
}

/// A file as far as it is planned.
#[derive(Default)]
struct File {
    encoder: Encoder,
    segments: Vec<Segment>,
}

impl File {
    fn flush(&mut self) {
        self.segments.push(Segment::Bytes(self.encoder.take()));
    }

    /// `_reconstruct(ndarray, (0,), b"b")` with the state `(1, shape, dtype, False, bytes)`.
    fn array(&mut self, index: usize, tensor: &TensorInfo) -> Result<()> {
        let refuse = || {
            let message = format!("{} {:?} cannot be written", tensor.dtype, tensor.shape);
            Error::unsupported("paddle.write", message).in_tensor(&tensor.name)
        };
        // Paddle stores bf16 so.
        let stored = match tensor.dtype {
            DType::BF16 => DType::U16,
            dtype => dtype,
        };
        let descr = numpy::dtypes::descr(stored).ok_or_else(refuse)?;
        let (order, code) = descr.split_at_checked(1).ok_or_else(refuse)?;
        let len = tensor.dense_len().ok_or_else(refuse)?;
        let e = &mut self.encoder;
        e.global("numpy.core.multiarray", "_reconstruct");
        // BININT1 0, TUPLE1, SHORT_BINBYTES "b", TUPLE3, REDUCE; MARK, BININT1 1, MARK.
        e.global("numpy", "ndarray")
            .put(b"K\0\x85C\x01b\x87R(K\x01(");
        for dim in &*tensor.shape {
            e.number(i64::try_from(*dim).map_err(|cause| refuse().because(cause))?);
        }
        // TUPLE; .. NEWFALSE, NEWTRUE, TUPLE3, REDUCE, MARK, BININT1 3.
        e.put(b"t")
            .global("numpy", "dtype")
            .text(code)
            .put(b"\x89\x88\x87R(K\x03");
        // NONE three times, BININT -1 twice, BININT1 0, TUPLE, BUILD; NEWFALSE: row-major.
        e.text(order)
            .put(b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89")
            .bytes(len);
        self.flush();
        self.segments.push(Segment::Tensor {
            index,
            part: 0,
            want: Want::Dense(Form::canonical(tensor.dtype)),
            codec: None,
            digest: None,
        });
        // TUPLE, BUILD.
        self.encoder.put(b"tb");
        Ok(())
    }
}
