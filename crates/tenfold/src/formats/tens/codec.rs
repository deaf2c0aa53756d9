//! From what is on disk to the model.

use super::meta::{self, Claim, INDEX_NAMES, SPARSE_DIMENSIONS, SYMMETRIES, to_text};
use super::raw::{
    Chunk, DENSDATA, Dimension, Header, IX, PK, SP, SYMMETRY, SymmetryBody, TRUNCATED, VERSION_09,
};
use super::{SPEC, V09, plan};
use crate::digest::Hex;
use crate::error::{Error, Result};
use crate::format::{Context, Format, Plan, PlanOptions, Spec, Survey};
use crate::io::Reader;
use crate::model::{
    DType, Kept, Lanes, Layout, Manifest, Metadata, Packer, PairIndex, Pairs, Part, Payload, Role,
    SourceId, Symmetry, TensorInfo, Value,
};
use crate::prelude::*;
use crate::transform::Triangle;

/// Reads and writes TENS.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tens;

impl Format for Tens {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        let mut r = Reader::new(cx.source(), TRUNCATED);
        let header = Header::parse(&mut r)?;
        let file = File::parse(cx, &mut r, header)?;
        match file.header.version {
            VERSION_09 => file.describe_09(cx, &r),
            _ => file.describe_10(cx, &mut r),
        }
    }

    #[cfg(feature = "write")]
    fn survey(&self, options: &PlanOptions) -> Result<Survey> {
        plan::survey(options)
    }

    #[cfg(feature = "write")]
    fn plan(&self, what: &Manifest, options: &PlanOptions) -> Result<Plan> {
        plan::plan(what, options)
    }
}

/// What both versions begin with.
struct File {
    header: Header,
    dimensions: Vec<Dimension>,
    names: Vec<u8>,
    shape: Vec<u64>,
    /// Elements, and bytes of one.
    elements: u64,
    width: u64,
}

impl File {
    fn parse(cx: &mut Context<'_>, r: &mut Reader<'_>, header: Header) -> Result<Self> {
        let is_09 = header.version == VERSION_09;
        let known = if is_09 { 0 } else { IX };
        if header.flags & !known != 0 {
            let message = format!(
                "tensor flags {:#x}, of which {known:#x} are known",
                header.flags
            );
            return Err(Error::unsupported("tens.flags", message).at(24..28));
        }
        if header.zero != 0 && !is_09 {
            cx.warn(
                "tens.reserved",
                28..32,
                "the reserved bytes of the header are not 0",
            )?;
        }
        let mut dimensions = Vec::new();
        for _ in 0..r.count(header.order.into(), Dimension::LEN, "order")? {
            let at = r.pos();
            let dimension = Dimension::parse(r)?;
            if !is_09 && (dimension.flags & !SP != 0 || dimension.zero != 0) {
                let message = "a dimension has unknown flags, or reserved bytes that are not 0";
                cx.warn("tens.reserved", at + 4..at + 8, message)?;
            }
            dimensions.push(dimension);
        }
        let shape: Vec<u64> = dimensions.iter().map(|dim| dim.length.into()).collect();
        let width = header.dtype.width().unwrap_or(1) as u64;
        let elements = if shape.contains(&0) {
            Some(0)
        } else {
            shape.iter().copied().try_fold(1, u64::checked_mul)
        };
        let bytes = elements.and_then(|elements| elements.checked_mul(width));
        let (Some(elements), Some(..0x8000_0000_0000_0000)) = (elements, bytes) else {
            let message = "the lengths multiply to 2^63 bytes or more";
            return Err(Error::malformed("tens.overflow", message).at(Header::LEN..r.pos()));
        };
        Ok(Self {
            names: dimensions.iter().map(|dim| dim.index_name).collect(),
            header,
            dimensions,
            shape,
            elements,
            width,
        })
    }

