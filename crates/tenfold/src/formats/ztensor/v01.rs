//! Generation 0.1: the specification, with the `layout` field that its released packages added.

use alloc::borrow::Cow;

use crate::error::{Error, Result};
use crate::format::Context;
use crate::formats::ztensor::capability::{DEPTH_1, FIELDS_01, LAYOUT, LAYOUTS_01};
use crate::formats::ztensor::checksum::{Sum, checksum_text};
use crate::formats::ztensor::{names, read};
use crate::io::Reader;
use crate::model::{
    Codec, DType, Endian, Layout, Manifest, Metadata, Over, Packer, PairIndex, Pairs, Part,
    PartList, Payload, Role, SealedRange, Shape, SourceId, TensorInfo, Value,
};
use crate::prelude::*;
use crate::wire::cbor::{Decoder, Encoder, Key};

pub(super) const MAGIC: &[u8] = b"ZTEN0001";
pub(super) const ALIGN: u64 = 64;
/// Bytes of the keys that an entry must have, rounded down.
const MIN_ENTRY: usize = 32;
/// The magic, an empty index and its size.
const MIN_FILE: u64 = 17;

/// An element of the index: the fields of section 4 of the specification, and `layout`.
pub(super) struct Entry<'b> {
    pub(super) name: Cow<'b, str>,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) dtype: Cow<'b, str>,
    /// One of those that programs wrote; others are custom fields.
    pub(super) layout: Option<Cow<'b, str>>,
    pub(super) shape: Shape,
    pub(super) encoding: Cow<'b, str>,
    pub(super) data_endianness: Option<Cow<'b, str>>,
    pub(super) checksum: Option<Cow<'b, str>>,
    pub(super) custom: Cow<'b, Metadata>,
}

impl<'b> Entry<'b> {
    fn parse(cbor: &mut Decoder<'b>, cx: &mut Context<'_>) -> Result<(Self, Range<u64>)> {
        let from = cbor.pos();
        let (mut name, mut offset, mut size, mut dtype) = (None, None, None, None);
        let (mut layout, mut shape, mut encoding) = (None, None, None);
        let (mut data_endianness, mut checksum) = (None, None);
        let mut custom: Option<Packer> = None;
        cbor.fields("an entry of the index", &FIELDS_01, |cbor, key| {
            match key {
                Key::Field(0) => name = Some(cbor.text("name")?),
                Key::Field(1) => offset = Some(cbor.unsigned("offset")?),
                Key::Field(2) => size = Some(cbor.unsigned("size")?),
                Key::Field(3) => dtype = Some(cbor.text("dtype")?),
                Key::Field(4) => match cbor.take_text()? {
                    Some(text) if LAYOUTS_01.contains(&&*text) => layout = Some(text),
                    other => {
                        let custom = custom.get_or_insert_with(Packer::map);
                        custom.key(LAYOUT);
                        match other {
                            Some(text) => custom.str(&text),
                            None => cbor.pack(custom)?,
                        }
                    }
                },
                Key::Field(5) => shape = Some(read::shape(cbor, cx)?),
                Key::Field(6) => encoding = Some(cbor.text("encoding")?),
                Key::Field(7) => {
                    data_endianness = read::optional_text(cbor, cx, "data_endianness")?;
                }
                Key::Field(_) => checksum = checksum_text(cbor, cx, "checksum")?,
                Key::Other(key) => {
                    let custom = custom.get_or_insert_with(Packer::map);
                    custom.key(&key);
                    cbor.pack(custom)?;
                }
                Key::NotText => cbor.skip()?,
            }
            Ok(())
        })?;
        let at = from..cbor.pos();
        let entry = Self {
            name: read::required(name, "name", &at)?,
            offset: read::required(offset, "offset", &at)?,
            size: read::required(size, "size", &at)?,
            dtype: read::required(dtype, "dtype", &at)?,
            layout,
            shape: read::required(shape, "shape", &at)?,
            encoding: read::required(encoding, "encoding", &at)?,
            data_endianness,
            checksum,
            custom: Cow::Owned(
                custom
                    .map(Packer::into_map)
                    .as_ref()
                    .map_or_else(Metadata::new, Metadata::from),
            ),
        };
        Ok((entry, at))
    }

