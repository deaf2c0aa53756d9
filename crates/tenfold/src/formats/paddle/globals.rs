//! The classes and functions that a pickle may name, and what they make.

use crate::error::{Error, Result};
use crate::prelude::*;
use crate::wire::pickle::{Import, Policy, Value};

/// What a class or function of the list makes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Global {
    /// An array, which gets its state later.
    Array,
    /// `numpy.ndarray`, which is named and never called.
    ArrayClass,
    Dict,
    DType,
    /// `_codecs.encode`
    Encode,
    /// An array without dimensions.
    Scalar,
    Tuple,
}

const GLOBALS: &[(&str, &str, Global)] = &[
    ("numpy._core.multiarray", "_reconstruct", Global::Array),
    ("numpy.core.multiarray", "_reconstruct", Global::Array),
    ("numpy._core.multiarray", "scalar", Global::Scalar),
    ("numpy.core.multiarray", "scalar", Global::Scalar),
    ("numpy", "ndarray", Global::ArrayClass),
    ("numpy", "dtype", Global::DType),
    ("builtins", "tuple", Global::Tuple),
    ("__builtin__", "tuple", Global::Tuple),
    ("_codecs", "encode", Global::Encode),
    ("collections", "OrderedDict", Global::Dict),
];

/// The list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed;

pub(super) fn find(module: &str, name: &str) -> Option<Global> {
    let row = (GLOBALS.iter()).find(|(in_module, known, _)| *in_module == module && *known == name);
    row.map(|(.., global)| *global)
}

/// What a value is, if it is a class or function of the list.
pub(super) fn meaning(value: &Value<'_>) -> Option<Global> {
    match value {
        Value::Global { module, name } => find(module, name),
        _ => None,
    }
}

impl Policy for Allowed {
    fn import(&mut self, import: Import<'_>) -> Result<()> {
        let Import { module, name, .. } = import;
        if find(module, name).is_some() {
            return Ok(());
        }
        let message = format!(
            "{module}.{name} is not among the classes and functions that are read as data, and could run anything"
        );
        Err(Error::unsupported("pickle-global", message))
    }

    fn may_build(&self, module: &str, name: &str) -> bool {
        let builds = [Global::Array, Global::DType, Global::Dict];
        find(module, name).is_some_and(|global| builds.contains(&global))
    }
}
