//! The types of elements, by the names that they have in both versions.

use crate::model::{DType, Lanes, Scalar};

const fn real(scalar: Scalar) -> DType {
    DType::Number(scalar, Lanes::Real)
}

/// The names of version 3; those that NumPy does not have are the same in version 2, where tensorstore writes them.
const NAMES: &[(&str, DType)] = &[
    ("bool", DType::BOOL),
    ("int8", DType::I8),
    ("int16", DType::I16),
    ("int32", DType::I32),
    ("int64", DType::I64),
    ("uint8", DType::U8),
    ("uint16", DType::U16),
    ("uint32", DType::U32),
    ("uint64", DType::U64),
    ("float16", DType::F16),
    ("float32", DType::F32),
    ("float64", DType::F64),
    ("complex64", DType::C64),
    ("complex128", DType::C128),
    ("bfloat16", DType::BF16),
    ("float8_e4m3fn", DType::F8_E4M3),
    ("float8_e4m3fnuz", DType::F8_E4M3FNUZ),
    ("float8_e5m2", DType::F8_E5M2),
    ("float8_e5m2fnuz", DType::F8_E5M2FNUZ),
    ("float8_e8m0fnu", DType::F8_E8M0),
    ("float4_e2m1fn", DType::F4_E2M1),
    ("float6_e2m3fn", real(Scalar::F6E2M3)),
    ("float6_e3m2fn", real(Scalar::F6E3M2)),
    ("int2", real(Scalar::I2)),
    ("int4", real(Scalar::I4)),
    ("uint2", real(Scalar::U2)),
    ("uint4", real(Scalar::U4)),
];

/// The name of version 3.
#[cfg(all(feature = "zarr", feature = "write"))]
pub(super) fn name(dtype: DType) -> Option<&'static str> {
    let mut names = NAMES.iter();
    names
        .find(|(_, known)| *known == dtype)
        .map(|(name, _)| *name)
}

/// Types that are written: those of whole bytes.
pub(super) fn is_written(dtype: DType) -> bool {
    dtype.width().is_some() && NAMES.iter().any(|(_, known)| *known == dtype)
}

#[cfg(all(feature = "zarr", feature = "write"))]
pub(super) use read::code;
/// Types that NumPy alone does not have: zarr-python does not take them.
#[cfg(all(feature = "zarr", feature = "write"))]
pub(super) fn is_rare(dtype: DType) -> bool {
    const COMMON: usize = 14;
    NAMES.iter().skip(COMMON).any(|(_, known)| *known == dtype)
}

#[cfg(feature = "zarr")]
pub(super) use read::{Type, of_v2, of_v3};

#[cfg(feature = "zarr")]
mod read {
    use super::NAMES;
    use crate::error::{Error, Result};
    use crate::model::{DType, Endian, NUMPY_CODES, Value};
    use crate::prelude::*;

    /// What an array holds.
    #[derive(Debug)]
    pub(in super::super) enum Type {
        Numbers(DType, Endian),
        /// No numbers: in words, what else.
        Other(String),
    }

    fn by_name(name: &str) -> Option<DType> {
        let mut names = NAMES.iter();
        names
            .find(|(known, _)| *known == name)
            .map(|(_, dtype)| *dtype)
    }

    /// NumPy's description of a type, as version 2 has it.
    #[cfg(feature = "write")]
    pub(in super::super) fn code(dtype: DType) -> Option<String> {
        let known = NUMPY_CODES
            .iter()
            .find(|(kind, _, known)| *known == dtype && "biufc".contains(*kind));
        match known {
            // Its names for these are no names to others.
            Some((_, _, DType::F8_E5M2)) | None => super::name(dtype).map(ToOwned::to_owned),
            Some((kind, bytes, _)) => {
                let mark = if *bytes == 1 { '|' } else { '<' };
                Some(format!("{mark}{kind}{bytes}"))
            }
        }
    }

    /// A `dtype` of version 2.
    pub(in super::super) fn of_v2(dtype: &Value) -> Result<Type> {
        let text = match dtype {
            Value::Str(text) => text.as_str(),
            Value::List(_) => return Ok(Type::Other("records".to_owned())),
            _ => {
                return Err(super::super::json::wrong(
                    "dtype",
                    "a type of NumPy's",
                    dtype,
                ));
            }
        };
        let is_old = |name: &DType| !matches!(*name, DType::BOOL);
        if let Some(dtype) = by_name(text).filter(is_old) {
            return Ok(Type::Numbers(dtype, Endian::Little));
        }
        let code = text.trim_start_matches(['<', '>', '|', '=']);
        let kind = code.chars().next();
        let other = match kind {
            Some('S' | 'a' | 'U' | 'T') => Some("text"),
            Some('M' | 'm') => Some("times"),
            Some('O') => Some("objects"),
            Some('V') => Some("bytes without a type"),
            _ => None,
        };
        if let Some(other) = other {
            return Ok(Type::Other(format!("{other}, {text:?}")));
        }
        let bytes = code.get(1..).and_then(|digits| digits.parse::<u32>().ok());
        let known = NUMPY_CODES
            .iter()
            .find(|(known, len, _)| Some(*known) == kind && Some(*len) == bytes && code.len() < 4);
        let endian = if text.starts_with('>') {
            Endian::Big
        } else {
            Endian::Little
        };
        match known {
            Some((_, _, dtype)) => Ok(Type::Numbers(*dtype, endian)),
            None => Err(unknown(text)),
        }
    }

    /// A `data_type` of version 3, whose order of bytes its codecs say.
    pub(in super::super) fn of_v3(data_type: &Value) -> Result<Type> {
        const OTHERS: [&str; 16] = [
            "string",
            "bytes",
            "variable_length_bytes",
            "variable_length_utf8",
            "fixed_length_ascii",
            "fixed_length_utf32",
            "null_terminated_bytes",
            "raw_bytes",
            "numpy.datetime64",
            "numpy.timedelta64",
            "datetime64",
            "timedelta64",
            "struct",
            "structured",
            "object",
            "vlen-bytes",
        ];
        let named = match data_type {
            Value::Map(map) => map.get("name"),
            value => Some(value.clone()),
        };
        let Some(Value::Str(name)) = named else {
            return Err(super::super::json::wrong("data_type", "a name", data_type));
        };
        if let Some(dtype) = by_name(&name) {
            return Ok(Type::Numbers(dtype, Endian::Little));
        }
        let bits = name.strip_prefix('r').unwrap_or_default();
        let is_raw = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
        if is_raw || OTHERS.contains(&name.as_str()) {
            return Ok(Type::Other(format!("{name:?}")));
        }
        Err(unknown(&name))
    }

    fn unknown(name: &str) -> Error {
        let message = format!("elements of the type {name:?}, which is not known");
        Error::unsupported("zarr.dtype", message)
    }
}
