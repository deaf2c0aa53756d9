//! Block-sparse tensors: which elements are stored, in the order of the file.

use super::codec::Dimension;
use super::yaml::Node;
use crate::error::{Error, ErrorKind, Result};
use crate::format::Context;
use crate::io::Limits;
use crate::model::SourceId;
use crate::prelude::*;

/// Indices that are looked at to find the stored ones, at most: a small file could ask for any number.
const MAX_WORK: u64 = 1 << 28;

/// The conditions as they are in the file.
pub(super) struct Conditions(Vec<Condition>);

struct Condition {
    /// Dimension and name of the property.
    properties: Vec<(usize, String)>,
    /// The combinations of values that are stored.
    tuples: Vec<Vec<i64>>,
}

impl Conditions {
    /// `None` for a tensor of which everything is stored.
    pub(super) fn parse(tensor: &Node, rank: usize) -> Result<Option<Self>> {
        let Some(node) = tensor.get("nonZeroCondition") else {
            return Ok(None);
        };
        let Some(all) = node.get("all") else {
            return match node.entries() {
                Some([]) => Ok(None),
                _ => Err(bad(node, "a nonZeroCondition other than `all`")),
            };
        };
        let items = all.items().ok_or_else(|| bad(all, "`all` is not a list"))?;
        let conditions: Vec<_> = items
            .into_iter()
            .map(|item| Condition::parse(item, rank))
            .collect::<Result<_>>()?;
        Ok((!conditions.is_empty()).then_some(Self(conditions)))
    }

    /// Finds the properties in the files beside the tensor.
    pub(super) fn resolve(self, cx: &mut Context<'_>, dimensions: &[Dimension]) -> Result<Blocks> {
        let mut resolved = Vec::with_capacity(self.0.len());
        // Each file is read once, and each list is held once, however many conditions name it.
        let mut files: LookupMap<String, Node> = LookupMap::default();
        let mut lists: LookupMap<(usize, String), Arc<[i64]>> = LookupMap::default();
        for condition in self.0 {
            let mut values = Vec::with_capacity(condition.properties.len());
            for (place, property) in condition.properties {
                let dimension = dimensions.get(place);
                let kind = dimension.and_then(|dimension| dimension.kind.as_deref());
                let (Some(dimension), Some(kind)) = (dimension, kind) else {
                    let message =
                        format!("dimension {place} has no type, so that {property:?} is not known");
                    return Err(Error::malformed("cc4s.properties", message));
                };
                if let Some(list) = lists.get(&(place, property.clone())) {
                    values.push((place, list.clone()));
                    continue;
                }
                if !files.contains_key(kind) {
                    files.insert(kind.to_owned(), load(cx, kind)?);
                }
                let list = match files.get(kind) {
                    Some(file) => list_of(file, kind, &property, dimension.length)?,
                    None => Arc::default(),
                };
                lists.insert((place, property), list.clone());
                values.push((place, list));
            }
            resolved.push((values, condition.tuples));
        }
        Ok(Blocks {
            lengths: dimensions
                .iter()
                .map(|dimension| dimension.length)
                .collect(),
            conditions: resolved,
        })
    }
}

impl Condition {
    fn parse(node: &Node, rank: usize) -> Result<Self> {
        let list = |key: &str| {
            let found = node.get(key).and_then(Node::items);
            found.ok_or_else(|| bad(node, format!("a condition without a list of {key}")))
        };
        let mut properties = Vec::new();
        for item in list("properties")? {
            let place = item.get("dimension").and_then(|n| n.value().as_u64());
            let place = place.and_then(|n| usize::try_from(n).ok());
            let place = place.filter(|&place| place < rank);
            let name = item.get("property").and_then(Node::text);
            let (Some(place), Some(name)) = (place, name) else {
                let message = format!("a property needs a dimension below {rank} and a name");
                return Err(bad(item, message));
            };
            properties.push((place, name.to_owned()));
        }
        let mut tuples = Vec::new();
        let mut known = LookupMap::new();
        for item in list("nonZeros")? {
            let values = item.items().unwrap_or_default();
            let values: Option<Vec<i64>> = values.iter().map(|n| n.value().as_i64()).collect();
            let values = values.filter(|values| values.len() == properties.len());
            let Some(values) = values else {
                let message = format!("{} whole numbers are expected", properties.len());
                return Err(bad(item, message));
            };
            // Twice the same block would give elements two values.
            if known.insert(values.clone(), ()).is_some() {
                return Err(bad(item, "the same combination twice"));
            }
            tuples.push(values);
        }
        Ok(Self { properties, tuples })
    }
}

fn bad(node: &Node, message: impl Into<String>) -> Error {
    node.error("cc4s.nonzero", message)
}

/// The file with the properties of dimensions of this type.
fn load(cx: &mut Context<'_>, kind: &str) -> Result<Node> {
    let name = format!("{kind}.yaml");
    let id = cx.sibling(&name).map_err(|cause| match cause.kind() {
        ErrorKind::NotFound => {
            let message =
                format!("the properties of {kind} should be in {name:?}, which is not there");
            Error::new(ErrorKind::NotFound, "cc4s.properties", message).because(cause)
        }
        _ => cause,
    })?;
    let source = cx.open(id).filter(|_| id != SourceId::MAIN);
    let source = source.ok_or_else(|| wrong(format!("{name:?} is the tensor itself")))?;
    Node::read(&*source, cx.limits()).map_err(|error| error.in_file(id, &name))
}

