//! What a file holds besides tensors, as metadata.

use crate::model::Value;
use crate::prelude::*;

/// Dimensions, at most, the batch not among them.
pub(super) const MAX_DEPTH: usize = 8;

/// What a file holds. In the order of the specification.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum DataType {
    Shape,
    Tensor,
    Parameter,
    Model,
    Optimizer,
}

/// The number in the file, and the name in metadata; options have the name in lower case.
const DATA_TYPES: &[(u32, DataType, &str)] = &[
    (0x000, DataType::Shape, "Shape"),
    (0x100, DataType::Tensor, "Tensor"),
    (0x200, DataType::Parameter, "Parameter"),
    (0x300, DataType::Model, "Model"),
    (0x400, DataType::Optimizer, "Optimizer"),
];

impl DataType {
    pub(super) fn from_code(code: u32) -> Option<Self> {
        DATA_TYPES.iter().find(|row| row.0 == code).map(|row| row.1)
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        DATA_TYPES.iter().find(|row| row.2 == name).map(|row| row.1)
    }

    pub(super) fn from_option(name: &str) -> Option<Self> {
        let is_it = |row: &&(u32, Self, &str)| row.2.eq_ignore_ascii_case(name);
        DATA_TYPES.iter().find(is_it).map(|row| row.1)
    }

    pub(super) fn code(self) -> u32 {
        self.row().0
    }

    pub(super) fn name(self) -> &'static str {
        self.row().2
    }

    #[allow(clippy::indexing_slicing)] // one row per variant in the variants' order; a unit test holds it to that
    fn row(self) -> &'static (u32, Self, &'static str) {
        &DATA_TYPES[self as usize]
    }
}

/// The dimensions of a Shape.
pub(super) fn dims(value: &Value) -> Option<Vec<u32>> {
    match value {
        Value::List(items) if items.len() <= MAX_DEPTH => {
            items.iter().map(|item| positive(&item)).collect()
        }
        _ => None,
    }
}

/// A number over 0 of 32 bits: a dimension or a batch.
pub(super) fn positive(value: &Value) -> Option<u32> {
    uint(value).filter(|&number| number > 0)
}

/// The whole numbers of an Optimizer, by name.
pub(super) fn uints(value: &Value) -> Option<Vec<(&str, u32)>> {
    configs(value, uint)
}

/// The floating-point numbers of an Optimizer, by name.
pub(super) fn floats(value: &Value) -> Option<Vec<(&str, f32)>> {
    configs(value, float)
}

fn configs<T>(value: &Value, convert: fn(&Value) -> Option<T>) -> Option<Vec<(&str, T)>> {
    let Value::Map(entries) = value else {
        return None;
    };
    let mut configs: Vec<_> = entries
        .iter()
        .map(|(key, value)| Some((key, convert(&value)?)))
        .collect::<Option<_>>()?;
    configs.sort_by_key(|&(key, _)| key);
    // A file with the same name twice is refused by readers.
    let twice = configs
        .iter()
        .zip(configs.iter().skip(1))
        .any(|(a, b)| a.0 == b.0);
    (!twice).then_some(configs)
}

fn uint(value: &Value) -> Option<u32> {
    value.as_u64()?.try_into().ok()
}

/// A number that 32 bits hold as it is.
fn float(value: &Value) -> Option<f32> {
    if let Value::F32(value) = value {
        return Some(*value);
    }
    let wide = value.as_f64()?;
    #[allow(clippy::cast_possible_truncation)] // compared right after
    let narrow = wide as f32;
    (wide.is_nan() || f64::from(narrow) == wide).then_some(narrow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_follows_the_enum() {
        for (index, row) in DATA_TYPES.iter().enumerate() {
            assert_eq!(row.1 as usize, index);
            assert_eq!(DataType::from_code(row.0), Some(row.1));
            assert_eq!(DataType::from_name(row.1.name()), Some(row.1));
        }
        assert_eq!(DataType::from_option("model"), Some(DataType::Model));
        assert_eq!(DataType::from_code(0x201), None);
    }

    #[test]
    fn configs_are_sorted_and_hold_what_32_bits_hold() {
        let map = |values: &[(&str, Value)]| {
            let entries = values
                .iter()
                .map(|(key, value)| ((*key).to_owned(), value.clone()));
            Value::Map(entries.collect())
        };
        let two = map(&[("b", Value::U64(1)), ("a", Value::I64(2))]);
        assert_eq!(uints(&two), Some(vec![("a", 2), ("b", 1)]));
        assert_eq!(uints(&map(&[("a", Value::U64(1 << 32))])), None);
        assert_eq!(uints(&map(&[("a", Value::I64(-1))])), None);
        assert_eq!(
            floats(&map(&[("a", Value::F64(0.5))])),
            Some(vec![("a", 0.5)])
        );
        assert_eq!(floats(&map(&[("a", Value::F64(0.1))])), None);
        let twice = map(&[("a", Value::U32(1)), ("a", Value::U32(1))]);
        assert_eq!(uints(&twice), None);
    }
}
