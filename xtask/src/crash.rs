//! `cargo xtask crash`: the tests that kill, interrupt and disturb real conversions, with hundreds of kills.

use crate::Result;
use crate::project::{self, Project};

/// `--kills N`: how many processes are killed, divided among the kinds of conversions; as many more are interrupted.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let kills: usize = match args {
        [] => 400,
        [flag, number] if flag == "--kills" => number.parse()?,
        _ => return Err("the only argument is --kills N".into()),
    };
    let project = Project::find()?;
    // Each test kills as many of four kinds of conversions.
    let each = kills.div_ceil(4).to_string();
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
        .env("TENFOLD_KILLS", each);
    project::show(&mut cargo).map(|_| true)
}
