//! Arrays of NumPy, whose bytes are in the pickle.

use alloc::borrow::Cow;

use bytes::Bytes;

use super::globals::{Global, meaning};
use crate::error::{Error, Result};
use crate::io::Source;
use crate::model::{
    Chunks, DType, Endian, Layout, Make, Part, Payload, Role, Shape, SourceId, TensorInfo,
};
use crate::prelude::*;
use crate::wire::numpy;
use crate::wire::pickle::{Condensed, Kind, Node, Taken, Value};

/// Arguments of a call, at most: no function of the list has more.
const MAX_ARGUMENTS: usize = 64;
/// Bytes of a string that is looked at.
const SHORT: u64 = 64;

/// What arrays are read with.
#[derive(Clone, Copy)]
pub(super) struct Strings<'a> {
    pub(super) source: &'a Arc<dyn Source>,
    pub(super) condensed: &'a Condensed,
    /// Bytes that may be in memory at once for a tensor.
    pub(super) memory: u64,
    pub(super) rank: usize,
}

/// An array.
#[derive(Debug)]
pub(super) struct Array {
    pub(super) shape: Shape,
    dtype: DType,
    endian: Endian,
    is_columns: bool,
    payload: Payload,
}

/// The arguments of a call.
pub(super) fn arguments<'t>(value: &Value<'t>) -> Result<Vec<Value<'t>>> {
    match value {
        Value::Node(node) if matches!(node.kind(), Kind::Tuple | Kind::List) => {
            if node.len() > MAX_ARGUMENTS {
                let message = format!("a call with {} arguments", node.len());
                return Err(Error::malformed("paddle.value", message));
            }
            node.items().collect()
        }
        _ => Ok(Vec::new()),
    }
}

fn wrong(message: impl Into<String>) -> Error {
    Error::malformed("paddle.array", message)
}

