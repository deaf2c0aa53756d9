//! That the tensors cover the data, each byte once, and that each has the bytes its shape says.

use super::dtypes::{self, NoSize};
use super::raw::{self, Entry};
use crate::error::{Error, Result};
use crate::model::{DType, Payload, SourceId, TensorInfo};
use crate::prelude::*;

/// The tensors of a header.
pub(super) struct Tensors {
    pub(super) infos: Vec<TensorInfo>,
    /// What is checked of each of them, apart: it is a tenth of what there is to look through.
    rows: Vec<Row>,
    /// Data comes in the order of the entries.
    in_order: bool,
    /// Names rise, so that none appears twice.
    rising: bool,
    /// How many begin where their numbers cannot be used in place.
    pub(super) misaligned: usize,
    /// Where the data begins.
    data: u64,
}

struct Row {
    /// Where the entry is.
    at: u64,
    /// Where the data is, from its beginning.
    offsets: [u64; 2],
    /// The bytes that type and shape make.
    size: Result<u64, NoSize>,
}

impl Tensors {
    pub(super) fn new(data: u64) -> Self {
        Self {
            infos: Vec::new(),
            rows: Vec::new(),
            in_order: true,
            rising: true,
            misaligned: 0,
            data,
        }
    }

    /// Adds the tensor of an entry, whose data is in a file.
    pub(super) fn push(&mut self, entry: Entry<'_>, source: SourceId) {
        let Entry {
            name,
            at,
            dtype,
            shape,
            data_offsets,
        } = entry;
        self.grow(at);
        let row = Row {
            at,
            offsets: data_offsets,
            size: match dtype {
                Ok(dtype) => dtypes::bytes(dtype, &shape),
                // Its offsets alone say how many bytes it has; those that end before they begin fit no size.
                Err(_) => dtypes::elements(&shape)
                    .map(|_| data_offsets[1].saturating_sub(data_offsets[0])),
            },
        };
        self.in_order &= (self.rows.last()).is_none_or(|last| last.offsets <= row.offsets);
        self.rising &= (self.infos.last()).is_none_or(|last| *last.name < *name);
        self.rows.push(row);
        // What does not fit is refused by `cover`.
        let [start, end] = data_offsets.map(|offset| self.data.saturating_add(offset));
        let range = start..end;
        let (dtype, defect) = match dtype {
            Ok(dtype) => (dtype, None),
            Err(defect) => (DType::UNKNOWN, Some(defect)),
        };
        let width = dtype.swap_width() as u64;
        let odd = !range.is_empty() && !start.is_multiple_of(width);
        self.misaligned += usize::from(odd);
        let payload = Payload::Raw { source, range };
        let mut info = TensorInfo::dense(name, dtype, shape, payload);
        info.defect = defect.map(|defect| defect.in_source(source));
        self.infos.push(info);
    }

    /// Makes room for as many more as the rest of the header can have, if they are like those before.
    fn grow(&mut self, at: u64) {
        let count = self.infos.len();
        if count == self.infos.capacity() && count > 0 {
            let average = (at / count as u64).max(1);
            let more = usize::try_from(self.data.saturating_sub(at) / average).unwrap_or(0) + 1;
            self.infos.reserve_exact(more);
            self.rows.reserve_exact(more);
        }
    }

    /// Refuses names that are there twice.
    pub(super) fn unique_names(&self) -> Result<()> {
        if self.rising {
            return Ok(());
        }
        match crate::model::repeated(self.infos.iter().map(|info| info.name.as_str())) {
            Some((place, name)) => {
                let at = self.rows.get(place).map_or(0, |row| row.at);
                let error = raw::twice("two tensors have this name", at);
                Err(error.in_tensor(name))
            }
            None => Ok(()),
        }
    }

    /// Puts the tensors into the order of their data; those at the same place keep the order of the header.
    pub(super) fn sort(&mut self) {
        if self.in_order {
            return;
        }
        let (infos, rows) = (
            core::mem::take(&mut self.infos),
            core::mem::take(&mut self.rows),
        );
        let mut all: Vec<_> = rows
            .into_iter()
            .zip(infos.into_iter().map(Box::new))
            .collect();
        all.sort_by_key(|(row, _)| row.offsets);
        for (row, info) in all {
            self.rows.push(row);
            self.infos.push(*info);
        }
    }

    /// Walks the sorted tensors over the data of a file of `file` bytes. Gives where they end, if the file ends before.
    pub(super) fn cover(&self, file: u64) -> Result<Option<u64>> {
        let mut end = 0;
        for (place, row) in self.rows.iter().enumerate() {
            if row.offsets[0] == end
                && row
                    .size
                    .is_ok_and(|size| end.checked_add(size) == Some(row.offsets[1]))
            {
                end = row.offsets[1];
                continue;
            }
            let before = place.checked_sub(1).and_then(|place| self.infos.get(place));
            if let Some(info) = self.infos.get(place) {
                follow(row, end, before)
                    .and_then(|()| size(info, row))
                    .map_err(|error| error.at(row.at..row.at + 1).in_tensor(&info.name))?;
            }
        }
        // The header lies inside the file.
        let len = file - self.data;
        match len.checked_sub(end) {
            Some(0) => Ok(None),
            None => match self.data.checked_add(end) {
                Some(end) => Ok(Some(end)),
                None => {
                    let message = format!(
                        "the tensors need {end} bytes after byte {}, past any end of a file",
                        self.data
                    );
                    Err(Error::malformed("safetensors.truncated", message).at(file..file))
                }
            },
            Some(rest) => {
                let end = self.data + end;
                let message = format!(
                    "{rest} bytes after the last tensor, which ends at byte {end}; the file has {file}"
                );
                Err(Error::malformed("safetensors.trailing", message).at(end..file))
            }
        }
    }
}

/// Data begins where that before it ends.
fn follow(row: &Row, end: u64, before: Option<&TensorInfo>) -> Result<()> {
    let [from, to] = row.offsets;
    if to < from {
        let message = format!("data_offsets [{from}, {to}] end before they begin");
        return Err(Error::malformed("safetensors.offsets", message));
    }
    let previous = match before {
        Some(info) => format!("{:?} before it ends at {end}", info.name),
        None => "the data begins at 0".to_owned(),
    };
    let (rule, what) = match from.checked_sub(end) {
        Some(0) => return Ok(()),
        Some(hole) => (
            "safetensors.hole",
            format!("{hole} bytes between belong to nothing"),
        ),
        None => ("safetensors.overlap", "they overlap".to_owned()),
    };
    let message = format!("its data begins at offset {from}, {previous}: {what}");
    Err(Error::malformed(rule, message))
}

/// The data has as many bytes as the shape and the type say.
fn size(info: &TensorInfo, row: &Row) -> Result<()> {
    let TensorInfo { dtype, shape, .. } = info;
    let found = row.offsets[1] - row.offsets[0];
    let (rule, message) = match row.size {
        Ok(bytes) => (
            "safetensors.size",
            format!("data_offsets span {found} bytes, shape {shape:?} of {dtype} needs {bytes}"),
        ),
        Err(NoSize::Overflow) => (
            "safetensors.overflow",
            format!("shape {shape:?} of {dtype} has more bits than 64 bits can count"),
        ),
        Err(NoSize::Bits(bits)) => (
            "safetensors.bits",
            format!(
                "shape {shape:?} of {dtype} has {bits} bits, which are not a whole number of bytes"
            ),
        ),
    };
    Err(Error::malformed(rule, message))
}
