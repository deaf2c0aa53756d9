//! Archives of tensors that are not in a file yet.

use super::{Archive, Values};
use crate::error::{Error, Result};
use crate::io::{Limits, Produced, Source, Spool};
use crate::model::{
    DType, Endian, Layout, Manifest, Metadata, Payload, SourceId, Strides, TensorInfo, Value,
};
use crate::prelude::*;
use crate::transform::{Data, check_layout, dense_order};
use crate::typed::{Element, Typed};

/// Collects tensors that are not in a file yet.
///
/// ```
/// use tenfold::{Archive, Bytes, model::DType};
///
/// let bytes = Bytes::from_static(&[1, 2, 3, 4, 5, 6]);
/// let mut b = Archive::builder();
/// b.tensor("w", [2, 3], vec![1f32; 6])?; // any element; a vector is taken, a slice is copied
/// b.strided("t", DType::U8, [3, 2], [1, 3], bytes)?; // a transposed matrix, as it is
/// b.stream("n", DType::U8, [1000, 100], |put| {
///     (0..1000).try_for_each(|_| put(&[7; 100])) // made when it is written
/// })?;
/// b.meta("epoch", 3).meta("by", "me");
/// let archive = b.finish();
/// assert_eq!(archive.tensor("t")?.canonical()?, [1, 4, 2, 5, 3, 6].as_slice());
/// # Ok::<(), tenfold::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ArchiveBuilder {
    manifest: Manifest,
    sources: Vec<Arc<dyn Source>>,
    known: LookupMap<String, ()>,
}

