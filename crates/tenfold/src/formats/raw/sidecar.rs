//! The file beside a dump.

use super::{SPEC, VERSION};
use crate::error::{Error, Result};
use crate::io::{Limits, Source};
use crate::model::{DType, Endian, Metadata, Order, Packer, Shape};
use crate::prelude::*;
use crate::wire::json::{Json, Rules};

const RULES: Rules = Rules {
    syntax: "raw.json",
    text: "raw.utf8",
    depth: "raw.depth",
};
const MOST_DEPTH: usize = 64;
/// The key that says what the file is, and how it is written.
const MARKED: &str = "tenfold_raw";
const KEY: &[u8] = b"\"tenfold_raw\"";
/// Bytes that are looked at first: a dump may be long, and begin with any byte.
const BEGIN: u64 = 256;
/// A list of millions of arrays.
const MOST_LEN: u64 = 256 << 20;

/// An array of a dump.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub(super) name: String,
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    pub(super) order: Order,
    pub(super) endian: Endian,
    pub(super) offset: u64,
}

/// What the file says.
#[derive(Debug, Default)]
pub(super) struct Sidecar {
    pub(super) arrays: Vec<Array>,
    pub(super) metadata: Metadata,
}

/// Whether text begins as such a file does: with the key that says what it is, wherever white space is.
pub(super) fn begins(text: &[u8]) -> bool {
    let inner = text.trim_ascii_start().strip_prefix(b"{");
    inner.is_some_and(|inner| inner.trim_ascii_start().starts_with(KEY))
}

impl Sidecar {
    /// Whether a file is one: a JSON object with the key that says so, at any place. Programs that write JSON anew sort keys.
    pub(super) fn is_one(source: &dyn Source, limits: &Limits) -> Result<bool> {
        let len = source.len();
        let begin = source.read(0..len.min(BEGIN))?;
        if begins(&begin) {
            return Ok(true);
        }
        if !begin.trim_ascii_start().starts_with(b"{") || len > limits.header_bytes.min(MOST_LEN) {
            return Ok(false);
        }
        // What is no JSON is none, and may be a dump all the same.
        let text = source.read(0..len)?;
        let has_key = || -> Result<bool> {
            let mut json = Json::new(&text, 0, MOST_DEPTH, &RULES)?;
            json.object("the file beside a dump")?;
            while let Some(key) = json.key()? {
                if key == MARKED {
                    return Ok(true);
                }
                json.skip()?;
            }
            Ok(false)
        };
        Ok(has_key().unwrap_or(false))
    }

    pub(super) fn read(source: &dyn Source, limits: &Limits) -> Result<Self> {
        let len = source.len();
        let limit = limits.header_bytes.min(MOST_LEN);
        if len > limit {
            let message = format!("the file beside the dump has {len} bytes, the limit is {limit}");
            let error = Error::limit("raw.limit", message).at(0..len);
            return Err(error.raised_by("header_bytes", len));
        }
        let text = source.read(0..len)?;
        let mut json = Json::new(&text, 0, MOST_DEPTH, &RULES)?;
        let mut sidecar = Self::default();
        let mut version = None;
        json.object("the file beside a dump")?;
        while let Some(key) = json.key()? {
            let at = json.key_at();
            match &*key {
                MARKED if version.is_none() => version = Some(json.unsigned("the version")?),
                "arrays" if sidecar.arrays.is_empty() => {
                    json.list("the arrays")?;
                    while json.item()? {
                        let array = array(&mut json, limits)?;
                        push_tight(&mut sidecar.arrays, array);
                    }
                }
                "metadata" if sidecar.metadata.is_empty() => {
                    sidecar.metadata = metadata(&mut json)?;
                }
                key => return Err(unknown(key, at)),
            }
        }
        json.end()?;
        match version {
            Some(1) => {}
            Some(other) => {
                let message = format!("version {other} of {} files, {VERSION} is known", SPEC.name);
                return Err(Error::unsupported("raw.version", message).at(0..len));
            }
            None => {
                let message = "it does not say \"tenfold_raw\", and so says nothing of a dump";
                return Err(Error::malformed("raw.version", message).at(0..len));
            }
        }
        let names = sidecar.arrays.iter().map(|array| array.name.as_str());
        if let Some((_, name)) = crate::model::repeated(names) {
            let message = format!("two arrays are called {}", crate::model::brief(name));
            return Err(Error::malformed("raw.duplicate", message).at(0..len));
        }
        Ok(sidecar)
    }
}

