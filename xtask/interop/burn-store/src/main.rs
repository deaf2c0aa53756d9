//! burn-store 0.20: `interop-burn-store write FILE` writes every type and rank; `load FILE` reads a file. Both say what it
//! holds, but for the metadata, which this release does not show.

#[path = "../../burn-common.rs"]
mod common;

use std::error::Error;

use burn_core::module::ParamId;
use burn_store::{BurnpackStore, BurnpackWriter, ModuleStore, TensorSnapshot};
use burn_tensor::{DType, TensorData};
use common::{NUMBERS, Said, ours, pattern, say, shapes};
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[1..] {
        ["write", file] => write(file),
        ["load", file] => load(file),
        _ => panic!("interop-burn-store write FILE | interop-burn-store load FILE"),
    }
}

fn write(file: &str) -> Result<(), Box<dyn Error>> {
    let mut tensors = Vec::new();
    for (index, (name, _, width)) in NUMBERS.iter().enumerate().rev() {
        let dtype: DType = serde_json::from_value(json!(name))?;
        let bytes = pattern(name, 20 * width);
        tensors.push(tensor(&format!("dtype.{name}"), dtype, vec![4, 5], index as u64, bytes));
    }
    let bools = (0..9u8).map(|n| n % 3 % 2).collect();
    tensors.push(tensor("bool", DType::Bool, vec![9], 99, bools));
    for shape in shapes() {
        let bytes = pattern("shape", 4 * shape.iter().product::<usize>());
        tensors.push(tensor(&format!("größe.{shape:?}"), DType::I32, shape, u64::MAX, bytes));
    }
    let writer = BurnpackWriter::new(tensors).with_metadata("producer", "burn-store");
    writer.write_to_file(file)?;
    load(file)
}

fn tensor(name: &str, dtype: DType, shape: Vec<usize>, id: u64, bytes: Vec<u8>) -> TensorSnapshot {
    let data = TensorData::from_bytes_vec(bytes, shape, dtype);
    TensorSnapshot::from_data(data, vec![name.into()], Vec::new(), ParamId::from(id))
}

fn load(file: &str) -> Result<(), Box<dyn Error>> {
    let mut store = BurnpackStore::from_file(file).auto_extension(false);
    let mut tensors = Vec::new();
    for (name, snapshot) in store.get_all_snapshots()? {
        let data = snapshot.to_data().map_err(|error| format!("{name}: {error:?}"))?;
        let dtype = match snapshot.dtype {
            DType::Bool => "bool",
            DType::QFloat(_) => "burn:QFloat",
            number => ours(&format!("{number:?}")),
        };
        tensors.push(Said { name: name.clone(), dtype, shape: snapshot.shape.clone(), bytes: data.as_bytes().to_vec() });
    }
    say(&tensors, None);
    Ok(())
}
