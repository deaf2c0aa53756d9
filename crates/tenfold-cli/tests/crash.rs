//! Real conversions in processes of their own that are killed, interrupted, starved and disturbed: afterwards there is
//! what was there before, or the whole new file, and nothing else.
//!
//! `TENFOLD_KILLS` says how many processes are killed; `cargo xtask crash --kills N` sets it.

#![cfg(unix)]
// A test that panics has failed, which is what it is for; the files that it writes are its own.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_tenfold");
const OLD: &[u8] = b"what was there before";

/// How many processes each of the tests kills.
fn kills() -> usize {
    std::env::var("TENFOLD_KILLS").map_or(4, |text| text.parse().expect("a number of kills"))
}

/// Everything below a directory, by its path in it; a directory ends with a slash.
type Tree = BTreeMap<String, Vec<u8>>;

fn tree(root: &Path) -> Tree {
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
fn is_partial(name: &str) -> bool {
    name.split('/')
        .next()
        .unwrap()
        .ends_with(".tenfold-partial")
}

/// A safetensors file whose tensors are copied, rearranged and compressed for a while.
fn write_input(path: &Path, seed: u8, mebibytes: usize) {
    let tensors = 8;
    let each = mebibytes * (1 << 20) / tensors;
    let mut header = String::from("{");
    for n in 0..tensors {
        let (from, to) = (n * each, (n + 1) * each);
        let comma = if n == 0 { "" } else { "," };
        let shape = [each / 4096, 1024];
        header += &format!(
            "{comma}\"layer.{n}\":{{\"dtype\":\"F32\",\"shape\":{shape:?},\"data_offsets\":[{from},{to}]}}"
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

/// A conversion that can be started again and again.
struct Job {
    dir: TempDir,
    args: Vec<String>,
    /// What the directory of the output holds before.
    before: Tree,
    /// And after an undisturbed run.
    after: Tree,
    time: Duration,
}

impl Job {
    /// Converts `in.safetensors` to `out/NAME`, where `old` may be already.
    fn new(name: &str, old: bool, options: &[&str]) -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir(dir.path().join("out")).unwrap();
        write_input(&dir.path().join("in.safetensors"), 0, 8);
        let mut args = vec!["convert".to_owned(), "in.safetensors".to_owned()];
        args.push(format!("out/{name}"));
        args.extend(options.iter().map(|&option| option.to_owned()));
        args.push("--quiet".to_owned());
        let mut job = Self {
            dir,
            args,
            before: Tree::new(),
            after: Tree::new(),
            time: Duration::ZERO,
        };
        if old {
            fs::write(job.out().join(name), OLD).unwrap();
        }
        job.before = tree(&job.out());
        let begin = Instant::now();
        job.succeed();
        job.time = begin.elapsed();
        job.after = tree(&job.out());
        assert_ne!(job.before, job.after);
        job
    }

    fn out(&self) -> PathBuf {
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

    fn succeed(&self) {
        let done = self.command().output().unwrap();
        let messages = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{:?}: {messages}", self.args);
    }

    /// Puts back what was there before, and leaves what a killed process left.
    fn reset(&self) {
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
    fn disturb(&self, signal: Signal, after: Duration) -> Output {
        let child = self.command().spawn().unwrap();
        sleep(after);
        let pid = Pid::from_child(&child);
        // It may have ended by itself.
        let _ = kill_process(pid, signal);
        child.wait_with_output().unwrap()
    }
}

/// Random enough, and the same every time.
struct Moments(u64);

impl Moments {
    /// A moment between the start and a little after the end.
    fn next(&mut self, time: Duration) -> Duration {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        time.mul_f64((self.0 >> 33) as f64 / f64::from(1u32 << 31) * 1.1)
    }
}

/// The conversions that are killed: to a new file, over an old one, compressed, rearranged, into a directory.
fn jobs() -> Vec<Job> {
    vec![
        Job::new("new.zt", false, &["--allow", "dropped"]),
        Job::new("old.zt", true, &["--force", "--zstd", "1"]),
        Job::new("old.mag", true, &["--force", "--check"]),
        Job::new("all/", false, &["--to", "tens"]),
    ]
}

#[test]
fn a_killed_conversion_leaves_the_old_or_the_whole_new() {
    let mut moments = Moments(7);
    let (mut old, mut new, mut left) = (0, 0, 0);
    for job in jobs() {
        for _ in 0..kills() {
            job.reset();
            let ended = job.disturb(Signal::KILL, moments.next(job.time));
            let mut found = tree(&job.out());
            let partial = found.keys().filter(|name| is_partial(name)).count();
            left += usize::from(partial > 0);
            found.retain(|name, _| !is_partial(name));
            if found == job.before {
                old += 1;
            } else {
                new += 1;
                assert!(found == job.after, "{:?}: {:?}", job.args, found.keys());
            }
            if ended.status.success() {
                assert!(found == job.after, "{:?} said that it is done", job.args);
            }
        }
        // Whatever the killed ones left, the next one removes.
        job.reset();
        job.succeed();
        assert!(
            tree(&job.out()) == job.after,
            "{:?}",
            tree(&job.out()).keys()
        );
    }
    eprintln!(
        "{} killed: {old} old, {new} new, {left} left something for the next run",
        old + new
    );
    assert!(old > 0, "no process was killed before it was done");
}

#[test]
fn an_interrupted_conversion_leaves_nothing() {
    let mut moments = Moments(11);
    let (mut stopped, mut done) = (0, 0);
    for job in jobs() {
        for n in 0..kills() {
            job.reset();
            let signal = [Signal::TERM, Signal::INT][n % 2];
            let ended = job.disturb(signal, moments.next(job.time));
            let found = tree(&job.out());
            match (ended.status.code(), ended.status.signal()) {
                (Some(0), _) => {
                    done += 1;
                    assert!(found == job.after, "{:?}: {:?}", job.args, found.keys());
                }
                // Before it listens, nothing has been made yet.
                (Some(130), _) | (_, Some(_)) => {
                    stopped += 1;
                    assert!(found == job.before, "{:?}: {:?}", job.args, found.keys());
                }
                other => panic!("{:?}: {other:?}", job.args),
            }
        }
    }
    eprintln!("{stopped} interrupted, {done} were done before");
    assert!(stopped > 0, "no process was interrupted before it was done");
}

#[test]
fn two_conversions_to_the_same_target_end_with_one_whole_file() {
    let dir = TempDir::new().unwrap();
    let inputs = ["a.safetensors", "b.safetensors"];
    let mut whole = Vec::new();
    for (n, input) in inputs.iter().enumerate() {
        write_input(&dir.path().join(input), u8::try_from(n).unwrap() + 1, 2);
        run(&dir, &["convert", input, &format!("{n}.zt"), "--quiet"], 0);
        whole.push(fs::read(dir.path().join(format!("{n}.zt"))).unwrap());
    }
    assert_ne!(whole[0], whole[1]);
    fs::create_dir(dir.path().join("out")).unwrap();
    for round in 0..kills() * 4 {
        if round % 2 == 0 {
            fs::write(dir.path().join("out/t.zt"), OLD).unwrap();
        }
        let start = |input: &&str| {
            Command::new(BINARY)
                .current_dir(dir.path())
                .args(["convert", input, "out/t.zt", "--force", "--quiet"])
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let children: Vec<_> = inputs.iter().map(start).collect();
        for child in children {
            let ended = child.wait_with_output().unwrap();
            let messages = String::from_utf8_lossy(&ended.stderr);
            assert!(ended.status.success(), "round {round}: {messages}");
        }
        let found = tree(&dir.path().join("out"));
        assert_eq!(found.keys().collect::<Vec<_>>(), ["t.zt"]);
        assert!(
            whole.contains(&found["t.zt"]),
            "round {round}: neither of them"
        );
    }
}

/// Runs the command in a directory and gives its messages.
fn run(dir: &TempDir, args: &[&str], code: i32) -> String {
    let done = Command::new(BINARY)
        .current_dir(dir.path())
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(code), "{args:?}: {messages}");
    messages
}

fn small() -> TempDir {
    let dir = TempDir::new().unwrap();
    write_input(&dir.path().join("in.safetensors"), 3, 1);
    dir
}

#[test]
fn a_source_that_becomes_shorter_is_an_error_and_leaves_nothing() {
    let dir = small();
    let input = dir.path().join("in.safetensors");
    let whole = fs::read(&input).unwrap();
    let (mut refused, mut done) = (0, 0);
    for step in 0..30u64 {
        fs::write(&input, &whole).unwrap();
        let child = Command::new(BINARY)
            .current_dir(dir.path())
            .args([
                "convert",
                "in.safetensors",
                "out.zt",
                "--zstd",
                "3",
                "--quiet",
            ])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        sleep(Duration::from_millis(step));
        // Without replacing it: who has it open sees it shrink.
        let file = fs::OpenOptions::new().write(true).open(&input).unwrap();
        file.set_len(whole.len() as u64 / 3).unwrap();
        let ended = child.wait_with_output().unwrap();
        let output = dir.path().join("out.zt");
        match ended.status.code() {
            Some(0) => {
                done += 1;
                run(&dir, &["verify", "out.zt", "--quiet"], 0);
                fs::remove_file(output).unwrap();
            }
            Some(2) => {
                refused += 1;
                assert!(!output.exists());
            }
            other => panic!("{other:?}: {}", String::from_utf8_lossy(&ended.stderr)),
        }
        let names: Vec<_> = tree(dir.path()).into_keys().collect();
        assert_eq!(names, ["in.safetensors"]);
    }
    eprintln!("{refused} refused, {done} were done before");
}

#[test]
fn a_target_on_another_file_system_is_written_there() {
    let dir = small();
    let here = fs::metadata(dir.path()).unwrap().dev();
    let elsewhere = ["/dev/shm", "/var/tmp", env!("CARGO_TARGET_TMPDIR"), "/run"];
    let other = |path: &&str| fs::metadata(path).is_ok_and(|found| found.dev() != here);
    let place = elsewhere.into_iter().filter(other);
    let Some(there) = place.filter_map(|path| TempDir::new_in(path).ok()).next() else {
        eprintln!("SKIPPED: there is no second file system to write to");
        return;
    };
    let target = there.path().join("out.zt");
    run(
        &dir,
        &[
            "convert",
            "in.safetensors",
            target.to_str().unwrap(),
            "--quiet",
            "--check",
        ],
        0,
    );
    assert_eq!(tree(there.path()).len(), 1);
    assert_eq!(tree(dir.path()).len(), 1);
}

#[test]
fn a_directory_that_cannot_be_written_is_said_and_stays_as_it_is() {
    let dir = small();
    let closed = dir.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    // Who may do everything is not stopped by permissions, but by a file system without files.
    let mut target = closed.join("out.zt");
    if fs::write(closed.join("probe"), "").is_ok() {
        fs::remove_file(closed.join("probe")).unwrap();
        target = PathBuf::from("/proc/out.zt");
        if !Path::new("/proc/self").exists() {
            eprintln!("SKIPPED: nothing is closed to this user");
            return;
        }
    }
    let message = run(
        &dir,
        &[
            "convert",
            "in.safetensors",
            target.to_str().unwrap(),
            "--quiet",
        ],
        2,
    );
    assert!(message.contains("cannot create"), "{message}");
    assert!(!target.exists());
}

#[test]
fn links_are_followed_and_what_is_no_file_is_not_replaced() {
    let dir = small();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("real")).unwrap();
    fs::write(at("real/m.zt"), OLD).unwrap();
    symlink("real/m.zt", at("link.zt")).unwrap();
    run(
        &dir,
        &["convert", "in.safetensors", "link.zt", "--quiet", "--force"],
        0,
    );
    assert!(at("link.zt").symlink_metadata().unwrap().is_symlink());
    run(&dir, &["verify", "real/m.zt", "--quiet"], 0);

    fs::create_dir(at("folder.zt")).unwrap();
    run(
        &dir,
        &[
            "convert",
            "in.safetensors",
            "folder.zt",
            "--quiet",
            "--force",
        ],
        2,
    );
    assert!(at("folder.zt").is_dir());

    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, at("pipe.zt"), fifo, mode, 0).unwrap();
    let message = run(
        &dir,
        &["convert", "in.safetensors", "pipe.zt", "--quiet", "--force"],
        2,
    );
    assert!(message.contains("a device or a pipe"), "{message}");
    let message = run(&dir, &["convert", "pipe.zt", "out.zt", "--quiet"], 2);
    assert!(message.contains("not a regular file"), "{message}");
    assert!(!at("out.zt").exists());
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let dir = small();
    let disk = TempDir::new().unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=512k", "tmpfs"])
        .arg(disk.path())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        eprintln!("SKIPPED: a small disk cannot be mounted here (needs root)");
        return;
    }
    let unmount = Unmount(disk);
    let target = unmount.0.path().join("m.zt");
    fs::write(&target, OLD).unwrap();
    // The length is known before, and is not.
    for options in [&["--raw"][..], &["--zstd", "1"]] {
        let mut args = vec!["convert", "in.safetensors", target.to_str().unwrap()];
        args.extend(["--quiet", "--force"].iter().chain(options));
        let message = run(&dir, &args, 2);
        assert!(message.contains("no space left"), "{message}");
        let found = tree(unmount.0.path());
        assert_eq!(found, Tree::from([("m.zt".to_owned(), OLD.to_vec())]));
    }
}

struct Unmount(TempDir);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}
