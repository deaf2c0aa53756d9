//! What became of tensors that were quantized, and how good that is.

use serde::Serialize;

use super::text;
use super::value::Float;
use crate::model::DType;
use crate::ops::{Choice, Quality, TensorQuality};
use crate::prelude::*;

/// What became of a tensor.
#[derive(Debug, Serialize)]
pub struct ChoiceDocument<'a> {
    name: &'a str,
    #[serde(serialize_with = "text")]
    from: DType,
    #[serde(serialize_with = "text")]
    to: DType,
    #[serde(skip_serializing_if = "Option::is_none")]
    instead_of: Option<&'static str>,
    importance: bool,
}

impl<'a> ChoiceDocument<'a> {
    /// The document of a tensor.
    pub fn new(choice: &'a Choice) -> Self {
        Self {
            name: &choice.name,
            from: choice.from,
            to: choice.to,
            instead_of: choice.instead_of.map(|spec| spec.name),
            importance: choice.important,
        }
    }
}

/// How far quantized numbers are from those before.
#[derive(Debug, Serialize)]
pub struct QualityDocument<'a> {
    relative_l2: Option<Float>,
    cosine: Option<Float>,
    tensors: Vec<TensorDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct TensorDocument<'a> {
    name: &'a str,
    #[serde(serialize_with = "text")]
    dtype: DType,
    relative_l2: Option<Float>,
    cosine: Option<Float>,
    max_abs: Option<Float>,
}

impl<'a> QualityDocument<'a> {
    /// The document of what [`quality`](crate::ops::quality) found.
    pub fn new(quality: &'a Quality) -> Self {
        let tensor = |tensor: &'a TensorQuality| TensorDocument {
            name: &tensor.name,
            dtype: tensor.dtype,
            relative_l2: tensor.relative_l2.map(Float),
            cosine: tensor.cosine.map(Float),
            max_abs: tensor.max_abs.map(Float),
        };
        Self {
            relative_l2: quality.relative_l2.map(Float),
            cosine: quality.cosine.map(Float),
            tensors: quality.tensors.iter().map(tensor).collect(),
        }
    }
}
