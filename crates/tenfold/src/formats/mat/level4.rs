//! Level 4: variables one behind the other, each with a header of its own.

use super::found::{self, Found};
use super::stream::TRUNCATED;
use super::text;
use crate::error::{Error, Result};
use crate::format::Context;
use crate::io::{Reader, Source};
use crate::model::{
    DType, Endian, Lanes, Layout, Part, Payload, Role, Scalar, SourceId, TensorInfo, Value,
};
use crate::prelude::*;
use crate::transform::cast_elements;

/// Bytes of a variable's header in front of its name.
const HEAD: u64 = 20;
/// The greatest type word: M, O, P and T in decimal digits.
const MOST_TYPE: u32 = 5052;
/// Bytes of a name, at most; MATLAB has 19.
const MOST_NAME: u64 = 4096;

/// A variable's header.
#[derive(Clone, Debug)]
struct Head {
    kind: u32,
    endian: Endian,
    rows: u64,
    columns: u64,
    is_complex: bool,
    name_len: u64,
}

/// The byte order that the type word of a level 4 file has.
fn order(word: [u8; 4]) -> Option<(u32, Endian)> {
    let little = u32::from_le_bytes(word);
    let big = u32::from_be_bytes(word);
    if little <= MOST_TYPE {
        Some((little, Endian::Little))
    } else {
        (big <= MOST_TYPE).then_some((big, Endian::Big))
    }
}

/// Whether bytes begin like a variable of level 4: its header makes sense, and its name is text that ends.
pub(super) fn is_begin(bytes: &[u8]) -> bool {
    let Ok(head) = Head::parse(&mut Reader::new(
        &crate::Bytes::copy_from_slice(bytes),
        TRUNCATED,
    )) else {
        return false;
    };
    let name = bytes.get(20..).unwrap_or_default();
    let name = usize::try_from(head.name_len)
        .ok()
        .and_then(|len| name.get(..len));
    name.and_then(|name| name.split_last())
        .is_some_and(|(end, name)| {
            *end == 0 && !name.is_empty() && name.iter().all(u8::is_ascii_graphic)
        })
}

impl Head {
    fn parse(r: &mut Reader<'_>) -> Result<Self> {
        let at = r.pos();
        let wrong = |rule, message: String| Error::malformed(rule, message).at(at..at + HEAD);
        let word = r.array("the type of a variable")?;
        let Some((kind, endian)) = order(word) else {
            let message = format!("{word:02x?} is no type of level 4");
            return Err(wrong("mat.type", message));
        };
        let (machine, zero) = (kind / 1000, kind / 100 % 10);
        let (number, what) = (kind / 10 % 10, kind % 10);
        if machine > 1 {
            let message = format!("type {kind}: numbers of a VAX or a Cray, which are not read");
            return Err(Error::unsupported("mat.type", message).at(at..at + 4));
        }
        if zero != 0 || number > 5 || what > 2 {
            let message = format!("{kind} is no type of level 4");
            return Err(wrong("mat.type", message));
        }
        let mut word = |field| -> Result<i32> {
            let bytes = r.array(field)?;
            Ok(match endian {
                Endian::Little => i32::from_le_bytes(bytes),
                Endian::Big => i32::from_be_bytes(bytes),
            })
        };
        let mut size = |field: &'static str| -> Result<u64> {
            let found = word(field)?;
            u64::try_from(found)
                .map_err(|_| wrong("mat.dimensions", format!("{field} are {found}")))
        };
        let (rows, columns) = (size("rows")?, size("columns")?);
        let is_complex = match word("the imaginary flag")? {
            0 => false,
            1 => true,
            other => {
                let message = format!("the imaginary flag is {other}, 0 or 1 is expected");
                return Err(wrong("mat.flags", message));
            }
        };
        let name_len = word("the length of a name")?;
        let Some(name_len) = u64::try_from(name_len)
            .ok()
            .filter(|len| (1..=MOST_NAME).contains(len))
        else {
            return Err(wrong("mat.name", format!("a name of {name_len} bytes")));
        };
        Ok(Self {
            kind,
            endian,
            rows,
            columns,
            is_complex,
            name_len,
        })
    }

    /// The byte order of the machine that the type names. What counts is how the word itself is written.
    fn machine(&self) -> Endian {
        if self.kind / 1000 == 1 {
            Endian::Big
        } else {
            Endian::Little
        }
    }

    fn scalar(&self) -> Scalar {
        match self.kind / 10 % 10 {
            0 => Scalar::F64,
            1 => Scalar::F32,
            2 => Scalar::I32,
            3 => Scalar::I16,
            4 => Scalar::U16,
            _ => Scalar::U8,
        }
    }
}

