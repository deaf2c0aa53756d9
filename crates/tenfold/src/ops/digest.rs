//! Digests of content: equal for equal tensors in any format, order, encoding or number of files.

use crate::archive::{Archive, Tensor};
use crate::digest::Hasher;
use crate::error::{Error, Result};
use crate::format::Form;
use crate::model::{DType, DigestKind, Layout, TensorInfo};
use crate::ops::shared::parts::{self, Parts};
use crate::ops::shared::unless_canceled;
use crate::prelude::*;
use crate::threads::{Control, InPieces, Opened, Work, in_pieces};
use crate::transform::expands;

/// The version of the definition of [`Digests::content`], which docs/digest.md of the repository has in full.
///
/// 1 left out the scheme, the roles and the types of tensors of parts. For archives without them both are the same.
pub const CONTENT_VERSION: u32 = 2;

/// SHA-256 of every tensor, and of all of them together.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Digests {
    /// Over names, types, shapes and contents, sorted by name, and, for tensors without a dense form, over what their
    /// parts are; `None` when a tensor could not be read.
    pub content: Option<[u8; 32]>,
    /// Of each tensor's bytes, dense, row-major and little-endian, in file order.
    ///
    /// A tensor of blocks counts as its blocks, one of a type such as `burn:QFloat` as its stored bytes, one of several parts without a dense form as its parts in the order of
    /// their names, each as its length and its bytes.
    pub tensors: Vec<(String, Result<[u8; 32]>)>,
}

/// How digests are computed.
#[derive(Clone, Debug, Default)]
pub struct DigestOptions {
    work: Work,
}

impl DigestOptions {
    /// On all cores.
    pub fn new() -> Self {
        Self::default()
    }

    /// Threads, and a control.
    #[must_use]
    pub fn work(mut self, work: Work) -> Self {
        self.work = work;
        self
    }
}

/// Computes the digests of an archive. A tensor that cannot be read has an error in its place.
///
/// Sparse tensors are hashed with their zeros, which takes time that a small file can ask for: of those that together take
/// more than [`dense_bytes`](crate::io::Limits::dense_bytes), the ones beyond it have an error.
///
/// ```
/// use tenfold::{Archive, Bytes, model::DType, ops};
/// let mut builder = Archive::builder();
/// builder.push("x", DType::U8, &[3], Bytes::from_static(b"abc"))?;
/// let digests = ops::digest(&builder.finish(), &Default::default())?;
/// // What `printf abc | sha256sum` says.
/// assert_eq!(digests.tensors[0].1.as_ref().unwrap()[..4], [0xba, 0x78, 0x16, 0xbf]);
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn digest(archive: &Archive, options: &DigestOptions) -> Result<Digests> {
    for tensor in archive.tensors() {
        options.work.control.expect(hashed_len(tensor.info()));
    }
    digest_watched(archive, &options.work)
}

/// Bytes that are hashed of a tensor.
pub(super) fn hashed_len(tensor: &TensorInfo) -> u64 {
    match (&tensor.layout, tensor.dense_len()) {
        (Layout::Opaque { .. }, _) | (_, None) => (tensor.parts.iter())
            .map(|part| part.payload.len())
            .fold(0, u64::saturating_add),
        (_, Some(len)) => len,
    }
}

/// The same as a part of other work, which has counted in what is hashed.
pub(super) fn digest_watched(archive: &Archive, work: &Work) -> Result<Digests> {
    let Work { threads, control } = work;
    let archive = archive.with_threads(*threads).watched(control);
    let tensors: Vec<_> = archive.tensors().collect();
    let items = within_limit(&archive, &tensors);
    let threads = archive.threads_for(*threads);
    let sums = in_pieces(&Hashing { control }, items, threads)?;
    control.check()?;
    let content = content(&tensors, &sums);
    let names = tensors.iter().map(|tensor| tensor.name().to_owned());
    Ok(Digests {
        content,
        tensors: names.zip(sums).collect(),
    })
}

/// The digests of some of the tensors, as they are among all of them.
#[cfg(feature = "scale")]
pub(super) fn digest_part(
    archive: &Archive,
    work: &Work,
    part: Range<usize>,
) -> Result<Vec<Result<[u8; 32]>>> {
    let Work { threads, control } = work;
    let archive = archive.with_threads(*threads).watched(control);
    let tensors: Vec<_> = archive.tensors().collect();
    // What all of them may take is counted from the first on.
    let items = within_limit(&archive, &tensors).into_iter();
    let items: Vec<_> = items.take(part.end).skip(part.start).collect();
    let threads = archive.threads_for(*threads);
    let sums = in_pieces(&Hashing { control }, items, threads)?;
    control.check()?;
    Ok(sums)
}

/// SHA-256 of tensors.
pub(super) struct Hashing<'a> {
    pub(super) control: &'a Control,
}

impl<'a> InPieces for Hashing<'a> {
    /// A tensor, or why it is not hashed.
    type Item = Result<Tensor<'a>>;
    type Job = Tensor<'a>;
    type Found = Result<[u8; 32]>;
    type Outcome = Result<[u8; 32]>;
    type Scratch = ();

    /// All of a tensor is one piece: what comes next in a hash depends on what came before.
    fn open(&self, tensor: Self::Item) -> Result<Opened<Tensor<'a>, Self::Outcome>> {
        Ok(match tensor {
            Ok(tensor) => Opened::new(tensor, 1, Err(Error::canceled())),
            Err(error) => Opened::done(Err(error)),
        })
    }

    fn is_light(&self, _: &Tensor<'a>) -> bool {
        true
    }

    fn piece(&self, tensor: &Tensor<'a>, _: u64, (): &mut ()) -> Result<Self::Found> {
        unless_canceled(tensor_digest(tensor, self.control))
    }

    fn fold(&self, outcome: &mut Self::Outcome, found: Self::Found) -> bool {
        *outcome = found;
        true
    }
}

