//! Measuring one program beside another: warmed up, in turns, the best time of each.

use crate::Result;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wait4::Wait4;

/// A program to measure.
pub(super) struct Runner {
    /// What the table calls it.
    pub(super) name: String,
    program: PathBuf,
    args: Vec<OsString>,
    /// The file it writes: removed before each run, for replacing a file costs more than making one, and after it,
    /// so that nothing is left to be written to disk during the next.
    makes: Option<PathBuf>,
    /// It prints how long it took, in nanoseconds: a library is measured without the start of a program around it.
    prints_time: bool,
}

/// The best time and the greatest peak of resident memory in all runs.
#[derive(Clone, Copy)]
pub(super) struct Score {
    pub(super) time: Duration,
    pub(super) peak: u64,
}

impl Runner {
    pub(super) fn new(name: impl Into<String>, program: impl AsRef<Path>) -> Self {
        Self {
            name: name.into(),
            program: program.as_ref().to_path_buf(),
            args: Vec::new(),
            makes: None,
            prints_time: false,
        }
    }

    pub(super) fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Under another name, for one of several things that a program does.
    pub(super) fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// Adds the path of its output as the last argument.
    pub(super) fn makes(mut self, path: &Path) -> Self {
        self.args.push(path.into());
        self.makes = Some(path.to_path_buf());
        self
    }

    pub(super) fn prints_time(mut self) -> Self {
        self.prints_time = true;
        self
    }

    fn run(&self, messages: &Path) -> Result<Score> {
        self.clean()?;
        let start = Instant::now();
        let mut child = Command::new(&self.program)
            .args(&self.args)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .stdout(if self.prints_time {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stderr(File::create(messages)?)
            .spawn()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        let mut printed = String::new();
        if let Some(stdout) = child.stdout.as_mut() {
            stdout.read_to_string(&mut printed)?;
        }
        let ended = child.wait4()?;
        let time = start.elapsed();
        self.clean()?;
        if !ended.status.success() {
            let said = fs::read_to_string(messages)?;
            return Err(format!("{}: {}\n{said}", self.name, ended.status).into());
        }
        let time = if self.prints_time {
            Duration::from_nanos(printed.trim().parse()?)
        } else {
            time
        };
        Ok(Score {
            time,
            peak: ended.rusage.maxrss,
        })
    }

    fn clean(&self) -> Result<()> {
        match &self.makes {
            Some(path) if path.exists() => Ok(fs::remove_file(path)?),
            _ => Ok(()),
        }
    }
}

/// Runs all in turns and gives the score of each. A first round warms up and decides how many follow: as many as fit
/// into `budget`, but at least two and at most ten.
pub(super) fn race(runners: &[&Runner], budget: Duration, messages: &Path) -> Result<Vec<Score>> {
    let start = Instant::now();
    for runner in runners {
        runner.run(messages)?;
    }
    let rounds = budget.as_secs_f64() / start.elapsed().as_secs_f64();
    let mut best: Vec<Option<Score>> = vec![None; runners.len()];
    for round in 0..10 {
        if round >= 2 && f64::from(round) >= rounds {
            break;
        }
        for (runner, best) in runners.iter().zip(&mut best) {
            let score = runner.run(messages)?;
            *best = Some(best.map_or(score, |before| Score {
                time: before.time.min(score.time),
                peak: before.peak.max(score.peak),
            }));
        }
    }
    Ok(best.into_iter().flatten().collect())
}
