//! Level 5: a header, then elements one behind the other, plain or compressed.

use super::SPEC;
use super::found::{self, Found};
use super::stream::{Stream, TRUNCATED, Tag};
use super::text;
use super::types::{self, COMPRESSED, Class, MATRIX};
use crate::error::{Error, Result};
use crate::format::Context;
use crate::model::{DType, Endian, Lanes, Layout, Role, Scalar, Shape, TensorInfo, element_count};
use crate::prelude::*;

/// Bytes of the header.
pub(super) const HEADER: u64 = 128;
/// Cells and structures within each other, at most.
const MOST_DEPTH: usize = 64;
/// Bits of the second byte of the array flags.
const COMPLEX: u32 = 0x800;
const LOGICAL: u32 = 0x200;
/// Bytes of an element, at least.
const LEAST: u64 = 8;

/// What is wrong: with the file, or with one tensor alone.
enum Fault {
    File(Error),
    Tensor(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::File(error)
    }
}

/// Reads all variables behind the header.
pub(super) fn describe(cx: &mut Context<'_>, endian: Endian, found: &mut Found<'_>) -> Result<()> {
    let len = cx.source().len();
    let mut at = HEADER;
    found.read = HEADER;
    while at < len {
        at = Walk { cx, found }.variable(at, len, endian)?;
    }
    Ok(())
}

struct Walk<'w, 'a, 'f> {
    cx: &'w mut Context<'a>,
    found: &'w mut Found<'f>,
}

/// A matrix up to its data.
struct Matrix {
    class: Class,
    flags: u32,
    shape: Shape,
    name: String,
    /// Where it ends, and where its tag is.
    end: u64,
    at: u64,
}

impl Matrix {
    fn is_complex(&self) -> bool {
        self.flags & COMPLEX != 0
    }

    fn is_logical(&self) -> bool {
        self.flags & LOGICAL != 0
    }

    fn elements(&self) -> u64 {
        element_count(&self.shape).unwrap_or(u64::MAX)
    }
}

impl<'a> Walk<'_, 'a, '_> {
    /// An element of the file; says where the next one begins.
    fn variable(&mut self, at: u64, len: u64, endian: Endian) -> Result<u64> {
        let source = self.cx.source();
        let mut stream = Stream::file(source, at..len, endian);
        let tag = stream.tag(len, "a variable")?;
        match tag.kind {
            MATRIX => {
                let place = at..tag.data.end;
                self.matrix(&mut stream, &tag, None, &place)?;
                self.follow(&mut stream, &tag, len)
            }
            COMPRESSED => {
                let place = at..tag.data.end;
                self.found.read = self.found.read.saturating_add(tag.len());
                let mut inner = Stream::zlib(source, tag.data.clone(), endian);
                let only = inner.tag(u64::MAX, "a compressed variable")?;
                if only.kind != MATRIX {
                    let message = format!(
                        "a compressed variable holds an element of type {}, a matrix (14) is expected",
                        only.kind
                    );
                    return Err(Error::malformed("mat.zlib", message).at(place));
                }
                if self.matrix(&mut inner, &only, None, &place)? {
                    inner.finish()?;
                }
                // What is compressed is not padded.
                Ok(tag.data.end)
            }
            other => {
                let message = format!("an element of type {other}, variables have 14 and 15");
                Err(Error::malformed("mat.element", message).at(at..at + LEAST))
            }
        }
    }

    /// Where the next variable begins: behind this one, or, as Octave counts one kind of text 4 bytes too long, where its
    /// elements end.
    fn follow(&mut self, stream: &mut Stream<'_>, tag: &Tag, len: u64) -> Result<u64> {
        let is_tag = |at: u64| -> bool {
            let mut next = Stream::file(self.cx.source(), at..len, stream.endian);
            at == len
                || next
                    .tag(len, "a variable")
                    .is_ok_and(|tag| matches!(tag.kind, MATRIX | COMPRESSED))
        };
        let ended = stream.pos();
        if ended.checked_add(4) == Some(tag.data.end) && !is_tag(tag.next) && is_tag(ended) {
            let message = "its length is 4 bytes too large, as Octave writes it for some text";
            self.cx.warn("mat.length", tag.at..tag.data.end, message)?;
            return Ok(ended);
        }
        Ok(tag.next)
    }

