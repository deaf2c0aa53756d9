//! Commands that can be started again and again, and what they leave.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

pub(super) const BINARY: &str = env!("CARGO_BIN_EXE_tenfold");
pub(super) const OLD: &[u8] = b"what was there before";

/// What is killed: conversions to a new file, over an old one, compressed, rearranged, into a directory; merges to a new
/// file and over an old one; metadata edits of a file in its own place and to another one.
pub(super) fn jobs() -> Vec<Job> {
    vec![
        Job::convert("new.zt", false, &["--allow", "dropped"]),
        Job::convert("old.zt", true, &["--force", "--zstd", "1"]),
        Job::convert("old.mag", true, &["--force", "--check"]),
        Job::convert("all/", false, &["--to", "tens"]),
        Job::merge("new.safetensors", false, &[]),
        Job::merge("old.gguf", true, &["--force"]),
        Job::edit("in place.safetensors", true),
        Job::edit("new.safetensors", false),
    ]
}

/// Everything below a directory, by its path in it; a directory ends with a slash.
pub(super) type Tree = BTreeMap<String, Vec<u8>>;

pub(super) fn tree(root: &Path) -> Tree {
    let mut found = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if path.is_dir() {
                found.insert(format!("{name}/"), Vec::new());
                folders.push(path);
            } else {
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// What a killed process may leave beside its target until the next run.
pub(super) fn is_partial(name: &str) -> bool {
    name.split('/')
        .next()
        .unwrap()
        .ends_with(".tenfold-partial")
}

/// A safetensors file whose tensors are copied, rearranged and compressed for a while; the seed is part of their names.
pub(super) fn write_input(path: &Path, seed: u8, mebibytes: usize) {
    let tensors = 8;
    let each = mebibytes * (1 << 20) / tensors;
    let mut header = String::from("{");
    for n in 0..tensors {
        let (from, to) = (n * each, (n + 1) * each);
        let comma = if n == 0 { "" } else { "," };
        let shape = [each / 4096, 1024];
        header += &format!(
            "{comma}\"layer.{seed}.{n}\":{{\"dtype\":\"F32\",\"shape\":{shape:?},\"data_offsets\":[{from},{to}]}}"
        );
    }
    header += "}";
    while header.len() % 8 != 0 {
        header.push(' ');
    }
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    let mut state = u32::from(seed) + 1;
    for _ in 0..tensors * each / 4 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bytes.extend_from_slice(&(state >> 12).to_le_bytes());
    }
    fs::write(path, bytes).unwrap();
}

/// A command that can be started again and again.
pub(super) struct Job {
    dir: TempDir,
    pub(super) args: Vec<String>,
    /// What the directory of the output holds before.
    pub(super) before: Tree,
    /// And after an undisturbed run.
    pub(super) after: Tree,
    pub(super) time: Duration,
}

impl Job {
    /// Converts a file to `out/NAME`, where `old` may be already.
    fn convert(name: &str, old: bool, options: &[&str]) -> Self {
        let target = format!("out/{name}");
        let mut args = vec!["convert", "a.safetensors", &target];
        args.extend(options);
        Self::new(&args, old.then_some((name, OLD)))
    }

    /// Merges two files into one.
    fn merge(name: &str, old: bool, options: &[&str]) -> Self {
        let target = format!("out/{name}");
        let mut args = vec!["merge", "a.safetensors", "b.safetensors", "-o", &target];
        args.extend(options);
        Self::new(&args, old.then_some((name, OLD)))
    }

    /// Writes a file with other metadata, in its own place or to `out/NAME`.
    fn edit(name: &str, in_place: bool) -> Self {
        let target = format!("out/{name}");
        if !in_place {
            return Self::new(
                &["meta", "set", "a.safetensors", "k=v", "-o", &target],
                None,
            );
        }
        let dir = TempDir::new().unwrap();
        let input = dir.path().join("input");
        write_input(&input, 0, 8);
        let args = ["meta", "set", &target, "k=v", "-o", &target, "--force"];
        Self::new(&args, Some((name, &fs::read(input).unwrap())))
    }

    /// A command in a directory with two inputs, and a file in `out` that is there before.
    fn new(args: &[&str], old: Option<(&str, &[u8])>) -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir(dir.path().join("out")).unwrap();
        write_input(&dir.path().join("a.safetensors"), 0, 8);
        write_input(&dir.path().join("b.safetensors"), 1, 4);
        let mut args: Vec<_> = args.iter().map(|&arg| arg.to_owned()).collect();
        args.push("--quiet".to_owned());
        let mut job = Self {
            dir,
            args,
            before: Tree::new(),
            after: Tree::new(),
            time: Duration::ZERO,
        };
        if let Some((name, bytes)) = old {
            fs::write(job.out().join(name), bytes).unwrap();
        }
        job.before = tree(&job.out());
        let begin = Instant::now();
        job.succeed();
        job.time = begin.elapsed();
        job.after = tree(&job.out());
        assert_ne!(job.before, job.after);
        job
    }

    pub(super) fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(BINARY);
        command
            .current_dir(self.dir.path())
            .args(&self.args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    pub(super) fn succeed(&self) {
        let done = self.command().output().unwrap();
        let messages = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{:?}: {messages}", self.args);
    }

    /// Puts back what was there before, and leaves what a killed process left.
    pub(super) fn reset(&self) {
        for name in tree(&self.out()).keys().rev() {
            if is_partial(name) {
                continue;
            }
            match name.strip_suffix('/') {
                Some(folder) => fs::remove_dir(self.out().join(folder)).unwrap(),
                None => fs::remove_file(self.out().join(name)).unwrap(),
            }
        }
        for (name, bytes) in &self.before {
            fs::write(self.out().join(name), bytes).unwrap();
        }
    }

    /// Starts it and sends a signal after some time. Returns how it ended.
    pub(super) fn disturb(&self, signal: Signal, after: Duration) -> Output {
        let child = self.command().spawn().unwrap();
        sleep(after);
        let pid = Pid::from_child(&child);
        // It may have ended by itself.
        let _ = kill_process(pid, signal);
        child.wait_with_output().unwrap()
    }
}
