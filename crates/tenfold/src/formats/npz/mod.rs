//! NumPy's `.npz`: a zip archive with an array in each member `NAME.npy`.
//!
//! | part             | notes                                                                                         |
//! |------------------|-----------------------------------------------------------------------------------------------|
//! | members          | `PK\x03\x04`, sizes and CRC-32, name, extra fields; then an array as in `.npy`, stored or deflated |
//! | directory        | `PK\x01\x02` for each member: what counts about sizes, checksums and places                   |
//! | end records      | with numbers of 64 bits where they are needed (`PK\x06\x06`, `PK\x06\x07`), then `PK\x05\x06`  |
//!
//! A tensor's name is that of its member without `.npy`; other members that begin like an array are arrays too, and the
//! rest is skipped. Stored arrays are read in place, deflated ones as a stream, and the CRC-32 of each is verified.
//! Written are stored arrays, each at a multiple of 64 bytes, or deflated ones (the option `deflate=6`). Refused are
//! encrypted members, other methods of compression, members that overlap or have the same name, and whatever is refused
//! in `.npy`. The rules are listed in `docs/formats/npz.md`. Source: NumPy's documentation, PKWARE's description of
//! zip, and the behaviour of NumPy 2.4.

#[cfg(feature = "npz")]
mod codec;
#[cfg(feature = "npz")]
mod salvage;
#[cfg(feature = "npz")]
mod write;

#[cfg(feature = "npz")]
use codec::Npz;

use crate::format::{Entry, OptionSpec, Profile, Spec, written};

/// The row of the table of formats.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "npz")]
    codec: Some(&Npz),
    #[cfg(not(feature = "npz"))]
    codec: None,
};

/// The facts about `.npz`.
pub static SPEC: Spec = Spec {
    id: "npz",
    name: "NumPy archive",
    extensions: &["npz"],
    // Only for builds without the codec, which looks at the members: how NumPy's own writer begins, stored and deflated.
    magic: &[
        (0, b"PK\x03\x04\x2d\0\0\0\0\0\0\0\x21\0"),
        (0, b"PK\x03\x04\x2d\0\0\0\x08\0\0\0\x21\0"),
    ],
    reads: &[ZIP],
    writes: written(WRITES),
    options: &[OptionSpec {
        key: "deflate",
        value: "0-9",
        help: "compress the arrays, from 1 (fast) to 9 (small), or 0 for not at all (default: what is deflated \
        stays so, everything else is stored)",
    }],
};

/// The versions that are written.
const WRITES: &[Profile] = &[Profile {
    version: ZIP,
    read_by: "every NumPy; bf16 as bytes, to be viewed with ml_dtypes; f8_e5m2 by tenfold alone",
    can: super::numpy::capabilities(u64::MAX, |name| {
        if name.len() > MAX_NAME {
            Err("a member's name has at most 65531 bytes")
        } else if name.contains('\0') {
            Err("NumPy ends names at a zero byte")
        } else {
            Ok(())
        }
    }),
}];

/// The only version there is.
const ZIP: &str = "zip";
/// What members with arrays end in.
#[cfg(feature = "npz")]
const EXTENSION: &str = ".npy";
/// Bytes of a name, with room for the extension.
const MAX_NAME: usize = 65531;
