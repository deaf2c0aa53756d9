//! What other programs call the types of elements.

use crate::error::{Error, Result};
use crate::model::{BlockSpec, DType, Lanes, Scalar};
use crate::prelude::*;

const fn real(scalar: Scalar) -> DType {
    DType::Number(scalar, Lanes::Real)
}

/// What NumPy, or ml_dtypes for it, calls a type. PyTorch and JAX say the same, as far as they have it.
const NUMPY: &[(&str, DType)] = &[
    ("bool", DType::BOOL),
    ("uint2", real(Scalar::U2)),
    ("uint4", real(Scalar::U4)),
    ("uint8", DType::U8),
    ("uint16", DType::U16),
    ("uint32", DType::U32),
    ("uint64", DType::U64),
    ("int2", real(Scalar::I2)),
    ("int4", real(Scalar::I4)),
    ("int8", DType::I8),
    ("int16", DType::I16),
    ("int32", DType::I32),
    ("int64", DType::I64),
    ("float4_e2m1fn", DType::F4_E2M1),
    ("float6_e2m3fn", real(Scalar::F6E2M3)),
    ("float6_e3m2fn", real(Scalar::F6E3M2)),
    ("float8_e4m3fn", DType::F8_E4M3),
    ("float8_e4m3fnuz", DType::F8_E4M3FNUZ),
    ("float8_e5m2", DType::F8_E5M2),
    ("float8_e5m2fnuz", DType::F8_E5M2FNUZ),
    ("float8_e8m0fnu", DType::F8_E8M0),
    ("float16", DType::F16),
    ("bfloat16", DType::BF16),
    ("float32", DType::F32),
    ("float64", DType::F64),
    ("complex64", DType::C64),
    ("complex128", DType::C128),
];

/// What several programs call a type beside that.
const COMMON: &[(&str, DType)] = &[
    ("half", DType::F16),
    ("double", DType::F64),
    ("short", DType::I16),
    ("uint1", real(Scalar::U1)),
    ("fp16", DType::F16),
    ("fp32", DType::F32),
    ("fp64", DType::F64),
    ("f8_e4m3fn", DType::F8_E4M3),
];

/// What only NumPy calls so: to PyTorch some of these are other types.
const NUMPY_ALONE: &[(&str, DType)] = &[
    ("bool_", DType::BOOL),
    ("byte", DType::I8),
    ("ubyte", DType::U8),
    ("ushort", DType::U16),
    ("intc", DType::I32),
    ("uintc", DType::U32),
    ("longlong", DType::I64),
    ("ulonglong", DType::U64),
    ("single", DType::F32),
    ("float", DType::F64),
    ("csingle", DType::C64),
    ("cdouble", DType::C128),
];

/// What only PyTorch calls so. It is taken to be meant where nobody says whose name it is.
const TORCH_ALONE: &[(&str, DType)] = &[
    ("byte", DType::U8),
    ("char", DType::I8),
    ("long", DType::I64),
    ("float", DType::F32),
    ("chalf", DType::Number(Scalar::F16, Lanes::Complex)),
    ("complex32", DType::Number(Scalar::F16, Lanes::Complex)),
    ("cfloat", DType::C64),
    ("cdouble", DType::C128),
];

/// NumPy's codes, kind and bytes. `V2` and `f1` are what ml_dtypes makes of its types.
pub(crate) const NUMPY_CODES: &[(char, u32, DType)] = &[
    ('b', 1, DType::BOOL),
    ('i', 1, DType::I8),
    ('i', 2, DType::I16),
    ('i', 4, DType::I32),
    ('i', 8, DType::I64),
    ('u', 1, DType::U8),
    ('u', 2, DType::U16),
    ('u', 4, DType::U32),
    ('u', 8, DType::U64),
    ('f', 1, DType::F8_E5M2),
    ('f', 2, DType::F16),
    ('f', 4, DType::F32),
    ('f', 8, DType::F64),
    ('c', 8, DType::C64),
    ('c', 16, DType::C128),
    ('V', 2, DType::BF16),
];

