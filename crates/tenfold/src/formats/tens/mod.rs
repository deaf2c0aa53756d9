//! TENS, the binary tensor format of cc4s: one tensor without a name, densely, packed by symmetry, or as a list of
//! indices and values.
//!
//! Numbers of headers are little endian. The first index runs fastest.
//!
//! | offset | size | field               | notes                                                                |
//! |--------|------|---------------------|----------------------------------------------------------------------|
//! | 0      | 4    | magic               | `TENS`                                                               |
//! | 4      | 4    | version             | 0x00010000: 1.0; 0x00009000: 0.9                                     |
//! | 8      | 4    | number type         | `uint` `sint` little, `UINT` `SINT` big endian, `IEEE` little endian |
//! | 12     | 4    | bytes per number    | 1 2 4 8 16; IEEE 4 8 16                                              |
//! | 16     | 4    | numbers per element | 1 2 4 8                                                              |
//! | 20     | 4    | order               | dimensions                                                           |
//! | 24     | 4    | flags               | bit 0 IX: indices and values                                         |
//! | 28     | 4    | zero                |                                                                      |
//! | 32     | 8 each | dimensions        | length u32, index name u8, flags u8 (bit 0 SP: sparse), zero u16     |
//! |        |      | chunks              | magic, 8 bytes; total size u64, a multiple of 8; body                |
//! |        |      | data                | the chunk `DENSDATA`; with IX a count u64 and records of index u64 and element |
//!
//! A chunk `SYMMETRY` has in its body flags u8 (bit 0 PK: packed), the length of an operation's code u8, the code (`x`,
//! `-x`, `conj(x)`, `-conj(x)`), and the names of the indices, permuted.
//!
//! Version 0.9 has no chunks: the elements follow the dimensions and end the file. It is what cc4s wrote until 2020.
//!
//! Both are read and written. Refused are number types that do not exist, lengths whose product is too large, chunks
//! that do not fit, packing that nobody defined, and entries that contradict each other. The rules are listed in
//! `docs/formats/tens.md`, with the open points of the specification and how they are settled here. Source: the
//! specification of 2017-01-13, files of version 0.9 that cc4s wrote, and its published source.

#[cfg(feature = "tens")]
mod codec;
mod meta;
#[cfg(feature = "tens")]
mod plan;
#[cfg(feature = "tens")]
mod raw;

#[cfg(feature = "tens")]
use codec::Tens;

use crate::format::{Capabilities, Entry, Fit, OptionSpec, Profile, Spec, written};
use crate::model::{DType, Lanes, Layout, PairIndex, Scalar, TensorInfo};
use crate::prelude::*;

/// The row of the table of formats.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "tens")]
    codec: Some(&Tens),
    #[cfg(not(feature = "tens"))]
    codec: None,
};

/// The facts about TENS.
pub static SPEC: Spec = Spec {
    id: "tens",
    name: "TENS",
    extensions: &["tens"],
    magic: &[(0, b"TENS")],
    reads: &[V10, V09],
    writes: written(WRITES),
    options: &[
        OptionSpec {
            key: "endian",
            value: "big|little",
            help: "the byte order of integers (little); floating-point numbers are always little-endian",
        },
        OptionSpec {
            key: "pack",
            value: "auto|OPERATION:MAP",
            help: "leave out what a symmetry restores: one that is found, or the one named, such as -x:ba",
        },
    ],
};

/// The versions that are written.
const WRITES: &[Profile] = &[
    Profile {
        version: V10,
        read_by: "tenfold; no other program that we know of (it is the layout of the specification)",
        can: Capabilities {
            max_tensors: 1,
            min_rank: 0,
            max_rank: u32::MAX as usize,
            zero_sizes: true,
            name: |_| Ok(()),
            dtype: has_dtype,
            layout: |layout| match layout {
                Layout::ColumnMajor | Layout::Packed(_) => true,
                Layout::Pairs(pairs) => pairs.index == PairIndex::ColumnMajor,
                _ => false,
            },
            tensor: |tensor| sizes_fit(tensor).and_then(|()| meta::fits(tensor)),
            file_value: |_, _| Fit::No,
            tensor_value: meta::value,
            kept: true,
            big_endian: false,
            zstd: false,
            checksums: &[],
        },
    },
    Profile {
        version: V09,
        read_by: "cc4s of September 2016 to 2020",
        can: Capabilities {
            max_tensors: 1,
            min_rank: 0,
            max_rank: MAX_RANK_09,
            zero_sizes: true,
            name: |_| Ok(()),
            dtype: |dtype| {
                matches!(
                    dtype,
                    DType::Number(Scalar::F64 | Scalar::F128, Lanes::Real | Lanes::Complex)
                )
            },
            layout: |layout| *layout == Layout::ColumnMajor,
            tensor: sizes_fit,
            file_value: |_, _| Fit::No,
            tensor_value: meta::value_09,
            kept: false,
            big_endian: false,
            zstd: false,
            checksums: &[],
        },
    },
];

const V10: &str = "1.0";
const V09: &str = "0.9";

/// The names of 0.9 are the bytes from `a` on.
const MAX_RANK_09: usize = 64;

/// The number types with the scalars of each, by their bytes.
const INTEGERS: [(Scalar, Scalar); 5] = [
    (Scalar::U8, Scalar::I8),
    (Scalar::U16, Scalar::I16),
    (Scalar::U32, Scalar::I32),
    (Scalar::U64, Scalar::I64),
    (Scalar::U128, Scalar::I128),
];
const FLOATS: [Scalar; 3] = [Scalar::F32, Scalar::F64, Scalar::F128];

fn has_dtype(dtype: DType) -> bool {
    match dtype {
        DType::Number(scalar, _) => {
            FLOATS.contains(&scalar)
                || INTEGERS
                    .iter()
                    .any(|&(unsigned, signed)| scalar == unsigned || scalar == signed)
        }
        _ => false,
    }
}

/// Lengths are numbers of 32 bits, and all elements have less than 2^63 bytes.
fn sizes_fit(tensor: &TensorInfo) -> Result<(), String> {
    if let Some(length) = tensor
        .shape
        .iter()
        .find(|&&length| length > u32::MAX.into())
    {
        return Err(format!(
            "a dimension has at most {} places, not {length}",
            u32::MAX
        ));
    }
    match tensor.dense_len() {
        Some(len) if len <= i64::MAX as u64 => Ok(()),
        _ => Err("its elements have 2^63 bytes or more".into()),
    }
}
