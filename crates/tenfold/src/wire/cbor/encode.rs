//! Values as CBOR: shortest numbers, definite lengths.

use crate::model::{Metadata, Value};
use crate::prelude::*;

/// Writes items one after the other.
#[derive(Default)]
pub(crate) struct Encoder {
    out: Vec<u8>,
    deterministic: bool,
}

impl Encoder {
    /// An encoder that keeps the order of maps.
    pub(crate) fn new() -> Self {
        Self::default()
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
        self.out
    }

    /// The head of an array of `len` items.
    pub(crate) fn array(&mut self, len: usize) -> &mut Self {
        self.head(0x80, len as u64)
    }

    /// The head of a map of `len` entries.
    pub(crate) fn map(&mut self, len: usize) -> &mut Self {
        self.head(0xa0, len as u64)
    }

    /// Text.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.head(0x60, text.len() as u64).encoded(text.as_bytes())
    }

    /// An unsigned number.
    pub(crate) fn unsigned(&mut self, number: u64) -> &mut Self {
        self.head(0x00, number)
    }

    /// An array of unsigned numbers.
    pub(crate) fn numbers(&mut self, numbers: &[u64]) -> &mut Self {
        self.array(numbers.len());
        for &number in numbers {
            self.unsigned(number);
        }
        self
    }

    /// Items that are encoded already.
    pub(crate) fn encoded(&mut self, bytes: &[u8]) -> &mut Self {
        self.out.extend_from_slice(bytes);
        self
    }

    /// A value of metadata.
    pub(crate) fn value(&mut self, value: &Value) -> &mut Self {
        match value {
            Value::Null => self.encoded(&[0xf6]),
            Value::Bool(value) => self.encoded(&[0xf4 + u8::from(*value)]),
            Value::F32(value) => {
                self.float(f64::from(*value), value.is_nan().then_some(value.to_bits()))
            }
            Value::F64(value) => self.float(*value, None),
            Value::Integer(digits) => self.integer(digits),
            Value::Str(text) => self.text(text),
            Value::Bytes(bytes) => self.bytes(bytes),
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
            Value::Encoded { bytes, .. } => self.encoded(bytes),
            Value::U8(_) | Value::U16(_) | Value::U32(_) | Value::U64(_) => {
                self.unsigned(value.as_u64().unwrap_or(0))
            }
            Value::I8(_) | Value::I16(_) | Value::I32(_) | Value::I64(_) => {
                let number = value.as_i64().unwrap_or(0);
                match u64::try_from(number) {
                    Ok(number) => self.unsigned(number),
                    Err(_) => self.head(0x20, (!number).unsigned_abs()),
                }
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
        if value.is_nan() && !self.deterministic {
            match nan {
                Some(bits) if bits != NAN => return self.number(0xfa, bits.to_be_bytes()),
                None if value.to_bits() != f64::NAN.to_bits() => {
                    return self.number(0xfb, value.to_be_bytes());
                }
                _ => {}
            }
        }
        #[allow(clippy::cast_possible_truncation)] // only where nothing is lost by it
        let narrow = value as f32;
        match float_len(value) {
            2 if value.is_nan() => self.encoded(&[0xf9, 0x7e, 0x00]),
            2 => self.number(0xf9, half::f16::from_f32(narrow).to_be_bytes()),
            4 => self.number(0xfa, narrow.to_be_bytes()),
            _ => self.number(0xfb, value.to_be_bytes()),
        }
    }

    /// Decimal digits as a number; what is longer than 128 bits was refused when the value was asked about.
    fn integer(&mut self, digits: &str) -> &mut Self {
        let (sign, number) = match (digits.parse::<u128>(), digits.parse::<i128>()) {
            (Ok(number), _) => (0, number),
            (_, Ok(number)) if number < 0 => (1, (!number).unsigned_abs()),
            (_, Ok(number)) => (0, number.unsigned_abs()),
            _ => return self.text(digits),
        };
        if let Ok(number) = u64::try_from(number) {
            return self.head(sign << 5, number);
        }
        let bytes = number.to_be_bytes();
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        let bytes = bytes.get(zeros..).unwrap_or_default();
        self.head(0xc0, u64::from(2 + sign)).bytes(bytes)
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.head(0x40, bytes.len() as u64).encoded(bytes)
    }

    /// The beginning of an item: its kind, which is in the upper three bits, and its number in the shortest form.
    fn head(&mut self, kind: u8, number: u64) -> &mut Self {
        if let Ok(number) = u8::try_from(number) {
            return if number < 24 {
                self.encoded(&[kind | number])
            } else {
                self.encoded(&[kind | 24, number])
            };
        }
        if let Ok(number) = u16::try_from(number) {
            self.number(kind | 25, number.to_be_bytes())
        } else if let Ok(number) = u32::try_from(number) {
            self.number(kind | 26, number.to_be_bytes())
        } else {
            self.number(kind | 27, number.to_be_bytes())
        }
    }

    fn number<const N: usize>(&mut self, first: u8, bytes: [u8; N]) -> &mut Self {
        self.out.push(first);
        self.encoded(&bytes)
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
