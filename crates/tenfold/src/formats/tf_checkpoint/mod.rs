//! TensorFlow's checkpoints (`x.index` and `x.data-00000-of-00001`), version 2: a table of names, and the bytes of tensors.
//!
//! The index is a table as LevelDB has it:
//!
//! | bytes                 | content                                                                                  |
//! |-----------------------|------------------------------------------------------------------------------------------|
//! | blocks of data        | keys in order, each with a message: `""` is the header, others are tensors               |
//! | a block of blocks     | the last key of each of them, and where it is                                            |
//! | last 48               | where two blocks are, zeros, `57 FB 80 8B 24 75 47 DB`                                   |
//!
//! Behind each block there are its compression and a masked CRC-32C. The header says how many files the data is in and
//! the order of the bytes; a tensor's message its type, shape, file, place and masked CRC-32C. A tensor can be stored in
//! slices, which have keys of their own that begin with a zero byte.
//!
//! Read are bundles in any number of files, whichever of their files is opened. Tensors of text are metadata; the graph of
//! objects is kept. Types of 4 bits have a byte for each element. Written is one file of data. Refused are V1 checkpoints,
//! quantized types without a scale, resources and variants. The rules are listed in `docs/formats/tf_checkpoint.md`.
//! Source: the behaviour of TensorFlow 2.21.

#[cfg(feature = "tf_checkpoint")]
mod codec;
mod dtypes;
#[cfg(feature = "tf_checkpoint")]
mod entry;
#[cfg(feature = "tf_checkpoint")]
mod graph;
#[cfg(feature = "tf_checkpoint")]
mod names;
#[cfg(feature = "tf_checkpoint")]
mod shards;
#[cfg(feature = "tf_checkpoint")]
mod slices;
#[cfg(feature = "tf_checkpoint")]
mod strings;
#[cfg(feature = "tf_checkpoint")]
mod table;
#[cfg(all(feature = "tf_checkpoint", feature = "write"))]
mod write;

#[cfg(feature = "tf_checkpoint")]
use codec::TfCheckpoint;

use crate::format::{Capabilities, Entry, Fit, Profile, Spec, written};
use crate::model::{List, Value};
use crate::prelude::*;

/// The row of the table of formats.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "tf_checkpoint")]
    codec: Some(&TfCheckpoint),
    #[cfg(not(feature = "tf_checkpoint"))]
    codec: None,
};

/// What is known of the format without its codec.
pub static SPEC: Spec = Spec {
    reads: &[V2],
    writes: written(WRITES),
    ..Spec::known("tf_checkpoint", "TensorFlow checkpoint", &["index"], &[])
};

/// The versions that are written.
const WRITES: &[Profile] = &[Profile {
    version: V2,
    read_by: "tf.train.load_checkpoint and tf.compat.v1.train.Saver; tf.train.Checkpoint.restore only with a graph of objects",
    can: Capabilities {
        max_rank: MAX_RANK,
        name,
        dtype: |dtype| dtypes::number(dtype).is_some(),
        tensor: |tensor| {
            let stored = dtypes::stored(tensor.dtype);
            let len = tensor.elements().and_then(|count| stored.bytes_for(count));
            match len {
                Some(len) if i64::try_from(len).is_ok() => Ok(()),
                _ => Err("its elements have 2^63 bytes or more".to_owned()),
            }
        },
        file_value: |key, value| fit(key, value),
        kept: true,
        ..Capabilities::new()
    },
}];

const V2: &str = "V2";
/// Dimensions that TensorFlow has, at most.
const MAX_RANK: usize = 254;
/// The key of the graph of objects, a message in a text.
const OBJECT_GRAPH: &str = "_CHECKPOINTABLE_OBJECT_GRAPH";
/// Levels of lists that text is in, at most.
const MAX_LISTS: usize = 8;

fn name(name: &str) -> Result<(), &'static str> {
    match name.as_bytes() {
        [] => Err("a name has at least one character"),
        [0, ..] => Err("names that begin with a zero byte are those of slices"),
        _ if name == OBJECT_GRAPH => Err("the graph of objects is called so"),
        _ => Ok(()),
    }
}

/// Text, bytes and lists of them are tensors of text. Bytes that could be text come back as that.
fn fit(key: &str, value: &Value) -> Fit {
    if name(key).is_err() {
        return Fit::No;
    }
    match value {
        Value::Str(_) => Fit::Exact,
        Value::Bytes(bytes) => match core::str::from_utf8(bytes) {
            Ok(text) => Fit::As(Value::Str(text.to_owned())),
            Err(_) => Fit::Exact,
        },
        Value::List(list) => match text_shape(list, 0).as_deref() {
            // Without text in them, lists in lists are an empty one.
            Some(shape @ [_, _, ..]) if shape.contains(&0) => Fit::No,
            Some(_) => Fit::Exact,
            None => Fit::No,
        },
        _ => Fit::No,
    }
}

/// The dimensions of text in lists that are equally long.
fn text_shape(list: &List, depth: usize) -> Option<Vec<u64>> {
    if depth >= MAX_LISTS {
        return None;
    }
    let mut inner: Option<Vec<u64>> = None;
    for value in list.iter() {
        let shape = match &value {
            Value::Str(_) => Vec::new(),
            Value::Bytes(bytes) if core::str::from_utf8(bytes).is_err() => Vec::new(),
            Value::List(list) => text_shape(list, depth + 1)?,
            _ => return None,
        };
        match &inner {
            Some(known) if *known != shape => return None,
            _ => inner = Some(shape),
        }
    }
    let mut shape = vec![list.len() as u64];
    shape.extend(inner.unwrap_or_default());
    Some(shape)
}
