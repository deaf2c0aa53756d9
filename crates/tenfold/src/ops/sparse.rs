//! Tensors as lists of their entries.

use crate::archive::Archive;
use crate::error::{Error, Hint, Result};
use crate::execute::Execution;
use crate::format::{Effect, Form, Loss, Lost, Profile, Spec};
use crate::model::{
    DType, Endian, Layout, Manifest, Operation, Order, PairIndex, Pairs, Part, Payload, Role,
    TensorInfo, has_zero, is_ieee,
};
use crate::prelude::*;
use crate::threads;
use crate::transform::{Data, Scatter, Tally, View, cast_elements};

/// What becomes of sparse tensors, and of those that could be.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Sparse {
    /// Layouts that the target has are kept, others are written densely.
    #[default]
    AsIs,
    /// Sparse tensors stay sparse where the target has any sparse layout.
    Keep,
    /// All tensors become sparse: their elements whose bits are all 0 are not stored.
    All,
}

/// Lists the entries of tensors that are to be sparse in the target, and chooses the versions that have such lists. What is
/// cast on the way is counted by the tally.
pub(super) fn list_entries(
    from: &Archive,
    candidates: Vec<&'static Profile>,
    spec: &Spec,
    sparse: Sparse,
    options: &Execution<'_>,
) -> Result<(Archive, Vec<&'static Profile>)> {
    if sparse == Sparse::AsIs {
        return Ok((from.clone(), candidates));
    }
    let listing = candidates
        .iter()
        .find_map(|&profile| Some((profile, Listing::of(profile)?)));
    let Some((profile, listing)) = listing else {
        return match sparse {
            Sparse::All => {
                let message = format!("{} has no sparse layout to write", spec.name);
                Err(Error::unsupported("sparse", message))
            }
            _ => Ok((from.clone(), candidates)),
        };
    };
    let all = sparse == Sparse::All;
    let is_sparse = |tensor: &TensorInfo| !tensor.layout.is_dense();
    if !all && !from.manifest().tensors.iter().any(is_sparse) {
        return Ok((from.clone(), candidates));
    }
    let listed = list(from, profile, listing, all, options)?;
    let fitting = candidates
        .into_iter()
        .filter(|other| Listing::of(other) == Some(listing));
    Ok((listed, fitting.collect()))
}

/// Sparse tensors that would be written densely, and would be too large.
pub(super) fn check_expansion(from: &Archive, adapted: &Manifest, losses: &mut Vec<Loss>) {
    let limit = from.limits().dense_bytes;
    for (before, after) in from.manifest().tensors.iter().zip(&adapted.tensors) {
        let len = before.dense_len().unwrap_or(u64::MAX);
        if before.layout.is_sparse() && after.layout.is_dense() && len > limit {
            let why = format!("a sparse tensor is written densely up to {limit} bytes");
            let name = Some(before.name.clone());
            let loss = Loss::new(name, Lost::Size(len), why, Effect::Impossible);
            let raise = Hint::RaiseLimit {
                name: "dense_bytes",
                needed: Some(len),
            };
            losses.push(loss.hinting(raise).hinting(Hint::KeepSparse));
        }
    }
}

/// How entries are listed.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Listing {
    /// Records of a single column-major index and a value.
    Pairs,
    /// Values, and the coordinates of all of them.
    Coordinates,
}

impl Listing {
    /// The listing that a version has.
    fn of(profile: &Profile) -> Option<Self> {
        [Listing::Pairs, Listing::Coordinates]
            .into_iter()
            .find(|listing| (profile.can.layout)(&listing.layout(0)))
    }

    fn layout(self, nnz: u64) -> Layout {
        match self {
            Listing::Pairs => Pairs::new(nnz, PairIndex::ColumnMajor).into(),
            Listing::Coordinates => Layout::Coo { nnz },
        }
    }

