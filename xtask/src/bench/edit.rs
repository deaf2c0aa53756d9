//! Rewriting a large file with other names and other metadata, beside copying it.

use super::race::Runner;
use super::{Bench, Goal};
use crate::Result;
use crate::project;
use std::path::Path;
use std::process::Command;

/// What is done to the file, between it and `-o`.
const EDITS: &[(&str, &[&str], &[&str])] = &[
    ("rename", &["rename"], &["--rule", "s/^/model./"]),
    ("meta set", &["meta", "set"], &["note=edited"]),
];

impl Bench {
    /// With and without waiting for the disk. The data goes by the kernel, as it does for `cp`.
    pub(super) fn edit(&self) -> Result<()> {
        let (mib, big) = self.big()?;
        let from = self.input(&format!("big-{mib}-edit.safetensors"), |file| {
            let options = ["convert", "--to", "safetensors", "--no-sync"];
            project::output(
                Command::new(&self.tenfold)
                    .args(options)
                    .arg(&big)
                    .arg(file),
            )
        })?;
        let goal = Some(Goal {
            ratio: 1.15,
            peak: Some(64 << 20),
        });
        for (how, options, script) in [
            ("without syncing", &["--no-sync"][..], r#"cp "$0" "$1""#),
            ("synced", &[][..], r#"cp "$0" "$1" && sync "$1""#),
        ] {
            let ours: Vec<_> = (EDITS.iter())
                .map(|(what, command, edit)| {
                    let runner = Runner::new("tenfold", &self.tenfold)
                        .args(*command)
                        .args([&from])
                        .args(*edit)
                        .args(["--no-progress", "--to", "safetensors"])
                        .args(options)
                        .args(["-o"])
                        .makes(&self.folder.join("ours.out"));
                    (format!("{what}, {mib} MiB of safetensors, {how}"), runner)
                })
                .collect();
            let name = if options.is_empty() { "cp, sync" } else { "cp" };
            let theirs = Runner::new(name, "sh")
                .args(["-c", script])
                .args([&from])
                .makes(&self.folder.join("copy.safetensors"));
            self.row(&ours, &theirs, goal)?;
        }
        self.edit_in_place(mib, &big)
    }

    /// The header alone is written, beside a copy of the file, synced both.
    fn edit_in_place(&self, mib: u32, big: &Path) -> Result<()> {
        let mut ours = Vec::new();
        let mut copied = None;
        for (name, version, extension) in [
            ("safetensors", "-", "safetensors"),
            ("gguf", "3", "gguf"),
            ("ztensor", "2", "zt"),
        ] {
            let file = self.input(&format!("big-{mib}-in-place.{extension}"), |file| {
                let options = ["convert", "--no-sync", "--allow", "dropped"];
                let room = ["-O", "reserve=65536", "--to", name, "--version", version];
                project::output(
                    Command::new(&self.tenfold)
                        .args(options)
                        .args(room)
                        .arg(big)
                        .arg(file),
                )
            })?;
            let runner = Runner::new("tenfold", &self.tenfold)
                .args(["meta", "set"])
                .args([&file])
                .args(["note=edited", "--in-place", "--no-progress"]);
            ours.push((
                format!("meta set --in-place, {mib} MiB of {name}, synced"),
                runner,
            ));
            copied.get_or_insert(file);
        }
        let from = copied.ok_or("nothing to copy")?;
        let theirs = Runner::new("cp, sync", "sh")
            .args(["-c", r#"cp "$0" "$1" && sync "$1""#])
            .args([&from])
            .makes(&self.folder.join("copy.safetensors"));
        let goal = Some(Goal {
            ratio: 0.5,
            peak: Some(64 << 20),
        });
        self.row(&ours, &theirs, goal)
    }
}
