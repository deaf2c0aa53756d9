//! `cargo xtask fuzz`: every fuzz target in turn, with limits on time and memory, and what came of it.
//!
//! It needs the nightly toolchain and `cargo-fuzz`, which it installs under `target/`. Seeds are the fixtures; what the
//! fuzzer keeps beyond them lies in `target/fuzz/corpus` and is where the next run begins.

use crate::Result;
use crate::project::{self, Project};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Inputs are no longer than this: most that files do wrong, they do in little room.
const LONGEST: &str = "65536";
/// An input that takes longer is a finding.
const SECONDS: &str = "25";
/// A target that holds more is a finding. The targets themselves allow less for each input.
const MEMORY_MIB: &str = "2048";

/// `--minutes N` in total, divided among the targets that are named or all.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let (minutes, wanted) = arguments(args)?;
    let project = Project::find()?;
    let all = targets(&project)?;
    if let Some(unknown) = wanted.iter().find(|name| !all.contains(name)) {
        return Err(format!("no target {unknown:?}; there are {}", all.join(", ")).into());
    }
    let chosen = if wanted.is_empty() { all } else { wanted };
    let fuzz = Fuzz::prepare(project)?;
    let each = Duration::from_secs(minutes * 60) / u32::try_from(chosen.len())?;
    let mut rows = Vec::new();
    for target in &chosen {
        rows.push(fuzz.run(target, each)?);
    }
    println!(
        "\n{:<14} {:>8} {:>12} {:>9} {:>9} {:>8}  findings",
        "target", "seconds", "executions", "coverage", "grown by", "corpus"
    );
    for row in &rows {
        println!("{row}");
    }
    let findings: usize = rows.iter().map(|row| row.findings.len()).sum();
    let executions: u64 = rows.iter().map(|row| row.executions).sum();
    println!("{executions} executions, {findings} findings");
    Ok(findings == 0)
}

fn arguments(args: &[String]) -> Result<(u64, Vec<String>)> {
    let mut minutes = None;
    let mut wanted = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--minutes" => minutes = Some(args.next().ok_or("--minutes needs a number")?.parse()?),
            flag if flag.starts_with('-') => return Err(format!("unknown option {flag}").into()),
            name => wanted.push(name.to_owned()),
        }
    }
    let minutes = minutes.filter(|minutes| *minutes > 0);
    Ok((minutes.ok_or("say how long with --minutes N")?, wanted))
}

/// The targets are the files of their folder.
fn targets(project: &Project) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(project.root.join("fuzz/fuzz_targets"))? {
        let path = entry?.path();
        names.extend(
            path.file_stem()
                .map(|stem| stem.to_string_lossy().into_owned()),
        );
    }
    names.sort();
    Ok(names)
}

struct Fuzz {
    project: Project,
    /// Everything that is made here: programs, corpus, findings.
    folder: PathBuf,
    host: String,
}

impl Fuzz {
    /// Installs what is missing, builds all targets and writes their seeds.
    fn prepare(project: Project) -> Result<Self> {
        let host = project::output(Command::new("rustc").args(["+nightly", "-vV"]))
            .map_err(|error| format!("fuzzing needs the nightly toolchain: {error}"))?;
        let host = String::from_utf8(host)?;
        let host = host.lines().find_map(|line| line.strip_prefix("host: "));
        let fuzz = Self {
            folder: project.target.join("fuzz"),
            host: host
                .ok_or("rustc does not say for which machine it is")?
                .to_owned(),
            project,
        };
        let tool = fuzz.project.tool("cargo-fuzz")?;
        // No address sanitizer: there is no unsafe code to watch, and without it twice as much is tried.
        project::status(
            Command::new(tool)
                .current_dir(fuzz.project.root.join("fuzz"))
                .env("RUSTUP_TOOLCHAIN", "nightly")
                .env("CARGO_TARGET_DIR", &fuzz.folder)
                .args(["fuzz", "build", "--sanitizer", "none"]),
        )?;
        let seeds = [
            "test",
            "--quiet",
            "--package",
            "tenfold",
            "--all-features",
            "--test",
            "fuzz",
        ];
        project::status(
            project::cargo(&fuzz.project.root)
                .args(seeds)
                .env("TENFOLD_WRITE_SEEDS", fuzz.folder.join("seeds")),
        )?;
        Ok(fuzz)
    }

