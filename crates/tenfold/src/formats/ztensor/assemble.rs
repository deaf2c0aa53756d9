//! How the parts that 1.x and 2 describe make up a tensor.

use alloc::borrow::Cow;

use crate::error::{Error, Result};
use crate::formats::ztensor::checksum::Sum;
use crate::formats::ztensor::read::{check_ratio, dense_len};
use crate::model::{Codec, DType, Layout, Part, PartList, Payload, Role, Scalar, Scheme, SourceId};
use crate::prelude::*;

/// A part as 1.x and 2 describe it.
pub(super) struct StoredPart<'b> {
    pub(super) name: Cow<'b, str>,
    pub(super) dtype: DType,
    pub(super) source: SourceId,
    pub(super) range: Range<u64>,
    pub(super) codec: Option<Codec>,
    /// Bytes after decompression; `None` where the file does not say.
    pub(super) len: Option<u64>,
    pub(super) sum: Sum,
    /// An encoding that is not known.
    pub(super) encoding: Option<String>,
    /// Where the index speaks of it.
    pub(super) at: Range<u64>,
}

impl StoredPart<'_> {
    /// As a part of a tensor that must have `len` bytes.
    fn sized(mut self, role: Role, len: u64) -> Result<Part, Misfit> {
        if self.len.is_some_and(|found| found != len) {
            let found = self.len.unwrap_or(0);
            let message = format!("{:?} has {found} bytes, the shape needs {len}", self.name);
            return Err(Error::malformed("ztensor.size", message).at(self.at).into());
        }
        self.len = Some(len);
        self.part(role)
    }

    /// As a part of a tensor, whatever its length.
    fn part(self, role: Role) -> Result<Part, Misfit> {
        let Self {
            dtype,
            source,
            range,
            codec,
            sum,
            encoding,
            ..
        } = self;
        let len = self.len.unwrap_or(0);
        let payload = match codec {
            None => Payload::Raw { source, range },
            Some(codec) => {
                let stored = range.end - range.start;
                check_ratio(stored, len, &range).map_err(Misfit::Ratio)?;
                Payload::Encoded {
                    source,
                    range,
                    codec,
                    len,
                }
            }
        };
        Ok(sum.on(Part::new(role, dtype, payload), encoding))
    }
}

/// Why parts make up no tensor. The generations disagree about what costs the file, and what the tensor alone.
pub(super) enum Misfit {
    /// Sizes that do not fit 64 bits.
    Overflow(Error),
    /// Compressed data that is too short for what it should give.
    Ratio(Error),
    /// Anything else.
    Other(Error),
}

impl From<Error> for Misfit {
    fn from(error: Error) -> Self {
        Misfit::Other(error)
    }
}

impl From<Misfit> for Error {
    fn from(misfit: Misfit) -> Self {
        let (Misfit::Overflow(error) | Misfit::Ratio(error) | Misfit::Other(error)) = misfit;
        error
    }
}

/// How parts make up a tensor.
pub(super) struct Assembly {
    pub(super) dtype: DType,
    pub(super) layout: Layout,
    pub(super) parts: PartList,
}

/// The rules of a generation about sparse indices, and how it finds lengths that its files do not give.
pub(super) struct Assembler<'a> {
    pub(super) shape: &'a [u64],
    pub(super) elements: u64,
    /// Indices are u32 or u64, and all of the same type.
    pub(super) narrow_indices: bool,
    /// Where the index speaks of the tensor.
    pub(super) at: Range<u64>,
    pub(super) measure: &'a dyn Fn(&StoredPart<'_>) -> Result<u64>,
}

