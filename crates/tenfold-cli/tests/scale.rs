//! `tenfold plan`, `run` and `join` as processes: killed at any moment, told by engines what to do, and printing what one
//! process prints.

// A test may panic.
// Inputs of the tests, not outputs.
#![allow(clippy::disallowed_methods)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

/// The variables of engines, which the machine of the test may have too.
const VARIABLES: [&str; 14] = [
    "TENFOLD_ITEM",
    "SLURM_ARRAY_TASK_ID",
    "JOB_COMPLETION_INDEX",
    "AWS_BATCH_JOB_ARRAY_INDEX",
    "PBS_ARRAY_INDEX",
    "LSB_JOBINDEX",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "RANK",
    "WORLD_SIZE",
];

fn tenfold(directory: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenfold"));
    command.current_dir(directory).args(args);
    for name in VARIABLES {
        command.env_remove(name);
    }
    command
}

#[track_caller]
fn output(directory: &Path, args: &[&str]) -> Output {
    tenfold(directory, args).output().unwrap()
}

#[track_caller]
fn succeeds(directory: &Path, args: &[&str]) -> String {
    let output = output(directory, args);
    assert!(output.status.success(), "{args:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A directory with a model of some MiB.
fn with_model(elements: u32) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.safetensors");
    let mut tensors = Vec::new();
    for n in 0..8u16 {
        let values: Vec<f32> = (0..elements)
            .map(|i| (i as f32).cos() + f32::from(n))
            .collect();
        tensors.push((format!("layer.{n}.weight"), values));
    }
    tenfold::save(&path, tensors).unwrap();
    let path = directory.path().to_owned();
    (directory, path)
}

#[test]
fn killed_at_any_moment_it_is_finished_by_whoever_comes_next() {
    const KILLS: u64 = 200;
    let (_kept, directory) = with_model(1 << 21);
    let directory = directory.as_path();
    succeeds(
        directory,
        &[
            "convert",
            "model.safetensors",
            "one.gguf",
            "--no-sync",
            "-q",
        ],
    );
    let items = [
        "plan",
        "convert",
        "model.safetensors",
        "many.gguf",
        "--items",
        "12",
        "-q",
    ];
    succeeds(directory, &items);
    let plan = "many.gguf.plan.json";
    let mut killed = 0;
    for n in 0..KILLS {
        let item = (n % 12).to_string();
        let mut child = tenfold(directory, &["run", plan, "--item", &item, "--again", "-q"])
            .spawn()
            .unwrap();
        // From before its first step to behind its last.
        thread::sleep(Duration::from_micros(n * 7919 % 40_000));
        let _ = child.kill();
        killed += u32::from(!child.wait().unwrap().success());
        assert!(!directory.join("many.gguf").exists());
    }
    assert!(killed > 20, "only {killed} were killed before their end");
    succeeds(directory, &["run", plan, "--all", "-q"]);
    for n in 0..40 {
        let mut child = tenfold(directory, &["join", plan, "--check", "-q"])
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_micros(n * 7919 % 60_000));
        let _ = child.kill();
        let _ = child.wait();
    }
    let last = output(directory, &["join", plan, "--check", "-q"]);
    assert!(
        last.status.success() || said(&last).contains("joined before"),
        "{}",
        said(&last)
    );
    let read = |name: &str| fs::read(directory.join(name)).unwrap();
    assert!(read("one.gguf") == read("many.gguf"));
    let again = output(directory, &["run", plan, "--item", "3"]);
    assert!(
        again.status.success() && said(&again).contains("joined before"),
        "{}",
        said(&again)
    );
}

