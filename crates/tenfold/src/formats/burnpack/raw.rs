//! What is in a `.bpk` file, as it is on disk: `parse` and `encode` of every structure side by side.

use alloc::borrow::Cow;

use bytes::Bytes;

use super::{BOOL_STORES, FLEX32, MAGIC, MAX_RANK, MAX_TENSORS, NUMBERS, Scheme};
use crate::error::{Error, Result};
use crate::io::Reader;
use crate::model::{DType, Encoding, Map, Metadata, Packer, Shape, Value};
use crate::prelude::*;
use crate::wire::cbor::{Decoder, Encoder, Key, Rules};

/// The rule under which missing bytes are reported.
pub(super) const TRUNCATED: &str = "burnpack.truncated";
const SCHEMA: &str = "burnpack.schema";

static RULES: Rules = Rules {
    syntax: "burnpack.cbor",
    depth: "burnpack.depth",
    form: "burnpack.cbor",
    duplicate: "burnpack.duplicate",
    schema: SCHEMA,
};

/// Levels of nested CBOR that readers take.
const MAX_DEPTH: usize = 128;
/// Bytes of CBOR that readers take.
const MAX_METADATA: u32 = 100 << 20;

/// What comes before the CBOR.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Header {
    /// Bytes of CBOR.
    pub(crate) metadata_size: u32,
}

impl Header {
    /// Bytes of the header.
    pub(crate) const LEN: u64 = 10;

    /// Reads magic, version and size.
    pub(crate) fn parse(r: &mut Reader<'_>) -> Result<Self> {
        let magic = r.array::<4>("magic")?;
        if magic != *MAGIC {
            let shown = magic.escape_ascii();
            let message = if magic == *b"BURN" {
                "the magic is BURN; Burnpack begins with the bytes NRUB".into()
            } else {
                format!("the magic is \"{shown}\", not NRUB")
            };
            return Err(Error::malformed("burnpack.magic", message).at(0..4));
        }
        let version = r.u16("version")?;
        if version != 1 {
            let message = format!("version {version}, expected 1");
            return Err(Error::unsupported("burnpack.version", message).at(4..6));
        }
        let metadata_size = r.u32("metadata_size")?;
        if metadata_size > MAX_METADATA {
            let message =
                format!("{metadata_size} bytes of metadata, at most {MAX_METADATA} are read");
            return Err(Error::limit("burnpack.limit", message).at(6..10));
        }
        Ok(Self { metadata_size })
    }

    /// Writes magic, version and the size of the CBOR, which is `len` bytes long.
    pub(crate) fn encode(len: u64, out: &mut Vec<u8>) -> Result<()> {
        let size = u32::try_from(len).ok().filter(|&size| size <= MAX_METADATA);
        let size = size.ok_or_else(|| {
            let message = format!("{len} bytes of metadata, readers take at most {MAX_METADATA}");
            Error::unsupported("burnpack.limit", message)
        })?;
        out.extend(MAGIC);
        out.extend(1u16.to_le_bytes());
        out.extend(size.to_le_bytes());
        Ok(())
    }
}

/// The CBOR map.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Root {
    /// The tensors, in the order of the map.
    pub(crate) tensors: Vec<Descriptor>,
    /// What the file says about itself: text.
    pub(crate) metadata: Metadata,
    /// Named numbers; `None` where the key is not there.
    pub(crate) scalars: Option<Map>,
    /// Entries that are not known here: their keys, and where they are in the file.
    pub(crate) others: Vec<(String, Range<u64>)>,
}

/// A tensor of the map.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Descriptor {
    /// The key.
    pub(crate) name: String,
    /// The type of the elements as they are stored.
    pub(crate) dtype: StoredType,
    /// The dimensions, outermost first.
    pub(crate) shape: Shape,
    /// The bytes, from the beginning of the data.
    pub(crate) data_offsets: Range<u64>,
    /// Burn's id of the parameter.
    pub(crate) param_id: Option<u64>,
    /// Fields that are not known here.
    pub(crate) others: Option<Box<Others>>,
    /// Where the description is in the file. Not written.
    pub(crate) at: Range<u64>,
}

/// Takes the tensors of the map one by one: there may be many.
pub(super) trait Tensors {
    /// So many will come, as far as there is room for them in the file.
    fn reserve(&mut self, count: usize);

    /// The next one.
    fn take(&mut self, tensor: Descriptor) -> Result<()>;
}

