//! The pickle of an archive to be written: protocol 2, a dict of tensors and values, without a memo.

use super::storages::View;
use crate::error::{Error, Result};
use crate::formats::torch::{STORAGES, TYPES};
use crate::model::{TensorInfo, Value};
use crate::prelude::*;
use crate::wire::pickle::integer;

/// The program so far.
pub(super) struct Program {
    bytes: Vec<u8>,
}

/// A tensor with its place.
pub(super) struct Record<'t> {
    pub(super) tensor: &'t TensorInfo,
    pub(super) view: &'t View,
    /// The storage, by its number.
    pub(super) key: usize,
    /// Its bytes.
    pub(super) len: u64,
}

impl Program {
    pub(super) fn new() -> Self {
        // PROTO 2, EMPTY_DICT, MARK.
        Self {
            bytes: b"\x80\x02}(".to_vec(),
        }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        // SETITEMS, STOP.
        self.bytes.extend_from_slice(b"u.");
        self.bytes
    }

    /// A value that is no tensor.
    pub(super) fn entry(&mut self, key: &str, value: &Value) -> Result<()> {
        self.text(key)?;
        self.value(value)
    }

    pub(super) fn tensor(&mut self, record: &Record<'_>) -> Result<()> {
        let Record { tensor, view, .. } = record;
        let is_set = |key| tensor.metadata.get(key) == Some(&Value::Bool(true));
        let requires_grad = is_set("requires_grad");
        self.text(&tensor.name)?;
        let is_parameter = is_set("parameter");
        if is_parameter {
            self.global("torch._utils", "_rebuild_parameter");
            self.put(b"(");
        }
        let class = STORAGES.iter().find(|(_, dtype)| *dtype == tensor.dtype);
        let function = match class {
            Some(_) => "_rebuild_tensor_v2",
            None => "_rebuild_tensor_v3",
        };
        self.global("torch._utils", function);
        self.put(b"((");
        self.text("storage")?;
        let count = match class {
            Some((class, dtype)) => {
                self.global("torch", &format!("{class}Storage"));
                record.len / dtype.width().map_or(1, |width| width as u64)
            }
            None => {
                self.global("torch.storage", "UntypedStorage");
                record.len
            }
        };
        self.text(&record.key.to_string())?;
        self.text("cpu")?;
        self.number(count);
        // TUPLE, BINPERSID.
        self.put(b"tQ");
        self.number(view.offset);
        self.numbers(&view.size);
        self.numbers(&view.stride);
        self.bool(requires_grad);
        self.hooks();
        if class.is_none() {
            let name = TYPES.iter().find(|(_, dtype)| *dtype == tensor.dtype);
            let (name, _) = name.ok_or_else(|| {
                let message = format!("{} has no type in torch", tensor.dtype);
                Error::unsupported("pytorch.write", message).in_tensor(&tensor.name)
            })?;
            self.global("torch", name);
        }
        // TUPLE, REDUCE.
        self.put(b"tR");
        if is_parameter {
            self.bool(requires_grad);
            self.hooks();
            self.put(b"tR");
        }
        Ok(())
    }

    /// `OrderedDict()`
    fn hooks(&mut self) {
        self.global("collections", "OrderedDict");
        self.put(b")R");
    }

    fn value(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Null => self.put(b"N"),
            Value::Bool(value) => self.bool(*value),
            Value::F32(number) => self.float(f64::from(*number)),
            Value::F64(number) => self.float(*number),
            Value::Integer(digits) => self.long(&integer(digits.as_bytes())?),
            Value::Str(text) => self.text(text)?,
            Value::Bytes(bytes) => {
                // How protocol 2 has bytes: as text whose characters are these.
                let text: String = bytes.iter().copied().map(char::from).collect();
                self.global("_codecs", "encode");
                self.put(b"(");
                self.text(&text)?;
                self.text("latin1")?;
                self.put(b"tR");
            }
            Value::List(list) => {
                self.put(b"](");
                for item in list.iter() {
                    self.value(&item)?;
                }
                self.put(b"e");
            }
            other => match (other.as_i64(), other.as_u64()) {
                (Some(number), _) => self.signed(number),
                (_, Some(number)) => self.number(number),
                _ => {
                    let message = format!("{} cannot be written", other.in_words());
                    return Err(Error::unsupported("pytorch.write", message));
                }
            },
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn global(&mut self, module: &str, name: &str) {
        self.put(b"c");
        self.put(module.as_bytes());
        self.put(b"\n");
        self.put(name.as_bytes());
        self.put(b"\n");
    }

    /// BINUNICODE
    fn text(&mut self, text: &str) -> Result<()> {
        let len = u32::try_from(text.len()).map_err(|cause| {
            let message = format!("a text of {} bytes; at most 4 GiB fit", text.len());
            Error::unsupported("pytorch.write", message).because(cause)
        })?;
        self.put(b"X");
        self.put(&len.to_le_bytes());
        self.put(text.as_bytes());
        Ok(())
    }

    fn bool(&mut self, value: bool) {
        self.put(if value { b"\x88" } else { b"\x89" });
    }

    /// BINFLOAT
    fn float(&mut self, number: f64) {
        self.put(b"G");
        self.put(&number.to_be_bytes());
    }

    fn number(&mut self, number: u64) {
        match i64::try_from(number) {
            Ok(number) => self.signed(number),
            Err(_) => {
                let mut bytes = number.to_le_bytes().to_vec();
                bytes.push(0);
                self.long(&bytes);
            }
        }
    }

    /// BININT1, BININT2, BININT or LONG1, as Python does.
    fn signed(&mut self, number: i64) {
        if let Ok(number) = u8::try_from(number) {
            self.put(&[b'K', number]);
        } else if let Ok(number) = u16::try_from(number) {
            self.put(b"M");
            self.put(&number.to_le_bytes());
        } else if let Ok(number) = i32::try_from(number) {
            self.put(b"J");
            self.put(&number.to_le_bytes());
        } else {
            let bytes = number.to_le_bytes();
            let sign = if number < 0 { 0xff } else { 0 };
            let mut len = bytes.len();
            while let Some([.., before, last]) = bytes.get(..len)
                && *last == sign
                && (*before & 0x80 != 0) == (number < 0)
            {
                len -= 1;
            }
            self.long(bytes.get(..len).unwrap_or(&bytes));
        }
    }

    /// LONG1: an integer of few bytes, two's complement.
    fn long(&mut self, bytes: &[u8]) {
        // The capabilities allow for no more.
        let len = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
        self.put(&[0x8a, len]);
        self.put(bytes);
    }

    fn numbers(&mut self, numbers: &[u64]) {
        self.put(b"(");
        for number in numbers {
            self.number(*number);
        }
        self.put(b"t");
    }
}
