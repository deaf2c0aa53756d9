//! Elements that are listed with their places: what the sparse layouts share.
//!
//! A layout finds the entries that are wanted, of the whole tensor or of a slice, piece by piece ([`Search`]). They are held
//! in memory, sorted by place, and written out piece by piece ([`Scatter`]).

use super::{Arrangement, Deviation, Opening, Whole, of};
use crate::error::{Error, Result};
use crate::model::{Axis, DType, Endian, Operation, Order, Part, Role, Selection, TensorInfo};
use crate::prelude::*;
use crate::transform::elements::ElementMap;
use crate::transform::select::{Gather, Runs, Selected, Stored};
use crate::transform::strides::strides;
use crate::transform::symmetric::{Apply, NO_NEGATIVE, Orbits};
use crate::transform::{Body, Data, as_size};

/// Entries that are looked at together.
pub(super) const CHUNK: u64 = 1 << 16;

/// What a layout of listed elements answers by itself. Everything else follows from it.
pub(super) trait Listing: Sync {
    /// Whether the entries have an order, which formats may insist on.
    const RISES: bool = false;

    /// Finds the entries that a search wants.
    fn find(&self, search: &mut Search<'_, '_>) -> Result<()>;
}

impl<L: Listing> Arrangement for L {
    fn whole<'a, 't>(&self, tensor: &Opening<'a, 't>, order: Order) -> Result<Whole<'a, 't>> {
        let mut scatter = Scatter::load(tensor.data, tensor.tensor, order)?;
        scatter.complete()?;
        let dtype = tensor.tensor.stored_dtype();
        Ok(Whole::Made(Body::Scatter(scatter), dtype, Endian::Little))
    }

    fn some<'a>(&self, tensor: &Opening<'a, '_>, selection: Selection) -> Result<Selected<'a>> {
        let info = tensor.tensor;
        let elements = selection.elements();
        if info.layout.symmetries().is_empty() {
            let steps = selection.strides()?;
            let scatter = Scatter::find(tensor.data, info, &selection.axes, &steps)?;
            return Selected::listed(scatter, elements);
        }
        // An entry stands for places anywhere: all of them are found before some are chosen.
        let mut scatter = Scatter::load(tensor.data, info, Order::RowMajor)?;
        scatter.complete()?;
        scatter.choose(&info.shape, &selection)?;
        Selected::listed(scatter, elements)
    }

    fn entries(&self, search: &mut Search<'_, '_>) -> Result<()> {
        self.find(search)
    }

    fn check(&self, tensor: &Opening<'_, '_>) -> Result<Vec<Deviation>> {
        let scatter = Scatter::load(tensor.data, tensor.tensor, Order::RowMajor)?;
        let warnings = scatter.check_orbits()?.into_iter();
        let mut deviations: Vec<_> = warnings.map(Deviation::of_symmetry).collect();
        if L::RISES && !scatter.is_sorted() {
            deviations.push(Deviation {
                rule: "sparse",
                message: "the columns of a row are not in ascending order".to_owned(),
                is_content: true,
            });
        }
        Ok(deviations)
    }

    fn expands(&self, _: &TensorInfo) -> bool {
        true
    }

    fn is_light(&self) -> bool {
        false
    }
}

/// The wanted entries of a tensor while they are looked for.
pub(crate) struct Search<'s, 'a> {
    pub(super) tensor: Opening<'a, 's>,
    /// Which indices are wanted, and how far a step along each dimension goes in the result.
    pub(super) axes: &'s [Axis],
    pub(super) steps: &'s [u64],
    /// How many entries may be wanted.
    most: usize,
    /// Places in the result, and the numbers of the entries.
    wanted: Vec<(u64, u64)>,
    /// Their values, little-endian.
    values: Vec<u8>,
}

impl<'s, 'a> Search<'s, 'a> {
    fn new(tensor: Opening<'a, 's>, axes: &'s [Axis], steps: &'s [u64]) -> Result<Self> {
        let dtype = tensor.tensor.stored_dtype();
        let width = dtype
            .width()
            .ok_or_else(|| Error::unsupported("sparse", format!("sparse elements of {dtype}")))?;
        let held = width + size_of::<(u64, u64)>() + size_of::<Entry>();
        Ok(Self {
            tensor,
            axes,
            steps,
            most: as_size(tensor.data.limits.tensor_memory)? / held,
            wanted: Vec::new(),
            values: Vec::new(),
        })
    }

    /// Where an index leads from a place among the dimensions before it, if it is wanted.
    pub(super) fn step(&self, place: Option<u64>, dim: usize, index: u64) -> Option<u64> {
        // Places are below the number of elements of the result, which was counted.
        Some(place? + self.axes[dim].place_of(index)? * self.steps[dim])
    }

