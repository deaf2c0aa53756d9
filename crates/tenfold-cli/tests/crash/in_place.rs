//! Edits of a file in its own place, killed: whoever reads it then sees what it was or what it was to be, and the next edit
//! works.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::jobs::{BINARY, tree, write_input};
use super::{Moments, kills, run};

/// Metadata that takes a while to be written: the header, and so the journal, has hundreds of kilobytes.
const ROOM: &str = "reserve=500000";
const TEXT: usize = 400_000;

const FILES: [(&str, &str); 3] = [("a.safetensors", "-"), ("a.gguf", "3"), ("a.zt", "2")];

#[test]
fn a_killed_edit_in_place_is_read_as_it_was_or_as_it_was_to_be() {
    let dir = TempDir::new().unwrap();
    write_input(&dir.path().join("input.safetensors"), 0, 1);
    fs::write(dir.path().join("long.json"), document('x')).unwrap();
    let mut moments = Moments(13);
    let (mut old, mut new, mut left) = (0, 0, 0);
    for (file, version) in FILES {
        let convert = ["convert", "input.safetensors", file, "--quiet"];
        let convert = [&convert[..], &["-O", ROOM, "--version", version]].concat();
        run(&dir, &convert, 0);
        let digest = content(&dir, file);
        let begin = Instant::now();
        run(&dir, &edit(file, "long.json"), 0);
        let time = begin.elapsed();
        for _ in 0..kills(FILES.len()) {
            run(&dir, &set(file, "before"), 0);
            let child = Command::new(BINARY)
                .current_dir(dir.path())
                .args(edit(file, "long.json"))
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            sleep(moments.next(time));
            // It may have ended by itself.
            let _ = kill_process(Pid::from_child(&child), Signal::KILL);
            let ended = child.wait_with_output().unwrap();
            left += usize::from(dir.path().join(format!(".{file}.tenfold-undo")).exists());
            let note = note(&dir, file);
            if note == "before" {
                assert!(!ended.status.success(), "{file} said that it is done");
                old += 1;
            } else {
                assert_eq!(note.len(), TEXT, "{file}");
                new += 1;
            }
            assert_eq!(content(&dir, file), digest, "{file}");
        }
        run(&dir, &set(file, "after"), 0);
        assert_eq!(note(&dir, file), "after");
        run(&dir, &["verify", "--quiet", file], 0);
        assert!(!hidden(dir.path()), "{file} left something");
    }
    eprintln!(
        "{} killed: {old} old, {new} new, {left} left a journal",
        old + new
    );
    assert!(old > 0, "no process was killed before it was done");
}

fn document(letter: char) -> String {
    format!("{{\"note\": \"{}\"}}", letter.to_string().repeat(TEXT))
}

fn edit<'a>(file: &'a str, document: &'a str) -> [&'a str; 6] {
    ["meta", "import", file, document, "--in-place", "--quiet"]
}

fn set<'a>(file: &'a str, note: &'a str) -> [&'a str; 6] {
    let note = if note == "before" {
        "note=before"
    } else {
        "note=after"
    };
    ["meta", "set", file, note, "--in-place", "--quiet"]
}

fn output(dir: &TempDir, args: &[&str]) -> String {
    let mut command = Command::new(BINARY);
    let done = command.current_dir(dir.path()).args(args).output().unwrap();
    let messages = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{args:?}: {messages}");
    String::from_utf8(done.stdout).unwrap()
}

fn note(dir: &TempDir, file: &str) -> String {
    output(dir, &["meta", "get", file, "note", "--raw"])
}

fn content(dir: &TempDir, file: &str) -> String {
    let digests = output(dir, &["digest", file]);
    digests.lines().last().unwrap().to_owned()
}

fn hidden(directory: &Path) -> bool {
    tree(directory).keys().any(|name| name.starts_with('.'))
}
