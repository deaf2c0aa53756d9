//! How long it takes to make the only tensor of a file dense and row-major in memory: `dense RUNS FILE` prints the best
//! time of so many runs, in nanoseconds. The file is in memory before the clock starts.

#![allow(clippy::print_stdout)] // its result

use std::time::Instant;

use tenfold::OpenOptions;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(runs), Some(file)) = (args.next(), args.next()) else {
        return Err("usage: dense RUNS FILE".into());
    };
    let bytes = tenfold::Bytes::from(std::fs::read(&file)?);
    let mut best = u128::MAX;
    for _ in 0..runs.parse()? {
        let archive = OpenOptions::new().read(std::sync::Arc::new(bytes.clone()), None)?;
        let tensor = archive.tensors().next().ok_or("a file without tensors")?;
        let start = Instant::now();
        let dense = tensor.canonical()?;
        best = best.min(start.elapsed().as_nanos());
        assert_eq!(Some(dense.len() as u64), tensor.info().dense_len());
    }
    println!("{best}");
    Ok(())
}
