//! MATLAB's MAT-files: variables by their names, column-major. Level 4, level 5 (`-v6`, and compressed `-v7`), and 7.3, which
//! is HDF5 with rules of its own.
//!
//! | level 5  | size | notes                                                                                                |
//! |----------|------|------------------------------------------------------------------------------------------------------|
//! | text     | 116  | `MATLAB 5.0 MAT-file, ...`                                                                           |
//! | offset   | 8    | of what classes of MATLAB's own need                                                                 |
//! | version  | 2    | 0x0100                                                                                               |
//! | order    | 2    | `IM`: little-endian, `MI`: big-endian                                                                |
//! | elements |      | u32 type, u32 length, data, padding to 8; or u16 length, u16 type and up to 4 bytes of data           |
//!
//! A variable is an element 14 of elements: flags and class, dimensions, name, data. Or it is an element 15: such an element
//! in a zlib stream. Data has the type of its class or a narrower one; real and imaginary parts are elements of their own.
//! Structures and cells are names (`s.field`, `s.0.field`, `c.0`), text is metadata, sparse matrices are stored by columns.
//!
//! | level 4 | size | notes                                                                                                 |
//! |---------|------|-------------------------------------------------------------------------------------------------------|
//! | type    | 4    | decimal digits: machine, 0, type of the numbers, kind of the matrix                                   |
//! | size    | 16   | rows, columns, whether there are imaginary parts, length of the name                                  |
//! | name    |      | with a zero byte                                                                                      |
//! | data    |      | real parts, then imaginary ones; no padding                                                           |
//!
//! Objects, functions and what belongs to them are skipped with a note. Rank is 2 at least. The rules are listed in
//! `docs/formats/mat.md`. Source: "MAT-File Format" of MathWorks, and the behaviour of SciPy 1.17, Octave 7.3 and
//! hdf5storage 0.2.

#[cfg(feature = "mat")]
mod codec;
#[cfg(feature = "mat")]
mod found;
#[cfg(feature = "mat")]
mod level4;
#[cfg(feature = "mat")]
mod level5;
#[cfg(feature = "mat")]
mod level7;
// Without writing, the table alone needs it.
mod limits;
#[cfg(feature = "mat")]
mod stream;
#[cfg(feature = "mat")]
mod text;
mod types;
#[cfg(all(feature = "mat", feature = "write"))]
mod write;

#[cfg(feature = "mat")]
use codec::Mat;

use crate::format::{Capabilities, Entry, OptionSpec, Profile, Spec, written};

/// The row of the table of formats.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "mat")]
    codec: Some(&Mat),
    #[cfg(not(feature = "mat"))]
    codec: None,
};

/// What is known of the format without its codec.
pub static SPEC: Spec = Spec {
    reads: &["4", LEVEL_5, LEVEL_7],
    writes: written(WRITES),
    options: &[OptionSpec::new(
        "deflate",
        "0-9",
        "compress variables, 1 fast to 9 small, 0 not at all (default: those that were compressed)",
    )],
    ..Spec::known(
        "mat",
        "MATLAB",
        &["mat"],
        &[(0, b"MATLAB 5.0 MAT-file"), (0, b"MATLAB 7.3 MAT-file")],
    )
};

/// The versions that are written.
const WRITES: &[Profile] = &[Profile {
    version: LEVEL_5,
    read_by: "MATLAB 5 and later, Octave, SciPy, matio, Julia's MAT.jl",
    can: Capabilities {
        min_rank: 2,
        name: limits::name,
        dtype: limits::dtype,
        layout: limits::layout,
        tensor: limits::small,
        file_value: limits::value,
        ..Capabilities::new()
    },
}];

/// The version that is written.
const LEVEL_5: &str = "5";
const LEVEL_7: &str = "7.3";
