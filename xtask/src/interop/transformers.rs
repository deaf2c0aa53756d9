//! Model directories that `transformers` loads after `tenfold` converted, split, renamed and described them.

use super::{Exchange, numbers};
use crate::Result;
use crate::project::{self, Project};

/// Large, because of PyTorch: some gigabytes.
const INSTALLS: &[&str] = &["transformers==5.23.0", "torch==2.15.0"];

/// Compares the tensors, the tokenizer and an answer of the model, each directory a line.
pub(super) fn run(project: &Project, exchange: &mut Exchange) -> Result<()> {
    let python = project.environment(INSTALLS, None)?;
    let program = exchange.programs.join("transformers_llama.py");
    let mut ask = project::python(&python, &program);
    let folder = project.target.join("interop/transformers-files");
    let said = project::output(ask.arg(&exchange.tenfold).arg(folder))?;
    numbers::lines("transformers", &said, exchange)
}