    /// Runs one target for some time. A finding ends the fuzzer, which is started again for the time that is left.
    fn run(&self, target: &str, time: Duration) -> Result<Row> {
        let program = self.folder.join(&self.host).join("release").join(target);
        let corpus = self.folder.join("corpus").join(target);
        let artifacts = self.folder.join("findings").join(target);
        fs::create_dir_all(&corpus)?;
        fs::create_dir_all(&artifacts)?;
        let before = files(&artifacts)?;
        let begin = Instant::now();
        let mut row = Row::new(target);
        while let Some(left) = time
            .checked_sub(begin.elapsed())
            .filter(|left| left.as_secs() > 0)
        {
            let log = Command::new(&program)
                .current_dir(&self.folder)
                .arg(&corpus)
                .arg(self.folder.join("seeds").join(target))
                .arg(format!("-max_total_time={}", left.as_secs()))
                .arg(format!("-max_len={LONGEST}"))
                .arg(format!("-timeout={SECONDS}"))
                // Less than the limit is no finding, however busy the machine is.
                .arg(format!("-report_slow_units={SECONDS}"))
                .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
                .arg(format!("-artifact_prefix={}/", artifacts.display()))
                .arg("-print_final_stats=1")
                .stdin(Stdio::null())
                .output()?;
            let text = String::from_utf8_lossy(&log.stderr);
            row.add(&text)?;
            if !log.status.success() {
                let tail: Vec<_> = text.lines().rev().take(60).collect();
                eprintln!("== {target}: {}", log.status);
                tail.iter().rev().for_each(|line| eprintln!("{line}"));
            }
            row.findings = files(&artifacts)?;
            row.findings.retain(|finding| !before.contains(finding));
            // The same fault again and again would only fill the disk.
            if row.findings.len() >= 5 {
                break;
            }
        }
        row.time = begin.elapsed();
        row.corpus = files(&corpus)?.len();
        println!("{row}");
        Ok(row)
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    files.sort();
    Ok(files)
}

/// What came of one target.
struct Row {
    target: String,
    time: Duration,
    executions: u64,
    /// Edges that the seeds reach, and that were reached in the end.
    coverage: Option<(u64, u64)>,
    corpus: usize,
    findings: Vec<PathBuf>,
}

impl Row {
    fn new(target: &str) -> Self {
        Self {
            target: target.to_owned(),
            time: Duration::ZERO,
            executions: 0,
            coverage: None,
            corpus: 0,
            findings: Vec::new(),
        }
    }

    /// Adds what the fuzzer says of one run.
    fn add(&mut self, log: &str) -> Result<()> {
        let executions = after(log, "stat::number_of_executed_units:").last();
        // A run that ends with a finding has no statistics; its last line counts.
        let mut counted = log.lines().filter_map(|line| {
            let count = line.strip_prefix('#')?.split_whitespace().next()?;
            count.parse().ok()
        });
        self.executions += executions.or(counted.next_back()).unwrap_or(0);
        let begun = log.lines().find(|line| line.contains("INITED"));
        let first = begun.and_then(|line| after(line, "cov:").next());
        let last = after(log, "cov:").last();
        if let (Some(first), Some(last)) = (first, last) {
            let before = self.coverage.map_or(first, |(before, _)| before);
            self.coverage = Some((before, last));
        }
        Ok(())
    }
}

/// The numbers that follow a word.
fn after<'a>(log: &'a str, word: &'a str) -> impl Iterator<Item = u64> + 'a {
    log.split(word)
        .skip(1)
        .filter_map(|rest| rest.split_whitespace().next()?.parse().ok())
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (before, reached) = self.coverage.unwrap_or_default();
        write!(
            f,
            "{:<14} {:>8} {:>12} {:>9} {:>9} {:>8}  {}",
            self.target,
            self.time.as_secs(),
            self.executions,
            reached,
            reached.saturating_sub(before),
            self.corpus,
            self.findings.len()
        )?;
        for finding in &self.findings {
            write!(f, "\n    {}", finding.display())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Row;

    #[test]
    fn what_the_fuzzer_says_is_added_up() {
        let log = "#12\tINITED cov: 100 ft: 3 corp: 2/9b\n#50\tNEW    cov: 130 ft: 5 corp: 3/9b\n\
                   stat::number_of_executed_units: 4242\n";
        let crashed = "#9\tINITED cov: 110 ft: 3\n#31\tREDUCE cov: 140 ft: 4\npanicked\n";
        let mut row = Row::new("describe");
        row.add(log).unwrap();
        row.add(crashed).unwrap();
        assert_eq!(row.executions, 4242 + 31);
        assert_eq!(row.coverage, Some((100, 140)));
    }
}
