//! `stats` and `diff` beside numpy, which computes the same figures in f64.

use crate::Result;
use crate::project::{self, Project};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Runs all comparisons and says how many passed and failed.
pub(super) fn run(project: &Project, tenfold: &Path) -> Result<(u32, u32)> {
    let folder = project.target.join("interop/numbers-files");
    fs::create_dir_all(&folder)?;
    let python = project.environment(&["ml_dtypes", "numpy"], None)?;
    let program = project.root.join("xtask/interop/figures.py");
    let said = project::output(project::python(&python, &program).arg(tenfold).arg(&folder))?;
    let rows: Vec<Value> = serde_json::from_slice(&said)?;
    let (mut passed, mut failed) = (0, 0);
    for row in rows {
        let text = |key: &str| row.get(key).and_then(Value::as_str);
        let what = text("what").ok_or("a row without a name")?;
        let start = format!("{:<17} {:<9} {what:<70}", "numpy", "agrees");
        match (text("error"), row.get("count").and_then(Value::as_u64)) {
            (None, Some(count)) if count > 0 => {
                passed += 1;
                println!("{start} {count:>7}  ok");
            }
            (why, _) => {
                failed += 1;
                println!("{start} {:>7}  FAILED", "-");
                println!("    {}", why.unwrap_or("nothing was compared"));
            }
        }
    }
    Ok((passed, failed))
}
