//! What chunks went through: the codecs of version 3, the compressors of version 2.

use super::json;
use crate::error::{Error, Result};
use crate::model::{Endian, Filter, List, Map, Value};
use crate::prelude::*;

/// How the elements of a chunk became bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Pipeline {
    /// Shards, each in those before it; none, where a file is one chunk.
    pub(super) shards: Vec<Shard>,
    /// Sides of what is stored by itself, along the dimensions of the tensor.
    pub(super) sides: Vec<u64>,
    /// Which dimension of the tensor each of a stored chunk is.
    pub(super) axes: Vec<usize>,
    /// Which byte comes first; `None` where nothing says it.
    pub(super) endian: Option<Endian>,
    /// What is done to the bytes.
    pub(super) filters: Vec<Filter>,
}

/// Chunks in one file, with an index of them.
#[derive(Clone, Debug)]
pub(super) struct Shard {
    /// Elements of a shard along the dimensions of the tensor.
    pub(super) sides: Vec<u64>,
    /// How many chunks there are in it along each of its dimensions as they are stored, and which of the tensor's each is.
    pub(super) counts: Vec<u64>,
    pub(super) axes: Vec<usize>,
    pub(super) index_at_end: bool,
    pub(super) index_endian: Endian,
    /// A CRC-32C follows the index.
    pub(super) index_has_checksum: bool,
    /// What is done to all of it.
    pub(super) behind: Vec<Filter>,
}

/// Shards in shards.
const DEEPEST: usize = 8;
/// Codecs behind each other: as many as a chunk can say that it skipped.
const MOST: usize = 32;

impl Pipeline {
    /// The codecs of version 3, for chunks with these sides.
    pub(super) fn v3(codecs: &List, sides: Vec<u64>) -> Result<Self> {
        let mut pipeline = Self {
            axes: (0..sides.len()).collect(),
            sides,
            ..Self::default()
        };
        pipeline.enter(codecs)?;
        Ok(pipeline)
    }

    /// Reads a list of codecs: those of arrays, one that makes bytes, those of bytes.
    fn enter(&mut self, codecs: &List) -> Result<()> {
        let mut shard: Option<(Shard, List)> = None;
        let mut has_bytes = false;
        let mut filters = Vec::new();
        if codecs.len() > MOST {
            let message = format!("{} codecs, {MOST} are read at most", codecs.len());
            return Err(Error::limit("zarr.codec", message));
        }
        for codec in codecs.iter() {
            let (name, configuration) = json::named(&codec, "a codec")?;
            let is_array = !has_bytes && shard.is_none();
            match name.as_str() {
                "transpose" if is_array => self.transpose(&configuration)?,
                "bytes" if is_array => {
                    self.endian = endian(&configuration)?;
                    has_bytes = true;
                }
                "sharding_indexed" if is_array => shard = Some(self.shard(&configuration)?),
                "transpose" | "bytes" | "sharding_indexed" => {
                    let message = format!("the codec {name:?} behind one that makes bytes");
                    return Err(Error::malformed("zarr.codec", message));
                }
                _ => {
                    let filter = filter(&name, &configuration)?;
                    if is_array {
                        let message =
                            format!("the codec {name:?} before one that makes bytes of an array");
                        return Err(Error::malformed("zarr.codec", message));
                    }
                    filters.push(filter);
                }
            }
        }
        match shard {
            Some((mut shard, inner)) => {
                shard.behind = filters;
                self.shards.push(shard);
                if self.shards.len() > DEEPEST {
                    let message = format!("shards in more than {DEEPEST} shards");
                    return Err(Error::limit("zarr.shard", message));
                }
                self.enter(&inner)
            }
            None if has_bytes => {
                self.filters = filters;
                Ok(())
            }
            None => {
                let message = "no codec makes bytes of the elements";
                Err(Error::malformed("zarr.codec", message))
            }
        }
    }

    /// Dimensions in another order.
    fn transpose(&mut self, configuration: &Map) -> Result<()> {
        let order = json::member(configuration, "order")?;
        let rank = self.axes.len();
        let refused = || {
            let message = format!(
                "the codec transpose has the order {}, which is none of {rank} dimensions",
                order.in_words()
            );
            Error::malformed("zarr.transpose", message)
        };
        let places: Vec<usize> = match &order {
            Value::List(list) => {
                let places = list
                    .iter()
                    .map(|place| usize::try_from(place.as_u64()?).ok());
                places.collect::<Option<_>>().ok_or_else(refused)?
            }
            Value::Empty(_) => Vec::new(),
            _ => return Err(refused()),
        };
        let is_whole = places.len() == rank && (0..rank).all(|axis| places.contains(&axis));
        if !is_whole {
            return Err(refused());
        }
        let axes = places.iter().filter_map(|place| self.axes.get(*place));
        self.axes = axes.copied().collect();
        Ok(())
    }

