//! Runs every case of `tests/cli/*.txt` against the built command.
//!
//! A case is a text file: shell lines that begin with `$ ` on top, then sections.
//!
//! ```text
//! $ tenfold verify pointer.mag
//! === exit 1
//! === stdout
//! what standard output must be
//! === stderr
//! what standard error must be
//! === file pointer.mag
//! a file that is there before the command runs
//! ```
//!
//! Each case runs in a directory of its own, where `fixtures` leads to the repository's fixtures. The directory's path
//! is shown as `[DIR]` and durations as `[TIME]`. `BLESS=1 cargo test -p tenfold-cli --test cli` rewrites what is
//! expected with what came out: read the difference before it is committed.
#![cfg(unix)]
// A test that panics has failed, which is what it is for; the files that it writes are its own.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]

use serde::Deserialize;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tenfold::Bytes;
use tenfold::format::Registry;
use tenfold::io::AtomicOutput;
use tenfold::model::DType;
use tenfold::ops::{Conversion, ConvertOptions};

const BINARY: &str = env!("CARGO_BIN_EXE_tenfold");

#[test]
fn every_case_gives_what_it_says() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    let mut paths: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    let bless = std::env::var_os("BLESS").is_some_and(|value| !value.is_empty());
    let mut failures = String::new();
    for path in &paths {
        let text = fs::read_to_string(path).unwrap();
        let case = Case::parse(&text);
        let outcome = case.run();
        if outcome == case.expected {
            continue;
        }
        if bless {
            fs::write(path, case.with(&outcome)).unwrap();
        } else {
            let (wanted, got) = (case.with(&case.expected), case.with(&outcome));
            writeln!(
                failures,
                "{}\n{}",
                path.display(),
                difference(&wanted, &got)
            )
            .unwrap();
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn a_closed_pipe_is_silent() {
    for args in [&["formats"][..], &["formats", "--json"], &["--help"]] {
        let mut child = Command::new(BINARY)
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    }
}

#[test]
fn json_is_json_for_every_fixture() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut files = Vec::new();
    for format in fs::read_dir(fixtures).unwrap() {
        for kind in ["valid", "reject"] {
            let Ok(entries) = fs::read_dir(format.as_ref().unwrap().path().join(kind)) else {
                continue;
            };
            files.extend(entries.map(|entry| entry.unwrap().path()));
        }
    }
    assert!(files.len() > 2);
    for command in ["inspect", "verify", "digest", "stats"] {
        let output = Command::new(BINARY)
            .args([command, "--json"])
            .args(&files)
            .output()
            .unwrap();
        // Metadata may be nested deeper than serde_json goes unless it is told to.
        let mut json = serde_json::Deserializer::from_slice(&output.stdout);
        json.disable_recursion_limit();
        let documents = Vec::<serde_json::Value>::deserialize(&mut json).unwrap();
        json.end().unwrap();
        assert_eq!(documents.len(), files.len(), "{command}");
        assert!(
            documents
                .iter()
                .all(|document| document["file"].is_string())
        );
    }
}

#[test]
fn an_interrupted_conversion_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("in.zt");
    write_noise(&input, 64 << 20);
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        // Minutes of work, if nobody stopped it.
        let child = Command::new(BINARY)
            .args(["convert", "in.zt", "out.zt", "--zstd", "19"])
            .args(["--threads", "1", "--json"])
            .current_dir(directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_secs(1));
        let killed = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status()
            .unwrap();
        assert!(killed.success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{signal}");
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            "tenfold: stopped; nothing was written\n"
        );
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["schema"], "tenfold.error/1");
        assert_eq!(document["kind"], "canceled");
        let names: Vec<_> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["in.zt"]);
    }
}

/// Eight thousand million zeros, which take no room on the disk: to read all of them would take minutes.
#[test]
fn a_huge_tensor_is_shown_as_it_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("huge.npy");
    let elements = 8_000_000_000_u64;
    let dictionary =
        format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({elements},), }}");
    let mut header = b"\x93NUMPY\x01\0\x76\0".to_vec();
    writeln!(header, "{dictionary:<117}").unwrap();
    fs::write(&path, &header).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(header.len() as u64 + elements).unwrap();
    for format in ["text", "csv", "json"] {
        let mut child = Command::new(BINARY)
            .args(["show", "huge.npy", "--full", "--format", format])
            .current_dir(directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut begin = [0; 1000];
        child.stdout.take().unwrap().read_exact(&mut begin).unwrap();
        // The pipe is closed now.
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{format}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{format}");
    }
}

