//! The objects as they are in the file, `parse` and `encode` side by side.

use super::values::{DataType, MAX_DEPTH};
use crate::error::{Error, Result};
use crate::io::{Limits, Source};
use crate::model::{Map, Packer, Value as Setting};
use crate::prelude::*;
use crate::wire::msgpack::{Decoder, Encoder, Rules};

pub(super) const TRUNCATED: &str = "primitiv.truncated";

const RULES: Rules = Rules {
    truncated: TRUNCATED,
    kind: "primitiv.type",
    utf8: "primitiv.utf8",
};

/// Reads the objects of a file one after the other.
pub(super) struct Parser<'a> {
    decoder: Decoder<'a>,
    limits: &'a Limits,
    /// Bytes of tensor data that were passed over.
    data: u64,
}

impl<'a> Parser<'a> {
    pub(super) fn new(source: &'a dyn Source, limits: &'a Limits) -> Self {
        Self {
            decoder: Decoder::new(source, RULES),
            limits,
            data: 0,
        }
    }

    pub(super) fn pos(&self) -> u64 {
        self.decoder.pos()
    }

    /// Refuses bytes after the last object.
    pub(super) fn end(&self) -> Result<()> {
        match self.decoder.remaining() {
            0 => Ok(()),
            n => {
                let bytes = if n == 1 {
                    "byte follows"
                } else {
                    "bytes follow"
                };
                let message =
                    format!("{n} {bytes} after the object: a wrong count, or a damaged file");
                Err(Error::malformed("primitiv.trailing", message).at(self.pos()..self.pos() + n))
            }
        }
    }

    /// A count of objects that follow. Nothing is allocated by it: they are counted as they are read.
    pub(super) fn count(&mut self, field: &'static str) -> Result<u32> {
        self.decoder.u32(field)
    }

    fn text(&mut self, field: &'static str) -> Result<String> {
        let limit = self.left()?;
        self.decoder.text(limit, field)
    }

    /// Bytes of headers that may still be read.
    fn left(&self) -> Result<u64> {
        let limit = self.limits.header_bytes;
        let read = self.pos().saturating_sub(self.data);
        limit.checked_sub(read).ok_or_else(|| {
            let message =
                format!("names and sizes take more than {limit} bytes, the limit for headers");
            let error = Error::limit("primitiv.limit", message).at(self.pos()..self.pos() + 1);
            error.raised_by("header_bytes", None)
        })
    }
}

/// Version and data type, with which every file begins.
pub(super) struct Header;

impl Header {
    pub(super) fn parse(p: &mut Parser<'_>) -> Result<DataType> {
        let remark = "; a primitiv file begins with three of them and nothing around them";
        let ver_major = p.decoder.u32_or("ver_major", remark)?;
        let ver_minor = p.decoder.u32_or("ver_minor", remark)?;
        if (ver_major, ver_minor) != (0, 1) {
            let message = format!("version {ver_major}.{ver_minor}, only 0.1 exists");
            return Err(Error::malformed("primitiv.version", message).at(0..p.pos()));
        }
        let at = p.pos();
        let data_type = p.decoder.u32_or("data_type", remark)?;
        DataType::from_code(data_type).ok_or_else(|| {
            let message =
                format!("data type {data_type:#x}, known are 0x0, 0x100, 0x200, 0x300 and 0x400");
            Error::malformed("primitiv.data-type", message).at(at..p.pos())
        })
    }

    pub(super) fn encode(data_type: DataType, e: &mut Encoder) {
        e.u32(0).u32(1).u32(data_type.code());
    }
}

/// Dimensions and batch, none of them 0.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Shape {
    pub(super) dims: Vec<u32>,
    pub(super) batch: u32,
}

impl Shape {
    pub(super) fn parse(p: &mut Parser<'_>) -> Result<Self> {
        let at = p.pos();
        p.left()?;
        let depth = p.decoder.array("dims")?;
        if usize::try_from(depth).is_ok_and(|depth| depth > MAX_DEPTH) {
            let message = format!("{depth} dimensions, at most {MAX_DEPTH} are possible");
            return Err(Error::malformed("primitiv.rank", message).at(at..p.pos()));
        }
        let mut dims = Vec::new();
        for _ in 0..depth {
            dims.push(p.decoder.u32("a dimension")?);
        }
        let batch = p.decoder.u32("batch")?;
        if batch == 0 || dims.contains(&0) {
            let message = format!("shape {dims:?} with batch {batch}: a size of 0 is not allowed");
            return Err(Error::malformed("primitiv.zero", message).at(at..p.pos()));
        }
        Ok(Self { dims, batch })
    }

    pub(super) fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.array(self.dims.len())?;
        for &dim in &self.dims {
            e.u32(dim);
        }
        e.u32(self.batch);
        Ok(())
    }

    /// All elements; `None` when they are more than 64 bits can count.
    fn elements(&self) -> Option<u64> {
        let dims = self.dims.iter().map(|&dim| u64::from(dim));
        dims.chain([u64::from(self.batch)])
            .try_fold(1u64, |product, dim| product.checked_mul(dim))
    }
}

