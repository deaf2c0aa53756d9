//! Laying out a file of level 5: a header, then variables, each plain or in a zlib stream of its own.

mod arrange;
mod tree;
mod zlib;

pub(super) use arrange::arrange;

use self::tree::{Node, Tree};
use super::types::{self, MATRIX, UTF16};
use super::{level5, limits};
use crate::error::{Error, Result};
use crate::format::{Compression, FilePlan, Form, Plan, PlanOptions, Segment, Want};
use crate::model::{Codec, DType, Endian, Lanes, Layout, Manifest, Order, Role, TensorInfo, Value};
use crate::prelude::*;

/// What a file begins with: no time, so that the same input gives the same bytes.
const TEXT: &[u8] = b"MATLAB 5.0 MAT-file, written by tenfold";
const DEFAULT_LEVEL: i32 = 6;
/// Bytes of the name of a field.
const FIELD: usize = 64;
/// Elements are padded to this.
const ALIGN: u64 = 8;
/// Classes of matrices, and the bit of complex and of logical ones.
const CELL: u32 = 1;
const STRUCT: u32 = 2;
const CHAR: u32 = 4;
const SPARSE: u32 = 5;
const COMPLEX: u32 = 0x800;
const LOGICAL: u32 = 0x200;

/// A stretch of a variable.
enum Piece {
    Bytes(Vec<u8>),
    /// Data of a tensor.
    Data {
        index: usize,
        part: usize,
        want: Want,
        len: u64,
    },
}

/// The pieces of an element, one behind the other.
#[derive(Default)]
struct Pieces {
    list: Vec<Piece>,
    len: u64,
}

impl Pieces {
    fn bytes(&mut self, bytes: &[u8]) {
        self.len = self.len.saturating_add(bytes.len() as u64);
        match self.list.last_mut() {
            Some(Piece::Bytes(known)) => known.extend_from_slice(bytes),
            _ => self.list.push(Piece::Bytes(bytes.to_vec())),
        }
    }

    fn word(&mut self, word: u32) {
        self.bytes(&word.to_le_bytes());
    }

    fn pad(&mut self, len: u64, to: u64) {
        let missing = len.wrapping_neg() % to;
        self.bytes(
            [0; 8]
                .get(..usize::try_from(missing).unwrap_or(0))
                .unwrap_or_default(),
        );
    }

    /// An element of bytes that are known.
    fn element(&mut self, kind: u32, data: &[u8]) -> Result<()> {
        let end = self.tag(kind, data.len() as u64)?;
        self.bytes(data);
        self.pad(data.len() as u64, end);
        Ok(())
    }

    /// The tag of an element; its data is padded to what is given back.
    fn tag(&mut self, kind: u32, len: u64) -> Result<u64> {
        let len = u32::try_from(len).map_err(|_| too_large(len))?;
        if (1..=4).contains(&len) {
            self.word(len << 16 | kind);
            return Ok(4);
        }
        self.word(kind);
        self.word(len);
        Ok(ALIGN)
    }

    /// An element of a tensor's data.
    fn data(&mut self, kind: u32, index: usize, part: usize, want: Want, len: u64) -> Result<()> {
        let end = self.tag(kind, len)?;
        if len > 0 {
            self.len = self.len.saturating_add(len);
            self.list.push(Piece::Data {
                index,
                part,
                want,
                len,
            });
        }
        self.pad(len, end);
        Ok(())
    }

    /// All of another element behind its tag.
    fn matrix(&mut self, inner: Pieces) -> Result<()> {
        self.word(MATRIX);
        self.word(u32::try_from(inner.len).map_err(|_| too_large(inner.len))?);
        for piece in inner.list {
            match piece {
                Piece::Bytes(bytes) => self.bytes(&bytes),
                data @ Piece::Data { len, .. } => {
                    self.len = self.len.saturating_add(len);
                    self.list.push(data);
                }
            }
        }
        Ok(())
    }
}

fn too_large(len: u64) -> Error {
    let message = format!("a variable of {len} bytes, level 5 has less than 4 GiB for each");
    Error::unsupported("mat.write", message)
}

