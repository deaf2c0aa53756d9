//! Slices as files of NumPy.

use tenfold::model::{DType, Scalar, Slice};
use tenfold::{Archive, Result};

use crate::answer::{Answer, Kind, Refusal};
use crate::opened::Opened;
use crate::query::Query;

/// What is held in memory at most, where a file cannot be streamed.
const MOST: u64 = 1 << 30;

/// What NumPy computes with. It holds others too, as bytes that it does not understand.
const PLAIN: [Scalar; 12] = [
    Scalar::Bool,
    Scalar::I8,
    Scalar::I16,
    Scalar::I32,
    Scalar::I64,
    Scalar::U8,
    Scalar::U16,
    Scalar::U32,
    Scalar::U64,
    Scalar::F16,
    Scalar::F32,
    Scalar::F64,
];

/// A slice of a tensor on its way into a `.npy` file.
#[derive(Debug)]
pub struct Saving {
    archive: Archive,
    slices: Vec<Slice>,
    header: Vec<u8>,
    name: String,
    len: u64,
}

impl Saving {
    /// What the file may be called: letters, digits, `.`, `-` and `_` alone.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of the whole file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes; there is always a header.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Gives the file piece by piece.
    pub fn stream(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        put(&self.header)?;
        match self.archive.tensor_at(0) {
            Some(tensor) => tensor.slice(&self.slices)?.stream(put),
            None => Ok(()),
        }
    }
}

pub(crate) fn saving(opened: &Opened, query: &Query) -> std::result::Result<Saving, Refusal> {
    let slices = Slice::parse(query.text("slice").unwrap_or_default())?;
    let only = opened.only(query)?;
    let made = |archive: Archive| -> std::result::Result<Option<Saving>, Refusal> {
        let Some(tensor) = archive.tensor_at(0) else {
            return Ok(None);
        };
        let sliced = tensor.slice(&slices)?;
        let is_plain =
            matches!(sliced.dtype(), DType::Number(scalar, _) if PLAIN.contains(&scalar));
        let Some(header) = header(&sliced).filter(|_| is_plain) else {
            return Ok(None);
        };
        let elements = sliced.elements().unwrap_or(u64::MAX);
        let data = sliced.dtype().bytes_for(elements).unwrap_or(u64::MAX);
        Ok(Some(Saving {
            len: data.saturating_add(header.len() as u64),
            name: file_name(tensor.name()),
            slices: slices.clone(),
            header,
            archive: archive.clone(),
        }))
    };
    if let Some(saving) = made(only.clone())? {
        return Ok(saving);
    }
    // NumPy has no such type: the next one that holds every value of it.
    let dtype = only
        .tensor_at(0)
        .and_then(|tensor| Some(tensor.slice(&[]).ok()?.dtype()));
    let wider = match dtype {
        Some(from @ DType::Number(_, lanes)) => {
            let wider = [Scalar::I8, Scalar::U8, Scalar::F32, Scalar::F64];
            let mut wider = wider.map(|scalar| DType::Number(scalar, lanes)).into_iter();
            wider.find(|to| tenfold::ops::is_exact(from, *to))
        }
        _ => None,
    };
    if let Some(wider) = wider
        && let Some(saving) = made(tenfold::ops::cast(&only, |_| Some(wider))?)?
    {
        return Ok(saving);
    }
    let message = "NumPy has no type for these elements".to_owned();
    Err(Refusal::wrong(message))
}

#[cfg(feature = "npy")]
fn header(sliced: &tenfold::Sliced<'_>) -> Option<Vec<u8>> {
    sliced.npy_header()
}

#[cfg(not(feature = "npy"))]
fn header(_: &tenfold::Sliced<'_>) -> Option<Vec<u8>> {
    None
}

/// The same as one answer.
pub(crate) fn whole(opened: &Opened, query: &Query) -> std::result::Result<Answer, Refusal> {
    let saving = saving(opened, query)?;
    if saving.len() > MOST {
        let message = format!(
            "{} bytes are too many for a page; `tenfold show -o FILE.npy` writes them",
            saving.len()
        );
        return Err(Refusal::wrong(message));
    }
    let mut bytes = Vec::new();
    saving.stream(&mut |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    })?;
    Ok(Answer::new(Kind::File, bytes))
}

/// A name that every system takes.
fn file_name(tensor: &str) -> String {
    let plain = tensor.chars().map(|c| {
        if c.is_ascii_alphanumeric() || ".-_".contains(c) {
            c
        } else {
            '_'
        }
    });
    let name: String = plain.take(120).collect();
    let name = name.trim_start_matches('.');
    format!("{}.npy", if name.is_empty() { "tensor" } else { name })
}
