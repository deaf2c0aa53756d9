//! `cargo xtask interop burn`: exchanges files with Burn's crates.
//!
//! Each crate is compiled under a small program in `xtask/interop`, outside of our workspace. It writes a file that we
//! read and rewrite byte for byte, and it loads the fixtures of every generation, converted to what its release reads.

use super::{Tally, count_equal, stem};
use crate::Result;
use crate::held::Held;
use crate::project::{self, Project};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A crate of Burn under its program.
struct Crate {
    name: &'static str,
    /// The folder of its program.
    folder: &'static str,
    /// The version that we write for it.
    version: &'static str,
    /// Scalars came with 0.22.
    has_scalars: bool,
}

const CRATES: [Crate; 2] = [
    Crate {
        name: "burn-pack 0.23",
        folder: "burn-pack",
        version: "0.23",
        has_scalars: true,
    },
    Crate {
        name: "burn-store 0.20.1",
        folder: "burn-store",
        version: "0.20",
        has_scalars: false,
    },
];

pub(super) fn run() -> Result<bool> {
    let project = Project::find()?;
    let files = project.target.join("interop/burn-files");
    if files.exists() {
        fs::remove_dir_all(&files)?;
    }
    fs::create_dir_all(&files)?;
    let mut exchange = Exchange {
        tenfold: project.command()?,
        files,
        tally: Tally::default(),
    };
    for with in CRATES {
        let program = build(&project, with.folder)?;
        exchange.read_theirs(&with, &program);
        let mut fixtures = Vec::new();
        for entry in fs::read_dir(project.root.join("fixtures/burnpack/valid"))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "bpk") {
                fixtures.push(path);
            }
        }
        fixtures.sort();
        for path in fixtures {
            exchange.load_fixture(&with, &program, &path);
        }
    }
    Ok(exchange.tally.finish())
}

fn build(project: &Project, folder: &str) -> Result<PathBuf> {
    eprintln!("building {folder}, which takes some minutes");
    let manifest = project.root.join("xtask/interop").join(folder);
    let target = project.target.join("interop/burn");
    let mut build = project::cargo(&project.root);
    build
        .args(["build", "--quiet", "--release", "--locked"])
        .arg("--manifest-path")
        .arg(manifest.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target);
    project::status(&mut build)?;
    Ok(target.join("release").join(format!("interop-{folder}")))
}

struct Exchange {
    tenfold: PathBuf,
    files: PathBuf,
    tally: Tally,
}

impl Exchange {
    /// Has a crate write a file, reads it, and rewrites it byte for byte.
    fn read_theirs(&mut self, with: &Crate, program: &Path) {
        let theirs = self.files.join(format!("{}.bpk", with.folder));
        let result = project::output(Command::new(program).arg("write").arg(&theirs))
            .and_then(|said| Held::parse(&said))
            .and_then(|holds| count_equal(&holds, &self.see(&theirs)?));
        self.row(with, "we read", with.folder, result);
        let ours = self.files.join(format!("{}-again.bpk", with.folder));
        let same = self
            .convert(&theirs, &ours, with.version, "changed")
            .and_then(|()| {
                if fs::read(&ours)? == fs::read(&theirs)? {
                    Ok(0)
                } else {
                    Err("the files differ".into())
                }
            });
        self.row(with, "same file", with.folder, same);
    }

    /// Has a crate load a fixture that we convert for it.
    fn load_fixture(&mut self, with: &Crate, program: &Path, path: &Path) {
        let name = stem(path);
        let converted = self.files.join(format!("{}-{name}.bpk", with.folder));
        if let Err(why) = self.convert(path, &converted, with.version, "dropped") {
            // What a release cannot hold is refused, and that is what should happen.
            if why.to_string().contains("cannot hold this") {
                println!(
                    "{:<18} {:<9} {name:<30} refused: it cannot hold it",
                    with.name, "it loads"
                );
                return;
            }
            return self.row(with, "it loads", &name, Err(why));
        }
        let result = project::output(Command::new(program).arg("load").arg(&converted))
            .and_then(|said| Held::parse(&said))
            .and_then(|got| {
                let mut want = Held::parse(&fs::read(path.with_extension("json"))?)?;
                if let (Some(metadata), false) = (&mut want.metadata, with.has_scalars)
                    && let Some(metadata) = metadata.as_object_mut()
                {
                    metadata.remove("burn.scalars");
                }
                count_equal(&want, &got)
            });
        self.row(with, "it loads", &name, result);
    }

    fn convert(&self, from: &Path, to: &Path, version: &str, allow: &str) -> Result<()> {
        let options = ["convert", "--no-sync", "--no-progress", "--to", "burnpack"];
        let mut command = Command::new(&self.tenfold);
        command
            .args(options)
            .args(["--version", version, "--allow", allow]);
        project::output(command.arg(from).arg(to))?;
        project::output(Command::new(&self.tenfold).arg("verify").arg(to))?;
        Ok(())
    }

    /// What `tenfold` sees in a file that it must also find sound.
    fn see(&self, path: &Path) -> Result<Held> {
        let ask = |args: &[&str]| project::output(Command::new(&self.tenfold).args(args).arg(path));
        ask(&["verify"])?;
        let mut held = Held::parse(&ask(&["inspect", "--json"])?)?;
        held.add_digests(&ask(&["digest", "--json"])?)?;
        Ok(held)
    }

    fn row(&mut self, with: &Crate, direction: &str, file: &str, result: Result<usize>) {
        let start = format!("{:<18} {direction:<9} {file:<30}", with.name);
        self.tally.row(&start, result);
    }
}
