//! What the readers of all generations share: places, shapes, checksums, and how parts make up a tensor.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::Context;
use crate::formats::ztensor::capability::MAX_RANK;
use crate::model::{
    Checksum, Codec, DType, DigestKind, Layout, Over, Part, Payload, Role, Scalar, SourceId,
    element_count,
};
use crate::prelude::*;
use crate::wire::cbor::{Decoder, Rules};

/// The rules under which CBOR is refused.
pub(super) static RULES: Rules = Rules {
    syntax: "ztensor.cbor",
    depth: "ztensor.cbor-depth",
    form: "ztensor.cbor-form",
    duplicate: "ztensor.duplicate",
    schema: "ztensor.schema",
};

/// Bytes of an index at most, whatever the limits allow.
const MAX_INDEX: u64 = 1 << 30;
/// A zstd block takes at least 4 bytes and gives at most 128 KiB: more than this many times cannot come out.
const MAX_RATIO: u64 = 32 << 10;

/// Whether bytes are one item of CBOR, nested no deeper than `depth`.
pub(super) fn is_cbor(bytes: &[u8], depth: usize, deterministic: bool) -> bool {
    let mut cbor = Decoder::new(bytes, 0, &RULES, depth);
    if deterministic {
        cbor = cbor.deterministic();
    }
    cbor.skip().and_then(|()| cbor.finish()).is_ok()
}

/// Reads the bytes of an index, which is known to lie in the file.
pub(super) fn index(cx: &Context<'_>, range: Range<u64>) -> Result<Bytes> {
    let len = range.end - range.start;
    let limit = cx.limits().header_bytes.min(MAX_INDEX);
    if len > limit {
        let message = format!("the index has {len} bytes, the limit (header_bytes) is {limit}");
        return Err(Error::limit("ztensor.index", message).at(range));
    }
    cx.source().read(range)
}

/// A required field.
pub(super) fn required<T>(field: Option<T>, name: &str, at: &Range<u64>) -> Result<T> {
    field.ok_or_else(|| {
        Error::malformed(
            "ztensor.schema",
            format!("the required field {name} is missing"),
        )
        .at(at.clone())
    })
}

/// The dimensions of a tensor.
pub(super) fn shape(cbor: &mut Decoder<'_>, cx: &Context<'_>) -> Result<Vec<u64>> {
    let at = cbor.pos();
    let limit = cx.limits().rank.min(MAX_RANK);
    let mut shape = Vec::new();
    cbor.array("shape", |cbor| {
        if shape.len() == limit {
            let message = format!("more than {limit} dimensions");
            return Err(Error::malformed("ztensor.shape", message).at(at..cbor.pos()));
        }
        shape.push(cbor.unsigned("a dimension")?);
        Ok(())
    })?;
    Ok(shape)
}

/// The number of elements.
pub(super) fn elements(shape: &[u64], at: &Range<u64>) -> Result<u64> {
    element_count(shape).ok_or_else(|| {
        let message = format!("the number of elements of shape {shape:?} does not fit 64 bits");
        Error::malformed("ztensor.overflow", message).at(at.clone())
    })
}

/// Bytes of the dense tensor.
pub(super) fn dense_len(dtype: DType, elements: u64, at: &Range<u64>) -> Result<u64> {
    dtype.bytes_for(elements).ok_or_else(|| {
        let message = format!("the size of {elements} elements of {dtype} does not fit 64 bits");
        Error::malformed("ztensor.overflow", message).at(at.clone())
    })
}

/// The place of data: a multiple of `align`, not at the beginning, ending before `end`.
pub(super) fn place(
    offset: u64,
    len: u64,
    align: u64,
    end: u64,
    at: &Range<u64>,
) -> Result<Range<u64>> {
    let refuse = |rule, message: String| Err(Error::malformed(rule, message).at(at.clone()));
    if offset % align != 0 || offset < align {
        let message = format!("data at byte {offset}, it must begin at a multiple of {align}");
        return refuse("ztensor.alignment", message);
    }
    match offset.checked_add(len) {
        None => refuse(
            "ztensor.overflow",
            format!("{len} bytes from byte {offset} on"),
        ),
        Some(found) if found > end => {
            let message = format!("data at bytes {offset}..{found}, there is room up to {end}");
            refuse("ztensor.bounds", message)
        }
        Some(found) => Ok(offset..found),
    }
}

