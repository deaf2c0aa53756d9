//! What slices mean for a shape: the indices along each of its dimensions.

use super::Slice;
use crate::error::{Error, Result};
use crate::prelude::*;

/// The indices along every dimension that [`Slice`]s of a shape leave.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Selection {
    pub(crate) axes: Vec<Axis>,
}

/// The indices along one dimension.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Axis {
    /// The dimension's length.
    pub(crate) dim: u64,
    /// One after the other.
    pub(crate) steps: Vec<Steps>,
    /// Whether the result has this dimension.
    pub(crate) kept: bool,
}

/// Indices that are equally far apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Steps {
    pub(crate) start: u64,
    pub(crate) step: i64,
    pub(crate) count: u64,
}

impl Selection {
    /// What the slices mean for a shape. Dimensions that no slice speaks of are taken whole.
    pub(crate) fn new(slices: &[Slice], shape: &[u64]) -> Result<Self> {
        let all = slices.iter().filter(|slice| **slice == Slice::All).count();
        if all > 1 {
            return Err(Error::argument("... appears more than once"));
        }
        let named = slices.len() - all;
        if named > shape.len() {
            let message = format!(
                "{named} slices, the tensor has {} dimensions: {shape:?}",
                shape.len()
            );
            return Err(Error::argument(message));
        }
        let mut full = Vec::new();
        for slice in slices {
            match slice {
                Slice::All => full.resize(full.len() + shape.len() - named, Slice::FULL),
                slice => full.push(*slice),
            }
        }
        full.resize(shape.len(), Slice::FULL);
        let axes = full.iter().zip(shape).enumerate();
        let axes = axes.map(|(axis, (slice, dim))| Axis::new(slice, *dim, axis));
        Ok(Self {
            axes: axes.collect::<Result<_>>()?,
        })
    }

    /// Everything.
    pub(crate) fn whole(shape: &[u64]) -> Self {
        let axes = shape.iter().map(|&dim| Axis {
            dim,
            steps: vec![Steps {
                start: 0,
                step: 1,
                count: dim,
            }],
            kept: true,
        });
        Self {
            axes: axes.collect(),
        }
    }

    /// One element; `None` where there is none at these indices.
    pub(crate) fn element(index: &[u64], shape: &[u64]) -> Option<Self> {
        if index.len() != shape.len() || !index.iter().zip(shape).all(|(i, dim)| i < dim) {
            return None;
        }
        let axes = index.iter().zip(shape).map(|(&start, &dim)| Axis {
            dim,
            steps: vec![Steps {
                start,
                step: 1,
                count: 1,
            }],
            kept: false,
        });
        Some(Self {
            axes: axes.collect(),
        })
    }

    /// How far a step along each dimension goes in what is left, row-major.
    pub(crate) fn strides(&self) -> Result<Vec<u64>> {
        let mut next = Some(1u64);
        let mut strides: Vec<_> = (self.axes.iter().rev())
            .map(|axis| {
                let stride = next;
                next = next.and_then(|next| next.checked_mul(axis.count()));
                stride.ok_or_else(|| Error::malformed("overflow", "too many elements to count"))
            })
            .collect::<Result<_>>()?;
        strides.reverse();
        Ok(strides)
    }

    /// The shape of what is left.
    pub(crate) fn shape(&self) -> Vec<u64> {
        let kept = self.axes.iter().filter(|axis| axis.kept);
        kept.map(Axis::count).collect()
    }

    /// How many elements are left; `None` where 64 bits cannot count them.
    pub(crate) fn elements(&self) -> Option<u64> {
        Self::count(&self.axes)
    }

    /// How many elements some axes have; `None` where 64 bits cannot count them.
    pub(crate) fn count(axes: &[Axis]) -> Option<u64> {
        if axes.iter().any(|axis| axis.count() == 0) {
            return Some(0);
        }
        (axes.iter()).try_fold(1u64, |product, axis| product.checked_mul(axis.count()))
    }

    /// Whether everything is left, in its order.
    pub(crate) fn is_whole(&self) -> bool {
        self.axes.iter().all(Axis::is_whole)
    }

    /// Only the first and the last `n` along every dimension that has more than twice as many.
    pub(crate) fn edges(mut self, n: u64) -> Self {
        for axis in &mut self.axes {
            let count = axis.count();
            if axis.kept && count > n.saturating_mul(2) {
                let mut steps = axis.part(0, n);
                steps.extend(axis.part(count - n, n));
                axis.steps = steps;
            }
        }
        self
    }
}