/// The tensors, but those that few bytes stand for, such as sparse ones, only as long as the ones before them do not take all
/// that such tensors may: one by one they could be small enough, and together ask for any number of zeros.
pub(super) fn within_limit<'a>(
    archive: &Archive,
    tensors: &[Tensor<'a>],
) -> Vec<Result<Tensor<'a>>> {
    let limit = archive.limits().dense_bytes;
    let mut taken = 0u64;
    let mut refuse = |tensor: &Tensor<'_>| {
        let info = tensor.info();
        if !expands(info) {
            return None;
        }
        // One that is too large by itself is refused when it is read.
        let len = info.dense_len().filter(|&len| len <= limit)?;
        match taken.checked_add(len).filter(|&all| all <= limit) {
            Some(all) => {
                taken = all;
                None
            }
            None => {
                let message = format!(
                    "it takes {len} bytes when dense, and earlier ones like it {taken}; the limit (dense_bytes) \
                    for all of them is {limit}"
                );
                Some(
                    Error::limit("dense", message).raised_by("dense_bytes", taken.checked_add(len)),
                )
            }
        }
    };
    let tensors = tensors.iter();
    tensors
        .map(|tensor| match refuse(tensor) {
            Some(error) => Err(tensor.blame(error)),
            None => Ok(*tensor),
        })
        .collect()
}

fn tensor_digest(tensor: &Tensor<'_>, control: &Control) -> Result<[u8; 32]> {
    let mut hasher = sha256()?;
    let info = tensor.info().readable()?;
    if let (Layout::Opaque { .. }, [_], true) =
        (&info.layout, &*info.parts, names_its_bytes(info.dtype))
    {
        tensor.stream_part(0, &mut |piece| {
            hasher.update(piece);
            control.advance(piece.len() as u64)
        })?;
    } else if let Layout::Opaque { .. } = info.layout {
        for (index, part) in parts::by_role(info) {
            hasher.update(&part.payload.len().to_le_bytes());
            tensor.stream_part(index, &mut |piece| {
                hasher.update(piece);
                control.advance(piece.len() as u64)
            })?;
        }
    } else {
        tensor.stream(&Form::canonical(info.dtype), &mut |piece| {
            hasher.update(piece);
            control.advance(piece.len() as u64)
        })?;
    }
    finish(hasher)
}

/// Whether a type stands for bytes that are whole by themselves, such as `burn:QFloat`.
fn names_its_bytes(dtype: DType) -> bool {
    matches!(dtype, DType::Opaque(_)) && dtype != DType::PARTS && dtype != DType::UNKNOWN
}

fn content(tensors: &[Tensor<'_>], sums: &[Result<[u8; 32]>]) -> Option<[u8; 32]> {
    let all = tensors.iter().zip(sums);
    let all = all.map(|(tensor, sum)| {
        let info = tensor.info();
        let sum = in_content(info, sum.as_ref().ok()?)?;
        Some((
            info.name.as_str(),
            info.dtype.to_string(),
            &*info.shape,
            sum,
        ))
    });
    content_of(all.collect::<Option<_>>()?)
}

/// What stands for a tensor with this digest in that of the content.
pub(super) fn in_content(info: &TensorInfo, sum: &[u8; 32]) -> Option<[u8; 32]> {
    match Parts::of(info) {
        Some(parts) => described(&parts, sum).ok(),
        None => Some(*sum),
    }
}

/// The digest of a content, of names, types, shapes, and what stands for the tensors.
pub(super) fn content_of(mut all: Vec<(&str, String, &[u64], [u8; 32])>) -> Option<[u8; 32]> {
    all.sort_by(|(a, ..), (b, ..)| a.as_bytes().cmp(b.as_bytes()));
    let is_only = all.len() == 1;
    let mut hasher = sha256().ok()?;
    for (name, dtype, shape, sum) in all {
        // The name of an only tensor may come from the name of a file.
        text(&mut hasher, if is_only { "" } else { name });
        text(&mut hasher, &dtype);
        hasher.update(&(shape.len() as u64).to_le_bytes());
        for dim in shape {
            hasher.update(&dim.to_le_bytes());
        }
        hasher.update(&sum);
    }
    finish(hasher).ok()
}

/// The digest of a tensor of parts together with what the parts are. The text in front keeps it apart from those of bytes.
fn described(parts: &Parts, bytes: &[u8; 32]) -> Result<[u8; 32]> {
    let mut hasher = sha256()?;
    for word in ["tenfold.parts/2", &parts.scheme, &parts.parameters] {
        text(&mut hasher, word);
    }
    hasher.update(&(parts.parts.len() as u64).to_le_bytes());
    for (role, dtype) in &parts.parts {
        text(&mut hasher, role);
        text(&mut hasher, &dtype.to_string());
    }
    hasher.update(bytes);
    finish(hasher)
}

fn text(hasher: &mut Hasher, text: &str) {
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

fn sha256() -> Result<Hasher> {
    Hasher::new(DigestKind::Sha256)
        .ok_or_else(|| Error::unsupported("digest", "SHA-256 is not built in"))
}

fn finish(hasher: Hasher) -> Result<[u8; 32]> {
    hasher
        .finish()
        .as_ref()
        .try_into()
        .map_err(|cause| Error::argument("a digest of another length").because(cause))
}

#[cfg(test)]
mod tests;
