//! `cargo xtask crash`: the tests that kill, interrupt and disturb real conversions, merges and metadata edits, with hundreds of kills.

use crate::Result;
use crate::project::{self, Project};

/// `--kills N`: how many processes are killed, divided among the kinds of commands; as many more are interrupted.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let kills: usize = match args {
        [] => 400,
        [flag, number] if flag == "--kills" => number.parse()?,
        _ => return Err("the only argument is --kills N".into()),
    };
    let project = Project::find()?;
    let what = [
        "test",
        "--release",
        "--package",
        "tenfold-cli",
        "--test",
        "crash",
    ];
    let mut cargo = project::cargo(&project.root);
    cargo
        .args(what)
        .args(["--", "--nocapture", "--test-threads", "1"])
        .env("TENFOLD_KILLS", kills.to_string());
    project::show(&mut cargo).map(|_| true)
}
