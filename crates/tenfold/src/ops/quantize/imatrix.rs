//! Importance matrices: how much each column of a model's matrices counts, as llama.cpp measures and stores it.
//!
//! | old form    | content                                                                       |
//! |-------------|-------------------------------------------------------------------------------|
//! | count       | i32                                                                           |
//! | entries     | i32 length of the name, name, i32 calls, i32 number of values, f32 values     |
//! | at the end  | nothing, or i32 chunks, i32 length of a name, the name of the data            |
//!
//! The new form is GGUF, with `NAME.in_sum2` and `NAME.counts` for each matrix.

use alloc::collections::BTreeMap;

use crate::archive::{Archive, OpenOptions};
use crate::error::{Error, Result};
use crate::io::{Reader, Source, as_size};
use crate::model::{Metadata, Value};
use crate::prelude::*;

/// How much the columns of matrices count: what llama.cpp's `llama-imatrix` writes, in both of its forms.
///
/// ```no_run
/// use tenfold::ops::{ImportanceMatrix, Mixture, QuantizeOptions, quantize};
/// use tenfold::Archive;
/// let importance = ImportanceMatrix::open("imatrix.gguf")?;
/// let mixture = Mixture::from_name("Q4_K_M");
/// let options = QuantizeOptions::new().mixture(mixture).importance(importance);
/// quantize(&Archive::open("model-f16.gguf")?, &options)?.archive.save("model-Q4_K_M.gguf")?;
/// # Ok::<(), tenfold::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ImportanceMatrix {
    entries: BTreeMap<String, Arc<[f32]>>,
    pub(super) file: Option<String>,
    datasets: Vec<String>,
    chunks: Option<u64>,
}

impl ImportanceMatrix {
    /// Reads a file.
    #[cfg(feature = "std")]
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Self> {
        let path = path.as_ref();
        let source = Arc::new(crate::io::FileSource::open(path)?);
        let mut matrix = Self::read(source)?;
        matrix.file = Some(path.to_string_lossy().into_owned());
        Ok(matrix)
    }

    /// Reads it from anywhere.
    pub fn read(source: Arc<dyn Source>) -> Result<Self> {
        let mut head = Reader::new(&*source, TRUNCATED);
        let matrix = if head.remaining() >= 4 && head.take(4, "the magic")?[..] == *b"GGUF" {
            of_gguf(&OpenOptions::new().format(Some("gguf")).read(source, None)?)?
        } else {
            of_old(&mut Reader::new(&*source, TRUNCATED))?
        };
        for (name, columns) in &matrix.entries {
            if let Some(value) = columns.iter().find(|value| !value.is_finite()) {
                let message = format!("the importances of {name:?} contain {value}");
                return Err(Error::malformed("imatrix.finite", message));
            }
        }
        Ok(matrix)
    }

    /// How much each column of a matrix counts, for each of several matrices in a tensor.
    pub fn get(&self, tensor: &str) -> Option<&Arc<[f32]>> {
        self.entries.get(tensor)
    }

    /// The names of the tensors that are known.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// What a quantized file says about it.
    pub(super) fn describe(&self, metadata: &mut Metadata) {
        let mut set = |key: &str, value| metadata.set(key, value);
        if let Some(file) = &self.file {
            set("quantize.imatrix.file", Value::Str(file.clone()));
        }
        if let Some(dataset) = self.datasets.first() {
            set("quantize.imatrix.dataset", Value::Str(dataset.clone()));
        }
        let entries = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        set("quantize.imatrix.entries_count", Value::U32(entries));
        if let Some(chunks) = self.chunks.and_then(|chunks| u32::try_from(chunks).ok()) {
            set("quantize.imatrix.chunks_count", Value::U32(chunks));
        }
    }
}

const TRUNCATED: &str = "imatrix.truncated";

