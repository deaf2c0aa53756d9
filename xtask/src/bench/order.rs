//! Changing the order of a matrix, and expanding a packed one.

use super::race::Runner;
use super::{Bench, Goal};
use crate::Result;
use crate::project;

impl Bench {
    /// Column-major to row-major in memory beside numpy and beside a plain copy, and from file to file beside `cp`.
    pub(super) fn order(&self) -> Result<()> {
        let size = self.side();
        let numpy = self.numpy()?;
        let file = self.input(&format!("dense-{size}.tens"), |file| {
            let make = ["make", "dense", &size.to_string()];
            project::output(numpy.command().args(make).arg(file))
        })?;
        let what = format!("column-major to row-major, f32, {size} x {size}");
        let ours = || -> Result<Runner> {
            Ok(Runner::new("tenfold", self.program("dense")?)
                .args(["3"])
                .args([&file])
                .prints_time())
        };
        let rows = [
            ("order", "numpy ascontiguousarray", 1.0 / 6.0),
            ("copy", "memcpy", 4.0),
        ];
        for (mode, name, ratio) in rows {
            let theirs = numpy
                .runner()
                .named(name)
                .args([mode, "3"])
                .args([&file])
                .prints_time();
            let goal = Some(Goal { ratio, peak: None });
            self.row(&[(format!("{what}, in memory"), ours()?)], &theirs, goal)?;
        }
        self.beside_cp(&file, &format!("{what}, file to file"))
    }

    /// A symmetric matrix of which one half is stored, in memory beside a copy of the whole, and from file to file.
    pub(super) fn packed(&self) -> Result<()> {
        let size = self.side();
        let numpy = self.numpy()?;
        let make = |kind: &'static str| {
            self.input(&format!("{kind}-{size}.tens"), |file| {
                let make = ["make", kind, &size.to_string()];
                project::output(numpy.command().args(make).arg(file))
            })
        };
        let (packed, dense) = (make("packed")?, make("dense")?);
        let what = format!("expand a packed symmetric matrix, f32, {size} x {size}");
        let ours = Runner::new("tenfold", self.program("dense")?)
            .args(["3"])
            .args([&packed])
            .prints_time();
        let theirs = numpy
            .runner()
            .named("memcpy")
            .args(["copy", "3"])
            .args([&dense])
            .prints_time();
        self.row(&[(format!("{what}, in memory"), ours)], &theirs, None)?;
        self.beside_cp(&packed, &format!("{what}, file to file"))
    }

    /// Converts to a row-major file, beside copying the file that is read.
    fn beside_cp(&self, file: &std::path::Path, what: &str) -> Result<()> {
        let to = ["--to", "ztensor", "--version", "0.1", "--allow", "dropped"];
        let ours = self.converts(file, &to, &["--no-sync"]);
        let copy = self.folder.join("copy.out");
        let theirs = Runner::new("cp", "cp").args([file]).makes(&copy);
        self.row(&[(what.to_owned(), ours)], &theirs, None)
    }

    /// The side of a matrix of 1 GiB.
    fn side(&self) -> u32 {
        if self.quick { 2048 } else { 16384 }
    }
}
