//! What several operations are made of.

pub(super) mod chunks;
pub(super) mod parts;
pub(super) mod readback;
pub(super) mod survey;
pub(super) mod values;

use crate::error::{ErrorKind, Result};

/// Tells an error that ends the work, because that was asked to, from one of a single tensor.
pub(super) fn unless_canceled<T>(result: Result<T>) -> Result<Result<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::Canceled => Err(error),
        other => Ok(other),
    }
}
