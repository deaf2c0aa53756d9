//! Blocks that `convert --quantize` writes beside those of gguf-py.

use super::{Exchange, numbers};
use crate::Result;
use crate::project::{self, Project};
use std::fs;

/// Runs all comparisons, each a line.
pub(super) fn run(project: &Project, exchange: &mut Exchange) -> Result<()> {
    let folder = project.target.join("interop/quantized-files");
    fs::create_dir_all(&folder)?;
    let python = project.environment(&["gguf", "numpy"], None)?;
    let program = project.root.join("xtask/interop/quantized_gguf.py");
    let mut ask = project::python(&python, &program);
    let said = project::output(ask.arg(&exchange.tenfold).arg(&folder))?;
    numbers::lines("gguf", &said, exchange)
}