impl Strings<'_> {
    /// A string that was taken out of the pickle.
    fn taken(&self, value: &Value<'_>) -> Result<&Taken> {
        match value {
            Value::Bytes(number) => self.condensed.taken(number),
            _ => None,
        }
        .ok_or_else(|| wrong(format!("expected bytes, found {}", value.what())))
    }

    /// The bytes of a short string.
    pub(super) fn short(&self, value: &Value<'_>, limit: u64) -> Result<(Bytes, bool)> {
        let taken = self.taken(value)?;
        Ok((taken.read(&**self.source, limit)?, taken.is_text))
    }

    /// `(version, shape, dtype, is_fortran, bytes)`, which an array was built with.
    pub(super) fn array(&self, node: Node<'_>) -> Result<Array> {
        let state = node.states().last().transpose()?;
        let state = state.map(|state| arguments(&state)).transpose()?;
        let Some([_version, shape, dtype, fortran, data]) = state.as_deref() else {
            return Err(wrong("an array of NumPy without its state"));
        };
        let shape = self.shape(shape)?;
        let is_columns = match fortran {
            Value::Bool(flag) => *flag,
            other => match other.as_i64() {
                Some(flag @ (0 | 1)) => flag == 1,
                _ => {
                    return Err(wrong(format!(
                        "the order is {}, not true or false",
                        other.what()
                    )));
                }
            },
        };
        self.place(shape, dtype, data, is_columns)
    }

    /// `scalar(dtype, bytes)`
    pub(super) fn scalar(&self, of: &[Value<'_>]) -> Result<Array> {
        match of {
            [dtype, data] => self.place(Shape::new(), dtype, data, false),
            _ => Err(wrong(
                "a scalar of NumPy that is not made of a type and bytes",
            )),
        }
    }

    fn place(
        &self,
        shape: Shape,
        dtype: &Value<'_>,
        data: &Value<'_>,
        is_columns: bool,
    ) -> Result<Array> {
        let (dtype, endian) = self.dtype(dtype)?;
        let len = numpy::data_len(dtype, &shape);
        let len = len.ok_or_else(|| {
            let message = format!("shape {shape:?} of {dtype} has 2^63 bytes or more");
            Error::malformed("paddle.overflow", message)
        })?;
        let payload = self.payload(data, len)?;
        if payload.len() != len {
            let message = format!(
                "{} bytes for {dtype} of {shape:?}, which has {len}",
                payload.len()
            );
            return Err(Error::malformed("paddle.size", message));
        }
        Ok(Array {
            shape,
            dtype,
            endian,
            is_columns,
            payload,
        })
    }

    /// The bytes of an array: where they are, or what makes them.
    fn payload(&self, data: &Value<'_>, len: u64) -> Result<Payload> {
        let (text, is_encoded) = match data {
            Value::Node(node) if node.kind() == Kind::Call => {
                let object = node.object()?;
                let of = arguments(&object.arguments)?;
                match (meaning(&object.function), of.as_slice()) {
                    (Some(Global::Encode), [text, Value::Text(encoding)])
                        if matches!(&**encoding, "latin1" | "latin-1" | "iso-8859-1") =>
                    {
                        (text.clone(), true)
                    }
                    _ => {
                        return Err(wrong(
                            "an array whose bytes are made in another way than NumPy's",
                        ));
                    }
                }
            }
            // Of Python 2: bytes that happen to be text.
            Value::Text(text) => {
                return Ok(Payload::Inline(Bytes::copy_from_slice(text.as_bytes())));
            }
            value => (value.clone(), false),
        };
        if let (Value::Text(text), true) = (&text, is_encoded) {
            return Ok(Payload::Inline(latin_1(text)?.into()));
        }
        let taken = self.taken(&text)?;
        if taken.is_text != is_encoded {
            return Err(wrong(
                "bytes where text should be, or text where bytes should be",
            ));
        }
        if !is_encoded {
            return Ok(Payload::main(taken.range.clone()));
        }
        // Every character is a byte, and takes one or two.
        let stored = taken.range.end - taken.range.start;
        if len > stored || stored > len.saturating_mul(2) {
            let message = format!("{stored} bytes of text for {len} bytes of an array");
            return Err(Error::malformed("paddle.size", message));
        }
        let maker = Latin1 {
            source: self.source.clone(),
            taken: taken.clone(),
            len,
            limit: self.memory,
        };
        Ok(Payload::Lazy {
            len,
            maker: Arc::new(maker),
        })
    }

    pub(super) fn shape(&self, value: &Value<'_>) -> Result<Shape> {
        let Value::Node(node) = value else {
            return Err(wrong(format!(
                "the shape is {}, expected a tuple",
                value.what()
            )));
        };
        if !matches!(node.kind(), Kind::Tuple | Kind::List) {
            return Err(wrong(format!(
                "the shape is {}, expected a tuple",
                value.what()
            )));
        }
        if node.len() > numpy::MAX_RANK {
            let message = format!(
                "{} dimensions, NumPy has {} at most",
                node.len(),
                numpy::MAX_RANK
            );
            return Err(Error::malformed("paddle.rank", message));
        }
        if node.len() > self.rank {
            let message = format!("{} dimensions, the limit is {}", node.len(), self.rank);
            return Err(Error::limit("paddle.rank", message).raised_by("rank", node.len() as u64));
        }
        let mut shape = Shape::new();
        for item in node.items() {
            let item = item?;
            match item.as_i64().and_then(|dim| u64::try_from(dim).ok()) {
                Some(dim) => shape.push(dim),
                None => {
                    let message =
                        format!("a dimension of {}, expected a number from 0", item.what());
                    return Err(Error::malformed("paddle.shape", message));
                }
            }
        }
        Ok(shape)
    }

    /// `dtype("f4", False, True)` with the state `(3, "<", None, None, None, -1, -1, 0)`.
    fn dtype(&self, value: &Value<'_>) -> Result<(DType, Endian)> {
        let unknown = || wrong(format!("expected a NumPy dtype, found {}", value.what()));
        let Value::Node(node) = value else {
            return Err(unknown());
        };
        if !matches!(node.kind(), Kind::Call | Kind::New) {
            return Err(unknown());
        }
        let object = node.object()?;
        if meaning(&object.function) != Some(Global::DType) {
            return Err(unknown());
        }
        let code = match arguments(&object.arguments)?.first() {
            Some(Value::Text(code)) => code.to_string(),
            Some(bytes @ Value::Bytes(_)) => {
                let Range { start, end } = self.taken(bytes)?.range;
                if end - start > SHORT {
                    return Err(unknown());
                }
                let (code, _) = self.short(bytes, SHORT)?;
                String::from_utf8_lossy(&code).into_owned()
            }
            _ => return Err(unknown()),
        };
        let state = match node.states().last().transpose()? {
            Some(state) => arguments(&state)?,
            None => Vec::new(),
        };
        let order = match state.get(1) {
            Some(Value::Text(order)) => Cow::from(order.to_string()),
            None => Cow::from("|"),
            Some(_) => return Err(unknown()),
        };
        let is_plain = |value: &Value<'_>| matches!(value, Value::None);
        if !state.iter().skip(2).take(3).all(is_plain) {
            let message = format!("dtype {code:?} is records or subarrays, not numbers");
            return Err(Error::unsupported("paddle.structured", message));
        }
        let found = numpy::dtypes::parse(&format!("{order}{code}"), None);
        let found = found.map_err(|error| error.in_format("paddle"))?;
        // Paddle has no such integers, and stores bf16 so.
        let dtype = match found.dtype {
            DType::U16 => DType::BF16,
            dtype => dtype,
        };
        Ok((dtype, found.endian))
    }
}