pub(super) fn plan(what: &Manifest, options: &PlanOptions) -> Result<Plan> {
    let level = level(options)?;
    let tree = Tree::of(what);
    let mut header = TEXT.to_vec();
    header.resize(116, b' ');
    header.extend_from_slice(&[0; 8]);
    header.extend_from_slice(&0x0100u16.to_le_bytes());
    header.extend_from_slice(b"IM");
    debug_assert_eq!(header.len() as u64, level5::HEADER);
    let mut segments = vec![Segment::Bytes(header)];
    // Data of tensors that was written before, counted: what comes late finds its own by it.
    let mut written = 0;
    for (name, node) in &tree.variables {
        let matrix = matrix(what, node, name).map_err(|error| error.in_tensor(name))?;
        let mut element = Pieces::default();
        element
            .matrix(matrix)
            .map_err(|error| error.in_tensor(name))?;
        match level_of(what, &element, level, options) {
            Some(level) => zlib::segments(element, level, &mut written, &mut segments),
            None => {
                for piece in element.list {
                    segments.push(match piece {
                        Piece::Bytes(bytes) => Segment::Bytes(bytes),
                        Piece::Data {
                            index, part, want, ..
                        } => {
                            written += 1;
                            segment(index, part, want, None)
                        }
                    });
                }
            }
        }
    }
    Ok(Plan {
        files: vec![FilePlan::new(options.file_name.clone(), segments)],
    })
}

fn segment(index: usize, part: usize, want: Want, codec: Option<Codec>) -> Segment {
    use crate::model::{DigestKind, Over};
    Segment::Tensor {
        index,
        part,
        want,
        digest: codec.map(|_| (DigestKind::Adler32, Over::Decoded)),
        codec,
    }
}

/// What the option says: `None` when it is not given, 0 for not at all.
fn level(options: &PlanOptions) -> Result<Option<i32>> {
    options
        .number("deflate")?
        .map(|level| match i32::try_from(level) {
            Ok(level @ 0..=9) => Ok(level),
            _ => Err(options.wrong("deflate", "expected a level from 0 to 9")),
        })
        .transpose()
}

/// The level that a variable is compressed with, if it is.
fn level_of(
    what: &Manifest,
    variable: &Pieces,
    asked: Option<i32>,
    options: &PlanOptions,
) -> Option<i32> {
    let was_compressed = |tensor: &TensorInfo| {
        let keeps = (options.compression)(tensor) == Compression::Keep;
        keeps && tensor.parts.iter().any(|part| part.payload.is_compressed())
    };
    let mut tensors = variable.list.iter().filter_map(|piece| match piece {
        Piece::Data { index, .. } => what.tensors.get(*index),
        Piece::Bytes(_) => None,
    });
    let level = match asked {
        Some(level) => level,
        None if tensors.any(was_compressed) => DEFAULT_LEVEL,
        None => 0,
    };
    (level > 0).then_some(level)
}

/// Flags, dimensions and name.
fn head(flags: u32, nzmax: u64, dims: &[u64], name: &str) -> Result<Pieces> {
    let mut pieces = Pieces::default();
    let nzmax = u32::try_from(nzmax).map_err(|_| too_large(nzmax))?;
    let words = [flags.to_le_bytes(), nzmax.to_le_bytes()].concat();
    pieces.element(6, &words)?;
    let mut sides = Vec::new();
    for dim in dims {
        let side = i32::try_from(*dim).map_err(|_| too_large(*dim))?;
        sides.extend_from_slice(&side.to_le_bytes());
    }
    pieces.element(5, &sides)?;
    pieces.element(1, name.as_bytes())?;
    Ok(pieces)
}

/// Everything behind the tag of a variable, a field or an entry; these two have no name there.
fn matrix(what: &Manifest, node: &Node<'_>, name: &str) -> Result<Pieces> {
    match node {
        Node::Tensor(index) => match what.tensors.get(*index) {
            Some(tensor) => numbers(*index, tensor, name),
            None => Err(Error::argument("a tensor that is not there")),
        },
        Node::Text(value) => text(value, name),
        Node::Inner(children) => match children.last() {
            Some((last, _)) if limits::entry(last).is_some() => cell(what, children, name),
            _ => structure(what, children, name),
        },
    }
}