impl Root {
    /// In the order in which they are written.
    const KEYS: [&str; 3] = ["tensors", "metadata", "scalars"];

    /// Reads the map, which is at `base` of its file, and says where it ends. The tensors are given to `tensors`.
    pub(super) fn parse_into(
        tensors: &mut impl Tensors,
        cbor: &[u8],
        base: u64,
    ) -> Result<(Self, u64)> {
        let mut cbor = Decoder::new(cbor, base, &RULES, MAX_DEPTH).lenient();
        let mut root = Self::default();
        let mut count = None;
        cbor.fields("the metadata", &Self::KEYS, |cbor, key| match key {
            Key::Field(0) => {
                let count = count.insert(0);
                tensors.reserve(cbor.room(Descriptor::MIN));
                cbor.map("tensors", |cbor, name| {
                    if *count == MAX_TENSORS {
                        let message =
                            format!("more than {MAX_TENSORS} tensors, which no reader takes");
                        return Err(
                            Error::limit("burnpack.limit", message).at(cbor.pos()..cbor.pos() + 1)
                        );
                    }
                    *count += 1;
                    tensors.take(Descriptor::parse(cbor, name)?)
                })
            }
            Key::Field(1) => {
                let mut metadata = Packer::map();
                cbor.map("metadata", |cbor, key| {
                    let value = cbor.text(&format!("metadata {key:?}"))?;
                    metadata.key(&key);
                    metadata.str(&value);
                    Ok(())
                })?;
                root.metadata = Metadata::from(&metadata.into_map());
                Ok(())
            }
            Key::Field(_) => {
                let mut scalars = Packer::map();
                cbor.map("scalars", |cbor, key| {
                    let value = parse_scalar(cbor, &key)?;
                    scalars.key(&key);
                    scalars.value(&value);
                    Ok(())
                })?;
                root.scalars = Some(scalars.into_map());
                Ok(())
            }
            Key::Other(key) => root.keep(cbor, &key),
            Key::NotText => root.keep(cbor, "a key that is not text"),
        })?;
        let end = cbor.pos();
        match count {
            Some(_) => Ok((root, end)),
            None => Err(missing("the metadata", "tensors").at(base..end)),
        }
    }

    /// Passes over an entry that is not known here.
    fn keep(&mut self, cbor: &mut Decoder<'_>, key: &str) -> Result<()> {
        let (at, _) = cbor.skip_entry()?;
        self.others.push((key.to_owned(), at..cbor.pos()));
        Ok(())
    }

    /// Writes the map. Keys of maps are in the order of their bytes, whatever the order here. What is not known here
    /// comes last and is not written, only counted: it is elsewhere.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut tensors: Vec<_> = self.tensors.iter().collect();
        tensors.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        let metadata = sorted(self.metadata.iter());
        let scalars = self.scalars.as_ref().map(|scalars| sorted(scalars.iter()));
        let scalars = scalars.unwrap_or_default();
        let mut cbor = Encoder::new();
        let known = 1 + usize::from(!metadata.is_empty()) + usize::from(!scalars.is_empty());
        cbor.map(known + self.others.len());
        cbor.text("tensors").map(tensors.len());
        for tensor in tensors {
            cbor.text(&tensor.name);
            tensor.encode(&mut cbor);
        }
        if !metadata.is_empty() {
            cbor.text("metadata").map(metadata.len());
        }
        for (key, value) in metadata {
            cbor.text(key).value(value);
        }
        if !scalars.is_empty() {
            cbor.text("scalars").map(scalars.len());
        }
        for (key, value) in scalars {
            let kind = scalar_kind(&value);
            cbor.text(key).map(1).text(kind).value(&value);
        }
        cbor.into_bytes()
    }
}

