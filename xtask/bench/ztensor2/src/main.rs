//! `ztensor2 make COUNT FILE` writes that many small tensors; `ztensor2 open RUNS FILE` prints the best time in which
//! the library opened the file, in nanoseconds.

use std::time::Instant;
use ztensor::{DType, Result, Source, Writer};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let [_, job, number, file] = args.as_slice() else {
        panic!("ztensor2 make COUNT FILE | ztensor2 open RUNS FILE");
    };
    let number: u32 = number.parse().expect("a number");
    match job.as_str() {
        "make" => make(number, file),
        "open" => open(number, file),
        _ => panic!("no job {job}"),
    }
}

/// Every tensor has data of its own: the writer stores equal ones once. The names are those of the other generators.
fn make(count: u32, file: &str) -> Result<()> {
    let mut writer = Writer::options().canonical(false).align(4096).create(file)?;
    for i in 0..count {
        let data: Vec<u8> = (0..8).flat_map(|n| (i + n).to_le_bytes()).collect();
        writer.add(format!("layers.{i:06}.weight"), [8u64], DType::F32, &data)?;
    }
    writer.finish()?;
    Ok(())
}

fn open(runs: u32, file: &str) -> Result<()> {
    let mut best = u128::MAX;
    for _ in 0..runs {
        let start = Instant::now();
        let source = Source::open(file)?;
        best = best.min(start.elapsed().as_nanos());
        drop(source);
    }
    println!("{best}");
    Ok(())
}
