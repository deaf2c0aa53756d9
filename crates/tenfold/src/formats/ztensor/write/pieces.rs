//! What is stored of each tensor, in which form, and which tensors share it.

use alloc::borrow::Cow;

use super::sharing::Request;
use crate::error::{Error, Result};
use crate::format::{Checksums, Compression, Form, Want};
use crate::formats::ztensor::names::{self, Spelling};
use crate::formats::ztensor::v2;
use crate::formats::ztensor::write::{Generation, LEVEL, Target};
use crate::model::{
    Checksum, DType, DigestKind, Endian, Layout, Metadata, Order, Over, Part, Payload, Role,
    TensorInfo, Value,
};
use crate::prelude::*;
use crate::transform::cast_len;

/// A tensor to be written.
pub(super) struct Object {
    /// The place of its description.
    pub(super) index: usize,
    /// `layout` of 0.1 and 2, `format` of 1.2.
    pub(super) layout: Cow<'static, str>,
    /// In place of the description's.
    metadata: Option<Metadata>,
    pub(super) pieces: Vec<Piece>,
}

/// A part of it.
pub(super) struct Piece {
    pub(super) name: Cow<'static, str>,
    pub(super) dtype: Spelling,
    pub(super) encoding: Option<&'static str>,
    /// The byte order where it must be said: of uncompressed numbers in 0.1.
    pub(super) endian: Option<Endian>,
    /// Bytes before compression.
    pub(super) len: u64,
    /// A checksum of the source that is still right.
    pub(super) carried: Option<Checksum>,
    /// Which of the stored pieces of data it is.
    pub(super) blob: usize,
}

impl Object {
    /// Says what is to be stored for each of its pieces too.
    pub(super) fn new(
        target: &Target,
        index: usize,
        info: &TensorInfo,
        compression: Compression,
        requests: &mut Vec<Request>,
    ) -> Result<Self> {
        target.check_compression(compression)?;
        let maker = Maker {
            target,
            index,
            info,
            compression,
        };
        let mut pieces = Vec::with_capacity(info.parts.len());
        for (part, stored) in info.parts.iter().enumerate() {
            let (piece, request) = maker.piece(part, stored, requests.len())?;
            pieces.push(piece);
            requests.push(request);
        }
        Ok(Self {
            index,
            layout: layout_name(target.generation, info),
            metadata: block_metadata(info),
            pieces,
        })
    }

    /// The description of the tensor.
    pub(super) fn info<'t>(&self, tensors: &'t [TensorInfo]) -> Result<&'t TensorInfo> {
        let info = tensors.get(self.index);
        info.ok_or_else(|| Error::argument("a tensor without a description"))
    }

    /// What is written about the tensor beyond its type and place.
    pub(super) fn metadata<'o>(&'o self, info: &'o TensorInfo) -> &'o Metadata {
        self.metadata.as_ref().unwrap_or(&info.metadata)
    }
}

/// Metadata that says how blocks are made: of the layout, not of the tensor, whatever the source says.
fn block_metadata(info: &TensorInfo) -> Option<Metadata> {
    let DType::Block(block) = info.dtype else {
        return None;
    };
    let mut metadata = info.metadata.filter_map(|key, value| {
        (!matches!(key, v2::ELEMS_PER_BLOCK | v2::BLOCK_BYTES)).then(|| value.clone())
    });
    metadata.push(v2::ELEMS_PER_BLOCK, Value::U32(block.elements));
    metadata.push(v2::BLOCK_BYTES, Value::U32(block.bytes));
    Some(metadata)
}

fn layout_name(generation: Generation, info: &TensorInfo) -> Cow<'static, str> {
    let is_2 = generation == Generation::V2;
    match (&info.layout, info.dtype) {
        (Layout::Opaque(scheme), _) => Cow::Owned(scheme.name.clone()),
        (Layout::Coo { .. }, _) => Cow::Borrowed(if is_2 { v2::COO } else { "sparse_coo" }),
        (Layout::Csr { .. }, _) => Cow::Borrowed(if is_2 { v2::CSR } else { "sparse_csr" }),
        (_, DType::Block(block)) => {
            Cow::Owned(format!("gguf.{}/1", block.name.to_ascii_lowercase()))
        }
        _ => Cow::Borrowed("dense"),
    }
}

/// Decides the form of a tensor's parts.
pub(super) struct Maker<'a> {
    pub(super) target: &'a Target,
    index: usize,
    pub(super) info: &'a TensorInfo,
    compression: Compression,
}

