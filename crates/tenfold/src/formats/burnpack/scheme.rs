//! How Burn quantizes: the four spellings that releases have had for it, and the bytes it takes.
//!
//! Burn 0.20 and 0.21 say `{value, param, store, level, mode}`, Burn 0.22 and later `{value, store, mode, tensor, block}`.
//! The newer one says everything that the older one does, so that is what a scheme is held as.

mod arrangement;

pub(super) use arrangement::Arrangement;
#[cfg(feature = "burnpack")]
pub(super) use arrangement::dims;

use crate::model::{Metadata, Value};
use crate::prelude::*;

/// How the values of a tensor are quantized.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Scheme {
    /// What a code is.
    pub value: ValueType,
    /// How codes are stored.
    pub store: Store,
    /// How codes become numbers.
    pub mode: Mode,
    /// The type of the scale of the whole tensor. Without blocks there always is one, of `F32` unless told otherwise.
    pub tensor: Option<Scale>,
    /// Blocks with a scale each.
    pub block: Option<Block>,
}

/// What a code is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)] // Burn's names
pub enum ValueType {
    E2M1,
    E4M3,
    E5M2,
    Q2F,
    Q2S,
    Q4F,
    Q4S,
    Q8F,
    Q8S,
}

/// How codes are stored.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Store {
    /// A byte each.
    Native,
    /// Several in a byte, along this axis, counted from the innermost.
    PackedNative(u64),
    /// Several in a little-endian word of 32 bits, along this axis, counted from the innermost.
    PackedU32(u64),
}

/// How codes become numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// By a table, which is not in the file.
    Lookup,
    /// Multiplied by their scale.
    Symmetric,
}

/// The type of a scale.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)] // Burn's names
pub enum Scale {
    BF16,
    F16,
    F32,
    UE4M3,
    UE8M0,
}

/// Blocks of equal size with a scale each.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Block {
    /// The size along each of the last axes; along the others it is 1.
    pub size: Vec<u8>,
    /// The type of the scales.
    pub dtype: Scale,
}

const VALUES: &[(&str, ValueType, u32)] = &[
    ("Q8F", ValueType::Q8F, 8),
    ("Q8S", ValueType::Q8S, 8),
    ("E4M3", ValueType::E4M3, 8),
    ("E5M2", ValueType::E5M2, 8),
    ("Q4F", ValueType::Q4F, 4),
    ("Q4S", ValueType::Q4S, 4),
    ("E2M1", ValueType::E2M1, 4),
    ("Q2F", ValueType::Q2F, 2),
    ("Q2S", ValueType::Q2S, 2),
];

const SCALES: &[(&str, Scale, u64)] = &[
    ("F32", Scale::F32, 4),
    ("F16", Scale::F16, 2),
    ("BF16", Scale::BF16, 2),
    ("UE8M0", Scale::UE8M0, 1),
    ("UE4M3", Scale::UE4M3, 1),
];

/// Sizes that a block has room for; those that are not used are 1.
const BLOCK_AXES: usize = 5;

impl ValueType {
    /// Bits of a code.
    pub fn bits(self) -> u32 {
        VALUES
            .iter()
            .find(|row| row.1 == self)
            .map_or(8, |row| row.2)
    }

    fn name(self) -> &'static str {
        VALUES
            .iter()
            .find(|row| row.1 == self)
            .map_or("", |row| row.0)
    }
}

impl Scale {
    /// Bytes of a scale.
    pub fn bytes(self) -> u64 {
        SCALES
            .iter()
            .find(|row| row.1 == self)
            .map_or(4, |row| row.2)
    }

    fn name(self) -> &'static str {
        SCALES
            .iter()
            .find(|row| row.1 == self)
            .map_or("", |row| row.0)
    }

    fn from_value(value: &Value, field: &str) -> Result<Self, String> {
        let name = text(value, field)?;
        let known = SCALES.iter().find(|row| row.0 == name);
        known
            .map(|row| row.1)
            .ok_or_else(|| unknown(field, name, &names(SCALES.iter().map(|row| row.0))))
    }
}

