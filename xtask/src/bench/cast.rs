//! Numbers as other numbers: casts beside numpy, quantized blocks beside ggml, these and long vocabularies beside gguf-py.

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
            ratio: 1.0 / 20.0,
            peak: None,
        });
        self.row(&[(what, ours.prints_time())], &theirs.prints_time(), goal)
    }

    /// Quantizing, beside ggml's quantizer with as many threads, and gguf-py where it has one.
    pub(super) fn quantize(&self) -> Result<()> {
        let (numpy, ggml, package) = (self.ml_dtypes()?, self.ggml()?, self.gguf_package()?);
        let mib = if self.quick { 16 } else { 256 };
        let file = self.input(&format!("numbers-{mib}-f32.safetensors"), |file| {
            let make = ["make", &mib.to_string(), "f32"];
            project::output(numpy.command().args(make).arg(file))
        })?;
        let all = std::thread::available_parallelism()?.get();
        let counts = if all > 1 { vec![1, all] } else { vec![1] };
        for name in ["Q8_0", "Q4_0", "Q4_K", "Q6_K"] {
            for threads in counts.iter().map(ToString::to_string) {
                let program = self.program("quantize")?;
                let ours = || {
                    let ours = Runner::new("tenfold", &program).args(["3"]);
                    ours.args([&file]).args([name, &threads]).prints_time()
                };
                let theirs = ggml.runner().args(["quantize", "3"]).args([&file]);
                let theirs = theirs.args([name, &threads]).prints_time();
                let what = format!("quantize {mib} MiB to {name} on {threads} threads, in memory");
                let goal = Some(Goal {
                    ratio: 1.0,
                    peak: None,
                });
                self.row(&[(what.clone(), ours())], &theirs, goal)?;
                // gguf-py has no threads, and no K-quants.
                if threads == "1" && !name.ends_with('K') {
                    let job = format!("quantize:{name}");
                    let theirs = package.runner().args([&job, "1"]).args([&file]);
                    self.row(&[(what, ours())], &theirs.prints_time(), None)?;
                }
            }
        }
        Ok(())
    }
}