/// A shape, and where the data of that shape is.
pub(super) struct Tensor {
    pub(super) shape: Shape,
    pub(super) data: Range<u64>,
}

impl Tensor {
    pub(super) fn parse(p: &mut Parser<'_>) -> Result<Self> {
        let at = p.pos();
        let shape = Shape::parse(p)?;
        let len = p.decoder.bin("data")?;
        let expected = shape
            .elements()
            .and_then(|elements| elements.checked_mul(4));
        if expected != Some(len.into()) {
            let expected =
                expected.map_or("more than 64 bits can count".to_owned(), |n| n.to_string());
            let Shape { dims, batch } = &shape;
            let message =
                format!("{len} bytes of data, shape {dims:?} with batch {batch} takes {expected}");
            return Err(Error::malformed("primitiv.size", message).at(at..p.pos()));
        }
        let data = p.decoder.skip(len, "data")?;
        p.data += u64::from(len);
        Ok(Self { shape, data })
    }

    /// Everything but the data, which comes right after it.
    pub(super) fn encode(shape: &Shape, e: &mut Encoder) -> Result<()> {
        shape.encode(e)?;
        let len = shape
            .elements()
            .and_then(|elements| elements.checked_mul(4));
        e.bin(len.unwrap_or(u64::MAX)).map(drop)
    }
}

/// The value of a Parameter, whose statistics follow.
pub(super) struct Value;

impl Value {
    /// The value, and how many statistics follow.
    pub(super) fn parse(p: &mut Parser<'_>) -> Result<(Tensor, u32)> {
        let at = p.pos();
        let value = Tensor::parse(p)?;
        if value.shape.batch != 1 {
            let message = format!(
                "the value of a parameter has batch {}, expected 1",
                value.shape.batch
            );
            return Err(Error::malformed("primitiv.batch", message).at(at..p.pos()));
        }
        let stats = p.count("the number of statistics")?;
        Ok((value, stats))
    }
}

/// The name of a statistic, whose tensor follows.
pub(super) fn parse_stat_name(p: &mut Parser<'_>) -> Result<String> {
    p.text("the name of a statistic")
}

/// The key of a parameter in a Model.
pub(super) struct Key;

impl Key {
    pub(super) fn parse(p: &mut Parser<'_>) -> Result<Vec<String>> {
        let at = p.pos();
        let len = p.decoder.array("the key of a parameter")?;
        if len == 0 {
            let message = "the key of a parameter has no parts, expected at least one";
            return Err(Error::malformed("primitiv.key", message).at(at..p.pos()));
        }
        let mut key = Vec::new();
        for _ in 0..len {
            // A part is a level of models in models: a key of millions of empty ones would take many times its bytes.
            if key.len() == p.limits.depth {
                let message = format!(
                    "the key of a parameter has {len} parts, the limit (depth) is {}",
                    key.len()
                );
                let error = Error::limit("primitiv.limit", message).at(at..p.pos());
                return Err(error.raised_by("depth", u64::from(len)));
            }
            key.push(p.text("a part of a key")?);
        }
        Ok(key)
    }

    pub(super) fn encode(key: &[String], e: &mut Encoder) -> Result<()> {
        e.array(key.len())?;
        key.iter().try_for_each(|part| e.text(part).map(drop))
    }
}

/// The settings of an Optimizer: a map of whole and one of floating-point numbers, each as it is ordered in the file.
pub(super) struct Configs {
    pub(super) uint_configs: Map,
    pub(super) float_configs: Map,
}

impl Configs {
    pub(super) fn parse(p: &mut Parser<'_>) -> Result<Self> {
        Ok(Self {
            uint_configs: parse_map(p, "uint_configs", |p| {
                p.decoder.u32("a value of uint_configs").map(Setting::U32)
            })?,
            float_configs: parse_map(p, "float_configs", |p| {
                p.decoder.f32("a value of float_configs").map(Setting::F32)
            })?,
        })
    }

    pub(super) fn encode(
        uints: &[(&str, u32)],
        floats: &[(&str, f32)],
        e: &mut Encoder,
    ) -> Result<()> {
        e.map(uints.len())?;
        for &(name, value) in uints {
            e.text(name)?.u32(value);
        }
        e.map(floats.len())?;
        for &(name, value) in floats {
            e.text(name)?.f32(value);
        }
        Ok(())
    }
}

fn parse_map(
    p: &mut Parser<'_>,
    field: &'static str,
    mut value: impl FnMut(&mut Parser<'_>) -> Result<Setting>,
) -> Result<Map> {
    let mut entries = Packer::map();
    let mut places = Vec::new();
    for _ in 0..p.decoder.map(field)? {
        places.push(p.pos());
        entries.key(&p.text("the name of a setting")?);
        entries.value(&value(p)?);
    }
    entries.last_wins(&mut |name, place| {
        let at = places.get(place).copied().unwrap_or_default();
        let message = format!("the setting {name:?} appears twice in {field}");
        Err(Error::malformed("primitiv.duplicate", message).at(at..at + 1))
    })?;
    Ok(entries.into_map())
}
