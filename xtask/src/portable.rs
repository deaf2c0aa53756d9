//! `cargo xtask portable`: the library's tests on machines of the other byte order and of 32 bits, under emulation, and
//! whether the workspace compiles for systems that are not at hand.
//!
//! What cannot run here, because a target, a compiler or the emulator is missing, is said loudly and is a finding.

use crate::Result;
use crate::project::{self, Project};
use std::process::Command;

/// A machine that tests run on.
struct Machine {
    target: &'static str,
    why: &'static str,
    linker: &'static str,
    emulator: &'static str,
    /// Where its libraries are, with Debian's cross compiler.
    root: &'static str,
}

const MACHINES: &[Machine] = &[
    Machine {
        target: "s390x-unknown-linux-gnu",
        why: "big-endian",
        linker: "s390x-linux-gnu-gcc",
        emulator: "qemu-s390x",
        root: "/usr/s390x-linux-gnu",
    },
    Machine {
        target: "i686-unknown-linux-gnu",
        why: "32 bits",
        linker: "i686-linux-gnu-gcc",
        emulator: "qemu-i386",
        root: "/usr/i686-linux-gnu",
    },
];

/// A system that is compiled for: the target, and what of the workspace with which features.
const SYSTEMS: &[(&str, &[&str])] = &[
    // Without the C library of zstd, which would need a C compiler for the target.
    ("x86_64-pc-windows-gnu", &["--package", "tenfold"]),
    ("aarch64-apple-darwin", &["--package", "tenfold"]),
    (
        "wasm32-unknown-unknown",
        &[
            "--package",
            "tenfold",
            "--no-default-features",
            "--features",
            BARE,
        ],
    ),
    (
        "thumbv7em-none-eabi",
        &[
            "--package",
            "tenfold",
            "--no-default-features",
            "--features",
            BARE,
        ],
    ),
];

/// What works without an operating system.
const BARE: &str = "digest,zstd,mag,ztensor,burnpack,primitiv,tens,safetensors,gguf";

/// Tests that are about formats, and take an emulator minutes, not hours.
const TESTS: &[&str] = &[
    "--lib",
    "--test",
    "corpus",
    "--test",
    "windows",
    "--test",
    "safetensors",
    "--test",
    "gguf",
    "--test",
    "mag",
    "--test",
    "tens",
];

/// All targets, or those that are named.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let project = Project::find()?;
    let wanted =
        |target: &str| args.is_empty() || args.iter().any(|arg| target.contains(arg.as_str()));
    let mut rows = Vec::new();
    for (target, what) in SYSTEMS.iter().filter(|(target, _)| wanted(target)) {
        rows.push((*target, "compiles", check(&project, target, what)));
    }
    for machine in MACHINES.iter().filter(|machine| wanted(machine.target)) {
        rows.push((machine.target, machine.why, test(&project, machine)));
    }
    println!();
    let mut failed = 0;
    for (target, what, result) in &rows {
        match result {
            Ok(()) => println!("{target:<28} {what:<12} passed"),
            Err(why) => {
                failed += 1;
                println!("{target:<28} {what:<12} NOT SHOWN: {why}");
            }
        }
    }
    println!("{} passed, {failed} not shown", rows.len() - failed);
    Ok(failed == 0)
}

fn check(project: &Project, target: &str, what: &[&str]) -> Result<()> {
    add(target)?;
    let mut cargo = project::cargo(&project.root);
    project::show(cargo.args(["check", "--target", target]).args(what)).map(drop)
}

fn test(project: &Project, machine: &Machine) -> Result<()> {
    add(machine.target)?;
    for program in [machine.linker, machine.emulator] {
        if project::output(Command::new(program).arg("--version")).is_err() {
            return Err(format!(
                "{program} is not installed (Debian: qemu-user and the cross compiler)"
            )
            .into());
        }
    }
    let variable = |what: &str| {
        let target = machine.target.to_uppercase().replace('-', "_");
        format!("CARGO_TARGET_{target}_{what}")
    };
    let mut cargo = project::cargo(&project.root);
    cargo
        .args(["test", "--package", "tenfold", "--target", machine.target])
        .args(TESTS)
        .env(variable("LINKER"), machine.linker)
        .env(
            variable("RUNNER"),
            format!("{} -L {}", machine.emulator, machine.root),
        );
    project::show(&mut cargo).map(drop)
}

/// Adds a target to the toolchain.
fn add(target: &str) -> Result<()> {
    let added = project::output(Command::new("rustup").args(["target", "add", target]));
    added
        .map(drop)
        .map_err(|error| format!("rustup cannot add the target: {error}").into())
}
