//! What the programs for Burn's crates share: the tensors they write, and the JSON in which they say what a file holds.
//!
//! It is the JSON of the Python programs beside this file: `{"tensors": [{"name", "dtype", "shape", "sha256"}],
//! "metadata"}`, where the digest is that of `tenfold digest --json`.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A tensor: its name, the name of its type in `tenfold`, its shape and its bytes as they are digested.
pub struct Said {
    pub name: String,
    pub dtype: &'static str,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

/// Prints what a file holds. `None` stands for metadata that cannot be told.
pub fn say(tensors: &[Said], metadata: Option<Value>) {
    let rows: Vec<_> = tensors
        .iter()
        .map(|tensor| {
            let sum = Sha256::digest(&tensor.bytes);
            let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
            json!({"name": tensor.name, "dtype": tensor.dtype, "shape": tensor.shape, "sha256": sum})
        })
        .collect();
    println!("{}", json!({"tensors": rows, "metadata": metadata}));
}

/// Number types by Burn's name and ours, with the bytes of an element.
pub const NUMBERS: [(&str, &str, usize); 13] = [
    ("F64", "f64", 8),
    ("F32", "f32", 4),
    ("Flex32", "f32", 4),
    ("F16", "f16", 2),
    ("BF16", "bf16", 2),
    ("I64", "i64", 8),
    ("I32", "i32", 4),
    ("I16", "i16", 2),
    ("I8", "i8", 1),
    ("U64", "u64", 8),
    ("U32", "u32", 4),
    ("U16", "u16", 2),
    ("U8", "u8", 1),
];

/// Our name of a number type, by Burn's.
pub fn ours(burn: &str) -> &'static str {
    let known = NUMBERS.iter().find(|(name, ..)| *name == burn);
    known.map_or("unknown", |(_, ours, _)| ours)
}

/// Bytes that differ from tensor to tensor: every bit pattern is a value of these types.
pub fn pattern(seed: &str, len: usize) -> Vec<u8> {
    let mut state = seed.bytes().fold(0xcbf2_9ce4_8422_2325u64, |state, byte| {
        (state ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .collect()
}

/// Shapes of every rank up to 6, with and without elements.
pub fn shapes() -> Vec<Vec<usize>> {
    let mut shapes: Vec<_> = (0..=6).map(|rank| [3, 1, 2, 1, 2, 2][..rank].to_vec()).collect();
    shapes.extend([vec![0], vec![2, 0, 4]]);
    shapes
}