impl Descriptor {
    fn parse(cbor: &mut Decoder<'_>, name: Cow<'_, str>) -> Result<Self> {
        let from = cbor.pos();
        let mut dtype = None;
        let mut shape = None;
        let mut data_offsets = None;
        let mut param_id = None;
        let mut others: Option<Box<Others>> = None;
        let parsed = cbor.fields("the description", &Self::KEYS, |cbor, key| {
            match key {
                Key::Field(0) => dtype = Some(StoredType::parse(cbor)?),
                Key::Field(1) => shape = Some(self::shape(cbor)?),
                Key::Field(2) => data_offsets = Some(parse_offsets(cbor)?),
                Key::Field(_) if cbor.take_null()? => {}
                Key::Field(_) => param_id = Some(cbor.unsigned("param_id")?),
                Key::Other(_) | Key::NotText => others.get_or_insert_default().take(cbor)?,
            }
            Ok(())
        });
        parsed.map_err(|error| error.in_tensor(&name))?;
        let at = from..cbor.pos();
        let need = |field| {
            let error = missing("the description", field).at(at.clone());
            error.in_tensor(&name)
        };
        Ok(Self {
            dtype: dtype.ok_or_else(|| need("dtype"))?,
            shape: shape.ok_or_else(|| need("shape"))?,
            data_offsets: data_offsets.ok_or_else(|| need("data_offsets"))?,
            param_id,
            others,
            at,
            name: name.into_owned(),
        })
    }

    /// Bytes of an entry at least: the names of the three fields that it must have, and a byte for everything else.
    const MIN: usize = 33;

    /// In the order in which they are written.
    const KEYS: [&str; 4] = ["dtype", "shape", "data_offsets", "param_id"];

    fn encode(&self, cbor: &mut Encoder) {
        let others = self.others.as_ref().map_or(0, |others| others.count);
        cbor.map(3 + usize::from(self.param_id.is_some()) + others);
        cbor.text("dtype");
        self.dtype.encode(cbor);
        cbor.text("shape").numbers(&self.shape);
        let Range { start, end } = self.data_offsets;
        cbor.text("data_offsets").numbers(&[start, end]);
        if let Some(id) = self.param_id {
            cbor.text("param_id").unsigned(id);
        }
        if let Some(others) = &self.others {
            cbor.encoded(&others.entries);
        }
    }
}

/// Fields of a description that are not known here, as they are encoded.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Others {
    count: usize,
    entries: Vec<u8>,
}

impl Others {
    /// The description is a map in a map in a map.
    const DEPTH: usize = MAX_DEPTH - 2;

    /// Takes the entry whose key has been read.
    fn take(&mut self, cbor: &mut Decoder<'_>) -> Result<()> {
        let (_, entry) = cbor.skip_entry()?;
        self.count += 1;
        self.entries.extend_from_slice(entry);
        Ok(())
    }

    /// What metadata has of them: one map, encoded, so that they cost what they cost in the file.
    pub(crate) fn to_value(&self) -> Value {
        let mut cbor = Encoder::new();
        cbor.map(self.count).encoded(&self.entries);
        Value::Encoded {
            encoding: Encoding::Cbor,
            bytes: Bytes::from(cbor.into_bytes()),
        }
    }

    /// From a map, encoded or not, that has none of the fields which are known.
    pub(crate) fn from_value(value: &Value) -> Option<Self> {
        let encoded = match value {
            Value::Encoded { encoding, bytes } if *encoding == Encoding::Cbor => bytes.clone(),
            Value::Map(_) if is_encodable(value) => {
                let mut cbor = Encoder::new();
                cbor.value(value);
                cbor.into_bytes().into()
            }
            _ => return None,
        };
        let mut cbor = Decoder::new(&encoded, 0, &RULES, Self::DEPTH).lenient();
        let mut others = Self::default();
        let read = cbor.fields("the fields", &Descriptor::KEYS, |cbor, key| match key {
            Key::Field(_) => Err(Error::malformed(SCHEMA, "a field that is known")),
            Key::Other(_) | Key::NotText => others.take(cbor),
        });
        (read.is_ok() && cbor.finish().is_ok()).then_some(others)
    }
}

/// Whether all of a value is here and can be CBOR.
fn is_encodable(value: &Value) -> bool {
    match value {
        Value::List(items) => items.iter().all(|item| is_encodable(&item)),
        Value::Map(map) => map.iter().all(|(_, value)| is_encodable(&value)),
        Value::Encoded { encoding, .. } => *encoding == Encoding::Cbor,
        Value::Empty(_) | Value::Elsewhere(_) => false,
        _ => true,
    }
}

/// The type of a tensor's elements as they are stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StoredType {
    /// Text: `"Bool"`, until 0.21.0-pre.2.
    Bool,
    /// A map: `{"Bool": "Native"}`, or `"U8"`, or `"U32"`.
    BoolStore(&'static str),
    /// `"Flex32"`: numbers of 32 bits that may be computed with in fewer.
    Flex32,
    /// The name of a number type.
    Number(DType),
    /// A map `{"QFloat": scheme}` in the spelling of Burn 0.22 and later.
    Quantized(Box<Scheme>),
    /// The same in the spelling of Burn 0.20 and 0.21.
    QuantizedOlder(Box<Scheme>),
}

