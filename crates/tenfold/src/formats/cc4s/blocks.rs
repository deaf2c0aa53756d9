//! Block-sparse tensors: which elements are stored, in the order of the file.

use core::fmt;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use super::codec::Dimension;
use super::yaml::{Items, Node, Yaml};
use crate::error::{Error, ErrorKind, Result};
use crate::format::Context;
use crate::io::{Limits, zeros};
use crate::model::{Make, SourceId};
use crate::prelude::*;

/// Indices that are looked at to find the stored ones, at most: a small file could ask for any number.
const MAX_WORK: u64 = 1 << 28;

/// The conditions as they are in the file.
pub(super) struct Conditions(Vec<Condition>);

struct Condition {
    /// Dimension and name of the property.
    properties: Vec<(usize, String)>,
    nonzeros: Tuples,
}

/// The combinations of values that are stored, one after the other.
struct Tuples {
    values: Vec<i64>,
    count: usize,
}

impl Tuples {
    fn get(&self, place: usize) -> &[i64] {
        let arity = self.values.len() / self.count.max(1);
        let values = self.values.get(place * arity..(place + 1) * arity);
        values.unwrap_or_default()
    }

    /// The first that is there before.
    fn first_repeated(&self) -> Option<usize> {
        let mut order: Vec<usize> = (0..self.count).collect();
        order.sort_unstable_by_key(|&place| (self.get(place), place));
        let pairs = order.windows(2).filter_map(|pair| match pair {
            [a, b] if self.get(*a) == self.get(*b) => Some(*b),
            _ => None,
        });
        pairs.min()
    }
}

impl Conditions {
    /// `None` for a tensor of which everything is stored.
    pub(super) fn parse(tensor: Node<'_>, rank: usize) -> Result<Option<Self>> {
        let Some(node) = tensor.get("nonZeroCondition") else {
            return Ok(None);
        };
        let Some(all) = node.get("all") else {
            return match node.entries().map(|mut entries| entries.next()) {
                Some(None) => Ok(None),
                _ => Err(bad(node, "a nonZeroCondition other than `all`")),
            };
        };
        let items = all.items().ok_or_else(|| bad(all, "`all` is not a list"))?;
        let conditions: Vec<_> = items
            .map(|item| Condition::parse(item, rank))
            .collect::<Result<_>>()?;
        Ok((!conditions.is_empty()).then_some(Self(conditions)))
    }

    /// Finds the properties in the files beside the tensor.
    pub(super) fn resolve(self, cx: &mut Context<'_>, dimensions: &[Dimension]) -> Result<Blocks> {
        // Each file is read once, and each list is held once, however many dimensions and conditions name it.
        let mut files: LookupMap<String, Yaml> = LookupMap::default();
        let mut lists: LookupMap<(String, String), List> = LookupMap::default();
        let mut filters = Vec::new();
        let mut nonzeros = Vec::new();
        for (number, condition) in self.0.into_iter().enumerate() {
            for (slot, (place, property)) in condition.properties.into_iter().enumerate() {
                let dimension = dimensions.get(place);
                let kind = dimension.and_then(|dimension| dimension.kind.as_deref());
                let (Some(dimension), Some(kind)) = (dimension, kind) else {
                    let message =
                        format!("dimension {place} has no type, so its {property:?} is unknown");
                    return Err(Error::malformed("cc4s.properties", message));
                };
                if !files.contains_key(kind) {
                    files.insert(kind.to_owned(), load(cx, kind)?);
                }
                let key = (kind.to_owned(), property);
                if let (None, Some(file)) = (lists.get(&key), files.get(kind)) {
                    let list = List::new(file.root(), kind, &key.1)?;
                    lists.insert(key.clone(), list);
                }
                let list = lists.get(&key).cloned().unwrap_or_default();
                filters.push(Filter {
                    dimension: place,
                    values: list.of_dimension(&key, dimension.length)?,
                    condition: number,
                    slot,
                });
            }
            nonzeros.push(condition.nonzeros);
        }
        filters.sort_by_key(|filter| filter.dimension);
        Ok(Blocks {
            lengths: dimensions
                .iter()
                .map(|dimension| dimension.length)
                .collect(),
            filters,
            nonzeros,
        })
    }
}

