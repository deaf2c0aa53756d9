//! What files are described in: plain data, no I/O.

mod cast;
mod chunks;
mod dtype;
mod effect;
mod form;
mod layout;
mod manifest;
mod metadata;
// Formats use it whose files can have a name twice.
#[allow(dead_code)]
mod names;
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
mod parts;
mod planes;
mod quoted;
mod shape;
mod slice;
mod spelling;
mod tensor;
mod tensors;

pub use cast::CastCounts;
pub(crate) use cast::{has_zero, is_ieee};
pub use chunks::{Chunks, Cuts, Filter, Locate, Located, ReadFile};
#[cfg(any(feature = "dcp", feature = "tf_checkpoint"))]
pub(crate) use chunks::{FindTile, Tile};
pub use dtype::{BlockSpec, DType, Lanes, OpaqueSpec, Scalar};
pub use effect::Effect;
pub use form::{Form, Want};
pub use layout::{Endian, Layout, Operation, Order, PairIndex, Pairs, Scheme, Strides, Symmetry};
pub use manifest::{Kept, Manifest, Region, SealedRange};
#[cfg(any(feature = "flax", feature = "mat", feature = "netcdf", feature = "raw"))]
pub(crate) use metadata::brief;
pub use metadata::{Elsewhere, Encoding, Load, Metadata, Value, ValueKind};
#[allow(unused_imports)] // without any format
pub(crate) use names::repeated;
#[allow(unused_imports)] // without any format
pub(crate) use packed::Packer;
pub use packed::{List, Map};
pub use parts::PartList;
pub use planes::Planes;
pub use quoted::Quoted;
pub use shape::Shape;
pub use slice::Slice;
pub(crate) use slice::{Axis, Selection, Steps};
#[allow(unused_imports)] // without a format of NumPy's
pub(crate) use spelling::NUMPY_CODES;
pub(crate) use tensor::element_count;
pub use tensor::{
    Checksum, Codec, Decode, DigestKind, Make, Over, Part, Payload, Role, SourceId, TensorInfo,
    Unknown,
};
pub use tensors::Tensors;
