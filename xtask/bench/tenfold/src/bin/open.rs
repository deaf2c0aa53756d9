//! Opens a file again and again and prints the best time in nanoseconds: `open RUNS FILE`.
//!
//! What opening means: the file is mapped, recognized and described, every tensor of it can be asked for, and no
//! tensor data has been read.

#![allow(unsafe_code, reason = "nobody changes the file that is measured")]
#![allow(clippy::print_stdout, reason = "the time is what it prints")]

use std::time::Instant;
use tenfold::Archive;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [runs, file] = args.as_slice() else {
        return Err("usage: open RUNS FILE".into());
    };
    let mut best = u128::MAX;
    for _ in 0..runs.parse()? {
        let start = Instant::now();
        // SAFETY: nobody changes the file that is measured.
        let archive = unsafe { Archive::map(file)? };
        best = best.min(start.elapsed().as_nanos());
        // Given back outside of the measured time.
        drop(archive);
    }
    println!("{best}");
    Ok(())
}
