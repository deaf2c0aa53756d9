//! `cargo xtask miri`: the library's unit tests without files and foreign code, under an interpreter that sees undefined
//! behaviour. The library denies `unsafe`; what its dependencies do with it is watched here.

use crate::Result;
use crate::project::{self, Project};
use std::process::Command;

/// Parts of the library that neither open files nor call C, by the names of their modules.
const PARTS: &[&str] = &[
    "digest::",
    "error::",
    "format::capability",
    "format::plan",
    "io::limits",
    "io::memory",
    "io::reader",
    "model::",
    "transform::",
    "typed::",
    "wire::",
];

/// What takes the interpreter minutes and shows nothing that smaller tests do not.
const SLOW: &[&str] = &[
    "zstd",
    "large",
    "every",
    "all_",
    "exhaustive",
    "random",
    "grids",
];

/// Runs all parts, or those that are named.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let project = Project::find()?;
    let toolchain = ["+nightly", "miri", "--version"];
    if project::output(Command::new("cargo").args(toolchain)).is_err() {
        eprintln!("installing miri");
        let add = [
            "component",
            "add",
            "--toolchain",
            "nightly",
            "miri",
            "rust-src",
        ];
        if let Err(error) = project::status(Command::new("rustup").args(add)) {
            eprintln!("***********************************************************************");
            eprintln!("NOT RUN: miri cannot be added to the nightly toolchain: {error}");
            eprintln!("***********************************************************************");
            return Ok(false);
        }
    }
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(&project.root)
        .args(["+nightly", "miri", "test", "--package", "tenfold", "--lib"])
        .args(["--no-default-features", "--features"])
        .arg("std,digest,mag,ztensor,burnpack,primitiv,tens,safetensors,gguf")
        .env("CARGO_TARGET_DIR", project.target.join("miri"))
        // Tests of the library find the fixtures and the time; nothing is written.
        .env("MIRIFLAGS", "-Zmiri-disable-isolation")
        .env_remove("RUSTUP_TOOLCHAIN")
        .arg("--");
    match args.is_empty() {
        true => cargo.args(PARTS),
        false => cargo.args(args),
    };
    for slow in SLOW {
        cargo.args(["--skip", slow]);
    }
    project::show(&mut cargo).map(|_| true)
}
