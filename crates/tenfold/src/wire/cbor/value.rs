//! Items as metadata has them.

use bytes::Bytes;

use super::head::Kind;
use super::{Decoder, STRAY_BREAK};
use crate::error::{Error, Result};
use crate::model::{Encoding, Metadata, Packer, Value};
use crate::prelude::*;

impl Decoder<'_> {
    /// Any item as a value. What has no form there is kept as it is encoded.
    pub(crate) fn value(&mut self) -> Result<Value> {
        self.pass_tags()?;
        match self.head()? {
            Kind::Array | Kind::Map => {
                let mut packer = Packer::new();
                self.pack(&mut packer)?;
                Ok(packer.finish())
            }
            kind => self.scalar(kind),
        }
    }

    /// A map with text keys only as metadata, each of whose keys, which are behind their places, `check` may refuse.
    pub(crate) fn metadata(
        &mut self,
        field: &str,
        mut check: impl FnMut(&str, u64) -> Result<()>,
    ) -> Result<Metadata> {
        let mut packer = Packer::map();
        self.map(field, |cbor, key| {
            check(&key, cbor.pos())?;
            packer.key(&key);
            cbor.pack(&mut packer)
        })?;
        Ok(Metadata::from(&packer.into_map()))
    }

    /// Any item, put behind what is packed already.
    pub(crate) fn pack(&mut self, packer: &mut Packer) -> Result<()> {
        self.pass_tags()?;
        let from = self.inner.position();
        match self.head()? {
            Kind::Array => {
                packer.open_list();
                self.array("", |cbor| cbor.pack(packer))?;
                packer.close();
            }
            Kind::Map => {
                packer.open_map();
                match self.pack_entries(packer)? {
                    true => packer.close(),
                    false => {
                        packer.abandon();
                        packer.value(&self.encoded(from));
                    }
                }
            }
            Kind::Text => packer.str(&self.text_item()?),
            kind => packer.value(&self.scalar(kind)?),
        }
        Ok(())
    }

    /// The entries of a map, as far as their keys are text: whether they all are.
    fn pack_entries(&mut self, packer: &mut Packer) -> Result<bool> {
        let mut all_text = true;
        let len = self.map_len("")?;
        self.entries(len, &mut |cbor, _, key| {
            all_text &= key.is_some();
            match key {
                Some(key) if all_text => {
                    packer.key(&key);
                    cbor.pack(packer)
                }
                _ => cbor.skip(),
            }
        })?;
        Ok(all_text)
    }

    /// An item that is neither an array nor a map, and whose head has been found to be permitted.
    fn scalar(&mut self, kind: Kind) -> Result<Value> {
        let from = self.inner.position();
        Ok(match kind {
            Kind::Unsigned => Value::U64(self.run(|inner| inner.u64())?),
            Kind::Negative => integer(self.run(|inner| inner.int())?.into()),
            Kind::Bytes => Value::Bytes(self.bytes_item()?),
            Kind::Text => Value::Str(self.text_item()?.into_owned()),
            Kind::Tag => self.tagged(from)?,
            Kind::Bool => Value::Bool(self.run(|inner| inner.bool())?),
            Kind::Null => {
                self.run(|inner| inner.null())?;
                Value::Null
            }
            Kind::Float => self.float()?,
            Kind::Simple => {
                self.simple()?;
                self.encoded(from)
            }
            Kind::Break | Kind::Array | Kind::Map => return Err(self.syntax(STRAY_BREAK)),
        })
    }

    fn tagged(&mut self, from: usize) -> Result<Value> {
        let tag = self.run(|inner| inner.tag())?.as_u64();
        self.depth += 1;
        let number = match (self.peek().and_then(Kind::of), tag) {
            (Some(Kind::Bytes), 2 | 3) => {
                self.head()?;
                bignum(&self.bytes_item()?, tag == 3)
            }
            _ => {
                self.skip()?;
                None
            }
        };
        self.depth -= 1;
        Ok(number.unwrap_or_else(|| self.encoded(from)))
    }

    fn float(&mut self) -> Result<Value> {
        Ok(match self.peek() {
            Some(0xf9) => Value::F32(self.run(|inner| inner.f16())?),
            Some(0xfa) => Value::F32(self.run(|inner| inner.f32())?),
            _ => Value::F64(self.run(|inner| inner.f64())?),
        })
    }

    fn simple(&mut self) -> Result<()> {
        if self.peek() == Some(0xf7) {
            return self.run(|inner| inner.undefined());
        }
        let long = self.peek() == Some(0xf8);
        let at = self.pos();
        let value = self.run(|inner| inner.simple())?;
        if long && value < 32 {
            let message = format!("simple value {value} in two bytes");
            return Err(Error::malformed(self.rules.syntax, message).at(at..at + 2));
        }
        Ok(())
    }

    /// The bytes of the item that began at `from`.
    fn encoded(&self, from: usize) -> Value {
        let bytes = self
            .inner
            .input()
            .get(from..self.inner.position())
            .unwrap_or_default();
        Value::Encoded {
            encoding: Encoding::Cbor,
            bytes: Bytes::copy_from_slice(bytes),
        }
    }
}

/// A number in the narrowest form that metadata has for it.
fn integer(number: i128) -> Value {
    match (u64::try_from(number), i64::try_from(number)) {
        (Ok(number), _) => Value::U64(number),
        (_, Ok(number)) => Value::I64(number),
        _ => Value::Integer(number.to_string()),
    }
}

/// A number of up to 128 bits from the bytes of a bignum; longer ones stay encoded.
fn bignum(bytes: &[u8], negative: bool) -> Option<Value> {
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    let digits = bytes.get(zeros..).filter(|digits| digits.len() <= 16)?;
    let number = digits
        .iter()
        .fold(0u128, |n, &byte| n << 8 | u128::from(byte));
    match (i128::try_from(number), negative) {
        (Ok(number), false) => Some(integer(number)),
        (Ok(number), true) => Some(integer(-1 - number)),
        (Err(_), false) => Some(Value::Integer(number.to_string())),
        (Err(_), true) => None,
    }
}
