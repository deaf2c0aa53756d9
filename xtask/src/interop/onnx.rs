//! A model that is written again: the checker of onnx takes it, and onnxruntime computes the same with it.

use super::Exchange;
use crate::Result;
use crate::project::{self, Project};
use std::fs;
use std::path::Path;

const INSTALLS: &[&str] = &["onnx==1.23.2", "onnxruntime==1.31.1", "numpy"];

/// What is done, one after the other: the output, the command, the input, and more arguments.
const STEPS: &[(&str, &str, &str, &[&str])] = &[
    ("same.onnx", "convert", "model.onnx", &[]),
    (
        "outside.onnx",
        "convert",
        "model.onnx",
        &["-O", "external=weights.bin"],
    ),
    ("outside-again.onnx", "convert", "outside.onnx", &[]),
    (
        "inside.onnx",
        "convert",
        "outside.onnx",
        &["-O", "external=none"],
    ),
    (
        "renamed.onnx",
        "rename",
        "model.onnx",
        &["--rule", "s/^/model.layers.0./"],
    ),
    (
        "renamed-outside.onnx",
        "rename",
        "outside.onnx",
        &["--rule", "s/b/bias/"],
    ),
];

pub(super) fn run(project: &Project, exchange: &mut Exchange) -> Result<()> {
    let python = project.environment(INSTALLS, None)?;
    let folder = exchange.files.join("onnxruntime");
    fs::create_dir_all(&folder)?;
    let program = exchange.programs.join("onnx_model.py");
    let expected = folder.join("expected.npy");
    let ask = |job: &str, path: &Path| -> Result<usize> {
        let mut command = project::python(&python, &program);
        let said = project::output(command.arg(job).arg(path).arg(&expected))?;
        Ok(std::str::from_utf8(&said)?.trim().parse()?)
    };
    let written = ask("write", &folder.join("model.onnx"));
    exchange.line(
        "onnxruntime",
        "it runs",
        "model.onnx, as onnx wrote it",
        written,
    );
    for (output, command, input, arguments) in STEPS {
        let (from, to) = (folder.join(input), folder.join(output));
        let mut tenfold = exchange.tenfold(&[command, "--no-sync", "--no-progress"]);
        tenfold.arg(&from).arg("-o").arg(&to).args(*arguments);
        let result = project::output(&mut tenfold).and_then(|_| ask("check", &to));
        let label = format!("{command} {input} {}", arguments.join(" "));
        exchange.line("onnxruntime", "it runs", label.trim_end(), result);
    }
    let same = fs::read(folder.join("model.onnx"))? == fs::read(folder.join("same.onnx"))?;
    let same = if same {
        Ok(1)
    } else {
        Err("the files differ".into())
    };
    exchange.line("onnxruntime", "same file", "model.onnx, converted", same);
    Ok(())
}