impl Store {
    /// The axis along which codes are packed, counted from the innermost.
    pub fn axis(self) -> u64 {
        match self {
            Store::Native => 0,
            Store::PackedNative(axis) | Store::PackedU32(axis) => axis,
        }
    }

    fn from_value(value: &Value, older: bool) -> Result<Self, String> {
        match single(value) {
            Some(("PackedNative", axis)) => Ok(Store::PackedNative(number(&axis, "store")?)),
            Some(("PackedU32", axis)) => Ok(Store::PackedU32(number(&axis, "store")?)),
            Some((other, _)) => Err(unknown("store", other, "PackedNative, PackedU32")),
            None => match text(value, "store")? {
                "Native" => Ok(Store::Native),
                // The spelling of 0.20.0-pre.6.
                "U32" if older => Ok(Store::PackedU32(0)),
                other => Err(unknown("store", other, "Native")),
            },
        }
    }

    fn to_value(self) -> Value {
        let packed = |name: &str, axis| map([(name, Value::U64(axis))]);
        match self {
            Store::Native => Value::Str("Native".into()),
            Store::PackedNative(axis) => packed("PackedNative", axis),
            Store::PackedU32(axis) => packed("PackedU32", axis),
        }
    }
}

impl Scheme {
    /// The scheme that a map of any release means; else what is wrong with it.
    pub fn from_value(value: &Value) -> Result<Self, String> {
        let Value::Map(scheme) = value else {
            return Err("a quantization scheme that is not a map".into());
        };
        let scheme = Metadata::from(scheme);
        // Newer readers pass over these two keys, and take the tensor for something else.
        let older = scheme.get("level").is_some() || scheme.get("param").is_some();
        let field = |key: &str| {
            scheme
                .get(key)
                .ok_or_else(|| format!("a quantization scheme without {key:?}"))
        };
        let name = text(field("value")?, "value")?;
        let value = VALUES.iter().find(|row| row.0 == name);
        let value =
            value.ok_or_else(|| unknown("value", name, &names(VALUES.iter().map(|row| row.0))))?;
        let mode = match text(field("mode")?, "mode")? {
            "Symmetric" => Mode::Symmetric,
            "Lookup" if !older => Mode::Lookup,
            other => return Err(unknown("mode", other, "Symmetric")),
        };
        let store = Store::from_value(field("store")?, older)?;
        let (tensor, block) = match older {
            true => older_scales(
                field("level")?,
                Scale::from_value(field("param")?, "param")?,
            )?,
            false => newer_scales(scheme.get("tensor"), scheme.get("block"))?,
        };
        Ok(Self {
            value: value.1,
            store,
            mode,
            tensor,
            block,
        })
    }

    /// The map that Burn 0.22 and later write.
    pub fn to_value(&self) -> Value {
        let scale = |scale: Option<Scale>| match scale {
            Some(scale) => Value::Str(scale.name().into()),
            None => Value::Null,
        };
        let block = match &self.block {
            Some(block) => map([
                ("size", block.size_value()),
                ("dtype", Value::Str(block.dtype.name().into())),
            ]),
            None => Value::Null,
        };
        map([
            ("value", Value::Str(self.value.name().into())),
            ("store", self.store.to_value()),
            ("mode", Value::Str(self.mode_name().into())),
            ("tensor", scale(self.tensor)),
            ("block", block),
        ])
    }

    /// The map that Burn 0.20 and 0.21 write. Blocks with a scale above them have no place in it.
    pub fn to_older_value(&self) -> Value {
        let (param, level) = match &self.block {
            Some(block) => (block.dtype, map([("Block", block.size_value())])),
            None => (
                self.tensor.unwrap_or(Scale::F32),
                Value::Str("Tensor".into()),
            ),
        };
        map([
            ("value", Value::Str(self.value.name().into())),
            ("param", Value::Str(param.name().into())),
            ("store", self.store.to_value()),
            ("level", level),
            ("mode", Value::Str(self.mode_name().into())),
        ])
    }

    fn mode_name(&self) -> &'static str {
        match self.mode {
            Mode::Lookup => "Lookup",
            Mode::Symmetric => "Symmetric",
        }
    }
}

