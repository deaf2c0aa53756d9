//! NumPy's `.npy`: one array after a text header. It has no name, so the file's is used.
//!
//! | offset | size | field         | notes                                                                           |
//! |--------|------|---------------|---------------------------------------------------------------------------------|
//! | 0      | 6    | magic         | 0x93 `NUMPY`                                                                    |
//! | 6      | 2    | version       | 1.0, 2.0 or 3.0                                                                 |
//! | 8      | 2, 4 | header length | L, little endian: u16 in 1.0, u32 later                                         |
//! | 10, 12 | L    | header        | `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`, spaces, a newline |
//! |        |      | elements      | row-major, or column-major where `fortran_order` says so                        |
//!
//! Read are all versions, numbers in both orders of bytes and of dimensions, and bfloat16 and float8_e5m2 as ml_dtypes
//! writes them. Version 1.0 is written, little-endian and row-major. Refused by name are objects (a pickle, never loaded),
//! text, times, records and numbers of 80 bits. The rules are listed in `docs/formats/npy.md`. Source: NumPy's
//! description of the format, and the behaviour of NumPy 2.4 and of old releases.

#[cfg(feature = "npy")]
mod codec;

#[cfg(feature = "npy")]
use codec::Npy;

use crate::format::{Entry, Profile, Spec, written};
use crate::wire::numpy;

/// The row of the table of formats.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "npy")]
    codec: Some(&Npy),
    #[cfg(not(feature = "npy"))]
    codec: None,
};

/// The facts about `.npy`.
pub static SPEC: Spec = Spec {
    id: "npy",
    name: "NumPy",
    extensions: &["npy"],
    magic: &[(0, numpy::MAGIC)],
    reads: &["1.0", "2.0", "3.0"],
    writes: written(WRITES),
    options: &[],
};

/// The versions that are written.
const WRITES: &[Profile] = &[Profile {
    version: "1.0",
    read_by: "every NumPy; bf16 as bytes, to be viewed with ml_dtypes; f8_e5m2 by tenfold alone",
    can: super::numpy::capabilities(1, |_| Ok(())),
}];
