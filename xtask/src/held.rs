//! What a file holds, as some program sees it, and whether two programs see the same.

use crate::Result;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The tensors by name, and the metadata of the file. Order is left out: formats and packages each have their own.
#[derive(Clone, Default)]
pub(crate) struct Held {
    pub(crate) tensors: BTreeMap<String, Tensor>,
    /// `None` from a program that cannot tell.
    pub(crate) metadata: Option<Value>,
}

/// One tensor. What a program cannot tell is `None` and is not compared.
#[derive(Clone)]
pub(crate) struct Tensor {
    dtype: Option<String>,
    shape: Vec<u64>,
    sha256: Option<String>,
}

impl Held {
    /// From `{"tensors": [{"name", "dtype", "shape", "sha256"}], "metadata"}`: our programs for the packages print
    /// that, the files beside the fixtures hold it, and `tenfold inspect --json` has all of it but the digests.
    pub(crate) fn parse(json: &[u8]) -> Result<Self> {
        Self::parse_only(json, |_| true)
    }

    /// The same, with those tensors only whose rows are `wanted`.
    pub(crate) fn parse_only(json: &[u8], wanted: fn(&Value) -> bool) -> Result<Self> {
        let json: Value = serde_json::from_slice(json)?;
        let mut held = Self {
            tensors: BTreeMap::new(),
            metadata: json.get("metadata").filter(|m| !m.is_null()).cloned(),
        };
        for row in rows(&json)?.iter().filter(|row| wanted(row)) {
            let shape = row
                .get("shape")
                .and_then(Value::as_array)
                .ok_or("a tensor without a shape")?;
            let tensor = Tensor {
                dtype: text(row, "dtype"),
                shape: shape.iter().filter_map(Value::as_u64).collect(),
                sha256: text(row, "sha256"),
            };
            held.tensors.insert(name(row)?, tensor);
        }
        Ok(held)
    }

    /// Adds the digests of `tenfold digest --json` where there are none yet.
    pub(crate) fn add_digests(&mut self, json: &[u8]) -> Result<()> {
        let json: Value = serde_json::from_slice(json)?;
        for row in rows(&json)? {
            let name = name(row)?;
            let tensor = self
                .tensors
                .get_mut(&name)
                .ok_or_else(|| format!("a digest of {name:?}, which is not listed"))?;
            tensor.sha256 = tensor.sha256.take().or_else(|| text(row, "sha256"));
        }
        Ok(())
    }

    /// Some tensor whose digest is not known.
    pub(crate) fn lacks_digests(&self) -> bool {
        self.tensors.values().any(|tensor| tensor.sha256.is_none())
    }

    /// The metadata as a format holds it that has only text.
    pub(crate) fn metadata_as_text(&mut self) {
        for value in (self.metadata.iter_mut())
            .filter_map(Value::as_object_mut)
            .flat_map(Map::values_mut)
        {
            if !value.is_string() {
                *value = Value::String(value.to_string());
            }
        }
    }

    /// Every way in which `got` is not `self`, in words.
    pub(crate) fn differences(&self, got: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for (name, want) in &self.tensors {
            match got.tensors.get(name) {
                None => found.push(format!("{name:?} is missing")),
                Some(got) => {
                    found.extend(want.difference(got).map(|what| format!("{name:?}: {what}")))
                }
            }
        }
        for name in got
            .tensors
            .keys()
            .filter(|name| !self.tensors.contains_key(*name))
        {
            found.push(format!("{name:?} was not there"));
        }
        found.extend(self.metadata_difference(got));
        found
    }

    /// The same for the metadata alone.
    pub(crate) fn metadata_difference(&self, got: &Self) -> Option<String> {
        let (want, got) = (self.metadata.as_ref()?, got.metadata.as_ref()?);
        (!alike(want, got)).then(|| format!("metadata {got}, expected {want}"))
    }

