//! Data in files beside the model: what a tensor says about them, and which files may be meant.

use super::raw::TensorProto;
use crate::digest::unhex;
use crate::error::{Error, ErrorKind, Result};
use crate::format::Context;
use crate::model::{Checksum, DigestKind, Over, Payload, SealedRange, SourceId, TensorInfo};
use crate::prelude::*;

/// The entries of `external_data` that are understood; of one that is there twice, the last counts.
#[derive(Debug, Default)]
pub(super) struct Entries {
    pub(super) location: Option<String>,
    pub(super) offset: Option<String>,
    pub(super) length: Option<String>,
    /// The SHA-1 of the whole file.
    pub(super) checksum: Option<String>,
    /// One that is not understood.
    pub(super) unknown: Option<String>,
    pub(super) has_any: bool,
}

impl Entries {
    pub(super) fn add(&mut self, key: String, value: String) {
        self.has_any = true;
        match key.as_str() {
            "location" => self.location = Some(value),
            "offset" => self.offset = Some(value),
            "length" => self.length = Some(value),
            "checksum" => self.checksum = Some(value),
            // A path that nobody uses.
            "basepath" => {}
            _ => self.unknown = Some(key),
        }
    }
}

/// The files that were opened, by their location, with their checksums.
#[derive(Default)]
pub(super) struct Files {
    opened: LookupMap<String, SourceId>,
    pub(super) sealed: Vec<SealedRange>,
}

/// Where the `len` bytes of a tensor are.
pub(super) fn locate(
    cx: &mut Context<'_>,
    files: &mut Files,
    tensor: &TensorProto,
    len: u64,
) -> Result<Payload> {
    let entries = &tensor.external;
    let Some(location) = entries.location.as_deref() else {
        let message = "its data is in another file, and no location says in which";
        return Err(tensor.refuse("onnx.external", message));
    };
    let offset = number(tensor, "offset", entries.offset.as_deref())?;
    let length = number(tensor, "length", entries.length.as_deref())?;
    let path = path(tensor, location)?;
    let source = match files.opened.get(location) {
        Some(id) => *id,
        None => {
            let id = open(cx, tensor, location, &path)?;
            files.opened.insert(location.to_owned(), id);
            id
        }
    };
    let file = cx.open(source).map_or(0, |file| file.len());
    if let Some(checksum) = entries.checksum.as_deref() {
        seal(cx, files, tensor, checksum, (source, file))?;
    }
    let offset = offset.unwrap_or(0);
    if offset > file {
        let message = format!("its data begins at byte {offset} of {location:?}, which has {file}");
        return Err(tensor.refuse("onnx.bounds", message));
    }
    let length = length.unwrap_or(file - offset);
    let end = offset.checked_add(length).filter(|&end| end <= file);
    let Some(end) = end else {
        let message = format!(
            "its data has {length} bytes from byte {offset} of {location:?}, which has {file}"
        );
        return Err(tensor.refuse("onnx.bounds", message));
    };
    if length != len {
        let message =
            format!("its data in {location:?} has {length} bytes, type and shape need {len}");
        return Err(tensor.refuse("onnx.size", message));
    }
    Ok(Payload::Raw {
        source,
        range: offset..end,
    })
}

/// Takes down what a tensor says all bytes of its file hash to, once for each file.
fn seal(
    cx: &mut Context<'_>,
    files: &mut Files,
    tensor: &TensorProto,
    checksum: &str,
    (source, len): (SourceId, u64),
) -> Result<()> {
    /// Bytes of a SHA-1.
    const LEN: usize = 20;
    let location = tensor.external.location.as_deref().unwrap_or_default();
    let mut warn = |why: String| {
        let message = format!(
            "tensor {:?}: its checksum of {location:?} {why}",
            tensor.name
        );
        cx.warn("onnx.external-checksum", tensor.at.clone(), message)
    };
    let value = unhex(checksum).filter(|value| value.len() == LEN);
    let Some(value) = value else {
        return warn(format!(
            "is {checksum:?}; expected 40 hexadecimal digits (SHA-1)"
        ));
    };
    match files.sealed.iter().find(|sealed| sealed.source == source) {
        None => {
            let checksum = Checksum::new(DigestKind::Sha1, Over::Stored, value);
            let what = format!("file {location:?}");
            let sealed = SealedRange::new(source, 0..len, checksum, what);
            push_tight(&mut files.sealed, sealed);
            Ok(())
        }
        Some(sealed) if sealed.checksum.value == value => Ok(()),
        Some(_) => warn("is another one than that of a tensor before it".to_owned()),
    }
}