fn of_gguf(archive: &Archive) -> Result<ImportanceMatrix> {
    let metadata = archive.load_metadata()?;
    let missing = |key: &str| {
        let message =
            format!("{key} is missing or not what it must be; importance matrices have it");
        Error::malformed("imatrix.metadata", message)
    };
    let required = |key: &str| metadata.get(key).ok_or_else(|| missing(key));
    if required("general.type")?.as_str() != Some("imatrix") {
        return Err(missing("general.type"));
    }
    let datasets = match required("imatrix.datasets")? {
        Value::List(list) => list
            .iter()
            .filter_map(|name| name.as_str().map(ToOwned::to_owned))
            .collect(),
        Value::Empty(_) => Vec::new(),
        _ => return Err(missing("imatrix.datasets")),
    };
    let number = |key: &str| {
        let value = required(key)?;
        value.as_u64().ok_or_else(|| missing(key))
    };
    number("imatrix.chunk_size")?;
    let chunks = number("imatrix.chunk_count")?;
    let mut entries = BTreeMap::new();
    for tensor in archive.tensors() {
        let Some(name) = tensor.name().strip_suffix(".in_sum2") else {
            continue;
        };
        let counts = archive.get(&format!("{name}.counts")).ok_or_else(|| {
            let message = format!("{name:?} has sums and no counts");
            Error::malformed("imatrix.counts", message)
        })?;
        let (sums, counts) = (tensor.to::<f32>()?, counts.to::<f32>()?);
        let columns = averages(&sums, &counts).ok_or_else(|| {
            let (sums, counts) = (sums.len(), counts.len());
            let message = format!("{name:?} has {sums} sums, which {counts} counts do not divide");
            Error::malformed("imatrix.counts", message)
        })?;
        entries.insert(name.to_owned(), columns);
    }
    let chunks = Some(chunks).filter(|&chunks| chunks > 0);
    Ok(ImportanceMatrix {
        entries,
        file: None,
        datasets,
        chunks,
    })
}

/// The sums of each matrix over how often they were added to, and 1 for a matrix that no data came to.
fn averages(sums: &[f32], counts: &[f32]) -> Option<Arc<[f32]>> {
    let columns = sums.len().checked_div(counts.len())?;
    if columns == 0 || !sums.len().is_multiple_of(counts.len()) {
        return None;
    }
    let mut averages = Vec::with_capacity(sums.len());
    for (sums, &count) in sums.chunks_exact(columns).zip(counts) {
        let count = rounded(count);
        averages.extend(
            sums.iter()
                .map(|&sum| if count > 0.0 { sum / count } else { 1.0 }),
        );
    }
    Some(averages.into())
}

/// To the nearest whole number, halves up; counts are not negative.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // as far as an f32 counts
fn rounded(count: f32) -> f32 {
    let below = count as i64 as f32;
    if count - below >= 0.5 {
        below + 1.0
    } else {
        below
    }
}

fn of_old(file: &mut Reader<'_>) -> Result<ImportanceMatrix> {
    let entries = size(file, "the number of entries")?;
    // Four numbers of four bytes each at least.
    let count = file.count(entries, 12, "the number of entries")?;
    if count == 0 {
        let message = "this is no importance matrix: it has no entries";
        return Err(Error::malformed("imatrix.entries", message).at(0..4));
    }
    let mut found = BTreeMap::new();
    for _ in 0..count {
        let len = size(file, "the length of a name")?;
        let name = file.text(len, "imatrix.name", "the name of an entry")?;
        let calls = size(file, "the number of calls")?;
        let values = size(file, "the number of values")?;
        if values == 0 {
            let message = format!("{name:?} has no values");
            return Err(Error::malformed("imatrix.values", message).at(file.pos()..file.pos()));
        }
        let len = values.saturating_mul(4);
        as_size(len)?;
        let bytes = file.take(len, "the values of an entry")?;
        let calls = calls_as_number(calls);
        let values = bytes.as_chunks().0.iter().map(|bytes| {
            let value = f32::from_le_bytes(*bytes);
            if calls > 0.0 { value / calls } else { value }
        });
        found.insert(name, values.collect());
    }
    let mut matrix = ImportanceMatrix {
        entries: found,
        ..ImportanceMatrix::default()
    };
    if file.remaining() > 0 {
        matrix.chunks = Some(size(file, "the number of chunks")?);
        let len = size(file, "the length of a name")?;
        let dataset = file.text(len, "imatrix.name", "the name of the data")?;
        matrix.datasets.push(dataset);
    }
    Ok(matrix)
}

#[allow(clippy::cast_precision_loss)] // as llama.cpp
fn calls_as_number(calls: u64) -> f32 {
    calls as f32
}

/// A number that is stored with a sign and has none.
fn size(file: &mut Reader<'_>, field: &'static str) -> Result<u64> {
    let at = file.pos();
    let number = file.u32(field)?.cast_signed();
    u64::try_from(number).map_err(|cause| {
        Error::malformed("imatrix.negative", format!("{field} is {number}"))
            .at(at..at + 4)
            .because(cause)
    })
}