#[test]
fn every_json_document_has_a_schema_that_is_documented() {
    let directory = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/cli.md")).unwrap();
    let input = root.join("fixtures/mag/valid/spec_many.mag");
    let input = input.to_str().unwrap();
    let lines: &[&[&str]] = &[
        &["inspect", input],
        &["verify", input],
        &["digest", input],
        &["show", input, "blk.0.w"],
        &["stats", input],
        &["diff", input, input],
        &["formats"],
        &["formats", "mag"],
        &["meta", "get", input],
        &["meta", "set", input, "a=b", "-o", "set.mag"],
        &["meta", "unset", input, "cfg.1", "-o", "unset.mag"],
        &["convert", input, "out.zt"],
        &["convert", input, "out.npz"],
        &["extract", input, "-t", "blk.0.w", "-o", "one.npy"],
        &["merge", input, "-o", "merged.zt"],
        &["split", input, "-o", "parts/", "--parts", "2"],
        &["rename", input, "-o", "renamed.mag", "--rule", "s/w$/x/"],
        &["inspect", "nowhere"],
        &["inspect", "--nonsense"],
    ];
    let mut seen = Vec::new();
    for line in lines {
        let output = Command::new(BINARY)
            .args(*line)
            .arg("--json")
            .current_dir(directory.path())
            .output()
            .unwrap();
        let document = serde_json::from_slice(&output.stdout).unwrap();
        let documents = match document {
            serde_json::Value::Array(documents) => documents,
            document => vec![document],
        };
        for document in documents {
            let schema = document["schema"].as_str().unwrap_or_default().to_owned();
            assert!(
                page.contains(&schema) && !schema.is_empty(),
                "{line:?}: {schema}"
            );
            seen.push(schema);
        }
    }
    seen.sort();
    seen.dedup();
    // Each form has a name of its own.
    assert_eq!(seen.len(), 15, "{seen:?}");
}

#[test]
fn a_hundred_thousand_tensors_are_listed_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut builder = tenfold::Archive::builder();
    for layer in 0..100_000 {
        let name = format!("model.layers.{layer}.mlp.weight");
        builder
            .push(name, DType::F32, &[1], Bytes::from_static(&[0; 4]))
            .unwrap();
    }
    write(&builder.finish(), &directory.path().join("many.zt"));
    for args in [
        &["inspect"][..],
        &["inspect", "--sort", "natural"],
        &["inspect", "--json"],
    ] {
        // Quadratic work would take minutes.
        let output = Command::new(BINARY)
            .args(args)
            .arg("many.zt")
            .current_dir(directory.path())
            .output()
            .unwrap();
        assert!(output.status.success());
        let names = output
            .stdout
            .split(|&byte| byte == b'\n')
            .filter(|line| line.ends_with(b" 4 B") || line.starts_with(b"{\"name\""));
        assert_eq!(names.count(), 100_000, "{args:?}");
    }
}

/// Writes a file with one tensor that no compression makes smaller.
fn write_noise(path: &Path, len: usize) {
    let mut state = 1u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()
    })
    .flatten()
    .take(len)
    .collect();
    let mut builder = tenfold::Archive::builder();
    builder
        .push("noise", DType::U8, &[len as u64], Bytes::from(noise))
        .unwrap();
    write(&builder.finish(), path);
}

fn write(archive: &tenfold::Archive, path: &Path) {
    let registry = Registry::standard();
    let target = registry.get("ztensor").unwrap();
    let conversion = Conversion::prepare(archive, target, &ConvertOptions::default()).unwrap();
    let mut output = AtomicOutput::file(path).unwrap().sync(false);
    let name = output.main_name().to_owned();
    conversion.write_to(&name, &mut output).unwrap();
}

/// A command, what it starts with, and what must come out.
struct Case<'a> {
    script: Vec<&'a str>,
    files: Vec<(&'a str, &'a str)>,
    expected: Outcome,
}

#[derive(Default, PartialEq)]
struct Outcome {
    exit: String,
    stdout: String,
    stderr: String,
}

