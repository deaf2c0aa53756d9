//! Random archives that fit what a version of a format can hold.

use std::collections::BTreeSet;

use tenfold::format::{Capabilities, Checksums, Compression, Effect, Fit, Profile, adapt};
use tenfold::model::{
    DType, Endian, Lanes, Layout, Manifest, Metadata, Part, Payload, Role, Scalar, TensorInfo,
    Value,
};
use tenfold::ops::ConvertOptions;
use tenfold::{Archive, ArchiveBuilder, Bytes};

use super::options_for;

/// SplitMix64: small, good enough, and the same everywhere.
#[derive(Clone)]
pub struct Rng {
    state: u64,
    /// What is given out first, the next byte last.
    script: Vec<u8>,
}

impl Rng {
    pub fn new(seed: u64) -> Self {
        let script = Vec::new();
        Self {
            state: seed,
            script,
        }
    }

    /// Gives out numbers made of some bytes, one byte for each as long as there are any: what a fuzzer changes in them
    /// changes one choice.
    pub fn scripted(bytes: &[u8]) -> Self {
        Self {
            state: bytes.len() as u64,
            script: bytes.iter().rev().copied().collect(),
        }
    }

    /// The generator that belongs to a name.
    pub fn named(name: &str) -> Self {
        let seed = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self::new(seed)
    }

