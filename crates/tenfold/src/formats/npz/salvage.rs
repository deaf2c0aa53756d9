//! An archive that lost its end, and with it the directory: the members before that are found by their own headers.

use super::ZIP;
use super::codec::{Contained, array_name, refuse_ambiguous};
use crate::error::lists::quoted;
use crate::error::{Error, Result};
use crate::format::Context;
use crate::model::Manifest;
use crate::prelude::*;
use crate::wire::zip::{Front, Member};

/// Where it is wanted, describes the arrays of an archive without an end, with a warning; else the `error` that says so,
/// and which arrays are whole.
pub(super) fn describe(cx: &mut Context<'_>, error: Error) -> Result<Manifest> {
    let front = match Front::read(cx.source(), cx.limits().header_bytes) {
        Ok(front) => front,
        Err(_) if !cx.salvages() => return Err(error),
        Err(other) => return Err(other),
    };
    refuse_ambiguous(&front.whole)?;
    let mut arrays = Vec::new();
    for member in &front.whole {
        arrays.extend(array_name(cx.source(), member)?);
    }
    let summary = summary(&arrays, front.at_directory);
    if !cx.salvages() && !arrays.is_empty() {
        return Err(error.leaving(summary));
    }
    let error = error.adding(&summary);
    if !cx.salvages() {
        return Err(error);
    }
    let cut = match front.cut {
        Some(member) if array_name(cx.source(), &member)?.is_some() => Some(member),
        _ => None,
    };
    if arrays.is_empty() && cut.is_none() {
        return Err(error);
    }
    let len = cx.source().len();
    cx.warn("npz.salvaged", front.end..len, error.message())?;
    let mut contained = Contained::new(Manifest::new(ZIP));
    for member in &front.whole {
        contained.add(cx, member)?;
    }
    if let Some(member) = &cut {
        let before = contained.manifest.tensors.len();
        contained.add(cx, member)?;
        for tensor in contained.manifest.tensors.iter_mut().skip(before) {
            tensor.defect = Some(defect(member, len).in_tensor(&tensor.name));
        }
    }
    let mut manifest = contained.finish(cx);
    manifest.region(front.end..len, "directory");
    Ok(manifest)
}

/// `; 2 arrays are complete: "a", "b"; what was after them is not known`
fn summary(arrays: &[&str], at_directory: bool) -> String {
    let mut message = match arrays.len() {
        0 => return "; no array is complete".to_owned(),
        1 => "; 1 array is complete".to_owned(),
        n => format!("; {n} arrays are complete"),
    };
    message += &format!(": {}", quoted(arrays.iter().copied()));
    message += if at_directory {
        "; none is missing"
    } else {
        "; what came after is not known"
    };
    message
}

fn defect(member: &Member, file: u64) -> Error {
    let data = &member.data;
    let (there, all) = (file.saturating_sub(data.start), data.end - data.start);
    let message =
        format!("the file is cut off, {there} of the {all} bytes of its member are there");
    Error::malformed("npz.truncated", message).at(file.max(data.start)..data.end)
}
