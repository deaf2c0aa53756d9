//! Index names and symmetries as values of metadata.

use crate::format::Fit;
#[cfg(feature = "tens")]
use crate::model::{DType, Lanes, Scalar};
use crate::model::{Operation, Symmetry, TensorInfo, Value};
use crate::prelude::*;

pub(super) const INDEX_NAMES: &str = "index_names";
pub(super) const SPARSE_DIMENSIONS: &str = "sparse_dimensions";
pub(super) const SYMMETRIES: &str = "symmetries";

/// What type and storage say too.
pub(super) const FACTS: &[&str] = &[
    "storage",
    "number_type",
    "numbers_per_element",
    "unknown_chunks",
];
/// The same with the names of indices that are always called so.
#[cfg(feature = "tens")]
pub(super) const FACTS_AND_NAMES: &[&str] = &[
    INDEX_NAMES,
    "storage",
    "number_type",
    "numbers_per_element",
    "unknown_chunks",
];

/// Every code that is read, the one that is written first.
const CODES: [(&str, Operation); 6] = [
    ("x", Operation::Same),
    ("-x", Operation::Negate),
    ("conj(x)", Operation::Conjugate),
    ("-conj(x)", Operation::NegateConjugate),
    ("x*", Operation::Conjugate),
    ("-x*", Operation::NegateConjugate),
];

/// A symmetry in the file's words.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Claim {
    pub(super) code: Vec<u8>,
    pub(super) map: Vec<u8>,
    pub(super) packed: bool,
}

impl Claim {
    /// The operation; `None` where the code is not known.
    pub(super) fn operation(&self) -> Option<Operation> {
        let known = CODES.iter().find(|(code, _)| code.as_bytes() == self.code);
        known.map(|&(_, operation)| operation)
    }

    /// The symmetry, where its code is known; else why it is none of this tensor.
    pub(super) fn symmetry(&self, names: &[u8], shape: &[u64]) -> Result<Option<Symmetry>, String> {
        let permutation = permutation(&self.map, names, shape)?;
        Ok((self.operation()).map(|operation| Symmetry::new(operation, permutation)))
    }

    /// A symmetry in the words that are written.
    #[cfg(feature = "tens")]
    pub(super) fn new(symmetry: &Symmetry, names: &[u8]) -> Self {
        let name = |&from: &usize| names.get(from).copied().unwrap_or_default();
        Self {
            code: symmetry.operation.to_string().into_bytes(),
            map: symmetry.permutation.iter().map(name).collect(),
            packed: true,
        }
    }

    #[cfg(feature = "tens")]
    pub(super) fn to_value(&self) -> Value {
        let mut value = crate::model::Metadata::new();
        value.push("operation", Value::Str(to_text(&self.code)));
        value.push("map", Value::Str(to_text(&self.map)));
        value.push("packed", Value::Bool(self.packed));
        value.into()
    }

    fn from_value(value: &Value) -> Option<Self> {
        let Value::Map(value) = value else {
            return None;
        };
        if value.len() != 3 {
            return None;
        }
        let text = |key| from_text(value.get(key)?.as_str()?);
        let code: Vec<u8> = text("operation")?;
        (code.len() <= u8::MAX.into()).then_some(Self {
            code,
            map: text("map")?,
            packed: value.get("packed")?.as_bool()?,
        })
    }
}

/// The dimensions whose indices a map puts in place of each other.
pub(super) fn permutation(map: &[u8], names: &[u8], shape: &[u64]) -> Result<Vec<usize>, String> {
    let shown = to_text(map);
    if map.len() != names.len() {
        return Err(format!(
            "the map {shown:?} does not have {} names",
            names.len()
        ));
    }
    let mut taken = vec![false; names.len()];
    let mut permutation = Vec::new();
    for (place, name) in map.iter().enumerate() {
        let mut found = names.iter().enumerate().filter(|(_, known)| *known == name);
        let Some((from, _)) = found.next() else {
            return Err(format!(
                "the map {shown:?} names an index that does not exist"
            ));
        };
        if found.next().is_some() {
            return Err(format!(
                "two indices have the name that the map {shown:?} uses"
            ));
        }
        if taken.get(from) != Some(&false) {
            return Err(format!("the map {shown:?} names an index twice"));
        }
        if shape.get(place) != shape.get(from) {
            return Err(format!(
                "the map {shown:?} exchanges dimensions of different lengths"
            ));
        }
        if let Some(taken) = taken.get_mut(from) {
            *taken = true;
        }
        permutation.push(from);
    }
    Ok(permutation)
}

/// Whether an operation on elements of a type can be carried out.
#[cfg(feature = "tens")]
pub(super) fn can_apply(operation: Operation, dtype: DType) -> bool {
    let DType::Number(scalar, lanes) = dtype else {
        return false;
    };
    let operation = match lanes {
        Lanes::Real => operation.of_reals(),
        _ => operation,
    };
    operation == Operation::Same || !is_unsigned(scalar)
}