/// The scales of `level` and `param`.
fn older_scales(level: &Value, param: Scale) -> Result<(Option<Scale>, Option<Block>), String> {
    match single(level) {
        Some(("Block", size)) => Ok((None, Some(Block::new(&size, param)?))),
        Some(("BlockTensor", Value::Map(both))) => {
            let both = Metadata::from(&both);
            let field = |key: &str| {
                both.get(key)
                    .ok_or_else(|| format!("a quantization level without {key:?}"))
            };
            let global = Scale::from_value(field("global")?, "global")?;
            Ok((Some(global), Some(Block::new(field("block")?, param)?)))
        }
        Some((other, _)) => Err(unknown("level", other, "Block, BlockTensor")),
        None => match text(level, "level")? {
            "Tensor" => Ok((Some(param), None)),
            other => Err(unknown("level", other, "Tensor")),
        },
    }
}

/// The scales of `tensor` and `block`, each of which can be missing or null.
fn newer_scales(
    tensor: Option<&Value>,
    block: Option<&Value>,
) -> Result<(Option<Scale>, Option<Block>), String> {
    let tensor = match tensor {
        None | Some(Value::Null) => None,
        Some(scale) => Some(Scale::from_value(scale, "tensor")?),
    };
    let block = match block {
        None | Some(Value::Null) => None,
        Some(Value::Map(block)) => {
            let block = Metadata::from(block);
            let field = |key: &str| {
                block
                    .get(key)
                    .ok_or_else(|| format!("a quantization block without {key:?}"))
            };
            let dtype = Scale::from_value(field("dtype")?, "dtype")?;
            Some(Block::new(field("size")?, dtype)?)
        }
        Some(_) => return Err("a quantization block that is not a map".into()),
    };
    Ok((tensor, block))
}

impl Block {
    fn new(size: &Value, dtype: Scale) -> Result<Self, String> {
        let wrong = || {
            format!(
                "a block size that is not {{storage: [{BLOCK_AXES} sizes], len: 0 to {BLOCK_AXES}}}"
            )
        };
        let Value::Map(size) = size else {
            return Err(wrong());
        };
        let (Some(Value::List(storage)), Some(len)) = (size.get("storage"), size.get("len")) else {
            return Err(wrong());
        };
        let len = len.as_u64().and_then(|len| usize::try_from(len).ok());
        let storage: Option<Vec<u8>> = storage
            .iter()
            .map(|size| size.as_u64().and_then(|size| u8::try_from(size).ok()))
            .collect();
        let (Some(mut size), Some(len)) = (storage, len) else {
            return Err(wrong());
        };
        if size.len() != BLOCK_AXES || len > BLOCK_AXES {
            return Err(wrong());
        }
        size.truncate(len);
        match size.contains(&0) {
            true => Err(format!("blocks of size {size:?}")),
            false => Ok(Self { size, dtype }),
        }
    }

    fn size_value(&self) -> Value {
        let ones = core::iter::repeat(1);
        let storage = self.size.iter().copied().chain(ones).take(BLOCK_AXES);
        map([
            (
                "storage",
                Value::List(storage.map(|size| Value::U64(size.into())).collect()),
            ),
            ("len", Value::U64(self.size.len() as u64)),
        ])
    }
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let entries = entries
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value));
    Value::Map(entries.collect())
}

/// The only entry of a map.
fn single(value: &Value) -> Option<(&str, Value)> {
    match value {
        Value::Map(map) if map.len() == 1 => map.iter().next(),
        _ => None,
    }
}

fn text<'v>(value: &'v Value, field: &str) -> Result<&'v str, String> {
    value.as_str().ok_or_else(|| {
        format!("the {field} of a quantization scheme is not what is expected there")
    })
}

fn number(value: &Value, field: &str) -> Result<u64, String> {
    value
        .as_u64()
        .ok_or_else(|| format!("the {field} of a quantization scheme has no number"))
}

fn unknown(field: &str, name: &str, known: &str) -> String {
    format!("the {field} of a quantization scheme is {name:?}, known are: {known}")
}

fn names(all: impl Iterator<Item = &'static str>) -> String {
    all.collect::<Vec<_>>().join(", ")
}
