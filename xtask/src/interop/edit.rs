//! What was split into several files, and what was merged again, as the packages load it.

use super::packages::Package;
use super::{Exchange, Written, count_equal, stem};
use crate::Result;
use crate::held::Held;
use crate::project;
use std::fs;
use std::path::Path;

/// The formats whose packages load several files as one.
const FORMATS: &[&str] = &["gguf", "safetensors"];
/// Ways to split a file.
const WAYS: &[&str] = &["--parts 3", "--by-layer", "--max-size 1kB"];

impl Exchange {
    /// Has a package load its own files after we split them, and after we merged them again.
    pub(super) fn split_and_merge(
        &mut self,
        package: &Package,
        python: &Path,
        written: &[Written],
    ) {
        if !FORMATS.contains(&package.format) {
            return;
        }
        for file in written
            .iter()
            .filter(|file| std::ptr::eq(file.package, package))
        {
            for way in WAYS {
                let label = format!("{} {way}", stem(&file.path));
                let folder = self.files.join(label.replace([' ', '='], "-"));
                let parts = folder.join(format!("parts.{}", package.extension));
                let result = self.split(&file.path, way, &folder, &parts);
                let result = result.and_then(|()| self.loads(package, python, &parts, &file.holds));
                self.row(package, "split", &label, result);
                // Releases have dots: what stands behind the last of them is no extension yet.
                let name = format!("merged-{label}.{}", package.extension).replace(' ', "-");
                let merged = self.files.join(name);
                let result = project::output(
                    self.tenfold(&["merge", "--no-sync"])
                        .arg(&folder)
                        .arg("-o")
                        .arg(&merged),
                );
                let result = result.and_then(|_| self.loads(package, python, &merged, &file.holds));
                self.row(package, "merged", &label, result);
            }
        }
    }

    fn split(&self, from: &Path, way: &str, folder: &Path, to: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        let mut command = self.tenfold(&["split", "--no-sync"]);
        project::output(
            command
                .args(way.split_whitespace())
                .arg(from)
                .arg("-o")
                .arg(to),
        )?;
        project::output(self.tenfold(&["digest"]).arg(folder))?;
        Ok(())
    }

    fn loads(&self, package: &Package, python: &Path, path: &Path, holds: &Held) -> Result<usize> {
        let program = self.programs.join(package.program);
        let said = project::output(project::python(python, &program).arg("load").arg(path))?;
        count_equal(holds, &Held::parse(&said)?)
    }
}
