//! `cargo xtask portable`: the library's tests on machines of the other byte order and of 32 bits, and whether the
//! workspace compiles for systems that are not at hand.
//!
//! What cannot be shown here, because a target, a compiler or the emulator is missing, is said loudly and is a finding.

use crate::Result;
use crate::features::Features;
use crate::project::{self, Project};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// A machine that tests run on.
struct Machine {
    target: &'static str,
    why: &'static str,
    linker: &'static str,
    /// What can start its programs here; the first that works is taken.
    runners: &'static [&'static str],
    /// Tests that would take longer than all others together, and are about the file system or every number there is.
    left_out: &'static [&'static str],
    /// What Debian calls the compiler, the libraries and the emulator.
    packages: &'static [&'static str],
}

const MACHINES: &[Machine] = &[
    Machine {
        target: "s390x-unknown-linux-gnu",
        why: "big-endian",
        linker: "s390x-linux-gnu-gcc",
        runners: &["qemu-s390x -L /usr/s390x-linux-gnu"],
        left_out: &[
            "any_operation_may_fail_and_nothing_is_lost_or_left",
            "every_number_of_every_small_type_becomes_the_nearest_of_every_other",
            "every_window_gives_the_same_description_or_the_same_refusal",
            "a_tensor_that_no_memory_holds_is_given_in_pieces",
        ],
        packages: &["gcc-s390x-linux-gnu", "libc6-dev-s390x-cross", "qemu-user"],
    },
    Machine {
        target: "i686-unknown-linux-gnu",
        why: "32 bits",
        linker: "i686-linux-gnu-gcc",
        runners: &[
            // Most kernels for 64 bits run programs of 32, which takes a tenth of the time.
            "/usr/i686-linux-gnu/lib/ld-linux.so.2 --library-path /usr/i686-linux-gnu/lib",
            "qemu-i386 -L /usr/i686-linux-gnu",
        ],
        left_out: &[],
        packages: &["gcc-i686-linux-gnu", "libc6-dev-i386-cross", "qemu-user"],
    },
];

/// A system that is compiled for.
struct System {
    target: &'static str,
    has_std: bool,
}

const SYSTEMS: &[System] = &[
    System {
        target: "x86_64-pc-windows-gnu",
        has_std: true,
    },
    System {
        target: "aarch64-apple-darwin",
        has_std: true,
    },
    System {
        target: "wasm32-unknown-unknown",
        has_std: false,
    },
    System {
        target: "thumbv7em-none-eabi",
        has_std: false,
    },
];

/// Every test that reads, converts, computes or writes. The others are about the file system, memory and hostile input,
/// and take an emulator hours.
const TESTS: &[&str] = &[
    "cast",
    "corpus",
    "directory",
    "edit",
    "formats",
    "large",
    "numbers",
    "pairs",
    "property",
    "salvage",
    "slices",
    "windows",
];

/// All targets, or those whose names contain an argument.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let project = Project::find()?;
    let wanted =
        |target: &str| args.is_empty() || args.iter().any(|arg| target.contains(arg.as_str()));
    let mut rows = Vec::new();
    for system in SYSTEMS.iter().filter(|system| wanted(system.target)) {
        rows.push(take(system.target, "compiles", || check(&project, system)));
    }
    for machine in MACHINES.iter().filter(|machine| wanted(machine.target)) {
        rows.push(take(machine.target, machine.why, || {
            test(&project, machine)
        }));
    }
    if rows.is_empty() {
        return Err("no target is called that".into());
    }
    println!();
    for row in &rows {
        let (result, seconds) = (&row.result, row.seconds);
        let shown = match result {
            Ok(what) => format!("passed: {what}"),
            Err(why) => format!("NOT SHOWN: {why}"),
        };
        println!("{:<24} {:<12} {seconds:>6} s  {shown}", row.target, row.why);
    }
    let failed = rows.iter().filter(|row| row.result.is_err()).count();
    println!("{} passed, {failed} not shown", rows.len() - failed);
    Ok(failed == 0)
}