/// The property of every index of a dimension of this type.
fn list_of(root: &Node, kind: &str, property: &str, length: u64) -> Result<Arc<[i64]>> {
    let name = format!("{kind}.yaml");
    let list = root
        .get("propertyIndices")
        .and_then(|all| all.get(property));
    let Some(items) = list.and_then(Node::items) else {
        return Err(wrong(format!(
            "{name} has no list propertyIndices.{property}"
        )));
    };
    if (items.len() as u64) < length {
        let found = items.len();
        let message =
            format!("{name} has {property} for {found} indices, the dimension has {length}");
        return Err(wrong(message));
    }
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let values = items.iter().take(length).map(|item| item.value().as_i64());
    let values: Option<Arc<[i64]>> = values.collect();
    values.ok_or_else(|| wrong(format!("{name}: {property} is not a list of whole numbers")))
}

fn wrong(message: String) -> Error {
    Error::malformed("cc4s.properties", message)
}

/// The properties of the indices of one dimension.
type Property = (usize, Arc<[i64]>);

/// The conditions with the values of all properties.
pub(super) struct Blocks {
    lengths: Vec<u64>,
    conditions: Vec<(Vec<Property>, Vec<Vec<i64>>)>,
}

impl Blocks {
    /// How many elements are stored.
    pub(super) fn count(&self) -> Result<u64> {
        self.check_work()?;
        let mut total = 0u64;
        self.each(&mut |block| {
            let mut size = 1u64;
            for dimension in block {
                size = size.checked_mul(dimension.len())?;
            }
            total = total.checked_add(size)?;
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

    /// The indices of the `nnz` stored elements: all of the first dimension, then all of the second, and so on.
    pub(super) fn coords(&self, nnz: u64, limits: &Limits) -> Result<Vec<u8>> {
        let too_large = || {
            let message =
                format!("the indices of {nnz} elements are more than may be in memory at once");
            Error::limit("cc4s.nonzero", message).raised_by("tensor_memory")
        };
        let bytes = nnz.checked_mul(8 * self.lengths.len() as u64);
        let bytes = bytes.filter(|&bytes| bytes <= limits.tensor_memory);
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.ok_or_else(too_large)?;
        let mut columns = vec![Vec::new(); self.lengths.len()];
        for column in &mut columns {
            column.reserve_exact(bytes / self.lengths.len().max(1));
        }
        self.each(&mut |block| {
            let size: u64 = block.iter().map(Indices::len).product();
            let mut fast = 1u64;
            for (dimension, column) in block.iter().zip(&mut columns) {
                let len = dimension.len();
                for n in 0..size {
                    column.extend_from_slice(&dimension.get(n / fast % len)?.to_le_bytes());
                }
                fast *= len;
            }
            Some(())
        })
        .ok_or_else(too_large)?;
        Ok(columns.concat())
    }

    fn check_work(&self) -> Result<()> {
        let blocks = self.conditions.iter().try_fold(1u64, |all, (_, tuples)| {
            all.checked_mul(tuples.len() as u64)
        });
        let indices = self
            .conditions
            .iter()
            .flat_map(|(properties, _)| properties);
        let indices: u64 = indices.map(|(_, values)| values.len() as u64 + 1).sum();
        match blocks.and_then(|blocks| blocks.checked_mul(indices.max(1))) {
            Some(work) if work <= MAX_WORK => Ok(()),
            _ => {
                let message = "the conditions have more combinations than are looked at";
                Err(Error::limit("cc4s.nonzero", message))
            }
        }
    }

    /// Every block in the order of the file: one combination for each condition, the first condition fastest.
    fn each(&self, put: &mut dyn FnMut(&[Indices]) -> Option<()>) -> Option<()> {
        let counts: Vec<usize> = self
            .conditions
            .iter()
            .map(|(_, tuples)| tuples.len())
            .collect();
        let mut selected = vec![0usize; counts.len()];
        if counts.contains(&0) {
            return Some(());
        }
        loop {
            put(&self.block(&selected))?;
            let mut places = selected.iter_mut().zip(&counts);
            let moved = places.any(|(place, &count)| {
                *place = (*place + 1) % count;
                *place != 0
            });
            if !moved {
                return Some(());
            }
        }
    }

    /// The indices of each dimension that have every selected value.
    fn block(&self, selected: &[usize]) -> Vec<Indices> {
        let mut block: Vec<_> = self.lengths.iter().map(|&len| Indices::All(len)).collect();
        for ((properties, tuples), &place) in self.conditions.iter().zip(selected) {
            let wanted = tuples.get(place).into_iter().flatten();
            for ((dimension, values), &wanted) in properties.iter().zip(wanted) {
                if let Some(indices) = block.get_mut(*dimension) {
                    indices.keep(values, wanted);
                }
            }
        }
        block
    }
}

/// Indices of one dimension, ascending.
enum Indices {
    All(u64),
    Some(Vec<u64>),
}

impl Indices {
    fn len(&self) -> u64 {
        match self {
            Indices::All(len) => *len,
            Indices::Some(list) => list.len() as u64,
        }
    }

    fn get(&self, n: u64) -> Option<u64> {
        match self {
            Indices::All(_) => Some(n),
            Indices::Some(list) => list.get(usize::try_from(n).ok()?).copied(),
        }
    }

    /// Keeps those whose value is the wanted one.
    fn keep(&mut self, values: &[i64], wanted: i64) {
        let with_value = (0u64..).zip(values).filter(|(_, value)| **value == wanted);
        let matching = with_value.map(|(index, _)| index);
        *self = Indices::Some(match &*self {
            Indices::All(_) => matching.collect(),
            Indices::Some(list) => matching.filter(|n| list.binary_search(n).is_ok()).collect(),
        });
    }
}
