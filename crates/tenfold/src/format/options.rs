//! Options that only one format understands, as they were given: `key=value`.

use core::fmt;

use crate::error::{Error, Result};
use crate::prelude::*;

/// Options as they are kept.
pub(crate) fn pairs<K: Into<String>, V: Into<String>>(
    options: impl IntoIterator<Item = (K, V)>,
) -> impl Iterator<Item = (String, String)> {
    let options = options.into_iter();
    options.map(|(key, value)| (key.into(), value.into()))
}

/// The value of an option; the last one given counts.
pub(super) fn find<'o>(options: &'o [(String, String)], key: &str) -> Option<&'o str> {
    let mut given = options.iter().rev();
    given
        .find(|(known, _)| known == key)
        .map(|(_, value)| value.as_str())
}

/// An option that is on or off.
pub(super) fn flag(options: &[(String, String)], key: &str) -> Result<bool> {
    match find(options, key) {
        None | Some("false" | "no" | "off" | "0") => Ok(false),
        Some("true" | "yes" | "on" | "1" | "") => Ok(true),
        Some(_) => Err(wrong(options, key, "expected true or false")),
    }
}

/// The error for an option that has a value which cannot be heeded.
pub(super) fn wrong(options: &[(String, String)], key: &str, why: impl fmt::Display) -> Error {
    let value = find(options, key).unwrap_or_default();
    Error::argument(format!("option {key}={value}: {why}"))
}