    /// Writes the fields in the order of the released packages.
    pub(super) fn encode(&self, cbor: &mut Encoder) {
        let optional = [
            ("layout", &self.layout),
            ("data_endianness", &self.data_endianness),
            ("checksum", &self.checksum),
        ];
        let present = optional.iter().filter(|(_, value)| value.is_some()).count();
        let put = |cbor: &mut Encoder, (key, value): (&str, &Option<Cow<'_, str>>)| {
            if let Some(value) = value {
                cbor.text(key).text(value);
            }
        };
        let [layout, data_endianness, checksum] = optional;
        cbor.map(6 + present + self.custom.len());
        cbor.text("name").text(&self.name);
        cbor.text("offset").unsigned(self.offset);
        cbor.text("size").unsigned(self.size);
        cbor.text("dtype").text(&self.dtype);
        put(cbor, layout);
        cbor.text("shape").numbers(&self.shape);
        cbor.text("encoding").text(&self.encoding);
        put(cbor, data_endianness);
        put(cbor, checksum);
        let mut custom: Vec<_> = self.custom.iter().collect();
        custom.sort_by_key(|(key, _)| *key);
        for (key, value) in custom {
            cbor.text(key).value(value);
        }
    }
}

pub(super) fn describe(cx: &mut Context<'_>) -> Result<Manifest> {
    let source = cx.source();
    let len = source.len();
    if len < MIN_FILE {
        let message = format!("{len} bytes, the smallest file has {MIN_FILE}: it is truncated");
        return Err(Error::malformed("ztensor.truncated", message).at(0..len));
    }
    let size_at = len - 8;
    let size = Reader::over(source, size_at..len, "ztensor.truncated").u64("index size")?;
    let Some(start) = size_at
        .checked_sub(size)
        .filter(|&start| size > 0 && start >= 8)
    else {
        let message = format!(
            "the last 8 bytes give the index {size} bytes, there is room for 1 to {}: the file is \
             truncated or damaged",
            size_at - 8
        );
        return Err(Error::malformed("ztensor.index", message).at(size_at..len));
    };
    let index = read::index(cx, start..size_at)?;
    let mut manifest = Manifest::new("0.1");
    manifest.region(0..8, "magic");
    manifest.region(start..size_at, "index");
    manifest.region(size_at..len, "index size");
    let mut cbor = Decoder::new(&index, start, &read::RULES, DEPTH_1);
    let room = cbor.room(MIN_ENTRY);
    let mut blobs = Vec::new();
    let mut names = Names::default();
    let mut tensors = Vec::with_capacity(room);
    blobs.reserve(room);
    cbor.array("the index", |cbor| {
        let (entry, at) = Entry::parse(cbor, cx)?;
        if !names.is_new(entry.name.clone()) {
            let message = format!("two tensors are named {:?}", entry.name);
            return Err(Error::malformed("ztensor.duplicate", message).at(at));
        }
        let range = read::place(entry.offset, entry.size, ALIGN, start, &at)
            .map_err(|error| error.in_tensor(&entry.name))?;
        blobs.push(read::Blob {
            file: 0,
            range: range.clone(),
            at: at.clone(),
        });
        let tensor = Reading {
            cx,
            manifest: &mut manifest,
            range,
            at,
        }
        .tensor(entry)?;
        tensors.push(tensor);
        Ok(())
    })?;
    manifest.tensors = tensors.into();
    cbor.finish()?;
    read::check_overlaps(blobs)?;
    Ok(manifest)
}

/// The names so far. Most writers sort them, and then the last one is enough to know that the next is new.
#[derive(Default)]
struct Names<'b> {
    rising: Vec<Cow<'b, str>>,
    others: LookupMap<Cow<'b, str>, ()>,
}

