//! How Burn quantizes: the four spellings that releases have had for it, and the bytes it takes.
//!
//! Burn 0.20 and 0.21 say `{value, param, store, level, mode}`, Burn 0.22 and later `{value, store, mode, tensor, block}`.
//! The newer one says everything that the older one does, so that is what a scheme is held as.

mod arrangement;

pub(super) use arrangement::Arrangement;
#[cfg(feature = "burnpack")]
pub(super) use arrangement::dims;

use crate::model::Value;
use crate::prelude::*;

/// How the values of a tensor are quantized.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scheme {
    /// What a code is.
    pub(crate) value: ValueType,
    /// How codes are stored.
    pub(crate) store: Store,
    /// How codes become numbers.
    pub(crate) mode: Mode,
    /// The type of the scale of the whole tensor. Without blocks there always is one, of `F32` by default.
    pub(crate) tensor: Option<Scale>,
    /// Blocks with a scale each.
    pub(crate) block: Option<Block>,
    /// Entries that no release has. Readers pass over them.
    pub(crate) others: Vec<(String, Value)>,
}

/// The keys of all releases.
const KEYS: [&str; 7] = [
    "value", "param", "store", "level", "mode", "tensor", "block",
];

/// What a code is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)] // Burn's names
pub(crate) enum ValueType {
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
pub(crate) enum Store {
    /// A byte each.
    Native,
    /// Several in a byte, along this axis, counted from the innermost.
    PackedNative(u64),
    /// Several in a little-endian word of 32 bits, along this axis, counted from the innermost.
    PackedU32(u64),
}

/// How codes become numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mode {
    /// By a table, which is not in the file.
    Lookup,
    /// Multiplied by their scale.
    Symmetric,
}

/// The type of a scale.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)] // Burn's names
pub(crate) enum Scale {
    BF16,
    F16,
    F32,
    UE4M3,
    UE8M0,
}

