//! NetCDF's classic files: named variables over shared dimensions, with attributes. Everything is big-endian.
//!
//! | field     | size    | notes                                                                                        |
//! |-----------|---------|----------------------------------------------------------------------------------------------|
//! | magic     | 4       | `CDF` and the version: 1, 2 (64-bit offset) or 5 (64-bit data)                               |
//! | numrecs   | N       | records; all ones: as many as the file has                                                   |
//! | dim_list  |         | tag 10, N count, then name and N length of each; the one of length 0 counts records          |
//! | gatt_list |         | tag 12, N count, then name, u32 type, N count and values of each                             |
//! | var_list  |         | tag 11, N count, then name, N rank, N dimension ids, attributes, u32 type, N vsize, begin    |
//! | data      |         | fixed variables in one piece each, then records: a block of every record variable            |
//!
//! N has 4 bytes in CDF-1 and CDF-2 and 8 in CDF-5, `begin` 4 in CDF-1 and 8 later. Names and values are padded to 4 bytes,
//! as blocks of records are, unless there is a single record variable.
//!
//! All three are read, CDF-2 and CDF-5 are written, with records where the metadata `record_dimension` names their dimension. `vsize` is not looked at: it is wrong for large
//! variables. Variables of text are no tensors: they stay in a NetCDF file, and are lost in any other. NetCDF-4 files are
//! HDF5. The rules are listed in `docs/formats/netcdf.md`. Source: the NetCDF Classic Format Specification, and the
//! behaviour of netCDF-C 4.10.

#[cfg(feature = "netcdf")]
mod codec;
mod limits;
#[cfg(feature = "netcdf")]
mod raw;
#[cfg(all(feature = "netcdf", feature = "write"))]
mod records;
mod types;
#[cfg(all(feature = "netcdf", feature = "write"))]
mod write;

#[cfg(feature = "netcdf")]
use codec::NetCdf;

use crate::format::{Capabilities, Entry, Profile, Spec, written};

/// The row of the table of formats.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "netcdf")]
    codec: Some(&NetCdf),
    #[cfg(not(feature = "netcdf"))]
    codec: None,
};

/// What is known of the format without its codec.
pub static SPEC: Spec = Spec {
    reads: &["CDF-1", CDF_2, CDF_5],
    writes: written(WRITES),
    ..Spec::known(
        "netcdf",
        "NetCDF",
        &["nc", "cdf", "nc3"],
        &[(0, b"CDF\x01"), (0, b"CDF\x02"), (0, b"CDF\x05")],
    )
};

/// The versions that are written.
const WRITES: &[Profile] = &[
    Profile {
        version: CDF_2,
        read_by: "netCDF-C 3.6 and later, netCDF4-python, xarray, SciPy, NCO, CDO",
        can: Capabilities {
            dtype: limits::old_dtype,
            tensor: limits::small,
            file_value: limits::old_value,
            tensor_value: limits::old_value,
            ..CAN
        },
    },
    Profile {
        version: CDF_5,
        read_by: "netCDF-C 4.4 and later, netCDF4-python, xarray, PnetCDF; not SciPy",
        can: Capabilities {
            dtype: limits::dtype,
            tensor: limits::countable,
            file_value: limits::value,
            tensor_value: limits::value,
            ..CAN
        },
    },
];

const CAN: Capabilities = Capabilities {
    max_rank: MAX_RANK,
    // A length of 0 would be that of the records.
    zero_sizes: false,
    name: limits::name,
    kept: true,
    big_endian: true,
    ..Capabilities::new()
};

const CDF_2: &str = "CDF-2";
const CDF_5: &str = "CDF-5";
/// Dimensions of a variable, at most: `NC_MAX_VAR_DIMS`.
const MAX_RANK: usize = 1024;
/// The key of a tensor's metadata for the names of its dimensions.
const DIMENSIONS: &str = "dimension_names";
/// The key of the file's metadata for the name of the dimension that counts records.
#[cfg(feature = "netcdf")]
const RECORD_DIMENSION: &str = "record_dimension";
/// The attribute by which xarray tells bool from i8, and its value.
#[cfg(feature = "netcdf")]
const BOOL: (&str, &str) = ("dtype", "bool");
