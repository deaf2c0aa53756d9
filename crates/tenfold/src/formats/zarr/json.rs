//! Documents: what is wrong with a member, in words.

use crate::error::{Error, Result};
use crate::model::{List, Map, Value};
use crate::prelude::*;
use crate::wire::json::{Json, Rules};

const RULES: Rules = Rules {
    syntax: "zarr.json",
    text: "zarr.utf8",
    depth: "zarr.depth",
};
/// Objects and lists in each other.
const DEPTH: usize = 64;

/// A document, which is an object. Keys that it has twice are refused.
pub(super) fn parse(text: &[u8]) -> Result<Map> {
    static STATIC: Rules = RULES;
    let mut json = Json::new(text, 0, DEPTH, &STATIC)?;
    let mut again = |key: &str, at: u64| {
        let message = format!("the key {key:?} is there twice");
        Err(Error::malformed("zarr.duplicate", message).at(at..at + 1))
    };
    let value = json.value(&mut again)?;
    json.end()?;
    match value {
        Value::Map(map) => Ok(map),
        other => Err(wrong("the document", "an object", &other)),
    }
}

/// A member that is something else.
pub(super) fn wrong(member: &str, expected: &str, found: &Value) -> Error {
    let message = format!("{member} must be {expected}, found {}", found.in_words());
    Error::malformed("zarr.json", message)
}

pub(super) fn missing(member: &str) -> Error {
    Error::malformed("zarr.json", format!("there is no member {member:?}"))
}

/// A member that has to be there.
pub(super) fn member(map: &Map, name: &str) -> Result<Value> {
    map.get(name).ok_or_else(|| missing(name))
}

/// A member that is text.
pub(super) fn text(map: &Map, name: &str) -> Result<String> {
    match member(map, name)? {
        Value::Str(text) => Ok(text),
        other => Err(wrong(name, "text", &other)),
    }
}

pub(super) fn list(map: &Map, name: &str) -> Result<List> {
    match member(map, name)? {
        Value::List(list) => Ok(list),
        // An empty list is of any kind.
        Value::Empty(_) => Ok(List::new()),
        other => Err(wrong(name, "a list", &other)),
    }
}

pub(super) fn object(map: &Map, name: &str) -> Result<Map> {
    match member(map, name)? {
        Value::Map(map) => Ok(map),
        other => Err(wrong(name, "an object", &other)),
    }
}

/// Sizes: whole numbers, none of them below `least`.
pub(super) fn sizes(map: &Map, name: &str, least: u64) -> Result<Vec<u64>> {
    let size = |value: Value| match value {
        Value::I64(_) | Value::U64(_) => value.as_u64().filter(|size| *size >= least),
        _ => None,
    };
    let list = list(map, name)?;
    let sizes: Option<Vec<u64>> = list.iter().map(size).collect();
    sizes.ok_or_else(|| {
        let message = format!(
            "{name} must be whole numbers from {least} on, found {}",
            Value::List(list).in_words()
        );
        Error::malformed("zarr.shape", message)
    })
}

/// A name, and what it is configured with: an object of both, or the name alone.
pub(super) fn named(value: &Value, what: &str) -> Result<(String, Map)> {
    match value {
        Value::Str(name) => Ok((name.clone(), Map::new())),
        Value::Map(map) => {
            let name = text(map, "name")?;
            let configuration = match map.get("configuration") {
                None => Map::new(),
                Some(Value::Map(map)) => map,
                Some(other) => return Err(wrong("configuration", "an object", &other)),
            };
            Ok((name, configuration))
        }
        other => Err(wrong(what, "a name", other)),
    }
}