/// Blocks of equal size with a scale each.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Block {
    /// The size along each of the last axes; along the others it is 1.
    pub(crate) size: Vec<u8>,
    /// The type of the scales.
    pub(crate) dtype: Scale,
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
    pub(crate) fn bits(self) -> u32 {
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
    pub(crate) fn bytes(self) -> u64 {
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
    pub(crate) fn axis(self) -> u64 {
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
    pub(crate) fn from_value(value: &Value) -> Result<Self, String> {
        let Value::Map(scheme) = value else {
            return Err("the quantization scheme is not a map".into());
        };
        // Newer readers pass over these two keys, and take the tensor for something else.
        let older = scheme.get("level").is_some() || scheme.get("param").is_some();
        let field = |key: &str| {
            scheme
                .get(key)
                .ok_or_else(|| format!("the quantization scheme has no {key:?}"))
        };
        let name = field("value")?;
        let name = text(&name, "value")?;
        let value = VALUES.iter().find(|row| row.0 == name);
        let value =
            value.ok_or_else(|| unknown("value", name, &names(VALUES.iter().map(|row| row.0))))?;
        let mode = match text(&field("mode")?, "mode")? {
            "Symmetric" => Mode::Symmetric,
            "Lookup" if !older => Mode::Lookup,
            other => return Err(unknown("mode", other, "Symmetric")),
        };
        let store = Store::from_value(&field("store")?, older)?;
        let (tensor, block) = if older {
            older_scales(
                &field("level")?,
                Scale::from_value(&field("param")?, "param")?,
            )?
        } else {
            newer_scales(scheme.get("tensor").as_ref(), scheme.get("block").as_ref())?
        };
        Ok(Self {
            value: value.1,
            store,
            mode,
            tensor,
            block,
            others: scheme
                .iter()
                .filter(|(key, _)| !KEYS.contains(key))
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
        })
    }

    /// The map that Burn 0.22 and later write.
    pub(crate) fn to_value(&self) -> Value {
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
        self.with_others([
            ("value", Value::Str(self.value.name().into())),
            ("store", self.store.to_value()),
            ("mode", Value::Str(self.mode_name().into())),
            ("tensor", scale(self.tensor)),
            ("block", block),
        ])
    }

    /// The map that Burn 0.20 and 0.21 write. Blocks with a scale above them have no place in it.
    pub(crate) fn to_older_value(&self) -> Value {
        let (param, level) = match &self.block {
            Some(block) => (block.dtype, map([("Block", block.size_value())])),
            None => (
                self.tensor.unwrap_or(Scale::F32),
                Value::Str("Tensor".into()),
            ),
        };
        self.with_others([
            ("value", Value::Str(self.value.name().into())),
            ("param", Value::Str(param.name().into())),
            ("store", self.store.to_value()),
            ("level", level),
            ("mode", Value::Str(self.mode_name().into())),
        ])
    }

    fn with_others(&self, known: [(&str, Value); 5]) -> Value {
        let known = known.map(|(key, value)| (key.to_owned(), value));
        Value::Map(
            known
                .into_iter()
                .chain(self.others.iter().cloned())
                .collect(),
        )
    }

    /// The same for the same scheme in the spelling of any release: `Q4S,PackedU32:0,Symmetric,-,2x16:F16`.
    ///
    /// The scale of the whole tensor and the blocks are `-` where there are none. Digests of content count this text.
    #[cfg(feature = "burnpack")]
    pub(crate) fn parameters(&self) -> String {
        let (value, mode) = (self.value.name(), self.mode_name());
        let store = match self.store {
            Store::Native => "Native".to_owned(),
            Store::PackedNative(axis) => format!("PackedNative:{axis}"),
            Store::PackedU32(axis) => format!("PackedU32:{axis}"),
        };
        let (tensor, block) = match &self.block {
            Some(block) => {
                let sizes: Vec<_> = block.size.iter().map(u8::to_string).collect();
                let block = format!("{}:{}", sizes.join("x"), block.dtype.name());
                (self.tensor, block)
            }
            None => (Some(self.tensor.unwrap_or(Scale::F32)), "-".to_owned()),
        };
        let tensor = tensor.map_or("-", Scale::name);
        format!("{value},{store},{mode},{tensor},{block}")
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
            let field = |key: &str| {
                both.get(key)
                    .ok_or_else(|| format!("a quantization level without {key:?}"))
            };
            let global = Scale::from_value(&field("global")?, "global")?;
            Ok((Some(global), Some(Block::new(&field("block")?, param)?)))
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
            let field = |key: &str| {
                block
                    .get(key)
                    .ok_or_else(|| format!("a quantization block without {key:?}"))
            };
            let dtype = Scale::from_value(&field("dtype")?, "dtype")?;
            Some(Block::new(&field("size")?, dtype)?)
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
        if size.contains(&0) {
            Err(format!("blocks of size {size:?}"))
        } else {
            Ok(Self { size, dtype })
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
    value
        .as_str()
        .ok_or_else(|| format!("the {field} of a quantization scheme is not of the expected kind"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_quantization_mean_the_same() {
        fn map(entries: &[(&str, Value)]) -> Value {
            let entries = entries.iter();
            Value::Map(
                entries
                    .map(|(key, value)| ((*key).to_owned(), value.clone()))
                    .collect(),
            )
        }
        let text = |text: &str| Value::Str(text.into());
        let size = map(&[
            (
                "storage",
                Value::List([4, 8, 1, 1, 1].map(Value::U64).to_vec().into()),
            ),
            ("len", Value::U64(2)),
        ]);
        let older = |store: Value, level: Value| {
            map(&[
                ("value", text("Q4S")),
                ("param", text("F16")),
                ("store", store),
                ("level", level),
                ("mode", text("Symmetric")),
                // Newer keys mean nothing beside the older ones.
                ("tensor", text("F32")),
            ])
        };
        let first = Scheme::from_value(&older(text("U32"), text("Tensor"))).unwrap();
        assert_eq!(
            (first.store, first.tensor),
            (Store::PackedU32(0), Some(Scale::F16))
        );
        let second = older(
            map(&[("PackedU32", Value::U64(1))]),
            map(&[("Block", size.clone())]),
        );
        let second = Scheme::from_value(&second).unwrap();
        assert_eq!(second.block.as_ref().unwrap().size, [4, 8]);
        assert_eq!(second.tensor, None);
        let both = map(&[("block", size), ("global", text("F32"))]);
        let third = older(text("Native"), map(&[("BlockTensor", both)]));
        let third = Scheme::from_value(&third).unwrap();
        assert_eq!(third.tensor, Some(Scale::F32));
        for scheme in [first, second, third] {
            assert_eq!(Scheme::from_value(&scheme.to_value()).unwrap(), scheme);
            if scheme.block.is_none() || scheme.tensor.is_none() {
                assert_eq!(
                    Scheme::from_value(&scheme.to_older_value()).unwrap(),
                    scheme
                );
            }
        }
        assert!(Scheme::from_value(&map(&[("value", text("Q4S"))])).is_err());
        assert!(Scheme::from_value(&older(text("U8"), text("Tensor"))).is_err());
    }

    #[test]
    fn what_no_release_has_is_kept_in_both_spellings() {
        let text = |text: &str| Value::Str(text.into());
        let scheme = map([
            ("value", text("Q8S")),
            ("store", text("Native")),
            ("mode", text("Symmetric")),
            ("tensor", text("F32")),
            ("rounding", text("even")),
        ]);
        let scheme = Scheme::from_value(&scheme).unwrap();
        for written in [scheme.to_value(), scheme.to_older_value()] {
            let Value::Map(written) = written else {
                panic!("{written:?}")
            };
            assert_eq!(written.len(), 6);
            assert_eq!(written.get("rounding"), Some(text("even")));
        }
    }
}
