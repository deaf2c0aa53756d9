//! What tensors should be, from a list that was made before: for files that carry no checksums.

use crate::archive::Archive;
use crate::digest::Hex;
use crate::error::Error;
use crate::format::Finding;
use crate::model::TensorInfo;
use crate::ops::Digests;
use crate::prelude::*;

/// What a list of digests says of one file.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Expected {
    /// Every tensor by name; `None` for one that could not be read when the list was made.
    pub tensors: Vec<(String, Option<[u8; 32]>)>,
    /// Over names, types, shapes and contents, where it was known.
    pub content: Option<[u8; 32]>,
}

impl Expected {
    /// What digests say that have just been computed.
    pub fn of(digests: &Digests) -> Self {
        Self {
            content: digests.content,
            tensors: (digests.tensors.iter())
                .map(|(name, sum)| (name.clone(), sum.as_ref().ok().copied()))
                .collect(),
        }
    }
}

/// Compares the digests of an archive with those of a list. Tensors are found in the list by their names in `digests`.
///
/// Every difference is a finding of the rule `digest`: a tensor with other content, one that is missing, one that is
/// not listed, and a name, type or shape that differs. Without a finding, everything is as listed.
///
/// ```
/// use tenfold::{Archive, ops};
/// let archive = |bytes: &[u8]| {
///     let mut builder = Archive::builder();
///     builder.tensor("x", [3], bytes)?;
///     Ok::<_, tenfold::Error>(builder.finish())
/// };
/// let (before, now) = (archive(b"abc")?, archive(b"abd")?);
/// let expected = ops::Expected::of(&ops::digest(&before, &Default::default())?);
/// let digests = ops::digest(&now, &Default::default())?;
/// assert_eq!(ops::compare_digests(&now, &digests, &expected).len(), 1);
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn compare_digests(archive: &Archive, digests: &Digests, expected: &Expected) -> Vec<Finding> {
    let id = archive.format().map_or("file", |spec| spec.id);
    let mut findings = Vec::new();
    let mut report = |error: Error| findings.push(Finding::from(&error.in_format(id)));
    let mut left: LookupMap<String, Vec<Option<[u8; 32]>>> = LookupMap::default();
    for (name, sum) in expected.tensors.iter().rev() {
        left.entry(name.clone()).or_default().push(*sum);
    }
    for ((name, found), info) in digests.tensors.iter().zip(&archive.manifest().tensors) {
        let error = match (left.get_mut(name).and_then(Vec::pop), found) {
            (None, _) => Error::mismatch("digest", "is not in the list"),
            (Some(Some(wanted)), Ok(found)) if wanted != *found => {
                let (wanted, found) = (Hex(&wanted), Hex(found));
                Error::mismatch(
                    "digest",
                    format!("sha256: listed {wanted}, computed {found}"),
                )
            }
            (Some(Some(_)), Err(cause)) => {
                let message = format!("could be read when it was listed: {}", cause.message());
                let hints = cause.hints().iter().cloned();
                hints.fold(Error::mismatch("digest", message), Error::hinting)
            }
            _ => continue,
        };
        report(placed(error, info).in_tensor(&info.name));
    }
    for (name, _) in &expected.tensors {
        if left.get_mut(name).and_then(Vec::pop).is_some() {
            report(Error::mismatch("digest", "is listed, but missing").in_tensor(name));
        }
    }
    if findings.is_empty() && expected.content.is_some() && expected.content != digests.content {
        let message = "every tensor has the listed content, but a name, a type, a shape or the meaning of a \
        part differs";
        findings.push(Finding::from(
            &Error::mismatch("digest", message).in_format(id),
        ));
    }
    findings
}

/// Says where a tensor's data is.
fn placed(error: Error, info: &TensorInfo) -> Error {
    match info.parts.first().and_then(|part| part.payload.stored()) {
        Some((source, range)) => error.at_source(source, range),
        None => error,
    }
}