    /// A matrix behind its tag; `path` is its name where it is inside of another. False where its data was not passed over.
    fn matrix(
        &mut self,
        stream: &mut Stream<'a>,
        tag: &Tag,
        path: Option<(&str, usize)>,
        place: &Range<u64>,
    ) -> Result<bool> {
        let (name, depth) = path.unwrap_or(("", 0));
        if tag.len() == 0 && path.is_some() {
            let mut empty = TensorInfo::new(name, DType::F64, [0, 0], Layout::ColumnMajor);
            let part = stream.part(Role::Values, DType::F64, tag.data.clone(), false)?;
            empty.parts = part.into();
            self.found.read += LEAST;
            self.found.tensor(empty, place)?;
            return Ok(true);
        }
        let before = stream.pos();
        let matrix = self.head(stream, tag, path.map(|(path, _)| path), place)?;
        if !stream.is_compressed() {
            self.found.read += stream.pos().saturating_sub(before) + LEAST;
        }
        let Some(matrix) = matrix else {
            stream.skip_to(tag.data.end, "a variable that is skipped")?;
            return Ok(true);
        };
        match matrix.class {
            Class::Cell => self.cell(stream, &matrix, depth, place)?,
            Class::Struct => self.structure(stream, &matrix, depth, place)?,
            Class::Char => self.text(stream, &matrix, place)?,
            Class::Numbers(_) | Class::Sparse => {
                let is_last = path.is_none() && !matrix.is_complex();
                let read = match matrix.class {
                    Class::Sparse => sparse(stream, &matrix),
                    _ => numbers(stream, &matrix, is_last),
                };
                let (tensor, is_passed) = match read {
                    Ok(tensor) => (
                        tensor,
                        !stream.is_compressed() || !is_last || matrix.class == Class::Sparse,
                    ),
                    Err(Fault::File(error)) => return Err(error.in_tensor(&matrix.name)),
                    Err(Fault::Tensor(error)) => {
                        if path.is_some() {
                            stream.skip_to(matrix.end, "a variable")?;
                        }
                        (defective(stream, &matrix, error), false)
                    }
                };
                self.found.tensor(tensor, place)?;
                return Ok(is_passed);
            }
            Class::Object | Class::Function | Class::Opaque => {}
        }
        Ok(true)
    }

    /// Everything in front of the data; `None` for what is skipped.
    fn head(
        &mut self,
        stream: &mut Stream<'_>,
        tag: &Tag,
        path: Option<&str>,
        place: &Range<u64>,
    ) -> Result<Option<Matrix>> {
        let end = tag.data.end;
        let flags = stream.tag(end, "array flags")?;
        if flags.kind != 6 || flags.len() != 8 {
            let message = format!(
                "array flags of type {} and {} bytes, 6 and 8 are expected",
                flags.kind,
                flags.len()
            );
            return Err(
                Error::malformed("mat.flags", message).at(stream.place(flags.at..flags.next))
            );
        }
        let bytes = stream.data(&flags, "array flags")?;
        let flags = stream.number(bytes.get(..4).unwrap_or_default());
        let Some(class) = Class::from_number(flags & 0xff) else {
            let message = format!("class {}, 1 to 17 are known", flags & 0xff);
            return Err(
                Error::unsupported("mat.class", message).at(stream.place(tag.at..tag.at + 16))
            );
        };
        let shape = if class == Class::Opaque {
            Shape::new()
        } else {
            self.shape(stream, end)?
        };
        let name = self.name(stream, end)?;
        let name = match path {
            Some(path) => path.to_owned(),
            None => name,
        };
        // What MATLAB needs for functions and objects.
        if name.is_empty() && path.is_none() && class == Class::Numbers(Scalar::U8) {
            self.found.keep(SPEC.id, "function workspace", place)?;
            let message = "a variable without a name, which only MATLAB understands, is skipped";
            self.cx.note("mat.skipped", place.clone(), message);
            return Ok(None);
        }
        let what = match class {
            Class::Object => format!("an object of class {:?}", self.name(stream, end)?),
            Class::Function => "a function".to_owned(),
            Class::Opaque => {
                let _system = self.name(stream, end)?;
                format!("an object of class {:?}", self.name(stream, end)?)
            }
            _ => {
                return Ok(Some(Matrix {
                    class,
                    flags,
                    shape,
                    name,
                    end,
                    at: tag.at,
                }));
            }
        };
        self.found.keep(SPEC.id, &name, place)?;
        let message = format!(
            "variable {:?} is {what}, and no tensor",
            crate::model::brief(&name)
        );
        self.cx.note("mat.skipped", place.clone(), message);
        Ok(None)
    }

