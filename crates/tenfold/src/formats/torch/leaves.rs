//! What is no tensor, as metadata.

use bytes::Bytes;

use super::globals::{Allowed, Global};
use crate::error::{Error, Result};
use crate::model::{DType, Endian, List, NUMPY_CODES, Packer, Value as Meta};
use crate::prelude::*;
use crate::wire::numpy;
use crate::wire::pickle::{Budget, Kind, Node, Value, decimal};

/// Nested values that a set or a key of a dict can have.
const MAX_DEPTH: usize = 8;

/// A value that says itself whole; `None` for what has children, and for tensors.
pub(in crate::formats) fn plain(allowed: Allowed, value: &Value<'_>) -> Option<Meta> {
    Some(match value {
        Value::None => Meta::Null,
        Value::Bool(value) => Meta::Bool(*value),
        Value::Integer(digits) => match value.as_i64() {
            Some(number) => Meta::I64(number),
            None => Meta::Integer(decimal(digits)),
        },
        Value::Float(number) => Meta::F64(*number),
        Value::Text(text) => Meta::Str(text.to_string()),
        Value::Bytes(bytes) => Meta::Bytes(Bytes::copy_from_slice(bytes)),
        Value::Global { module, name } => match allowed.find(module, name) {
            Some(Global::Type(dtype)) => Meta::Str(dtype.to_string()),
            _ => Meta::Str(format!("{module}.{name}")),
        },
        Value::Node(_) => return None,
    })
}

/// A value with everything that is in it, as one: lists of numbers and the like; `None` where a tensor is in it, or
/// something that is no plain value.
pub(in crate::formats) fn whole(
    allowed: Allowed,
    value: &Value<'_>,
    budget: &mut Budget,
    depth: usize,
) -> Result<Option<Meta>> {
    budget.charge(64)?;
    let Value::Node(node) = value else {
        return Ok(plain(allowed, value));
    };
    if depth >= MAX_DEPTH {
        return Ok(None);
    }
    match node.kind() {
        Kind::List | Kind::Tuple => {
            let mut packer = Packer::list();
            for item in node.items() {
                let Some(item) = whole(allowed, &item?, budget, depth + 1)? else {
                    return Ok(None);
                };
                packer.value(&item);
            }
            Ok(Some(Meta::List(packer.into_list())))
        }
        Kind::Set | Kind::FrozenSet => {
            set(allowed, *node, &[], depth).map(|items| Some(Meta::List(items)))
        }
        Kind::Call | Kind::New => {
            let object = node.object()?;
            let Some(global) = allowed.meaning(&object.function) else {
                return Ok(None);
            };
            made(allowed, global, *node, &arguments(&object.arguments)?)
        }
        Kind::Dict | Kind::Persistent | Kind::Global => Ok(None),
    }
}