#[cfg(feature = "tens")]
fn is_unsigned(scalar: Scalar) -> bool {
    super::INTEGERS
        .iter()
        .any(|&(unsigned, _)| unsigned == scalar)
}

/// Bytes as text, each a character of Latin-1.
pub(super) fn to_text(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

/// Text of Latin-1 as bytes.
pub(super) fn from_text(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|c| u8::try_from(c).ok()).collect()
}

/// The names that are written when a tensor brings none: letters, digits, then any other byte, then all again.
pub(super) fn default_names(count: usize) -> Vec<u8> {
    let plain = || (b'a'..=b'z').chain(b'A'..=b'Z').chain(b'0'..=b'9');
    let others = (1..=u8::MAX).filter(|byte| !byte.is_ascii_alphanumeric());
    let all: Vec<u8> = plain().chain(others).collect();
    all.into_iter().cycle().take(count).collect()
}

/// The index names of a tensor that is written.
pub(super) fn names(tensor: &TensorInfo) -> Vec<u8> {
    let named = tensor.metadata.get(INDEX_NAMES).and_then(Value::as_str);
    named
        .and_then(from_text)
        .filter(|names| names.len() == tensor.shape.len())
        .unwrap_or_else(|| default_names(tensor.shape.len()))
}

/// The symmetries that a tensor's metadata speaks of.
pub(super) fn claims(tensor: &TensorInfo) -> Vec<Claim> {
    let value = tensor.metadata.get(SYMMETRIES);
    value.and_then(claims_of).unwrap_or_default()
}

fn claims_of(value: &Value) -> Option<Vec<Claim>> {
    match value {
        Value::List(items) => items.iter().map(|item| Claim::from_value(&item)).collect(),
        _ => None,
    }
}

/// The dimensions that are flagged as sparse.
pub(super) fn sparse_dimensions(tensor: &TensorInfo) -> Vec<u64> {
    let value = tensor.metadata.get(SPARSE_DIMENSIONS);
    value.and_then(dimensions_of).unwrap_or_default()
}

fn dimensions_of(value: &Value) -> Option<Vec<u64>> {
    match value {
        Value::List(items) => items.as_u64s(),
        _ => None,
    }
}

/// What becomes of a value of a tensor's metadata in 0.9, which names its indices always in the same way.
pub(super) fn value_09(key: &str, value: &Value) -> Fit {
    let names = value.as_str().and_then(from_text);
    let fits = match key {
        INDEX_NAMES => names.is_some_and(|names| names == default_names(names.len())),
        key => FACTS.contains(&key),
    };
    if fits { Fit::Exact } else { Fit::No }
}

/// What becomes of a value of a tensor's metadata in 1.0. What a file says by its header anyway is held as well.
pub(super) fn value(key: &str, value: &Value) -> Fit {
    let fits = match key {
        INDEX_NAMES => value.as_str().and_then(from_text).is_some(),
        SPARSE_DIMENSIONS => dimensions_of(value).is_some(),
        SYMMETRIES => claims_of(value).is_some(),
        key => FACTS.contains(&key),
    };
    if fits { Fit::Exact } else { Fit::No }
}

/// Why the metadata that is held does not fit the tensor that it is about.
pub(super) fn fits(tensor: &TensorInfo) -> Result<(), String> {
    let rank = tensor.shape.len();
    let named = tensor.metadata.get(INDEX_NAMES).and_then(Value::as_str);
    if let Some(names) = named.and_then(from_text)
        && names.len() != rank
    {
        return Err(format!("{} index names for {rank} dimensions", names.len()));
    }
    if let Some(dim) = sparse_dimensions(tensor)
        .iter()
        .find(|&&dim| dim >= rank as u64)
    {
        return Err(format!(
            "dimension {dim} is called sparse, there are {rank}"
        ));
    }
    let names = names(tensor);
    for claim in claims(tensor) {
        claim.symmetry(&names, &tensor.shape)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_as_long_as_bytes_are() {
        let names = default_names(255);
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 255);
        assert!(
            names.starts_with(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
        );
        assert_eq!(default_names(300).len(), 300);
    }

    #[test]
    fn a_map_says_where_indices_come_from() {
        let of = |map: &[u8]| permutation(map, b"abc", &[2, 2, 2]);
        assert_eq!(of(b"cab"), Ok(vec![2, 0, 1]));
        assert!(of(b"aab").is_err());
        assert!(of(b"ab").is_err());
        assert!(of(b"abd").is_err());
        assert!(permutation(b"ba", b"ab", &[2, 3]).is_err());
        assert!(permutation(b"aa", b"aa", &[2, 2]).is_err());
    }
}
