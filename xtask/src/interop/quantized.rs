//! Quantized models beside the packages that make them: blocks that `convert --quantize` writes beside those of gguf-py, and
//! numbers of models that MLX quantized.

use super::{Exchange, numbers};
use crate::Result;
use crate::project::{self, Project};
use std::fs;

/// What is compared: the package, what is installed for it, and the program that does it.
const COMPARED: &[(&str, &[&str], &str)] = &[
    ("gguf", &["gguf", "numpy"], "quantized_gguf.py"),
    (
        "mlx",
        &["mlx[cpu]", "numpy", "safetensors"],
        "quantized_mlx.py",
    ),
];

/// Runs all comparisons, each a line. A package that cannot be installed is one that failed.
pub(super) fn run(project: &Project, exchange: &mut Exchange) -> Result<()> {
    let folder = project.target.join("interop/quantized-files");
    fs::create_dir_all(&folder)?;
    for (package, installs, program) in COMPARED {
        let python = match project.environment(installs, None) {
            Ok(python) => python,
            Err(why) => {
                exchange.line(package, "install", "NOT INSTALLED", Err(why));
                continue;
            }
        };
        let program = project.root.join("xtask/interop").join(program);
        let mut ask = project::python(&python, &program);
        let said = project::output(ask.arg(&exchange.tenfold).arg(&folder))?;
        numbers::lines(package, &said, exchange)?;
    }
    Ok(())
}
