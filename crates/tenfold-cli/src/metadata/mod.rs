//! Metadata as people give it to the command: values with their types in arguments, and in files of JSON.

mod json;
mod typed;

pub(crate) use json::{read_json, read_metadata, write_metadata};
pub(crate) use typed::{VALUE_TYPES, parse_value, parse_value_like, value_like, value_type};