impl Maker<'_> {
    fn piece(&self, part: usize, stored: &Part, blob: usize) -> Result<(Piece, Request)> {
        let Self {
            target,
            index,
            info,
            ..
        } = *self;
        let dense = info.layout.is_dense();
        let dtype = if dense {
            info.dtype
        } else {
            self.part_dtype(stored)
        };
        let spelling = self.spelling(dtype).ok_or_else(|| {
            Error::unsupported(
                "ztensor.dtype",
                format!("the format has no elements of {dtype}"),
            )
        })?;
        let len = if dense {
            info.dense_len()
        } else if dtype == stored.dtype {
            // Parts of opaque layouts may be of any length.
            Some(stored.payload.len())
        } else {
            Some(cast_len(stored.dtype, dtype, stored.payload.len())?)
        };
        let len = len.unwrap_or(0);

        let level = self.level(stored, len);
        let big = target.big && level.is_none() && dtype.swap_width() > 1;
        let endian = if big { Endian::Big } else { Endian::Little };
        let same_order = stored.endian == endian || !dtype.is_ordered();
        let unchanged = stored.dtype == dtype
            && dtype != DType::BOOL
            && same_order
            && (!dense || info.layout == Layout::RowMajor);
        let keeps = match &stored.payload {
            Payload::Encoded { codec, .. } => {
                unchanged
                    && self.compression == Compression::Keep
                    && target.has(*codec)
                    && !self.must_decode(stored)
                    && !target.canonical
                    && !big
                    && len > 0
            }
            Payload::Raw { .. } => unchanged && level.is_none(),
            _ => false,
        };
        // What was compressed and has to be changed is raw where nothing can be compressed, unless that was asked for.
        let compresses = self.compression != Compression::Keep || cfg!(feature = "zstd-write");
        let codec = level.filter(|_| !keeps && compresses);
        let codec = codec.map(|level| target.codec(level));
        let compressed =
            codec.is_some() || keeps && matches!(stored.payload, Payload::Encoded { .. });
        let want = match (keeps, dense) {
            (true, _) => Want::Stored,
            (_, true) => Want::Dense(Form {
                dtype,
                order: Order::RowMajor,
                endian,
            }),
            (_, false) => Want::Part { dtype, endian },
        };
        let (carried, digest) = self.checksum(stored, unchanged, keeps);
        let identity = self.identity(stored, len, &want, codec);
        let is_01 = target.generation == Generation::V01;
        let piece = Piece {
            name: self.name(stored),
            dtype: spelling,
            encoding: compressed.then_some(if is_01 || target.generation == Generation::V12 {
                "zstd"
            } else {
                v2::SEEKABLE
            }),
            endian: (is_01 && !compressed && dtype.swap_width() > 1).then_some(endian),
            len,
            carried,
            blob,
        };
        let request = Request {
            of: (index, part),
            want,
            codec,
            digest,
            identity,
        };
        Ok((piece, request))
    }

    fn spelling(&self, dtype: DType) -> Option<Spelling> {
        match self.target.generation {
            Generation::V01 => Some((names::in_01(dtype)?, None)),
            Generation::V12 => names::in_12(dtype),
            Generation::V2 if matches!(dtype, DType::Block(_)) => Some(("u8", None)),
            Generation::V2 => names::in_2(dtype),
        }
    }

    /// The type of a part: that of the source, but for values, which have the tensor's, and for indices, about which the
    /// generations have rules.
    fn part_dtype(&self, stored: &Part) -> DType {
        match (&stored.role, &self.info.layout) {
            (Role::Coords | Role::Indices | Role::Indptr, _) => {}
            (Role::Values, Layout::Coo { .. } | Layout::Csr { .. }) => return self.info.dtype,
            _ => return stored.dtype,
        }
        let mut indices = self
            .info
            .parts
            .iter()
            .filter(|part| !matches!(part.role, Role::Values));
        let narrow = indices.all(|part| part.dtype == DType::U32);
        if narrow && self.target.generation == Generation::V2 {
            DType::U32
        } else {
            DType::U64
        }
    }

    fn name(&self, stored: &Part) -> Cow<'static, str> {
        match &stored.role {
            Role::Values if self.info.layout.is_dense() => Cow::Borrowed("data"),
            Role::Values => Cow::Borrowed("values"),
            Role::Coords => Cow::Borrowed("coords"),
            Role::Indices => Cow::Borrowed("indices"),
            Role::Indptr => Cow::Borrowed("indptr"),
            Role::Named(name) => Cow::Owned(name.clone()),
        }
    }

    /// The level to compress with; `None` for what stays or becomes uncompressed. Empty data is not compressed.
    fn level(&self, stored: &Part, len: u64) -> Option<i32> {
        let level = match (self.compression, &stored.payload) {
            (Compression::Zstd(level), _) => Some(level),
            (Compression::Keep, Payload::Encoded { codec, .. }) => {
                // A build that cannot compress can still take over what it need not change.
                let passes = self.target.has(*codec) && !self.must_decode(stored);
                (passes || cfg!(feature = "zstd-write")).then_some(LEVEL)
            }
            _ => None,
        };
        level.filter(|_| len > 0 && !self.target.canonical)
    }

    /// Whether compressed data cannot be passed on as it is, because a checksum of the decoded bytes is asked for that is
    /// not there yet.
    fn must_decode(&self, stored: &Part) -> bool {
        match self.target.checksums {
            Checksums::With(kind) if self.target.over() == Over::Decoded => {
                let there = |sum: &Checksum| sum.kind == kind && sum.over == Over::Decoded;
                !stored.checksum.as_deref().is_some_and(there)
            }
            _ => false,
        }
    }

    /// A checksum to carry over, or one to compute: what had one has one, of a kind that the generation knows.
    fn checksum(
        &self,
        stored: &Part,
        unchanged: bool,
        keeps: bool,
    ) -> (Option<Checksum>, Option<DigestKind>) {
        let raw = matches!(stored.payload, Payload::Raw { .. });
        let over = self.target.over();
        let old = match (self.target.checksums, stored.checksum.as_deref()) {
            // Compressed data that is kept though it has to be of the decoded bytes: it is there already.
            (Checksums::With(_), Some(old)) if keeps && !raw && over == Over::Decoded => old,
            (Checksums::With(kind), _) => return (None, Some(kind)),
            // That of zip covers what zTensor does not have.
            (Checksums::Keep, Some(old)) if old.kind != DigestKind::Crc32 => old,
            _ => return (None, None),
        };
        let known = self.target.kinds.contains(&old.kind);
        let same = match over {
            Over::Stored => keeps && (raw || old.over == Over::Stored),
            Over::Decoded => unchanged && (raw || old.over == Over::Decoded),
        };
        if same && known {
            let kept = Checksum {
                over,
                ..old.clone()
            };
            (Some(kept), None)
        } else if known {
            (None, Some(old.kind))
        } else {
            (None, self.target.kinds.first().copied())
        }
    }
}