/// What a call of the list makes that is a single value.
pub(in crate::formats) fn made(
    allowed: Allowed,
    global: Global,
    node: Node<'_>,
    arguments: &[Value<'_>],
) -> Result<Option<Meta>> {
    let plain = |value: Option<&Value<'_>>| value.and_then(|value| plain(allowed, value));
    Ok(Some(match global {
        Global::Set => Meta::List(set(allowed, node, arguments, 0)?),
        Global::Bytes => Meta::Bytes(bytes(allowed, arguments)?.into()),
        Global::Encode => Meta::Bytes(encoded(arguments)?.into()),
        Global::Complex => {
            let parts = [arguments.first(), arguments.get(1)];
            let parts = parts.map(|part| plain(part).unwrap_or(Meta::F64(0.0)));
            Meta::List(parts.into_iter().collect())
        }
        Global::Scalar => match plain(arguments.first()) {
            Some(value) => value,
            None => return Err(odd("a number or text", arguments)),
        },
        Global::Shown => Meta::Str(shown_call(node, arguments)?),
        Global::Device => Meta::Str(device(arguments)?),
        Global::Path { separator } => Meta::Str(path(arguments, separator)?),
        Global::NumpyScalar => numpy_scalar(allowed, arguments)?,
        Global::NumpyType => Meta::Str(numpy_code(node, arguments)?),
        _ => return Ok(None),
    }))
}

/// The items of a set, each as a value.
pub(in crate::formats) fn set(
    allowed: Allowed,
    node: Node<'_>,
    arguments: &[Value<'_>],
    depth: usize,
) -> Result<List> {
    let mut items = Vec::new();
    let mut add = |item: &Value<'_>| {
        let value = match item {
            Value::Node(inner)
                if matches!(inner.kind(), Kind::Tuple | Kind::FrozenSet) && depth < MAX_DEPTH =>
            {
                Meta::List(set(allowed, *inner, &[], depth + 1)?)
            }
            item => plain(allowed, item).ok_or_else(|| {
                let message = format!("a set that holds {}", item.what());
                Error::unsupported("value", message)
            })?,
        };
        items.push(value);
        Ok::<_, Error>(())
    };
    for argument in arguments {
        let Value::Node(inner) = argument else {
            return Err(odd("a list", arguments));
        };
        for item in inner.items() {
            add(&item?)?;
        }
    }
    for item in node.items() {
        add(&item?)?;
    }
    Ok(items.into())
}

/// A key of a dict, as Python prints it.
pub(in crate::formats) fn key(value: &Value<'_>, depth: usize) -> Result<String> {
    Ok(match value {
        Value::Text(text) if depth == 0 => text.to_string(),
        Value::Text(text) => format!("'{text}'"),
        Value::Integer(digits) => decimal(digits),
        Value::Float(number) => float(*number),
        Value::Bool(_) | Value::None => value.what(),
        Value::Bytes(bytes) => shown_bytes(bytes),
        Value::Node(node) if node.kind() == Kind::Tuple && depth < MAX_DEPTH => {
            let mut items = Vec::new();
            for item in node.items() {
                items.push(key(&item?, depth + 1)?);
            }
            let comma = if items.len() == 1 { "," } else { "" };
            format!("({}{comma})", items.join(", "))
        }
        other => {
            let message = format!("{} as the key of a dict", other.what());
            return Err(Error::unsupported("key", message));
        }
    })
}

/// Bytes as Python prints them: `b'a\x00'`.
fn shown_bytes(bytes: &[u8]) -> String {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') {
        '"'
    } else {
        '\''
    };
    let mut shown = format!("b{quote}");
    for &byte in bytes {
        match byte {
            b'\\' => shown.push_str("\\\\"),
            b'\t' => shown.push_str("\\t"),
            b'\n' => shown.push_str("\\n"),
            b'\r' => shown.push_str("\\r"),
            byte if char::from(byte) == quote => shown.extend(['\\', quote]),
            b' '..=b'~' => shown.push(byte.into()),
            byte => shown.push_str(&format!("\\x{byte:02x}")),
        }
    }
    shown.push(quote);
    shown
}

/// A float as Python prints it: the shortest digits, with an exponent of two digits and a sign.
fn float(number: f64) -> String {
    let text = format!("{number:?}");
    if text == "NaN" {
        return "nan".to_owned();
    }
    match text.split_once('e') {
        None if number != 0.0 && number.abs() < 1e-4 => {
            let text = format!("{number:e}");
            float_exponent(&text)
        }
        None => text,
        Some(_) => float_exponent(&text),
    }
}

