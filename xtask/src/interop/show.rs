//! `tenfold show --slice` beside NumPy's own indexing and printing, on random arrays.

use crate::Result;
use crate::interop::Exchange;
use crate::project::{self, Project};

/// NumPy's way to show numbers changes with its releases; this one is followed.
const INSTALLS: &[&str] = &["numpy==2.4.6", "safetensors==0.8.0"];

/// How many slices were compared.
pub(super) fn run(project: &Project, exchange: &Exchange) -> Result<usize> {
    let python = project.environment(INSTALLS, None)?;
    let said = project::output(
        project::python(&python, &exchange.programs.join("show.py"))
            .arg(&exchange.tenfold)
            .arg(&exchange.files),
    )?;
    let said: serde_json::Value = serde_json::from_slice(&said)?;
    let failed = said.get("failed").and_then(|list| list.as_array());
    let failed = failed.ok_or("no list of failures")?;
    if !failed.is_empty() {
        let lines: Vec<_> = failed.iter().filter_map(|line| line.as_str()).collect();
        return Err(lines.join("\n").into());
    }
    let slices = said.get("slices").and_then(|count| count.as_u64());
    match usize::try_from(slices.unwrap_or_default())? {
        0 => Err("nothing was compared".into()),
        slices => Ok(slices),
    }
}
