//! How a stored tensor gets into the wanted form.

use super::{Body, View};
use crate::error::{Error, Result};
use crate::model::{
    DType, Endian, Form, Lanes, Layout, Order, Part, Payload, Role, Scalar, Selection, Symmetry,
    TensorInfo, Want,
};
use crate::prelude::*;
use crate::transform::elements::ElementMap;
use crate::transform::input::{Data, Input};
use crate::transform::lane::Lane;
use crate::transform::layouts::{self, Opening, Whole};
use crate::transform::stretch::Stretch;
use crate::transform::symmetric::{Pack, Triangle};
use crate::transform::tiled::{self, Tiled};
use crate::transform::{codec, overflow, too_expanded};

impl<'a> View<'a> {
    /// What [`Want`] asks for.
    pub(crate) fn new(
        data: Data<'a>,
        tensor: &TensorInfo,
        part: usize,
        want: &Want,
    ) -> Result<Self> {
        let view = || match want {
            Want::Dense(form) => Self::dense(data, tensor, form),
            Want::Packed { symmetry, endian } => Self::packed(data, tensor, symmetry, *endian),
            Want::Part { dtype, endian } => {
                let part = nth_part(tensor, part)?;
                match part.role {
                    Role::Values => Self::values(data, part, *dtype, *endian),
                    _ => Self::part(data, part, *dtype, *endian),
                }
            }
            Want::Lane { number, of } => Self::lane(data, tensor, part, *number, of),
            Want::Stretch { elements, of } => Self::stretch(data, tensor, part, elements, of),
            Want::Stored => Self::stored(data, nth_part(tensor, part)?),
        };
        tensor.readable()?;
        view().map_err(|error| error.in_tensor(&tensor.name))
    }

    /// The whole tensor, dense.
    pub(crate) fn dense(data: Data<'a>, tensor: &TensorInfo, form: &Form) -> Result<Self> {
        let elements = tensor.elements();
        let elements = elements.ok_or_else(|| overflow("the number of elements"))?;
        let len = form.dtype.bytes_for(elements).ok_or_else(|| {
            let message = format!("{} has no dense form", tensor.layout.name());
            Error::unsupported("dense", message)
        })?;
        let layout = layouts::of(&tensor.layout);
        let limit = layout.limit(tensor, data.limits);
        if len > limit && layout.expands(tensor) {
            return Err(too_expanded(len, limit));
        }
        let made = match layout.whole(&Opening { data, tensor }, form.order)? {
            Whole::Part(part) => {
                let view = Self::values(data, &part, form.dtype, form.endian)?;
                let numbers = numbers(part.dtype, elements)?;
                return Ok(Self {
                    len,
                    numbers,
                    ..view
                });
            }
            Whole::Made(body, dtype, endian) => {
                let map = ElementMap::new(dtype, endian, form.dtype, form.endian)?;
                Self::made(data, body, dtype, map, elements)?
            }
        };
        // Rows end anywhere, where several elements may make a byte.
        if made.exchanges_rows() && !made.map.has_whole_bytes() {
            return made.ordered_first(data.limits.tensor_memory);
        }
        Ok(made)
    }

    /// Some of the elements, row-major, as little-endian elements of `dtype`.
    pub(crate) fn selected(
        data: Data<'a>,
        tensor: &TensorInfo,
        dtype: DType,
        selection: Selection,
    ) -> Result<Self> {
        if selection.is_whole() {
            return Self::dense(data, tensor, &Form::canonical(dtype));
        }
        let stored = tensor.stored_dtype();
        let (DType::Number(..), DType::Number(..)) = (stored, dtype) else {
            let message = format!("{dtype} has no elements that can be read alone");
            return Err(Error::unsupported("slice", message));
        };
        let elements = selection.elements();
        let elements = elements.ok_or_else(|| overflow("the number of elements"))?;
        let layout = layouts::of(&tensor.layout);
        let selected = layout.some(&Opening { data, tensor }, selection)?;
        let map = ElementMap::new(stored, selected.endian(), dtype, Endian::Little)?;
        Self::made(
            data,
            Body::Selected(Box::new(selected)),
            stored,
            map,
            elements,
        )
    }