/// Marks tensors whose data in other files overlaps in part: no program writes it. Data that is the same is shared.
pub(super) fn check_overlap(tensors: &mut [TensorInfo]) {
    let mut places = Vec::new();
    for (number, tensor) in tensors.iter().enumerate() {
        for part in &tensor.parts {
            if let Payload::Raw { source, range } = &part.payload
                && *source != SourceId::MAIN
                && !range.is_empty()
            {
                places.push((*source, range.clone(), number));
            }
        }
    }
    places.sort_unstable_by_key(|(source, range, _)| (*source, range.start, range.end));
    let name = |number: usize| {
        tensors
            .get(number)
            .map_or("", |tensor| tensor.name.as_str())
    };
    let mut wrong = Vec::new();
    for ((file, a, first), (other, b, second)) in places.iter().zip(places.iter().skip(1)) {
        if file == other && b.start < a.end && a != b {
            let message = format!(
                "its data and that of {:?} overlap in part: bytes {}..{} and {}..{} of one file",
                name(*first),
                b.start,
                b.end,
                a.start,
                a.end
            );
            let error = Error::malformed("onnx.overlap", message).in_tensor(name(*second));
            wrong.push((*second, error));
        }
    }
    for (number, error) in wrong {
        if let Some(tensor) = tensors.get_mut(number) {
            tensor.defect.get_or_insert(error);
        }
    }
}

/// A number in plain decimal digits.
fn number(tensor: &TensorProto, key: &str, text: Option<&str>) -> Result<Option<u64>> {
    let Some(text) = text else {
        return Ok(None);
    };
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if is_digits => Ok(Some(number)),
        _ => {
            let message = format!("{key} {text:?}, expected decimal digits of 64 bits");
            Err(tensor.refuse("onnx.external", message))
        }
    }
}

/// The names on the way to a file that lies in the directory of the model or below.
fn path<'l>(tensor: &TensorProto, location: &'l str) -> Result<Vec<&'l str>> {
    let is_drive =
        matches!(location.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    let names: Vec<_> = location.split('/').collect();
    let why = if location.is_empty() {
        "is empty"
    } else if location.starts_with('/') || is_drive {
        "is absolute"
    } else if location.contains(['\\', '\0']) {
        "has a backslash or a zero in it"
    } else if names.iter().any(|name| matches!(*name, "" | "." | "..")) {
        "has an empty name, . or .. in it"
    } else {
        return Ok(names);
    };
    let message = format!("location {location:?} {why}; expected a path in the model's directory");
    Err(tensor.refuse("onnx.path", message))
}

fn open(
    cx: &mut Context<'_>,
    tensor: &TensorProto,
    location: &str,
    path: &[&str],
) -> Result<SourceId> {
    if !cx.has_siblings() {
        let message = format!(
            "its data is in {location:?} beside the model, which was opened without a directory"
        );
        let error = Error::unsupported("onnx.external", message);
        return Err(error.at(tensor.at.clone()).in_tensor(&tensor.name));
    }
    cx.below(path).map_err(|cause| {
        let (kind, rule, why) = match cause.kind() {
            ErrorKind::NotFound => (
                ErrorKind::NotFound,
                "onnx.external-missing",
                "it is not there".into(),
            ),
            ErrorKind::Malformed => (
                ErrorKind::Malformed,
                "onnx.path",
                cause.message().to_owned(),
            ),
            kind => (kind, "onnx.external", cause.message().to_owned()),
        };
        let message = format!("its data should be in {location:?}: {why}");
        let error = Error::new(kind, rule, message).because(cause);
        error.at(tensor.at.clone()).in_tensor(&tensor.name)
    })
}
