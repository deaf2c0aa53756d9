//! The type descriptions of NumPy.

use crate::model::{DType, NUMPY_CODES};
use crate::prelude::*;

/// The description that a type is written with.
pub(crate) fn descr(dtype: DType) -> Option<String> {
    let &(kind, bytes, _) = NUMPY_CODES.iter().find(|(_, _, known)| *known == dtype)?;
    let mark = match (kind, bytes) {
        ('b' | 'i' | 'u', 1) => '|',
        _ => '<',
    };
    Some(format!("{mark}{kind}{bytes}"))
}

pub(super) use read::text_width;
pub(crate) use read::{Found, parse};

mod read {
    use crate::error::{Error, Hint, Result};
    use crate::model::{DType, Endian, NUMPY_CODES};
    use crate::prelude::*;

    /// What a description stands for.
    #[derive(Debug, PartialEq)]
    pub(crate) struct Found {
        pub(crate) dtype: DType,
        pub(crate) endian: Endian,
        /// The order is that of the machine that wrote it, whichever that was.
        pub(crate) native: bool,
    }

    impl Found {
        /// Elements that are not numbers, whose bytes are left as they are.
        pub(crate) fn bytes(dtype: DType) -> Self {
            Self {
                dtype,
                endian: Endian::Little,
                native: false,
            }
        }
    }

    /// Bytes of an element of text, if that is what a description says.
    pub(crate) fn text_width(descr: &str) -> Option<u64> {
        let code = descr.trim_start_matches(['<', '>', '|', '=']);
        let (width, digits) = match code.strip_prefix('U') {
            Some(digits) => (4, digits),
            None => (1, code.strip_prefix(['S', 'a'])?),
        };
        u64::from(number(digits)?).checked_mul(width)
    }

    /// Reads a description. `assumed` is what the user says that bytes without a type are.
    pub(crate) fn parse(descr: &str, assumed: Option<DType>) -> Result<Found> {
        let (mark, code) = match descr.strip_prefix(['<', '>', '|', '=']) {
            Some(code) => (descr.chars().next(), code),
            None => (None, descr),
        };
        let kind = code.chars().next();
        let bytes = match (kind, code.get(1..)) {
            (Some('?'), Some("")) => Some(1),
            (Some(_), Some(digits)) => number(digits),
            _ => None,
        };
        let kind = if kind == Some('?') { Some('b') } else { kind };
        let found = |dtype: DType| Found {
            dtype,
            endian: match mark {
                Some('>') => Endian::Big,
                _ => Endian::Little,
            },
            native: !matches!(mark, Some('<' | '>')) && dtype.is_ordered(),
        };
        // Plain bytes have no order: only ml_dtypes writes one.
        if kind == Some('V') && !(mark == Some('<') && bytes == Some(2)) {
            return void(descr, bytes, assumed).map(found);
        }
        let known = NUMPY_CODES
            .iter()
            .find(|(known, len, _)| Some(*known) == kind && Some(*len) == bytes);
        match known {
            Some(&(_, _, dtype)) => Ok(found(dtype)),
            None => Err(refusal(descr, kind, bytes)),
        }
    }

