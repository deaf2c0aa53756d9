//! The tasks of the project: `cargo xtask NAME`.

#![allow(
    clippy::print_stdout,
    reason = "the tables that tasks print are their result"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "files under target/ need no atomic replacement"
)]

mod bench;
mod ci;
mod crash;
mod dependencies;
mod differential;
mod docs;
mod features;
mod fuzz;
mod held;
mod interop;
mod miri;
mod portable;
mod project;
mod python;
mod remote;
mod rooms;
mod scale;
mod unsafe_count;
mod web;

use std::process::ExitCode;

/// What every task returns: it succeeds, finds something, or cannot be carried out.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// One task: its name, what follows the name, what it does, and how. `false` means that it ran and found something.
struct Task {
    name: &'static str,
    args: &'static str,
    what: &'static str,
    run: fn(&[String]) -> Result<bool>,
}

const TASKS: &[Task] = &[
    Task {
        name: "bench",
        args: "[NAME…] [--quick]",
        what: "measures opening, converting and verifying beside the real programs",
        run: bench::run,
    },
    Task {
        name: "ci",
        args: "[STEP…]",
        what: "checks and tests everything; must pass before a change is taken in",
        run: ci::run,
    },
    Task {
        name: "crash",
        args: "[--kills N]",
        what: "kills and interrupts hundreds of conversions, merges and edits",
        run: crash::run,
    },
    Task {
        name: "deny",
        args: "[CHECK…]",
        what: "asks cargo-deny about licences and advisories; installs it first",
        run: dependencies::deny,
    },
    Task {
        name: "differential",
        args: "[--files N] [FORMAT…]",
        what: "reads thousands of changed files beside the reference packages",
        run: differential::run,
    },
    Task {
        name: "docs",
        args: "[--check]",
        what: "rewrites the generated tables and outputs of the documentation",
        run: docs::run,
    },
    Task {
        name: "features",
        args: "",
        what: "builds the library with each feature alone, with none and with all",
        run: features::run,
    },
    Task {
        name: "fuzz",
        args: "--minutes N [TARGET…]",
        what: "fuzzes all targets in turn, with limits; needs the nightly toolchain",
        run: fuzz::run,
    },
    Task {
        name: "interop",
        args: "[FORMAT…]",
        what: "exchanges files with the real packages, in both directions; `burn` alone compiles Burn",
        run: interop::run,
    },
    Task {
        name: "miri",
        args: "[TEST…]",
        what: "interprets unit tests and small files, and sees undefined behaviour; needs nightly",
        run: miri::run,
    },
    Task {
        name: "portable",
        args: "[TARGET…]",
        what: "tests on big-endian and 32-bit machines, and compiles for other systems",
        run: portable::run,
    },
    Task {
        name: "python",
        args: "[--quick|notebook|interrupt]",
        what: "builds the Python package and runs its tests; the quick part is a step of CI",
        run: python::run,
    },
    Task {
        name: "remote",
        args: "[SERVER…]",
        what: "reads and writes URLs of real servers on this machine: s3s-fs, moto, azurite, nginx",
        run: remote::run,
    },
    Task {
        name: "rooms",
        args: "",
        what: "checks that each room of the library uses only those before it",
        run: rooms::run,
    },
    Task {
        name: "scale",
        args: "[slurm|ray|dask…] | simulate [FILES]",
        what: "plans carried out by real engines that lose a task, or planned for a petabyte",
        run: scale::run,
    },
    Task {
        name: "semver",
        args: "[--baseline-rev REV]",
        what: "compares the library's interface with its last release; installs cargo-semver-checks first",
        run: dependencies::semver,
    },
    Task {
        name: "unsafe-count",
        args: "",
        what: "compares the uses of unsafe with those that are known",
        run: unsafe_count::run,
    },
    Task {
        name: "web",
        args: "[page | --sizes | --check | test | shots]",
        what: "builds the viewer's page and the one that files are dropped on; `test` tries both in a browser",
        run: web::run,
    },
    Task {
        name: "wheel",
        args: "",
        what: "builds the wheel and the sdist of the Python package into target/wheels",
        run: python::wheel,
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = args.split_first() else {
        print_help();
        return ExitCode::from(2);
    };
    if matches!(name.as_str(), "help" | "-h" | "--help") {
        print_help();
        return ExitCode::SUCCESS;
    }
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        eprintln!("there is no task `{name}`; `cargo xtask help` lists them");
        return ExitCode::from(2);
    };
    match (task.run)(rest) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("cargo xtask {name}: {error}");
            ExitCode::from(2)
        }
    }
}

fn print_help() {
    println!("Tasks of this project:\n");
    for task in TASKS {
        let usage = format!("cargo xtask {} {}", task.name, task.args);
        println!("  {usage:<38} {}", task.what);
    }
}