    fn shape(&self, stream: &mut Stream<'_>, end: u64) -> Result<Shape> {
        let tag = stream.tag(end, "dimensions")?;
        let at = stream.place(tag.at..tag.next);
        // A list as long as the limit has room for many.
        if !matches!(tag.kind, 5 | 6) || !tag.len().is_multiple_of(4) || tag.len() > 1 << 20 {
            let message = format!(
                "dimensions of type {} in {} bytes, 5 and a multiple of 4 are expected",
                tag.kind,
                tag.len()
            );
            return Err(Error::malformed("mat.dimensions", message).at(at));
        }
        let bytes = stream.data(&tag, "dimensions")?;
        stream.skip_to(tag.next, "dimensions")?;
        let mut dims = Vec::new();
        for dim in bytes.chunks(4) {
            let dim = stream.number(dim);
            if i32::try_from(dim).is_err() {
                let message = format!("a dimension of {}", dim.cast_signed());
                return Err(Error::malformed("mat.dimensions", message).at(at));
            }
            dims.push(u64::from(dim));
        }
        found::shape(&dims, self.found.limits, &at)
    }

    /// A name: of a variable, or of a class.
    fn name(&mut self, stream: &mut Stream<'_>, end: u64) -> Result<String> {
        let tag = stream.tag(end, "a name")?;
        let at = stream.place(tag.at..tag.next);
        let refuse = |message: &str| {
            let error = Error::malformed("mat.name", message.to_owned());
            Err(error.at(at.clone()))
        };
        if !matches!(tag.kind, 1 | 2 | types::UTF8) {
            return refuse(&format!("a name has the data type {}", tag.kind));
        }
        self.found.make(tag.len(), &at)?;
        let bytes = stream.data(&tag, "a name")?;
        stream.skip_to(tag.next, "a name")?;
        match core::str::from_utf8(&bytes) {
            Ok(name) if name.contains('\0') => refuse("a name has a zero byte"),
            Ok(name) => Ok(name.to_owned()),
            Err(_) => refuse("a name is not UTF-8"),
        }
    }

    /// Goes into a matrix that is an entry of another.
    fn inner(
        &mut self,
        stream: &mut Stream<'a>,
        outer: &Matrix,
        path: &str,
        depth: usize,
        place: &Range<u64>,
    ) -> Result<()> {
        let limit = MOST_DEPTH.min(self.found.limits.depth);
        if depth >= limit {
            let message = format!("more than {limit} cells and structures within each other");
            let mut error = Error::limit("mat.depth", message).at(place.clone());
            if limit < MOST_DEPTH {
                error = error.raised_by("depth", None);
            }
            return Err(error);
        }
        let tag = stream.tag(outer.end, "an entry")?;
        if tag.kind != MATRIX {
            let message = format!("an entry of type {}, a matrix (14) is expected", tag.kind);
            let error = Error::malformed("mat.element", message);
            return Err(error.at(stream.place(tag.at..tag.next)).in_tensor(path));
        }
        self.matrix(stream, &tag, Some((path, depth + 1)), place)?;
        stream.skip_to(tag.next, "an entry")
    }

    /// Refuses more entries than there is room for.
    fn check_room(stream: &Stream<'_>, matrix: &Matrix, entries: Option<u64>) -> Result<u64> {
        let room = matrix.end.saturating_sub(stream.pos()) / LEAST;
        match entries {
            Some(entries) if entries <= room => Ok(entries),
            _ => {
                let message = format!("{:?} entries, there is room for {room}", &*matrix.shape);
                let error = Error::malformed(TRUNCATED, message).in_tensor(&matrix.name);
                Err(error.at(stream.place(matrix.at..matrix.end)))
            }
        }
    }

