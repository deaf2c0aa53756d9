//! What a store that is written can hold.

use crate::format::Fit;
use crate::model::Value;

/// Dimensions, at most.
pub(super) const MOST_RANK: usize = 64;
/// Bytes of a name that a file system takes.
const MOST_NAME: usize = 255;

/// Whether a path can be made of a name.
pub(super) fn name(name: &str) -> Result<(), &'static str> {
    let mut depth = 0;
    for part in name.split('/') {
        depth += 1;
        if part.is_empty() || part == "." || part == ".." {
            return Err("Zarr has no nodes with the names \"\", \".\" and \"..\"");
        }
        if part.starts_with("__") {
            return Err("names that begin with __ are reserved in Zarr");
        }
        if part == "c" || part == "zarr.json" || part.starts_with(".z") {
            return Err("a part of the path is the name of chunks or of metadata in Zarr");
        }
        if part.contains(['\0', '\\']) || part.len() > MOST_NAME {
            return Err("a part of the path is no name of a directory");
        }
    }
    if depth > 60 {
        return Err("a path has at most 60 parts");
    }
    Ok(())
}

/// Objects and lists in each other.
const DEPTH: usize = 32;

/// What becomes of metadata; of a file, a map under the path of a group is that group's attributes.
pub(super) fn value(_: &str, value: &Value) -> Fit {
    Fit::in_json(value, DEPTH)
}