fn float_exponent(text: &str) -> String {
    let Some((digits, exponent)) = text.split_once('e') else {
        return text.to_owned();
    };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

fn odd(expected: &str, arguments: &[Value<'_>]) -> Error {
    let found: Vec<_> = arguments.iter().take(4).map(Value::what).collect();
    let message = format!("expected {expected}, found ({})", found.join(", "));
    Error::malformed("value", message)
}

/// `_codecs.encode(text, "latin1")`: how protocol 2 writes bytes.
pub(in crate::formats) fn encoded(arguments: &[Value<'_>]) -> Result<Vec<u8>> {
    match arguments {
        [Value::Text(text)] | [Value::Text(text), Value::Text(_)] => {
            let is_latin = match arguments.get(1) {
                Some(Value::Text(encoding)) => {
                    matches!(&**encoding, "latin1" | "latin-1" | "iso-8859-1")
                }
                _ => false,
            };
            if !is_latin {
                return Err(odd("text and \"latin1\"", arguments));
            }
            let bytes = text.chars().map(|c| u8::try_from(u32::from(c)));
            let bytes: Result<Vec<u8>, _> = bytes.collect();
            bytes.map_err(|_| odd("text of Latin-1", arguments))
        }
        _ => Err(odd("text and \"latin1\"", arguments)),
    }
}

/// Bytes, however they are written.
pub(in crate::formats) fn bytes(allowed: Allowed, arguments: &[Value<'_>]) -> Result<Vec<u8>> {
    match arguments {
        [] => Ok(Vec::new()),
        [Value::Bytes(bytes)] => Ok(bytes.to_vec()),
        [Value::Text(_), Value::Text(_)] => encoded(arguments),
        [value] => match as_bytes(allowed, value)? {
            Some(bytes) => Ok(bytes),
            None => Err(odd("bytes", arguments)),
        },
        _ => Err(odd("bytes", arguments)),
    }
}

/// A value that is bytes: as they are, or encoded from text.
pub(in crate::formats) fn as_bytes(allowed: Allowed, value: &Value<'_>) -> Result<Option<Vec<u8>>> {
    match value {
        Value::Bytes(bytes) => Ok(Some(bytes.to_vec())),
        // A string of Python 2 that happens to be text.
        Value::Text(text) => Ok(Some(text.as_bytes().to_vec())),
        Value::Node(node) if node.kind() == Kind::Call => {
            let object = node.object()?;
            match allowed.meaning(&object.function) {
                Some(Global::Encode) => encoded(&arguments(&object.arguments)?).map(Some),
                Some(Global::Bytes) => {
                    let inner = arguments(&object.arguments)?;
                    match inner.first() {
                        // Not bytes of bytes of bytes.
                        Some(Value::Node(_)) => Ok(None),
                        _ => bytes(allowed, &inner).map(Some),
                    }
                }
                _ => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

/// Arguments of a call, at most: no function of the list has more.
const MAX_ARGUMENTS: usize = 64;

/// The arguments of a call.
pub(in crate::formats) fn arguments<'t>(value: &Value<'t>) -> Result<Vec<Value<'t>>> {
    match value {
        Value::Node(node) if node.kind() == Kind::Tuple => {
            if node.len() > MAX_ARGUMENTS {
                let message = format!("a call with {} arguments", node.len());
                return Err(Error::malformed("value", message));
            }
            node.items().collect()
        }
        _ => Ok(Vec::new()),
    }
}

/// The two of a pair, which can be a list too.
pub(in crate::formats) fn arguments_of<'t>(pair: &Value<'t>) -> Result<Vec<Value<'t>>> {
    match pair {
        Value::Node(node) if node.kind() == Kind::List && node.len() <= MAX_ARGUMENTS => {
            node.items().collect()
        }
        other => arguments(other),
    }
}

/// `range(0, 3, 1)`
fn shown_call(node: Node<'_>, arguments: &[Value<'_>]) -> Result<String> {
    let name = match node.object()?.function {
        Value::Global { name, .. } => name.to_string(),
        other => other.what(),
    };
    let arguments: Vec<_> = arguments.iter().map(Value::what).collect();
    Ok(format!("{name}({})", arguments.join(", ")))
}

fn device(arguments: &[Value<'_>]) -> Result<String> {
    match arguments {
        [Value::Text(kind)] => Ok(format!("device:{kind}")),
        [Value::Text(kind), index] => match index.as_i64() {
            Some(index) => Ok(format!("device:{kind}:{index}")),
            None => Err(odd("a device", arguments)),
        },
        _ => Err(odd("a device", arguments)),
    }
}

fn path(arguments: &[Value<'_>], separator: char) -> Result<String> {
    let mut path = String::new();
    for part in arguments {
        let Value::Text(part) = part else {
            return Err(odd("parts of a path", arguments));
        };
        if !path.is_empty() && !path.ends_with(separator) {
            path.push(separator);
        }
        path.push_str(part);
    }
    Ok(path)
}

/// A type of NumPy.
pub(in crate::formats) struct NumpyType {
    pub(in crate::formats) dtype: DType,
    pub(in crate::formats) endian: Endian,
}

/// `numpy.dtype("f4", ..)` with the state `(3, "<", ..)`.
pub(in crate::formats) fn numpy_type(allowed: Allowed, value: &Value<'_>) -> Result<NumpyType> {
    let wrong = || {
        let message = format!("expected a NumPy dtype, found {}", value.what());
        Error::malformed("numpy", message)
    };
    let Value::Node(node) = value else {
        return Err(wrong());
    };
    if !matches!(node.kind(), Kind::Call | Kind::New) {
        return Err(wrong());
    }
    let object = node.object()?;
    if allowed.meaning(&object.function) != Some(Global::NumpyType) {
        return Err(wrong());
    }
    let code = match arguments(&object.arguments)?.first() {
        Some(Value::Text(code)) => code.to_string(),
        _ => return Err(wrong()),
    };
    let order = match node.states().last().transpose()? {
        Some(state) => match arguments(&state)?.get(1) {
            Some(Value::Text(order)) => order.to_string(),
            _ => return Err(wrong()),
        },
        None => "|".to_owned(),
    };
    let found = numpy::dtypes::parse(&format!("{order}{code}"), None)?;
    Ok(NumpyType {
        dtype: found.dtype,
        endian: found.endian,
    })
}

/// What NumPy calls a type, with the order of its bytes: `<f4`.
fn numpy_code(node: Node<'_>, arguments: &[Value<'_>]) -> Result<String> {
    let Some(Value::Text(code)) = arguments.first() else {
        return Err(odd("the code of a NumPy dtype", arguments));
    };
    let order = match node.states().last().transpose()? {
        Some(state) => self::arguments(&state)?.get(1).cloned(),
        None => None,
    };
    match order {
        Some(Value::Text(order)) => Ok(format!("{order}{code}")),
        _ => Ok(format!("|{code}")),
    }
}

/// The text of a scalar of NumPy that is one, four bytes for each character; `None` for other types.
fn numpy_text(allowed: Allowed, dtype: Node<'_>, value: &Value<'_>) -> Result<Option<String>> {
    if !matches!(dtype.kind(), Kind::Call | Kind::New) {
        return Ok(None);
    }
    let code = numpy_code(dtype, &arguments(&dtype.object()?.arguments)?)?;
    let is_big = match code.as_bytes() {
        [b'>', b'U', ..] => true,
        [_, b'U', ..] => false,
        _ => return Ok(None),
    };
    let wrong = || Error::malformed("numpy", "a text of NumPy that is none");
    let bytes = as_bytes(allowed, value)?.ok_or_else(wrong)?;
    let (characters, []) = bytes.as_chunks::<4>() else {
        return Err(wrong());
    };
    let characters = characters.iter().map(|bytes| {
        if is_big {
            u32::from_be_bytes(*bytes)
        } else {
            u32::from_le_bytes(*bytes)
        }
    });
    let text: Option<String> = characters.map(char::from_u32).collect();
    let text = text.ok_or_else(wrong)?;
    Ok(Some(text.trim_end_matches('\0').to_owned()))
}

/// `scalar(dtype, bytes)`: a number, in the width that Python has for it.
fn numpy_scalar(allowed: Allowed, arguments: &[Value<'_>]) -> Result<Meta> {
    let [dtype, value] = arguments else {
        return Err(odd("a type and bytes", arguments));
    };
    if let Value::Node(node) = dtype
        && let Some(text) = numpy_text(allowed, *node, value)?
    {
        return Ok(Meta::Str(text));
    }
    let NumpyType { dtype, endian } = numpy_type(allowed, dtype)?;
    let bytes = as_bytes(allowed, value)?.ok_or_else(|| odd("a type and bytes", arguments))?;
    let wrong = || {
        let message = format!("{} bytes for one {dtype}", bytes.len());
        Error::malformed("numpy", message)
    };
    if dtype.width() != Some(bytes.len()) {
        return Err(wrong());
    }
    let code = NUMPY_CODES.iter().find(|(_, _, known)| *known == dtype);
    let Some(&(kind, len, _)) = code else {
        return Err(wrong());
    };
    let mut number = bytes.clone();
    if endian == Endian::Big {
        number.reverse();
    }
    let fill = match (kind, number.last()) {
        ('i', Some(byte)) if byte & 0x80 != 0 => 0xff,
        _ => 0,
    };
    number.resize(16, fill);
    let (low, _) = number.split_first_chunk::<8>().ok_or_else(wrong)?;
    Ok(match (kind, len) {
        ('b', _) => Meta::Bool(low.iter().any(|byte| *byte != 0)),
        ('i', _) => Meta::I64(i64::from_le_bytes(*low)),
        ('u', _) => Meta::U64(u64::from_le_bytes(*low)),
        ('f', 8) => Meta::F64(f64::from_le_bytes(*low)),
        ('f', 4) => {
            let [a, b, c, d, ..] = *low;
            Meta::F32(f32::from_le_bytes([a, b, c, d]))
        }
        ('f', 2) => {
            let [a, b, ..] = *low;
            Meta::F32(half::f16::from_le_bytes([a, b]).to_f32())
        }
        _ => Meta::Bytes(bytes.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_keys_as_python_prints_them() {
        for (number, expected) in [
            (2.5, "2.5"),
            (1.0, "1.0"),
            (1e16, "1e+16"),
            (1.5e-7, "1.5e-07"),
            (1e-4, "0.0001"),
            (5e-5, "5e-05"),
            (1e100, "1e+100"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
            (-0.0, "-0.0"),
        ] {
            assert_eq!(float(number), expected);
        }
    }
}
