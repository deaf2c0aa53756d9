//! Items as metadata has them.

use bytes::Bytes;

use super::head::{Head, Kind};
use super::{Decoder, Key, NO_FIELDS};
use crate::error::{Error, Result};
use crate::model::{Encoding, Metadata, Packer, Value};
use crate::prelude::*;

impl Decoder<'_> {
    /// Any item as a value. What has no form there is kept as it is encoded.
    pub(crate) fn value(&mut self) -> Result<Value> {
        self.pass_tags()?;
        let head = self.head()?;
        if !matches!(head.kind, Kind::Array | Kind::Map) {
            return self.scalar(&head);
        }
        let mut packer = Packer::new();
        self.pack(&mut packer)?;
        Ok(packer.finish())
    }

    /// A map with text keys only as metadata, each of whose keys, which are after their places, `check` may refuse.
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

    /// Any item, put after what is packed already.
    pub(crate) fn pack(&mut self, packer: &mut Packer) -> Result<()> {
        self.pass_tags()?;
        let head = self.head()?;
        match head.kind {
            Kind::Array => {
                packer.open_list();
                self.items(&head, |cbor| cbor.pack(packer))?;
                packer.close();
            }
            Kind::Map => {
                packer.open_map();
                if self.pack_entries(&head, packer)? {
                    packer.close()
                } else {
                    packer.abandon();
                    packer.value(&self.encoded(&head));
                }
            }
            Kind::Text => packer.str(&self.text_item(&head)?),
            _ => packer.value(&self.scalar(&head)?),
        }
        Ok(())
    }

    /// The entries of a map, as far as their keys are text: whether they all are.
    fn pack_entries(&mut self, head: &Head, packer: &mut Packer) -> Result<bool> {
        let mut all_text = true;
        self.entries(head, NO_FIELDS, |cbor, key, _| match key {
            Key::Other(key) if all_text => {
                packer.key(&key);
                cbor.pack(packer)
            }
            key => {
                all_text &= !matches!(key, Key::NotText);
                cbor.skip()
            }
        })?;
        Ok(all_text)
    }

    /// An item that is neither an array nor a map.
    pub(super) fn scalar(&mut self, head: &Head) -> Result<Value> {
        Ok(match head.kind {
            Kind::Bytes => Value::Bytes(self.bytes_item(head)?),
            Kind::Text => Value::Str(self.text_item(head)?.into_owned()),
            Kind::Tag => self.tagged(head)?,
            Kind::Unsigned => Value::U64(self.argument(head)?),
            Kind::Negative => integer(-1 - i128::from(self.argument(head)?)),
            Kind::Bool => Value::Bool(self.argument(head)? == 21),
            Kind::Null => {
                self.argument(head)?;
                Value::Null
            }
            Kind::Float => {
                let bits = self.argument(head)?;
                let narrow = head.narrow_float(bits);
                narrow.map_or_else(|| Value::F64(f64::from_bits(bits)), Value::F32)
            }
            Kind::Simple => {
                let (at, number) = (self.pos(), self.argument(head)?);
                if head.first == 0xf8 && number < 32 {
                    let message = format!("simple value {number} in two bytes");
                    return Err(Error::malformed(self.rules.syntax, message).at(at..at + 2));
                }
                self.encoded(head)
            }
            Kind::Break | Kind::Array | Kind::Map => return Err(self.stray_break()),
        })
    }

    fn bytes_item(&mut self, head: &Head) -> Result<Bytes> {
        let (bytes, end) = (head.string(self.input)).map_err(|why| self.malformed(why))?;
        self.at = end;
        Ok(Bytes::from(bytes.into_owned()))
    }

    fn tagged(&mut self, head: &Head) -> Result<Value> {
        let tag = self.argument(head)?;
        self.depth += 1;
        let number = match (self.peek(), tag) {
            (Some(Kind::Bytes), 2 | 3) => {
                let bytes = self.head()?;
                bignum(&self.bytes_item(&bytes)?, tag == 3)
            }
            _ => {
                self.skip()?;
                None
            }
        };
        self.depth -= 1;
        Ok(number.unwrap_or_else(|| self.encoded(head)))
    }

    /// The item with this head, which has been read, as it is.
    fn encoded(&self, head: &Head) -> Value {
        Value::Encoded {
            encoding: Encoding::Cbor,
            bytes: Bytes::copy_from_slice(self.since(head.start)),
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