    fn shard(&mut self, configuration: &Map) -> Result<(Shard, List)> {
        let inner = json::sizes(configuration, "chunk_shape", 1)?;
        let rank = self.axes.len();
        let refused = |outer: &[u64]| {
            let message = format!("chunks of {inner:?} do not fill a shard of {outer:?}");
            Error::malformed("zarr.shard", message)
        };
        if inner.len() != rank {
            return Err(refused(&self.sides));
        }
        let outer = self.sides.clone();
        let mut counts = Vec::new();
        for (axis, inner) in self.axes.iter().zip(&inner) {
            let side = self.sides.get_mut(*axis).ok_or_else(|| refused(&outer))?;
            if !side.is_multiple_of(*inner) {
                return Err(refused(&outer));
            }
            counts.push(*side / inner);
            *side = *inner;
        }
        let count = counts.iter().copied().try_fold(16, u64::checked_mul);
        if count.is_none_or(|bytes| bytes > u64::from(u32::MAX)) {
            let message = format!("a shard of {counts:?} chunks, whose index is too long");
            return Err(Error::limit("zarr.shard", message));
        }
        let (mut index_endian, mut index_has_checksum) = (None, false);
        for codec in json::list(configuration, "index_codecs")?.iter() {
            let (name, configuration) = json::named(&codec, "a codec")?;
            match name.as_str() {
                "bytes" if index_endian.is_none() => {
                    index_endian = Some(endian(&configuration)?.unwrap_or_default());
                }
                "crc32c" if index_endian.is_some() && !index_has_checksum => {
                    index_has_checksum = true;
                }
                _ => {
                    let message = format!(
                        "an index of chunks went through {name:?}; bytes and crc32c are read"
                    );
                    return Err(Error::unsupported("zarr.codec", message));
                }
            }
        }
        let index_at_end = match configuration.get("index_location") {
            None => true,
            Some(place) => match place.as_str() {
                Some("end") => true,
                Some("start") => false,
                _ => return Err(json::wrong("index_location", "start or end", &place)),
            },
        };
        let Some(index_endian) = index_endian else {
            let message = "no codec makes bytes of an index of chunks";
            return Err(Error::malformed("zarr.codec", message));
        };
        let shard = Shard {
            sides: outer,
            counts,
            axes: self.axes.clone(),
            index_at_end,
            index_endian,
            index_has_checksum,
            behind: Vec::new(),
        };
        Ok((shard, json::list(configuration, "codecs")?))
    }
}

impl Shard {
    /// Chunks in it.
    pub(super) fn count(&self) -> u64 {
        self.counts.iter().product()
    }

    /// Bytes of its index.
    pub(super) fn index_len(&self) -> u64 {
        let sum = if self.index_has_checksum { 4 } else { 0 };
        self.count().saturating_mul(16).saturating_add(sum)
    }
}

/// Which byte comes first.
fn endian(configuration: &Map) -> Result<Option<Endian>> {
    match configuration.get("endian") {
        None => Ok(None),
        Some(endian) => match endian.as_str() {
            Some("little") => Ok(Some(Endian::Little)),
            Some("big") => Ok(Some(Endian::Big)),
            _ => Err(json::wrong("endian", "little or big", &endian)),
        },
    }
}

/// A codec of bytes.
fn filter(name: &str, configuration: &Map) -> Result<Filter> {
    let level = || configuration.get("level").and_then(|level| level.as_i64());
    let level = |usual| {
        level()
            .and_then(|level| i32::try_from(level).ok())
            .unwrap_or(usual)
    };
    Ok(match name {
        "blosc" => Filter::Blosc,
        "crc32c" => Filter::Crc32c,
        "gzip" => Filter::Gzip,
        "zstd" => Filter::Zstd { level: level(3) },
        "numcodecs.zlib" => Filter::Deflate { level: level(6) },
        "numcodecs.shuffle" => {
            let width = configuration.get("elementsize");
            let width = width.map_or(Some(4), |width| width.as_u64());
            let width = width.and_then(|width| u32::try_from(width).ok());
            match width.filter(|width| *width > 0) {
                Some(width) => Filter::Shuffle { width },
                None => {
                    let message = "the codec numcodecs.shuffle without a whole elementsize";
                    return Err(Error::malformed("zarr.codec", message));
                }
            }
        }
        name => return Err(unknown("codec", name)),
    })
}

/// The `compressor` of version 2.
pub(super) fn compressor(compressor: &Value) -> Result<Option<Filter>> {
    let map = match compressor {
        Value::Null => return Ok(None),
        Value::Map(map) => map,
        other => return Err(json::wrong("compressor", "an object or null", other)),
    };
    let id = json::text(map, "id")?;
    let level = map.get("level").and_then(|level| level.as_i64());
    let level = level.and_then(|level| i32::try_from(level).ok());
    Ok(Some(match id.as_str() {
        "blosc" => Filter::Blosc,
        "gzip" => Filter::Gzip,
        "lz4" => Filter::Lz4,
        "zlib" => Filter::Deflate {
            level: level.unwrap_or(1),
        },
        "zstd" => Filter::Zstd {
            level: level.unwrap_or(1),
        },
        other => return Err(unknown("compressor", other)),
    }))
}

/// The `filters` of version 2: none are read.
pub(super) fn no_filters(filters: &Value) -> Result<()> {
    let list = match filters {
        Value::Null | Value::Empty(_) => return Ok(()),
        Value::List(list) => list,
        other => return Err(json::wrong("filters", "a list or null", other)),
    };
    match list.first() {
        None => Ok(()),
        Some(Value::Map(map)) => Err(unknown("filter", &json::text(&map, "id")?)),
        Some(other) => Err(json::wrong("a filter", "an object", &other)),
    }
}

fn unknown(what: &str, name: &str) -> Error {
    let message = format!("chunks went through the {what} {name:?}, which is not read");
    Error::unsupported("zarr.codec", message)
}