    /// Version 0.9: the elements, and nothing else.
    fn describe_09(self, cx: &mut Context<'_>, r: &Reader<'_>) -> Result<Manifest> {
        let at = r.pos();
        let len = self.elements * self.width;
        let left = r.remaining();
        if left != len {
            let rule = if left < len {
                TRUNCATED
            } else {
                "tens.trailing"
            };
            let message = format!(
                "{left} bytes follow the dimensions, their {} elements have {len}",
                self.elements
            );
            return Err(Error::malformed(rule, message).at(at..at + left));
        }
        let mut manifest = Manifest::new(V09);
        manifest.region(0..at, "header");
        let mut tensor = self.tensor(cx, Layout::ColumnMajor, at..at + len);
        tensor.metadata = self.metadata("dense");
        manifest.tensors.push(tensor);
        Ok(manifest)
    }

    fn describe_10(self, cx: &mut Context<'_>, r: &mut Reader<'_>) -> Result<Manifest> {
        let minor = self.header.version & 0xffff;
        let mut manifest = Manifest::new(format!("1.{minor}"));
        let is_table = self.header.flags & IX != 0;
        let mut claims = Vec::new();
        let mut unknown = Packer::list();
        let data = loop {
            if is_table && let Some(count) = self.pair_count(r)? {
                break Data::Pairs(count);
            }
            let chunk = Chunk::parse(r)?;
            if chunk.magic == *DENSDATA {
                break Data::Dense(chunk);
            }
            if chunk.total - Chunk::LEN > r.remaining() {
                return Err(chunk.refuse(&past_end(&chunk, r)));
            }
            let end = chunk.at + chunk.total;
            if chunk.magic == *SYMMETRY {
                claims.push((self.claim(r, &chunk)?, chunk.at..end));
                check_padding(cx, r, end)?;
            } else {
                unknown.str(&chunk.name());
                let range = chunk.at..end;
                let kept = Kept::new(SPEC.id, chunk.name(), SourceId::MAIN, range);
                manifest.kept.push(kept);
            }
            r.skip_to(end, "chunk")?;
        };
        let packing = self.packing(&claims)?;
        let mut tensor = match data {
            Data::Pairs(count) => self.pairs(cx, r, count, packing)?,
            Data::Dense(chunk) if !is_table => self.dense(cx, r, &chunk, packing, &claims)?,
            Data::Dense(chunk) => {
                return Err(
                    chunk.refuse("in a file whose flags say that indices and values follow")
                );
            }
        };
        let start = tensor.parts.first().and_then(|part| part.payload.stored());
        let (data, end) = start.map_or((r.pos(), r.pos()), |(_, range)| (range.start, range.end));
        manifest.region(0..data, "header");
        manifest.region(end..r.pos(), "padding");
        tensor.metadata = self.metadata(if is_table { "index-value" } else { "dense" });
        self.describe_symmetries(&mut tensor, &claims)?;
        let unknown = unknown.into_list();
        if !unknown.is_empty() {
            tensor.metadata.push("unknown_chunks", Value::List(unknown));
        }
        manifest.tensors.push(tensor);
        Ok(manifest)
    }

    /// The number of pairs, if a table of them begins here and not a chunk.
    fn pair_count(&self, r: &mut Reader<'_>) -> Result<Option<u64>> {
        let at = r.pos();
        let mut ahead = r.clone();
        let count = ahead.u64("number of pairs")?;
        if count <= ahead.remaining() / (8 + self.width) {
            *r = ahead;
            return Ok(Some(count));
        }
        let is_text = |byte: &u8| (0x20..=0x7e).contains(byte);
        if count.to_le_bytes().iter().all(is_text) {
            return Ok(None);
        }
        let message = format!(
            "{count} pairs of {} bytes are announced, {} bytes follow",
            8 + self.width,
            ahead.remaining()
        );
        Err(Error::malformed("tens.pairs", message).at(at..at + 8))
    }