    pub fn next(&mut self) -> u64 {
        if let Some(byte) = self.script.pop() {
            return u64::from(byte);
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
        bytes
    }
}

/// A random archive that loses nothing in a file that can hold `can`, except that it may have to be rearranged.
///
/// Also what files hardly hold is tried: other layouts and byte orders, odd names, values at the ends of their ranges.
pub fn archive(rng: &mut Rng, can: &Capabilities) -> Archive {
    let most = usize::try_from(can.max_tensors)
        .unwrap_or(usize::MAX)
        .min(9);
    let count = if most == 1 { 1 } else { rng.below(most + 1) };
    let mut builder = ArchiveBuilder::new();
    let mut names = BTreeSet::new();
    for index in 0..count {
        for _ in 0..50 {
            let info = tensor(rng, can, index);
            let name = info.name.to_string();
            if fits(&info, can) && builder.push_info(info).is_ok() {
                names.insert(name);
                break;
            }
        }
    }
    let entries = metadata(rng, can.file_value);
    // Where metadata and tensors are entries of the same dict, a key cannot be a name too.
    for (key, value) in entries.iter().filter(|(key, _)| !names.contains(*key)) {
        builder.metadata().push(key, value.clone());
    }
    builder.finish()
}

/// Whether a tensor can be held as it is or rearranged.
fn fits(info: &TensorInfo, can: &Capabilities) -> bool {
    let mut manifest = Manifest::new("");
    manifest.tensors.push(info.clone());
    let (_, losses) = adapt(&manifest, can);
    losses.iter().all(|loss| loss.effect <= Effect::Rearranged)
}

fn tensor(rng: &mut Rng, can: &Capabilities, index: usize) -> TensorInfo {
    let dtypes: Vec<_> = DType::all().filter(|&dtype| (can.dtype)(dtype)).collect();
    assert!(!dtypes.is_empty(), "a version that holds no type at all");
    let dtype = *rng.pick(&dtypes);
    let shape = shape(rng, can, dtype);
    let elements = usize::try_from(shape.iter().product::<u64>()).unwrap();
    let name = name(rng, index);
    let dense = |rng: &mut Rng| {
        let payload = Payload::Inline(data(rng, dtype, elements));
        TensorInfo::dense(name.clone(), dtype, shape.clone(), payload)
    };
    let mut info = match rng.below(6) {
        0 if dtype.width().is_some_and(|width| width.is_power_of_two()) => {
            let mut info = dense(rng);
            info.layout = Layout::ColumnMajor;
            info
        }
        // A scalar has no coordinates.
        1 if dtype.width().is_some() && elements > 0 && !shape.is_empty() => {
            sparse(rng, &name, dtype, &shape)
        }
        _ => dense(rng),
    };
    if rng.one_in(4) {
        for part in &mut info.parts {
            part.endian = Endian::Big;
        }
        // Random numbers are as random backwards, but indices are not.
        if info.layout != Layout::ColumnMajor && info.layout != Layout::RowMajor {
            info.parts.iter_mut().for_each(swap_indices);
        }
    }
    info.metadata = metadata(rng, can.tensor_value);
    info
}

fn swap_indices(part: &mut Part) {
    let Payload::Inline(bytes) = &part.payload else {
        return;
    };
    if part.role == Role::Values {
        return;
    }
    let width = part.dtype.swap_width();
    let swapped: Vec<u8> = bytes
        .chunks(width)
        .flat_map(|number| number.iter().rev().copied())
        .collect();
    part.payload = Payload::Inline(swapped.into());
}

fn shape(rng: &mut Rng, can: &Capabilities, dtype: DType) -> Vec<u64> {
    let rank = can.min_rank + rng.below(can.max_rank.min(5) - can.min_rank.min(5) + 1);
    let mut shape: Vec<u64> = (0..rank)
        .map(|_| match rng.below(12) {
            0 if can.zero_sizes => 0,
            1..4 => 1,
            n => n as u64,
        })
        .collect();
    if can.max_rank > 5 && rng.one_in(20) {
        shape.resize(can.max_rank.min(12), 1);
    }
    if let (DType::Block(spec), Some(last)) = (dtype, shape.last_mut()) {
        *last = u64::from(spec.elements) * (1 + *last % 3);
    }
    shape
}

/// Random bytes that are values of their type.
pub fn data(rng: &mut Rng, dtype: DType, elements: usize) -> Bytes {
    let len = dtype.bytes_for(elements as u64).unwrap_or(0);
    let mut bytes = rng.bytes(usize::try_from(len).unwrap());
    match dtype {
        DType::Number(Scalar::Bool, _) => bytes.iter_mut().for_each(|byte| *byte &= 1),
        DType::Number(scalar, lanes) if scalar.bits() < 8 => {
            let bits = elements as u64 * u64::from(scalar.bits() * lanes.count()) % 8;
            if let (Some(last), 1..) = (bytes.last_mut(), bits) {
                *last &= (1 << bits) - 1;
            }
        }
        _ => {}
    }
    bytes.into()
}

/// Some entries of a tensor, by coordinates or, for a matrix, by rows.
fn sparse(rng: &mut Rng, name: &str, dtype: DType, shape: &[u64]) -> TensorInfo {
    let elements: u64 = shape.iter().product();
    let places: Vec<u64> = (0..elements).filter(|_| rng.one_in(3)).collect();
    let nnz = places.len() as u64;
    let values = data(rng, dtype, places.len());
    let by_rows = shape.len() == 2 && rng.one_in(2);
    let layout = if by_rows {
        Layout::Csr { nnz }
    } else {
        Layout::Coo { nnz }
    };
    let part = |role, numbers: Vec<u64>| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        Part::new(role, DType::U64, Payload::Inline(bytes.into()))
    };
    let mut info = TensorInfo::new(name, dtype, shape.to_vec(), layout);
    info.parts = vec![Part::new(Role::Values, dtype, Payload::Inline(values))].into();
    if by_rows {
        let columns = places.iter().map(|place| place % shape[1]).collect();
        let starts = (0..=shape[0])
            .map(|row| places.partition_point(|place| place / shape[1] < row) as u64)
            .collect();
        info.parts.push(part(Role::Indices, columns));
        info.parts.push(part(Role::Indptr, starts));
    } else {
        let mut coords = Vec::new();
        for dim in 0..shape.len() {
            let stride: u64 = shape[dim + 1..].iter().product();
            coords.extend(places.iter().map(|place| place / stride % shape[dim]));
        }
        info.parts.push(part(Role::Coords, coords));
    }
    info
}