impl StoredType {
    fn parse(cbor: &mut Decoder<'_>) -> Result<Self> {
        let at = cbor.pos();
        if let Some(name) = cbor.take_text()? {
            return Self::named(&name).ok_or_else(|| {
                let error = match &*name {
                    "QFloat" => Error::malformed(SCHEMA, "dtype QFloat is text, expected a map"),
                    name => unknown(name),
                };
                error.at(at..cbor.pos())
            });
        }
        cbor.text_or_map("dtype")?;
        let mut found = None;
        cbor.map("dtype", |cbor, key| {
            found = Some(match &*key {
                _ if found.is_some() => {
                    let message = "a dtype with two entries, expected one";
                    return Err(Error::malformed(SCHEMA, message).at(at..cbor.pos()));
                }
                "Bool" => {
                    let store = cbor.text("the store of bools")?;
                    let known = BOOL_STORES.iter().find(|known| **known == store);
                    let known = known.ok_or_else(|| {
                        let message = format!(
                            "bools stored as {store:?}, known are: {}",
                            BOOL_STORES.join(", ")
                        );
                        Error::malformed("burnpack.dtype", message).at(at..cbor.pos())
                    })?;
                    Self::BoolStore(known)
                }
                "QFloat" => {
                    let mut scheme = Packer::map();
                    cbor.fields("the quantization scheme", &[""; 0], |cbor, key| match key {
                        Key::Other(key) => {
                            scheme.key(&key);
                            cbor.pack(&mut scheme)
                        }
                        _ => cbor.skip(),
                    })?;
                    let scheme = Scheme::from_value(&scheme.into_map().into());
                    Self::Quantized(Box::new(scheme.map_err(|message| {
                        Error::malformed("burnpack.quant", message).at(at..cbor.pos())
                    })?))
                }
                other if Self::named(other).is_some() => {
                    let message = format!("dtype {other} is a map, expected text");
                    return Err(Error::malformed(SCHEMA, message).at(at..cbor.pos()));
                }
                other => return Err(unknown(other).at(at..cbor.pos())),
            });
            Ok(())
        })?;
        found.ok_or_else(|| Error::malformed(SCHEMA, "a dtype without an entry").at(at..cbor.pos()))
    }

    fn named(name: &str) -> Option<Self> {
        match name {
            "Bool" => Some(Self::Bool),
            FLEX32 => Some(Self::Flex32),
            name => {
                let known = NUMBERS.iter().find(|(known, _)| *known == name);
                known.map(|&(_, dtype)| Self::Number(dtype))
            }
        }
    }

    fn encode(&self, cbor: &mut Encoder) {
        match self {
            Self::Bool => cbor.text("Bool"),
            Self::BoolStore(store) => cbor.map(1).text("Bool").text(store),
            Self::Flex32 => cbor.text(FLEX32),
            Self::Number(dtype) => {
                let known = NUMBERS.iter().find(|(_, known)| known == dtype);
                cbor.text(known.map_or("", |(name, _)| name))
            }
            Self::Quantized(scheme) => cbor.map(1).text("QFloat").value(&scheme.to_value()),
            Self::QuantizedOlder(scheme) => {
                cbor.map(1).text("QFloat").value(&scheme.to_older_value())
            }
        };
    }

    /// Whether it is a map, which no release writes whose data follows the CBOR at once.
    pub(crate) fn is_map(&self) -> bool {
        matches!(
            self,
            Self::BoolStore(_) | Self::Quantized(_) | Self::QuantizedOlder(_)
        )
    }

    /// The type of the numbers in the file; `None` where values are quantized.
    pub(crate) fn number(&self) -> Option<DType> {
        match self {
            Self::Bool | Self::BoolStore("Native" | "U8") => Some(DType::BOOL),
            Self::BoolStore(_) => Some(DType::U32),
            Self::Flex32 => Some(DType::F32),
            Self::Number(dtype) => Some(*dtype),
            Self::Quantized(_) | Self::QuantizedOlder(_) => None,
        }
    }
}

