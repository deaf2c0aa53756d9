//! `cargo xtask miri`: unit tests of the library, and small golden files of every format, under an interpreter that sees
//! undefined behaviour. The library denies `unsafe`; what its dependencies do with it is watched here.
//!
//! Mapping a file and the zstd library in C are no part of it: the interpreter has neither.

use crate::Result;
use crate::features::Features;
use crate::project::{self, Project};
use std::process::Command;
use std::time::Instant;

/// Tests that the interpreter cannot run, or would take longer for than for all others together.
const LEFT_OUT: &[&str] = &[
    // Pipes, locks and unnamed files.
    "io::atomic",
    // Tens of thousands of numbers, and data of many pieces.
    "ops::stats",
    "transform::cast::tests::every_number_of_every_small_type",
    "transform::cast::tests::floats_and_integers_of_any_width",
    "transform::cast::tests::what_is_said_to_be_exact",
    "transform::cast::tests::wide_",
    "a_stream_longer_than_a_piece",
    "any_damage_is_an_error",
    "every_level_and_kind_of_frame",
    "exactly_65535_members",
    "every_width_and_rank_is_turned",
    "long_rows_are_written_in_tiles",
    "rows_longer_than_a_piece",
    "tall_and_wide_ones",
    "transform::view::collect",
];

/// Runs everything, or the unit tests whose names contain an argument.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let project = Project::find()?;
    if let Err(error) = require() {
        eprintln!("***********************************************************************");
        eprintln!("NOT RUN: miri cannot be added to the nightly toolchain: {error}");
        eprintln!("***********************************************************************");
        return Ok(false);
    }
    let features = ["std", "cc4s"]
        .into_iter()
        .chain(Features::read(&project)?.without_std())
        .collect::<Vec<_>>()
        .join(",");
    let begin = Instant::now();
    let mut passed = Vec::new();
    let parts = [&["--lib"][..], &["--test", "corpus"]];
    for what in parts.into_iter().take(if args.is_empty() { 2 } else { 1 }) {
        let mut cargo = Command::new("cargo");
        cargo
            .current_dir(&project.root)
            .args(["+nightly", "miri", "test", "--package", "tenfold"])
            .args(["--no-default-features", "--features", &features])
            .args(what)
            .env("CARGO_TARGET_DIR", project.target.join("miri"))
            // The fixtures are read; nothing is written.
            .env("MIRIFLAGS", "-Zmiri-disable-isolation")
            .env_remove("RUSTUP_TOOLCHAIN")
            .arg("--")
            .args(args)
            .args(LEFT_OUT.iter().flat_map(|name| ["--skip", name]));
        passed.push(project::run_tests(&mut cargo)?);
    }
    let seconds = begin.elapsed().as_secs();
    match passed[..] {
        [units, files] => print!("{units} unit tests and {files} golden files"),
        _ => print!("{} unit tests", passed.iter().sum::<u64>()),
    }
    println!(" passed, {seconds} s");
    Ok(true)
}

/// Installs the interpreter, once.
fn require() -> Result<()> {
    if project::output(Command::new("cargo").args(["+nightly", "miri", "--version"])).is_ok() {
        return Ok(());
    }
    eprintln!("installing miri");
    let add = ["component", "add", "--toolchain", "nightly"];
    project::status(Command::new("rustup").args(add).args(["miri", "rust-src"]))
}