/// Data of a tensor in one of the files: `file` is 0 for the one that was opened.
pub(super) struct Blob {
    pub(super) file: usize,
    pub(super) range: Range<u64>,
    /// Where the index speaks of it.
    pub(super) at: Range<u64>,
}

/// Data is shared as a whole, or not at all.
pub(super) fn check_overlaps(mut blobs: Vec<Blob>) -> Result<()> {
    blobs.retain(|blob| !blob.range.is_empty());
    let key = |blob: &Blob| (blob.file, blob.range.start, blob.range.end);
    if !blobs.is_sorted_by_key(key) {
        blobs.sort_unstable_by_key(key);
    }
    for pair in blobs.windows(2) {
        let [a, b] = pair else { continue };
        if a.file == b.file && b.range.start < a.range.end && a.range != b.range {
            let message = format!(
                "the data at bytes {}..{} and at bytes {}..{} overlap in part",
                a.range.start, a.range.end, b.range.start, b.range.end
            );
            return Err(Error::malformed("ztensor.overlap", message).at(b.at.clone()));
        }
    }
    Ok(())
}

/// A checksum of 0.1 and 1.x: `crc32c:0x` and up to 8 digits, or `sha256:` and 64, of the stored bytes.
pub(super) fn checksum(
    cx: &mut Context<'_>,
    text: &str,
    at: &Range<u64>,
) -> Result<Option<Checksum>> {
    let (kind, value) = match text.split_once(':') {
        Some(("crc32c", digits)) => {
            let digits = digits.strip_prefix("0x").filter(|digits| digits.len() <= 8);
            (
                DigestKind::Crc32c,
                digits.and_then(|digits| from_hex(&format!("{digits:0>8}"))),
            )
        }
        Some(("sha256", digits)) => (
            DigestKind::Sha256,
            from_hex(digits).filter(|value| value.len() == 32),
        ),
        _ => {
            cx.note(
                "ztensor.checksum",
                at.clone(),
                format!("{text:?} is not verified"),
            );
            return Ok(None);
        }
    };
    let value = value.filter(|_| text != "crc32c:0x").ok_or_else(|| {
        let message = format!("{text:?} is not crc32c:0x and 1 to 8 digits, or sha256: and 64");
        Error::malformed("ztensor.checksum", message).at(at.clone())
    })?;
    Ok(Some(Checksum {
        kind,
        over: Over::Stored,
        value,
    }))
}

/// Bytes from hexadecimal digits in any case.
pub(super) fn from_hex(digits: &str) -> Option<Bytes> {
    let digit = |byte: &u8| {
        char::from(*byte)
            .to_digit(16)
            .and_then(|n| u8::try_from(n).ok())
    };
    let pairs = digits.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> = pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        })
        .collect();
    bytes.map(Bytes::from)
}

/// Refuses compressed data that is too short for what it should give.
pub(super) fn check_ratio(stored: u64, decoded: u64, at: &Range<u64>) -> Result<()> {
    if decoded > stored.saturating_mul(MAX_RATIO) {
        let message = format!("{stored} compressed bytes cannot decode to {decoded}");
        return Err(Error::malformed("ztensor.zstd", message).at(at.clone()));
    }
    Ok(())
}

/// A part as 1.x and 2 describe it.
pub(super) struct StoredPart {
    pub(super) name: String,
    pub(super) dtype: DType,
    pub(super) source: SourceId,
    pub(super) range: Range<u64>,
    pub(super) codec: Option<Codec>,
    /// Bytes after decompression; `None` where the file does not say.
    pub(super) len: Option<u64>,
    pub(super) checksum: Option<Checksum>,
    /// Where the index speaks of it.
    pub(super) at: Range<u64>,
}