    fn number(digits: &str) -> Option<u32> {
        let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| digits.parse().ok()).flatten()
    }

    /// Bytes without a type: the user has to say which.
    fn void(descr: &str, bytes: Option<u32>, assumed: Option<DType>) -> Result<DType> {
        let width = |dtype: DType| dtype.width().and_then(|width| u32::try_from(width).ok());
        if let Some(dtype) = assumed {
            return match (width(dtype), bytes) {
                (Some(width), Some(bytes)) if width == bytes => Ok(dtype),
                _ => {
                    let message = format!(
                        "dtype {descr}: its elements cannot be {dtype}, which takes another number of bytes"
                    );
                    Err(Error::unsupported("void", message))
                }
            };
        }
        let (guess, dtype) = match bytes {
            Some(1) => (
                ": it may be one of the 8-bit floats of ml_dtypes",
                Some(DType::F8_E4M3),
            ),
            Some(2) => (
                ": it may be bfloat16 that NumPy has loaded and saved again",
                Some(DType::BF16),
            ),
            _ => ("", None),
        };
        let message = format!("dtype {descr} is bytes without a type{guess}");
        Err(Error::unsupported("void", message).hinting(Hint::Assume(dtype)))
    }

    fn refusal(descr: &str, kind: Option<char>, bytes: Option<u32>) -> Error {
        let (rule, what) = match (kind, bytes) {
            (Some('O'), _) => (
                "object",
                "Python objects in a pickle, which could run arbitrary code and is never loaded; save numbers \
                instead",
            ),
            (Some('S' | 'a' | 'U' | 'T'), _) => ("string", "text, not numbers"),
            (Some('M' | 'm'), _) => (
                "time",
                "dates or durations, not numbers; save them as integers, a.view('i8')",
            ),
            (Some('f'), Some(10 | 12 | 16))
            | (Some('c'), Some(20 | 24 | 32))
            | (Some('g' | 'G'), _) => (
                "longdouble",
                "80-bit numbers with padding, whose form depends on the machine; save them as f8 or c16",
            ),
            _ => {
                let message = format!(
                    "dtype {descr:?} is not known; bool, i1 to i8, u1 to u8, f2 to f8, c8, c16 and those of \
                    ml_dtypes are read"
                );
                return Error::malformed("dtype", message);
            }
        };
        Error::unsupported(rule, format!("dtype {descr} is {what}"))
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::wire::numpy::dtypes::descr;

        #[test]
        fn every_type_that_is_written_is_read_back() {
            for &(_, _, dtype) in NUMPY_CODES {
                let found = parse(&descr(dtype).unwrap(), None).unwrap();
                assert_eq!(
                    (found.dtype, found.endian, found.native),
                    (dtype, Endian::Little, false)
                );
            }
        }

        #[test]
        fn marks_say_the_order_of_bytes_where_there_is_one() {
            let read = |text| {
                let found = parse(text, None).unwrap();
                (found.dtype, found.endian, found.native)
            };
            assert_eq!(read(">f4"), (DType::F32, Endian::Big, false));
            assert_eq!(read("=f4"), (DType::F32, Endian::Little, true));
            assert_eq!(read("f4"), (DType::F32, Endian::Little, true));
            assert_eq!(read("?"), (DType::BOOL, Endian::Little, false));
            assert_eq!(read("<u1"), (DType::U8, Endian::Little, false));
            assert!(!read("=u1").2 && !read(">i1").2);
        }

        #[test]
        fn what_is_no_number_is_refused_by_its_name() {
            let rule = |text| {
                parse(text, None)
                    .unwrap_err()
                    .in_format("npy")
                    .rule()
                    .to_owned()
            };
            for (text, expected) in [
                ("|O", "npy.object"),
                ("O8", "npy.object"),
                ("|S2", "npy.string"),
                ("<U2", "npy.string"),
                ("<M8[D]", "npy.time"),
                ("<m8[ns]", "npy.time"),
                ("<f16", "npy.longdouble"),
                ("<c32", "npy.longdouble"),
                ("|V2", "npy.void"),
                (">V2", "npy.void"),
                ("<V1", "npy.void"),
                ("|V7", "npy.void"),
                ("<q9", "npy.dtype"),
                ("<f", "npy.dtype"),
                ("<f+4", "npy.dtype"),
                ("", "npy.dtype"),
                ("<é4", "npy.dtype"),
            ] {
                assert_eq!(rule(text), expected, "{text}");
            }
        }

        #[test]
        fn bytes_without_a_type_are_what_the_user_says_if_that_fits() {
            assert_eq!(
                parse("<V1", Some(DType::F8_E4M3)).unwrap().dtype,
                DType::F8_E4M3
            );
            assert_eq!(parse("|V2", Some(DType::BF16)).unwrap().dtype, DType::BF16);
            assert!(parse("|V2", Some(DType::F32)).is_err());
            assert!(parse("<V1", Some(DType::F4_E2M1)).is_err());
            // Only bytes without a type: what the file says itself counts.
            assert_eq!(parse("<f4", Some(DType::I32)).unwrap().dtype, DType::F32);
        }
    }
}
