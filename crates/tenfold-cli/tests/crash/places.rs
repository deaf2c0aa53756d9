//! Targets and sources that are not what they should be: full disks, closed directories, links, pipes, other file systems,
//! inputs that change.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

use crate::jobs::{BINARY, OLD, Tree, tree, write_input};
use crate::run;

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

/// A user's limit on the size of files ends a process that is not prepared for it.
#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_leaves_what_was_there() {
    let dir = small();
    fs::write(dir.path().join("out.zt"), OLD).unwrap();
    for options in ["", "--zstd 3"] {
        let line = format!(
            "ulimit -f 64 && exec '{BINARY}' convert in.safetensors out.zt --force --quiet {options}"
        );
        let ended = Command::new("sh")
            .current_dir(dir.path())
            .args(["-c", &line])
            .output()
            .unwrap();
        let messages = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(
            ended.status.code(),
            Some(2),
            "{:?}: {messages}",
            ended.status
        );
        assert!(messages.contains("File too large"), "{messages}");
        let found = tree(dir.path());
        assert_eq!(found["out.zt"], OLD);
        assert_eq!(found.len(), 2, "{:?}", found.keys());
    }
}

/// Who may replace a file in a directory, and not give files to its owner, gets it without what was theirs.
#[test]
fn a_file_of_somebody_else_is_replaced_without_their_bits_and_group() {
    const OTHER: u32 = 12345;
    let dir = small();
    let target = dir.path().join("out.zt");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(&target, OLD).unwrap();
    let as_other = |args: &[&str]| {
        let mut command = Command::new(BINARY);
        command.current_dir(dir.path()).args(args);
        command.uid(OTHER).gid(OTHER).output()
    };
    if !as_other(&["formats"]).is_ok_and(|ended| ended.status.success()) {
        eprintln!("SKIPPED: the command cannot be run as another user here (needs root)");
        return;
    }
    for (mode, left) in [
        (0o6755, 0o705),
        (0o664, 0o604),
        (0o4640, 0o600),
        (0o600, 0o600),
    ] {
        fs::remove_file(&target).unwrap();
        fs::write(&target, OLD).unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(mode)).unwrap();
        let ended =
            as_other(&["convert", "in.safetensors", "out.zt", "--force", "--quiet"]).unwrap();
        let messages = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{messages}");
        let found = fs::metadata(&target).unwrap();
        let access = (found.uid(), found.gid(), found.mode() & 0o7777);
        assert_eq!(access, (OTHER, OTHER, left), "{mode:o}");
    }
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

/// Shards go where the link leads, and what is in their way is looked for there.
#[test]
fn shards_behind_a_link_replace_no_input() {
    let dir = small();
    let at = |name: &str| dir.path().join(name);
    let split = |code| {
        let (input, size) = ("in.safetensors", "--shard-size=512KiB");
        let args = ["convert", input, "link.safetensors", size, "--force"];
        run(&dir, &args, code)
    };
    fs::create_dir(at("real")).unwrap();
    symlink("real/m.safetensors", at("link.safetensors")).unwrap();
    let input = fs::read(at("in.safetensors")).unwrap();
    for shard in ["m-00001-of-00002", "link-00001-of-00002"] {
        let shard = at(&format!("real/{shard}.safetensors"));
        fs::write(at("real/m.safetensors"), OLD).unwrap();
        fs::hard_link(at("in.safetensors"), &shard).unwrap();
        let refused = shard.ends_with("m-00001-of-00002.safetensors");
        let message = split(if refused { 2 } else { 0 });
        assert_eq!(message.contains("is the same file as the input"), refused);
        assert_eq!(fs::read(&shard).unwrap(), input, "{message}");
        fs::remove_file(shard).unwrap();
    }
    assert_eq!(fs::read(at("real/m.safetensors")).unwrap(), OLD);
    let shards = tree(dir.path()).into_keys().collect::<Vec<_>>();
    let expected = [
        "in.safetensors",
        "link.safetensors",
        "real/",
        "real/m-00001-of-00002.safetensors",
        "real/m-00002-of-00002.safetensors",
        "real/m.safetensors",
        "real/m.safetensors.index.json",
    ];
    assert_eq!(shards, expected);
    let index = "real/m.safetensors.index.json";
    run(&dir, &["verify", index, "--quiet"], 0);
}