impl StoredPart {
    /// As a part of a tensor that must have `len` bytes.
    fn sized(mut self, role: Role, len: u64) -> Result<Part> {
        if self.len.is_some_and(|found| found != len) {
            let found = self.len.unwrap_or(0);
            let message = format!("{:?} has {found} bytes, the shape needs {len}", self.name);
            return Err(Error::malformed("ztensor.size", message).at(self.at));
        }
        self.len = Some(len);
        self.part(role)
    }

    /// As a part of a tensor, whatever its length.
    fn part(self, role: Role) -> Result<Part> {
        let Self {
            dtype,
            source,
            range,
            codec,
            checksum,
            ..
        } = self;
        let len = self.len.unwrap_or(0);
        let payload = match codec {
            None => Payload::Raw { source, range },
            Some(codec) => {
                check_ratio(range.end - range.start, len, &range)?;
                Payload::Encoded {
                    source,
                    range,
                    codec,
                    len,
                }
            }
        };
        Ok(Part {
            checksum,
            ..Part::new(role, dtype, payload)
        })
    }
}

/// How parts make up a tensor.
pub(super) struct Assembly {
    pub(super) dtype: DType,
    pub(super) layout: Layout,
    pub(super) parts: Vec<Part>,
}

/// The rules of a generation about sparse indices, and how it finds lengths that its files do not give.
pub(super) struct Assembler<'a> {
    pub(super) shape: &'a [u64],
    pub(super) elements: u64,
    /// Indices are u32 or u64, and all of the same type.
    pub(super) narrow_indices: bool,
    /// Where the index speaks of the tensor.
    pub(super) at: Range<u64>,
    pub(super) measure: &'a dyn Fn(&StoredPart) -> Result<u64>,
}