impl<'b> Names<'b> {
    /// Takes a name in, and says whether it is new.
    fn is_new(&mut self, name: Cow<'b, str>) -> bool {
        if self.others.is_empty() {
            if self.rising.last().is_none_or(|last| *last < name) {
                self.rising.push(name);
                return true;
            }
            let rising = self.rising.drain(..);
            self.others = rising.map(|name| (name, ())).collect();
        }
        self.others.insert(name, ()).is_none()
    }
}

/// What an entry is turned into a tensor with.
struct Reading<'r, 'c> {
    cx: &'r mut Context<'c>,
    manifest: &'r mut Manifest,
    /// Its data.
    range: Range<u64>,
    /// Its entry.
    at: Range<u64>,
}

impl Reading<'_, '_> {
    fn tensor(mut self, entry: Entry<'_>) -> Result<TensorInfo> {
        let dtype = names::from_01(&entry.dtype);
        let within = |error: Error| error.in_tensor(&entry.name);
        let want = match dtype {
            Some(dtype) => read::sound_dense_len(dtype, &entry.shape, &self.at),
            None => read::elements(&entry.shape, &self.at),
        };
        let want = want.map_err(within)?;
        let found = match dtype {
            Some(dtype) => self.layout(&entry, dtype, want),
            None => Err(self.unsupported("ztensor.dtype", "dtype", &entry.dtype)),
        };
        let dtype = dtype.unwrap_or(DType::UNKNOWN);
        let mut info = TensorInfo::new(entry.name, dtype, entry.shape, Layout::RowMajor);
        info.metadata = entry.custom.into_owned();
        match found {
            Ok((layout, parts)) => (info.layout, info.parts) = (layout, parts),
            Err(defect) => {
                let part = Part::new(Role::Values, dtype, Payload::main(self.range));
                let encoding = read::listed_encoding(Some(&entry.encoding));
                let sum = Sum::listed(entry.checksum.as_deref(), false);
                info.parts = sum.on(part, encoding).into();
                info.defect = Some(defect);
            }
        }
        Ok(info)
    }

    fn unsupported(&self, rule: &'static str, field: &str, value: &str) -> Error {
        Error::unsupported(rule, format!("{field} {value:?} is not known")).at(self.at.clone())
    }

    fn layout(&mut self, entry: &Entry<'_>, dtype: DType, want: u64) -> Result<(Layout, PartList)> {
        let raw = match &*entry.encoding {
            "raw" => true,
            "zstd" => false,
            other => return Err(self.unsupported("ztensor.encoding", "encoding", other)),
        };
        let endian = match entry.data_endianness.as_deref() {
            None | Some("little") => Endian::Little,
            // It speaks of uncompressed numbers of several bytes only.
            Some("big") if raw && dtype.swap_width() > 1 => Endian::Big,
            Some("big") => Endian::Little,
            Some(other) => {
                let message = format!("data_endianness is {other:?}, expected little or big");
                return Err(Error::malformed("ztensor.endianness", message).at(self.at.clone()));
            }
        };
        let sum = Sum::parse(self.cx, entry.checksum.as_deref(), false, &self.at)?;
        if let Some(custom) = entry.custom.get(LAYOUT) {
            self.custom_layout(&entry.name, custom, raw, want)?;
        }
        let sparse = match entry.layout.as_deref() {
            None | Some("dense") => return self.dense(dtype, raw, endian, want, sum),
            Some(sparse) => sparse,
        };
        if !raw || endian == Endian::Big {
            let what = if raw { "big-endian" } else { "compressed" };
            let message = format!("{what} {sparse} data: no program gives it a meaning");
            return Err(Error::unsupported("ztensor.layout", message).at(self.at.clone()));
        }
        match sparse {
            "sparsecoo" => self.coo(dtype, &entry.shape, sum),
            _ => self.csr(dtype, &entry.shape, sum),
        }
    }

