//! Values as CBOR: shortest numbers, definite lengths.

use crate::model::{Metadata, Value};
use crate::prelude::*;

/// Writes items one after the other.
pub(crate) struct Encoder {
    inner: minicbor::Encoder<Vec<u8>>,
    deterministic: bool,
}

impl Encoder {
    /// An encoder that keeps the order of maps.
    pub(crate) fn new() -> Self {
        Self {
            inner: minicbor::Encoder::new(Vec::new()),
            deterministic: false,
        }
    }

    /// An encoder of the core deterministic encoding. The keys of maps that are written entry by entry
    /// ([`map`](Self::map)) are put in order by the caller.
    pub(crate) fn deterministic() -> Self {
        Self {
            deterministic: true,
            ..Self::new()
        }
    }

    /// What was written.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.inner.into_writer()
    }

    /// The head of an array of `len` items.
    pub(crate) fn array(&mut self, len: usize) -> &mut Self {
        self.put(|inner| inner.array(len as u64).map(drop))
    }

    /// The head of a map of `len` entries.
    pub(crate) fn map(&mut self, len: usize) -> &mut Self {
        self.put(|inner| inner.map(len as u64).map(drop))
    }

    /// Text.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.put(|inner| inner.str(text).map(drop))
    }

    /// An unsigned number.
    pub(crate) fn unsigned(&mut self, number: u64) -> &mut Self {
        self.put(|inner| inner.u64(number).map(drop))
    }

    /// An array of unsigned numbers.
    pub(crate) fn numbers(&mut self, numbers: &[u64]) -> &mut Self {
        self.array(numbers.len());
        for &number in numbers {
            self.unsigned(number);
        }
        self
    }

    /// A value of metadata.
    pub(crate) fn value(&mut self, value: &Value) -> &mut Self {
        match value {
            Value::Null => self.put(|inner| inner.null().map(drop)),
            Value::Bool(value) => self.put(|inner| inner.bool(*value).map(drop)),
            Value::F32(value) => {
                self.float(f64::from(*value), value.is_nan().then_some(value.to_bits()))
            }
            Value::F64(value) => self.float(*value, None),
            Value::Integer(digits) => self.integer(digits),
            Value::Str(text) => self.text(text),
            Value::Bytes(bytes) => self.put(|inner| inner.bytes(bytes).map(drop)),
            Value::List(items) => {
                self.array(items.len());
                for item in items.iter() {
                    self.value(&item);
                }
                self
            }
            // What is not loaded is refused before anything is encoded.
            Value::Empty(_) | Value::Elsewhere(_) => self.array(0),
            Value::Map(map) => self.entries(&map.into()),
            Value::Encoded { bytes, .. } => {
                self.inner.writer_mut().extend_from_slice(bytes);
                self
            }
            Value::U8(_) | Value::U16(_) | Value::U32(_) | Value::U64(_) => {
                self.unsigned(value.as_u64().unwrap_or(0))
            }
            Value::I8(_) | Value::I16(_) | Value::I32(_) | Value::I64(_) => {
                let number = value.as_i64().unwrap_or(0);
                self.put(|inner| inner.i64(number).map(drop))
            }
        }
    }

    /// Metadata as a map.
    pub(crate) fn entries(&mut self, entries: &Metadata) -> &mut Self {
        let mut sorted: Vec<_> = entries.iter().collect();
        if self.deterministic {
            sorted.sort_by(|(a, _), (b, _)| key_order(a, b));
        }
        self.map(sorted.len());
        for (key, value) in sorted {
            self.text(key).value(value);
        }
        self
    }

    /// The shortest form that keeps the value. The bits of a NaN are kept where every NaN need not be the same.
    fn float(&mut self, value: f64, nan: Option<u32>) -> &mut Self {
        const NAN: u32 = 0x7fc0_0000;
        match nan {
            Some(bits) if bits != NAN && !self.deterministic => {
                return self.put(|inner| inner.f32(f32::from_bits(bits)).map(drop));
            }
            None if value.is_nan()
                && value.to_bits() != f64::NAN.to_bits()
                && !self.deterministic =>
            {
                return self.put(|inner| inner.f64(value).map(drop));
            }
            _ => {}
        }
        #[allow(clippy::cast_possible_truncation)] // only where nothing is lost by it
        let narrow = value as f32;
        match float_len(value) {
            2 => self.put(|inner| {
                inner
                    .f16(if value.is_nan() { f32::NAN } else { narrow })
                    .map(drop)
            }),
            4 => self.put(|inner| inner.f32(narrow).map(drop)),
            _ => self.put(|inner| inner.f64(value).map(drop)),
        }
    }

    /// Decimal digits as a number; what is longer than 128 bits was refused when the value was asked about.
    fn integer(&mut self, digits: &str) -> &mut Self {
        match (digits.parse::<u128>(), digits.parse::<i128>()) {
            (Ok(number), _) => self.put(|inner| inner.u128(number).map(drop)),
            (_, Ok(number)) => self.put(|inner| inner.i128(number).map(drop)),
            _ => self.text(digits),
        }
    }

    fn put(
        &mut self,
        write: impl FnOnce(
            &mut minicbor::Encoder<Vec<u8>>,
        ) -> Result<(), minicbor::encode::Error<core::convert::Infallible>>,
    ) -> &mut Self {
        // Writing to a vector does not fail.
        let _ = write(&mut self.inner);
        self
    }
}

/// The order of text keys in the deterministic encoding: their lengths come first in their encoded bytes.
pub(crate) fn key_order(a: &str, b: &str) -> core::cmp::Ordering {
    a.len()
        .cmp(&b.len())
        .then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

/// Bytes of the shortest form that keeps a floating-point number, without the head.
pub(super) fn float_len(value: f64) -> usize {
    #[allow(clippy::cast_possible_truncation)] // that is the question
    let narrow = value as f32;
    if value.is_nan() || half::f16::from_f64(value).to_f64().to_bits() == value.to_bits() {
        2
    } else if f64::from(narrow).to_bits() == value.to_bits() {
        4
    } else {
        8
    }
}