    /// Elements that a body gives as those of a type.
    fn made(
        data: Data<'a>,
        body: Body<'a>,
        stored: DType,
        map: ElementMap,
        elements: u64,
    ) -> Result<Self> {
        let too_large = || overflow("the size of a tensor");
        let stored_len = stored.bytes_for(elements).ok_or_else(too_large)?;
        Ok(Self {
            len: map.output_len(stored_len)?,
            numbers: numbers(stored, elements)?,
            map,
            ..Self::plain(data, body, stored_len)
        })
    }

    /// The whole tensor, packed by a symmetry that it has.
    fn packed(
        data: Data<'a>,
        tensor: &TensorInfo,
        symmetry: &Symmetry,
        endian: Endian,
    ) -> Result<Self> {
        if let (Layout::Packed(by), [part]) = (&tensor.layout, tensor.parts.as_slice())
            && **by == *symmetry
            && tensor.casts_as_stored()
        {
            return Self::values(data, part, tensor.dtype, endian);
        }
        // Packed as they are stored where elements have bytes of their own, so that only those which are kept are cast.
        let stored = match tensor.stored_dtype() {
            dtype if dtype.width().is_some() => dtype,
            _ => tensor.dtype,
        };
        let form = Form {
            dtype: stored,
            order: Order::ColumnMajor,
            endian,
        };
        let mut dense = Self::dense(data, tensor, &form)?;
        if !dense.is_random() || stored != tensor.stored_dtype() {
            // It cannot be entered in the middle, or would be cast again with every stretch: held whole.
            let whole = dense.collect(data.limits.tensor_memory)?;
            dense = Self::plain(data, Body::Direct(Input::Memory(whole.into())), dense.len);
        }
        let width = stored
            .width()
            .ok_or_else(|| Error::unsupported("packed", format!("packed {stored}")))?;
        let pack = Pack::new(dense, &tensor.shape, symmetry, width)?;
        let len = pack.len();
        let map = ElementMap::new(stored, endian, tensor.dtype, endian)?;
        Ok(Self {
            len: map.output_len(len)?,
            numbers: map.numbers_in(len),
            map,
            ..Self::plain(data, Body::Pack(pack), len)
        })
    }

    /// Bytes of what [`Want`] asks for, without opening anything.
    pub(crate) fn wanted_len(tensor: &TensorInfo, part: usize, want: &Want) -> Result<u64> {
        let too_large = || Error::argument("the size does not fit 64 bits");
        let len = || match want {
            Want::Dense(form) => {
                let elements = tensor.elements().ok_or_else(too_large)?;
                form.dtype.bytes_for(elements).ok_or_else(too_large)
            }
            Want::Packed { symmetry, .. } => {
                let stored = Triangle::new(&tensor.shape, symmetry)?.stored();
                tensor.dtype.bytes_for(stored).ok_or_else(too_large)
            }
            Want::Part { dtype, .. } => {
                let part = nth_part(tensor, part)?;
                let map = ElementMap::new(part.dtype, Endian::Little, *dtype, Endian::Little)?;
                map.output_len(part.payload.len())
            }
            Want::Lane { of, .. } => {
                let lanes = lanes(of)?.1.count();
                Ok(Self::wanted_len(tensor, part, of)? / u64::from(lanes))
            }
            Want::Stretch { elements, of } => {
                let count = elements.end.saturating_sub(elements.start);
                wanted_dtype(of)?.bytes_for(count).ok_or_else(too_large)
            }
            Want::Stored => {
                let payload = &nth_part(tensor, part)?.payload;
                let stored = payload.stored();
                Ok(stored.map_or(payload.len(), |(_, range)| range.end - range.start))
            }
        };
        len().map_err(|error| error.in_tensor(&tensor.name))
    }

    /// One number of every element of what `of` asks for.
    fn lane(
        data: Data<'a>,
        tensor: &TensorInfo,
        part: usize,
        number: u32,
        of: &Want,
    ) -> Result<Self> {
        let (scalar, lanes) = lanes(of)?;
        let width = DType::Number(scalar, Lanes::Real).width();
        let Some(width) = width.filter(|_| number < lanes.count()) else {
            let message = format!("number {number} of {}", DType::Number(scalar, lanes));
            return Err(Error::argument(message));
        };
        let elements = Self::random(data, tensor, part, of)?;
        let count = u64::from(lanes.count());
        let len = elements.len() / count;
        let lane = Lane::new(elements, width as u64, count, number.into());
        Ok(Self::plain(data, Body::Lane(Box::new(lane)), len))
    }

