//! `stats` and `diff` beside numpy, which computes the same figures in f64.

use super::Exchange;
use crate::Result;
use crate::project::{self, Project};
use serde_json::Value;
use std::fs;

/// Runs all comparisons, each a line.
pub(super) fn run(project: &Project, exchange: &mut Exchange) -> Result<()> {
    let folder = project.target.join("interop/numbers-files");
    fs::create_dir_all(&folder)?;
    let python = project.environment(&["ml_dtypes", "numpy"], None)?;
    let program = project.root.join("xtask/interop/figures.py");
    let mut ask = project::python(&python, &program);
    let said = project::output(ask.arg(&exchange.tenfold).arg(&folder))?;
    lines("numpy", &said, exchange)
}

/// A line for each of the comparisons that a program printed: `[{"what", "count", "error"}]`.
pub(super) fn lines(with: &str, said: &[u8], exchange: &mut Exchange) -> Result<()> {
    let rows: Vec<Value> = serde_json::from_slice(said)?;
    for row in &rows {
        let text = |key: &str| row.get(key).and_then(Value::as_str);
        let what = text("what").ok_or("a row without a name")?;
        let count = row.get("count").and_then(Value::as_u64).unwrap_or(0);
        let result = match text("error") {
            Some(why) => Err(why.into()),
            None if count == 0 => Err("nothing was compared".into()),
            None => Ok(usize::try_from(count)?),
        };
        exchange.line(with, "agrees", what, result);
    }
    Ok(())
}
