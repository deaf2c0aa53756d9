//! A tour of the library, job by job. Every example runs as a test.
//!
//! # Open a file and read it
//!
//! [`Archive::open`](crate::Archive::open) finds out what a file is and reads its headers. Tensor data is read when it
//! is asked for: [`to`](crate::Tensor::to) gives numbers of a Rust type, whatever the file stores them as;
//! [`typed`](crate::Tensor::typed) does the same for their own type, in the memory of a mapped file where that is
//! possible; [`canonical`](crate::Tensor::canonical) gives bytes, dense, row-major and little-endian, whatever the file
//! stores; [`stream`](crate::Tensor::stream) gives them piece by piece for tensors that are larger than memory.
//!
//! ```
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("model.safetensors");
//! # let header = br#"{"__metadata__":{"by":"tour"},"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}} "#;
//! # let mut file = (header.len() as u64).to_le_bytes().to_vec();
//! # file.extend_from_slice(header);
//! # file.extend([1.0f32, 2.0, 3.5].iter().flat_map(|number| number.to_le_bytes()));
//! # std::fs::write(&path, file)?;
//! use tenfold::Archive;
//! use tenfold::format::Form;
//! use tenfold::model::DType;
//!
//! let archive = Archive::open(path)?; // any format
//! assert_eq!(archive.format().map(|format| format.id), Some("safetensors"));
//! assert_eq!(archive.metadata().get("by").and_then(|by| by.as_str()), Some("tour"));
//!
//! let bias = archive.tensor("bias")?;
//! assert_eq!((bias.info().dtype, bias.info().shape.as_slice()), (DType::F32, &[3][..]));
//! assert_eq!(&bias.typed::<f32>()?[..], [1.0, 2.0, 3.5]);
//! assert_eq!(&bias.to::<i32>()?[..], [1, 2, 4]); // cast: to the nearest, ties to even
//!
//! let mut memory = [0; 12]; // of the caller
//! bias.read_into(&mut memory)?;
//! assert_eq!(memory[..4], 1f32.to_le_bytes());
//!
//! let mut bytes = 0;
//! bias.stream(&Form::canonical(DType::F32), &mut |piece| {
//!     bytes += piece.len();
//!     Ok(())
//! })?;
//! assert_eq!(bytes, 12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Errors say who must act ([`kind`](crate::Error::kind)), which rule was broken ([`rule`](crate::Error::rule)), where, and in
//! which tensor:
//!
//! ```
//! use tenfold::{Archive, ErrorKind};
//! let error = Archive::from_bytes(b"MAG!".as_slice()).err().unwrap();
//! assert_eq!(error.kind(), ErrorKind::Malformed);
//! assert!(error.rule().starts_with("mag."));
//! ```
//!
//! # Read a slice
//!
//! [`Tensor::slice`](crate::Tensor::slice) takes indices and ranges as NumPy has them and reads little more than what
//! they select, even from column-major, packed, sparse, compressed and quantized data.
//!
//! ```
//! use tenfold::{ArchiveBuilder, Bytes};
//! use tenfold::model::{DType, Slice};
//!
//! # let mut builder = ArchiveBuilder::new();
//! # builder.push("table", DType::U8, &[3, 4], Bytes::from_static(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]))?;
//! # let archive = builder.finish();
//! let table = archive.tensor("table")?; // u8, 3 rows and 4 columns: 0, 1, 2, ..
//! let row = table.slice(&[Slice::Index(-1)])?;
//! assert_eq!(row.to_bytes()?, [8, 9, 10, 11].as_slice());
//! let some = table.slice(&Slice::parse("::2, 1:3")?)?;
//! assert_eq!(some.shape(), [2, 2]);
//! assert_eq!(some.to_bytes()?, [1, 2, 9, 10].as_slice());
//! # Ok::<(), tenfold::Error>(())
//! ```
//!
//! # Build and save
//!
//! [`Archive::builder`](crate::Archive::builder) takes numbers as they are in a program: vectors without a copy, slices,
//! bytes with strides or in the other byte order, and streams that are made while they are written.
//! [`save`](crate::Archive::save) writes a file in the format that its name says, whole or not at all. For tensors alone
//! there is [`tenfold::save`](crate::save), and [`tenfold::convert`](crate::convert) writes a file in another format.
//!
//! ```
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path();
//! use tenfold::{Archive, Bytes, Values};
//! use tenfold::model::DType;
//!
//! let mut b = Archive::builder();
//! b.tensor("w", [2, 3], vec![1f32; 6])?;
//! b.strided("view", DType::U8, [3, 2], [1, 3], Bytes::from_static(&[1, 2, 3, 4, 5, 6]))?;
//! b.push("big", DType::U16, [1], Bytes::from_static(&[1, 0]))?.big_endian();
//! b.stream("made", DType::U8, [1000, 100], |put| {
//!     (0..1000).try_for_each(|_| put(&[7; 100]))
//! })?;
//! b.meta("by", "tour");
//! b.finish().save(directory.join("model.safetensors"))?;
//!
//! tenfold::convert(directory.join("model.safetensors"), directory.join("model.zt"))?;
//! let archive = Archive::open(directory.join("model.zt"))?;
//! assert_eq!(&archive.tensor("view")?.to::<u8>()?[..], [1, 4, 2, 5, 3, 6]);
//! assert_eq!(&archive.tensor("big")?.to::<u16>()?[..], [256]);
//!
//! tenfold::save(directory.join("two.npz"), [
//!     ("bias", Values::from([0f32, 1.0])),
//!     ("steps", Values::new([2, 1], vec![1i64, 2])),
//! ])?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Convert, and know what is lost
//!
//! [`Conversion::prepare`](crate::ops::Conversion::prepare) finds out what a conversion means and writes nothing. Its
//! [`losses`](crate::ops::Conversion::losses) are the report; metadata is lost only if
//! [`allow`](crate::ops::ConvertOptions::allow) says so, and tensors never are.
//!
//! ```
//! use tenfold::{ArchiveBuilder, Bytes, Hint};
//! use tenfold::format::{Effect, Lost, Registry};
//! use tenfold::model::{DType, Value};
//! use tenfold::ops::{Conversion, ConvertOptions};
//!
//! # let mut builder = ArchiveBuilder::new();
//! # builder.push("w", DType::F32, &[2], Bytes::from_static(&[0; 8]))?;
//! # builder.metadata().push("author", Value::Str("tour".into()));
//! # let archive = builder.finish();
//! # let directory = tempfile::tempdir()?;
//! let registry = Registry::standard();
//! let mag = registry.get("mag")?;
//! let options = ConvertOptions::new().version(Some("spec-1")); // this version holds numbers, and no text
//!
//! let conversion = Conversion::prepare(&archive, mag, &options)?;
//! assert_eq!(conversion.losses.len(), 1);
//! assert_eq!(conversion.losses[0].effect, Effect::Dropped);
//! assert_eq!(conversion.losses[0].what, Lost::Metadata("author".into()));
//! let error = conversion.refuse_losses().unwrap_err();
//! assert_eq!(error.hints(), [Hint::Allow(Effect::Dropped)]); // what would help, as data
//!
//! let options = options.allow(Effect::Dropped);
//! let path = directory.path().join("model.mag");
//! let report = Conversion::prepare(&archive, mag, &options)?.write_file(&path)?; // appears whole or not at all
//! assert_eq!(report.tensors, 1);
//! # assert!(path.exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Write a file tensor by tensor
//!
//! What is written need not be in memory. Anything that implements [`Source`](crate::io::Source) can be a tensor: a
//! part of another file, the memory of a device, or numbers that are made when they are asked for. It is read once, in
//! pieces of a few MiB, when its turn comes.
//!
//! ```
//! use std::ops::Range;
//! use tenfold::{ArchiveBuilder, Bytes, Result};
//! use tenfold::format::Registry;
//! use tenfold::io::Source;
//! use tenfold::model::DType;
//! use tenfold::ops::Conversion;
//!
//! /// The bytes 0, 1, 2, .., as many as there should be.
//! struct Counting(u64);
//!
//! impl Source for Counting {
//!     fn len(&self) -> u64 {
//!         self.0
//!     }
//!
//!     fn read(&self, range: Range<u64>) -> Result<Bytes> {
//!         Ok(range.map(|at| at.to_le_bytes()[0]).collect())
//!     }
//! }
//!
//! let mut builder = ArchiveBuilder::new();
//! for layer in 0..3 {
//!     builder.push(format!("layers.{layer}"), DType::U8, &[100, 1000], Counting(100_000))?;
//! }
//! let conversion = Conversion::prepare(&builder.finish(), Registry::standard().get("safetensors")?, &Default::default())?;
//! # let mut output = tenfold::io::MemoryOutput::new();
//! conversion.write_to("layers.safetensors", &mut output)?; // or `write_file`, or `write_directory`
//! # Ok::<(), tenfold::Error>(())
//! ```
//!
//! # Add a format of your own
//!
//! A format is two functions: [`describe`](crate::format::Format::describe) says what is in a file and where, and
//! [`plan`](crate::format::Format::plan) says which bytes a file consists of. Neither moves tensor data. Every number of a file
//! goes through the checked [`Reader`](crate::io::Reader). With an entry in a [`Registry`](crate::format::Registry), the format
//! is detected, converted from and to every other, verified and hashed like those of the library.
//!
//! ```
//! use tenfold::{Archive, Error, OpenOptions, Result};
//! use tenfold::format::{
//!     Capabilities, Context, Form, Format, Plan, PlanOptions, Profile, Registry, Segment, Spec, Want,
//! };
//! use tenfold::io::{MemoryOutput, Reader};
//! use tenfold::model::{DType, Manifest, Payload, TensorInfo};
//! use tenfold::ops::Conversion;
//!
//! /// One vector of f32: `VEC1`, the number of elements as u32, the elements. Little-endian.
//! struct Vector;
//!
//! const CAN: Capabilities = {
//!     let mut can = Capabilities::new();
//!     can.max_tensors = 1;
//!     can.min_rank = 1;
//!     can.max_rank = 1;
//!     can.dtype = |dtype| dtype == DType::F32;
//!     can
//! };
//! const WRITES: &[Profile] = &[Profile::new("1", "this example", CAN)];
//! static SPEC: Spec = {
//!     let mut spec = Spec::known("vec", "Vector", &["vec"], &[(0, b"VEC1")]);
//!     spec.reads = &["1"];
//!     spec.writes = WRITES;
//!     spec
//! };
//!
//! impl Format for Vector {
//!     fn spec(&self) -> &'static Spec {
//!         &SPEC
//!     }
//!
//!     fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
//!         let mut reader = Reader::new(cx.source(), "vec.truncated");
//!         reader.take(4, "magic")?;
//!         let elements = u64::from(reader.u32("elements")?);
//!         let data = reader.skip(elements * 4, "data")?; // located, not read
//!         if reader.remaining() > 0 {
//!             let at = reader.pos()..cx.source().len();
//!             return Err(Error::malformed("vec.trailing", "bytes after the last element").at(at));
//!         }
//!         let mut manifest = Manifest::new("1");
//!         let mut tensor = TensorInfo::dense(cx.tensor_name(), DType::F32, vec![elements], Payload::main(data));
//!         tensor.set_unnamed(true); // the file has no place for a name
//!         manifest.tensors.push(tensor);
//!         Ok(manifest)
//!     }
//!
//!     fn plan(&self, what: &Manifest, options: &PlanOptions) -> Result<Plan> {
//!         let [tensor] = what.tensors.as_slice() else {
//!             return Err(Error::argument("a Vector file has one tensor"));
//!         };
//!         let elements = u32::try_from(tensor.elements().unwrap_or(u64::MAX))
//!             .map_err(|cause| Error::argument("too many elements").because(cause))?;
//!         let mut head = b"VEC1".to_vec();
//!         head.extend(elements.to_le_bytes());
//!         let data = Segment::Tensor {
//!             index: 0,
//!             part: 0,
//!             want: Want::Dense(Form::canonical(DType::F32)),
//!             codec: None,
//!             digest: None,
//!         };
//!         let segments = vec![Segment::Bytes(head), data];
//!         Ok(Plan::single(options.file_name.clone(), segments))
//!     }
//! }
//!
//! let registry = Registry::standard().with(&Vector);
//! let mut file = b"VEC1\x02\0\0\0".to_vec();
//! file.extend([0.5f32, -1.0].iter().flat_map(|number| number.to_le_bytes()));
//! let source = std::sync::Arc::new(tenfold::Bytes::from(file.clone()));
//! let archive = OpenOptions::new().registry(registry.clone()).read(source, Some("x.vec"))?;
//! assert_eq!(&archive.tensor("x")?.typed::<f32>()?[..], [0.5, -1.0]);
//!
//! // To another format and back: the same file.
//! let convert = |archive: &Archive, id: &str, name: &str| {
//!     let mut output = MemoryOutput::new();
//!     Conversion::prepare(archive, registry.get(id)?, &Default::default())?.write_to(name, &mut output)?;
//!     Ok::<_, Error>(output.into_files().remove(name).unwrap())
//! };
//! let other = Archive::from_bytes(convert(&archive, "ztensor", "x.zt")?)?;
//! assert_eq!(convert(&other, "vec", "x.vec")?, file);
//! # Ok::<(), tenfold::Error>(())
//! ```
