//! Comparing two large files, and figures of a large one.

use super::race::Runner;
use super::{Bench, Goal};
use crate::Result;
use crate::project;
use std::fs;

impl Bench {
    /// Two files of equal content, beside comparing them byte by byte.
    pub(super) fn diff(&self) -> Result<()> {
        let (mib, a) = self.big()?;
        let b = self.input(&format!("big-{mib}-again.zt"), |file| {
            fs::copy(&a, file)?;
            Ok(Vec::new())
        })?;
        let ours = Runner::new("tenfold", &self.tenfold)
            .args(["diff"])
            .args([&a, &b]);
        let theirs = Runner::new("cmp", "cmp").args([&a, &b]);
        let goal = Some(Goal {
            ratio: 1.5,
            peak: Some(64 << 20),
        });
        let what = format!("diff of two equal files of {mib} MiB");
        self.row(&[(what, ours)], &theirs, goal)
    }

    /// Figures of random f32, beside numpy with min, max, mean, std and isnan of the same numbers in memory.
    pub(super) fn stats(&self) -> Result<()> {
        let mib = if self.quick { 64 } else { 1024 };
        let numpy = self.numpy_stats()?;
        let file = self.input(&format!("normal-{mib}.safetensors"), |file| {
            project::output(numpy.command().args(["make", &mib.to_string()]).arg(file))
        })?;
        let ours = Runner::new("tenfold", &self.tenfold)
            .args(["stats"])
            .args([&file]);
        let goal = Some(Goal {
            ratio: 1.0 / 3.0,
            peak: Some(64 << 20),
        });
        let what = format!("stats of {mib} MiB of f32, the whole command");
        // Their time is without reading the file and starting Python.
        let theirs = numpy.runner().args(["stats"]).args([&file]).prints_time();
        self.row(&[(what, ours)], &theirs, goal)
    }
}
