//! Checkpoints and stores beside the libraries that they are of: PyTorch's distributed checkpoints, Zarr, MATLAB, TensorFlow.

use super::contestants::Contestant;
use super::race::Runner;
use super::{Bench, Goal};
use crate::Result;
use crate::project;
use std::path::Path;

impl Bench {
    /// A distributed checkpoint to one file of safetensors, beside torch's own program, which makes one file of its own format.
    pub(super) fn dcp(&self) -> Result<()> {
        let theirs = self.torch_distributed()?;
        let mib = if self.quick { 64 } else { 1024 };
        let from = self.made(&theirs, &format!("checkpoint-{mib}.dcp"), mib)?;
        let theirs = theirs.runner().named("dcp_to_torch_save");
        let theirs = theirs.args(["convert"]).args([&from]);
        let theirs = theirs.makes(&self.folder.join("theirs.pt"));
        let ours = self.converts(&from, &["--to", "safetensors"], &["--no-sync"]);
        let goal = Some(Goal {
            ratio: 1.0 / 4.0,
            peak: Some(128 << 20),
        });
        let what = format!("{mib} MiB of a distributed checkpoint to safetensors, without syncing");
        self.row(&[(what, ours)], &theirs, goal)
    }

    pub(super) fn zarr(&self) -> Result<()> {
        let what = "of Zarr's chunks of Blosc with zstd";
        self.load_all(&self.zarr_python()?, "chunks", "zarr", what, 1.0 / 3.0)
    }

    pub(super) fn mat(&self) -> Result<()> {
        let what = "of compressed MATLAB variables";
        self.load_all(&self.scipy()?, "compressed", "mat", what, 1.0 / 2.0)
    }

    /// Opening a bundle of many tensors and listing them.
    pub(super) fn tf(&self) -> Result<()> {
        let theirs = self.tensorflow()?;
        let ours = self.program("open")?;
        for count in self.counts() {
            let directory = self.made(&theirs, &format!("bundle-{count}"), count)?;
            let runs = (100_000 / count).clamp(1, 10).to_string();
            let index = directory.join("model.index");
            let ours = Runner::new("tenfold", &ours).args([&runs]).args([&index]);
            let theirs = theirs.runner().args(["open", &runs]).args([&directory]);
            let goal = (count == 100_000).then_some(Goal {
                ratio: 1.0 / 10.0,
                peak: None,
            });
            let what = format!("list {count} tensors of a TensorFlow bundle");
            self.row(&[(what, ours.prints_time())], &theirs.prints_time(), goal)?;
        }
        Ok(())
    }

    /// Reading all of a file, or of a directory, into memory.
    fn load_all(
        &self,
        theirs: &Contestant,
        name: &str,
        extension: &str,
        what: &str,
        ratio: f64,
    ) -> Result<()> {
        let mib = if self.quick { 64 } else { 512 };
        let from = self.made(theirs, &format!("{name}-{mib}.{extension}"), mib)?;
        let ours = Runner::new("tenfold", self.program("load")?);
        let ours = ours.args(["3"]).args([&from]).args(["copy"]);
        let theirs = theirs.runner().args(["load", "3"]).args([&from]);
        let goal = Some(Goal { ratio, peak: None });
        let what = format!("read {mib} MiB {what}");
        self.row(&[(what, ours.prints_time())], &theirs.prints_time(), goal)
    }

    /// What a library's program makes, of a size.
    fn made(&self, theirs: &Contestant, name: &str, size: u32) -> Result<std::path::PathBuf> {
        let make = |file: &Path| {
            project::output(theirs.command().args(["make", &size.to_string()]).arg(file))
        };
        self.input(name, make)
    }
}