    /// Checks an index of entry `n`.
    pub(super) fn in_range(&self, dim: usize, n: u64, index: i128) -> Result<u64> {
        let len = self.axes[dim].dim;
        match u64::try_from(index) {
            Ok(index) if index < len => Ok(index),
            _ => Err(broken(format!(
                "entry {n}: index {index} along dimension {dim}, which has length {len}"
            ))),
        }
    }

    /// Notes entry `n`, if it has a place in the result.
    pub(super) fn want(&mut self, place: Option<u64>, n: u64) -> Result<bool> {
        let Some(place) = place else {
            return Ok(false);
        };
        if self.wanted.len() >= self.most {
            let message = format!(
                "more than {} entries are needed at once, which the limit (tensor_memory) does not allow",
                self.most
            );
            return Err(Error::limit("memory", message).raised_by("tensor_memory", None));
        }
        self.wanted.push((place, n));
        Ok(true)
    }

    /// Adds the value of the entry that was noted last.
    pub(super) fn push_value(&mut self, value: &[u8]) {
        self.values.extend_from_slice(value);
    }

    /// Reads the values of the noted entries from a part that has one for each of `nnz`.
    pub(super) fn fetch_values(&mut self, nnz: u64) -> Result<()> {
        let part = self.tensor.part(&Role::Values)?;
        if part.dtype.bytes_for(nnz) != Some(part.payload.len()) {
            let message = format!("{} bytes of values for {nnz} entries", part.payload.len());
            return Err(broken(message));
        }
        let mut runs = Runs::default();
        for (out, &(_, n)) in self.wanted.iter().enumerate() {
            runs.push(n, 1, out);
        }
        let stored = Stored::part(self.tensor.data, part)?;
        Gather::new(&stored).fill(&mut runs, self.wanted.len(), &mut self.values)
    }

    /// A part of `expected` integers.
    pub(super) fn integers(&self, role: &Role, expected: Option<u64>) -> Result<Integers<'a>> {
        let part = self.tensor.part(role)?;
        let expected_len = expected.and_then(|n| part.dtype.bytes_for(n));
        if expected_len != Some(part.payload.len()) {
            let message = format!(
                "{:?} has {} bytes, but {} numbers of {} are needed",
                role.name(),
                part.payload.len(),
                expected.map_or_else(|| "too many".to_owned(), |n| n.to_string()),
                part.dtype
            );
            return Err(broken(message));
        }
        Integers::new(self.tensor.data, part)
    }

    /// The entries by place, none twice.
    fn finish(mut self) -> Result<(Vec<Entry>, Vec<u8>, bool)> {
        let part = self.tensor.part(&Role::Values)?;
        let little = (part.dtype, Endian::Little);
        ElementMap::new(part.dtype, part.endian, little.0, little.1)?
            .apply(&mut self.values, None)?;
        let is_sorted = self.wanted.is_sorted_by_key(|(place, _)| *place);
        let mut places: Vec<_> = (self.wanted.iter().enumerate())
            .map(|(value, &(place, _))| Entry {
                place,
                value,
                operation: Operation::Same,
            })
            .collect();
        places.sort_unstable_by_key(|entry| (entry.place, entry.value));
        if let Some([a, b]) = first_shared_place(&places) {
            let message = format!(
                "entries {} and {} are at the same place",
                self.wanted[a.value].1, self.wanted[b.value].1
            );
            return Err(broken(message));
        }
        Ok((places, self.values, is_sorted))
    }
}

/// Integers of a part, whatever they are stored as, read where they are wanted.
pub(super) struct Integers<'a> {
    stored: Stored<'a>,
    map: ElementMap,
    is_signed: bool,
}

impl<'a> Integers<'a> {
    fn new(data: Data<'a>, part: &Part) -> Result<Self> {
        let is_signed =
            matches!(part.dtype, DType::Number(scalar, _) if scalar.is_signed_integer());
        let wide = if is_signed { DType::I64 } else { DType::U64 };
        Ok(Self {
            stored: Stored::random(data, part)?,
            map: ElementMap::new(part.dtype, part.endian, wide, Endian::Little)?.strict(),
            is_signed,
        })
    }

    pub(super) fn reader(&self) -> IntegerReader<'_, 'a> {
        IntegerReader {
            integers: self,
            gather: Gather::new(&self.stored),
            bytes: Vec::new(),
        }
    }
}

pub(super) struct IntegerReader<'i, 'a> {
    integers: &'i Integers<'a>,
    gather: Gather<'i, 'a>,
    bytes: Vec<u8>,
}

impl IntegerReader<'_, '_> {
    /// The integers of some runs, `count` in all.
    pub(super) fn read(
        &mut self,
        runs: &mut Runs,
        count: usize,
    ) -> Result<impl ExactSizeIterator<Item = i128> + '_> {
        self.gather.fill(runs, count, &mut self.bytes)?;
        self.integers.map.apply(&mut self.bytes, None)?;
        let is_signed = self.integers.is_signed;
        let numbers = self.bytes.as_chunks::<8>().0.iter();
        Ok(numbers.map(move |bytes| {
            if is_signed {
                i64::from_le_bytes(*bytes).into()
            } else {
                u64::from_le_bytes(*bytes).into()
            }
        }))
    }
}

