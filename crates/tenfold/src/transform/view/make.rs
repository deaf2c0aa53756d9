//! How a stored tensor gets into the wanted form.

use super::{Body, View};
use crate::error::{Error, Result};
use crate::format::{Form, Want};
use crate::model::{DType, Endian, Layout, Part, Payload, Role, Symmetry, TensorInfo};
use crate::prelude::*;
use crate::transform::decoded::Decoded;
use crate::transform::elements::ElementMap;
use crate::transform::input::{Data, Input};
use crate::transform::order::Reorder;
use crate::transform::packed::{Pack, Unpack};
use crate::transform::sparse::Scatter;
use crate::transform::{codec, overflow};

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
            Want::Stored => Self::stored(data, nth_part(tensor, part)?),
        };
        tensor.readable()?;
        view().map_err(|error| error.in_tensor(&tensor.name))
    }

    /// The whole tensor, dense.
    pub(crate) fn dense(data: Data<'a>, tensor: &TensorInfo, form: &Form) -> Result<Self> {
        let dense = Dense::new(data, tensor, form)?;
        match &tensor.layout {
            Layout::RowMajor | Layout::ColumnMajor => dense.values(),
            Layout::Coo { .. } | Layout::Csr { .. } | Layout::Pairs { .. } => dense.entries(),
            Layout::Packed(symmetry) => dense.packed(symmetry),
            Layout::Decoded => dense.quantized(),
            Layout::Opaque { .. } => Err(Error::unsupported(
                "dense",
                format!(
                    "layout {:?} has no dense form here; its parts can be read one by one",
                    tensor.layout.name()
                ),
            )),
        }
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
            layout: Layout::ColumnMajor,
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
        // Indices are no numbers that were asked to be cast.
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
            view.body = Body::Sequential(data.input(&part.payload)?, *codec, *len);
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
        let input = data.input(payload)?;
        let body = match payload {
            Payload::Encoded { codec, len, .. } => codec::open(input, *codec, *len)?,
            _ => Body::Direct(input),
        };
        Ok(Self::plain(data, body, payload.len()))
    }

    /// The bytes of a part as they are stored, compressed or not.
    fn stored(data: Data<'a>, part: &Part) -> Result<Self> {
        let input = data.input(&part.payload)?;
        let len = input.len();
        Ok(Self::plain(data, Body::Direct(input), len))
    }
}

/// A whole tensor on its way to a dense form.
struct Dense<'a, 't> {
    data: Data<'a>,
    tensor: &'t TensorInfo,
    form: &'t Form,
    elements: u64,
    /// Bytes in the wanted form.
    len: u64,
}

impl<'a, 't> Dense<'a, 't> {
    fn new(data: Data<'a>, tensor: &'t TensorInfo, form: &'t Form) -> Result<Self> {
        let elements = tensor
            .elements()
            .ok_or_else(|| overflow("the number of elements"))?;
        let len = form.dtype.bytes_for(elements).ok_or_else(|| {
            Error::unsupported(
                "dense",
                format!("{} has no dense form", tensor.layout.name()),
            )
        })?;
        Ok(Self {
            data,
            tensor,
            form,
            elements,
            len,
        })
    }

    /// Stored as values, in the wanted order or another.
    fn values(&self) -> Result<View<'a>> {
        let (tensor, elements) = (self.tensor, self.elements);
        let values = tensor
            .part(&Role::Values)
            .ok_or_else(|| Error::malformed("layout", "a dense tensor without values"))?;
        if values.dtype.bytes_for(elements) != Some(values.payload.len()) {
            let message = format!(
                "{} bytes for {elements} elements of {}",
                values.payload.len(),
                values.dtype
            );
            return Err(Error::malformed("size", message));
        }
        let map = self.map(values.dtype, values.endian)?;
        if tensor.shape.len() < 2 || tensor.layout == self.form.layout || elements == 0 {
            return Ok(View {
                len: self.len,
                numbers: numbers(values.dtype, elements)?,
                ..View::mapped(self.data, values, map)?
            });
        }
        let reorder = Reorder::new(self.data, values, &tensor.shape, &tensor.layout)?;
        let reordered = self.view(Body::Reorder(reorder), map, values.dtype)?;
        match reordered.map.has_whole_bytes() {
            true => Ok(reordered),
            false => reordered.ordered_first(self.data.limits.tensor_memory),
        }
    }

    /// Stored as a list of entries.
    fn entries(&self) -> Result<View<'a>> {
        let (form, len, limit) = (self.form, self.len, self.data.limits.dense_bytes);
        if len > limit {
            let message = format!(
                "the dense tensor would take {len} bytes, the limit (dense_bytes) is {limit}"
            );
            return Err(Error::limit("dense", message).raised_by("dense_bytes"));
        }
        // Symmetries are about the elements as they are stored: they are cast when they are in their places.
        let stored = Form {
            dtype: self.tensor.stored_dtype(),
            ..form.clone()
        };
        let mut scatter = Scatter::load(self.data, self.tensor, &stored)?;
        scatter.complete()?;
        let map = self.map(stored.dtype, stored.endian)?;
        self.view(Body::Scatter(scatter), map, stored.dtype)
    }

    /// Packed by a symmetry.
    fn packed(&self, symmetry: &Symmetry) -> Result<View<'a>> {
        let column_major = self.form.layout == Layout::ColumnMajor;
        let unpack = Unpack::new(self.data, self.tensor, symmetry, column_major)?;
        let (dtype, endian) = unpack.stored_as();
        let map = self.map(dtype, endian)?;
        self.view(Body::Unpack(unpack), map, dtype)
    }

    /// Quantized: what the numbers stand for.
    fn quantized(&self) -> Result<View<'a>> {
        let decoded = Decoded::new(self.data, self.tensor)?;
        let dtype = decoded.dtype();
        let map = self.map(dtype, Endian::Little)?;
        if self.form.layout != Layout::RowMajor && self.tensor.shape.len() > 1 {
            return Err(Error::unsupported(
                "order",
                "quantized tensors are decoded row-major only",
            ));
        }
        self.view(Body::Decoded(decoded), map, dtype)
    }

    fn map(&self, stored: DType, endian: Endian) -> Result<ElementMap> {
        ElementMap::new(stored, endian, self.form.dtype, self.form.endian)
    }

    /// All elements, which the body gives as those of a type.
    fn view(&self, body: Body<'a>, map: ElementMap, stored: DType) -> Result<View<'a>> {
        let stored_len = stored.bytes_for(self.elements);
        Ok(View {
            body,
            map,
            len: self.len,
            stored_len: stored_len.ok_or_else(|| overflow("the size of a tensor"))?,
            numbers: numbers(stored, self.elements)?,
            tally: self.data.tally,
            threads: self.data.threads,
        })
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