    /// The order in which entries are listed.
    fn order(self) -> Order {
        match self {
            Listing::Pairs => Order::ColumnMajor,
            Listing::Coordinates => Order::RowMajor,
        }
    }

    /// Dense elements in that order.
    fn form(self, dtype: DType) -> Form {
        Form {
            dtype,
            order: self.order(),
            endian: Endian::Little,
        }
    }
}

/// Lists the entries of sparse tensors whose layout `profile` does not have, or that are not cast in it, and if `all` also
/// those of dense tensors.
fn list(
    archive: &Archive,
    profile: &Profile,
    listing: Listing,
    all: bool,
    options: &Execution<'_>,
) -> Result<Archive> {
    let read = archive.watched(options.control);
    let tensors = &archive.manifest().tensors;
    let list = |tensor: &TensorInfo, (): &mut ()| {
        let changes = if tensor.layout.is_sparse() {
            let is_cast = tensor.stored_dtype() != tensor.dtype;
            let is_listable = tensor.dtype.width().is_some()
                && has_zero(tensor.stored_dtype())
                && has_zero(tensor.dtype);
            if (profile.can.layout)(&tensor.layout) {
                is_listable && !tensor.casts_as_stored()
            } else {
                is_listable || !is_cast
            }
        } else {
            let is_quantized = matches!(tensor.layout, Layout::Decoded | Layout::Opaque { .. });
            all && !is_quantized && tensor.dtype.width().is_some()
        };
        // What has no dimensions has no coordinates: it stays dense.
        let is_scalar = listing == Listing::Coordinates && tensor.shape.is_empty();
        if !changes || is_scalar || tensor.defect.is_some() {
            return Ok(tensor.clone());
        }
        Entries::collect(read.data().counted(options.tally), tensor, listing)
            .and_then(|entries| entries.describe(tensor, listing))
            .map_err(|error| error.in_tensor(&tensor.name))
    };
    let listed = threads::map(options.threads, tensors, list)?;
    let mut manifest = archive.manifest().clone();
    manifest.tensors = listed.into();
    Ok(archive.with_manifest(manifest))
}

/// A tensor whose records are sorted, without those that are 0 and stand for nothing else, and with values of its type in a byte order.
pub(super) fn sort_pairs(
    archive: &Archive,
    tensor: &TensorInfo,
    endian: Endian,
    tally: &Tally,
) -> Result<TensorInfo> {
    let Layout::Pairs(pairs) = &tensor.layout else {
        return Ok(tensor.clone());
    };
    if pairs.index != PairIndex::ColumnMajor || !tensor.casts_as_stored() {
        // It is written densely.
        return Ok(tensor.clone());
    }
    let data = archive.data().counted(tally);
    let scatter = Scatter::load(data, tensor.readable()?, Listing::Pairs.order())?;
    scatter.check_orbits()?;
    let mut values = Vec::new();
    for (_, value) in scatter.entries() {
        values.extend_from_slice(value);
    }
    let places = scatter.entries().map(|(place, _)| place);
    // Negated, a zero that is stored is -0, and one that is not is 0.
    let negates = pairs
        .orbits
        .iter()
        .any(|by| by.operation != Operation::Same);
    let keeps_zeros =
        negates && matches!(tensor.dtype, DType::Number(scalar, _) if is_ieee(scalar));
    let entries = Entries::cast(data, tensor, (endian, keeps_zeros), places, values)?;
    let mut sorted = entries.describe(tensor, Listing::Pairs)?;
    if let Layout::Pairs(kept) = &mut sorted.layout {
        kept.orbits.clone_from(&pairs.orbits);
    }
    for part in &mut sorted.parts {
        part.endian = endian;
    }
    Ok(sorted)
}

/// Entries by place.
#[derive(Default)]
struct Entries {
    places: Vec<u64>,
    values: Vec<u8>,
}

