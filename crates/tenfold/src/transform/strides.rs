//! How far apart elements are.

use crate::error::Result;
use crate::model::{Order, Strides};
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

/// The order in which elements at these distances, from the first of a storage on, are dense.
pub(crate) fn dense_order(shape: &[u64], strides_of: &Strides) -> Option<Order> {
    let is_dense = |order: &Order| {
        let dense = strides(shape, *order).unwrap_or_default();
        // How far a step goes along a dimension of one element is of no interest.
        let mut steps = shape.iter().zip(&strides_of.steps).zip(dense);
        steps.all(|((dim, step), dense)| *dim < 2 || *step == dense)
    };
    let is_plain = strides_of.offset == 0 && strides_of.steps.len() == shape.len();
    let mut orders = [Order::RowMajor, Order::ColumnMajor].into_iter();
    orders.find(|order| is_plain && !shape.contains(&0) && is_dense(order))
}
