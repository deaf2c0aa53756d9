//! Real conversions, merges and metadata edits in processes of their own that are killed, interrupted, starved and disturbed: afterwards there is
//! what was there before, or the whole new file, and nothing else.
//!
//! `TENFOLD_KILLS` says how many processes each test kills, of all kinds together; `cargo xtask crash --kills N` sets it.

#![cfg(unix)]
// A test that panics has failed, which is what it is for; the files that it writes are its own.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod in_place;
mod jobs;
mod places;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use jobs::{BINARY, OLD, is_partial, jobs, tree, write_input};
use rustix::process::Signal;
use tempfile::TempDir;

/// How many processes are killed of each of some kinds.
fn kills(kinds: usize) -> usize {
    std::env::var("TENFOLD_KILLS").map_or(4, |text| {
        let all: usize = text.parse().expect("a number of kills");
        all.div_ceil(kinds)
    })
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

#[test]
fn a_killed_command_leaves_the_old_or_the_whole_new() {
    let mut moments = Moments(7);
    let (mut old, mut new, mut left) = (0, 0, 0);
    let jobs = jobs();
    for job in &jobs {
        for _ in 0..kills(jobs.len()) {
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
fn an_interrupted_command_leaves_nothing() {
    let mut moments = Moments(11);
    let (mut stopped, mut done) = (0, 0);
    let jobs = jobs();
    for job in &jobs {
        for n in 0..kills(jobs.len()) {
            job.reset();
            let (signal, code) = [(Signal::TERM, 143), (Signal::INT, 130)][n % 2];
            let ended = job.disturb(signal, moments.next(job.time));
            let found = tree(&job.out());
            match (ended.status.code(), ended.status.signal()) {
                (Some(0), _) => {
                    done += 1;
                    assert!(found == job.after, "{:?}: {:?}", job.args, found.keys());
                }
                // Before it listens, nothing has been made yet.
                (Some(number), None) if number != code => {
                    panic!("{:?}: {number} instead of {code}", job.args)
                }
                (Some(_), _) | (_, Some(_)) => {
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
    for round in 0..kills(4) * 4 {
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

#[test]
fn two_conversions_to_the_same_directory_end_with_one_whole_directory() {
    let dir = TempDir::new().unwrap();
    write_input(&dir.path().join("a.safetensors"), 1, 1);
    for round in 0..kills(4) * 4 {
        let start = |_| {
            Command::new(BINARY)
                .current_dir(dir.path())
                .args(["convert", "a.safetensors", "all/", "--to", "npy", "--quiet"])
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let children: Vec<_> = (0..3).map(start).collect();
        let mut done = 0;
        for child in children {
            let ended = child.wait_with_output().unwrap();
            let messages = String::from_utf8_lossy(&ended.stderr);
            if ended.status.success() {
                done += 1
            } else {
                assert!(
                    messages.contains("already exists"),
                    "round {round}: {messages}"
                )
            }
        }
        assert_eq!(done, 1, "round {round}");
        let found = tree(dir.path());
        let all = found.keys().filter(|name| name.starts_with("all/"));
        assert_eq!((all.count(), found.len()), (9, 10), "{:?}", found.keys());
        fs::remove_dir_all(dir.path().join("all")).unwrap();
    }
}

#[test]
fn two_conversions_to_the_same_shards_end_with_those_of_one() {
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("out");
    let inputs = ["a.safetensors", "b.safetensors"];
    let mut whole = Vec::new();
    for (n, input) in inputs.iter().enumerate() {
        write_input(&dir.path().join(input), u8::try_from(n).unwrap() + 1, 2);
        fs::create_dir(&out).unwrap();
        run(&dir, &sharded(input), 0);
        whole.push(tree(&out));
        fs::remove_dir_all(&out).unwrap();
    }
    assert!(whole[0].len() > 3 && whole[0].keys().eq(whole[1].keys()));
    assert_ne!(whole[0], whole[1]);
    fs::create_dir(&out).unwrap();
    let mut refused = 0;
    for round in 0..kills(4) * 4 {
        let start = |input: &&str| {
            Command::new(BINARY)
                .current_dir(dir.path())
                .args(sharded(input))
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let children: Vec<_> = inputs.iter().map(start).collect();
        let mut done = Vec::new();
        for (child, whole) in children.into_iter().zip(&whole) {
            let ended = child.wait_with_output().unwrap();
            let messages = String::from_utf8_lossy(&ended.stderr);
            match ended.status.code() {
                Some(0) => done.push(whole),
                Some(2) => {
                    refused += 1;
                    let expected = "another process is writing out/t.safetensors and the files that belong to it";
                    assert!(messages.contains(expected), "round {round}: {messages}");
                }
                other => panic!("round {round}: {other:?}: {messages}"),
            }
        }
        let found = tree(&out);
        assert!(!done.is_empty(), "round {round}: nobody was done");
        assert!(done.contains(&&found), "round {round}: {:?}", found.keys());
    }
    eprintln!("{refused} refused");
}

fn sharded(input: &str) -> [&str; 7] {
    let target = "out/t.safetensors";
    [
        "convert",
        input,
        target,
        "--shard-size",
        "300KiB",
        "--force",
        "--quiet",
    ]
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
