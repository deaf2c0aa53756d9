//! Sparse to dense: the entries are held in memory, sorted by place, and written out piece by piece.

mod entries;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::Form;
use crate::model::{Layout, Operation, TensorInfo};
use crate::prelude::*;
use crate::transform::operation::Apply;
use crate::transform::orbit::Orbits;
use crate::transform::strides::strides;
use crate::transform::{Data, as_size};

/// The entries of a sparse tensor, sorted by their place in the dense one.
pub(crate) struct Scatter {
    /// The place of an entry, which value it has, and what is done to that.
    entries: Vec<Entry>,
    values: Bytes,
    width: usize,
    sorted: bool,
    orbits: Orbits,
    /// What the operations do to values, in the order of [`Operation::ALL`]; empty without symmetries.
    operations: Vec<Option<Apply>>,
    memory: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    place: u64,
    value: usize,
    operation: Operation,
}

impl Scatter {
    /// Reads and checks the entries: every index in range, no place twice. Entries stand for their places alone until
    /// [`complete`](Self::complete) is called.
    pub(crate) fn load(data: Data<'_>, tensor: &TensorInfo, form: &Form) -> Result<Self> {
        let width = form.dtype.width().ok_or_else(|| {
            Error::unsupported("sparse", format!("sparse elements of {}", form.dtype))
        })?;
        let strides = strides(&tensor.shape, form.layout == Layout::ColumnMajor)?;
        let (places, values) = entries::read(data, tensor, form, &strides)?;
        if values.len() / width != places.len() {
            let message = format!(
                "{} values for {} indices",
                values.len() / width,
                places.len()
            );
            return Err(broken(message));
        }
        let mut entries: Vec<_> = (places.into_iter().enumerate())
            .map(|(value, place)| Entry {
                place,
                value,
                operation: Operation::Same,
            })
            .collect();
        let sorted = entries.is_sorted_by_key(|entry| entry.place);
        entries.sort_unstable_by_key(|entry| (entry.place, entry.value));
        if let Some([a, b]) = first_shared_place(&entries) {
            let message = format!("entries {} and {} have the same place", a.value, b.value);
            return Err(broken(message));
        }
        let symmetries = match &tensor.layout {
            Layout::Pairs { orbits, .. } => orbits.as_slice(),
            _ => &[],
        };
        let operations = match symmetries.is_empty() {
            true => Vec::new(),
            false => Operation::ALL
                .map(|operation| Apply::new(operation, form.dtype, form.endian).ok())
                .into(),
        };
        Ok(Self {
            entries,
            values,
            width,
            sorted,
            orbits: Orbits::new(symmetries, form.dtype, &tensor.shape, &strides)?,
            operations,
            memory: data.limits.tensor_memory,
        })
    }

    /// Adds the entries at all places that symmetries move the stored ones to, after checking that no two stored ones
    /// are the same, and that a value which its own symmetries negate is 0.
    pub(crate) fn complete(&mut self) -> Result<()> {
        if self.orbits.is_trivial() {
            return Ok(());
        }
        let most = as_size(self.memory)? / size_of::<Entry>();
        let mut all = Vec::new();
        for entry in &self.entries {
            let orbit = self
                .orbits
                .of(entry.place, most.saturating_sub(all.len()))?;
            self.check_value(entry, orbit.is_zero())?;
            all.extend(orbit.places.into_iter().map(|(place, operation)| Entry {
                place,
                operation,
                ..*entry
            }));
        }
        all.sort_unstable_by_key(|entry| (entry.place, entry.value));
        if let Some([a, b]) = first_shared_place(&all) {
            return Err(same_orbit(a, b));
        }
        self.entries = all;
        Ok(())
    }

