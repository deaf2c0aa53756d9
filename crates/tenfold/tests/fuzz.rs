//! What the fuzz targets do, on a stable compiler: with their seeds, and with everything that fuzzing has found.

// A test may panic and print.
#![allow(
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod support;
#[path = "../../../fuzz/src/targets.rs"]
mod targets;

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

#[global_allocator]
static ALLOCATOR: support::memory::Counting = support::memory::Counting;

/// Larger ones are tried by the tests of the fixtures.
const LONGEST: usize = 64 << 10;

/// Names a directory: the seeds are written there, and nothing is tried. `cargo xtask fuzz` begins with it.
const WRITE_SEEDS: &str = "TENFOLD_WRITE_SEEDS";

fn main() -> ExitCode {
    if let Some(directory) = std::env::var_os(WRITE_SEEDS) {
        write_seeds(Path::new(&directory));
        return ExitCode::SUCCESS;
    }
    let trials = targets::TARGETS.iter().map(|&(name, target)| {
        Trial::test(name, move || {
            let seeds = seeds(name);
            if seeds.is_empty() {
                return Err("there are no seeds".into());
            }
            for (what, input) in seeds.into_iter().chain(findings(name)) {
                let outcome = catch_unwind(|| target(&input));
                outcome.map_err(|_| format!("{what} of {name} panics"))?;
            }
            Ok(())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let all = targets::seeds(target).into_iter().enumerate();
    let short = all.filter(|(_, seed)| seed.len() <= LONGEST);
    short.map(|(n, seed)| (format!("seed-{n}"), seed)).collect()
}

fn write_seeds(directory: &Path) {
    for (target, _) in targets::TARGETS {
        let folder = directory.join(target);
        fs::create_dir_all(&folder).unwrap();
        for (name, bytes) in seeds(target).into_iter().chain(findings(target)) {
            fs::write(folder.join(name), bytes).unwrap();
        }
    }
}

/// What fuzzing has found, by its name: `fuzz/findings/TARGET/NAME`.
fn findings(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/findings");
    let entries = fs::read_dir(folder.join(target)).into_iter().flatten();
    let mut all: Vec<_> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(&path).unwrap())
        })
        .collect();
    all.sort();
    all
}
