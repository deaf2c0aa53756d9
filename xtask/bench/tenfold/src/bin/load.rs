//! Loads all tensors of a file again and again and prints the best time in nanoseconds: `load RUNS FILE HOW`.
//!
//! HOW is `view` (the file is mapped and the tensors share it), `copy` (each tensor is read into memory of its own) or,
//! for comparison, `memcpy` (the mapped file is copied as it is, tensor by tensor).

#![allow(unsafe_code, reason = "nobody changes the file that is measured")]
#![allow(clippy::print_stdout, reason = "the time is what it prints")]

use std::time::Instant;
use tenfold::{Archive, Bytes, OpenOptions, Result};

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [runs, file, how] = args.as_slice() else {
        return Err("usage: load RUNS FILE view|copy|memcpy".into());
    };
    let mut best = u128::MAX;
    for _ in 0..runs.parse()? {
        let start = Instant::now();
        let loaded = match how.as_str() {
            // SAFETY: nobody changes the file that is measured.
            "view" => all(&unsafe { Archive::map(file)? })?,
            "copy" => all(&OpenOptions::new().open(file)?)?,
            "memcpy" => {
                // SAFETY: nobody changes the file that is measured.
                let views = all(&unsafe { Archive::map(file)? })?;
                views
                    .iter()
                    .map(|view| Bytes::from(view.to_vec()))
                    .collect()
            }
            other => return Err(format!("there is no way {other:?}").into()),
        };
        best = best.min(start.elapsed().as_nanos());
        // Given back outside of the measured time.
        drop(loaded);
    }
    println!("{best}");
    Ok(())
}

fn all(archive: &Archive) -> Result<Vec<Bytes>> {
    archive.tensors().map(|tensor| tensor.canonical()).collect()
}
