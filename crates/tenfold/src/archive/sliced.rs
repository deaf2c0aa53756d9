//! Some elements of a tensor.

use alloc::borrow::Cow;

use bytes::Bytes;

use super::Tensor;
use crate::error::{Error, Result};
use crate::model::{DType, Endian, Layout, Scalar, Selection, Slice, TensorInfo};
use crate::prelude::*;
use crate::transform::{BLOCK, Buffers, Data, Numbers, View, as_size, cast_elements};
use crate::typed::{self, Element, Typed};

/// Some elements of a tensor, see [`Tensor::slice`].
///
/// Little more of the file is read than these elements take: small gaps between them, whole frames of compressed data,
/// whole blocks of quantized data. Compressed data without a table of its frames is decoded from the beginning. Of a
/// sparse tensor, the indices are read, but only the values that are wanted.
#[derive(Clone, Debug)]
pub struct Sliced<'a> {
    tensor: Tensor<'a>,
    selection: Selection,
    dtype: DType,
}

impl<'a> Sliced<'a> {
    pub(crate) fn new(tensor: Tensor<'a>, slices: &[Slice]) -> Result<Self> {
        let selection = Selection::new(slices, &tensor.info().shape)
            .map_err(|error| error.in_tensor(tensor.name()))?;
        Self::of(tensor, selection)
    }

    pub(crate) fn of(tensor: Tensor<'a>, selection: Selection) -> Result<Self> {
        tensor.info().readable()?;
        Ok(Self {
            tensor,
            selection,
            dtype: numbers_of(tensor.info()).dtype,
        })
    }

    /// The type of the elements: that of the tensor, or of the numbers that a quantized one stands for.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The dimensions that are left, outermost first.
    pub fn shape(&self) -> Vec<u64> {
        self.selection.shape()
    }

    /// How many elements there are; `None` where that does not fit 64 bits.
    pub fn elements(&self) -> Option<u64> {
        self.selection.elements()
    }

    /// Whether it is the whole tensor in its own order.
    pub fn is_whole(&self) -> bool {
        self.selection.is_whole()
    }

    /// Only the first and the last `n` along every dimension that has more than twice as many: enough to show it.
    #[must_use]
    pub fn edges(mut self, n: u64) -> Self {
        self.selection = self.selection.edges(n);
        self
    }

    /// Streams the elements piece by piece, row-major, little-endian, in bounded memory. Every piece holds whole
    /// elements, and those below a byte are packed with the first in the lowest bits.
    pub fn stream(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.tensor
            .pieces(&self.view(self.tensor.archive().data())?, put)
    }

    /// The header of a `.npy` file, which [`stream`](Self::stream) continues; `None` where NumPy does not have the
    /// type.
    #[cfg(feature = "npy")]
    pub fn npy_header(&self) -> Option<Vec<u8>> {
        crate::wire::numpy::encode(self.dtype, &self.shape())
    }

    /// All elements in memory, within [`Limits::tensor_memory`](crate::io::Limits::tensor_memory).
    pub fn to_bytes(&self) -> Result<Bytes> {
        self.tensor
            .collect(&self.view(self.tensor.archive().data())?)
    }

    /// Whether all of it can be made in so much memory: for whoever is about to make room for [`read_into`](Self::read_into).
    /// What the file asks too much for is refused here as it is there, before anything is read.
    ///
    /// ```
    /// let mut b = tenfold::Archive::builder();
    /// b.tensor("n", [3], [1i16, -2, 3])?;
    /// let archive = b.finish();
    /// let whole = archive.tensor("n")?.slice(&[])?;
    /// assert!(whole.check_memory(6).is_ok() && whole.check_memory(5).is_err());
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    pub fn check_memory(&self, bytes: u64) -> Result<()> {
        let view = self.view(self.tensor.archive().data())?;
        let checked = view.check_memory(bytes).map(drop);
        checked.map_err(|error| self.tensor.blame(error))
    }

    /// The elements, into memory of the caller of exactly that length.
    pub fn read_into(&self, out: &mut [u8]) -> Result<()> {
        let read = self.view(self.tensor.archive().data())?.read_all(out);
        read.map_err(|error| self.tensor.blame(error))
    }

    /// The elements as numbers of a Rust type, which must be their own.
    pub fn typed<T: Element>(&self) -> Result<Typed<T>> {
        if self.dtype != T::DTYPE {
            return Err(self.tensor.other_type::<T>(self.dtype));
        }
        self.to()
    }

