//! `burnpack make COUNT FILE` writes that many small tensors, `burnpack big MIB FILE` 32 large ones. With the number of
//! runs and a file, `parse`, `open` and `read` print the best time in which the library parsed its header, also made its
//! tensors, also read them all, and `copy` that of a copy of as many bytes in memory, in nanoseconds.

use std::hint::black_box;
use std::time::Instant;

use burn_pack::{Bytes, DType, Error, Reader, Tensor, Writer};

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().collect();
    let [_, job, number, file] = args.as_slice() else {
        panic!("burnpack make|big|parse|open|read|copy NUMBER FILE");
    };
    let number: usize = number.parse().expect("a number");
    match job.as_str() {
        "make" => make(number, 8, file),
        "big" => make(32, number << 15 >> 2, file),
        "parse" => best(number, || Reader::from_file_exact(file)),
        // Only its tensors say their types and shapes, which an archive of ours knows when it is open.
        "open" => best(number, || Reader::from_file_exact(file)?.into_tensors()),
        "read" => best(number, || {
            let tensors = Reader::from_file_exact(file)?.into_tensors()?;
            let read = |tensor: &Tensor| {
                let bytes = tensor.to_bytes()?;
                black_box(sum(&bytes));
                Ok(bytes)
            };
            tensors.iter().map(read).collect::<Result<Vec<_>, Error>>()
        }),
        "copy" => {
            let from = std::fs::read(file).expect("the file");
            best(number, || Ok(from.clone()))
        }
        _ => panic!("no job {job}"),
    }
}

/// The names are those of the other generators.
fn make(count: usize, elements: usize, file: &str) -> Result<(), Error> {
    let tensor = |i: usize| {
        let data = (0..elements).flat_map(|n| ((i + n) as u32).to_le_bytes()).collect();
        let name = format!("layers.{i:06}.weight");
        Tensor::new(name, DType::F32, vec![elements], Some(i as u64), Bytes::from_bytes_vec(data))
    };
    Writer::new((0..count).map(tensor).collect()).auto_extension(false).overwrite(true).write_to_file(file)
}

/// Every byte is looked at, as in our own program.
fn sum(bytes: &[u8]) -> u64 {
    let word = |chunk: &[u8]| chunk.iter().map(|&byte| u64::from(byte)).sum::<u64>();
    bytes.chunks(64).map(word).fold(0, u64::wrapping_add)
}

/// What was made is dropped outside of the time, as in our own program.
fn best<T>(runs: usize, job: impl Fn() -> Result<T, Error>) -> Result<(), Error> {
    let mut best = u128::MAX;
    for _ in 0..runs {
        let start = Instant::now();
        let made = job()?;
        best = best.min(start.elapsed().as_nanos());
        drop(made);
    }
    println!("{best}");
    Ok(())
}
