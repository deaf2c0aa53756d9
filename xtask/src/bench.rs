//! `cargo xtask bench`: how long things take beside the programs that people would use instead.
//!
//! Everything is a ratio of two times measured in turns in the same run on the same machine, caches warm: absolute
//! times say more about the machine. The goals are the project's own; a missed one is printed like any other figure.

mod cast;
mod contestants;
mod edit;
mod hdf5;
mod numbers;
mod onnx;
mod order;
mod pytorch;
mod race;
pub(crate) mod remote;
mod safetensors;
mod scale;
mod stores;

use crate::Result;
use crate::project::{self, Project};
use race::{Runner, Score, race};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Runs the benchmarks that are named, or all, and prints a table in Markdown.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let quick = args.iter().any(|arg| arg == "--quick");
    let names: Vec<&str> = args
        .iter()
        .map(String::as_str)
        .filter(|arg| *arg != "--quick")
        .collect();
    // Other programs, another table.
    if names == ["python"] {
        return crate::python::bench(quick);
    }
    if names == ["remote"] {
        return remote::run(quick);
    }
    if names == ["view"] {
        return crate::web::bench();
    }
    if let Some(unknown) = names
        .iter()
        .find(|name| !BENCHES.iter().any(|(known, _)| known == *name))
    {
        let known: Vec<&str> = BENCHES.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "no benchmark {unknown:?}; there are {} and, alone, python, remote and view",
            known.join(", ")
        )
        .into());
    }
    let project = Project::find()?;
    let folder = project.target.join("bench");
    fs::create_dir_all(&folder)?;
    let bench = Bench {
        tenfold: project.command()?,
        project,
        folder,
        quick,
    };
    if quick {
        println!("A quick run: small inputs, few rounds, no goals.\n");
    }
    println!("| what | ours | theirs | ratio | goal | met | peak MiB, ours and theirs |");
    println!("|---|---|---|---|---|---|---|");
    for (name, measure) in BENCHES {
        if names.is_empty() || names.contains(name) {
            measure(&bench)?;
        }
    }
    Ok(true)
}

type Measure = fn(&Bench) -> Result<()>;

/// What can be measured, by name.
const BENCHES: &[(&str, Measure)] = &[
    ("open", Bench::open),
    ("convert", Bench::convert),
    ("edit", Bench::edit),
    ("small", Bench::small),
    ("verify", Bench::verify),
    ("burnpack", Bench::burnpack),
    ("safetensors", Bench::safetensors),
    ("cast", Bench::cast),
    ("gguf", Bench::gguf),
    ("quantize", Bench::quantize),
    ("onnx", Bench::onnx),
    ("hdf5", Bench::hdf5),
    ("pytorch", Bench::pytorch),
    ("order", Bench::order),
    ("packed", Bench::packed),
    ("diff", Bench::diff),
    ("stats", Bench::stats),
    ("scale", Bench::scale),
    ("dcp", Bench::dcp),
    ("zarr", Bench::zarr),
    ("mat", Bench::mat),
    ("tf", Bench::tf),
];

/// The greatest ratio of our time to theirs, and the greatest peak of memory.
#[derive(Clone, Copy)]
struct Goal {
    ratio: f64,
    peak: Option<u64>,
}

struct Bench {
    project: Project,
    tenfold: PathBuf,
    folder: PathBuf,
    quick: bool,
}

impl Bench {
    /// Opening files of many small tensors: our library beside the one that the file was written with.
    fn open(&self) -> Result<()> {
        let ours = self.program("open")?;
        for (format, theirs, extension) in [
            ("zTensor 0.1", self.ztensor_0()?, "0.zt"),
            ("zTensor 2", self.ztensor_2()?, "2.zt"),
            ("mag snapshot-0.3.0", self.magnetron()?, "mag"),
        ] {
            for count in self.counts() {
                let file = self.input(&format!("many-{count}.{extension}"), |file| {
                    project::output(
                        theirs
                            .command()
                            .args(["make", &count.to_string()])
                            .arg(file),
                    )
                })?;
                // A small file opens in less time than a clock can be trusted with, so it is opened more often.
                let runs = (1_000_000 / count).clamp(5, 100).to_string();
                let ours = Runner::new("tenfold", &ours)
                    .args([&runs])
                    .args([&file])
                    .prints_time();
                let theirs = theirs
                    .runner()
                    .args(["open", &runs])
                    .args([&file])
                    .prints_time();
                let goal = (extension == "2.zt" && count == 100_000).then_some(Goal {
                    ratio: 1.0 / 3.0,
                    peak: None,
                });
                self.row(
                    &[(format!("open {format}, {count} tensors"), ours)],
                    &theirs,
                    goal,
                )?;
            }
        }
        Ok(())
    }