    /// What [`complete`](Self::complete) checks, without holding what it adds, and whether values that symmetries
    /// conjugate onto themselves are so. Gives up, and says so, where that would take too long.
    pub(crate) fn check_orbits(&self) -> Result<Vec<String>> {
        // Steps: enough for the symmetries of real tensors, a second for a small file that stands for a giant.
        const LEAST: usize = 1 << 26;
        const PER_ENTRY: usize = 1 << 10;
        let steps = LEAST.max(self.entries.len().saturating_mul(PER_ENTRY));
        let mut first: LookupMap<u64, Entry> = LookupMap::default();
        let mut warnings = Vec::new();
        let mut left = steps / self.orbits.cost().max(1);
        for entry in self.entries.iter().filter(|_| !self.orbits.is_trivial()) {
            let Ok(orbit) = self.orbits.of(entry.place, left) else {
                warnings.push("the symmetries of so many elements were not checked".to_owned());
                break;
            };
            left = left.saturating_sub(orbit.places.len());
            self.check_value(entry, orbit.is_zero())?;
            let lowest = orbit.places.iter().map(|(place, _)| *place).min();
            if let Some(other) = first.insert(lowest.unwrap_or(entry.place), *entry) {
                return Err(same_orbit(&other, entry));
            }
            let varies = |operation: &Operation| !self.is_fixed(entry, *operation);
            if let Some(operation) = orbit.fixing.iter().find(|op| varies(op))
                && warnings.is_empty()
            {
                warnings.push(format!(
                    "entry {} is moved onto itself as {operation}, and is not the same then",
                    entry.value
                ));
            }
        }
        Ok(warnings)
    }

    fn check_value(&self, entry: &Entry, must_be_zero: bool) -> Result<()> {
        let same = self.operations.first().and_then(Option::as_ref);
        if must_be_zero && same.is_some_and(|same| !same.is_zero(self.stored_value(entry))) {
            let message = format!(
                "entry {}: its symmetries negate it onto itself, but it is not 0",
                entry.value
            );
            return Err(Error::malformed("orbit", message));
        }
        Ok(())
    }

    fn is_fixed(&self, entry: &Entry, operation: Operation) -> bool {
        let stored = self.stored_value(entry);
        let mut turned = stored.to_vec();
        match self.apply(operation) {
            Some(apply) => {
                apply.apply(&mut turned);
                apply.same(stored, &turned)
            }
            None => true,
        }
    }

    fn stored_value(&self, entry: &Entry) -> &[u8] {
        &self.values[entry.value * self.width..(entry.value + 1) * self.width]
    }

    fn apply(&self, operation: Operation) -> Option<&Apply> {
        self.operations.get(operation as usize)?.as_ref()
    }

    /// Whether the entries were stored in the order of their places.
    pub(crate) fn is_sorted(&self) -> bool {
        self.sorted
    }

    /// Places and values of the entries, by place.
    pub(crate) fn entries(&self) -> impl ExactSizeIterator<Item = (u64, &[u8])> {
        (self.entries.iter()).map(|entry| (entry.place, self.stored_value(entry)))
    }

    /// The place of one of the entries, by place; its value goes into `out`.
    pub(crate) fn entry(&self, n: usize, out: &mut Vec<u8>) -> Option<u64> {
        let entry = self.entries.get(n)?;
        out.clear();
        out.extend_from_slice(self.stored_value(entry));
        if let Some(apply) = self.apply(entry.operation) {
            apply.apply(out);
        }
        Some(entry.place)
    }

    /// The first dense byte from that of the element at `at` on that belongs to an entry.
    pub(super) fn stored_from(&self, at: u64) -> Option<u64> {
        let width = self.width as u64;
        let first = at / width;
        let from = self.entries.partition_point(|entry| entry.place < first);
        self.entries.get(from).map(|entry| entry.place * width)
    }

    /// The dense bytes from `at` on; `out` comes filled with zeros.
    pub(super) fn read_into(&self, at: u64, out: &mut [u8]) {
        let width = self.width as u64;
        let first = at / width;
        let end = first + out.len() as u64 / width;
        let from = self.entries.partition_point(|entry| entry.place < first);
        for entry in self.entries[from..]
            .iter()
            .take_while(|entry| entry.place < end)
        {
            // Inside of `out`, so it fits.
            let to = usize::try_from((entry.place - first) * width).unwrap_or(usize::MAX);
            let out = &mut out[to..to + self.width];
            out.copy_from_slice(self.stored_value(entry));
            if let Some(apply) = self.apply(entry.operation) {
                apply.apply(out);
            }
        }
    }
}

fn first_shared_place(sorted: &[Entry]) -> Option<[&Entry; 2]> {
    let pair = sorted
        .windows(2)
        .find(|pair| pair[0].place == pair[1].place)?;
    Some([&pair[0], &pair[1]])
}

fn same_orbit(a: &Entry, b: &Entry) -> Error {
    let message = format!(
        "entries {} and {} stand for the same elements: symmetries move one to the other",
        a.value.min(b.value),
        a.value.max(b.value)
    );
    Error::malformed("orbit", message)
}

fn broken(message: impl Into<String>) -> Error {
    Error::malformed("sparse", message)
}

#[cfg(test)]
mod tests;
