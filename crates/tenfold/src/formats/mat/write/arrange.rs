//! The order of a file, and tensors of fewer than two dimensions as matrices.

use super::tree::Tree;
use crate::error::Result;
use crate::format::{Arranged, Effect, Loss, Lost};
use crate::model::{
    DType, Layout, Manifest, PairIndex, Part, Payload, Role, Shape, Strides, TensorInfo,
};
use crate::prelude::*;

/// Puts tensors into the order of the file, makes matrices of lines, and says what has no place in it.
pub(in crate::formats::mat) fn arrange(what: &Manifest) -> Result<Arranged> {
    let mut manifest = what.clone();
    let mut losses = Vec::new();
    for tensor in &mut manifest.tensors {
        if tensor.shape.len() >= 2 || tensor.defect.is_some() {
            continue;
        }
        let before = tensor.shape.clone();
        let (effect, why) = match as_matrix(tensor) {
            Ok(()) => {
                let why = format!("written as a matrix of {:?}", &*tensor.shape);
                (Effect::Rearranged, why)
            }
            Err(why) => (Effect::Impossible, why.to_owned()),
        };
        let what = Lost::Shape(before);
        losses.push(Loss::new(Some(tensor.name.clone()), what, why, effect));
    }
    let tree = Tree::of(&manifest);
    for (place, why) in tree.refused() {
        let tensor = manifest.tensors.get(*place);
        let name = tensor.map(|tensor| tensor.name.clone());
        losses.push(Loss::new(name, Lost::Name, *why, Effect::Impossible));
    }
    let order = tree.order();
    let keys: Vec<String> = tree.lost().iter().map(|key| (*key).to_owned()).collect();
    for key in keys {
        manifest.metadata.remove(&key);
        let why = "a tensor has this name, or a part of it";
        losses.push(Loss::new(None, Lost::Metadata(key), why, Effect::Dropped));
    }
    // What has no place stays where it is: it is refused.
    if order.len() == manifest.tensors.len() && !order.is_sorted() {
        let tensors = order.iter().filter_map(|place| what_at(&manifest, *place));
        manifest.tensors = tensors.collect();
    }
    Ok(Arranged::new(manifest, losses))
}

fn what_at(manifest: &Manifest, place: usize) -> Option<TensorInfo> {
    manifest.tensors.get(place).cloned()
}

/// A scalar becomes a matrix of 1 x 1, a line one of a single row. The elements stay where they are.
fn as_matrix(tensor: &mut TensorInfo) -> Result<(), &'static str> {
    let count = tensor.shape.first().copied().unwrap_or(1);
    let is_scalar = tensor.shape.is_empty();
    tensor.layout = match core::mem::replace(&mut tensor.layout, Layout::RowMajor) {
        Layout::RowMajor | Layout::ColumnMajor | Layout::Chunked => Layout::RowMajor,
        Layout::Decoded => Layout::Decoded,
        Layout::Strided(strides) => {
            let mut steps = vec![0];
            steps.extend(strides.steps.first());
            steps.resize(2, 0);
            Strides::new(strides.offset, steps).into_layout()
        }
        // A single row, in which the places are columns.
        Layout::Coo { nnz } if !is_scalar => {
            let starts = [0, nnz].map(u64::to_le_bytes).concat();
            let starts = Payload::Inline(starts.into());
            for part in &mut tensor.parts {
                if part.role == Role::Coords {
                    part.role = Role::Indices;
                }
            }
            tensor
                .parts
                .push(Part::new(Role::Indptr, DType::U64, starts));
            Layout::Csr { nnz }
        }
        Layout::Pairs(mut pairs) if pairs.orbits.is_empty() && !is_scalar => {
            pairs.index = PairIndex::ColumnMajor;
            Layout::Pairs(pairs)
        }
        Layout::Records { distance } => {
            let width = tensor.dtype.width().map_or(0, |width| width as u64);
            if width == 0 || !distance.is_multiple_of(width) {
                tensor.layout = Layout::Records { distance };
                return Err("records with other data between them are no matrix of one row");
            }
            Strides::new(0, [0, distance / width]).into_layout()
        }
        other => {
            tensor.layout = other;
            return Err("a matrix has two dimensions at least");
        }
    };
    tensor.shape = Shape::from([1, count].as_slice());
    Ok(())
}

trait IntoLayout {
    fn into_layout(self) -> Layout;
}

impl IntoLayout for Strides {
    fn into_layout(self) -> Layout {
        Layout::Strided(Box::new(self))
    }
}
