//! How far apart elements are.

use crate::error::Result;
use crate::model::Order;
use crate::prelude::*;
use crate::transform::overflow;

/// How far a step along each dimension goes in a dense order; nowhere where there are no elements.
pub(super) fn strides(shape: &[u64], order: Order) -> Result<Vec<u64>> {
    let mut strides = vec![0; shape.len()];
    if shape.contains(&0) {
        return Ok(strides);
    }
    let mut next = 1u64;
    let mut set = |k: usize| -> Result<()> {
        strides[k] = next;
        next = next
            .checked_mul(shape[k])
            .ok_or_else(|| overflow("the number of elements"))?;
        Ok(())
    };
    match order {
        Order::ColumnMajor => (0..shape.len()).try_for_each(&mut set)?,
        Order::RowMajor => (0..shape.len()).rev().try_for_each(&mut set)?,
    }
    Ok(strides)
}
