//! Rewriting a large file with other names and other metadata, beside copying it.

use super::race::Runner;
use super::{Bench, Goal};
use crate::Result;
use crate::project;
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
        Ok(())
    }
}