    fn cell(
        &mut self,
        stream: &mut Stream<'a>,
        matrix: &Matrix,
        depth: usize,
        place: &Range<u64>,
    ) -> Result<()> {
        for n in 0..Self::check_room(stream, matrix, Some(matrix.elements()))? {
            let path = format!("{}.{n}", matrix.name);
            self.inner(stream, matrix, &path, depth, place)?;
        }
        Ok(())
    }

    fn structure(
        &mut self,
        stream: &mut Stream<'a>,
        matrix: &Matrix,
        depth: usize,
        place: &Range<u64>,
    ) -> Result<()> {
        let fields = self.fields(stream, matrix)?;
        let count = matrix.elements();
        Self::check_room(stream, matrix, count.checked_mul(fields.len() as u64))?;
        if fields.is_empty() {
            return Ok(());
        }
        for n in 0..count {
            for field in &fields {
                let path = if count == 1 {
                    format!("{}.{field}", matrix.name)
                } else {
                    format!("{}.{n}.{field}", matrix.name)
                };
                self.inner(stream, matrix, &path, depth, place)?;
            }
        }
        Ok(())
    }

    /// The names of fields: as many bytes each, filled up with zeros.
    fn fields(&mut self, stream: &mut Stream<'_>, matrix: &Matrix) -> Result<Vec<String>> {
        let end = matrix.end;
        let tag = stream.tag(end, "the length of field names")?;
        let len = stream.data(&tag, "the length of field names")?;
        let len = u64::from(stream.number(&len));
        stream.skip_to(tag.next, "the length of field names")?;
        let names = stream.tag(end, "field names")?;
        let at = stream.place(tag.at..names.next);
        let is_length = tag.kind == 5 && tag.len() == 4 && (1..=1 << 16).contains(&len);
        // Without any field, there is no length to divide by.
        let is_none = tag.kind == 5 && names.len() == 0;
        if !(is_none || is_length && names.len().is_multiple_of(len))
            || !matches!(names.kind, 1 | 2)
        {
            let message = format!("field names of {len} bytes each, in {} bytes", names.len());
            return Err(Error::malformed("mat.fields", message).at(at));
        }
        self.found.make(names.len().saturating_mul(2), &at)?;
        let bytes = stream.data(&names, "field names")?;
        stream.skip_to(names.next, "field names")?;
        let mut fields = Vec::new();
        for name in bytes.chunks(usize::try_from(len).unwrap_or(1).max(1)) {
            let len = name.iter().position(|byte| *byte == 0);
            let name = name.get(..len.unwrap_or(name.len())).unwrap_or_default();
            let name = core::str::from_utf8(name).map_err(|cause| {
                let error = Error::malformed("mat.name", "a field name is not UTF-8");
                error.at(at.clone()).because(cause)
            })?;
            push_tight(&mut fields, name.to_owned());
        }
        Ok(fields)
    }

    fn text(&mut self, stream: &mut Stream<'_>, matrix: &Matrix, place: &Range<u64>) -> Result<()> {
        let tag = stream.tag(matrix.end, "text")?;
        let at = stream.place(tag.at..tag.next);
        let limit = self.found.limits.header_bytes;
        if tag.len() > limit {
            let message = format!("text of {} bytes, the limit is {limit}", tag.len());
            let error = Error::limit("mat.limit", message).raised_by("header_bytes", tag.len());
            return Err(error.at(at).in_tensor(&matrix.name));
        }
        if !stream.is_compressed() {
            self.found.read = self.found.read.saturating_add(tag.len());
        }
        // A character for each byte is the most that is made.
        self.found.make(tag.len().saturating_mul(4), &at)?;
        let bytes = stream.data(&tag, "text")?;
        stream.skip_to(tag.next, "text")?;
        let rows = matrix.shape.first().copied().unwrap_or(0);
        let columns = matrix.shape.get(1..).and_then(element_count);
        let size = (rows, columns.unwrap_or(0));
        // Each row is a value.
        self.found
            .make(rows.min(tag.len()).saturating_mul(64), &at)?;
        match text::decode(tag.kind, stream.endian, &bytes, size) {
            Some(text) => self.found.text(&matrix.name, text, place),
            None => {
                let message = format!(
                    "{} bytes of data type {} are no text of {:?} characters",
                    tag.len(),
                    tag.kind,
                    &*matrix.shape
                );
                let error = Error::malformed("mat.text", message).at(at);
                Err(error.in_tensor(&matrix.name))
            }
        }
    }
}

