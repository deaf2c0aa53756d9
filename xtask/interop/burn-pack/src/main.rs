//! burn-pack 0.23: `interop-burn-pack write FILE` writes every type, rank and kind of scalar; `load FILE` reads a file.
//! Both say what it holds.

#[path = "../../burn-common.rs"]
mod common;

use burn_pack::{Bytes, DType, Error, Reader, Scalar, Tensor, Writer};
use burn_std::BoolStore;
use common::{NUMBERS, Said, ours, pattern, say, shapes};
use serde_json::{Map, Value, json};

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[1..] {
        ["write", file] => write(file),
        ["load", file] => load(file),
        _ => panic!("interop-burn-pack write FILE | interop-burn-pack load FILE"),
    }
}

fn write(file: &str) -> Result<(), Error> {
    let mut tensors = Vec::new();
    // Not in the order of their names.
    for (index, (name, _, width)) in NUMBERS.iter().enumerate().rev() {
        let dtype: DType = serde_json::from_value(json!(name)).expect("a type");
        let bytes = pattern(name, 20 * width);
        tensors.push(tensor(&format!("dtype.{name}"), dtype, vec![4, 5], Some(index as u64), bytes));
    }
    let bools: Vec<u8> = (0..9u8).map(|n| n % 3 % 2).collect();
    let words = bools.iter().flat_map(|&byte| u32::from(byte).to_le_bytes()).collect();
    for (store, bytes) in [
        (BoolStore::Native, bools.clone()),
        (BoolStore::U8, bools.clone()),
        (BoolStore::U32, words),
    ] {
        let name = format!("bool.{store:?}");
        tensors.push(tensor(&name, DType::Bool(store), vec![9], None, bytes));
    }
    for shape in shapes() {
        let bytes = pattern("shape", 4 * shape.iter().product::<usize>());
        tensors.push(tensor(&format!("größe.{shape:?}"), DType::I32, shape, Some(u64::MAX), bytes));
    }
    let writer = Writer::new(tensors)
        .with_metadata("producer", "burn-pack")
        .with_metadata("", "空")
        .with_scalar("step", Scalar::UInt(u64::MAX))
        .with_scalar("bias", Scalar::Int(i64::MIN))
        .with_scalar("lr", Scalar::Float(1e-3))
        .with_scalar("half", Scalar::Float(0.5))
        .with_scalar("done", Scalar::Bool(false));
    writer.overwrite(true).write_to_file(file)?;
    load(file)
}

fn tensor(name: &str, dtype: DType, shape: Vec<usize>, id: Option<u64>, bytes: Vec<u8>) -> Tensor {
    Tensor::new(name.into(), dtype, shape, id, Bytes::from_bytes_vec(bytes))
}

fn load(file: &str) -> Result<(), Error> {
    let reader = Reader::from_file_exact(file)?;
    let mut metadata: Map<String, Value> =
        reader.metadata().iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    let scalars: Map<String, Value> =
        reader.scalars().iter().map(|(key, scalar)| (key.clone(), plain(*scalar))).collect();
    if !scalars.is_empty() {
        metadata.insert("burn.scalars".into(), scalars.into());
    }
    let said = |tensor: Tensor| {
        let bytes = tensor.to_bytes()?.to_vec();
        let (dtype, bytes) = match tensor.dtype {
            DType::Bool(BoolStore::U32) => ("bool", bytes.chunks(4).map(|word| u8::from(word != [0; 4])).collect()),
            DType::Bool(_) => ("bool", bytes),
            DType::QFloat(_) => ("burn:QFloat", bytes),
            number => (ours(&format!("{number:?}")), bytes),
        };
        Ok(Said { name: tensor.name, dtype, shape: tensor.shape.to_vec(), bytes })
    };
    let tensors = reader.into_tensors()?.into_iter().map(said).collect::<Result<Vec<_>, Error>>()?;
    say(&tensors, Some(metadata.into()));
    Ok(())
}

fn plain(scalar: Scalar) -> Value {
    match scalar {
        Scalar::Int(value) => json!(value),
        Scalar::UInt(value) => json!(value),
        Scalar::Float(value) => json!(value),
        Scalar::Bool(value) => json!(value),
    }
}