impl ArchiveBuilder {
    /// No tensors yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tensor of Rust numbers, row-major. A `Vec` is taken as it is, without a copy; borrowed data is copied.
    pub fn tensor<T: Element>(
        &mut self,
        name: impl Into<String>,
        shape: impl AsRef<[u64]>,
        elements: impl Into<Typed<T>>,
    ) -> Result<Pushed<'_>> {
        self.values(name, Values::new(shape, elements))
    }

    /// Adds a tensor in memory, with its shape.
    pub fn values(
        &mut self,
        name: impl Into<String>,
        values: impl Into<Values>,
    ) -> Result<Pushed<'_>> {
        let Values {
            dtype,
            shape,
            bytes,
        } = values.into();
        let pushed = self.push(name, dtype, shape, bytes)?;
        Ok(if cfg!(target_endian = "big") {
            pushed.big_endian()
        } else {
            pushed
        })
    }

    /// Adds a dense row-major tensor. Its bytes, which are little-endian by default
    /// ([`Pushed::big_endian`]), are read when they are needed.
    pub fn push(
        &mut self,
        name: impl Into<String>,
        dtype: DType,
        shape: impl AsRef<[u64]>,
        data: impl Source + 'static,
    ) -> Result<Pushed<'_>> {
        let shape = shape.as_ref();
        let payload = self.payload(0..data.len());
        let tensor = TensorInfo::dense(name, dtype, shape.to_vec(), payload);
        if tensor.dense_len() != Some(data.len()) {
            let message = format!(
                "{} bytes do not make {dtype} of shape {shape:?}",
                data.len()
            );
            return Err(Error::argument(message).in_tensor(&tensor.name));
        }
        self.add(tensor, Some(Arc::new(data)))
    }

    /// Adds a tensor whose elements are anywhere in `data`, at equal distances along every dimension: a transposed or
    /// column-major one, every second row of another, one that is broadcast (a stride of 0). Strides count elements;
    /// with [`Strides::new`] the first one need not be at the beginning. Nothing is copied; an element outside the data
    /// is an error.
    pub fn strided(
        &mut self,
        name: impl Into<String>,
        dtype: DType,
        shape: impl AsRef<[u64]>,
        strides: impl Into<Strides>,
        data: impl Source + 'static,
    ) -> Result<Pushed<'_>> {
        let (data, strides): (Arc<dyn Source>, _) = (Arc::new(data), strides.into());
        let order = dense_order(shape.as_ref(), &strides);
        // Checked as if it were the only one.
        let alone = Payload::main(0..data.len());
        let mut tensor = TensorInfo::dense(name, dtype, shape.as_ref().to_vec(), alone);
        tensor.layout = Layout::Strided(Box::new(strides));
        let limits = Limits::default();
        let checked = check_layout(Data::new(core::slice::from_ref(&data), &limits), &tensor);
        checked.map_err(|error| error.in_tensor(&tensor.name))?;
        for part in &mut tensor.parts {
            part.payload = self.payload(0..data.len());
        }
        // Formats know the two dense orders by name.
        if let Some(order) = order.filter(|_| tensor.dense_len() == Some(data.len())) {
            tensor.layout = order.into();
        }
        self.add(tensor, Some(data))
    }

    /// Adds a dense row-major little-endian tensor that `produce` makes: it gives bytes to `put` from the first to the last,
    /// as many or few at a time as it likes.
    ///
    /// It is called when the tensor is read, on another thread, and waits whenever it is more than a few MiB ahead:
    /// memory does not grow with the tensor. Formats that store something about the data in front of it, such as a
    /// checksum, call it twice, and so does comparing the output; it should give the same bytes each time. If it
    /// returns an error, or a number of bytes that is not the tensor's, the work ends with an error that names the
    /// tensor. Work that needs the elements in another order holds them in memory.
    ///
    /// Without the feature `std` there are no threads, and it is called once for every piece that is read.
    pub fn stream(
        &mut self,
        name: impl Into<String>,
        dtype: DType,
        shape: impl AsRef<[u64]>,
        produce: impl Fn(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Pushed<'_>> {
        let (name, shape) = (name.into(), shape.as_ref());
        let len = dense_len(&name, dtype, shape)?;
        let data: Arc<dyn Source> = Arc::new(Produced::new(len, Arc::new(produce)));
        self.push(name, dtype, shape, data)
    }

    /// Adds a dense row-major little-endian tensor that can be made only once. `produce` is called right away, and its
    /// bytes are kept: up to 16 MiB in memory, more in a temporary file, where there are files.
    pub fn stream_once(
        &mut self,
        name: impl Into<String>,
        dtype: DType,
        shape: impl AsRef<[u64]>,
        produce: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>,
    ) -> Result<Pushed<'_>> {
        let (name, shape) = (name.into(), shape.as_ref());
        let len = dense_len(&name, dtype, shape)?;
        let mut spool = Spool::default();
        let mut made = 0u64;
        let put = &mut |bytes: &[u8]| {
            made += bytes.len() as u64;
            if made > len {
                let message = format!("the stream has at least {made} bytes, expected {len}");
                return Err(Error::argument(message));
            }
            spool.write(bytes)
        };
        let kept = produce(put).and_then(|()| spool.finish());
        let kept = kept.map_err(|error| error.in_tensor(&name))?;
        if kept.len() != len {
            let message = format!("the stream has {made} bytes, expected {len}");
            return Err(Error::argument(message).in_tensor(&name));
        }
        self.push(name, dtype, shape, kept)
    }

    /// Adds a tensor in any layout. Its parts are in memory ([`Payload::Inline`]) or in the data of tensors that were
    /// pushed before, which are the sources from 0 on.
    pub fn push_info(&mut self, tensor: TensorInfo) -> Result<Pushed<'_>> {
        for (source, range) in tensor.parts.iter().filter_map(|part| part.payload.stored()) {
            let data = self.sources.get(source.index());
            if data.is_none_or(|data| range.start > range.end || range.end > data.len()) {
                let message = format!("bytes {range:?} of data {} do not exist", source.0);
                return Err(Error::argument(message).in_tensor(&tensor.name));
            }
        }
        self.add(tensor, None)
    }

    /// Bytes of the data that is added next.
    fn payload(&self, range: Range<u64>) -> Payload {
        let source = SourceId(u32::try_from(self.sources.len()).unwrap_or(u32::MAX));
        Payload::Raw { source, range }
    }

    fn add(&mut self, tensor: TensorInfo, data: Option<Arc<dyn Source>>) -> Result<Pushed<'_>> {
        if self.known.insert(tensor.name.clone(), ()).is_some() {
            return Err(Error::argument(format!(
                "two tensors are named {:?}",
                tensor.name
            )));
        }
        self.sources.extend(data);
        self.manifest.tensors.push(tensor);
        let place = self.manifest.tensors.len() - 1;
        Ok(Pushed {
            manifest: &mut self.manifest,
            place,
        })
    }

    /// Adds metadata of the file: numbers, text, lists. Replaces the value of a key that is already there.
    pub fn meta(&mut self, key: &str, value: impl Into<Value>) -> &mut Self {
        self.manifest.metadata.set(key, value.into());
        self
    }

    /// The metadata of the file, to be changed.
    pub fn metadata(&mut self) -> &mut Metadata {
        &mut self.manifest.metadata
    }

    /// Finishes the archive.
    pub fn finish(self) -> Archive {
        let names = self.sources.iter().map(|_| None).collect();
        Archive::assemble(
            None,
            self.manifest,
            self.sources,
            names,
            Vec::new(),
            Limits::default(),
        )
    }
}

