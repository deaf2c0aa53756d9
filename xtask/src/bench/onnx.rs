//! ONNX: listing the tensors of a large model, beside the Python package, which loads it.

use super::race::Runner;
use super::{Bench, Goal};
use crate::Result;
use crate::project;

impl Bench {
    /// A model of nearly 2 GiB, which is as much as one message of protobuf can have, with 100 tensors in it.
    pub(super) fn onnx(&self) -> Result<()> {
        let python =
            (self.project).environment(&["onnx==1.23.2", "onnxruntime==1.31.1", "numpy"], None)?;
        let program = self.project.root.join("xtask/bench/onnx_python.py");
        let mib = if self.quick { 64 } else { 1900 };
        let file = self.input(&format!("big-{mib}.onnx"), |file| {
            let mut make = project::python(&python, &program);
            project::output(make.args(["make", &mib.to_string()]).arg(file))
        })?;
        let ours = Runner::new("tenfold", &self.tenfold)
            .args(["inspect"])
            .args([&file]);
        let theirs = Runner::new("onnx 1.23.2", &python)
            .args([&program])
            .args(["list"])
            .args([&file]);
        let goal = Some(Goal {
            ratio: 1.0 / 100.0,
            peak: None,
        });
        let what = format!("list an ONNX model of {mib} MiB");
        self.row(&[(what, ours)], &theirs, goal)
    }
}
