//! The metadata of files and tensors, compared.

use super::Pair;
use crate::archive::Archive;
use crate::error::Result;
use crate::format::{Belongs, Registry};
use crate::model::{Metadata, Value};
use crate::prelude::*;

/// A key of metadata that is not the same in both archives.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MetadataChange {
    /// The tensor that it is about, by its name in the first archive; the file if there is none.
    pub tensor: Option<String>,
    /// The key.
    pub key: String,
    /// The value in the first archive.
    pub a: Option<Value>,
    /// The value in the second.
    pub b: Option<Value>,
}

/// Compares what both say; what follows from the tensors and their files is left out.
pub(super) fn compare(
    a: &Archive,
    b: &Archive,
    pairs: &[Pair<'_>],
    changes: &mut Vec<MetadataChange>,
) -> Result<()> {
    let (of_a, of_b) = (a.load_metadata()?, b.load_metadata()?);
    let registry = Registry::standard();
    // What a container adds or has no place for is not a difference of what it holds.
    let is_content = |key: &str, only: &Value| registry.owner(key, only).0 == Belongs::ToContent;
    let told = |key: &str, only: Option<&Value>| only.is_none_or(|only| is_content(key, only));
    maps(None, &of_a, &of_b, told, changes);
    for (a, b) in pairs {
        let (a, b) = (a.info(), b.info());
        let is_told = |key: &str, only: Option<&Value>| {
            !a.derived().contains(&key) && !b.derived().contains(&key) && told(key, only)
        };
        maps(Some(&a.name), &a.metadata, &b.metadata, is_told, changes);
    }
    Ok(())
}

/// Compares two maps. `told` says which keys count, given the value of one that only one of them has.
fn maps(
    tensor: Option<&str>,
    a: &Metadata,
    b: &Metadata,
    told: impl Fn(&str, Option<&Value>) -> bool,
    changes: &mut Vec<MetadataChange>,
) {
    let (a_map, b_map) = (a, b);
    let mut change = |key: &str, a: Option<&Value>, b: Option<&Value>| {
        let only = a.xor(b);
        if told(key, only) && !a_map.is_fact(key) && !b_map.is_fact(key) {
            changes.push(MetadataChange {
                tensor: tensor.map(ToOwned::to_owned),
                key: key.to_owned(),
                a: a.cloned(),
                b: b.cloned(),
            });
        }
    };
    for (key, value) in a.iter() {
        match b.get(key) {
            Some(other) if same(value, other) => {}
            other => change(key, Some(value), other),
        }
    }
    for (key, value) in b.iter().filter(|(key, _)| a.get(key).is_none()) {
        change(key, None, Some(value));
    }
}

/// Whether two values say the same: numbers of any width by their value, maps in any order.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::F32(a), Value::F64(b)) | (Value::F64(b), Value::F32(a)) => {
            // What one of them had to round is the same number.
            #[allow(clippy::cast_possible_truncation)]
            let narrow = *b as f32;
            *a == narrow || a.is_nan() && b.is_nan()
        }
        (Value::F32(a), Value::F32(b)) => a == b || a.is_nan() && b.is_nan(),
        (Value::F64(a), Value::F64(b)) => a == b || a.is_nan() && b.is_nan(),
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same(&a, &b))
        }
        (Value::List(list), Value::Empty(_)) | (Value::Empty(_), Value::List(list)) => {
            list.is_empty()
        }
        (Value::Empty(_), Value::Empty(_)) => true,
        (Value::Map(a), Value::Map(b)) => {
            let mut changes = Vec::new();
            maps(None, &a.into(), &b.into(), |_, _| true, &mut changes);
            changes.is_empty()
        }
        _ if a == b => true,
        _ => match (a.as_u64(), b.as_u64(), a.as_i64(), b.as_i64()) {
            (Some(a), Some(b), ..) => a == b,
            (_, _, Some(a), Some(b)) => a == b,
            _ => matches!((a.as_f64(), b.as_f64()), (Some(a), Some(b)) if a == b),
        },
    }
}