/// Reads all variables.
pub(super) fn describe(cx: &mut Context<'_>, found: &mut Found<'_>) -> Result<()> {
    let source = cx.source();
    let mut r = Reader::new(source, TRUNCATED);
    while r.remaining() > 0 {
        let at = r.pos();
        let head = Head::parse(&mut r)?;
        if head.machine() != head.endian {
            let message = format!(
                "type {} is of a {}-endian machine, and is written as on a {}-endian one, which counts",
                head.kind,
                head.machine(),
                head.endian
            );
            cx.warn("mat.type", at..at + 4, message)?;
        }
        let name = name(&mut r, head.name_len)?;
        found.read = found.read.saturating_add(HEAD + head.name_len);
        let shape = found::shape(&[head.rows, head.columns], found.limits, &(at..r.pos()))?;
        let elements = head.rows.saturating_mul(head.columns);
        let dtype = DType::Number(head.scalar(), Lanes::Real);
        let len = dtype.bytes_for(elements).unwrap_or(u64::MAX);
        let mut plane = || -> Result<Part> {
            let data = r.skip(len, "the data of a variable");
            let data = data.map_err(|error| error.in_tensor(&name))?;
            let mut part = Part::new(Role::Values, dtype, Payload::main(data));
            part.endian = head.endian;
            Ok(part)
        };
        let mut planes = vec![plane()?];
        if head.is_complex && head.kind % 10 != 2 {
            planes.push(plane()?);
        }
        let place = at..r.pos();
        match head.kind % 10 {
            1 => {
                found.read = found.read.saturating_add(len);
                found.make(len, &place)?;
                let text =
                    characters(source, &head, &planes).map_err(|error| error.in_tensor(&name))?;
                found.text(&name, text, &place)?;
            }
            2 => {
                found.read = found.read.saturating_add(len);
                let tensor = sparse(source, &name, &head, &planes)?;
                found.tensor(tensor, &place)?;
            }
            _ => {
                found.tensor(numbers(name, &head, shape, planes, &place), &place)?;
            }
        }
    }
    Ok(())
}

fn name(r: &mut Reader<'_>, len: u64) -> Result<String> {
    let at = r.pos();
    let bytes = r.take(len, "the name of a variable")?;
    let wrong = |message| Error::malformed("mat.name", message).at(at..at + len);
    let Some((0, name)) = bytes.split_last() else {
        return Err(wrong(
            "the name of a variable does not end with a zero byte",
        ));
    };
    let name =
        core::str::from_utf8(name).map_err(|_| wrong("the name of a variable is not UTF-8"))?;
    if name.is_empty() || name.contains(char::is_control) {
        return Err(wrong("the name of a variable is not printable"));
    }
    Ok(name.to_owned())
}

fn numbers(
    name: String,
    head: &Head,
    shape: crate::model::Shape,
    planes: Vec<Part>,
    place: &Range<u64>,
) -> TensorInfo {
    let layout = found::dense(&shape);
    if head.is_complex && !head.scalar().is_float() {
        let message = format!(
            "complex numbers of {}, which no type has",
            head.scalar().name()
        );
        let error = Error::unsupported("mat.complex", message).at(place.clone());
        let mut tensor = TensorInfo::new(&*name, DType::UNKNOWN, shape, layout);
        tensor.defect = Some(error.in_tensor(&name));
        return tensor;
    }
    let part = found::values(
        head.scalar(),
        head.rows.saturating_mul(head.columns),
        planes,
    );
    let mut tensor = TensorInfo::new(name, part.dtype, shape, layout);
    tensor.parts = part.into();
    tensor
}