/// The entries of a sparse tensor, sorted by their place.
pub(crate) struct Scatter {
    entries: Vec<Entry>,
    /// Little-endian.
    values: Vec<u8>,
    width: usize,
    sorted: bool,
    orbits: Orbits,
    /// What the operations do to values, in the order of [`Operation::ALL`]; empty without symmetries.
    operations: Vec<Option<Apply>>,
    memory: u64,
}

/// The place of an entry, which value it has, and what is done to that.
#[derive(Clone, Copy)]
struct Entry {
    place: u64,
    value: usize,
    operation: Operation,
}

impl Scatter {
    /// Reads and checks all entries: every index in range, no place twice. Places are those of a dense tensor in an
    /// order. Entries stand for their places alone until [`complete`](Self::complete) is called.
    pub(crate) fn load(data: Data<'_>, tensor: &TensorInfo, order: Order) -> Result<Self> {
        let selection = Selection::whole(&tensor.shape);
        Self::find(
            data,
            tensor,
            &selection.axes,
            &strides(&tensor.shape, order)?,
        )
    }

    /// Reads and checks the entries at some indices, with places in what is made of these.
    fn find(data: Data<'_>, tensor: &TensorInfo, axes: &[Axis], steps: &[u64]) -> Result<Self> {
        let opening = Opening { data, tensor };
        let mut search = Search::new(opening, axes, steps)?;
        of(&tensor.layout).entries(&mut search)?;
        let (entries, values, sorted) = search.finish()?;
        let dtype = tensor.stored_dtype();
        let symmetries = tensor.layout.symmetries();
        let operations = if symmetries.is_empty() {
            Vec::new()
        } else {
            let apply = |operation| Apply::new(operation, dtype, Endian::Little).ok();
            Operation::ALL.map(apply).into()
        };
        Ok(Self {
            entries,
            values,
            width: dtype.width().unwrap_or(1),
            sorted,
            orbits: Orbits::new(symmetries, dtype, &tensor.shape, steps)?,
            operations,
            memory: data.limits.tensor_memory,
        })
    }

    /// Keeps the selected ones of all entries of a row-major tensor, with their places in the selection.
    fn choose(&mut self, shape: &[u64], selection: &Selection) -> Result<()> {
        let all = strides(shape, Order::RowMajor)?;
        let steps = selection.strides()?;
        let choose = |mut entry: Entry| {
            let mut place = 0;
            let mut rest = entry.place;
            for ((axis, all), step) in selection.axes.iter().zip(&all).zip(&steps) {
                place += axis.place_of(rest / all)? * step;
                rest %= all;
            }
            entry.place = place;
            Some(entry)
        };
        self.entries = self.entries.drain(..).filter_map(choose).collect();
        self.entries.sort_unstable_by_key(|entry| entry.place);
        Ok(())
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
        let mut wrapped = None;
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
            let wraps = |(_, operation): &&(u64, Operation)| {
                let apply = self.apply(*operation);
                let value = self.stored_value(entry);
                apply.is_some_and(|apply| apply.first_wrapped(value).is_some())
            };
            if wrapped.is_none() {
                wrapped = orbit.places.iter().find(wraps).map(|_| entry.value);
            }
            let varies = |operation: &Operation| !self.is_fixed(entry, *operation);
            if let Some(operation) = orbit.fixing.iter().find(|op| varies(op))
                && warnings.is_empty()
            {
                warnings.push(format!(
                    "a symmetry moves entry {} onto itself as {operation}, which changes it",
                    entry.value
                ));
            }
        }
        warnings.extend(wrapped.map(|entry| {
            format!("entry {entry} is the lowest integer, and a symmetry negates it: {NO_NEGATIVE}")
        }));
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

    /// Bytes of an element.
    pub(in crate::transform) fn width(&self) -> usize {
        self.width
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
    pub(in crate::transform) fn stored_from(&self, at: u64) -> Option<u64> {
        let width = self.width as u64;
        let first = at / width;
        let from = self.entries.partition_point(|entry| entry.place < first);
        self.entries.get(from).map(|entry| entry.place * width)
    }

    /// The dense bytes from `at` on; `out` comes filled with zeros.
    pub(in crate::transform) fn read_into(&self, at: u64, out: &mut [u8]) {
        let width = self.width as u64;
        let first = at / width;
        let end = first + out.len() as u64 / width;
        let from = self.entries.partition_point(|entry| entry.place < first);
        for entry in self.entries[from..]
            .iter()
            .take_while(|entry| entry.place < end)
        {
            // Inside `out`, so it fits.
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

pub(super) fn broken(message: impl Into<String>) -> Error {
    Error::malformed("sparse", message)
}

#[cfg(test)]
mod tests;