impl Condition {
    fn parse(node: Node<'_>, rank: usize) -> Result<Self> {
        let list = |key: &str| {
            let found = node.get(key).and_then(Node::items);
            found.ok_or_else(|| bad(node, format!("a condition without a list of {key}")))
        };
        let mut properties = Vec::new();
        for item in list("properties")? {
            let place = item.get("dimension").and_then(Node::integer);
            let place = place.and_then(|n| usize::try_from(n).ok());
            let place = place.filter(|&place| place < rank);
            let name = item.get("property").and_then(Node::text);
            let (Some(place), Some(name)) = (place, name) else {
                let message = format!("a property needs a dimension below {rank} and a name");
                return Err(bad(item, message));
            };
            properties.push((place, name.to_owned()));
        }
        let arity = properties.len();
        let items = list("nonZeros")?;
        let mut nonzeros = Tuples {
            values: Vec::new(),
            count: 0,
        };
        let is_short = |item: &Node<'_>| item.items().map_or(0, Items::count) != arity;
        let expected = || format!("expected {arity} whole numbers");
        if let Some(item) = items.clone().find(is_short) {
            return Err(bad(item, expected()));
        }
        nonzeros.count = items.clone().count();
        // As many as were counted in the file: growing would take three times as much in between.
        nonzeros.values.reserve_exact(nonzeros.count * arity);
        for item in items.clone() {
            for value in item.items().into_iter().flatten() {
                let value = value.integer().ok_or_else(|| bad(item, expected()))?;
                nonzeros.values.push(value);
            }
        }
        // Twice the same block would give elements two values.
        if let Some(item) = nonzeros.first_repeated().and_then(|n| items.clone().nth(n)) {
            return Err(bad(item, "the same combination twice"));
        }
        Ok(Self {
            properties,
            nonzeros,
        })
    }
}

fn bad(node: Node<'_>, message: impl Into<String>) -> Error {
    node.error("cc4s.nonzero", message)
}

/// The file with the properties of dimensions of this type.
fn load(cx: &mut Context<'_>, kind: &str) -> Result<Yaml> {
    let name = format!("{kind}.yaml");
    let id = cx.sibling(&name).map_err(|cause| match cause.kind() {
        ErrorKind::NotFound => {
            let message =
                format!("the properties of {kind} should be in {name:?}, which is missing");
            Error::new(ErrorKind::NotFound, "cc4s.properties", message).because(cause)
        }
        _ => cause,
    })?;
    let source = cx.open(id).filter(|_| id != SourceId::MAIN);
    let source = source.ok_or_else(|| wrong(format!("{name:?} is the tensor itself")))?;
    Yaml::read(&*source, cx.limits()).map_err(|error| error.in_file(id, &name))
}

fn wrong(message: String) -> Error {
    Error::malformed("cc4s.properties", message)
}

/// A property of all indices of a type of dimensions.
#[derive(Clone, Default)]
struct List {
    /// The whole numbers that it begins with.
    values: Arc<Vec<i64>>,
    /// How many items it has, whole numbers or not.
    items: usize,
}

impl List {
    fn new(root: Node<'_>, kind: &str, property: &str) -> Result<Self> {
        let list = root
            .get("propertyIndices")
            .and_then(|all| all.get(property));
        let Some(items) = list.and_then(Node::items) else {
            let message = format!("{kind}.yaml has no list propertyIndices.{property}");
            return Err(wrong(message));
        };
        let count = items.clone().count();
        // As many as were counted in the file: growing would take three times as much in between.
        let mut values = Vec::with_capacity(count);
        values.extend(items.map_while(Node::integer));
        Ok(Self {
            values: Arc::new(values),
            items: count,
        })
    }