fn parse_offsets(cbor: &mut Decoder<'_>) -> Result<Range<u64>> {
    let at = cbor.pos();
    let mut offsets = [0; 2];
    let mut count = 0;
    cbor.array("data_offsets", |cbor| {
        let number = cbor.unsigned("data_offsets")?;
        if let Some(offset) = offsets.get_mut(count) {
            *offset = number;
        }
        count += 1;
        Ok(())
    })?;
    let [start, end] = offsets;
    if count != 2 {
        let message = format!("data_offsets are {count} numbers, expected 2");
        return Err(Error::malformed(SCHEMA, message).at(at..cbor.pos()));
    }
    if start <= end {
        Ok(start..end)
    } else {
        let message = format!("data ends at offset {end}, before it begins at {start}");
        Err(Error::malformed("burnpack.offsets", message).at(at..cbor.pos()))
    }
}

fn shape(cbor: &mut Decoder<'_>) -> Result<Shape> {
    let mut shape = Shape::new();
    cbor.array("shape", |cbor| {
        let from = cbor.pos();
        shape.push(cbor.unsigned("shape")?);
        // Said before millions are kept only to be counted.
        if shape.len() > MAX_RANK {
            let message = format!("more than {MAX_RANK} dimensions");
            return Err(Error::limit("burnpack.limit", message).at(from..cbor.pos()));
        }
        Ok(())
    })?;
    Ok(shape)
}

/// A scalar: the widest value of its kind.
fn parse_scalar(cbor: &mut Decoder<'_>, name: &str) -> Result<Value> {
    let from = cbor.pos();
    let mut found = None;
    cbor.map(&format!("scalar {name:?}"), |cbor, kind| {
        let value = cbor.value()?;
        let value = match (&*kind, &value) {
            _ if found.is_some() => None,
            ("Int", Value::U64(_) | Value::I64(_)) => value.as_i64().map(Value::I64),
            ("UInt", Value::U64(number)) => Some(Value::U64(*number)),
            ("Float", Value::F32(number)) => Some(Value::F64((*number).into())),
            ("Float", Value::F64(_)) | ("Bool", Value::Bool(_)) => Some(value),
            _ => None,
        };
        found = Some(value.ok_or_else(|| {
            let message = format!(
                "scalar {name:?} is not one of: an Int of 64 bits, a UInt of 64 bits, a Float, a Bool"
            );
            Error::malformed("burnpack.scalar", message).at(from..cbor.pos())
        })?);
        Ok(())
    })?;
    found.ok_or_else(|| {
        let message = format!("scalar {name:?} has no value");
        Error::malformed("burnpack.scalar", message).at(from..cbor.pos())
    })
}

fn scalar_kind(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "Bool",
        Value::F32(_) | Value::F64(_) => "Float",
        Value::I8(_) | Value::I16(_) | Value::I32(_) | Value::I64(_) => "Int",
        _ => "UInt",
    }
}

fn sorted<'m, V>(entries: impl Iterator<Item = (&'m str, V)>) -> Vec<(&'m str, V)> {
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by(|(a, _), (b, _)| a.as_bytes().cmp(b.as_bytes()));
    entries
}

fn missing(what: &str, field: &str) -> Error {
    Error::malformed(SCHEMA, format!("{what} has no {field:?}"))
}

fn unknown(name: &str) -> Error {
    let known: Vec<_> = NUMBERS.iter().map(|(name, _)| *name).collect();
    let message = format!(
        "dtype {name:?} is not known; known are {}, {FLEX32}, Bool and QFloat",
        known.join(", ")
    );
    Error::malformed("burnpack.dtype", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Tensors for Vec<Descriptor> {
        fn reserve(&mut self, count: usize) {
            self.reserve_exact(count);
        }

        fn take(&mut self, tensor: Descriptor) -> Result<()> {
            self.push(tensor);
            Ok(())
        }
    }

    #[test]
    fn the_map_is_written_as_it_was_read() {
        let bytes =
            include_bytes!("../../../../../fixtures/burnpack/valid/v0230p1_record.bpk").as_slice();
        let (head, rest) = bytes.split_at(10);
        let size = u32::from_le_bytes(head[6..].try_into().unwrap());
        let cbor = &rest[..size as usize];
        let mut tensors = Vec::new();
        let (root, end) = Root::parse_into(&mut tensors, cbor, 10).unwrap();
        assert_eq!(end, 10 + u64::from(size));
        assert_eq!(Root { tensors, ..root }.encode(), cbor);
    }
}