/// Names as people give them, and such as nobody should.
fn name(rng: &mut Rng, index: usize) -> String {
    let odd = [
        "",
        " ",
        "\0",
        "a\nb\t\u{7f}",
        "../../etc/passwd",
        "C:\\x",
        "%41.weight",
        "Gewichte.größe",
        "権重",
        "e\u{301}",
        "\u{e9}",
        "\u{202e}txt.exe",
        "\u{1f9ea}\u{200d}\u{1f52c}",
        "__metadata__",
        "\"quoted\"",
        "{}",
        "a".repeat(300).leak(),
    ];
    match rng.below(4) {
        0 => (*rng.pick(&odd)).to_owned(),
        1 => format!("{}{index}", rng.pick(&odd)),
        _ => format!("model.layers.{index}.self_attn.q_proj.weight"),
    }
}

fn metadata(rng: &mut Rng, fit: fn(&str, &Value) -> Fit) -> Metadata {
    let mut metadata = Metadata::new();
    for index in 0..rng.below(6) {
        let key = match rng.below(3) {
            0 => name(rng, index),
            _ => format!("key-{index}"),
        };
        let value = value(rng, 3);
        if metadata.get(&key).is_none() && fit(&key, &value) == Fit::Exact {
            metadata.push(key, value);
        }
    }
    metadata
}

#[allow(clippy::cast_possible_truncation)] // any number will do
fn value(rng: &mut Rng, depth: usize) -> Value {
    let edge = [
        0,
        1,
        u64::MAX,
        i64::MAX as u64,
        1 << 63,
        1 << 53,
        255,
        65_536,
    ];
    let n = if rng.one_in(2) {
        *rng.pick(&edge)
    } else {
        rng.next()
    };
    match rng.below(if depth == 0 { 15 } else { 17 }) {
        0 => Value::Null,
        1 => Value::Bool(n % 2 == 1),
        2 => Value::U8(n as u8),
        3 => Value::U16(n as u16),
        4 => Value::U32(n as u32),
        5 => Value::U64(n),
        6 => Value::I8(n as i8),
        7 => Value::I16(n as i16),
        8 => Value::I32(n as i32),
        9 => Value::I64(n.cast_signed()),
        10 => Value::F32(f32::from_bits(n as u32)),
        11 => Value::F64(f64::from_bits(n)),
        12 => Value::F64(*rng.pick(&[0.0, -0.0, f64::INFINITY, 1e-310, 0.1, 3.0])),
        13 => Value::Str(name(rng, 1)),
        14 => Value::Bytes(rng.bytes(n as usize % 20).into()),
        15 => Value::List((0..n % 4).map(|_| value(rng, depth - 1)).collect()),
        _ => {
            let keys = ["x", "", "größe", "b"];
            let entries = keys.into_iter().take(n as usize % 5);
            Value::Map(
                entries
                    .map(|key| (key.to_owned(), value(rng, depth - 1)))
                    .collect(),
            )
        }
    }
}

/// A type that every version should have, for tests about other things.
pub fn common_dtype(can: &Capabilities) -> DType {
    let wanted = [DType::F32, DType::F64, DType::U8, DType::I32];
    let mut all = wanted.into_iter().chain(DType::all());
    all.find(|&dtype| (can.dtype)(dtype) && matches!(dtype, DType::Number(_, Lanes::Real)))
        .expect("a number type")
}

/// What a version can do beyond holding tensors, some of it.
pub fn options(rng: &mut Rng, profile: &Profile) -> ConvertOptions {
    let mut options = options_for(profile)
        .allow(Effect::Rearranged)
        .check(rng.one_in(2));
    if profile.can.zstd && rng.one_in(2) {
        let seed = rng.next();
        // Some tensors compressed, some not.
        options = options.compression(move |tensor| match (tensor.name.len() as u64 ^ seed) % 3 {
            0 => Compression::Raw,
            level => Compression::Zstd(i32::try_from(level).unwrap() * 3),
        });
    }
    if !profile.can.checksums.is_empty() && rng.one_in(2) {
        options = options.checksums(Checksums::With(*rng.pick(profile.can.checksums)));
    }
    options
}
