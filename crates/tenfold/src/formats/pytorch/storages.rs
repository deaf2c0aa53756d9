//! Which storages a file gets, and which tensors share them.

use crate::error::{Error, Result};
use crate::format::{Form, Want};
use crate::model::{Codec, DType, Endian, Layout, Payload, TensorInfo};
use crate::prelude::*;

/// A storage to be written.
pub(super) struct Stored {
    /// The tensor that it is made of, by its place in the description.
    pub(super) index: usize,
    pub(super) want: Want,
    /// Its bytes.
    pub(super) len: u64,
}

/// How a tensor lies in its storage, in elements; of types that share a byte in bytes.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// Which of the storages.
    pub(super) storage: usize,
    pub(super) offset: u64,
    pub(super) size: Vec<u64>,
    pub(super) stride: Vec<u64>,
}

/// Storages, and a view of one for every tensor.
pub(super) struct Plan {
    pub(super) stored: Vec<Stored>,
    pub(super) views: Vec<View>,
}

/// Tensors whose bytes lie within those of another share its storage, as they do where they come from.
pub(super) fn plan(tensors: &[(usize, &TensorInfo)]) -> Result<Plan> {
    let covers = covers(tensors);
    let mut sharing = vec![0usize; tensors.len()];
    for cover in &covers {
        if let Some(count) = sharing.get_mut(*cover) {
            *count += 1;
        }
    }
    // Numbered in the order of the tensors that come first.
    let mut numbers: Vec<Option<usize>> = vec![None; tensors.len()];
    let mut stored = Vec::new();
    let mut views = Vec::new();
    for ((_, tensor), cover) in tensors.iter().zip(&covers) {
        let (index, covering) = tensors.get(*cover).copied().ok_or_else(lost)?;
        let is_shared = sharing.get(*cover).is_some_and(|count| *count > 1);
        let keeps_strides = keeps_strides(covering, is_shared);
        let number = numbers.get_mut(*cover).ok_or_else(lost)?;
        let storage = match *number {
            Some(number) => number,
            None => {
                stored.push(storage(index, covering, keeps_strides)?);
                *number.insert(stored.len() - 1)
            }
        };
        views.push(if keeps_strides || is_shared {
            shared_view(tensor, covering, storage)?
        } else {
            own_view(tensor, storage)
        });
    }
    Ok(Plan { stored, views })
}

/// Whether a tensor is written with its strides: where others share its storage, and where that is not the longer way.
fn keeps_strides(tensor: &TensorInfo, is_shared: bool) -> bool {
    if !matches!(tensor.layout, Layout::Strided(_)) || Piece::of(tensor).is_none() {
        return false;
    }
    is_shared
        || tensor
            .dense_len()
            .is_none_or(|len| len >= stored_len(tensor))
}

fn stored_len(tensor: &TensorInfo) -> u64 {
    tensor.parts.first().map_or(0, |part| part.payload.len())
}

fn storage(index: usize, tensor: &TensorInfo, keeps_strides: bool) -> Result<Stored> {
    let dtype = tensor.dtype;
    let (want, len) = if keeps_strides {
        let endian = Endian::Little;
        (Want::Part { dtype, endian }, Some(stored_len(tensor)))
    } else {
        (Want::Dense(Form::canonical(dtype)), tensor.dense_len())
    };
    let len = len.ok_or_else(lost)?;
    Ok(Stored { index, want, len })
}

/// A tensor that has a storage of its own.
fn own_view(tensor: &TensorInfo, storage: usize) -> View {
    let mut size = tensor.shape.to_vec();
    if tensor.dtype.width().is_none()
        && let Some(last) = size.last_mut()
    {
        *last /= 2;
    }
    View {
        storage,
        offset: 0,
        stride: row_major(&size),
        size,
    }
}

/// A tensor in the storage of another, which has it within its bytes.
fn shared_view(tensor: &TensorInfo, covering: &TensorInfo, storage: usize) -> Result<View> {
    let (piece, cover) = (Piece::of(tensor), Piece::of(covering));
    let (piece, cover) = piece.zip(cover).ok_or_else(lost)?;
    let before = piece.range.start.checked_sub(cover.range.start);
    let before = before.ok_or_else(lost)? / piece.width;
    let mut view = own_view(tensor, storage);
    view.offset = before;
    if let Layout::Strided(strides) = &tensor.layout {
        view.offset = before.checked_add(strides.offset).ok_or_else(lost)?;
        view.stride.clone_from(&strides.steps);
    }
    Ok(view)
}

/// Strides of elements that lie side by side, the last index running fastest.
fn row_major(size: &[u64]) -> Vec<u64> {
    let mut step = 1u64;
    let mut strides: Vec<u64> = (size.iter().rev())
        .map(|size| {
            let stride = step;
            step = step.saturating_mul((*size).max(1));
            stride
        })
        .collect();
    strides.reverse();
    strides
}

/// Bytes of a file that are a tensor as they are, or its storage.
struct Piece {
    file: u32,
    range: Range<u64>,
    codec: Option<Codec>,
    dtype: DType,
    endian: Endian,
    width: u64,
}

impl Piece {
    fn of(tensor: &TensorInfo) -> Option<Self> {
        let [part] = tensor.parts.as_slice() else {
            return None;
        };
        let width = tensor.dtype.width()? as u64;
        let is_plain = match tensor.layout {
            Layout::RowMajor => tensor.dense_len() == Some(part.payload.len()),
            Layout::Strided(_) => true,
            _ => false,
        };
        if !is_plain || part.dtype != tensor.dtype || part.payload.is_empty() {
            return None;
        }
        let (source, range) = part.payload.stored()?;
        let codec = match part.payload {
            Payload::Encoded { codec, .. } => Some(codec),
            _ => None,
        };
        Some(Self {
            file: source.0,
            range,
            codec,
            dtype: tensor.dtype,
            endian: part.endian,
            width,
        })
    }

    /// Whether another lies within it, at whole elements.
    fn covers(&self, other: &Self) -> bool {
        let is_same = (self.file, self.codec, self.dtype, self.endian)
            == (other.file, other.codec, other.dtype, other.endian);
        let is_within = match self.codec {
            None => {
                self.range.start <= other.range.start
                    && other.range.end <= self.range.end
                    && (other.range.start - self.range.start).is_multiple_of(self.width)
            }
            Some(_) => self.range == other.range,
        };
        is_same && is_within
    }
}

/// For every tensor, the one whose storage it shares: itself, or one that has its bytes too.
fn covers(tensors: &[(usize, &TensorInfo)]) -> Vec<usize> {
    let mut covers: Vec<usize> = (0..tensors.len()).collect();
    let pieces = tensors.iter().enumerate();
    let mut pieces: Vec<(usize, Piece)> = pieces
        .filter_map(|(place, (_, tensor))| Some((place, Piece::of(tensor)?)))
        .collect();
    // What covers others comes before them.
    pieces.sort_by_key(|(place, piece)| {
        let end = core::cmp::Reverse(piece.range.end);
        (piece.file, piece.range.start, end, *place)
    });
    let mut cover: Option<&(usize, Piece)> = None;
    for candidate in &pieces {
        let (place, piece) = candidate;
        match cover {
            Some((covering, known)) if known.covers(piece) => {
                if let Some(cover) = covers.get_mut(*place) {
                    *cover = *covering;
                }
            }
            Some((_, known)) if known.file == piece.file && known.range.end >= piece.range.end => {}
            _ => cover = Some(candidate),
        }
    }
    covers
}

fn lost() -> Error {
    Error::argument("a tensor without a storage")
}