/// Neither writing nor comparing a directory of files has all of them open.
#[test]
fn a_file_for_every_tensor_needs_few_open_files() {
    let dir = TempDir::new().unwrap();
    let count = 300;
    let tensors: Vec<_> = (0..count)
        .map(|n| {
            format!(
                "\"t{n}\":{{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[{n},{}]}}",
                n + 1
            )
        })
        .collect();
    let header = format!("{{{}}}", tensors.join(","));
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.resize(bytes.len() + count, 7);
    fs::write(dir.path().join("in.safetensors"), bytes).unwrap();
    let script =
        "ulimit -n 120 && exec \"$0\" convert in.safetensors all/ --to npy --check --quiet";
    let done = Command::new("sh")
        .current_dir(dir.path())
        .args(["-c", script, BINARY])
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{messages}");
    let files = fs::read_dir(dir.path().join("all")).unwrap();
    assert_eq!(files.count(), count);
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let dir = small();
    let Some(disk) = small_disk("512k") else {
        return;
    };
    let target = disk.0.path().join("m.zt");
    fs::write(&target, OLD).unwrap();
    // The length is known before, and is not.
    for options in [&["--raw"][..], &["--zstd", "1"]] {
        let mut args = vec!["convert", "in.safetensors", target.to_str().unwrap()];
        args.extend(["--quiet", "--force"].iter().chain(options));
        let message = run(&dir, &args, 2);
        assert!(message.contains("no space left"), "{message}");
        let found = tree(disk.0.path());
        assert_eq!(found, Tree::from([("m.zt".to_owned(), OLD.to_vec())]));
    }
}

#[test]
fn a_full_disk_gets_nothing_of_what_does_not_fit() {
    let dir = small();
    write_input(&dir.path().join("other.safetensors"), 4, 1);
    let Some(disk) = small_disk("512k") else {
        return;
    };
    let at = |name: &str| disk.0.path().join(name).to_str().unwrap().to_owned();
    // Members whose sizes are known last, several files of which the first ones fit, several inputs, tables of metadata.
    for args in [
        vec!["convert", "in.safetensors", &at("m.npz")],
        vec!["convert", "in.safetensors", &at("m.gguf"), "--cast", "f16"],
        vec!["convert", "in.safetensors", &at("all/"), "--to", "npy"],
        vec![
            "split",
            "in.safetensors",
            "-o",
            &at("parts/"),
            "--parts",
            "4",
        ],
        vec![
            "merge",
            "in.safetensors",
            "other.safetensors",
            "-o",
            &at("m.mag"),
        ],
        vec![
            "rename",
            "in.safetensors",
            "-o",
            &at("m.safetensors"),
            "--rule",
            "s/layer/l/",
        ],
        vec![
            "meta",
            "set",
            "in.safetensors",
            "k=v",
            "-o",
            &at("k.safetensors"),
        ],
    ] {
        let message = run(&dir, &args, 2);
        assert!(message.contains("no space left"), "{args:?}: {message}");
        let left: Vec<_> = tree(disk.0.path()).into_keys().collect();
        assert!(left.is_empty(), "{args:?}: {left:?}");
    }
}

#[test]
fn an_edit_that_has_no_room_leaves_the_file_as_it_was() {
    let dir = small();
    // Room for the file, and not for another one.
    let Some(disk) = small_disk("1500k") else {
        return;
    };
    let target = disk.0.path().join("m.safetensors");
    fs::copy(dir.path().join("in.safetensors"), &target).unwrap();
    let before = tree(disk.0.path());
    let shown = target.to_str().unwrap();
    let message = run(
        &dir,
        &["meta", "set", shown, "k=v", "-o", shown, "--force"],
        2,
    );
    assert!(message.contains("no space left"), "{message}");
    assert!(tree(disk.0.path()) == before, "it is another file now");
}

#[test]
fn a_device_is_no_target() {
    let dir = small();
    for device in ["/dev/full", "/dev/null"] {
        let kind = || fs::metadata(device).map(|found| found.file_type());
        let Ok(before) = kind() else {
            eprintln!("SKIPPED: there is no {device}");
            continue;
        };
        for force in [&[][..], &["--force"]] {
            let mut args = vec!["convert", "in.safetensors", device, "--to", "safetensors"];
            args.extend(force);
            let message = run(&dir, &args, 2);
            assert!(message.contains("a device or a pipe"), "{message}");
        }
        assert_eq!(kind().unwrap(), before);
    }
}

/// A disk of some size, where such a thing can be mounted.
fn small_disk(size: &str) -> Option<Unmount> {
    let disk = TempDir::new().unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
        .arg(disk.path())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        eprintln!("SKIPPED: a small disk cannot be mounted here (needs root)");
    }
    mounted.then(|| Unmount(disk))
}

struct Unmount(TempDir);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}
