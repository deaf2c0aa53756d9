//! HDF5: listing many datasets and reading compressed chunks, beside h5py.

use super::race::Runner;
use super::{Bench, Goal};
use crate::Result;
use crate::project;

impl Bench {
    pub(super) fn hdf5(&self) -> Result<()> {
        let theirs = self.h5py()?;
        let ours = self.program("open")?;
        for count in self.counts() {
            let file = self.input(&format!("many-{count}.h5"), |file| {
                let number = count.to_string();
                project::output(theirs.command().args(["make", &number]).arg(file))
            })?;
            let runs = (100_000 / count).clamp(1, 10).to_string();
            let ours = Runner::new("tenfold", &ours).args([&runs]).args([&file]);
            let theirs = theirs.runner().args(["open", &runs]).args([&file]);
            let goal = (count == 100_000).then_some(Goal {
                ratio: 1.0 / 10.0,
                peak: None,
            });
            let what = format!("list {count} datasets of an HDF5 file");
            self.row(&[(what, ours.prints_time())], &theirs.prints_time(), goal)?;
        }
        let mib = if self.quick { 64 } else { 1024 };
        let file = self.input(&format!("chunks-{mib}.h5"), |file| {
            project::output(
                theirs
                    .command()
                    .args(["chunks", &mib.to_string()])
                    .arg(file),
            )
        })?;
        let load = self.program("load")?;
        let ours = Runner::new("tenfold", &load)
            .args(["1"])
            .args([&file])
            .args(["copy"]);
        let theirs = theirs.runner().args(["load", "1"]).args([&file]);
        let goal = Some(Goal {
            ratio: 1.0 / 2.0,
            peak: None,
        });
        let what = format!("read {mib} MiB of shuffled and deflated HDF5 chunks");
        self.row(&[(what, ours.prints_time())], &theirs.prints_time(), goal)
    }
}
