//! `tenfold scan` beside the scanners that people use: what any of them warns of is not called clean.

use super::Exchange;
use crate::Result;
use crate::project::{self, Project};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The scanners, in one environment.
const INSTALLS: &[&str] = &[
    "picklescan==1.0.5",
    "fickling==0.1.12",
    "modelscan==0.8.8",
    // fickling needs it and does not say so.
    "typing_extensions",
    // What loads arrays.
    "numpy",
];

/// Goes through the fixtures that hold pickles, the hostile ones above all, and through hostile programs in many wrappings,
/// each of which Python ran.
pub(super) fn run(project: &Project, exchange: &mut Exchange) -> Result<()> {
    let python = project.environment(INSTALLS, None)?;
    let mut files = Vec::new();
    for folder in ["pytorch/reject", "pytorch/valid", "npy/reject"] {
        files.extend(pickled(&project.root.join("fixtures").join(folder))?);
    }
    let wrapped = wrapped(&python, exchange)?;
    files.extend(wrapped.iter().cloned());
    let program = exchange.programs.join("scanners.py");
    let said = project::output(project::python(&python, &program).args(&files))?;
    let said: Value = serde_json::from_slice(&said)?;
    let mut warned = 0;
    for file in &files {
        let by = said.get(file.to_string_lossy().as_ref());
        let by: Vec<_> = by.and_then(Value::as_array).into_iter().flatten().collect();
        let is_wrapped = wrapped.contains(file);
        if by.is_empty() && !is_wrapped {
            continue;
        }
        warned += usize::from(!by.is_empty());
        let clean = exchange.tenfold(&["scan", "-q"]).arg(file).status()?;
        let name = file.strip_prefix(&project.root).unwrap_or(file);
        let result = match clean.code() {
            Some(1) => Ok(by.len()),
            code if is_wrapped => {
                Err(format!("Python runs it, tenfold exits with {code:?}").into())
            }
            code => Err(format!("{by:?} warn of it, tenfold exits with {code:?}").into()),
        };
        exchange.line("scanners", "we warn", &name.display().to_string(), result);
    }
    if warned == 0 {
        return Err("no scanner warned of anything: they did not work".into());
    }
    Ok(())
}

/// Has Python write hostile programs in many wrappings.
fn wrapped(python: &Path, exchange: &Exchange) -> Result<Vec<PathBuf>> {
    let folder = exchange.files.join("wrapped");
    fs::create_dir_all(&folder)?;
    let program = exchange.programs.join("wrapped.py");
    let said = project::output(project::python(python, &program).arg(&folder))?;
    let names: Vec<String> = serde_json::from_slice(&said)?;
    Ok(names.iter().map(|name| folder.join(name)).collect())
}

/// The files of a folder, without their descriptions.
fn pickled(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end != "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
