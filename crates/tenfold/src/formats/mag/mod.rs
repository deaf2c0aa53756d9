//! Magnetron `.mag`: five layouts that share one magic, each with all headers first and then all data.
//!
//! Everything is little endian; data is dense and row-major.
//!
//! | offset | size | field   | notes                                                                        |
//! |--------|------|---------|------------------------------------------------------------------------------|
//! | 0      | 4    | magic   | `MAG!`                                                                       |
//! | 4      | 4    | version | 1: `spec-1` or `archive-1`; 100, 200, 300: `snapshot-0.1.0`, `-0.2.0`, `-0.3.0` |
//!
//! Version 1, the layout of the specification (`spec-1`) and that of magnetron 0.1.2 (`archive-1`):
//!
//! | offset | size | field       | notes                                                       |
//! |--------|------|-------------|-------------------------------------------------------------|
//! | 8      | 4    | checksum    | CRC-32C of bytes 12 .. end of the records (`spec-1`: five other readings too) |
//! | 12     | 4    | num_tensors |                                                             |
//! | 16     | 4    | num_meta_kv |                                                             |
//! | 20     | 4    | aux         | 0                                                           |
//! | 24     |      | metadata    | aux u32 (type tag), payload u64, key_length u32, key        |
//! |        |      | tensors     | `spec-1`: key_length u32, key, shape i64\[6\], dtype u8, data_length u64, data_offset u64, aux u32 |
//! |        |      |             | `archive-1`: dtype \| rank << 8 u32, numel u64, offset u64, shape u64\[rank\], key_length u32, key |
//! |        |      | data        | at absolute offsets                                         |
//!
//! Versions 100 and 200 (`snapshot-0.1.0`, `snapshot-0.2.0`):
//!
//! | offset | size | field            | notes                                                  |
//! |--------|------|------------------|--------------------------------------------------------|
//! | 8      | 8    | timestamp        | seconds since 1970                                     |
//! | 16     | 4    | checksum         | CRC-32C of bytes 20 .. end of the descriptors          |
//! | 20     | 4    | aux              | ignored                                                |
//! | 24     | 4    | metadata_map_len | 0                                                      |
//! | 28     | 4    | tensor count     |                                                        |
//! | 32     |      | `SRP!`           | names: count u32, offsets u32\[count + 1\], their text |
//! |        |      | `MDT!` `DSC!`    | descriptors: rank u8, dtype u8, 0 u16, key_id u32, numel u64, offset u64, shape u64\[rank\] |
//! |        |      | `BUF!`           | data: packed (100), or each tensor at a multiple of 16 (200) |
//!
//! Version 300 (`snapshot-0.3.0`):
//!
//! | offset | size | field       | notes                                                       |
//! |--------|------|-------------|-------------------------------------------------------------|
//! | 8      | 4    | aux         | bit 0: the data is big endian                               |
//! | 12     | 16   | meta offset, meta span | a JSON manifest                                  |
//! | 28     | 16   | blob offset, blob span | the data, in pages of 4096 bytes                 |
//!
//! All five are read and written. Refused are versions and types that do not exist, data that overlaps or lies outside
//! the file, duplicate names, wrong checksums, and forms that only development builds ever wrote. The rules are listed
//! in `docs/formats/mag.md`, with the open points of the specification and how they are settled here. Source: the
//! specification, the source distributions of magnetron 0.1.0 to 0.2.2, and files that they wrote.

#[cfg(feature = "mag")]
mod codec;
#[cfg(feature = "mag")]
mod raw;
mod shape;
mod tables;

#[cfg(feature = "mag")]
use codec::Mag;

use crate::format::{Capabilities, Entry, Fit, OptionSpec, Profile, Spec, written};
use crate::model::{DType, Layout, TensorInfo, Value};
use crate::prelude::*;

/// The row of the table of formats.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "mag")]
    codec: Some(&Mag),
    #[cfg(not(feature = "mag"))]
    codec: None,
};

/// The facts about Magnetron.
pub static SPEC: Spec = Spec {
    id: "mag",
    name: "Magnetron",
    extensions: &["mag"],
    // The second is that of development builds: claimed, so that it is refused with the reason.
    magic: &[(0, MAGIC), (0, PRERELEASE_MAGIC)],
    reads: &[SPEC_1, ARCHIVE_1, SNAPSHOT_010, SNAPSHOT_020, SNAPSHOT_030],
    writes: written(WRITES),
    options: &[OptionSpec {
        key: "checksum",
        value: "crc32c-behind|crc32c-zeroed|crc32c-without|crc32-behind|crc32-zeroed|crc32-without",
        help: "what the checksum of spec-1 covers: the bytes after it (crc32c-behind, the default), or the whole header and the records, with the field as 0 or without it",
    }],
};

