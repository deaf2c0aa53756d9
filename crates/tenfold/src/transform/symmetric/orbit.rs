//! The places that symmetries move a place to.

use crate::error::{Error, Result};
use crate::model::{DType, Lanes, Operation, Symmetry};
use crate::prelude::*;

/// The group that symmetries generate, acting on the places of a tensor.
pub(in crate::transform) struct Orbits {
    generators: Vec<Generator>,
    shape: Vec<u64>,
    /// How far a step along each dimension goes, and the dimensions from the longest step to the shortest.
    strides: Vec<u64>,
    descending: Vec<usize>,
}

struct Generator {
    operation: Operation,
    /// The dimensions whose index changes, each with the one whose index it takes.
    moved: Vec<(usize, usize)>,
}

/// The places of one orbit with what is done to the value on the way there, and what the symmetries say about the value
/// itself.
#[derive(Default)]
pub(in crate::transform) struct Orbit {
    pub(in crate::transform) places: Vec<(u64, Operation)>,
    /// Operations that must not change the value, because they lead from a place to itself.
    pub(in crate::transform) fixing: Vec<Operation>,
}

impl Orbits {
    pub(in crate::transform) fn new(
        symmetries: &[Symmetry],
        dtype: DType,
        shape: &[u64],
        strides: &[u64],
    ) -> Result<Self> {
        let real = matches!(dtype, DType::Number(_, Lanes::Real));
        let mut generators: Vec<Generator> = Vec::new();
        for symmetry in symmetries {
            check(symmetry, shape)?;
            let operation = if real {
                symmetry.operation.of_reals()
            } else {
                symmetry.operation
            };
            let moved = (symmetry.permutation.iter().copied().enumerate())
                .filter(|(to, from)| to != from)
                .collect();
            let known = |other: &Generator| other.operation == operation && other.moved == moved;
            if !generators.iter().any(known) {
                generators.push(Generator { operation, moved });
            }
        }
        let mut descending: Vec<_> = (0..shape.len()).collect();
        // A dimension of length 1 has the stride of its neighbour; its index is always 0.
        descending.sort_by_key(|&k| core::cmp::Reverse((strides[k], shape[k])));
        Ok(Self {
            generators,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            descending,
        })
    }

    pub(in crate::transform) fn is_trivial(&self) -> bool {
        self.generators.is_empty()
    }

    /// Steps that it takes to go on from one place.
    pub(in crate::transform) fn cost(&self) -> usize {
        let moved = self
            .generators
            .iter()
            .map(|generator| generator.moved.len());
        self.shape.len() + moved.sum::<usize>()
    }

    /// Everything that a place is moved to, itself first; refused when that is more than `most` places.
    pub(in crate::transform) fn of(&self, place: u64, most: usize) -> Result<Orbit> {
        let mut orbit = Orbit::default();
        let mut known: LookupMap<u64, Operation> = LookupMap::default();
        known.insert(place, Operation::Same);
        orbit.places.push((place, Operation::Same));
        let mut next = 0;
        let mut index = vec![0; self.shape.len()];
        while let Some(&(from, done)) = orbit.places.get(next) {
            next += 1;
            self.index_of(from, &mut index);
            for generator in &self.generators {
                // May be below what it begins with on the way, and never is in the end.
                let step = |place: u64, &(to, from): &(usize, usize)| {
                    let change = index[from].wrapping_sub(index[to]);
                    place.wrapping_add(change.wrapping_mul(self.strides[to]))
                };
                let to = generator.moved.iter().fold(from, step);
                let operation = done.then(generator.operation);
                match known.get(&to) {
                    Some(&before) => {
                        let fixing = before.then(operation);
                        if fixing != Operation::Same && !orbit.fixing.contains(&fixing) {
                            orbit.fixing.push(fixing);
                        }
                    }
                    None if orbit.places.len() >= most => {
                        let message = format!(
                            "symmetries turn one entry into more than {most} elements, which the limit \
                            (tensor_memory) does not allow"
                        );
                        return Err(
                            Error::limit("memory", message).raised_by("tensor_memory", None)
                        );
                    }
                    None => {
                        known.insert(to, operation);
                        orbit.places.push((to, operation));
                    }
                }
            }
        }
        Ok(orbit)
    }

    fn index_of(&self, mut place: u64, index: &mut [u64]) {
        for &k in &self.descending {
            index[k] = match self.shape[k] {
                1 => 0,
                _ => place / self.strides[k],
            };
            place -= index[k] * self.strides[k];
        }
    }
}

impl Orbit {
    /// Whether only 0 can have this orbit.
    pub(in crate::transform) fn is_zero(&self) -> bool {
        self.fixing.contains(&Operation::Negate) || self.fixing.len() > 1
    }
}

fn check(symmetry: &Symmetry, shape: &[u64]) -> Result<()> {
    let mut seen = vec![false; shape.len()];
    let fits = symmetry.permutation.len() == shape.len()
        && (symmetry.permutation.iter().zip(shape)).all(|(&from, dim)| {
            shape.get(from) == Some(dim) && !core::mem::replace(&mut seen[from], true)
        });
    if fits {
        return Ok(());
    }
    let message = "a symmetry that does not exchange dimensions of equal length";
    Err(Error::malformed("orbit", message))
}
