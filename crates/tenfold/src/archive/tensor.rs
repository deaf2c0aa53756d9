//! One tensor of an archive, and the ways to read it.

use core::fmt;

use bytes::Bytes;

use super::{Archive, Sliced};
use crate::error::{Error, Result};
use crate::model::{DType, Endian, Form, Order, Selection, Slice, TensorInfo, Want};
use crate::prelude::*;
use crate::transform::{Data, View, as_size, in_place};
use crate::typed::{Element, Typed};

/// A tensor of an archive.
#[derive(Clone, Copy)]
pub struct Tensor<'a> {
    pub(super) archive: &'a Archive,
    pub(super) info: &'a TensorInfo,
}

/// The elements of a tensor as they are in memory, see [`Tensor::in_place`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InPlace {
    /// The elements, one after the other. Where they begin is aligned as it is in the file.
    pub bytes: Bytes,
    /// The order of the bytes of a number.
    pub endian: Endian,
    /// The order of the elements.
    pub order: Order,
}

impl fmt::Debug for Tensor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tensor").field(self.info).finish()
    }
}

impl<'a> Tensor<'a> {
    /// Its name.
    pub fn name(&self) -> &'a str {
        &self.info.name
    }

    /// What it is, and where its bytes are.
    pub fn info(&self) -> &'a TensorInfo {
        self.info
    }

    /// Its dimensions, outermost first, as sizes in memory.
    pub fn dims(&self) -> Result<Vec<usize>> {
        let dims = self.info.shape.iter().map(|&dim| as_size(dim));
        dims.collect::<Result<_>>()
            .map_err(|error| self.blame(error))
    }

    /// All of its elements, dense and of its own type, if they are already in memory: those of a mapped file, of bytes
    /// that were opened, or of an archive that was built. `None` where reading it would make or copy anything, as for
    /// booleans, for which files may use any byte but 0.
    ///
    /// Sharing costs no allocation, and what is shared outlives the archive.
    ///
    /// ```
    /// # use tenfold::{Archive, model::{Endian, Order}};
    /// let mut b = Archive::builder();
    /// b.tensor("w", [2, 3], vec![1f32; 6])?;
    /// let archive = b.finish();
    /// let found = archive.tensor("w")?.in_place().unwrap();
    /// assert_eq!((found.bytes.len(), found.order), (24, Order::RowMajor));
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    pub fn in_place(&self) -> Option<InPlace> {
        let (bytes, endian, order) = in_place(self.archive.data(), self.info)?;
        Some(InPlace {
            bytes,
            endian,
            order,
        })
    }

    /// The elements in place, if they are row-major in a byte order.
    fn shared(&self, endian: Endian) -> Option<Bytes> {
        let (bytes, found, order) = in_place(self.archive.data(), self.info)?;
        let is_like_that = found == endian || !self.info.dtype.is_ordered();
        (is_like_that && order == Order::RowMajor).then_some(bytes)
    }

    /// The bytes of its first part as they are in the file. Shares memory with a mapped file, and outlives the archive.
    pub fn stored(&self) -> Result<Bytes> {
        let part = self.info.readable()?.parts.first();
        let part =
            part.ok_or_else(|| Error::argument("a tensor without parts").in_tensor(self.name()))?;
        let input = self.archive.data().input(&part.payload)?;
        input
            .read(0, input.len())
            .map_err(|error| self.blame(error))
    }

    /// The bytes of one part, decompressed but otherwise as stored. Shares memory where nothing is compressed.
    pub fn part(&self, part: usize) -> Result<Bytes> {
        self.collect(&self.part_view(part)?)
    }

    /// Gives the bytes of one part after decompression piece by piece, in bounded memory.
    #[cfg(feature = "digest")]
    pub(crate) fn stream_part(
        &self,
        part: usize,
        put: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.pieces(&self.part_view(part)?, put)
    }

    fn part_view(&self, part: usize) -> Result<View<'a>> {
        let info = self.info.readable()?;
        let part = info.parts.get(part).ok_or_else(|| {
            Error::argument(format!("there is no part {part}")).in_tensor(self.name())
        })?;
        View::decoded(self.archive.data(), &part.payload).map_err(|error| self.blame(error))
    }

    /// Its bytes, dense, row-major and little-endian: what digests and comparisons are made of.
    ///
    /// Shares memory where the tensor is stored like that; otherwise it is made in memory, within
    /// [`Limits::tensor_memory`](crate::io::Limits::tensor_memory).
    pub fn canonical(&self) -> Result<Bytes> {
        match self.shared(Endian::Little) {
            Some(shared) => Ok(shared),
            None => self.collect(&self.canonical_view(self.archive.data())?),
        }
    }

    /// The same, into memory of the caller of exactly that length: [`dense_len`](TensorInfo::dense_len) bytes.
    pub fn read_into(&self, out: &mut [u8]) -> Result<()> {
        let read = self.canonical_view(self.archive.data())?.read_all(out);
        read.map_err(|error| self.blame(error))
    }

    pub(super) fn canonical_view<'d>(&self, data: Data<'d>) -> Result<View<'d>> {
        self.view(data, &Form::canonical(self.info.dtype))
    }

    /// Streams the tensor in a form, piece by piece, in bounded memory.
    pub fn stream(&self, form: &Form, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.pieces(&self.view(self.archive.data(), form)?, put)
    }

    pub(super) fn pieces(
        &self,
        view: &View<'_>,
        put: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut pieces = view.pieces().map_err(|error| self.blame(error))?;
        let mut piece = Vec::new();
        while pieces.next(&mut piece).map_err(|error| self.blame(error))? {
            put(&piece)?;
        }
        Ok(())
    }

    /// One element by its indices, little-endian, without expanding a packed or sparse tensor. That of a quantized tensor
    /// is the number that it stands for.
    pub fn element(&self, index: &[u64]) -> Result<Bytes> {
        self.one(index)?.to_bytes()
    }

    /// One element by its indices as text, exactly: as many digits as it takes to be told from every other number of its
    /// type, see [`digits`](crate::digits).
    ///
    /// ```
    /// let mut b = tenfold::Archive::builder();
    /// b.tensor("x", [2, 1], [1f32, 0.1])?;
    /// let archive = b.finish();
    /// assert_eq!(archive.tensor("x")?.digits(&[1, 0])?, "0.1");
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    #[cfg(feature = "digits")]
    pub fn digits(&self, index: &[u64]) -> Result<String> {
        let mut text = String::new();
        self.one(index)?.exact(&mut |element| {
            text = crate::digits::text(element);
            Ok(())
        })?;
        Ok(text)
    }

    fn one(&self, index: &[u64]) -> Result<Sliced<'a>> {
        let shape = &self.info.shape;
        let selection = Selection::element(index, shape).ok_or_else(|| {
            let message = format!("there is no element {index:?} in shape {shape:?}");
            Error::argument(message).in_tensor(self.name())
        })?;
        Sliced::of(*self, selection)
    }

    /// Some of the elements, by indices and ranges as NumPy has them. Nothing is read yet.
    ///
    /// A quantized tensor is sliced as the numbers that it stands for.
    ///
    /// ```
    /// use tenfold::{ArchiveBuilder, Bytes, model::{DType, Slice}};
    /// let mut builder = ArchiveBuilder::new();
    /// builder.push("m", DType::U8, &[2, 3], Bytes::from_static(&[1, 2, 3, 4, 5, 6]))?;
    /// let archive = builder.finish();
    /// let last_column = archive.tensor("m")?.slice(&Slice::parse("::-1, -1")?)?;
    /// assert_eq!(last_column.shape(), [2]);
    /// assert_eq!(last_column.to_bytes()?, [6, 3].as_slice());
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    pub fn slice(&self, slices: &[Slice]) -> Result<Sliced<'a>> {
        Sliced::new(*self, slices)
    }

    pub(crate) fn archive(&self) -> &'a Archive {
        self.archive
    }

    /// The elements as numbers of a Rust type, which must be the tensor's own. Shares memory where the bytes are stored
    /// as this machine needs them.
    pub fn typed<T: Element>(&self) -> Result<Typed<T>> {
        if !self.info.dtype.is(T::DTYPE) {
            return Err(self.other_type::<T>(self.info.dtype));
        }
        match self.shared(Endian::NATIVE) {
            Some(shared) => Typed::from_native(shared).map_err(|error| self.blame(error)),
            None => self.whole()?.to(),
        }
    }

    /// The elements as numbers of a Rust type, whatever they are stored as: sparse ones are made dense, quantized ones
    /// decoded, and others cast as by [`ops::cast`](crate::ops::cast). Shares memory where nothing needs converting.
    ///
    /// ```
    /// let mut b = tenfold::Archive::builder();
    /// b.tensor("n", [3], [1i8, -2, 3])?;
    /// let archive = b.finish();
    /// assert_eq!(&archive.tensor("n")?.to::<f32>()?[..], [1.0, -2.0, 3.0]);
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    pub fn to<T: Element>(&self) -> Result<Typed<T>> {
        if self.info.dtype == T::DTYPE {
            return self.typed();
        }
        self.whole()?.to()
    }

    pub(super) fn other_type<T: Element>(&self, found: DType) -> Error {
        let message = format!("elements are {found}, not {}", T::DTYPE);
        Error::argument(message).in_tensor(self.name())
    }

    /// Gives all elements as numbers, see [`Sliced::numbers`].
    pub fn numbers(&self, put: &mut dyn FnMut(&[f64]) -> Result<()>) -> Result<()> {
        self.whole()?.numbers(put)
    }

    fn whole(&self) -> Result<Sliced<'a>> {
        self.slice(&[])
    }

    fn view<'d>(&self, data: Data<'d>, form: &Form) -> Result<View<'d>> {
        View::new(data, self.info, 0, &Want::Dense(*form)).map_err(|error| self.blame(error))
    }

    pub(super) fn collect(&self, view: &View<'_>) -> Result<Bytes> {
        let whole = match view.direct() {
            Some(input) if input.is_memory() => input.read(0, input.len()),
            _ => view.collect_shared(self.archive.inner.limits.tensor_memory),
        };
        whole.map_err(|error| self.blame(error))
    }

    /// Says in which tensor of which format an error happened.
    pub(crate) fn blame(&self, error: Error) -> Error {
        let error = error.in_tensor(self.name());
        match self.archive.format() {
            Some(spec) => error.in_format(spec.id),
            None => error,
        }
    }
}
