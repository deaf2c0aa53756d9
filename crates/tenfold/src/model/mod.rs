//! What files are described in: plain data, no I/O.

mod cast;
mod chunks;
mod dtype;
mod effect;
mod form;
mod layout;
mod manifest;
mod metadata;
mod names;
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
pub(crate) use chunks::{FindTile, Tile};
pub use dtype::{BlockSpec, DType, Lanes, OpaqueSpec, Scalar};
pub use effect::Effect;
pub use form::{Form, Want};
pub use layout::{Endian, Layout, Operation, Order, PairIndex, Pairs, Scheme, Strides, Symmetry};
pub use manifest::{Kept, Manifest, Region, SealedRange};
pub(crate) use metadata::brief;
pub use metadata::{Elsewhere, Encoding, Load, Metadata, Value, ValueKind};
pub(crate) use names::repeated;
pub(crate) use packed::Packer;
pub use packed::{List, Map};
pub use parts::PartList;
pub use planes::Planes;
pub use quoted::Quoted;
pub use shape::Shape;
pub use slice::Slice;
pub(crate) use slice::{Axis, Selection, Steps};
pub(crate) use spelling::NUMPY_CODES;
pub(crate) use tensor::element_count;
pub use tensor::{
    Checksum, Codec, Decode, DigestKind, Make, Over, Part, Payload, Role, SourceId, TensorInfo,
    Unknown,
};
pub use tensors::Tensors;