impl DType {
    /// The type that a program calls by this name: by our names (`bf16`, `f8_e4m3`), those of safetensors (`BF16`,
    /// `F8_E4M3`), GGUF (`Q4_K`), NumPy with ml_dtypes (`float32`, `<f4`) and PyTorch (`torch.bfloat16`).
    ///
    /// NumPy's codes need their mark of the byte order, which is not part of a type and is ignored: without one, `i8`
    /// and `u4` are our names, and count bits where NumPy counts bytes. Where the two disagree about a word and nothing
    /// like `torch.` or `numpy.` stands before it, it is PyTorch's: `float` is `f32`.
    ///
    /// ```
    /// use tenfold::model::DType;
    /// assert_eq!(DType::parse("torch.bfloat16")?, DType::BF16);
    /// assert_eq!(DType::parse("<f4")?, DType::F32);
    /// assert_eq!(DType::parse("F8_E4M3")?, DType::F8_E4M3);
    /// assert_eq!(DType::parse("Q4_K")?.to_string(), "gguf:Q4_K");
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        Self::spelled(text).ok_or_else(|| {
            Error::argument(format!(
                "there is no type {text:?}; examples are f32, bf16 and i8"
            ))
        })
    }

    fn spelled(text: &str) -> Option<Self> {
        if let Some(code) = text.strip_prefix(['<', '>', '|', '=']) {
            return of_code(code);
        }
        // To safetensors. In small letters it would be NumPy's f32.
        if text == "F4" {
            return Some(DType::F4_E2M1);
        }
        let lower = text.to_ascii_lowercase();
        let of_numpy = (lower.strip_prefix("numpy.")).or_else(|| lower.strip_prefix("np."));
        let (name, alone) = match (of_numpy, lower.strip_prefix("torch.")) {
            (Some(name), _) => (name, NUMPY_ALONE),
            (_, Some("int")) => return Some(DType::I32),
            (_, Some(name)) => (name, TORCH_ALONE),
            (None, None) => (&*lower, TORCH_ALONE),
        };
        let mut known = NUMPY.iter().chain(COMMON).chain(alone);
        (Self::from_name(text))
            .or_else(|| known.find(|(known, _)| *known == name).map(|row| row.1))
            .or_else(|| BlockSpec::from_name(text).map(DType::Block))
            .or_else(|| Self::from_name(&lower))
    }

    /// What NumPy, or ml_dtypes for it, calls the type; `None` where neither has it.
    ///
    /// Its short codes are not names to use: what is `f8_e5m2` here, and `i8`, are `f8` and 64 bits to NumPy.
    pub fn numpy_name(self) -> Option<&'static str> {
        let row = NUMPY.iter().find(|(_, known)| *known == self)?;
        Some(row.0)
    }
}

/// A code of NumPy's without its mark.
fn of_code(code: &str) -> Option<DType> {
    if code == "?" {
        return Some(DType::BOOL);
    }
    let (kind, bytes) = (code.chars().next()?, code.get(1..)?);
    let bytes: u32 = bytes.parse().ok()?;
    let mut known = NUMPY_CODES.iter();
    let row = known.find(|(known, len, _)| (*known, *len) == (kind, bytes))?;
    Some(row.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_is_understood() {
        for (text, ours) in [
            // ours
            ("f32", "f32"),
            ("i8", "i8"),
            ("u4", "u4"),
            ("f64x4", "f64x4"),
            ("gguf:Q4_K", "gguf:Q4_K"),
            // safetensors
            ("F32", "f32"),
            ("BF16", "bf16"),
            ("F8_E4M3", "f8_e4m3"),
            ("F8_E5M2FNUZ", "f8_e5m2fnuz"),
            ("F4", "f4_e2m1"),
            ("C64", "c64"),
            ("BOOL", "bool"),
            // GGUF
            ("Q4_K", "gguf:Q4_K"),
            ("IQ2_XXS", "gguf:IQ2_XXS"),
            ("I16", "i16"),
            // NumPy
            ("<f4", "f32"),
            (">f8", "f64"),
            ("|u1", "u8"),
            ("=i8", "i64"),
            ("|b1", "bool"),
            ("|?", "bool"),
            ("<c16", "c128"),
            ("float32", "f32"),
            ("numpy.float64", "f64"),
            ("np.byte", "i8"),
            ("numpy.float", "f64"),
            ("float8_e4m3fn", "f8_e4m3"),
            ("float8_e8m0fnu", "f8_e8m0"),
            ("uint4", "u4"),
            // PyTorch
            ("torch.bfloat16", "bf16"),
            ("torch.float", "f32"),
            ("float", "f32"),
            ("torch.half", "f16"),
            ("torch.int", "i32"),
            ("torch.long", "i64"),
            ("torch.complex32", "f16x2"),
            ("byte", "u8"),
        ] {
            let found = DType::parse(text).map(|dtype| dtype.to_string());
            assert_eq!(found.unwrap(), ours, "{text}");
        }
        // Numbers of 80 bits; e4m3 with infinities; NumPy's or ours; two in an element; text.
        for text in [
            "<f16",
            "float8_e4m3",
            "f8",
            "int",
            "float4_e2m1fn_x2",
            "<U4",
            "",
            "<",
        ] {
            assert!(DType::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_for_numpy_lead_back() {
        for dtype in DType::all() {
            if let Some(name) = dtype.numpy_name() {
                assert_eq!(DType::parse(name).unwrap(), dtype, "{name}");
                assert_eq!(DType::parse(&format!("numpy.{name}")).unwrap(), dtype);
            }
        }
        assert_eq!(DType::F8_E4M3.numpy_name(), Some("float8_e4m3fn"));
        assert_eq!(DType::parse("Q8_0").unwrap().numpy_name(), None);
        assert_eq!(DType::Number(Scalar::F128, Lanes::Real).numpy_name(), None);
    }
}
