//! All tensors at once: columns of numbers, and the names one behind the other.

use serde::Serialize;
use tenfold::model::TensorInfo;

use crate::answer::{Answer, Columns, Refusal};
use crate::opened::Opened;
use crate::summary::stored_len;

#[derive(Serialize)]
struct Head {
    tensors: usize,
    dtypes: Vec<String>,
    layouts: Vec<String>,
}

/// It cannot be read.
const DEFECT: u8 = 1;
/// Its elements are texts or records.
const NO_NUMBERS: u8 = 2;
/// Some of its bytes have a checksum.
const CHECKSUM: u8 = 4;

pub(crate) fn columns(opened: &Opened) -> Result<Answer, Refusal> {
    let tensors = &opened.archive()?.manifest().tensors;
    let all = || tensors.iter();
    // JavaScript counts in floating-point numbers: exactly up to 2^53.
    let number = |n: u64| n as f64;
    let mut dtypes = Words::default();
    let mut layouts = Words::default();
    let types: Vec<u64> = all()
        .map(|info| dtypes.place(info.dtype.to_string()))
        .collect();
    let arranged: Vec<u64> = all()
        .map(|info| layouts.place(info.layout.name().to_owned()))
        .collect();
    let mut columns = Columns::default();
    columns.f64s("stored", all().map(|info| number(stored_len(info))));
    columns.f64s(
        "elements",
        all().map(|info| info.elements().map_or(f64::NAN, number)),
    );
    columns.f64s(
        "offset",
        all().map(|info| place(info).map_or(f64::NAN, |(_, at)| number(at))),
    );
    columns.f64s(
        "dims",
        all().flat_map(|info| info.shape.iter().map(|dim| number(*dim))),
    );
    columns.u32s(
        "source",
        all().map(|info| place(info).map_or(0, |(source, _)| source)),
    );
    columns.u32s("dtype", types.into_iter());
    columns.u32s("layout", arranged.into_iter());
    columns.u32s("dims_end", ends(all().map(|info| info.shape.len())));
    columns.u32s("name_end", ends(all().map(|info| info.name.len())));
    columns.bytes("flags", all().map(flags));
    columns.bytes("names", all().flat_map(|info| info.name.bytes()));
    columns.finish(&Head {
        tensors: tensors.len(),
        dtypes: dtypes.0,
        layouts: layouts.0,
    })
}

/// The file and the byte where it begins.
fn place(info: &TensorInfo) -> Option<(u64, u64)> {
    let stored = info.parts.iter().find_map(|part| part.payload.stored());
    stored.map(|(source, range)| (source.0.into(), range.start))
}

fn flags(info: &TensorInfo) -> u8 {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let has_checksum = info.parts.iter().any(|part| part.checksum.is_some());
    flag(info.defect.is_some(), DEFECT)
        | flag(!info.is_numbers(), NO_NUMBERS)
        | flag(has_checksum, CHECKSUM)
}

/// Where each of some things that lie one behind the other ends.
fn ends(lens: impl Iterator<Item = usize>) -> impl Iterator<Item = u64> {
    lens.scan(0u64, |end, len| {
        *end += len as u64;
        Some(*end)
    })
}

/// Few different words, each once.
#[derive(Default)]
struct Words(Vec<String>);

impl Words {
    fn place(&mut self, word: String) -> u64 {
        let known = self.0.iter().position(|known| *known == word);
        let place = known.unwrap_or_else(|| {
            self.0.push(word);
            self.0.len() - 1
        });
        place as u64
    }
}