#[test]
fn every_engine_says_by_its_environment_which_item_it_is() {
    let (_kept, directory) = with_model(1 << 10);
    let directory = directory.as_path();
    let run = |variables: &[(&str, &str)]| {
        let mut command = tenfold(directory, &["run", "plan.json"]);
        command.envs(variables.iter().copied()).output().unwrap()
    };
    let indices = &VARIABLES[..6];
    for name in indices {
        let _ = fs::remove_file(directory.join("plan.json"));
        let state = format!("state-{name}");
        succeeds(
            directory,
            &[
                "plan",
                "digest",
                "model.safetensors",
                "--items",
                "8",
                "--state",
                &state,
            ],
        );
        let done = run(&[(name, "5")]);
        assert!(
            done.status.success() && said(&done).contains(&format!("{name}: item 5")),
            "{}",
            said(&done)
        );
        let missing = output(directory, &["join", "plan.json", "--status", "-q"]);
        assert_eq!(
            (missing.status.code(), missing.stdout.as_slice()),
            (Some(1), &b"0-4,6-7\n"[..])
        );
        let beyond = run(&[(name, "8")]);
        assert_eq!(beyond.status.code(), Some(2));
        assert!(said(&beyond).contains("items are 0-7"), "{}", said(&beyond));
    }
    for pair in VARIABLES[6..].chunks(2) {
        let _ = fs::remove_file(directory.join("plan.json"));
        let state = format!("state-{}", pair[0]);
        succeeds(
            directory,
            &[
                "plan",
                "digest",
                "model.safetensors",
                "--items",
                "8",
                "--state",
                &state,
            ],
        );
        assert!(run(&[(pair[0], "1"), (pair[1], "3")]).status.success());
        let missing = output(directory, &["join", "plan.json"]);
        assert_eq!(missing.status.code(), Some(1));
        assert_eq!(missing.stdout, b"not done: 0,2-3,5-6\n");
        assert_eq!(
            run(&[(pair[0], "0"), (pair[1], "1")]).status.code(),
            Some(2)
        );
    }
    let nothing = run(&[]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(said(&nothing).contains("--item"), "{}", said(&nothing));
}

#[test]
fn join_prints_what_one_process_prints() {
    let (_kept, directory) = with_model(1 << 10);
    let directory = directory.as_path();
    tenfold::save(
        directory.join("nan.safetensors"),
        [("x", vec![f32::NAN, 1.0]), ("y", vec![0.0; 2])],
    )
    .unwrap();
    fs::write(directory.join("bad.safetensors"), "no tensors").unwrap();
    let cases: [(&[&str], &[&str]); 7] = [
        (&["digest", "model.safetensors"], &[]),
        (
            &[
                "digest",
                "model.safetensors",
                "nan.safetensors",
                "bad.safetensors",
            ],
            &[],
        ),
        (
            &["verify", "model.safetensors", "nan.safetensors"],
            &["--content", "--strict"],
        ),
        (&["verify", "bad.safetensors", "model.safetensors"], &[]),
        (&["stats", "model.safetensors", "nan.safetensors"], &[]),
        (&["stats", "model.safetensors"], &["--include", "*.3.*"]),
        (&["diff", "model.safetensors", "nan.safetensors"], &[]),
    ];
    for (n, (files, options)) in cases.into_iter().enumerate() {
        for json in [&[][..], &["--json"]] {
            for items in ["1", "3", "16"] {
                let state = format!("state-{n}-{items}-{}", json.len());
                let _ = fs::remove_file(directory.join("plan.json"));
                let plan = [
                    &["plan"],
                    files,
                    options,
                    &["--items", items, "--state", &state],
                ]
                .concat();
                succeeds(directory, &plan);
                let ran = output(directory, &["run", "plan.json", "--all", "-q"]);
                assert!(ran.status.code() < Some(2), "{files:?}: {}", said(&ran));
                let one = output(directory, &[files, options, json].concat());
                let many = output(directory, &[&["join", "plan.json"], json].concat());
                let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
                assert_eq!(text(&many), text(&one), "{files:?}");
                assert_eq!(
                    many.status.code(),
                    one.status.code(),
                    "{files:?}: {}",
                    said(&many)
                );
            }
        }
    }
}

#[test]
fn what_a_plan_leaves_out_of_a_tree_is_said_and_how_it_goes_on() {
    let (_kept, directory) = with_model(1 << 10);
    let directory = directory.as_path();
    fs::write(directory.join("optimizer.pt"), "moments").unwrap();
    std::os::unix::fs::symlink("nothing", directory.join("lost.gguf")).unwrap();
    fs::create_dir(directory.join("deep")).unwrap();
    fs::copy(
        directory.join("model.safetensors"),
        directory.join("deep/other.safetensors"),
    )
    .unwrap();
    std::os::unix::fs::symlink("deep", directory.join("again")).unwrap();
    let plan = [
        "plan", "verify", ".", "--items", "2", "--state", "state", "-o", "-",
    ];
    let planned = output(directory, &plan);
    let said = said(&planned);
    assert!(planned.status.success(), "{said}");
    for words in [
        "left out: optimizer.pt (it is the state of a training)",
        "left out: lost.gguf (what it links to is not there)",
        "left out: again (links to directories are not followed)",
        "`tenfold run PLAN --item N`",
    ] {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn what_cannot_be_done_is_said_before() {
    let (_kept, directory) = with_model(1 << 10);
    let directory = directory.as_path();
    let refused = |args: &[&str], what: &str| {
        let output = output(directory, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(said(&output).contains(what), "{}", said(&output));
    };
    let zstd = [
        "plan",
        "convert",
        "model.safetensors",
        "x.zt",
        "--zstd",
        "3",
        "--items",
        "2",
    ];
    refused(&zstd, "--shard-size");
    refused(&["plan", "digest", "model.safetensors"], "--items");
    refused(
        &[
            "plan",
            "digest",
            "https://host/x.npy?token=abcd",
            "--items",
            "2",
        ],
        "does not go into a plan",
    );
    refused(
        &[
            "plan",
            "stats",
            "model.safetensors",
            "--hist",
            "--items",
            "2",
        ],
        "--hist",
    );
    let convert = |output: &str, option: &[&str], what: &str| {
        let plan = ["plan", "convert", "model.safetensors", output];
        refused(&[&plan[..], option, &["--items", "2"]].concat(), what);
    };
    convert("x.gguf", &["--quantize", "Q8_0"], "--quantize");
    convert("s3://bucket/x.gguf", &[], "file system");
    convert("x.gguf", &["--state", "s3://bucket/state"], "file system");
    convert("x.zarr", &[], "directory");
    for verb in ["digest", "stats"] {
        let plan = [
            "plan",
            verb,
            "model.safetensors",
            "--dequantize",
            "--items",
            "2",
        ];
        refused(&plan, "--dequantize");
    }
    refused(&["run", "model.safetensors", "--all"], "no plan");
    succeeds(
        directory,
        &[
            "plan",
            "convert",
            "model.safetensors",
            "x.gguf",
            "--items",
            "2",
        ],
    );
    refused(&["run", "x.gguf.plan.json", "--item", "2"], "items are 0-0");
    succeeds(directory, &["run", "x.gguf.plan.json", "--all"]);
    fs::write(directory.join("x.gguf"), "mine").unwrap();
    refused(&["join", "x.gguf.plan.json"], "--force");
    assert_eq!(fs::read(directory.join("x.gguf")).unwrap(), b"mine");
    succeeds(
        directory,
        &["join", "x.gguf.plan.json", "--force", "--tidy"],
    );
    let left = fs::read_dir(directory).unwrap().flatten();
    let left: Vec<_> = left
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    assert!(
        !left.iter().any(|name| name.contains(".tenfold-")),
        "{left:?}"
    );
}

#[test]
fn a_directory_that_is_a_model_becomes_one_like_convert_does_it() {
    let (_kept, directory) = with_model(1 << 10);
    let directory = directory.as_path();
    fs::create_dir(directory.join("model")).unwrap();
    fs::rename(
        directory.join("model.safetensors"),
        directory.join("model/model.safetensors"),
    )
    .unwrap();
    fs::write(
        directory.join("model/config.json"),
        "{\"torch_dtype\": \"float32\"}",
    )
    .unwrap();
    succeeds(
        directory,
        &["convert", "model/", "one/", "--to", "gguf", "-q"],
    );
    succeeds(
        directory,
        &[
            "plan", "convert", "model/", "many/", "--to", "gguf", "--items", "2",
        ],
    );
    succeeds(directory, &["run", "many.plan.json", "--all"]);
    succeeds(directory, &["join", "many.plan.json"]);
    let files = |name: &str| {
        let entries = fs::read_dir(directory.join(name)).unwrap().flatten();
        let mut files: Vec<_> = entries
            .map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap()))
            .collect();
        files.sort();
        files
    };
    let (one, many) = (files("one"), files("many"));
    let names = |files: &[(std::ffi::OsString, Vec<u8>)]| -> Vec<_> {
        files.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&one), names(&many));
    assert!(one == many);
}
