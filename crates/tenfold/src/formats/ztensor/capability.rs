//! What each generation that is written can hold.

use crate::format::{Capabilities, Fit};
use crate::formats::ztensor::names;
use crate::model::{DType, DigestKind, Layout, Role, TensorInfo, Value, element_count};
use crate::prelude::*;

/// Dimensions: a limit of generation 2, and of our reading of the others.
pub(super) const MAX_RANK: usize = 64;
/// Nesting of the index: what readers of 0.1 and 1.x are sure to take, and what 2 allows.
pub(super) const DEPTH_1: usize = 64;
pub(super) const DEPTH_2: usize = 32;
/// Fields of an entry of 0.1, in the order in which the released packages write them.
pub(super) const FIELDS_01: [&str; 9] = [
    "name",
    "offset",
    "size",
    "dtype",
    "layout",
    "shape",
    "encoding",
    "data_endianness",
    "checksum",
];
/// The values of `layout`, which only programs gave a meaning to: the specification has no such field.
pub(super) const LAYOUT: &str = "layout";
pub(super) const LAYOUTS_01: [&str; 3] = ["dense", "sparsecoo", "sparsecsr"];
/// Bytes of a name in 2.
const MAX_NAME: usize = 1024;

const ANY: Capabilities = Capabilities {
    max_tensors: u64::MAX,
    min_rank: 0,
    max_rank: MAX_RANK,
    zero_sizes: true,
    name: |_| Ok(()),
    dtype: |_| false,
    layout: |layout| *layout == Layout::RowMajor,
    tensor: |tensor| sizes(tensor, |_| false),
    file_value: |_, _| Fit::No,
    tensor_value: |_, _| Fit::No,
    kept: false,
    big_endian: false,
    zstd: true,
    checksums: &[DigestKind::Crc32c, DigestKind::Sha256],
};

/// Generation 0.1.
pub(super) const IN_01: Capabilities = Capabilities {
    dtype: |dtype| names::in_01(dtype).is_some(),
    // None of the fields of an entry can be the name of a custom one, but for a layout that no program knows.
    tensor_value: |key, value| {
        let is_custom = match (key, value) {
            (LAYOUT, Value::Str(text)) => !LAYOUTS_01.contains(&&**text),
            (LAYOUT, _) => true,
            _ => !FIELDS_01.contains(&key),
        };
        if is_custom {
            // The index, the entry, and the value itself.
            any_cbor(value, DEPTH_1 - 2)
        } else {
            Fit::No
        }
    },
    ..ANY
};

/// Generation 1.2.
pub(super) const IN_12: Capabilities = Capabilities {
    dtype: |dtype| names::in_12(dtype).is_some() || dtype == DType::PARTS,
    layout: has_layout,
    tensor: |tensor| sizes(tensor, |dtype| names::in_12(dtype).is_some()),
    file_value: |_, value| any_cbor(value, DEPTH_1 - 2),
    tensor_value: |_, value| any_cbor(value, DEPTH_1 - 4),
    ..ANY
};

/// Generation 2.
pub(super) const IN_2: Capabilities = Capabilities {
    name: check_name,
    dtype: |dtype| {
        names::in_2(dtype).is_some() || matches!(dtype, DType::Block(_)) || dtype == DType::PARTS
    },
    layout: has_layout,
    tensor: |tensor| {
        let parts = tensor.parts.iter();
        let mut named = parts.filter(|part| matches!(part.role, Role::Named(_)));
        match named.find_map(|part| check_name(part.role.name()).err()) {
            Some(why) => Err(format!("the name of a part: {why}")),
            None => sizes(tensor, |dtype| names::in_2(dtype).is_some()),
        }
    },
    file_value: |key, value| attribute(key, value, DEPTH_2 - 2),
    tensor_value: |key, value| attribute(key, value, DEPTH_2 - 4),
    checksums: &[DigestKind::Xxh3, DigestKind::Sha256],
    ..ANY
};

/// Why generation 2 does not take a name.
pub(super) fn check_name(name: &str) -> Result<(), &'static str> {
    match name.len() {
        0 => Err("it is empty"),
        1..=MAX_NAME if name.contains('\0') => Err("it contains a zero byte"),
        1..=MAX_NAME => Ok(()),
        _ => Err("it has more than 1024 bytes"),
    }
}