/// Numbers that are in memory, as those of another type. One that does not fit is an error.
fn cast(source: &dyn Source, part: &Part, to: DType) -> Result<Vec<u8>> {
    let Payload::Raw { range, .. } = &part.payload else {
        return Err(Error::argument("numbers that are not in the file"));
    };
    let mut bytes = source.read(range.clone())?.to_vec();
    let tally = crate::transform::Tally::default();
    let from = (part.dtype, part.endian);
    cast_elements(from, (to, Endian::Little), &mut bytes, Some(&tally))?;
    if tally.counts().is_clean() {
        return Ok(bytes);
    }
    let message = format!("a number that does not fit {to}");
    Err(Error::malformed("mat.range", message).at(range.clone()))
}

/// The text whose characters' codes the numbers are.
fn characters(source: &dyn Source, head: &Head, planes: &[Part]) -> Result<Value> {
    let codes = match planes {
        [codes] => cast(source, codes, DType::U16)?,
        _ => return Err(Error::malformed("mat.text", "text with an imaginary part")),
    };
    let size = (head.rows, head.columns);
    text::decode(4, Endian::Little, &codes, size)
        .ok_or_else(|| Error::malformed("mat.text", "no text"))
}

/// A sparse matrix: a list of entries, of which the last one says how large it is.
fn sparse(source: &dyn Source, name: &str, head: &Head, planes: &[Part]) -> Result<TensorInfo> {
    let wrong = |message: String| {
        let at = planes.first().and_then(|part| part.payload.stored());
        let error = Error::malformed("mat.sparse", message);
        let error = match at {
            Some((_, range)) => error.at_source(SourceId::MAIN, range),
            None => error,
        };
        Err(error.in_tensor(name))
    };
    let [list] = planes else {
        return wrong("a sparse matrix with an imaginary part of its own".to_owned());
    };
    let is_complex = match head.columns {
        3 => false,
        4 => true,
        other => {
            return wrong(format!(
                "a list of entries with {other} columns, 3 or 4 are expected"
            ));
        }
    };
    let Some(nnz) = head.rows.checked_sub(1) else {
        return wrong("a list of entries without the size of the matrix".to_owned());
    };
    let scalar = head.scalar();
    if is_complex && !scalar.is_float() {
        return wrong(format!("complex numbers of {}", scalar.name()));
    }
    let Payload::Raw { range, .. } = &list.payload else {
        return wrong("a list of entries that is not in the file".to_owned());
    };
    let width = u64::from(scalar.bits() / 8);
    let column = |n: u64, count: u64| {
        let start = range.start + n * head.rows * width;
        let mut part = Part::new(
            Role::Values,
            list.dtype,
            Payload::main(start..start + count * width),
        );
        part.endian = list.endian;
        part
    };
    let size = |n: u64| -> Result<u64> {
        let mut last = column(n, head.rows);
        if let Payload::Raw { range, .. } = &mut last.payload {
            range.start = range.end - width;
        }
        let bytes = cast(source, &last, DType::U64)?;
        Ok(u64::from_le_bytes(bytes.try_into().unwrap_or_default()))
    };
    let (rows, columns) = (size(0)?, size(1)?);
    let shape = found::shape(&[rows, columns], &crate::io::Limits::default(), range)?;
    // Counted from 1, and here from 0.
    let mut coords = Vec::new();
    for (n, dim) in [(0, rows), (1, columns)] {
        let indices = cast(source, &column(n, nnz), DType::U64)?;
        for index in indices.as_chunks::<8>().0 {
            let index = u64::from_le_bytes(*index);
            let Some(index) = index.checked_sub(1).filter(|index| *index < dim) else {
                return wrong(format!("an entry at {index}, there are {dim}"));
            };
            coords.extend_from_slice(&index.to_le_bytes());
        }
    }
    let mut numbers = vec![column(2, nnz)];
    if is_complex {
        numbers.push(column(3, nnz));
    }
    let values = found::values(scalar, nnz, numbers);
    let mut tensor = TensorInfo::new(name, values.dtype, shape, Layout::Coo { nnz });
    let coords = Part::new(Role::Coords, DType::U64, Payload::Inline(coords.into()));
    tensor.parts = vec![values, coords].into();
    Ok(tensor)
}