    /// The property of every index of a dimension of this length.
    fn of_dimension(
        self,
        (kind, property): &(String, String),
        length: u64,
    ) -> Result<Arc<Vec<i64>>> {
        if (self.items as u64) < length {
            let found = self.items;
            let message = format!(
                "{kind}.yaml has {property} for {found} indices, the dimension has {length}"
            );
            return Err(wrong(message));
        }
        if self.values.len() as u64 >= length {
            Ok(self.values)
        } else {
            let message = format!("{kind}.yaml: {property} is not a list of whole numbers");
            Err(wrong(message))
        }
    }
}

/// Which indices of a dimension are stored: those whose value is that of the selected combination of a condition.
struct Filter {
    dimension: usize,
    values: Arc<Vec<i64>>,
    condition: usize,
    /// The place in the combination.
    slot: usize,
}

/// The conditions with the values of all properties.
pub(super) struct Blocks {
    lengths: Vec<u64>,
    /// By dimension.
    filters: Vec<Filter>,
    /// The combinations of each condition.
    nonzeros: Vec<Tuples>,
}

impl Blocks {
    /// How many elements are stored.
    pub(super) fn count(&self) -> Result<u64> {
        self.check_work()?;
        let mut total = 0u64;
        self.each(|_, sizes| {
            total = total.checked_add(product(sizes)?)?;
            Some(())
        })
        .ok_or_else(|| {
            Error::malformed(
                "cc4s.overflow",
                "more stored elements than 64 bits can count",
            )
        })?;
        Ok(total)
    }

    /// The indices of the `nnz` stored elements, to be made when they are read: how many bytes they are, and how.
    pub(super) fn coords(self, nnz: u64, limits: &Limits) -> Result<(u64, Arc<dyn Make>)> {
        let len = nnz.checked_mul(8 * self.lengths.len() as u64);
        let Some(len) = len.filter(|&len| len <= limits.tensor_memory) else {
            let message =
                format!("the indices of {nnz} elements take more memory than is allowed at once");
            return Err(Error::limit("cc4s.nonzero", message).raised_by("tensor_memory", len));
        };
        let coords = Coords {
            blocks: self,
            nnz,
            len,
            made: Mutex::new(None),
        };
        Ok((len, Arc::new(coords)))
    }

    fn check_work(&self) -> Result<()> {
        let blocks = (self.nonzeros.iter())
            .try_fold(1u64, |all, nonzeros| all.checked_mul(nonzeros.count as u64));
        let length = |filter: &Filter| self.lengths.get(filter.dimension).copied().unwrap_or(0);
        let indices = self.filters.iter().map(|filter| length(filter) + 1);
        let indices = indices.fold(self.lengths.len() as u64, u64::saturating_add);
        match blocks.and_then(|blocks| blocks.checked_mul(indices.max(1))) {
            Some(work) if work <= MAX_WORK => Ok(()),
            _ => {
                let message = "the conditions have too many combinations";
                Err(Error::limit("cc4s.nonzero", message))
            }
        }
    }

    /// Every block in the order of the file, with how many indices it has of each dimension: one combination for each
    /// condition, the first condition fastest.
    fn each(&self, mut put: impl FnMut(&[usize], &[u64]) -> Option<()>) -> Option<()> {
        let mut selected = vec![0usize; self.nonzeros.len()];
        if self.nonzeros.iter().any(|nonzeros| nonzeros.count == 0) {
            return Some(());
        }
        let mut sizes = self.lengths.clone();
        loop {
            for filters in self.by_dimension() {
                let size = filters.first().and_then(|f| sizes.get_mut(f.dimension));
                if let Some(size) = size {
                    *size = self.indices(filters, &selected).count() as u64;
                }
            }
            put(&selected, &sizes)?;
            let mut places = selected.iter_mut().zip(&self.nonzeros);
            let moved = places.any(|(place, nonzeros)| {
                *place = (*place + 1) % nonzeros.count;
                *place != 0
            });
            if !moved {
                return Some(());
            }
        }
    }

