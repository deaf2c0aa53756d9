//! Tensors without a dense form: what their parts are, apart from the bytes.

use crate::model::{DType, Layout, Part, TensorInfo};
use crate::prelude::*;

/// What a tensor without a dense form is beside its bytes. Where any of it differs, equal bytes mean different things.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Parts {
    /// The name that the file gives to the layout.
    pub scheme: String,
    /// What must be known beside it; see [`Layout::Opaque`].
    pub parameters: String,
    /// The role and the type of every part, in the order of the roles.
    pub parts: Vec<(String, DType)>,
}

impl Parts {
    /// `None` for a tensor with a dense form.
    pub fn of(info: &TensorInfo) -> Option<Self> {
        let Layout::Opaque(scheme) = &info.layout else {
            return None;
        };
        let parts = by_role(info).into_iter();
        Some(Self {
            scheme: scheme.name.clone(),
            parameters: scheme.parameters.clone(),
            parts: parts
                .map(|(_, part)| (part.role.name().to_owned(), part.dtype))
                .collect(),
        })
    }
}

/// The parts in the order in which they are hashed and compared, each with its place in the tensor.
pub(in crate::ops) fn by_role(info: &TensorInfo) -> Vec<(usize, &Part)> {
    let mut parts: Vec<_> = info.parts.iter().enumerate().collect();
    parts.sort_by(|(_, a), (_, b)| a.role.name().cmp(b.role.name()));
    parts
}