/// What came of a target.
struct Row {
    target: &'static str,
    why: &'static str,
    seconds: u64,
    result: Result<String>,
}

fn take(target: &'static str, why: &'static str, run: impl FnOnce() -> Result<String>) -> Row {
    println!("\n== {target}: {why}");
    let begin = Instant::now();
    let result = add(target).and_then(|()| run());
    if let Err(error) = &result {
        eprintln!("{target}: {error}");
    }
    Row {
        target,
        why,
        seconds: begin.elapsed().as_secs(),
        result,
    }
}

/// The library and the command; without an operating system, what of the library does not need one.
fn check(project: &Project, system: &System) -> Result<String> {
    let mut cargo = project::cargo(&project.root);
    cargo.args(["check", "--target", system.target, "--package", "tenfold"]);
    if !system.has_std {
        let features = Features::read(project)?.without_std().join(",");
        cargo.args(["--no-default-features", "--features", &features]);
        project::show(&mut cargo)?;
        return Ok("library without std".to_owned());
    }
    project::show(&mut cargo)?;
    // The command has parts in C, which are not what is checked: there need not be a compiler for them.
    let mut command = project::cargo(&project.root);
    command.args(["check", "--target", system.target]);
    command.args(["--package", "tenfold-cli"]);
    for tool in ["CC", "CXX", "AR"] {
        command.env(
            format!("{tool}_{}", system.target.replace('-', "_")),
            "true",
        );
    }
    project::show(&mut command)?;
    Ok("library and command, without their parts in C".to_owned())
}

fn test(project: &Project, machine: &Machine) -> Result<String> {
    let runner = match find_runner(machine) {
        Some(runner) => runner,
        None => {
            install(machine)?;
            find_runner(machine).ok_or("its programs still cannot be compiled and run")?
        }
    };
    let variable = |what: &str| {
        let target = machine.target.to_uppercase().replace('-', "_");
        format!("CARGO_TARGET_{target}_{what}")
    };
    let mut cargo = project::cargo(&project.root);
    cargo
        .args(["test", "--no-fail-fast", "--package", "tenfold"])
        .args(["--all-features", "--target", machine.target, "--lib"])
        .args(TESTS.iter().flat_map(|test| ["--test", test]))
        .arg("--")
        .args(machine.left_out.iter().flat_map(|name| ["--skip", name]))
        .env(variable("LINKER"), machine.linker)
        .env(variable("RUNNER"), runner);
    project::run_tests(&mut cargo).map(|passed| format!("{passed} tests"))
}

/// What starts the machine's programs, if they can also be compiled.
fn find_runner(machine: &Machine) -> Option<&'static str> {
    let works = |program: &str| project::output(Command::new(program).arg("--version")).is_ok();
    let starts = |runner: &&&str| works(runner.split(' ').next().unwrap_or_default());
    let runner = machine.runners.iter().find(starts)?;
    works(machine.linker).then_some(*runner)
}

/// Installs what is missing where that is allowed; says how elsewhere.
fn install(machine: &Machine) -> Result<()> {
    let packages = machine.packages.join(" ");
    let root = project::output(Command::new("id").arg("-u")).is_ok_and(|id| id == b"0\n");
    if !root || !Path::new("/usr/bin/apt-get").exists() {
        let message = format!("its compiler or emulator is missing: apt-get install {packages}");
        return Err(message.into());
    }
    eprintln!("installing {packages}");
    let mut apt = Command::new("apt-get");
    apt.args(["install", "--yes", "--no-install-recommends"]);
    project::output(apt.args(machine.packages)).map(drop)
}

/// Adds a target to the toolchain.
fn add(target: &str) -> Result<()> {
    let added = project::output(Command::new("rustup").args(["target", "add", target]));
    added
        .map(drop)
        .map_err(|error| format!("rustup cannot add the target: {error}").into())
}