    /// The filters of each dimension that has any.
    fn by_dimension(&self) -> impl Iterator<Item = &[Filter]> {
        (self.filters).chunk_by(|a, b| a.dimension == b.dimension)
    }

    /// The indices of a dimension that pass its filters, ascending.
    fn indices<'b>(
        &'b self,
        filters: &'b [Filter],
        selected: &[usize],
    ) -> impl Iterator<Item = u64> {
        let wanted = |filter: &Filter| {
            let place = selected.get(filter.condition).copied().unwrap_or(0);
            let nonzeros = self.nonzeros.get(filter.condition);
            nonzeros.and_then(|nonzeros| nonzeros.get(place).get(filter.slot).copied())
        };
        let of = |filter: &'b Filter| (filter.values.as_slice(), wanted(filter));
        let length = filters.first().and_then(|f| self.lengths.get(f.dimension));
        let (values, first) = filters.first().map_or((&[][..], None), of);
        let others: Vec<_> = filters.iter().skip(1).map(of).collect();
        let passes = move |n: u64| {
            others.iter().all(|(values, wanted)| {
                let value = usize::try_from(n).ok().and_then(|n| values.get(n));
                value.copied() == *wanted
            })
        };
        (0..length.copied().unwrap_or(0))
            .zip(values)
            .filter(move |(_, value)| Some(**value) == first)
            .map(|(n, _)| n)
            .filter(move |&n| passes(n))
    }

    /// The indices of all stored elements: all of the first dimension, then all of the second, and so on.
    fn write_coords(&self, nnz: u64, out: &mut [u8]) -> Option<()> {
        let column = usize::try_from(nnz.checked_mul(8)?).ok()?;
        let mut columns: Vec<_> = out.chunks_exact_mut(column.max(8)).collect();
        let mut from = 0usize;
        self.each(|selected, sizes| {
            let len = usize::try_from(product(sizes)?.checked_mul(8)?).ok()?;
            let place = from..from.checked_add(len)?;
            from = place.end;
            if place.is_empty() {
                return Some(());
            }
            let mut filtered = self.by_dimension().peekable();
            let mut fast = 1u64;
            for (dimension, (column, &size)) in columns.iter_mut().zip(sizes).enumerate() {
                let filters = filtered.next_if(|filters| {
                    let first = filters.first();
                    first.is_some_and(|filter| filter.dimension == dimension)
                });
                let kept: Option<Vec<u64>> =
                    filters.map(|filters| self.indices(filters, selected).collect());
                let out = column.get_mut(place.clone())?.as_chunks_mut::<8>().0;
                for (n, out) in (0u64..).zip(out) {
                    let n = n / fast % size;
                    let index = match &kept {
                        None => n,
                        Some(kept) => *kept.get(usize::try_from(n).ok()?)?,
                    };
                    *out = index.to_le_bytes();
                }
                fast = fast.checked_mul(size)?;
            }
            Some(())
        })
    }
}

/// How many elements a block of these sizes has.
fn product(sizes: &[u64]) -> Option<u64> {
    if sizes.contains(&0) {
        return Some(0);
    }
    sizes
        .iter()
        .try_fold(1u64, |all, &size| all.checked_mul(size))
}

/// The indices of the stored elements. They may be very much longer than what the file says of them, so that they are made
/// when somebody reads them, and then kept.
struct Coords {
    blocks: Blocks,
    nnz: u64,
    len: u64,
    made: Mutex<Option<Bytes>>,
}

impl Make for Coords {
    fn make(&self) -> Result<Bytes> {
        // Held while they are made, because others want the same.
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = &*made {
            return Ok(bytes.clone());
        }
        let mut out = zeros(self.len)?;
        let written = self.blocks.write_coords(self.nnz, &mut out);
        written.ok_or_else(|| Error::argument("blocks of other sizes than were counted"))?;
        Ok(made.insert(out.into()).clone())
    }
}

impl fmt::Debug for Coords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Coords({} elements)", self.nnz)
    }
}
