//! How long it takes to quantize numbers: `quantize RUNS FILE TYPE THREADS` prints the best time of so many runs, in
//! nanoseconds. The numbers are those of the only tensor of the file, as a matrix with rows of 4096; they are in memory before
//! the clock starts, and what is written is a GGUF file in memory.

#![allow(clippy::print_stdout, reason = "the time is what it prints")]

use std::hint::black_box;
use std::time::Instant;

use tenfold::format::Registry;
use tenfold::io::MemoryOutput;
use tenfold::model::BlockSpec;
use tenfold::ops::{self, Conversion, ConvertOptions, QuantizeOptions};
use tenfold::{Archive, ArchiveBuilder, Work};

const ROW: u64 = 4096;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [runs, file, name, threads] = args.as_slice() else {
        return Err("usage: quantize RUNS FILE TYPE THREADS".into());
    };
    let spec = BlockSpec::from_name(name).ok_or("there is no such type")?;
    let archive = Archive::from_bytes(std::fs::read(file)?)?;
    let numbers = archive.tensors().next().ok_or("there is no tensor")?;
    let numbers = numbers.to::<f32>()?.to_vec();
    let mut builder = ArchiveBuilder::new();
    builder.tensor("x", [numbers.len() as u64 / ROW, ROW], numbers)?;
    let archive = builder.finish();
    let registry = Registry::standard();
    let gguf = registry.get("gguf")?;
    let options = ConvertOptions::new().work(Work::new().threads(threads.parse()?));
    let mut best = u128::MAX;
    for _ in 0..runs.parse()? {
        let start = Instant::now();
        let to = QuantizeOptions::new().every_matrix(Some(spec));
        let quantized = ops::quantize(&archive, &to)?.archive;
        let mut output = MemoryOutput::new();
        Conversion::prepare(&quantized, gguf, &options)?.write_to("x.gguf", &mut output)?;
        best = best.min(start.elapsed().as_nanos());
        black_box(output);
    }
    println!("{best}");
    Ok(())
}
