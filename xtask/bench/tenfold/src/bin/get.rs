//! Opens a file, finds all of its tensors by name and looks at the first number of each, again and again, and prints the best
//! time in nanoseconds, without that for opening: `get RUNS FILE`. The tensors are `f32`.

#![allow(unsafe_code, reason = "nobody changes the file that is measured")]
#![allow(clippy::print_stdout, reason = "the time is what it prints")]

use std::hint::black_box;
use std::time::Instant;
use tenfold::{Archive, Result};

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [runs, file] = args.as_slice() else {
        return Err("usage: get RUNS FILE".into());
    };
    // SAFETY: nobody changes the file that is measured.
    let archive = unsafe { Archive::map(file)? };
    let names: Vec<String> = (archive.tensors())
        .map(|tensor| tensor.name().to_owned())
        .collect();
    let mut best = u128::MAX;
    for _ in 0..runs.parse()? {
        let start = Instant::now();
        black_box(sum(&archive, &names)?);
        best = best.min(start.elapsed().as_nanos());
    }
    println!("{best}");
    Ok(())
}

fn sum(archive: &Archive, names: &[String]) -> Result<f32> {
    let mut sum = 0.0;
    for name in names {
        let numbers = archive.tensor(name)?.typed::<f32>()?;
        sum += numbers.first().copied().unwrap_or(0.0);
    }
    Ok(sum)
}