    /// The elements as numbers of a Rust type, cast if they are of another, as by [`ops::cast`](crate::ops::cast).
    pub fn to<T: Element>(&self) -> Result<Typed<T>> {
        self.to_vec().map(Typed::from)
    }

    /// The same in a vector.
    pub(super) fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let made = self.made();
        made.map_err(|error| self.tensor.blame(error))
    }

    fn made<T: Element>(&self) -> Result<Vec<T>> {
        let info = numbers_of(self.tensor.info());
        let limit = self.tensor.archive().limits().tensor_memory;
        // What is cast already is cast from what that gives, not from what is stored.
        let is_cast = info.stored_dtype() != self.dtype && T::DTYPE != self.dtype;
        let dtype = if is_cast { self.dtype } else { T::DTYPE };
        let view = self.view_as(self.tensor.archive().data(), &info, dtype)?;
        let len = view.check_memory(limit)?;
        if !is_cast {
            let mut elements = typed::zeros(len / size_of::<T>())?;
            view.read_all(bytemuck::cast_slice_mut(&mut elements))?;
            typed::from_little_endian(&mut elements);
            return Ok(elements);
        }
        let mut bytes = view.collect(limit)?;
        let (from, to) = ((dtype, Endian::Little), (T::DTYPE, Endian::Little));
        cast_elements(from, to, &mut bytes, None)?;
        let elements = bytes.chunks_exact(size_of::<T>());
        let mut elements: Vec<T> = elements.map(bytemuck::pod_read_unaligned).collect();
        typed::from_little_endian(&mut elements);
        Ok(elements)
    }

    /// Gives the elements as numbers to compute with, some thousand at a time: elements of every type, quantized ones
    /// decoded, each as the nearest f64. A complex number or the like comes as its components, one after the other.
    pub fn numbers(&self, put: &mut dyn FnMut(&[f64]) -> Result<()>) -> Result<()> {
        self.each_number(put)
    }

    /// Gives one number for each element: one of its components, or one made of all of them.
    ///
    /// ```
    /// use tenfold::{Archive, Bytes, Component, model::DType};
    /// let bytes = [3f32, 4.0].iter().flat_map(|number| number.to_le_bytes()).collect::<Bytes>();
    /// let mut b = Archive::builder();
    /// b.push("z", DType::C64, [1], bytes)?;
    /// let archive = b.finish();
    /// let z = archive.tensor("z")?.slice(&[])?;
    /// let mut found = Vec::new();
    /// for component in [Component::Number(1), Component::Modulus] {
    ///     z.component(component, &mut |numbers| Ok(found.extend_from_slice(numbers)))?;
    /// }
    /// assert_eq!(found, [4.0, 5.0]);
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    pub fn component(
        &self,
        component: Component,
        put: &mut dyn FnMut(&[f64]) -> Result<()>,
    ) -> Result<()> {
        let (_, lanes) = self.numbered()?;
        component
            .check(lanes)
            .map_err(|error| error.in_tensor(self.tensor.name()))?;
        let mut found = Vec::new();
        self.each_number(&mut |numbers| {
            found.clear();
            found.extend(numbers.chunks_exact(lanes).map(|lanes| component.of(lanes)));
            put(&found)
        })
    }

    /// Gives the numbers of one element after the other, exactly, to be shown: [`digits::text`](crate::digits::text) makes
    /// text of them.
    ///
    /// ```
    /// use tenfold::{Archive, digits, model::Slice};
    /// let mut b = Archive::builder();
    /// b.tensor("x", [3], [0.1f32, 16777216.0, f32::NAN])?;
    /// let archive = b.finish();
    /// let mut texts = Vec::new();
    /// let slice = archive.tensor("x")?.slice(&Slice::parse(":2")?)?;
    /// slice.exact(&mut |element| Ok(texts.push(digits::text(element))))?;
    /// assert_eq!(texts, ["0.1", "16777216.0"]);
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    #[cfg(feature = "digits")]
    pub fn exact(
        &self,
        each: &mut dyn FnMut(&[crate::digits::Number]) -> Result<()>,
    ) -> Result<()> {
        let (_, lanes) = self.numbered()?;
        let mut left = self.elements().unwrap_or(u64::MAX);
        let mut element = Vec::new();
        self.stream(&mut |piece| {
            let mut given = Ok(());
            crate::digits::numbers(self.dtype, piece, |number| {
                // The last byte may be filled up with what are not numbers.
                if left == 0 || given.is_err() {
                    return;
                }
                element.push(number);
                if element.len() == lanes {
                    given = each(&element);
                    element.clear();
                    left -= 1;
                }
            });
            given
        })
    }

    /// The type of the numbers that elements consist of, and how many these are.
    fn numbered(&self) -> Result<(Scalar, usize)> {
        match self.dtype {
            DType::Number(scalar, lanes) => Ok((scalar, lanes.count() as usize)),
            dtype => {
                let error =
                    Error::unsupported("numbers", format!("{dtype} does not consist of numbers"));
                Err(self.tensor.blame(error))
            }
        }
    }

    /// The numbers of the elements, those of one element always together.
    fn each_number(&self, put: &mut dyn FnMut(&[f64]) -> Result<()>) -> Result<()> {
        let (scalar, lanes) = self.numbered()?;
        let numbers = Numbers::new(scalar);
        let (mut buffers, mut doubles) = (Buffers::default(), Vec::new());
        let elements = self.elements().unwrap_or(u64::MAX);
        let mut left = elements.saturating_mul(lanes as u64);
        // A whole number of bytes and of elements.
        let block = BLOCK as u64;
        let step = as_size(numbers.len_of(block))?;
        self.stream(&mut |piece| {
            piece.chunks(step).try_for_each(|bytes| {
                // The last byte may be filled up with what are not numbers.
                let most = bytes.len() as u64 * 8 / u64::from(scalar.bits());
                let count = most.min(block).min(left);
                left -= count;
                numbers.doubles(bytes, as_size(count)?, &mut buffers, &mut doubles);
                put(&doubles)
            })
        })
    }

    pub(super) fn tensor(&self) -> &Tensor<'a> {
        &self.tensor
    }

    pub(super) fn view<'d>(&self, data: Data<'d>) -> Result<View<'d>> {
        let view = self.view_as(data, &numbers_of(self.tensor.info()), self.dtype);
        view.map_err(|error| self.tensor.blame(error))
    }

    fn view_as<'d>(&self, data: Data<'d>, info: &TensorInfo, dtype: DType) -> Result<View<'d>> {
        View::selected(data, info, dtype, self.selection.clone())
    }
}

