//! safetensors: opening many tensors and loading a large file, beside the crate and the Python package.

use super::race::Runner;
use super::{Bench, Goal};
use crate::Result;
use crate::project;

impl Bench {
    pub(super) fn safetensors(&self) -> Result<()> {
        self.open_safetensors()?;
        self.get_safetensors()?;
        self.load_safetensors()
    }

    /// The crate parses what is mapped; the Python package opens the file and lists the names.
    fn open_safetensors(&self) -> Result<()> {
        let (library, package) = (self.safetensors_crate()?, self.safetensors_package()?);
        let ours = self.program("open")?;
        for count in self.counts() {
            let file = self.input(&format!("many-{count}.safetensors"), |file| {
                let number = count.to_string();
                project::output(library.command().args(["make", &number]).arg(file))
            })?;
            let runs = (1_000_000 / count).clamp(5, 100).to_string();
            for (theirs, ratio) in [(&library, 1.0 / 2.0), (&package, 1.0 / 4.0)] {
                let ours = Runner::new("tenfold", &ours).args([&runs]).args([&file]);
                let theirs = theirs.runner().args(["open", &runs]).args([&file]);
                let goal = (count == 100_000).then_some(Goal { ratio, peak: None });
                let what = format!("open safetensors, {count} tensors");
                self.row(&[(what, ours.prints_time())], &theirs.prints_time(), goal)?;
            }
        }
        Ok(())
    }

    /// Finding tensors of an opened file by name, and looking at their numbers.
    fn get_safetensors(&self) -> Result<()> {
        let library = self.safetensors_crate()?;
        let ours = self.program("get")?;
        for count in self.counts() {
            let file = self.input(&format!("many-{count}.safetensors"), |file| {
                let number = count.to_string();
                project::output(library.command().args(["make", &number]).arg(file))
            })?;
            let runs = (1_000_000 / count).clamp(5, 100).to_string();
            let ours = Runner::new("tenfold", &ours).args([&runs]).args([&file]);
            let theirs = library.runner().args(["get", &runs]).args([&file]);
            let goal = Some(Goal {
                ratio: 1.2,
                peak: None,
            });
            let what = format!("find and type {count} tensors of an opened safetensors");
            self.row(&[(what, ours.prints_time())], &theirs.prints_time(), goal)?;
        }
        Ok(())
    }

    /// Without a copy, and with one beside a plain copy of memory.
    fn load_safetensors(&self) -> Result<()> {
        let (library, package) = (self.safetensors_crate()?, self.safetensors_package()?);
        let mib = if self.quick { 64 } else { 1024 };
        let file = self.input(&format!("big-{mib}.safetensors"), |file| {
            let number = mib.to_string();
            project::output(library.command().args(["big", &number]).arg(file))
        })?;
        let load = self.program("load")?;
        let loads = |name: &str, how: &str| {
            let runner = Runner::new(name, &load).args(["3"]).args([&file]);
            runner.args([how]).prints_time()
        };
        let theirs = library.runner().args(["open", "3"]).args([&file]);
        let what = format!("load {mib} MiB of safetensors without a copy");
        self.row(
            &[(what, loads("tenfold", "view"))],
            &theirs.prints_time(),
            None,
        )?;
        let what = || format!("load {mib} MiB of safetensors into memory");
        let goal = Some(Goal {
            ratio: 1.2,
            peak: None,
        });
        let ours = [(what(), loads("tenfold", "copy"))];
        self.row(&ours, &loads("memcpy", "memcpy"), goal)?;
        for theirs in [&library, &package] {
            let theirs = theirs.runner().args(["load", "3"]).args([&file]);
            let ours = [(what(), loads("tenfold", "copy"))];
            self.row(&ours, &theirs.prints_time(), None)?;
        }
        Ok(())
    }
}
