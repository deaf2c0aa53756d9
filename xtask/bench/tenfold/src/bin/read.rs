//! Opens a file, reads all of its tensors and looks at every byte of them, again and again, and prints the best time in
//! nanoseconds: `read RUNS FILE`.

#![allow(unsafe_code, reason = "nobody changes the file that is measured")]
#![allow(clippy::print_stdout, reason = "the time is what it prints")]

use std::hint::black_box;
use std::time::Instant;
use tenfold::Archive;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [runs, file] = args.as_slice() else {
        return Err("usage: read RUNS FILE".into());
    };
    let mut best = u128::MAX;
    for _ in 0..runs.parse()? {
        let start = Instant::now();
        // SAFETY: nobody changes the file that is measured.
        let archive = unsafe { Archive::map(file)? };
        let mut tensors = Vec::new();
        for tensor in archive.tensors() {
            let bytes = tensor.canonical()?;
            black_box(sum(&bytes));
            tensors.push(bytes);
        }
        best = best.min(start.elapsed().as_nanos());
        // Given back outside of the measured time.
        drop(tensors);
    }
    println!("{best}");
    Ok(())
}

fn sum(bytes: &[u8]) -> u64 {
    let word = |chunk: &[u8]| chunk.iter().map(|&byte| u64::from(byte)).sum::<u64>();
    bytes.chunks(64).map(word).fold(0, u64::wrapping_add)
}
