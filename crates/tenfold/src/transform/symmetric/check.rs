//! Whether the elements of a tensor have a symmetry, bit by bit.

use super::operation::Apply;
use super::pages::Pages;
use crate::error::{Error, Result};
use crate::model::{Endian, Form, Operation, Order, Payload, Role, Symmetry, TensorInfo};
use crate::prelude::*;
use crate::transform::strides::strides;
use crate::transform::{Data, Input, View, as_size};

/// What was found.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Verdict {
    /// The first element that is not what the symmetry makes of it.
    pub(crate) violation: Option<Vec<u64>>,
    /// The first element that a symmetry makes of the least integer, whose negative there is not.
    pub(crate) wrapped: Option<Vec<u64>>,
    /// Zeros that a tensor packed by the symmetry gives back with the other sign.
    pub(crate) zeros: u64,
}

/// Compares every element with the one that the symmetry says. 0 and -0 count as the same.
pub(crate) fn check(data: Data<'_>, tensor: &TensorInfo, symmetry: &Symmetry) -> Result<Verdict> {
    let (input, endian, order) = dense_input(data, tensor)?;
    let width = tensor.dtype.width().unwrap_or(1);
    let walk = Walk::new(tensor, symmetry, width, order)?;
    let apply = Apply::new(symmetry.operation, tensor.dtype, endian)?;
    walk.compare(&input, &apply)
}

/// The dense elements in one of the two orders: as stored where that is so, else in memory.
fn dense_input<'a>(data: Data<'a>, tensor: &TensorInfo) -> Result<(Input<'a>, Endian, Order)> {
    if let (Some(order), Some(values)) = (tensor.layout.order(), tensor.part(&Role::Values))
        && values.dtype == tensor.dtype
        && !matches!(values.payload, Payload::Encoded { .. })
        && !data.is_in_order(&values.payload)
        && tensor.dense_len() == Some(values.payload.len())
    {
        let input = data.input(&values.payload)?;
        return Ok((input, values.endian, order));
    }
    let whole = View::dense(data, tensor, &Form::canonical(tensor.dtype))?;
    let whole = whole.collect(data.limits.tensor_memory)?;
    Ok((Input::Memory(whole.into()), Endian::Little, Order::RowMajor))
}

/// How to go through the elements, line by line along the dimension that is stored fastest.
struct Walk {
    width: usize,
    /// The length of a line, and how far a step goes for its partners.
    line: u64,
    partner_step: u64,
    /// The other dimensions, the fastest first: length, how far a step goes, how far it goes for the partners, and
    /// which dimension it is.
    others: Vec<(u64, u64, u64, usize)>,
    fastest: usize,
    rank: usize,
    symmetry: Symmetry,
}

impl Walk {
    fn new(tensor: &TensorInfo, symmetry: &Symmetry, width: usize, order: Order) -> Result<Self> {
        let shape = &tensor.shape;
        let rank = shape.len();
        if symmetry.permutation.len() != rank {
            return Err(Error::argument(
                "a symmetry of another number of dimensions",
            ));
        }
        let mut dims: Vec<_> = (0..rank).collect();
        if order == Order::RowMajor {
            dims.reverse();
        }
        let strides = strides(shape, order)?;
        // A step along dimension k is a step of the partner along the dimension that takes its index.
        let partner = |k: usize| {
            let to = symmetry.permutation.iter().position(|&from| from == k);
            to.map_or(0, |to| strides[to])
        };
        let fastest = dims.first().copied().unwrap_or(0);
        let others = dims.iter().skip(1);
        Ok(Self {
            width,
            line: shape.get(fastest).copied().unwrap_or(1),
            partner_step: if rank == 0 { 0 } else { partner(fastest) },
            others: others
                .map(|&k| (shape[k], strides[k], partner(k), k))
                .collect(),
            fastest,
            rank,
            symmetry: symmetry.clone(),
        })
    }

    fn compare(&self, input: &Input<'_>, apply: &Apply) -> Result<Verdict> {
        /// Elements of a line, and lines, that are compared together: their partners' pages are held.
        const STRETCH: u64 = 256;
        const LINES: u64 = 1024;
        let mut verdict = Verdict::default();
        let mut places = Pages::new(input)?;
        let mut partners = Pages::new(input)?;
        let lines: u64 = self.others.iter().map(|other| other.0).product();
        let (mut own, mut theirs) = (Vec::new(), Vec::new());
        for first in (0..lines).step_by(as_size(LINES)?) {
            for from in (0..self.line).step_by(as_size(STRETCH)?) {
                let count = STRETCH.min(self.line - from);
                own.resize(as_size(count)? * self.width, 0);
                theirs.resize(own.len(), 0);
                for n in first..lines.min(first + LINES) {
                    let (at, partner) = self.bases(n);
                    places.gather(self.width, at + from, 1, 0, &mut own)?;
                    let partner = partner + from * self.partner_step;
                    partners.gather(self.width, partner, self.partner_step, 0, &mut theirs)?;
                    if verdict.wrapped.is_none()
                        && let Some(place) = apply.first_wrapped(&theirs)
                    {
                        verdict.wrapped = Some(self.index(n, from + place as u64));
                    }
                    apply.apply(&mut theirs);
                    if own == theirs {
                        continue;
                    }
                    let pairs = own
                        .chunks_exact(self.width)
                        .zip(theirs.chunks_exact(self.width));
                    for ((a, b), x) in pairs.zip(from..).filter(|((a, b), _)| a != b) {
                        let index = self.index(n, x);
                        if !apply.same(a, b) {
                            verdict.violation = Some(index);
                            return Ok(verdict);
                        }
                        verdict.zeros += u64::from(self.comes_back_changed(&index, a));
                    }
                }
            }
        }
        Ok(verdict)
    }

    /// Where a line begins, and where that of its partners does.
    fn bases(&self, mut n: u64) -> (u64, u64) {
        let (mut own, mut partner) = (0, 0);
        for &(dim, stride, partner_stride, _) in &self.others {
            own += n % dim * stride;
            partner += n % dim * partner_stride;
            n /= dim;
        }
        (own, partner)
    }

    fn index(&self, mut n: u64, along: u64) -> Vec<u64> {
        let mut index = vec![0; self.rank];
        if let Some(place) = index.get_mut(self.fastest) {
            *place = along;
        }
        for &(dim, _, _, k) in &self.others {
            index[k] = n % dim;
            n /= dim;
        }
        index
    }

    /// Whether a packed tensor does not store this zero, and gives it back with the other sign.
    fn comes_back_changed(&self, index: &[u64], element: &[u8]) -> bool {
        let no_diagonal = self.symmetry.operation == Operation::Negate;
        match self.symmetry.transposition() {
            // A diagonal that is not stored comes back without a sign.
            Some((p, q)) if index[p] == index[q] => no_diagonal && element.iter().any(|&b| b != 0),
            Some((p, q)) => index[p] > index[q],
            None => false,
        }
    }
}