    /// Converting one large file of raw tensors beside copying it, with and without waiting for the disk.
    fn convert(&self) -> Result<()> {
        let (mib, from) = self.big()?;
        let copy = self.folder.join("copy.zt");
        let goal = Some(Goal {
            ratio: 1.15,
            peak: Some(64 << 20),
        });
        for (how, options, script) in [
            ("without syncing", &["--no-sync"][..], r#"cp "$0" "$1""#),
            ("synced", &[][..], r#"cp "$0" "$1" && sync "$1""#),
        ] {
            let ours = TARGETS.map(|(label, to)| {
                let what = format!("convert {mib} MiB raw, zTensor 0.1 to {label}, {how}");
                (what, self.converts(&from, to, options))
            });
            let name = if options.is_empty() { "cp, sync" } else { "cp" };
            let theirs = Runner::new(name, "sh")
                .args(["-c", script])
                .args([&from])
                .makes(&copy);
            self.row(&ours, &theirs, goal)?;
        }
        Ok(())
    }

    /// Converting many small tensors, beside the tool of the format's makers. Both sync what they write.
    fn small(&self) -> Result<()> {
        let zt = self.zt()?;
        let count = self.counts().last().copied().unwrap_or_default();
        let maker = self.ztensor_2()?;
        let from = self.input(&format!("many-{count}.2.zt"), |file| {
            project::output(maker.command().args(["make", &count.to_string()]).arg(file))
        })?;
        let goal = Some(Goal {
            ratio: 1.0 / 50.0,
            peak: None,
        });
        let aligned = [
            "--to",
            "ztensor",
            "--version",
            "2",
            "-O",
            "align=4096",
            "--checksum",
            "xxh3",
        ];
        let canonical = ["--to", "ztensor", "--version", "2", "-O", "canonical=true"];
        let oldest = ["--to", "ztensor", "--version", "0.1"];
        let what = |how: &str| format!("convert {count} tensors, zTensor 2 to {how}");

        // `zt convert` takes its options behind the files.
        let out = self.folder.join("theirs.zt");
        let zt_aligned = Runner::new("zt convert --align 4096", "sh")
            .args(["-c", r#""$0" convert "$1" "$2" --align 4096"#])
            .args([&zt, &from])
            .makes(&out);
        let ours = [(
            what("zTensor 2, 4096-byte alignment"),
            self.converts(&from, &aligned, &[]),
        )];
        self.row(&ours, &zt_aligned, goal)?;

        let zt_canonical = Runner::new("zt convert", &zt)
            .args(["convert"])
            .args([&from])
            .makes(&out);
        let ours = [
            (what("zTensor 0.1"), self.converts(&from, &oldest, &[])),
            (
                what("canonical zTensor 2"),
                self.converts(&from, &canonical, &[]),
            ),
        ];
        self.row(&ours, &zt_canonical, goal)
    }

    /// Comparing the checksums of a large file, beside reading it.
    fn verify(&self) -> Result<()> {
        let (mib, from) = self.big()?;
        let file = self.input(&format!("big-{mib}-crc32c.zt"), |file| {
            let options = [
                "convert",
                "--to",
                "ztensor",
                "--version",
                "0.1",
                "--checksum",
                "crc32c",
                "--no-sync",
            ];
            project::output(
                Command::new(&self.tenfold)
                    .args(options)
                    .arg(&from)
                    .arg(file),
            )
        })?;
        let ours = Runner::new("tenfold", &self.tenfold)
            .args(["verify"])
            .args([&file]);
        let theirs = Runner::new("cat", "cat").args([&file]);
        let goal = Some(Goal {
            ratio: 1.3,
            peak: None,
        });
        self.row(
            &[(format!("verify {mib} MiB with crc32c"), ours)],
            &theirs,
            goal,
        )
    }

    /// Opening many tensors of a Burnpack file, and reading all of a large one, beside Burn's own crate and beside a copy
    /// in memory.
    fn burnpack(&self) -> Result<()> {
        let theirs = self.burn_pack()?;
        let count = 20_000;
        let many = self.input(&format!("many-{count}.bpk"), |file| {
            project::output(
                theirs
                    .command()
                    .args(["make", &count.to_string()])
                    .arg(file),
            )
        })?;
        let goal = Goal {
            ratio: 1.0 / 3.0,
            peak: None,
        };
        // Their parsed header shows names only; ours knows the tensors too, so the goal is about both.
        let theirs_are = [("burn-pack, names only", "parse"), ("burn-pack", "open")];
        for (name, job) in theirs_are {
            let ours = Runner::new("tenfold", self.program("open")?);
            let what = format!("open Burnpack, {count} tensors");
            let mut theirs = theirs.runner().args([job, "50"]).args([&many]);
            theirs.name = name.into();
            self.row(
                &[(what, ours.args(["50"]).args([&many]).prints_time())],
                &theirs.prints_time(),
                Some(goal).filter(|_| job == "open"),
            )?;
        }
        let mib = if self.quick { 64 } else { 1024 };
        let big = self.input(&format!("big-{mib}.bpk"), |file| {
            project::output(theirs.command().args(["big", &mib.to_string()]).arg(file))
        })?;
        let read = self.program("read")?;
        for (job, name) in [("read", "burn-pack 0.23"), ("copy", "memcpy")] {
            let ours = Runner::new("tenfold", &read).args(["3"]).args([&big]);
            let mut theirs = theirs.runner().args([job, "3"]).args([&big]).prints_time();
            theirs.name = name.into();
            let what = format!("read all of {mib} MiB of Burnpack");
            self.row(&[(what, ours.prints_time())], &theirs, None)?;
        }
        Ok(())
    }

    /// Measures several of ours beside one of theirs and prints a line for each.
    fn row(&self, ours: &[(String, Runner)], theirs: &Runner, goal: Option<Goal>) -> Result<()> {
        let budget = Duration::from_secs(if self.quick { 2 } else { 30 });
        let mut runners: Vec<&Runner> = ours.iter().map(|(_, runner)| runner).collect();
        runners.push(theirs);
        let mut scores = race(&runners, budget, &self.folder.join("messages.txt"))?;
        let their_score = scores.pop().ok_or("no one ran")?;
        for ((what, _), score) in ours.iter().zip(scores) {
            let goal = goal.filter(|_| !self.quick);
            println!("{}", line(what, score, &theirs.name, their_score, goal));
        }
        Ok(())
    }

    fn converts(&self, from: &Path, to: &[&str], options: &[&str]) -> Runner {
        Runner::new("tenfold", &self.tenfold)
            .args(["convert", "--no-progress"])
            .args(to)
            .args(options)
            .args([from])
            .makes(&self.folder.join("ours.out"))
    }

    /// A program of ours that is timed: a file in `xtask/bench/tenfold/src/bin`.
    fn program(&self, name: &str) -> Result<PathBuf> {
        (self.project).build(&["--package", "tenfold-bench", "--bin", name])?;
        Ok(self.project.target.join("release").join(name))
    }

    fn counts(&self) -> Vec<u32> {
        let all = [1_000, 10_000, 100_000];
        all.into_iter()
            .take(if self.quick { 2 } else { 3 })
            .collect()
    }

    /// One file of 32 tensors of plain numbers, and its size in MiB.
    fn big(&self) -> Result<(u32, PathBuf)> {
        let mib = if self.quick { 64 } else { 1024 };
        let maker = self.ztensor_0()?;
        let file = self.input(&format!("big-{mib}.zt"), |file| {
            project::output(maker.command().args(["big", &mib.to_string()]).arg(file))
        })?;
        Ok((mib, file))
    }

    /// An input by name, made when it is not there yet; an interrupted one is never taken for whole.
    fn input(&self, name: &str, make: impl FnOnce(&Path) -> Result<Vec<u8>>) -> Result<PathBuf> {
        let file = self.folder.join(name);
        if !file.exists() {
            // Some writers look at the extension.
            let unfinished = self.folder.join(format!("unfinished-{name}"));
            if unfinished.is_dir() {
                fs::remove_dir_all(&unfinished)?;
            } else if unfinished.exists() {
                fs::remove_file(&unfinished)?;
            }
            make(&unfinished)?;
            fs::rename(&unfinished, &file)?;
        }
        Ok(file)
    }
}

/// Where the large file goes: to its own version, and to one with another header and other offsets.
const TARGETS: [(&str, &[&str]); 2] = [
    ("zTensor 0.1", &["--to", "ztensor", "--version", "0.1"]),
    (
        "mag snapshot-0.3.0",
        &["--to", "mag", "--version", "snapshot-0.3.0"],
    ),
];

/// One line of the table.
fn line(what: &str, ours: Score, their_name: &str, theirs: Score, goal: Option<Goal>) -> String {
    let ratio = ours.time.as_secs_f64() / theirs.time.as_secs_f64();
    let (wanted, met) = match goal {
        None => ("-".to_owned(), "-"),
        Some(goal) => {
            let met = ratio <= goal.ratio && goal.peak.is_none_or(|peak| ours.peak < peak);
            let peak = goal.peak.map(|peak| format!(", under {} MiB", peak >> 20));
            let wanted = format!("{:.3}{}", goal.ratio, peak.unwrap_or_default());
            (wanted, if met { "yes" } else { "no" })
        }
    };
    format!(
        "| {what} | {} | `{their_name}` {} | {ratio:.3} | {wanted} | {met} | {} and {} |",
        time(ours.time),
        time(theirs.time),
        ours.peak >> 20,
        theirs.peak >> 20,
    )
}

fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 0.001 {
        format!("{:.0} µs", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.2} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}
