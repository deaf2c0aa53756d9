//! `tenfold digest` beside a program that was written from `docs/digest.md`, on every fixture.

use super::{Exchange, numbers};
use crate::Result;
use crate::project::{self, Project};

/// Compares the golden files of every format, each a line, and the test vectors of the page.
pub(super) fn run(project: &Project, exchange: &mut Exchange) -> Result<()> {
    let python = project.environment(&["zstandard"], None)?;
    let program = exchange.programs.join("digest.py");
    let mut ask = project::python(&python, &program);
    let said = project::output(
        ask.arg("check")
            .arg(&exchange.tenfold)
            .arg(&exchange.fixtures)
            .arg(project.root.join("docs/digest.md")),
    )?;
    numbers::lines("docs/digest.md", &said, exchange)
}
