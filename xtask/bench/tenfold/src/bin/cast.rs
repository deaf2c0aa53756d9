//! How long it takes to turn the numbers of a file into others: `cast RUNS FILE DTYPE` prints the best time of so many
//! runs, in nanoseconds. Tensors are done one after the other, each into memory of its own that is given back. The file
//! is in memory before the clock starts. `f32` of a file with quantized tensors dequantizes them.

#![allow(clippy::print_stdout, reason = "the time is what it prints")]

use std::hint::black_box;
use std::time::Instant;

use tenfold::model::DType;
use tenfold::{OpenOptions, ops};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [runs, file, dtype] = args.as_slice() else {
        return Err("usage: cast RUNS FILE DTYPE".into());
    };
    let dtype = DType::from_name(dtype).ok_or("there is no such type")?;
    let bytes = tenfold::Bytes::from(std::fs::read(file)?);
    let mut best = u128::MAX;
    for _ in 0..runs.parse()? {
        let archive = OpenOptions::new().read(std::sync::Arc::new(bytes.clone()), None)?;
        let archive = ops::cast(&ops::dequantize(&archive)?, |_| Some(dtype))?;
        let mut took = 0;
        for tensor in archive.tensors() {
            let start = Instant::now();
            let numbers = tensor.canonical()?;
            took += start.elapsed().as_nanos();
            black_box(numbers);
        }
        best = best.min(took);
    }
    println!("{best}");
    Ok(())
}