fn structure(what: &Manifest, children: &[(&str, Node<'_>)], name: &str) -> Result<Pieces> {
    let mut pieces = head(STRUCT, 0, &[1, 1], name)?;
    let len = u32::try_from(FIELD).unwrap_or(0);
    pieces.element(5, &len.to_le_bytes())?;
    let mut names = Vec::new();
    for (field, _) in children {
        let end = names.len() + FIELD;
        names.extend_from_slice(field.as_bytes());
        names.resize(end, 0);
    }
    pieces.element(1, &names)?;
    for (_, child) in children {
        pieces.matrix(matrix(what, child, "")?)?;
    }
    Ok(pieces)
}

/// A row of entries. Those that nothing is known of are empty cells, which nobody lists.
fn cell(what: &Manifest, children: &[(&str, Node<'_>)], name: &str) -> Result<Pieces> {
    let last = children.last().and_then(|(last, _)| limits::entry(last));
    let count = last.unwrap_or(0) + 1;
    let mut pieces = head(CELL, 0, &[1, count], name)?;
    let mut next = 0;
    for (part, child) in children {
        let number = limits::entry(part).unwrap_or(next);
        for _ in next..number {
            pieces.matrix(head(CELL, 0, &[0, 0], "")?)?;
        }
        pieces.matrix(matrix(what, child, "")?)?;
        next = number + 1;
    }
    Ok(pieces)
}

/// Rows of text, column by column.
fn text(value: &Value, name: &str) -> Result<Pieces> {
    let units = |text: &str| text.encode_utf16().collect::<Vec<u16>>();
    let rows: Vec<Vec<u16>> = match value {
        Value::Str(text) => vec![units(text)],
        Value::List(list) => {
            let texts = list.iter();
            let texts = texts.map(|row| row.as_str().map(units).unwrap_or_default());
            texts.collect()
        }
        _ => Vec::new(),
    };
    let columns = rows.first().map_or(0, Vec::len);
    let count = if columns == 0 { 0 } else { rows.len() };
    let mut pieces = head(CHAR, 0, &[count as u64, columns as u64], name)?;
    let mut bytes = Vec::new();
    for column in 0..columns {
        for row in &rows {
            let unit = row.get(column).copied().unwrap_or(u16::from(b' '));
            bytes.extend_from_slice(&unit.to_le_bytes());
        }
    }
    // 4 and not UTF-16, as MATLAB and SciPy do.
    let kind = if bytes.is_empty() { UTF16 } else { 4 };
    pieces.element(kind, &bytes)?;
    Ok(pieces)
}

fn numbers(index: usize, tensor: &TensorInfo, name: &str) -> Result<Pieces> {
    let refuse = || {
        let message = format!("{} cannot be written", tensor.dtype);
        Error::unsupported("mat.write", message).in_tensor(&tensor.name)
    };
    let DType::Number(scalar, lanes) = tensor.dtype else {
        return Err(refuse());
    };
    let (class, kind) = types::written(scalar).ok_or_else(refuse)?;
    let is_bool = tensor.dtype == DType::BOOL;
    let flags =
        if is_bool { LOGICAL } else { 0 } | if lanes == Lanes::Complex { COMPLEX } else { 0 };
    let each = |want: Want| -> Vec<Want> {
        match lanes {
            Lanes::Complex => (0..2)
                .map(|number| Want::Lane {
                    number,
                    of: Box::new(want.clone()),
                })
                .collect(),
            _ => vec![want],
        }
    };
    let width = DType::Number(scalar, Lanes::Real).width().unwrap_or(0) as u64;
    let Layout::Csc { nnz } = tensor.layout else {
        let form = Form::new(tensor.dtype, Order::ColumnMajor, Endian::Little);
        let mut pieces = head(class | flags, 0, &tensor.shape, name)?;
        let elements = tensor.elements().unwrap_or(u64::MAX);
        for want in each(Want::Dense(form)) {
            pieces.data(kind, index, 0, want, elements.saturating_mul(width))?;
        }
        return Ok(pieces);
    };
    let mut pieces = head(SPARSE | flags, nnz.max(1), &tensor.shape, name)?;
    let place = |role: Role| tensor.parts.iter().position(|part| part.role == role);
    let parts = (
        place(Role::Indices),
        place(Role::Indptr),
        place(Role::Values),
    );
    let (Some(rows), Some(starts), Some(values)) = parts else {
        return Err(Error::unsupported(
            "mat.write",
            "a sparse matrix without its parts",
        ));
    };
    let part = |dtype| Want::Part {
        dtype,
        endian: Endian::Little,
    };
    let columns = tensor.shape.get(1).copied().unwrap_or(0);
    pieces.data(5, index, rows, part(DType::I32), nnz.saturating_mul(4))?;
    let starts_len = columns.saturating_add(1).saturating_mul(4);
    pieces.data(5, index, starts, part(DType::I32), starts_len)?;
    for want in each(part(tensor.dtype)) {
        pieces.data(kind, index, values, want, nnz.saturating_mul(width))?;
    }
    Ok(pieces)
}