/// A variable of numbers.
fn numbers(stream: &mut Stream<'_>, matrix: &Matrix, is_last: bool) -> Result<TensorInfo, Fault> {
    let Class::Numbers(class) = matrix.class else {
        return Err(Fault::File(Error::argument("no numbers")));
    };
    let scalar = if matrix.is_logical() {
        Scalar::Bool
    } else {
        class
    };
    check_complex(stream, matrix, scalar)?;
    let elements = matrix.elements();
    let mut planes = vec![plane(stream, matrix, "the data", elements, is_last)?];
    if matrix.is_complex() {
        planes.push(plane(
            stream,
            matrix,
            "the imaginary part",
            elements,
            false,
        )?);
    }
    let part = found::values(scalar, elements, planes);
    let layout = found::dense(&matrix.shape);
    let mut tensor = TensorInfo::new(&*matrix.name, part.dtype, matrix.shape.clone(), layout);
    tensor.parts = part.into();
    Ok(tensor)
}

/// Complex numbers are of the two floating-point classes.
fn check_complex(stream: &Stream<'_>, matrix: &Matrix, scalar: Scalar) -> Result<(), Fault> {
    if matrix.is_complex() && !scalar.is_float() {
        let message = format!("complex numbers of {}, which no type has", scalar.name());
        let error = Error::unsupported("mat.complex", message);
        return Err(Fault::Tensor(error.at(stream.place(matrix.at..matrix.end))));
    }
    Ok(())
}

/// An element with as many numbers; passes over it unless it is the last thing in a compressed variable.
fn plane(
    stream: &mut Stream<'_>,
    matrix: &Matrix,
    field: &'static str,
    elements: u64,
    is_last: bool,
) -> Result<crate::model::Part, Fault> {
    if matrix.end.saturating_sub(stream.pos()) < LEAST {
        let message = format!("{field} is missing");
        let error = Error::malformed(TRUNCATED, message);
        return Err(Fault::Tensor(error.at(stream.place(matrix.at..matrix.end))));
    }
    let tag = stream.tag(matrix.end, field)?;
    let stored = stream.stored(&tag, field).map_err(Fault::Tensor)?;
    let dtype = DType::Number(stored, Lanes::Real);
    if dtype.bytes_for(elements) != Some(tag.len()) {
        let message = format!(
            "{field} has {} bytes, {elements} numbers of {dtype} are expected",
            tag.len()
        );
        let error = Error::malformed("mat.size", message);
        return Err(Fault::Tensor(error.at(stream.place(tag.at..tag.next))));
    }
    let part = stream.part(Role::Values, dtype, tag.data, is_last)?;
    if !(is_last && stream.is_compressed()) {
        stream.skip_to(tag.next, field)?;
    }
    Ok(part)
}