fn unknown(key: &str, at: u64) -> Error {
    let message = format!(
        "a key {} that is there twice, or that is not known",
        crate::model::brief(key)
    );
    Error::malformed("raw.key", message).at(at..at + 1)
}

fn metadata(json: &mut Json<'_>) -> Result<Metadata> {
    let mut again = |key: &str, at: u64| Err(unknown(key, at));
    let mut packer = Packer::map();
    let mut places = Vec::new();
    json.object("metadata")?;
    while let Some(key) = json.key()? {
        places.push(json.key_at());
        packer.key(&key);
        json.pack(&mut packer, &mut again)?;
    }
    packer
        .last_wins(&mut |key, place| again(key, places.get(place).copied().unwrap_or_default()))?;
    Ok(Metadata::from(&packer.into_map()))
}

fn array(json: &mut Json<'_>, limits: &Limits) -> Result<Array> {
    let from = json.at();
    let (mut name, mut dtype, mut shape) = (None, None, None);
    let (mut order, mut endian, mut offset) = (None, None, None);
    json.object("an array")?;
    while let Some(key) = json.key()? {
        let at = json.key_at();
        match &*key {
            "name" if name.is_none() => name = Some(json.string("a name")?.into_owned()),
            "dtype" if dtype.is_none() => {
                let spelled = json.string("a dtype")?;
                dtype = Some(number(&spelled).map_err(|error| error.at(at..at + 1))?);
            }
            "shape" if shape.is_none() => {
                let mut dims = Vec::new();
                json.list("a shape")?;
                while json.item()? {
                    dims.push(json.unsigned("a dimension")?);
                    if dims.len() > limits.rank {
                        let message = format!("more dimensions than the limit of {}", limits.rank);
                        let error = Error::limit("raw.rank", message).at(at..at + 1);
                        return Err(error.raised_by("rank", None));
                    }
                }
                shape = Some(Shape::from(dims.as_slice()));
            }
            "order" if order.is_none() => {
                let spelled = json.string("an order")?;
                order = Some(self::order(&spelled).map_err(|error| error.at(at..at + 1))?);
            }
            "endian" if endian.is_none() => {
                let spelled = json.string("a byte order")?;
                endian = Some(self::endian(&spelled).map_err(|error| error.at(at..at + 1))?);
            }
            "offset" if offset.is_none() => offset = Some(json.unsigned("an offset")?),
            key => return Err(unknown(key, at)),
        }
    }
    let missing = |what: &str| {
        let message = format!("an array without a {what}");
        Error::malformed("raw.array", message).at(from..from + 1)
    };
    Ok(Array {
        name: name.ok_or_else(|| missing("name"))?,
        dtype: dtype.ok_or_else(|| missing("dtype"))?,
        shape: shape.ok_or_else(|| missing("shape"))?,
        order: order.unwrap_or_default(),
        endian: endian.unwrap_or_default(),
        offset: offset.unwrap_or(0),
    })
}

/// The type that a name stands for: one of numbers.
pub(super) fn number(spelled: &str) -> Result<DType> {
    match DType::parse(spelled) {
        Ok(dtype @ DType::Number(..)) => Ok(dtype),
        _ => {
            let shown = crate::model::brief(spelled);
            let message = format!("{shown} is no type of numbers");
            Err(Error::malformed("raw.dtype", message))
        }
    }
}

pub(super) fn order(spelled: &str) -> Result<Order> {
    match spelled {
        "C" | "c" => Ok(Order::RowMajor),
        "F" | "f" => Ok(Order::ColumnMajor),
        other => {
            let message = format!("an order {other:?}, C or F is expected");
            Err(Error::malformed("raw.order", message))
        }
    }
}

pub(super) fn endian(spelled: &str) -> Result<Endian> {
    match spelled {
        "little" => Ok(Endian::Little),
        "big" => Ok(Endian::Big),
        other => {
            let message = format!("a byte order {other:?}, little or big is expected");
            Err(Error::malformed("raw.endian", message))
        }
    }
}
