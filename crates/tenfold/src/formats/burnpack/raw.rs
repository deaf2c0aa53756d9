//! What is in a `.bpk` file, as it is on disk: `parse` and `encode` of every structure side by side.

use alloc::borrow::Cow;

use super::{BOOL_STORES, FLEX32, MAGIC, MAX_TENSORS, NUMBERS, Scheme};
use crate::error::{Error, Result};
use crate::io::Reader;
use crate::model::{DType, Map, Metadata, Packer, Value};
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
pub struct Header {
    /// Bytes of CBOR.
    pub metadata_size: u32,
}

impl Header {
    /// Bytes of the header.
    pub const LEN: u64 = 10;

    /// Reads magic, version and size.
    pub fn parse(r: &mut Reader<'_>) -> Result<Self> {
        let magic = r.array::<4>("magic")?;
        if magic != *MAGIC {
            let shown = magic.escape_ascii();
            let message = match magic == *b"BURN" {
                true => "the magic is BURN; Burnpack begins with the bytes NRUB".into(),
                false => format!("the magic is \"{shown}\", not NRUB"),
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

    /// Writes magic, version and the size of the CBOR.
    pub fn encode(cbor: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let size = u32::try_from(cbor.len())
            .ok()
            .filter(|&size| size <= MAX_METADATA);
        let size = size.ok_or_else(|| {
            let message = format!(
                "{} bytes of metadata, readers take at most {MAX_METADATA}",
                cbor.len()
            );
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
pub struct Root {
    /// The tensors, in the order of the map.
    pub tensors: Vec<Descriptor>,
    /// What the file says about itself: text.
    pub metadata: Metadata,
    /// Named numbers; `None` where the key is not there.
    pub scalars: Option<Map>,
}

/// A tensor of the map.
#[derive(Clone, Debug, PartialEq)]
pub struct Descriptor {
    /// The key.
    pub name: String,
    /// The type of the elements as they are stored.
    pub dtype: StoredType,
    /// The dimensions, outermost first.
    pub shape: Vec<u64>,
    /// The bytes, from the beginning of the data.
    pub data_offsets: Range<u64>,
    /// Burn's id of the parameter.
    pub param_id: Option<u64>,
    /// Where the description is in the file. Not written.
    pub at: Range<u64>,
}

/// Takes the tensors of the map one by one: there may be many.
pub(super) trait Tensors {
    /// So many will come, as far as there is room for them in the file.
    fn reserve(&mut self, count: usize);

    /// The next one.
    fn take(&mut self, tensor: Descriptor) -> Result<()>;
}

impl Tensors for Vec<Descriptor> {
    fn reserve(&mut self, count: usize) {
        self.reserve_exact(count);
    }

    fn take(&mut self, tensor: Descriptor) -> Result<()> {
        self.push(tensor);
        Ok(())
    }
}

impl Root {
    /// In the order in which they are written.
    const KEYS: [&str; 3] = ["tensors", "metadata", "scalars"];

    /// Reads the map, which is at `base` of its file, and says where it ends.
    pub fn parse(cbor: &[u8], base: u64) -> Result<(Self, u64)> {
        let mut tensors = Vec::new();
        let (root, end) = Self::parse_into(&mut tensors, cbor, base)?;
        Ok((Self { tensors, ..root }, end))
    }

    /// The same, with the tensors given to `tensors`.
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
            Key::Other(_) => cbor.skip(),
        })?;
        let end = cbor.pos();
        match count {
            Some(_) => Ok((root, end)),
            None => Err(missing("the metadata", "tensors").at(base..end)),
        }
    }

    /// Writes the map. Keys of maps are in the order of their bytes, whatever the order here.
    pub fn encode(&self) -> Vec<u8> {
        let mut tensors: Vec<_> = self.tensors.iter().collect();
        tensors.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        let metadata = sorted(self.metadata.iter());
        let scalars = self.scalars.as_ref().map(|scalars| sorted(scalars.iter()));
        let scalars = scalars.unwrap_or_default();
        let mut cbor = Encoder::new();
        cbor.map(1 + usize::from(!metadata.is_empty()) + usize::from(!scalars.is_empty()));
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
        let parsed = cbor.fields("the description", &Self::KEYS, |cbor, key| {
            match key {
                Key::Field(0) => dtype = Some(StoredType::parse(cbor)?),
                Key::Field(1) => shape = Some(numbers(cbor, "shape")?),
                Key::Field(2) => data_offsets = Some(parse_offsets(cbor)?),
                Key::Field(_) if cbor.take_null()? => {}
                Key::Field(_) => param_id = Some(cbor.unsigned("param_id")?),
                Key::Other(_) => cbor.skip()?,
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
            at,
            name: name.into_owned(),
        })
    }

    /// Bytes of an entry at least: the names of the three fields that it must have, and a byte for everything else.
    const MIN: usize = 33;

    /// In the order in which they are written.
    const KEYS: [&str; 4] = ["dtype", "shape", "data_offsets", "param_id"];

    fn encode(&self, cbor: &mut Encoder) {
        cbor.map(3 + usize::from(self.param_id.is_some()));
        cbor.text("dtype");
        self.dtype.encode(cbor);
        cbor.text("shape").numbers(&self.shape);
        let Range { start, end } = self.data_offsets;
        cbor.text("data_offsets").numbers(&[start, end]);
        if let Some(id) = self.param_id {
            cbor.text("param_id").unsigned(id);
        }
    }
}

/// The type of a tensor's elements as they are stored.
#[derive(Clone, Debug, PartialEq)]
pub enum StoredType {
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
            return Self::named(&name).ok_or_else(|| unknown(&name).at(at..cbor.pos()));
        }
        let mut found = None;
        cbor.map("dtype", |cbor, key| {
            found = Some(match &*key {
                _ if found.is_some() => {
                    let message = "a dtype with two entries, one is expected";
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
                    cbor.open_map("the quantization scheme", |cbor, key| {
                        scheme.key(&key);
                        cbor.pack(&mut scheme)
                    })?;
                    let scheme = Scheme::from_value(&scheme.into_map().into());
                    Self::Quantized(Box::new(scheme.map_err(|message| {
                        Error::malformed("burnpack.quant", message).at(at..cbor.pos())
                    })?))
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
    pub fn is_map(&self) -> bool {
        matches!(
            self,
            Self::BoolStore(_) | Self::Quantized(_) | Self::QuantizedOlder(_)
        )
    }

    /// The type of the numbers in the file; `None` where values are quantized.
    pub fn number(&self) -> Option<DType> {
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
        let message = format!("data_offsets are {count} numbers, 2 are expected");
        return Err(Error::malformed(SCHEMA, message).at(at..cbor.pos()));
    }
    match start <= end {
        true => Ok(start..end),
        false => {
            let message = format!("data ends at offset {end}, before it begins at {start}");
            Err(Error::malformed("burnpack.offsets", message).at(at..cbor.pos()))
        }
    }
}

fn numbers(cbor: &mut Decoder<'_>, field: &str) -> Result<Vec<u64>> {
    let mut numbers = Vec::with_capacity(cbor.room(1));
    cbor.array(field, |cbor| {
        numbers.push(cbor.unsigned(field)?);
        Ok(())
    })?;
    Ok(numbers)
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
        "the dtype {name:?} is not known; there are {}, {FLEX32}, Bool and QFloat",
        known.join(", ")
    );
    Error::malformed("burnpack.dtype", message)
}