/// The versions that are written.
const WRITES: &[Profile] = &[
    Profile {
        version: SPEC_1,
        read_by: "tenfold; no magnetron release (it is the layout of the specification)",
        can: Capabilities {
            max_tensors: u32::MAX as u64,
            min_rank: 0,
            max_rank: 6,
            zero_sizes: true,
            name: key_fits,
            dtype: |dtype| tables::V1.contains(&dtype),
            tensor: spec_shape_fits,
            file_value: spec_value,
            ..DENSE
        },
    },
    Profile {
        version: SNAPSHOT_030,
        read_by: "magnetron 0.2.0, 0.2.1, 0.2.2",
        can: Capabilities {
            max_tensors: u64::MAX,
            min_rank: 0,
            max_rank: 16,
            zero_sizes: true,
            name: |_| Ok(()),
            dtype: |dtype| tables::SNAPSHOT_020.contains(&dtype),
            file_value: json_value,
            tensor_value: |key, value| {
                if key == OTHER_FIELDS {
                    other_fields(value)
                } else {
                    Fit::No
                }
            },
            kept: true,
            ..DENSE
        },
    },
    Profile {
        version: SNAPSHOT_020,
        read_by: "magnetron 0.1.7, 0.1.8, 0.1.9",
        can: Capabilities {
            dtype: |dtype| tables::SNAPSHOT_020.contains(&dtype),
            ..POOLED
        },
    },
    Profile {
        version: SNAPSHOT_010,
        read_by: "magnetron 0.1.5, 0.1.6",
        can: Capabilities {
            dtype: |dtype| tables::SNAPSHOT_010.contains(&dtype),
            ..POOLED
        },
    },
    Profile {
        version: ARCHIVE_1,
        read_by: "magnetron 0.1.2 (its metadata; that release loads no tensors)",
        can: Capabilities {
            max_tensors: u32::MAX as u64,
            min_rank: 1,
            max_rank: 6,
            zero_sizes: false,
            name: |name| not_empty(name).and_then(|()| key_fits(name)),
            dtype: |dtype| tables::V1.contains(&dtype),
            file_value: |key, value| match key {
                "" => Fit::No,
                _ => spec_value(key, value),
            },
            ..DENSE
        },
    },
];

const SPEC_1: &str = "spec-1";
const ARCHIVE_1: &str = "archive-1";
const SNAPSHOT_010: &str = "snapshot-0.1.0";
const SNAPSHOT_020: &str = "snapshot-0.2.0";
const SNAPSHOT_030: &str = "snapshot-0.3.0";

const MAGIC: &[u8; 4] = b"MAG!";
const PRERELEASE_MAGIC: &[u8; 4] = b"MAG&";

/// What every entry of a manifest's tensor map has.
const ENTRY_FIELDS: [&str; 5] = ["shape", "dtype", "dtype_id", "offset", "nbytes"];
/// The key of a tensor's metadata under which the other fields of its entry are.
const OTHER_FIELDS: &str = "mag.fields";

/// The longest key of the two layouts of version 1.
const MAX_KEY: usize = 65535;
/// Names in the pool of a snapshot, and the bytes of all of them together.
const MAX_POOL: u32 = 65534;
const MAX_POOL_BYTES: u32 = 128 << 20;
/// Nested lists and maps in a value of metadata: as many as are read, with the manifest and `usr_metadata` around it.
const MAX_DEPTH: usize = 510;

/// What all layouts have in common.
const DENSE: Capabilities = Capabilities {
    max_tensors: 0,
    min_rank: 0,
    max_rank: 0,
    zero_sizes: false,
    name: |_| Ok(()),
    dtype: |_: DType| false,
    layout: |layout| matches!(layout, Layout::RowMajor),
    tensor: sizes_fit,
    file_value: |_, _| Fit::No,
    tensor_value: |_, _| Fit::No,
    kept: false,
    big_endian: false,
    zstd: false,
    checksums: &[],
};

/// What the two snapshots with a pool of names have in common.
const POOLED: Capabilities = Capabilities {
    max_tensors: MAX_POOL as u64,
    max_rank: 16,
    name: |name| {
        if name.len() > MAX_POOL_BYTES as usize {
            Err("all names together may have at most 128 MiB")
        } else {
            not_empty(name).and_then(|()| without_nul(name))
        }
    },
    ..DENSE
};

fn key_fits(name: &str) -> Result<(), &'static str> {
    if name.len() > MAX_KEY {
        Err("a name has at most 65535 bytes")
    } else {
        without_nul(name)
    }
}

fn not_empty(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        Err("a name has at least one byte")
    } else {
        Ok(())
    }
}

/// Magnetron keeps names as C strings, and the two layouts of version 1 are told apart by it.
fn without_nul(name: &str) -> Result<(), &'static str> {
    if name.contains('\0') {
        Err("a name has no NUL character")
    } else {
        Ok(())
    }
}

/// Sizes are signed numbers in magnetron.
fn sizes_fit(tensor: &TensorInfo) -> Result<(), String> {
    match shape::elements(&tensor.shape) {
        Some(_) => Ok(()),
        None => Err("its sizes multiply to 2^63 or more".into()),
    }
}

fn spec_shape_fits(tensor: &TensorInfo) -> Result<(), String> {
    sizes_fit(tensor)?;
    if shape::reads_back(&tensor.shape) {
        Ok(())
    } else {
        Err("the record stores no rank, so this shape would not read back".into())
    }
}

/// Integers and doubles are what the two layouts of version 1 have.
fn spec_value(key: &str, value: &Value) -> Fit {
    match value {
        _ if key_fits(key).is_err() => Fit::No,
        Value::Bool(value) => Fit::As(Value::I64((*value).into())),
        Value::F32(_) | Value::F64(_) => Fit::Exact,
        value if value.as_i64().is_some() => Fit::Exact,
        _ => Fit::No,
    }
}

/// Fields of an entry beside those that every entry has.
fn other_fields(value: &Value) -> Fit {
    match value {
        Value::Map(fields) if !fields.iter().any(|(key, _)| ENTRY_FIELDS.contains(&key)) => {
            json_value("", value)
        }
        _ => Fit::No,
    }
}

fn json_value(_: &str, value: &Value) -> Fit {
    Fit::in_json(value, MAX_DEPTH)
}
