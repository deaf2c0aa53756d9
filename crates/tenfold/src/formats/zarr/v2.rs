//! Metadata of version 2.

use super::array::{Array, Content, Keys};
use super::fill;
use super::json;
use super::pipeline::{self, Pipeline};
use super::types::{self, Type};
use crate::error::{Error, Result};
use crate::model::{Map, Value};
use crate::prelude::*;

/// That a document is of this version.
pub(super) fn check_format(map: &Map) -> Result<()> {
    let format = json::member(map, "zarr_format")?;
    if format.as_u64() == Some(2) {
        return Ok(());
    }
    let message = format!("zarr_format is {}, here it must be 2", format.in_words());
    Err(Error::unsupported("zarr.version", message))
}

/// A `.zarray`.
pub(super) fn array(map: &Map) -> Result<Content> {
    check_format(map)?;
    let found = types::of_v2(&json::member(map, "dtype")?)?;
    let Type::Numbers(dtype, endian) = found else {
        return Content::other(&found).ok_or_else(|| json::missing("dtype"));
    };
    let shape = json::sizes(map, "shape", 0)?;
    let sides = json::sizes(map, "chunks", 1)?;
    if shape.len() != sides.len() {
        let message = format!("chunks of {sides:?} for a shape of {shape:?}");
        return Err(Error::malformed("zarr.shape", message));
    }
    let rank = shape.len();
    let axes = match json::text(map, "order")?.as_str() {
        "C" => (0..rank).collect(),
        "F" => (0..rank).rev().collect(),
        other => {
            let message = format!("the order {other:?}, which is neither C nor F");
            return Err(Error::malformed("zarr.order", message));
        }
    };
    let separator = match map.get("dimension_separator") {
        None | Some(Value::Null) => '.',
        Some(separator) => match separator.as_str() {
            Some(".") => '.',
            Some("/") => '/',
            _ => {
                return Err(json::wrong(
                    "dimension_separator",
                    "\".\" or \"/\"",
                    &separator,
                ));
            }
        },
    };
    pipeline::no_filters(&map.get("filters").unwrap_or(Value::Null))?;
    let compressor = pipeline::compressor(&json::member(map, "compressor")?)?;
    let fill = fill::fill(&json::member(map, "fill_value")?, dtype, endian)?;
    let pipeline = Pipeline {
        sides: sides.clone(),
        axes,
        filters: compressor.into_iter().collect(),
        ..Pipeline::default()
    };
    Ok(Content::Numbers(Box::new(Array {
        shape,
        sides,
        dtype,
        endian,
        fill,
        keys: Keys {
            has_prefix: false,
            separator,
        },
        pipeline,
    })))
}