impl Axis {
    fn new(slice: &Slice, dim: u64, axis: usize) -> Result<Self> {
        let len = i128::from(dim);
        let (first, step, count) = match *slice {
            Slice::Index(index) => {
                let at = from_end(index, len);
                if !(0..len).contains(&at) {
                    let message = format!(
                        "index {index} is outside dimension {axis}, which has length {dim}"
                    );
                    return Err(Error::argument(message));
                }
                (at, 1, 1)
            }
            Slice::Range { start, stop, step } => bounds(start, stop, step, len)?,
            Slice::All => (0, 1, len),
        };
        // Between 0 and the length by now.
        let fit = |number: i128| u64::try_from(number).unwrap_or_default();
        let steps = Steps {
            start: fit(first),
            step,
            count: fit(count),
        };
        Ok(Self {
            dim,
            steps: vec![steps],
            kept: !matches!(slice, Slice::Index(_)),
        })
    }

    pub(crate) fn count(&self) -> u64 {
        self.steps.iter().map(|steps| steps.count).sum()
    }

    pub(crate) fn is_whole(&self) -> bool {
        let whole = Steps {
            start: 0,
            step: 1,
            count: self.dim,
        };
        self.kept && self.steps == [whole] || self.dim == 1 && self.count() == 1
    }

    /// The index at a place of the result, and how many further ones follow it at the same distance.
    pub(crate) fn at(&self, mut place: u64) -> (u64, Steps) {
        for steps in &self.steps {
            if place < steps.count {
                let rest = Steps {
                    start: steps.index(place),
                    step: steps.step,
                    count: steps.count - place,
                };
                return (rest.start, rest);
            }
            place -= steps.count;
        }
        let nothing = Steps {
            start: 0,
            step: 1,
            count: 0,
        };
        (0, nothing)
    }

    /// The place of the result that an index has, if it is wanted.
    pub(crate) fn place_of(&self, index: u64) -> Option<u64> {
        // What is asked for every entry of a sparse tensor that is read whole.
        if let [steps] = self.steps.as_slice()
            && steps.step == 1
        {
            let place = index.checked_sub(steps.start)?;
            return (place < steps.count).then_some(place);
        }
        let mut before = 0;
        for steps in &self.steps {
            let distance = i128::from(index) - i128::from(steps.start);
            let step = i128::from(steps.step);
            let n = distance / step;
            if distance % step == 0 && (0..i128::from(steps.count)).contains(&n) {
                return u64::try_from(n).ok().map(|n| before + n);
            }
            before += steps.count;
        }
        None
    }

    /// Some neighbours of the result.
    fn part(&self, from: u64, count: u64) -> Vec<Steps> {
        let mut parts = Vec::new();
        let (mut place, end) = (from, from.saturating_add(count));
        while place < end {
            let (_, mut steps) = self.at(place);
            steps.count = steps.count.min(end - place);
            if steps.count == 0 {
                break;
            }
            place += steps.count;
            parts.push(steps);
        }
        parts
    }
}

impl Steps {
    /// The index of the `n`-th.
    pub(crate) fn index(&self, n: u64) -> u64 {
        self.start
            .wrapping_add_signed(self.step.wrapping_mul(n.cast_signed()))
    }
}

fn from_end(index: i64, len: i128) -> i128 {
    let index = i128::from(index);
    if index < 0 { index + len } else { index }
}

/// First index, step and count of a range.
fn bounds(
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
    len: i128,
) -> Result<(i128, i64, i128)> {
    let forwards = match step {
        0 => return Err(Error::argument("a slice has a step of 0")),
        step => step > 0,
    };
    let (lowest, highest) = if forwards { (0, len) } else { (-1, len - 1) };
    let (from, to) = if forwards {
        (lowest, highest)
    } else {
        (highest, lowest)
    };
    let bound = |given: Option<i64>, default: i128| match given {
        Some(index) => from_end(index, len).clamp(lowest, highest),
        None => default,
    };
    let (first, last) = (bound(start, from), bound(stop, to));
    let wide = i128::from(step);
    let distance = if forwards { last - first } else { first - last };
    let count = match distance {
        distance if distance > 0 => (distance - 1) / wide.abs() + 1,
        _ => 0,
    };
    // The first is inside, wherever there is one; a step of a range of one or none is never taken.
    let step = if count > 1 { step } else { 1 };
    Ok((if count > 0 { first } else { 0 }, step, count))
}