/// The bytes of a dense tensor that is to be made.
fn dense_len(name: &str, dtype: DType, shape: &[u64]) -> Result<u64> {
    let tensor = TensorInfo::new(name, dtype, shape.to_vec(), Layout::RowMajor);
    tensor.dense_len().ok_or_else(|| {
        let message = format!("there is no {dtype} of shape {shape:?}");
        Error::argument(message).in_tensor(name)
    })
}

/// A tensor that was just added, to add details to.
#[derive(Debug)]
pub struct Pushed<'b> {
    manifest: &'b mut Manifest,
    place: usize,
}

impl Pushed<'_> {
    /// Says that its bytes are big-endian.
    pub fn big_endian(self) -> Self {
        self.change(|tensor| {
            for part in &mut tensor.parts {
                part.endian = Endian::Big;
            }
        })
    }

    /// Adds metadata of the tensor. Replaces the value of a key that is already there.
    pub fn meta(self, key: &str, value: impl Into<Value>) -> Self {
        self.change(|tensor| tensor.metadata.set(key, value.into()))
    }

    fn change(self, change: impl FnOnce(&mut TensorInfo)) -> Self {
        if let Some(tensor) = self.manifest.tensors.get_mut(self.place) {
            change(tensor);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::error::ErrorKind;
    use crate::format::Registry;
    use crate::ops::{Conversion, ConvertOptions};

    /// A source that gives a byte less than it is asked for.
    struct Short;

    impl Source for Short {
        fn len(&self) -> u64 {
            8
        }

        fn read(&self, range: Range<u64>) -> Result<Bytes> {
            let len = range.end.saturating_sub(range.start).saturating_sub(1);
            Ok(Bytes::from(vec![1; usize::try_from(len).unwrap_or(0)]))
        }

        fn is_memory(&self) -> bool {
            true
        }
    }

    #[test]
    fn sources_are_shared_and_held_to_their_word() {
        let shared: Arc<dyn Source> = Arc::new(Bytes::from_static(&[1, 2, 3, 4]));
        let mut builder = ArchiveBuilder::new();
        builder.push("a", DType::U8, &[4], shared.clone()).unwrap();
        builder.push("b", DType::U8, &[2, 2], shared).unwrap();
        builder.push("short", DType::U8, &[8], Short).unwrap();
        let archive = builder.finish();
        assert_eq!(
            archive.tensor("b").unwrap().canonical().unwrap()[..],
            [1, 2, 3, 4]
        );
        let error = archive.tensor("short").unwrap().canonical().unwrap_err();
        assert_eq!(error.rule(), "file.changed");
    }

    #[test]
    fn strides_of_a_dense_order_are_that_order() {
        let mut builder = ArchiveBuilder::new();
        let bytes = Bytes::from_static(&[1, 2, 3, 4, 5, 6]);
        let mut layout = |name: &str, strides: Strides| {
            let data = bytes.clone();
            builder
                .strided(name, DType::U8, [2, 3], strides, data)
                .unwrap();
        };
        layout("rows", [3, 1].into());
        layout("columns", [1, 2].into());
        layout("same", [0, 1].into());
        layout("later", Strides::new(1, [0, 1]));
        let archive = builder.finish();
        let names = archive.tensors().map(|tensor| tensor.info().layout.name());
        let names: Vec<_> = names.collect();
        assert_eq!(names, ["row-major", "column-major", "strided", "strided"]);
        let of = |name: &str| archive.tensor(name).unwrap().canonical().unwrap();
        assert_eq!(of("rows")[..], [1, 2, 3, 4, 5, 6]);
        assert_eq!(of("columns")[..], [1, 3, 5, 2, 4, 6]);
        assert_eq!(of("same")[..], [1, 2, 3, 1, 2, 3]);
        assert_eq!(of("later")[..], [2, 3, 4, 2, 3, 4]);
    }

    #[test]
    #[cfg(feature = "safetensors")]
    fn a_key_that_is_there_twice_is_refused_before_anything_is_written() {
        let mut builder = ArchiveBuilder::new();
        builder.metadata().push("step", Value::Str("1".into()));
        builder.metadata().push("step", Value::Str("2".into()));
        let registry = Registry::standard();
        let target = registry.get("safetensors").unwrap();
        let refused = Conversion::prepare(&builder.finish(), target, &ConvertOptions::default());
        let error = refused.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument);
        assert!(error.message().contains("\"step\""), "{error}");
    }
}