/// A sparse matrix: rows of the entries, where columns begin among them, and their values.
fn sparse(stream: &mut Stream<'_>, matrix: &Matrix) -> Result<TensorInfo, Fault> {
    let place = stream.place(matrix.at..matrix.end);
    let wrong = |message: String| {
        let error = Error::malformed("mat.sparse", message);
        Fault::Tensor(error.at(place.clone()))
    };
    let &[_, columns] = &*matrix.shape else {
        return Err(wrong(format!(
            "a sparse matrix of {} dimensions",
            matrix.shape.len()
        )));
    };
    let integers = |stream: &mut Stream<'_>, field| -> Result<Tag, Fault> {
        let tag = stream.tag(matrix.end, field)?;
        if !matches!(tag.kind, 5 | 6) || !tag.len().is_multiple_of(4) {
            let message = format!("{field} are {} bytes of data type {}", tag.len(), tag.kind);
            return Err(wrong(message));
        }
        Ok(tag)
    };
    let dtype = |tag: &Tag| {
        if tag.kind == 5 {
            DType::I32
        } else {
            DType::U32
        }
    };
    // What is passed over cannot be returned to: the rows are a part before it is known how many there are.
    let rows = integers(stream, "row indices")?;
    let all_rows = stream.part(Role::Indices, dtype(&rows), rows.data.clone(), false)?;
    stream.skip_to(rows.next, "row indices")?;
    let starts = integers(stream, "column starts")?;
    if columns
        .checked_add(1)
        .and_then(|count| count.checked_mul(4))
        != Some(starts.len())
    {
        let message = format!(
            "{} bytes of column starts for {columns} columns",
            starts.len()
        );
        return Err(wrong(message));
    }
    let indptr = stream.part(Role::Indptr, dtype(&starts), starts.data.clone(), false)?;
    let nnz = match &indptr.payload {
        crate::model::Payload::Inline(bytes) => {
            let last = bytes.len().saturating_sub(4);
            bytes.slice(last..)
        }
        _ => {
            stream.skip_to(starts.data.end.saturating_sub(4), "column starts")?;
            stream.take(4, "column starts")?
        }
    };
    let nnz = u64::from(stream.number(&nnz));
    stream.skip_to(starts.next, "column starts")?;
    if nnz > rows.len() / 4 {
        let message = format!("{nnz} entries, rows are stored of {}", rows.len() / 4);
        return Err(wrong(message));
    }
    let is_bool = matrix.is_logical();
    let scalar = if is_bool { Scalar::Bool } else { Scalar::F64 };
    check_complex(stream, matrix, scalar)?;
    let mut planes = Vec::new();
    for field in ["values", "imaginary values"]
        .iter()
        .take(1 + usize::from(matrix.is_complex()))
    {
        planes.push(entries(
            stream,
            matrix,
            field,
            nnz,
            rows.len() / 4,
            is_bool,
        )?);
    }
    let values = found::values(scalar, nnz, planes);
    let layout = Layout::Csc { nnz };
    let mut tensor = TensorInfo::new(&*matrix.name, values.dtype, matrix.shape.clone(), layout);
    let indices = shorten(all_rows, nnz);
    tensor.parts = vec![values, indices, indptr].into();
    Ok(tensor)
}

/// The values of a sparse matrix, of which the first `nnz` count.
fn entries(
    stream: &mut Stream<'_>,
    matrix: &Matrix,
    field: &'static str,
    nnz: u64,
    stored_entries: u64,
    is_bool: bool,
) -> Result<crate::model::Part, Fault> {
    let tag = stream.tag(matrix.end, field)?;
    let mut stored = stream.stored(&tag, field).map_err(Fault::Tensor)?;
    // MATLAB says double of values that are a byte each.
    let is_bytes = tag.len() == stored_entries || tag.len() == nnz;
    if is_bool && stored == Scalar::F64 && is_bytes {
        stored = Scalar::U8;
    }
    let dtype = DType::Number(stored, Lanes::Real);
    let Some(len) = dtype.bytes_for(nnz).filter(|len| *len <= tag.len()) else {
        let message = format!(
            "{field} of {} bytes, {nnz} of {dtype} are expected",
            tag.len()
        );
        let error = Error::malformed("mat.sparse", message);
        return Err(Fault::Tensor(error.at(stream.place(tag.at..tag.next))));
    };
    let part = stream.part(
        Role::Values,
        dtype,
        tag.data.start..tag.data.start + len,
        false,
    )?;
    stream.skip_to(tag.next, field)?;
    Ok(part)
}

/// The first integers of a part.
fn shorten(mut part: crate::model::Part, count: u64) -> crate::model::Part {
    use crate::model::Payload;
    let len = count * 4;
    match &mut part.payload {
        Payload::Raw { range, .. } => range.end = range.start + len,
        Payload::Encoded { len: all, .. } => *all = len,
        Payload::Inline(bytes) => bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX)),
        _ => {}
    }
    part
}

/// A tensor that cannot be read.
fn defective(stream: &Stream<'_>, matrix: &Matrix, error: Error) -> TensorInfo {
    let dtype = match matrix.class {
        _ if matrix.is_logical() => DType::BOOL,
        Class::Numbers(scalar) if !matrix.is_complex() => DType::Number(scalar, Lanes::Real),
        _ => DType::UNKNOWN,
    };
    let layout = found::dense(&matrix.shape);
    let mut tensor = TensorInfo::new(&*matrix.name, dtype, matrix.shape.clone(), layout);
    let error = match error.range() {
        Some(_) => error,
        None => error.at(stream.place(matrix.at..matrix.end)),
    };
    tensor.defect = Some(error.in_tensor(&matrix.name));
    tensor
}
