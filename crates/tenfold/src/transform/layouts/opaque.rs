//! Parts with a meaning that is not known here.

use super::{Arrangement, Opening, Whole};
use crate::error::{Error, Result};
use crate::model::{Order, Selection};
use crate::prelude::*;
use crate::transform::select::Selected;

pub(super) struct Opaque;

impl Arrangement for Opaque {
    fn whole<'a, 't>(&self, tensor: &Opening<'a, 't>, _: Order) -> Result<Whole<'a, 't>> {
        Err(no_dense_form(tensor))
    }

    fn some<'a>(&self, tensor: &Opening<'a, '_>, _: Selection) -> Result<Selected<'a>> {
        Err(no_dense_form(tensor))
    }
}

fn no_dense_form(tensor: &Opening<'_, '_>) -> Error {
    let message = format!(
        "layout {:?} has no dense form; read its parts one by one",
        tensor.tensor.layout.name()
    );
    Error::unsupported("dense", message)
}