    fn claim(&self, r: &mut Reader<'_>, chunk: &Chunk) -> Result<Claim> {
        let body = SymmetryBody::parse(r, chunk, self.header.order)?;
        let refuse = |message: String| {
            Err(Error::malformed("tens.symmetry", message).at(chunk.at..chunk.at + chunk.total))
        };
        if body.flags & !PK != 0 {
            return refuse(format!(
                "symmetry flags {:#x}, of which 1 is known",
                body.flags
            ));
        }
        let mut sorted = self.names.clone();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair.first() == pair.last()) {
            return refuse(
                "two indices have the same name, so a map of them has no meaning".into(),
            );
        }
        let claim = Claim {
            code: body.code,
            map: body.map,
            packed: body.flags & PK != 0,
        };
        match claim.symmetry(&self.names, &self.shape) {
            Ok(_) => Ok(claim),
            Err(why) => refuse(why),
        }
    }

    /// The symmetries that the data is packed by.
    fn packing(&self, claims: &[(Claim, Range<u64>)]) -> Result<Vec<Symmetry>> {
        let mut packing = Vec::new();
        for (claim, range) in claims.iter().filter(|(claim, _)| claim.packed) {
            let refuse =
                |message: String| Err(Error::unsupported("tens.packed", message).at(range.clone()));
            let symmetry = claim.symmetry(&self.names, &self.shape);
            let Ok(Some(symmetry)) = symmetry else {
                let code = to_text(&claim.code);
                return refuse(format!("packed by the unknown operation {code:?}"));
            };
            if symmetry.is_identity() {
                return refuse("packed by a permutation that moves nothing".into());
            }
            if !meta::can_apply(symmetry.operation, self.header.dtype) {
                return refuse(format!(
                    "packed by {}, but {} has no negative numbers",
                    symmetry.operation, self.header.dtype
                ));
            }
            packing.push(symmetry);
        }
        Ok(packing)
    }

    fn dense(
        &self,
        cx: &mut Context<'_>,
        r: &mut Reader<'_>,
        chunk: &Chunk,
        packing: Vec<Symmetry>,
        claims: &[(Claim, Range<u64>)],
    ) -> Result<TensorInfo> {
        let (layout, stored) = match packing.as_slice() {
            [] => (Layout::ColumnMajor, self.elements),
            [symmetry] if symmetry.transposition().is_some() => {
                let stored = Triangle::new(&self.shape, symmetry)?.stored();
                (Layout::Packed(Box::new(symmetry.clone())), stored)
            }
            _ => {
                let at = claims.iter().rev().find(|(claim, _)| claim.packed);
                let message = "a sequence can be packed by one exchange of two indices only; \
                               anything else needs indices and values";
                let error = Error::unsupported("tens.packed", message);
                return Err(error.at(at.map_or(0..0, |(_, range)| range.clone())));
            }
        };
        let len = stored * self.width;
        let expected = (Chunk::LEN + len).next_multiple_of(8);
        let fits = chunk.total - Chunk::LEN <= r.remaining();
        if chunk.total != expected {
            if !fits {
                return Err(chunk.refuse(&past_end(chunk, r)));
            }
            let message = format!(
                "DENSDATA has {} bytes; {stored} elements of {} make {expected}",
                chunk.total, self.width
            );
            return Err(Error::malformed("tens.length", message).at(chunk.at + 8..chunk.at + 16));
        }
        if !fits {
            let message = format!(
                "the data has {expected} bytes, {} are left: the file is cut off",
                r.remaining() + Chunk::LEN
            );
            return Err(Error::malformed(TRUNCATED, message).at(chunk.at..r.pos() + r.remaining()));
        }
        let at = r.pos();
        r.skip(len, "data")?;
        check_padding(cx, r, chunk.at + chunk.total)?;
        if r.remaining() > 0 {
            let message = format!(
                "{} bytes after the data, which should end the file",
                r.remaining()
            );
            let error = Error::malformed("tens.trailing", message);
            return Err(error.at(r.pos()..r.pos() + r.remaining()));
        }
        Ok(self.tensor(cx, layout, at..at + len))
    }

    fn pairs(
        &self,
        cx: &Context<'_>,
        r: &mut Reader<'_>,
        count: u64,
        orbits: Vec<Symmetry>,
    ) -> Result<TensorInfo> {
        let range = r.skip(count * (8 + self.width), "pairs")?;
        let (at, left) = (r.pos(), r.remaining());
        let padded = left < 8 && r.take(left, "padding")?.iter().all(|&byte| byte == 0);
        if !padded {
            let message =
                format!("{left} bytes after the last pair; at most 7, all of them 0, are allowed");
            return Err(Error::malformed("tens.trailing", message).at(at..at + left));
        }
        let mut pairs = Pairs::new(count, PairIndex::ColumnMajor);
        pairs.orbits = orbits;
        Ok(self.tensor(cx, pairs.into(), range))
    }

    fn tensor(&self, cx: &Context<'_>, layout: Layout, range: Range<u64>) -> TensorInfo {
        let dtype = self.header.dtype;
        let mut tensor = TensorInfo::new(cx.tensor_name(), dtype, self.shape.clone(), layout);
        tensor.set_unnamed(true);
        let has_names = self.names != meta::default_names(self.names.len());
        tensor.set_derived(if has_names {
            meta::FACTS
        } else {
            meta::FACTS_AND_NAMES
        });
        let mut part = Part::new(Role::Values, dtype, Payload::main(range));
        part.endian = self.header.endian;
        tensor.parts.push(part);
        tensor
    }

    fn metadata(&self, storage: &str) -> Metadata {
        let mut metadata = Metadata::new();
        metadata.push(INDEX_NAMES, Value::Str(to_text(&self.names)));
        metadata.push("storage", Value::Str(storage.into()));
        metadata.push("number_type", Value::Str(self.header.number_type().into()));
        if let DType::Number(_, lanes) = self.header.dtype
            && lanes != Lanes::Real
        {
            metadata.push("numbers_per_element", Value::U32(lanes.count()));
        }
        let is_sparse = |(_, dim): &(u64, &Dimension)| dim.flags & SP != 0;
        let sparse = (0..).zip(&self.dimensions).filter(is_sparse);
        let sparse: Vec<_> = sparse.map(|(place, _)| Value::U64(place)).collect();
        if !sparse.is_empty() && self.header.version != VERSION_09 {
            metadata.push(SPARSE_DIMENSIONS, Value::List(sparse.into()));
        }
        metadata
    }

    /// What the file says of symmetries, and those of them that can be checked.
    fn describe_symmetries(
        &self,
        tensor: &mut TensorInfo,
        claims: &[(Claim, Range<u64>)],
    ) -> Result<()> {
        if claims.is_empty() {
            return Ok(());
        }
        let values = claims.iter().map(|(claim, _)| claim.to_value()).collect();
        tensor.metadata.push(SYMMETRIES, Value::List(values));
        for (claim, _) in claims.iter().filter(|(claim, _)| !claim.packed) {
            let symmetry = claim.symmetry(&self.names, &self.shape).ok().flatten();
            let can_apply = |symmetry: &Symmetry| meta::can_apply(symmetry.operation, tensor.dtype);
            if let Some(symmetry) = symmetry.filter(can_apply) {
                tensor.add_symmetry(symmetry);
            }
        }
        Ok(())
    }
}

enum Data {
    Dense(Chunk),
    Pairs(u64),
}

/// Goes on to the end of a chunk. What fills it up should be 0, and is not looked at otherwise.
fn check_padding(cx: &mut Context<'_>, r: &mut Reader<'_>, end: u64) -> Result<()> {
    let at = r.pos();
    let padding = r.take(end.saturating_sub(at), "padding")?;
    if padding.iter().all(|&byte| byte == 0) {
        Ok(())
    } else {
        let message = format!("padding that should be 0 is {}", Hex(&padding));
        cx.warn("tens.padding", at..end, message)
    }
}

fn past_end(chunk: &Chunk, r: &Reader<'_>) -> String {
    let left = r.remaining() + Chunk::LEN;
    format!(
        "has {} bytes, {left} are left: it goes on past the end of the file",
        chunk.total
    )
}