impl Entries {
    fn collect(data: Data<'_>, tensor: &TensorInfo, listing: Listing) -> Result<Self> {
        let mut entries = Self::default();
        if !tensor.layout.is_sparse() {
            let width = tensor.dtype.width().unwrap_or(1);
            let view = View::dense(data, tensor, &listing.form(tensor.dtype))?;
            let mut pieces = view.pieces()?;
            let mut piece = Vec::new();
            let mut place = 0;
            while pieces.next(&mut piece)? {
                for value in piece.chunks_exact(width) {
                    entries.push(place, value, false);
                    place += 1;
                }
                let held = entries.places.len() as u64 * (8 + width as u64);
                if held > data.limits.tensor_memory {
                    let message = "too many elements are not 0: their list does not fit the limit \
                                   (tensor_memory); write it densely";
                    return Err(Error::limit("memory", message).raised_by("tensor_memory", None));
                }
            }
            return Ok(entries);
        }
        let mut scatter = Scatter::load(data, tensor, listing.order())?;
        scatter.complete()?;
        let mut values = Vec::new();
        let mut turned = Vec::new();
        let places = (0..scatter.entries().len()).filter_map(|n| {
            let place = scatter.entry(n, &mut turned)?;
            values.extend_from_slice(&turned);
            Some(place)
        });
        let places: Vec<_> = places.collect();
        Self::cast(data, tensor, (Endian::Little, false), places, values)
    }

    /// From little-endian values as they are stored, to some byte order, with or without those that are 0.
    fn cast(
        data: Data<'_>,
        tensor: &TensorInfo,
        (endian, keeps_zeros): (Endian, bool),
        places: impl IntoIterator<Item = u64>,
        mut values: Vec<u8>,
    ) -> Result<Self> {
        let width = tensor.dtype.width().ok_or_else(|| {
            let message = format!("sparse elements of {}", tensor.dtype);
            Error::unsupported("sparse", message)
        })?;
        let from = (tensor.stored_dtype(), Endian::Little);
        cast_elements(from, (tensor.dtype, endian), &mut values, data.tally)?;
        let mut entries = Self::default();
        for (place, value) in places.into_iter().zip(values.chunks_exact(width)) {
            entries.push(place, value, keeps_zeros);
        }
        Ok(entries)
    }

    fn push(&mut self, place: u64, value: &[u8], keeps_zeros: bool) {
        if keeps_zeros || value.iter().any(|&byte| byte != 0) {
            self.places.push(place);
            self.values.extend_from_slice(value);
        }
    }

    fn describe(self, tensor: &TensorInfo, listing: Listing) -> Result<TensorInfo> {
        let mut described = tensor.clone();
        described.layout = listing.layout(self.places.len() as u64);
        let inline = |bytes: Vec<u8>| Payload::Inline(bytes.into());
        described.parts = match listing {
            Listing::Pairs => {
                let width = tensor.dtype.width().unwrap_or(1);
                let mut bytes = Vec::new();
                for (place, value) in self.places.iter().zip(self.values.chunks_exact(width)) {
                    bytes.extend_from_slice(&place.to_le_bytes());
                    bytes.extend_from_slice(value);
                }
                Part::new(Role::Values, tensor.dtype, inline(bytes)).into()
            }
            Listing::Coordinates => {
                let coords = coordinates(&tensor.shape, &self.places);
                let parts = vec![
                    Part::new(Role::Values, tensor.dtype, inline(self.values)),
                    Part::new(Role::Coords, DType::U64, inline(coords)),
                ];
                parts.into()
            }
        };
        Ok(described)
    }
}

/// The indices of row-major places, one dimension after the other.
fn coordinates(shape: &[u64], places: &[u64]) -> Vec<u8> {
    let mut coords = Vec::new();
    for k in 0..shape.len() {
        let behind = shape.iter().skip(k + 1).product::<u64>().max(1);
        let dim = shape.get(k).copied().unwrap_or(1).max(1);
        for place in places {
            coords.extend_from_slice(&(place / behind % dim).to_le_bytes());
        }
    }
    coords
}
