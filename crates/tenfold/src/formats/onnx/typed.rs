//! Data that is stored number by number: made when it is read, because most of it is in varints.

use bytes::Bytes;

use super::raw::{RULES, TensorProto, low_half};
use super::types::{self, Field as Typed};
use crate::error::{Error, Result};
use crate::io::{Limits, Source};
use crate::model::{DType, Lanes, Make, Scalar, SourceId};
use crate::prelude::*;
use crate::wire::protobuf::{Value, Walker};

/// The numbers of a typed field.
#[derive(Clone)]
pub(super) struct Numbers {
    source: Arc<dyn Source>,
    /// The messages that they are in.
    messages: Vec<Range<u64>>,
    field: Typed,
    dtype: DType,
    /// Entries that there should be.
    entries: u64,
    /// Bytes that come out.
    len: u64,
    most: u64,
}

impl core::fmt::Debug for Numbers {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} in {:?}", self.field.name(), self.messages)
    }
}

impl Numbers {
    pub(super) fn new(
        source: Arc<dyn Source>,
        tensor: &TensorProto,
        field: Typed,
        dtype: DType,
        (elements, len): (u64, u64),
        limits: &Limits,
    ) -> Self {
        let mut messages = vec![tensor.at.clone()];
        messages.extend_from_slice(&tensor.more);
        Self {
            source,
            messages,
            field,
            dtype,
            entries: types::entries(dtype, elements).unwrap_or(u64::MAX),
            len,
            most: limits.tensor_memory,
        }
    }

    fn refuse(&self, rule: &'static str, message: String) -> Error {
        let at = self.messages.first().cloned().unwrap_or_default();
        Error::malformed(rule, message).at(at)
    }
}

impl Make for Numbers {
    fn made_from(&self) -> Option<(SourceId, Range<u64>)> {
        match self.messages.as_slice() {
            [only] => Some((SourceId::MAIN, only.clone())),
            _ => None,
        }
    }

    fn make(&self) -> Result<Bytes> {
        if self.len > self.most {
            let message = format!(
                "{} bytes in {}, the limit is {}",
                self.len,
                self.field.name(),
                self.most
            );
            return Err(Error::limit("onnx.memory", message).raised_by("tensor_memory", self.len));
        }
        let mut out = Packed::new(self.dtype);
        let mut entries = 0u64;
        for message in &self.messages {
            let mut w = Walker::over(&*self.source, message.clone(), RULES);
            while let Some(field) = w.next(message.end)? {
                if field.number != self.field.number() {
                    continue;
                }
                match (&field.value, self.field.width()) {
                    (Value::Len(range), Some(width)) => {
                        entries = entries.saturating_add((range.end - range.start) / width);
                        self.check_room(entries)?;
                        out.bytes
                            .extend_from_slice(&w.bytes(range, self.field.name())?);
                    }
                    (Value::Fixed32 | Value::Fixed64, Some(width)) => {
                        entries += 1;
                        self.check_room(entries)?;
                        let value = field.at.end - width..field.at.end;
                        out.bytes.extend_from_slice(&self.source.read(value)?);
                    }
                    (value @ (Value::Varint(_) | Value::Len(_)), None) => {
                        w.numbers(value, |number| {
                            entries += 1;
                            self.check_room(entries)?;
                            out.push(number)
                                .map_err(|message| self.refuse("onnx.range", message))
                        })?;
                    }
                    _ => {}
                }
            }
        }
        let bytes = out.finish();
        if entries == self.entries && bytes.len() as u64 == self.len {
            return Ok(bytes.into());
        }
        Err(self.wrong_count(&format!("{entries}")))
    }
}

impl Numbers {
    /// Stops at the first entry that is too much.
    fn check_room(&self, entries: u64) -> Result<()> {
        if entries > self.entries {
            return Err(self.wrong_count("more"));
        }
        Ok(())
    }

    fn wrong_count(&self, found: &str) -> Error {
        let (name, wanted) = (self.field.name(), self.entries);
        let message = format!("{name} has {found} entries, type and shape need {wanted}");
        self.refuse("onnx.count", message)
    }
}

/// Elements in the form that raw data has.
struct Packed {
    bytes: Vec<u8>,
    scalar: Option<Scalar>,
    /// Bits of 6-bit elements that fill no byte yet, and how many there are.
    bits: u16,
    count: u32,
}

impl Packed {
    fn new(dtype: DType) -> Self {
        let scalar = match dtype {
            DType::Number(scalar, Lanes::Real) => Some(scalar),
            _ => None,
        };
        Self {
            bytes: Vec::new(),
            scalar,
            bits: 0,
            count: 0,
        }
    }

    /// Adds an entry, or says why it is none.
    fn push(&mut self, number: u64) -> Result<(), String> {
        use Scalar::{Bool, I8, I16, I32, I64, U8, U16, U32, U64};
        let signed = i64::from(low_half(number));
        let bytes = &mut self.bytes;
        let out_of_range = |_| format!("{signed} is out of the range of its type");
        let unsigned = |most: i64| {
            if (0..=most).contains(&signed) {
                Ok(signed)
            } else {
                Err(format!(
                    "{signed} is out of the range of its type, 0 to {most}"
                ))
            }
        };
        match self.scalar {
            Some(I64 | U64) => bytes.extend(number.to_le_bytes()),
            Some(U32) => {
                let value = u32::try_from(number);
                let value = value.map_err(|_| format!("{number} is more than 32 bits"))?;
                bytes.extend(value.to_le_bytes());
            }
            Some(I32) => bytes.extend(low_half(number).to_le_bytes()),
            Some(I16) => bytes.extend(i16::try_from(signed).map_err(out_of_range)?.to_le_bytes()),
            Some(I8) => bytes.extend(i8::try_from(signed).map_err(out_of_range)?.to_le_bytes()),
            Some(Bool) => bytes.extend(unsigned(1)?.to_le_bytes().first()),
            Some(U16 | Scalar::F16 | Scalar::BF16) => {
                let [low, high, ..] = unsigned(0xffff)?.to_le_bytes();
                bytes.extend([low, high]);
            }
            Some(Scalar::F6E2M3 | Scalar::F6E3M2) => {
                let [low, ..] = unsigned(0x3f)?.to_le_bytes();
                self.bits |= u16::from(low) << self.count;
                self.count += 6;
                while self.count >= 8 {
                    self.flush();
                }
            }
            Some(U8) | Some(_) => bytes.extend(unsigned(0xff)?.to_le_bytes().first()),
            None => return Err("numbers of a type that has no such field".to_owned()),
        }
        Ok(())
    }

    fn flush(&mut self) {
        let [low, high] = self.bits.to_le_bytes();
        self.bytes.push(low);
        self.bits = u16::from(high);
        self.count = self.count.saturating_sub(8);
    }

    fn finish(mut self) -> Vec<u8> {
        if self.count > 0 {
            self.flush();
        }
        self.bytes
    }
}
