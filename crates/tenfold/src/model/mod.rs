//! What files are described in: plain data, no I/O.

mod dtype;
mod form;
mod layout;
mod manifest;
mod metadata;
// Each format packs what its files have: with few of them, not all of it is used.
#[cfg_attr(
    not(all(
        feature = "cc4s",
        feature = "mag",
        feature = "safetensors",
        feature = "ztensor"
    )),
    allow(dead_code)
)]
mod packed;
mod recast;
mod slice;
mod tensor;
mod tensors;

pub use dtype::{BlockSpec, DType, Lanes, Scalar};
pub use form::{Form, Want};
pub use layout::{Endian, Layout, Operation, Order, PairIndex, Strides, Symmetry};
pub use manifest::{Kept, Manifest, Region, SealedRange};
pub use metadata::{Elsewhere, Encoding, Load, Metadata, Value, ValueKind};
#[allow(unused_imports)] // without any format
pub(crate) use packed::Packer;
pub use packed::{List, Map};
pub(crate) use recast::{has_zero, is_ieee};
pub use slice::Slice;
pub(crate) use slice::{Axis, Selection, Steps};
pub(crate) use tensor::element_count;
pub use tensor::{
    Checksum, Codec, Decode, DigestKind, Make, Over, Part, Payload, Role, SourceId, TensorInfo,
    Unknown,
};
pub use tensors::Tensors;
