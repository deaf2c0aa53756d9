//! The classes and functions that `.metadata` may name.

use crate::error::{Error, Result};
use crate::formats::torch::{self, Allowed};
use crate::model::DType;
use crate::prelude::*;
use crate::wire::pickle::{Import, Kind, Node, Policy, Value};

/// A class of `.metadata`, or a function that is called in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Class {
    Metadata,
    Tensor,
    Properties,
    Chunk,
    /// An object that is pickled by itself.
    Bytes,
    /// What an item is of.
    Index,
    /// Where an item is.
    Place,
    /// What is said for people.
    Informative,
    Size,
}

const MODULE: &str = "torch.distributed.checkpoint.metadata";
/// Where torch up to 2.2 has what is said of the elements.
const OLD_MODULE: &str = "torch.distributed._shard.sharded_tensor.metadata";
const FILES: &str = "torch.distributed.checkpoint.filesystem";
/// Where Megatron up to 0.13 has what it says instead of torch's `Metadata`, with the same attributes and one more.
pub(super) const MEGATRON: &str = "megatron.core.dist_checkpointing.strategies.torch";

/// What a class or function of the list is.
fn find(module: &str, name: &str) -> Option<Class> {
    Some(match (module, name) {
        (MODULE, "Metadata") | (MEGATRON, "MCoreMetadata") => Class::Metadata,
        (MODULE, "TensorStorageMetadata") => Class::Tensor,
        (MODULE | OLD_MODULE, "TensorProperties") => Class::Properties,
        (MODULE, "ChunkStorageMetadata") => Class::Chunk,
        (MODULE, "BytesStorageMetadata") => Class::Bytes,
        (MODULE, "MetadataIndex") => Class::Index,
        (FILES, "_StorageInfo") => Class::Place,
        (MODULE, "StorageMeta" | "_MEM_FORMAT_ENCODING") => Class::Informative,
        (OLD_MODULE, "MEM_FORMAT_ENCODING") => Class::Informative,
        (
            "pathlib" | "pathlib._local",
            "Path" | "PosixPath" | "WindowsPath" | "PurePath" | "PurePosixPath" | "PureWindowsPath",
        ) => Class::Informative,
        ("torch.serialization", "_get_layout") => Class::Informative,
        ("collections", "OrderedDict") => Class::Informative,
        ("torch", "Size") => Class::Size,
        _ => return None,
    })
}

/// Types that torch has and that are not read here.
const OTHER_TYPES: [&str; 22] = [
    "bits1x8",
    "bits2x4",
    "bits4x2",
    "bits8",
    "bits16",
    "complex32",
    "float4_e2m1fn_x2",
    "int1",
    "int2",
    "int3",
    "int4",
    "int5",
    "int6",
    "int7",
    "qint32",
    "qint8",
    "quint2x4",
    "quint4x2",
    "quint8",
    "uint1",
    "uint2",
    "uint4",
];

/// The type of a tensor.
pub(super) fn dtype(value: &Value<'_>) -> Result<DType> {
    if let Some(torch::Global::Type(dtype)) = Allowed::default().meaning(value)
        && dtype.width().is_some()
    {
        return Ok(dtype);
    }
    let message = format!("its type is {}, which is not read", value.what());
    Err(Error::unsupported("dcp.dtype", message))
}

/// What `.metadata` may load.
pub(super) struct Listed;

impl Policy for Listed {
    fn import(&mut self, import: Import<'_>) -> Result<()> {
        let Import { module, name, .. } = import;
        let is_type = || {
            let known = Allowed::default().find(module, name);
            matches!(known, Some(torch::Global::Type(_)))
                || module == "torch" && OTHER_TYPES.contains(&name)
        };
        if find(module, name).is_some() || is_type() {
            return Ok(());
        }
        let message = format!(
            "{module}.{name} is not among the classes and functions that describe a checkpoint, and could run anything"
        );
        Err(Error::unsupported("pickle-global", message))
    }

    fn may_build(&self, module: &str, name: &str) -> bool {
        find(module, name).is_some_and(|class| class != Class::Size)
    }
}

/// The object of a class that a value is; `None` where it is something else.
pub(super) fn instance<'t>(value: &Value<'t>, class: Class) -> Result<Option<Node<'t>>> {
    let Value::Node(node) = value else {
        return Ok(None);
    };
    if !matches!(node.kind(), Kind::Call | Kind::New) {
        return Ok(None);
    }
    let is_it = match node.object()?.function {
        Value::Global { module, name } => find(&module, &name) == Some(class),
        _ => false,
    };
    Ok(is_it.then_some(*node))
}