    /// A `layout` that no program wrote is a custom field, and the specification knows dense tensors only. It may have
    /// meant something all the same where the data is not as long as that of a dense tensor.
    fn custom_layout(&mut self, name: &str, layout: &Value, raw: bool, want: u64) -> Result<()> {
        let shown = match layout {
            Value::Str(text) => format!("layout {text:?}"),
            _ => "a layout that is not text".into(),
        };
        let known = LAYOUTS_01.join(", ");
        let size = self.range.end - self.range.start;
        if raw && size != want {
            let message = format!(
                "{shown} is not known ({known} are), and {size} bytes are not the {want} of a dense tensor"
            );
            return Err(Error::unsupported("ztensor.layout", message).at(self.at.clone()));
        }
        let message = format!(
            "tensor {name:?} has {shown}, programs write {known}: kept as a custom field, and read as dense"
        );
        self.cx.warn("ztensor.layout", self.at.clone(), message)
    }

    fn dense(
        &self,
        dtype: DType,
        raw: bool,
        endian: Endian,
        want: u64,
        sum: Sum,
    ) -> Result<(Layout, PartList)> {
        let range = self.range.clone();
        let size = range.end - range.start;
        let payload = if raw {
            if size != want {
                let message = format!("size is {size}, the shape needs {want} bytes");
                return Err(Error::malformed("ztensor.size", message).at(self.at.clone()));
            }
            Payload::main(range)
        } else {
            read::check_ratio(size, want, &range)?;
            let codec = Codec::Zstd { level: 0 };
            Payload::Encoded {
                source: SourceId::MAIN,
                range,
                codec,
                len: want,
            }
        };
        let part = Part {
            endian,
            ..Part::new(Role::Values, dtype, payload)
        };
        Ok((Layout::RowMajor, sum.on(part, None).into()))
    }

    /// Records of an index for each dimension and a value.
    fn coo(&self, dtype: DType, shape: &[u64], sum: Sum) -> Result<(Layout, PartList)> {
        let record = 8 * shape.len() as u64 + dtype.swap_width() as u64;
        let size = self.range.end - self.range.start;
        if shape.is_empty() || !size.is_multiple_of(record) {
            return self.broken(format!("{size} bytes are not records of {record}"));
        }
        let payload = Payload::main(self.range.clone());
        let part = sum.on(Part::new(Role::Values, dtype, payload), None);
        let pairs = Pairs::new(size / record, PairIndex::Axes);
        Ok((pairs.into(), part.into()))
    }

    /// Where rows begin, then columns, then values, all in one piece of data.
    fn csr(&mut self, dtype: DType, shape: &[u64], mut sum: Sum) -> Result<(Layout, PartList)> {
        let &[rows, _] = shape else {
            return self.broken(format!("rows of a tensor of {} dimensions", shape.len()));
        };
        let size = self.range.end - self.range.start;
        let width = dtype.swap_width() as u64;
        let starts = rows.checked_add(1).and_then(|n| n.checked_mul(8));
        let entries = starts.and_then(|starts| size.checked_sub(starts));
        let (Some(starts), Some(entries)) = (starts, entries.filter(|len| len % (8 + width) == 0))
        else {
            return self.broken(format!("{size} bytes are not the entries of {rows} rows"));
        };
        let nnz = entries / (8 + width);
        let indices_at = self.range.start + starts;
        let values_at = indices_at + nnz * 8;
        let part = |role, dtype, range| Part::new(role, dtype, Payload::main(range));
        if let Some(checksum) = sum.checksum.take() {
            // It covers the three parts together.
            debug_assert_eq!(checksum.over, Over::Stored);
            self.manifest.sealed.push(SealedRange {
                source: SourceId::MAIN,
                range: self.range.clone(),
                checksum,
                what: "the data of a sparse matrix".into(),
            });
        }
        let parts = vec![
            // One that is not verified covers them too, and is listed with the first.
            sum.on(
                part(Role::Indptr, DType::U64, self.range.start..indices_at),
                None,
            ),
            part(Role::Indices, DType::U64, indices_at..values_at),
            part(Role::Values, dtype, values_at..self.range.end),
        ];
        Ok((Layout::Csr { nnz }, parts.into()))
    }

    fn broken<T>(&self, message: String) -> Result<T> {
        Err(Error::malformed("ztensor.layout", message).at(self.at.clone()))
    }
}
