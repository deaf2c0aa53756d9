//! PyTorch: opening a checkpoint of many tensors, and converting a large one to safetensors, beside torch and `cp`.

use super::race::Runner;
use super::{Bench, Goal};
use crate::Result;
use crate::project;

impl Bench {
    pub(super) fn pytorch(&self) -> Result<()> {
        self.open_pytorch()?;
        self.convert_pytorch()
    }

    /// Both map the file and describe its tensors without reading them.
    fn open_pytorch(&self) -> Result<()> {
        let theirs = self.torch()?;
        let ours = self.program("open")?;
        let count = if self.quick { 1_000 } else { 10_000 };
        let file = self.input(&format!("many-{count}.pt"), |file| {
            let number = count.to_string();
            project::output(theirs.command().args(["make", &number]).arg(file))
        })?;
        let ours = Runner::new("tenfold", &ours).args(["10"]).args([&file]);
        let theirs = theirs.runner().named("torch.load(mmap=True)");
        let theirs = theirs.args(["open", "3"]).args([&file]);
        let goal = Some(Goal {
            ratio: 1.0 / 5.0,
            peak: None,
        });
        let what = format!("open a PyTorch checkpoint of {count} tensors");
        self.row(&[(what, ours.prints_time())], &theirs.prints_time(), goal)
    }

    /// The whole command, beside a copy of the file and beside a program of three lines in Python.
    fn convert_pytorch(&self) -> Result<()> {
        let torch = self.torch()?;
        let mib = if self.quick { 64 } else { 1024 };
        let file = self.input(&format!("big-{mib}.pt"), |file| {
            let number = mib.to_string();
            project::output(torch.command().args(["big", &number]).arg(file))
        })?;
        let output = self.folder.join("theirs.safetensors");
        let copy = Runner::new("cp", "sh")
            .args(["-c", r#"cp "$0" "$1""#])
            .args([&file])
            .makes(&output);
        let theirs = torch.runner().named("torch and safetensors");
        let theirs = theirs.args(["convert"]).args([&file]).makes(&output);
        for (theirs, ratio, peak) in [(copy, 1.15, Some(64 << 20)), (theirs, 1.0 / 4.0, None)] {
            let what = format!("convert {mib} MiB of PyTorch to safetensors, without syncing");
            let ours = self.converts(&file, &["--to", "safetensors"], &["--no-sync"]);
            self.row(&[(what, ours)], &theirs, Some(Goal { ratio, peak }))?;
        }
        Ok(())
    }
}
