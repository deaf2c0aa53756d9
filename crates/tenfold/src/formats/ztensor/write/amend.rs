//! Another index at the end of a file, with the data where it is.

use super::index::Catalog;
use super::pieces::Object;
use super::sharing::share;
use super::{Generation, Target, check_names};
use crate::error::Result;
use crate::format::{PlanOptions, Written, in_place};
use crate::formats::ztensor::v2;
use crate::io::Patch;
use crate::model::Manifest;
use crate::prelude::*;

/// The index at the end of the file, which becomes longer where there is too little room after the data. What is left
/// between them is filled with zeros.
pub(in crate::formats::ztensor) fn amend(
    what: &Manifest,
    stored: &Manifest,
    len: u64,
    options: &PlanOptions,
) -> Result<Vec<Patch>> {
    let target = Target::new(options)?;
    check_names(&what.tensors)?;
    let mut objects = Vec::with_capacity(what.tensors.len());
    let mut requests = Vec::with_capacity(what.tensors.len());
    for (index, (new, stored)) in what.tensors.iter().zip(&stored.tensors).enumerate() {
        let mut info = stored.clone();
        info.metadata = new.metadata.clone();
        let compression = (options.compression)(&info);
        let mut object = Object::new(&target, index, &info, compression, &mut requests)
            .map_err(|error| error.in_tensor(&new.name))?;
        // The bytes stay as they are, and so what they hash to.
        for (piece, part) in object.pieces.iter_mut().zip(&info.parts) {
            piece.carried = part.checksum.as_deref().cloned();
        }
        objects.push(object);
    }
    let requests = share(&mut objects, requests);
    let blobs: Vec<_> = requests.iter().map(|request| request.of).collect();
    let mut written = Vec::with_capacity(blobs.len());
    for &(index, part) in &blobs {
        let range = in_place::place(stored.tensors.get(index), part)?;
        let raw_len = range.end.saturating_sub(range.start);
        written.push(Written::stays(index, part, range, raw_len));
    }
    let parts = stored.tensors.iter().flat_map(|tensor| &tensor.parts);
    let ends = parts.filter_map(|part| Some(part.payload.stored()?.1.end));
    let data_end = ends.fold(target.magic().len() as u64, u64::max);
    let catalog = Catalog {
        metadata: what.metadata.clone(),
        tensors: what.tensors.clone(),
        objects,
        blobs,
    };
    let index = match target.generation {
        Generation::V01 => behind(catalog.v01(&written)?, data_end, len),
        Generation::V12 => behind(catalog.v12(&written)?, data_end, len),
        Generation::V2 => {
            let at = data_end.next_multiple_of(v2::ALIGN);
            let mut index = catalog.v2(&written, at)?;
            // The footer is at the end, and says where the manifest is.
            let footer = index.split_off(index.len().saturating_sub(v2::FOOTER_BYTES));
            let mut bytes = zeros(data_end, at);
            bytes.append(&mut index);
            let begin = data_end + bytes.len() as u64;
            bytes.extend(behind(footer, begin, len));
            bytes
        }
    };
    Ok(vec![Patch::new(data_end, index)])
}

/// Bytes that end where the file does, or after its end if they do not fit in front of it.
fn behind(bytes: Vec<u8>, begin: u64, len: u64) -> Vec<u8> {
    let at = len.saturating_sub(bytes.len() as u64).max(begin);
    let mut all = zeros(begin, at);
    all.extend(bytes);
    all
}

/// What is between two places of one file that is at hand.
fn zeros(from: u64, to: u64) -> Vec<u8> {
    vec![0; usize::try_from(to.saturating_sub(from)).unwrap_or(0)]
}