/// The tensor as the numbers that it stands for, if its own elements are not numbers.
fn numbers_of(info: &TensorInfo) -> Cow<'_, TensorInfo> {
    let is_number = matches!(info.dtype, DType::Number(..));
    match &info.decoder {
        Some(decoder) if info.layout != Layout::Decoded && !is_number => {
            let mut decoded = info.clone();
            (decoded.dtype, decoded.layout) = (decoder.dtype(), Layout::Decoded);
            Cow::Owned(decoded)
        }
        _ => Cow::Borrowed(info),
    }
}

/// A number of each element that has several, see [`Sliced::component`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Component {
    /// One of the numbers that an element consists of: of a complex one 0 is the real and 1 the imaginary part.
    Number(usize),
    /// The root of the sum of their squares.
    #[cfg(feature = "std")]
    Modulus,
    /// The angle of a complex number, from -π to π; of a real one 0 or π.
    #[cfg(feature = "std")]
    Phase,
}

impl Component {
    fn check(self, lanes: usize) -> Result<()> {
        let is_there = match self {
            Component::Number(number) => number < lanes,
            #[cfg(feature = "std")]
            Component::Modulus => true,
            #[cfg(feature = "std")]
            Component::Phase => lanes <= 2,
        };
        if is_there {
            return Ok(());
        }
        let message = format!("elements of {lanes} numbers have no {self:?}");
        Err(Error::argument(message))
    }

    fn of(self, lanes: &[f64]) -> f64 {
        let lane = |lane: usize| lanes.get(lane).copied().unwrap_or(0.0);
        match self {
            Component::Number(number) => lane(number),
            // Neither overflows nor underflows on the way.
            #[cfg(feature = "std")]
            Component::Modulus => lanes.iter().fold(0.0, |sum: f64, lane| sum.hypot(*lane)),
            #[cfg(feature = "std")]
            Component::Phase => lane(1).atan2(lane(0)),
        }
    }
}