    /// Some elements of what `of` asks for, one after the other.
    fn stretch(
        data: Data<'a>,
        tensor: &TensorInfo,
        part: usize,
        elements: &Range<u64>,
        of: &Want,
    ) -> Result<Self> {
        let dtype = wanted_dtype(of)?;
        let places = dtype
            .bytes_for(elements.start)
            .zip(dtype.bytes_for(elements.end));
        let view = Self::random(data, tensor, part, of)?;
        match places {
            Some((start, end)) if start <= end && end <= view.len() => {
                let stretch = Stretch::new(view, start);
                let body = Body::Stretch(Box::new(stretch));
                Ok(Self::plain(data, body, end - start))
            }
            _ => {
                let message = format!("there are no elements {elements:?}");
                Err(Error::argument(message))
            }
        }
    }

    /// What can be entered anywhere; held in memory where it is a stream.
    fn random(data: Data<'a>, tensor: &TensorInfo, part: usize, of: &Want) -> Result<Self> {
        let view = Self::new(data, tensor, part, of)?;
        if view.is_random() {
            return Ok(view);
        }
        let whole = view.collect(data.limits.tensor_memory)?;
        let len = whole.len() as u64;
        let body = Body::Direct(Input::Memory(whole.into()));
        Ok(Self::plain(data, body, len))
    }

    /// The whole tensor in chunks of these sides, one after the other, the last dimension of the grid running fastest, as
    /// little-endian elements. Those at the edges are padded with zeros.
    pub(crate) fn tiled(
        data: Data<'a>,
        tensor: &TensorInfo,
        dtype: DType,
        sides: &[u64],
        numbers: Option<&Range<u64>>,
    ) -> Result<Self> {
        tensor.readable()?;
        let len = Self::chunks_len(tensor, dtype, sides, numbers)?;
        let first = numbers.map_or(0, |numbers| numbers.start);
        let tiled = Tiled::new(data, tensor, dtype, sides, first)?;
        Ok(Self::plain(data, Body::Tiled(Box::new(tiled)), len))
    }

    /// Bytes of a tensor in chunks of these sides, or of some of these, all of them whole.
    pub(crate) fn chunks_len(
        tensor: &TensorInfo,
        dtype: DType,
        sides: &[u64],
        numbers: Option<&Range<u64>>,
    ) -> Result<u64> {
        let all = tiled::count(&tensor.shape, sides);
        let count = match numbers {
            Some(numbers) if all.is_some_and(|all| numbers.end <= all) => {
                numbers.end.checked_sub(numbers.start)
            }
            Some(_) => return Err(Error::argument("chunks after the last one")),
            None => all,
        };
        let elements = sides.iter().copied().try_fold(1, u64::checked_mul);
        let len = elements.and_then(|elements| dtype.bytes_for(elements)?.checked_mul(count?));
        len.ok_or_else(|| Error::argument("the size of the chunks does not fit 64 bits"))
    }

    /// Whether it costs nothing to make the view, so that everybody who works on it can make one.
    pub(crate) fn is_light(data: Data<'_>, tensor: &TensorInfo, want: &Want) -> bool {
        if let Want::Lane { of, .. } | Want::Stretch { of, .. } = want {
            return Self::is_light(data, tensor, of);
        }
        // What needs several elements for a byte, and them in another order, is put in order in memory first.
        let is_ordered_first = matches!(want, Want::Dense(form) if form.dtype.width().is_none()
            && (form.order == Order::ColumnMajor || tensor.layout.order() == Some(Order::ColumnMajor)));
        let is_stream =
            |part: &Part| part.payload.is_compressed() || data.is_in_order(&part.payload);
        !is_ordered_first
            && layouts::of(&tensor.layout).is_light()
            && !tensor.parts.iter().any(is_stream)
    }

    /// Bytes that are wanted as they are.
    fn plain(data: Data<'a>, body: Body<'a>, len: u64) -> Self {
        Self {
            body,
            map: ElementMap::identity(),
            len,
            stored_len: len,
            numbers: len,
            tally: data.tally,
            threads: data.threads,
        }
    }

