//! `cargo xtask ci`: everything that must pass before a change is taken in.
//!
//! Every step runs, also after one has failed, and the last line counts them.

use crate::Result;
use crate::project::{self, Project};
use crate::{dependencies, docs, features, python, rooms, unsafe_count, web};
use std::time::{Duration, Instant};

/// One step: its name, and how it is done. A step may leave a remark for the summary.
struct Step {
    name: &'static str,
    run: fn(&Project) -> Result<Option<String>>,
}

const STEPS: &[Step] = &[
    Step {
        name: "format",
        run: |project| project.cargo(&["fmt", "--all", "--check"]),
    },
    Step {
        name: "clippy",
        run: |project| {
            let what = ["clippy", "--workspace", "--all-targets", "--all-features"];
            project.cargo(&[&what[..], &["--", "-D", "warnings"]].concat())
        },
    },
    Step {
        name: "test",
        run: |project| test(project, &["--workspace", "--all-features", "--all-targets"]),
    },
    // As users get it: the compiler does not check for overflow, and zstd is decoded by the Rust library.
    Step {
        name: "test-release",
        run: |project| {
            let build = ["--profile", "release-test", "--package", "tenfold"];
            let tests = [
                "--test",
                "corpus",
                "--test",
                "corruption",
                "--test",
                "hostile",
            ];
            test(project, &[&build[..], &["--lib"], &tests].concat())
        },
    },
    Step {
        name: "test-documentation",
        run: |project| test(project, &["--workspace", "--all-features", "--doc"]),
    },
    Step {
        name: "documentation",
        run: |project| {
            let mut cargo = project::cargo(&project.root);
            cargo
                .args(["doc", "--package", "tenfold", "--no-deps", "--all-features"])
                .env("RUSTDOCFLAGS", "-D warnings");
            project::show(&mut cargo)
        },
    },
    Step {
        name: "features",
        run: features::check,
    },
    Step {
        name: "generated-tables",
        run: docs::check,
    },
    Step {
        name: "rooms",
        run: rooms::check,
    },
    Step {
        name: "unsafe-count",
        run: unsafe_count::check,
    },
    Step {
        name: "web",
        run: web::check,
    },
    Step {
        name: "dependencies",
        run: dependencies::check,
    },
    Step {
        name: "python",
        run: python::check,
    },
];

/// All tests run, also after one has failed.
fn test(project: &Project, what: &[&str]) -> Result<Option<String>> {
    project.cargo(&[&["test", "--no-fail-fast"], what].concat())
}

/// Runs the steps that are named, or all.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    if let Some(unknown) = args
        .iter()
        .find(|arg| !STEPS.iter().any(|step| step.name == **arg))
    {
        let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        return Err(format!("no step {unknown:?}; there are {}", known.join(", ")).into());
    }
    let project = Project::find()?;
    project.require_component("rustfmt", "fmt")?;
    project.require_component("clippy", "clippy")?;
    let begin = Instant::now();
    let mut results = Vec::new();
    for step in STEPS {
        if args.is_empty() || args.iter().any(|arg| arg == step.name) {
            results.push(take(step, &project));
        }
    }
    println!("\n{:<24} {:>8}  result", "step", "seconds");
    for done in &results {
        println!(
            "{:<24} {:>8.1}  {}",
            done.name,
            done.time.as_secs_f64(),
            done.result
        );
    }
    let failed = results.iter().filter(|done| done.failed).count();
    println!("{:<24} {:>8.1}", "all", begin.elapsed().as_secs_f64());
    println!("{} passed, {failed} failed", results.len() - failed);
    Ok(failed == 0)
}

/// A step that has been taken.
struct Done {
    name: &'static str,
    time: Duration,
    failed: bool,
    result: String,
}

fn take(step: &Step, project: &Project) -> Done {
    println!("\n== {}", step.name);
    let begin = Instant::now();
    let outcome = (step.run)(project);
    let time = begin.elapsed();
    let (failed, result) = match outcome {
        Ok(None) => (false, "passed".to_owned()),
        Ok(Some(remark)) => (false, format!("passed; {remark}")),
        Err(error) => {
            eprintln!("{}: {error}", step.name);
            (true, "FAILED".to_owned())
        }
    };
    println!("== {}: {result}, {:.1} s", step.name, time.as_secs_f64());
    Done {
        name: step.name,
        time,
        failed,
        result,
    }
}