impl<'a> Case<'a> {
    fn parse(text: &'a str) -> Self {
        let mut sections = text.split("=== ");
        let head = sections.next().unwrap_or_default();
        let script = head
            .lines()
            .map(|line| {
                line.strip_prefix("$ ")
                    .expect("a line that begins with `$ `")
            })
            .collect();
        let mut case = Self {
            script,
            files: Vec::new(),
            expected: Outcome::default(),
        };
        for section in sections {
            let (title, body) = section.split_once('\n').expect("a line with a title");
            match title.split_once(' ') {
                Some(("exit", code)) => case.expected.exit = code.to_owned(),
                Some(("file", name)) => case.files.push((name, body)),
                _ if title == "stdout" => case.expected.stdout = body.to_owned(),
                _ if title == "stderr" => case.expected.stderr = body.to_owned(),
                _ => panic!("a section {title:?}"),
            }
        }
        case
    }

    /// The case as a text, with this outcome.
    fn with(&self, outcome: &Outcome) -> String {
        let mut text = String::new();
        for line in &self.script {
            writeln!(text, "$ {line}").unwrap();
        }
        let Outcome {
            exit,
            stdout,
            stderr,
        } = outcome;
        write!(
            text,
            "=== exit {exit}\n=== stdout\n{stdout}=== stderr\n{stderr}"
        )
        .unwrap();
        for (name, body) in &self.files {
            write!(text, "=== file {name}\n{body}").unwrap();
        }
        text
    }

    fn run(&self) -> Outcome {
        let directory = tempfile::tempdir().unwrap();
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
        std::os::unix::fs::symlink(
            fs::canonicalize(fixtures).unwrap(),
            directory.path().join("fixtures"),
        )
        .unwrap();
        for (name, body) in &self.files {
            fs::write(directory.path().join(name), body).unwrap();
        }
        let path = std::env::var("PATH").unwrap_or_default();
        let binaries = Path::new(BINARY).parent().unwrap().display().to_string();
        let mut command = Command::new("sh");
        for name in [
            "NO_COLOR",
            "CLICOLOR",
            "CLICOLOR_FORCE",
            "FORCE_COLOR",
            "SOURCE_DATE_EPOCH",
        ] {
            command.env_remove(name);
        }
        let output = command
            .args(["-c", &self.script.join("\n")])
            .current_dir(directory.path())
            .env("PATH", format!("{binaries}:{path}"))
            .env("LC_ALL", "C")
            .env("TERM", "xterm")
            .env("COLUMNS", "100")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let shown = |bytes: &[u8]| normalise(&String::from_utf8_lossy(bytes), directory.path());
        Outcome {
            exit: output
                .status
                .code()
                .map_or("by a signal".into(), |code| code.to_string()),
            stdout: shown(&output.stdout),
            stderr: shown(&output.stderr),
        }
    }
}

/// Takes out what differs from run to run: where it ran, and how long it took.
fn normalise(text: &str, directory: &Path) -> String {
    let mut text = text.replace(
        &*fs::canonicalize(directory).unwrap().to_string_lossy(),
        "[DIR]",
    );
    text = text.replace(&*directory.to_string_lossy(), "[DIR]");
    for (before, after) in [(" in ", " s"), ("\"seconds\": ", "}")] {
        let mut done = String::new();
        let mut rest = text.as_str();
        while let Some((head, tail)) = rest.split_once(before) {
            let digits = tail
                .find(|c: char| !c.is_ascii_digit() && c != '.')
                .unwrap_or(tail.len());
            done += head;
            done += before;
            if digits > 0 && tail[digits..].starts_with(after) {
                done += "[TIME]";
                rest = &tail[digits..];
            } else {
                rest = tail;
            }
        }
        text = done + rest;
    }
    // Output that does not end in a newline is shown with a mark, so that the next section starts on a line.
    if !text.is_empty() && !text.ends_with('\n') {
        text += "[no newline]\n";
    }
    text
}

/// The lines that differ, wanted before got.
fn difference(wanted: &str, got: &str) -> String {
    let (wanted, got): (Vec<_>, Vec<_>) = (wanted.lines().collect(), got.lines().collect());
    let same = wanted.iter().zip(&got).take_while(|(a, b)| a == b).count();
    let mut text = String::new();
    for line in wanted.iter().skip(same).take(12) {
        writeln!(text, "  - {line}").unwrap();
    }
    for line in got.iter().skip(same).take(12) {
        writeln!(text, "  + {line}").unwrap();
    }
    text
}
