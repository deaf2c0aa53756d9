//! That the tensors cover the data, each byte once, and that each has the bytes its shape says.

use super::dtypes::{self, NoSize};
use crate::error::{Error, Result};
use crate::model::{Payload, TensorInfo};
use crate::prelude::*;

/// The tensors of a header, with the places of their entries.
#[derive(Default)]
pub(super) struct Tensors {
    pub(super) infos: Vec<TensorInfo>,
    places: Vec<u64>,
}

impl Tensors {
    pub(super) fn push(&mut self, info: TensorInfo, at: u64) {
        self.infos.push(info);
        self.places.push(at);
    }

    /// Refuses names that are there twice.
    pub(super) fn unique_names(&self) -> Result<()> {
        let mut seen = LookupMap::with_capacity(self.infos.len());
        for (info, &at) in self.infos.iter().zip(&self.places) {
            if seen.insert(info.name.as_str(), ()).is_some() {
                let error = super::raw::twice("there are two tensors of this name", at);
                return Err(error.in_tensor(&info.name));
            }
        }
        Ok(())
    }

    /// Puts the tensors into the order of their data; those at the same place keep the order of the header.
    pub(super) fn sort(&mut self) {
        let key = |info: &TensorInfo| {
            let range = extent(info);
            (range.start, range.end)
        };
        if self.infos.is_sorted_by_key(key) {
            return;
        }
        let mut order: Vec<_> = self.infos.iter().map(key).zip(0usize..).collect();
        // Together with the place it is a total order, so that an unstable sort is stable.
        order.sort_unstable();
        let infos = core::mem::take(&mut self.infos);
        let mut slots: Vec<_> = infos.into_iter().map(Some).collect();
        let from = order.iter().map(|(_, from)| *from);
        self.infos = from
            .clone()
            .filter_map(|from| slots.get_mut(from)?.take())
            .collect();
        self.places = from
            .filter_map(|from| self.places.get(from).copied())
            .collect();
    }

    /// Walks the sorted tensors over the data of a file, which begins at `begin`.
    pub(super) fn cover(&self, begin: u64, file: u64) -> Result<()> {
        let mut end = begin;
        let mut before: Option<&TensorInfo> = None;
        for (info, &at) in self.infos.iter().zip(&self.places) {
            let range = extent(info);
            follow(&range, end, begin, before)
                .and_then(|()| size(info, &range))
                .map_err(|error| error.at(at..at + 1).in_tensor(&info.name))?;
            end = range.end;
            before = Some(info);
        }
        match end.cmp(&file) {
            core::cmp::Ordering::Equal => Ok(()),
            core::cmp::Ordering::Greater => Err(self.truncated(file, end)),
            core::cmp::Ordering::Less => {
                let message = format!(
                    "{} bytes behind the last tensor, which ends at byte {end}; the file has {file}",
                    file - end
                );
                Err(Error::malformed("safetensors.trailing", message).at(end..file))
            }
        }
    }

    /// The data ends before the last tensor does: says what is complete.
    fn truncated(&self, file: u64, end: u64) -> Error {
        const SHOWN: usize = 3;
        let whole = |info: &&TensorInfo| extent(info).end <= file;
        let complete = self.infos.iter().filter(whole);
        let names: Vec<_> = complete
            .clone()
            .take(SHOWN)
            .map(|info| format!("{:?}", info.name))
            .collect();
        let complete = complete.count();
        let more = if complete > SHOWN { ", …" } else { "" };
        let colon = if complete > 0 { ": " } else { "" };
        let message = format!(
            "truncated: the file has {file} bytes, its tensors need {end}; {complete} of {} tensors are complete{colon}{}{more}",
            self.infos.len(),
            names.join(", ")
        );
        Error::malformed("safetensors.truncated", message).at(file..end)
    }
}

/// Where a tensor's data is; a tensor that was just parsed has one raw part.
fn extent(info: &TensorInfo) -> Range<u64> {
    match info.parts.first().map(|part| &part.payload) {
        Some(Payload::Raw { range, .. }) => range.clone(),
        _ => 0..0,
    }
}

/// Data begins where that before it ends. Messages count from the beginning of the data, as the header does.
fn follow(range: &Range<u64>, end: u64, begin: u64, before: Option<&TensorInfo>) -> Result<()> {
    let [from, to, end] = [range.start, range.end, end].map(|at| at.saturating_sub(begin));
    if to < from {
        let message = format!("data_offsets [{from}, {to}] end before they begin");
        return Err(Error::malformed("safetensors.offsets", message));
    }
    let previous = match before {
        Some(info) => format!("{:?} before it ends at {end}", info.name),
        None => "the data begins at 0".to_owned(),
    };
    match from.cmp(&end) {
        core::cmp::Ordering::Equal => Ok(()),
        core::cmp::Ordering::Greater => {
            let hole = from - end;
            let message = format!(
                "its data begins at offset {from}, {previous}: {hole} bytes between belong to nothing"
            );
            Err(Error::malformed("safetensors.hole", message))
        }
        core::cmp::Ordering::Less => {
            let message = format!("its data begins at offset {from}, {previous}: they overlap");
            Err(Error::malformed("safetensors.overlap", message))
        }
    }
}

/// The data has as many bytes as the shape and the type say.
fn size(info: &TensorInfo, range: &Range<u64>) -> Result<()> {
    let TensorInfo { dtype, shape, .. } = info;
    let found = range.end - range.start;
    match dtypes::bytes(*dtype, shape) {
        Ok(bytes) if bytes == found => Ok(()),
        Ok(bytes) => {
            let message = format!(
                "data_offsets span {found} bytes, shape {shape:?} of {dtype} needs {bytes}"
            );
            Err(Error::malformed("safetensors.size", message))
        }
        Err(NoSize::Overflow) => {
            let message =
                format!("shape {shape:?} of {dtype} has more bits than 64 bits can count");
            Err(Error::malformed("safetensors.overflow", message))
        }
        Err(NoSize::Bits(bits)) => {
            let message = format!(
                "shape {shape:?} of {dtype} has {bits} bits, which are not a whole number of bytes"
            );
            Err(Error::malformed("safetensors.bits", message))
        }
    }
}
