//! Metadata of version 3.

use super::DIMENSIONS;
use super::array::{Array, Content, Described, Keys, Node};
use super::fill;
use super::json;
use super::pipeline::Pipeline;
use super::types::{self, Type};
use crate::error::{Error, Result};
use crate::model::{Map, Metadata, Value};
use crate::prelude::*;

/// The members that are known; any other must say that it need not be understood.
const KNOWN: [&str; 12] = [
    "attributes",
    "chunk_grid",
    "chunk_key_encoding",
    "codecs",
    "consolidated_metadata",
    "data_type",
    DIMENSIONS,
    "fill_value",
    "node_type",
    "shape",
    "storage_transformers",
    "zarr_format",
];

/// A `zarr.json`.
pub(super) fn node(map: &Map) -> Result<Described> {
    let format = json::member(map, "zarr_format")?;
    if format.as_u64() != Some(3) {
        let message = format!("zarr_format is {}, here it must be 3", format.in_words());
        return Err(Error::unsupported("zarr.version", message));
    }
    for (key, value) in map.iter() {
        let is_optional = match &value {
            Value::Map(map) => {
                map.get("must_understand").and_then(|must| must.as_bool()) == Some(false)
            }
            _ => false,
        };
        if !KNOWN.contains(&key) && !is_optional {
            let message = format!("the member {key:?}, which is not known and must be understood");
            return Err(Error::unsupported("zarr.member", message));
        }
    }
    let mut metadata = Metadata::new();
    match map.get("attributes") {
        None | Some(Value::Null) => {}
        Some(Value::Map(attributes)) => metadata = Metadata::from(&attributes),
        Some(other) => return Err(json::wrong("attributes", "an object", &other)),
    }
    let node = match json::text(map, "node_type")?.as_str() {
        "group" => Node::Group,
        "array" => {
            if let Some(names @ Value::List(_)) = map.get(DIMENSIONS)
                && metadata.get(DIMENSIONS).is_none()
            {
                metadata.push(DIMENSIONS, names);
            }
            Node::Array(array(map)?)
        }
        other => {
            let message = format!("the node_type {other:?}, which is neither group nor array");
            return Err(Error::malformed("zarr.node", message));
        }
    };
    Ok(Described { node, metadata })
}

fn array(map: &Map) -> Result<Content> {
    match map.get("storage_transformers") {
        None | Some(Value::Null | Value::Empty(_)) => {}
        Some(Value::List(list)) if list.is_empty() => {}
        Some(other) => {
            let message = format!(
                "storage_transformers {}, which are not read",
                other.in_words()
            );
            return Err(Error::unsupported("zarr.transformer", message));
        }
    }
    let found = types::of_v3(&json::member(map, "data_type")?)?;
    let Type::Numbers(dtype, _) = found else {
        return Content::other(&found).ok_or_else(|| json::missing("data_type"));
    };
    let shape = json::sizes(map, "shape", 0)?;
    let (grid, configuration) = json::named(&json::member(map, "chunk_grid")?, "chunk_grid")?;
    if grid != "regular" {
        let message = format!("the chunk_grid {grid:?}; regular ones are read");
        return Err(Error::unsupported("zarr.grid", message));
    }
    let sides = json::sizes(&configuration, "chunk_shape", 1)?;
    if shape.len() != sides.len() {
        let message = format!("chunks of {sides:?} for a shape of {shape:?}");
        return Err(Error::malformed("zarr.shape", message));
    }
    let keys = keys(&json::member(map, "chunk_key_encoding")?)?;
    let pipeline = Pipeline::v3(&json::list(map, "codecs")?, sides.clone())?;
    if pipeline.endian.is_none() && dtype.is_ordered() {
        let message = format!("the codec bytes does not say which byte of {dtype} comes first");
        return Err(Error::malformed("zarr.codec", message));
    }
    let endian = pipeline.endian.unwrap_or_default();
    let fill = match json::member(map, "fill_value")? {
        Value::Null => return Err(json::wrong("fill_value", "a value", &Value::Null)),
        value => fill::fill(&value, dtype, endian)?,
    };
    Ok(Content::Numbers(Box::new(Array {
        shape,
        sides,
        dtype,
        endian,
        fill,
        keys,
        pipeline,
    })))
}

fn keys(encoding: &Value) -> Result<Keys> {
    let (name, configuration) = json::named(encoding, "chunk_key_encoding")?;
    let has_prefix = match name.as_str() {
        "default" => true,
        "v2" => false,
        other => {
            let message = format!("the chunk_key_encoding {other:?}; default and v2 are read");
            return Err(Error::unsupported("zarr.keys", message));
        }
    };
    let separator = match configuration.get("separator") {
        None if has_prefix => '/',
        None => '.',
        Some(separator) => match separator.as_str() {
            Some("/") => '/',
            Some(".") => '.',
            _ => return Err(json::wrong("separator", "\".\" or \"/\"", &separator)),
        },
    };
    Ok(Keys {
        has_prefix,
        separator,
    })
}