impl Assembler<'_> {
    fn refuse<T>(&self, message: impl Into<String>) -> Result<T, Misfit> {
        let error = Error::malformed("ztensor.layout", message);
        Err(error.at(self.at.clone()).into())
    }

    /// The parts with these names, in their order; there may be no others.
    fn take<'b, const N: usize>(
        &self,
        layout: &str,
        names: [&str; N],
        parts: Vec<StoredPart<'b>>,
    ) -> Result<[StoredPart<'b>; N], Misfit> {
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
                return self.refuse(format!("{layout} lacks its part {name:?}"));
            }
        }
        match found.into_iter().flatten().collect::<Vec<_>>().try_into() {
            Ok(parts) => Ok(parts),
            Err(_) => self.refuse(format!("{layout} lacks its parts")),
        }
    }

    /// One part with every element.
    pub(super) fn dense(self, parts: Vec<StoredPart<'_>>) -> Result<Assembly, Misfit> {
        // Nearly every tensor is one of these.
        let [data] = match <[StoredPart<'_>; 1]>::try_from(parts) {
            Ok([data]) if data.name == "data" => [data],
            Ok(only) => self.take("a dense tensor", ["data"], only.into())?,
            Err(parts) => self.take("a dense tensor", ["data"], parts)?,
        };
        let dtype = data.dtype;
        let len = self.dense_len(dtype)?;
        Ok(Assembly {
            dtype,
            layout: Layout::RowMajor,
            parts: data.sized(Role::Values, len)?.into(),
        })
    }

    /// A matrix by rows.
    pub(super) fn csr(self, parts: Vec<StoredPart<'_>>) -> Result<Assembly, Misfit> {
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
        self.dense_len(dtype)?;
        Ok(Assembly {
            dtype,
            layout: Layout::Csr { nnz },
            parts: parts.into(),
        })
    }

    /// Entries with a coordinate for each dimension.
    pub(super) fn coo(self, parts: Vec<StoredPart<'_>>) -> Result<Assembly, Misfit> {
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
        self.dense_len(dtype)?;
        Ok(Assembly {
            dtype,
            layout: Layout::Coo { nnz },
            parts: parts.into(),
        })
    }

    /// Parts with a meaning that only programs know.
    pub(super) fn opaque(
        self,
        scheme: &str,
        parts: Vec<StoredPart<'_>>,
    ) -> Result<Assembly, Misfit> {
        let mut named = PartList::new();
        for mut part in parts {
            if part.len.is_none() {
                part.len = Some((self.measure)(&part)?);
            }
            let role = Role::Named(core::mem::take(&mut part.name).into_owned());
            named.push(part.part(role)?);
        }
        Ok(Assembly {
            dtype: DType::PARTS,
            layout: Scheme::new(scheme, "").into(),
            parts: named,
        })
    }

    /// How many entries of `size` bytes an index part has.
    fn count(&self, part: &StoredPart<'_>, size: u64) -> Result<u64, Misfit> {
        let len = match part.len {
            Some(len) => len,
            None => (self.measure)(part)?,
        };
        if !len.is_multiple_of(size) {
            let message = format!("{:?} has {len} bytes, not a multiple of {size}", part.name);
            return self.refuse(message);
        }
        Ok(len / size)
    }

    /// A part whose length follows from the number of entries.
    fn counted(&self, part: StoredPart<'_>, role: Role, len: Option<u64>) -> Result<Part, Misfit> {
        let Some(len) = len else {
            return self.refuse(format!("{:?} does not fit 64 bits", part.name));
        };
        if let Some(found) = part.len.filter(|found| *found != len) {
            let message = format!("{:?} has {found} bytes, expected {len}", part.name);
            return self.refuse(message);
        }
        part.sized(role, len)
    }

    fn index_width(&self, part: &StoredPart<'_>) -> Result<u64, Misfit> {
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
            let message = format!("{:?} is {}, expected {expected}", part.name, part.dtype);
            return self.refuse(message);
        }
        Ok(part.dtype.swap_width() as u64)
    }

    /// Bytes of the dense tensor, which must fit 64 bits also where it is stored in another way.
    fn dense_len(&self, dtype: DType) -> Result<u64, Misfit> {
        dense_len(dtype, self.elements, &self.at).map_err(Misfit::Overflow)
    }
}