    /// The first key of the metadata under which `got` has something else, or nothing. What it has beyond is not looked at.
    pub(crate) fn metadata_of_same_keys(&self, got: &Self) -> Option<String> {
        let (want, got) = (self.metadata.as_ref()?, got.metadata.as_ref()?);
        let mut want = want.as_object()?.iter();
        want.find_map(|(key, want)| {
            let got = got.get(key);
            let same = got.is_some_and(|got| alike(want, got));
            (!same).then(|| format!("{key:?} is {got:?}, expected {want}"))
        })
    }
}

impl Tensor {
    /// How another view of the tensor differs.
    pub(crate) fn difference(&self, got: &Self) -> Option<String> {
        if self.shape != got.shape {
            return Some(format!("shape {:?}, expected {:?}", got.shape, self.shape));
        }
        for (want, got) in [(&self.dtype, &got.dtype), (&self.sha256, &got.sha256)] {
            if let (Some(want), Some(got)) = (want, got)
                && want != got
            {
                return Some(format!("{got}, expected {want}"));
            }
        }
        None
    }
}

fn rows(json: &Value) -> Result<&Vec<Value>> {
    Ok(json
        .get("tensors")
        .and_then(Value::as_array)
        .ok_or("no list of tensors")?)
}

fn name(row: &Value) -> Result<String> {
    Ok(text(row, "name").ok_or("a tensor without a name")?)
}

/// A text field. The fixtures say `quantized` and `custom` where there is no one type of elements.
fn text(row: &Value, field: &str) -> Option<String> {
    let text = row.get(field)?.as_str()?;
    let vague = field == "dtype" && matches!(text, "custom" | "quantized" | "unknown");
    (!vague).then(|| text.to_owned())
}

/// Equality that looks at the value of a number and not at its type, which formats do not all keep.
fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| in_map(b, key, a))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b))
        }
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Number(number), Value::Bool(bool)) | (Value::Bool(bool), Value::Number(number)) => {
            number.as_u64() == Some(u64::from(*bool))
        }
        // Integers of more than 64 bits are text in our JSON.
        (Value::Number(number), Value::String(text))
        | (Value::String(text), Value::Number(number)) => text.parse().ok() == number.as_f64(),
        (a, b) => a == b,
    }
}

fn in_map(map: &Map<String, Value>, key: &str, value: &Value) -> bool {
    map.get(key).is_some_and(|other| alike(value, other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn held(dtype: &str, shape: &[u64], sha256: Option<&str>, metadata: Value) -> Held {
        let row = json!({"name": "a", "dtype": dtype, "shape": shape, "sha256": sha256});
        let json = json!({"tensors": [row], "metadata": metadata});
        Held::parse(json.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn any_difference_of_a_tensor_is_found() {
        let want = held("f32", &[2], Some("00"), json!({}));
        assert!(want.differences(&want).is_empty());
        for got in [
            held("f16", &[2], Some("00"), json!({})),
            held("f32", &[2, 1], Some("00"), json!({})),
            held("f32", &[2], Some("01"), json!({})),
            Held::default(),
        ] {
            assert_eq!(want.differences(&got).len(), 1);
            assert_eq!(got.differences(&want).len(), 1);
        }
    }

    #[test]
    fn what_a_program_cannot_tell_is_not_compared() {
        let want = held("f32", &[2], Some("00"), json!({"k": 1}));
        let got = held("quantized", &[2], None, Value::Null);
        assert!(want.differences(&got).is_empty());
        assert!(got.lacks_digests());
    }

    #[test]
    fn numbers_of_the_metadata_are_compared_by_value() {
        let want = held("f32", &[2], None, json!({"k": [1, true, 0.5, 10e19]}));
        let same = held(
            "f32",
            &[2],
            None,
            json!({"k": [1.0, 1, 0.5, "100000000000000000000"]}),
        );
        let other = held(
            "f32",
            &[2],
            None,
            json!({"k": [1.5, 1, 0.5, "100000000000000000000"]}),
        );
        assert!(want.differences(&same).is_empty());
        assert_eq!(want.differences(&other).len(), 1);
    }
}
