//! Numbers as other numbers: casts beside numpy, quantized blocks and long vocabularies beside gguf-py.

use super::race::Runner;
use super::{Bench, Goal};
use crate::Result;
use crate::project;

impl Bench {
    /// Between the floating-point types of models, in memory.
    pub(super) fn cast(&self) -> Result<()> {
        let numpy = self.ml_dtypes()?;
        let mib = if self.quick { 64 } else { 1024 };
        for (from, to) in [
            ("f32", "f16"),
            ("f32", "bf16"),
            ("f16", "f32"),
            ("bf16", "f32"),
        ] {
            let file = self.input(&format!("numbers-{mib}-{from}.safetensors"), |file| {
                let make = ["make", &mib.to_string(), from];
                project::output(numpy.command().args(make).arg(file))
            })?;
            let runs = "5";
            let ours = Runner::new("tenfold", self.program("cast")?)
                .args([runs])
                .args([&file])
                .args([to]);
            let theirs = numpy.runner().args(["cast", runs]).args([&file]).args([to]);
            let goal = (from == "f32").then_some(Goal {
                ratio: 1.0 / 3.0,
                peak: None,
            });
            let what = format!("cast {mib} MiB of {from} to {to}, in memory");
            self.row(&[(what, ours.prints_time())], &theirs.prints_time(), goal)?;
        }
        Ok(())
    }

    /// Listing a file with a long vocabulary, and dequantizing.
    pub(super) fn gguf(&self) -> Result<()> {
        let package = self.gguf_package()?;
        let tokens = if self.quick { 15_000 } else { 150_000 };
        let file = self.input(&format!("vocabulary-{tokens}.gguf"), |file| {
            let make = ["vocabulary", &tokens.to_string()];
            project::output(package.command().args(make).arg(file))
        })?;
        let ours = Runner::new("tenfold", self.program("open")?)
            .args(["20"])
            .args([&file]);
        let theirs = package.runner().args(["open", "2"]).args([&file]);
        let what = format!("list GGUF with a vocabulary of {tokens}");
        let goal = Some(Goal {
            ratio: 1.0 / 10.0,
            peak: None,
        });
        self.row(&[(what, ours.prints_time())], &theirs.prints_time(), goal)?;
        for name in ["Q4_K", "Q8_0"] {
            self.dequantize(name)?;
        }
        Ok(())
    }

    fn dequantize(&self, name: &str) -> Result<()> {
        let package = self.gguf_package()?;
        let mib = if self.quick { 32 } else { 1024 };
        let file = self.input(&format!("blocks-{mib}-{name}.gguf"), |file| {
            let make = ["blocks", &format!("{name}:{mib}")];
            project::output(package.command().args(make).arg(file))
        })?;
        let ours = Runner::new("tenfold", self.program("cast")?)
            .args(["2"])
            .args([&file])
            .args(["f32"]);
        let theirs = package.runner().args(["dequantize", "1"]).args([&file]);
        let what = format!("dequantize {mib} MiB of {name}, in memory");
        let goal = Some(Goal {
            ratio: 1.0 / 5.0,
            peak: None,
        });
        self.row(&[(what, ours.prints_time())], &theirs.prints_time(), goal)
    }
}
