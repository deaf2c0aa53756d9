//! `safetensors make COUNT FILE` writes that many small tensors and `big MIB FILE` 32 tensors of that size
//! together; `open RUNS FILE` prints the best time in which the library parsed the file from a mapping, and
//! `load RUNS FILE` the best time in which every tensor of it was also copied to memory of its own, `get RUNS FILE` that in
//! which every tensor of the parsed file was found by its name and its numbers were looked at, in nanoseconds.

use memmap2::Mmap;
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize_to_file};
use std::fs::File;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let [_, job, number, file] = args.as_slice() else {
        return Err(
            "safetensors make COUNT FILE | big MIB FILE | open RUNS FILE | load RUNS FILE | get RUNS FILE"
                .into(),
        );
    };
    let number: u32 = number.parse()?;
    match job.as_str() {
        "make" => make(number, 8, file, |i| format!("layers.{i:06}.weight")),
        "big" => make(32, number as usize * 8192, file, |i| {
            format!("layers.{i}.weight")
        }),
        "open" => best(number, || {
            let map = map(file)?;
            // What it gives borrows from the mapping, so that both are given back outside of the measured time together.
            Ok(SafeTensors::deserialize(Box::leak(Box::new(map)))?)
        }),
        "load" => best(number, || {
            let map = map(file)?;
            let tensors = SafeTensors::deserialize(&map)?;
            let copies: Vec<Vec<u8>> = tensors
                .iter()
                .map(|(_, tensor)| tensor.data().to_vec())
                .collect();
            Ok(copies)
        }),
        "get" => {
            let map = map(file)?;
            let tensors = SafeTensors::deserialize(&map)?;
            let names: Vec<String> = tensors.names().into_iter().map(str::to_owned).collect();
            best(number, || {
                let mut sum = 0.0;
                for name in &names {
                    let tensor = tensors.tensor(name)?;
                    // SAFETY: every four bytes are a number.
                    let (_, numbers, _) = unsafe { tensor.data().align_to::<f32>() };
                    sum += numbers.first().copied().unwrap_or(0.0);
                }
                Ok(std::hint::black_box(sum))
            })
        }
        _ => Err(format!("no job {job}").into()),
    }
}

fn make(count: u32, elements: usize, file: &str, name: impl Fn(u32) -> String) -> Result<()> {
    let data: Vec<u8> = (0..elements as u32)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    let mut tensors = Vec::new();
    for i in 0..count {
        tensors.push((name(i), TensorView::new(Dtype::F32, vec![elements], &data)?));
    }
    Ok(serialize_to_file(tensors, None, file.as_ref())?)
}

fn map(file: &str) -> Result<Mmap> {
    // SAFETY: nobody changes the files of the benchmark while it runs.
    Ok(unsafe { Mmap::map(&File::open(file)?)? })
}

fn best<T>(runs: u32, job: impl Fn() -> Result<T>) -> Result<()> {
    let mut best = u128::MAX;
    for _ in 0..runs {
        let start = Instant::now();
        let result = job()?;
        best = best.min(start.elapsed().as_nanos());
        drop(result);
    }
    println!("{best}");
    Ok(())
}