impl Array {
    pub(super) fn tensor(self, name: String) -> TensorInfo {
        let mut tensor = TensorInfo::dense(name, self.dtype, self.shape, self.payload);
        if self.is_columns && tensor.shape.len() > 1 {
            tensor.layout = Layout::ColumnMajor;
        }
        for part in &mut tensor.parts {
            part.endian = self.endian;
        }
        tensor
    }

    /// One tensor of slices, each with one dimension.
    pub(super) fn join(name: String, shape: Shape, slices: Vec<Self>) -> Result<TensorInfo> {
        let refuse = |message: String| Err(Error::malformed("paddle.slices", message));
        let Some(first) = slices.first() else {
            return refuse(format!("parameter {name:?} has no slices"));
        };
        let (dtype, endian) = (first.dtype, first.endian);
        if slices
            .iter()
            .any(|slice| (slice.dtype, slice.endian) != (dtype, endian))
        {
            return refuse(format!("the slices of {name:?} have several types"));
        }
        let (Some(width), Some(len)) = (dtype.width(), numpy::data_len(dtype, &shape)) else {
            return refuse(format!("parameter {name:?} of {dtype} {shape:?}"));
        };
        let found = slices
            .iter()
            .fold(0u64, |sum, slice| sum.saturating_add(slice.payload.len()));
        if found != len {
            return refuse(format!(
                "the slices of {name:?} have {found} bytes, {dtype} of {shape:?} has {len}"
            ));
        }
        let pieces = slices.into_iter().map(|slice| {
            let elements = slice.payload.len() / width as u64;
            (slice.payload, elements)
        });
        let Some(chunks) = Chunks::joined(pieces.collect(), width) else {
            return refuse(format!("the slices of {name:?} cannot be counted"));
        };
        let mut tensor = TensorInfo::new(name, dtype, shape, Layout::RowMajor);
        let mut part = Part::new(Role::Values, dtype, Payload::Chunks(Arc::new(chunks)));
        part.endian = endian;
        tensor.parts = part.into();
        Ok(tensor)
    }
}

/// The characters of a text, which are bytes.
fn latin_1(text: &str) -> Result<Vec<u8>> {
    let bytes: Result<Vec<u8>, _> = text.chars().map(|c| u8::try_from(u32::from(c))).collect();
    bytes.map_err(|cause| wrong("text with other characters than those of Latin-1").because(cause))
}

/// Bytes of an array that are text in the file, as protocol 2 has them.
struct Latin1 {
    source: Arc<dyn Source>,
    taken: Taken,
    len: u64,
    limit: u64,
}

impl core::fmt::Debug for Latin1 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Latin1({:?})", self.taken.range)
    }
}

impl Make for Latin1 {
    fn make(&self) -> Result<Bytes> {
        let stored = self.taken.range.end - self.taken.range.start;
        if stored > self.limit {
            let message = format!(
                "{stored} bytes are needed at once, the limit is {}",
                self.limit
            );
            return Err(Error::limit("memory", message).raised_by("tensor_memory", stored));
        }
        let text = self.taken.read(&*self.source, self.limit)?;
        let at = self.taken.range.clone();
        let text = core::str::from_utf8(&text).map_err(|cause| {
            wrong("text that is not UTF-8")
                .at(at.clone())
                .because(cause)
        })?;
        let bytes = latin_1(text)?;
        if bytes.len() as u64 != self.len {
            let message = format!("{} bytes of an array, expected {}", bytes.len(), self.len);
            return Err(Error::malformed("paddle.size", message).at(at));
        }
        Ok(bytes.into())
    }

    fn made_from(&self) -> Option<(SourceId, Range<u64>)> {
        Some((SourceId::MAIN, self.taken.range.clone()))
    }
}