fn has_layout(layout: &Layout) -> bool {
    matches!(
        layout,
        Layout::RowMajor | Layout::Coo { .. } | Layout::Csr { .. } | Layout::Opaque { .. }
    )
}

/// Whether lengths can be computed, and parts of an opaque layout have types that can be named.
fn sizes(tensor: &TensorInfo, has: fn(DType) -> bool) -> Result<(), String> {
    if let Layout::Opaque { .. } = tensor.layout {
        let unknown = tensor.parts.iter().find(|part| !has(part.dtype));
        return match unknown {
            Some(part) => Err(format!("part {:?} is {}", part.role.name(), part.dtype)),
            None if tensor.parts.is_empty() => Err("it has no parts".into()),
            None => Ok(()),
        };
    }
    if matches!(tensor.layout, Layout::Coo { .. }) && tensor.shape.is_empty() {
        return Err("a tensor without dimensions has no coordinates".into());
    }
    let elements = element_count(&tensor.shape);
    match elements.and_then(|elements| tensor.dtype.bytes_for(elements)) {
        Some(_) => Ok(()),
        None => Err("its size in bytes does not fit 64 bits".into()),
    }
}

/// A value where any CBOR may stand, if it is nested no deeper than `depth`.
fn any_cbor(value: &Value, depth: usize) -> Fit {
    if !is_held(value, depth, false) {
        return Fit::No;
    }
    long_integers(value, |digits| {
        digits.parse::<u128>().is_ok() || digits.parse::<i128>().is_ok()
    })
}

/// An attribute of generation 2, which has no tags: integers beyond 64 bits become text.
fn attribute(key: &str, value: &Value, depth: usize) -> Fit {
    const LIMIT: i128 = 1 << 64;
    if check_name(key).is_err() || !is_held(value, depth, true) {
        return Fit::No;
    }
    long_integers(value, |digits| {
        (digits.parse::<i128>()).is_ok_and(|number| (-LIMIT..LIMIT).contains(&number))
    })
}

/// Whether a value is nested no deeper than `depth`, and what it holds in encoded form can stand there.
// Only the codec looks at encoded values, and at the last parameter.
#[cfg_attr(not(feature = "ztensor"), allow(clippy::only_used_in_recursion))]
fn is_held(value: &Value, depth: usize, deterministic: bool) -> bool {
    let inner = |value: &Value| depth > 0 && is_held(value, depth - 1, deterministic);
    match value {
        Value::List(items) => items.iter().all(|item| inner(&item)),
        Value::Map(map) => map.iter().all(|(_, value)| inner(&value)),
        #[cfg(feature = "ztensor")]
        Value::Encoded { encoding, bytes } => {
            *encoding == crate::model::Encoding::Cbor
                && super::read::is_cbor(bytes, depth, deterministic)
        }
        #[cfg(not(feature = "ztensor"))]
        Value::Encoded { .. } => false,
        Value::Elsewhere(_) => false,
        _ => true,
    }
}

/// The value, with the integers that do not fit as text.
fn long_integers(value: &Value, fits: fn(&str) -> bool) -> Fit {
    match with_text(value, fits) {
        Some(changed) => Fit::As(changed),
        None => Fit::Exact,
    }
}

/// The value if something in it must change.
fn with_text(value: &Value, fits: fn(&str) -> bool) -> Option<Value> {
    match value {
        Value::Integer(digits) if !fits(digits) => Some(Value::Str(digits.clone())),
        Value::List(items) => {
            let mut changed = false;
            let new = items.iter().map(|item| {
                let new = with_text(&item, fits);
                changed |= new.is_some();
                new.unwrap_or(item)
            });
            let new = new.collect();
            changed.then_some(Value::List(new))
        }
        Value::Map(map) => {
            let mut changed = false;
            let new = map.iter().map(|(key, value)| {
                let new = with_text(&value, fits);
                changed |= new.is_some();
                (key, new.unwrap_or(value))
            });
            let new = new.collect();
            changed.then_some(Value::Map(new))
        }
        _ => None,
    }
}