impl Assembler<'_> {
    fn refuse<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(Error::malformed("ztensor.layout", message).at(self.at.clone()))
    }

    /// The parts with these names, in their order; there may be no others.
    fn take<const N: usize>(
        &self,
        layout: &str,
        names: [&str; N],
        parts: Vec<StoredPart>,
    ) -> Result<[StoredPart; N]> {
        let mut found = names.map(|_| None);
        for part in parts {
            let slot = names
                .iter()
                .zip(&mut found)
                .find(|(name, _)| **name == part.name);
            match slot {
                Some((_, slot)) => *slot = Some(part),
                None => return self.refuse(format!("{layout} has no part {:?}", part.name)),
            }
        }
        for (name, slot) in names.iter().zip(&found) {
            if slot.is_none() {
                return self.refuse(format!("{layout} without its part {name:?}"));
            }
        }
        match found.into_iter().flatten().collect::<Vec<_>>().try_into() {
            Ok(parts) => Ok(parts),
            Err(_) => self.refuse(format!("{layout} without its parts")),
        }
    }

    /// One part with every element.
    pub(super) fn dense(self, parts: Vec<StoredPart>) -> Result<Assembly> {
        let [data] = self.take("a dense tensor", ["data"], parts)?;
        let dtype = data.dtype;
        let len = dense_len(dtype, self.elements, &self.at)?;
        let parts = vec![data.sized(Role::Values, len)?];
        Ok(Assembly {
            dtype,
            layout: Layout::RowMajor,
            parts,
        })
    }

    /// A matrix by rows.
    pub(super) fn csr(self, parts: Vec<StoredPart>) -> Result<Assembly> {
        let names = ["values", "indices", "indptr"];
        let [values, indices, indptr] = self.take("a sparse matrix by rows", names, parts)?;
        let &[rows, _] = self.shape else {
            return self.refuse(format!(
                "rows of a tensor of {} dimensions",
                self.shape.len()
            ));
        };
        let (width, starts_width) = (self.index_width(&indices)?, self.index_width(&indptr)?);
        if self.narrow_indices && indices.dtype != indptr.dtype {
            let message = format!("indices are {}, indptr is {}", indices.dtype, indptr.dtype);
            return self.refuse(message);
        }
        let starts = rows
            .checked_add(1)
            .and_then(|n| n.checked_mul(starts_width));
        let nnz = self.count(&indices, width)?;
        let dtype = values.dtype;
        let parts = vec![
            self.counted(values, Role::Values, dtype.bytes_for(nnz))?,
            self.counted(indices, Role::Indices, nnz.checked_mul(width))?,
            self.counted(indptr, Role::Indptr, starts)?,
        ];
        self.dense_must_fit(dtype)?;
        Ok(Assembly {
            dtype,
            layout: Layout::Csr { nnz },
            parts,
        })
    }

    /// Entries with a coordinate for each dimension.
    pub(super) fn coo(self, parts: Vec<StoredPart>) -> Result<Assembly> {
        let [values, coords] = self.take("a sparse tensor", ["values", "coords"], parts)?;
        let width = self.index_width(&coords)?;
        let rank = self.shape.len() as u64;
        if rank == 0 {
            return self.refuse("coordinates of a tensor without dimensions");
        }
        let nnz = self.count(&coords, width * rank)?;
        let dtype = values.dtype;
        let parts = vec![
            self.counted(values, Role::Values, dtype.bytes_for(nnz))?,
            self.counted(coords, Role::Coords, nnz.checked_mul(width * rank))?,
        ];
        self.dense_must_fit(dtype)?;
        Ok(Assembly {
            dtype,
            layout: Layout::Coo { nnz },
            parts,
        })
    }

    /// Parts with a meaning that only programs know.
    pub(super) fn opaque(self, scheme: &str, parts: Vec<StoredPart>) -> Result<Assembly> {
        let mut named = Vec::new();
        for mut part in parts {
            if part.len.is_none() {
                part.len = Some((self.measure)(&part)?);
            }
            let role = Role::Named(core::mem::take(&mut part.name));
            named.push(part.part(role)?);
        }
        let layout = Layout::Opaque {
            scheme: scheme.to_owned(),
        };
        Ok(Assembly {
            dtype: DType::PARTS,
            layout,
            parts: named,
        })
    }

    /// How many entries of `size` bytes an index part has.
    fn count(&self, part: &StoredPart, size: u64) -> Result<u64> {
        let len = match part.len {
            Some(len) => len,
            None => (self.measure)(part)?,
        };
        if len % size != 0 {
            let message = format!("{:?} has {len} bytes, not a multiple of {size}", part.name);
            return self.refuse(message);
        }
        Ok(len / size)
    }

    /// A part whose length follows from the number of entries.
    fn counted(&self, part: StoredPart, role: Role, len: Option<u64>) -> Result<Part> {
        let Some(len) = len else {
            return self.refuse(format!("{:?} does not fit 64 bits", part.name));
        };
        if let Some(found) = part.len.filter(|found| *found != len) {
            let message = format!("{:?} has {found} bytes, {len} are expected", part.name);
            return self.refuse(message);
        }
        part.sized(role, len)
    }

    fn index_width(&self, part: &StoredPart) -> Result<u64> {
        use Scalar::{I8, I16, I32, I64, U8, U16, U32, U64};
        let fits = match part.dtype {
            DType::U32 | DType::U64 => true,
            DType::Number(U8 | U16 | U32 | U64 | I8 | I16 | I32 | I64, _) => !self.narrow_indices,
            _ => false,
        };
        if !fits {
            let expected = if self.narrow_indices {
                "u32 or u64"
            } else {
                "integers"
            };
            let message = format!("{:?} is {}, {expected} are expected", part.name, part.dtype);
            return self.refuse(message);
        }
        Ok(part.dtype.swap_width() as u64)
    }

    fn dense_must_fit(&self, dtype: DType) -> Result<()> {
        dense_len(dtype, self.elements, &self.at).map(drop)
    }
}