    /// The same with its elements in order in memory, where a map needs several of them to make a byte.
    fn ordered_first(self, limit: u64) -> Result<Self> {
        let ordered = Self {
            map: ElementMap::identity(),
            len: self.stored_len,
            numbers: self.stored_len,
            tally: None,
            ..self
        };
        let whole = ordered.collect(limit)?;
        Ok(Self {
            body: Body::Direct(Input::Memory(whole.into())),
            map: self.map,
            len: self.len,
            numbers: self.numbers,
            tally: self.tally,
            ..ordered
        })
    }

    /// One part, decoded, with numbers of another type or byte order. A number that does not fit is an error.
    pub(crate) fn part(data: Data<'a>, part: &Part, dtype: DType, endian: Endian) -> Result<Self> {
        let map = ElementMap::new(part.dtype, part.endian, dtype, endian)?;
        // Indices are not numbers that were asked to be cast.
        let data = Data {
            tally: None,
            ..data
        };
        Self::mapped(data, part, map.strict())
    }

    /// The elements of a part, cast.
    fn values(data: Data<'a>, part: &Part, dtype: DType, endian: Endian) -> Result<Self> {
        let map = ElementMap::new(part.dtype, part.endian, dtype, endian)?;
        Self::mapped(data, part, map)
    }

    pub(in crate::transform) fn mapped(
        data: Data<'a>,
        part: &Part,
        map: ElementMap,
    ) -> Result<Self> {
        let len = map.output_len(part.payload.len())?;
        let mut view = Self::decoded(data, &part.payload)?;
        // A number that lies in two frames can only be put together by reading from the beginning.
        if let (Body::Frames(frames), Payload::Encoded { codec, len, .. }) =
            (&view.body, &part.payload)
            && !map.is_whole(frames.frame_len())
        {
            view.body = Body::Sequential(data.input(&part.payload)?, *codec, *len, data.parked);
        }
        Ok(Self {
            numbers: map.numbers_in(part.payload.len()),
            map,
            len,
            ..view
        })
    }

    /// The bytes of a part after decompression, as they are.
    pub(crate) fn decoded(data: Data<'a>, payload: &Payload) -> Result<Self> {
        let body = match payload {
            Payload::Encoded { codec, len, .. } => {
                codec::open(data.input(payload)?, *codec, *len, data.parked)?
            }
            Payload::Chunks(chunks) => layouts::chunked(data, chunks)?,
            _ => Body::of(data.input(payload)?),
        };
        Ok(Self::plain(data, body, payload.len()))
    }

    /// The bytes of a part as they are stored, compressed or not.
    pub(crate) fn stored(data: Data<'a>, part: &Part) -> Result<Self> {
        // What is in no one place has no other bytes.
        if part.payload.stored().is_none() {
            return Self::decoded(data, &part.payload);
        }
        let input = data.input(&part.payload)?;
        let len = input.len();
        Ok(Self::plain(data, Body::of(input), len))
    }
}

impl<'a> Body<'a> {
    /// Bytes as they are stored.
    fn of(input: Input<'a>) -> Self {
        if input.is_in_order() {
            Body::InOrder(input)
        } else {
            Body::Direct(input)
        }
    }
}

/// The type of the elements that are asked for.
fn wanted_dtype(of: &Want) -> Result<DType> {
    match of {
        Want::Dense(Form { dtype, .. }) | Want::Part { dtype, .. } => Ok(*dtype),
        _ => Err(Error::argument("a selection of what is not elements")),
    }
}

/// Their numbers.
fn lanes(of: &Want) -> Result<(Scalar, Lanes)> {
    match wanted_dtype(of)? {
        DType::Number(scalar, lanes) => Ok((scalar, lanes)),
        other => Err(Error::argument(format!("a number of each {other}"))),
    }
}

fn nth_part(tensor: &TensorInfo, part: usize) -> Result<&Part> {
    tensor
        .parts
        .get(part)
        .ok_or_else(|| Error::argument(format!("there is no part {part}")))
}

/// The numbers of elements; of types without numbers their bytes.
fn numbers(dtype: DType, elements: u64) -> Result<u64> {
    let numbers = match dtype {
        DType::Number(_, lanes) => elements.checked_mul(lanes.count().into()),
        _ => dtype.bytes_for(elements),
    };
    numbers.ok_or_else(|| overflow("the number of elements"))
}
