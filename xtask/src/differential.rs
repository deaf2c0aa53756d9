//! `cargo xtask differential`: changed files, read by us and by the reference packages.
//!
//! A program in `xtask/differential` makes some thousand files from the fixtures and from nothing, the same every time,
//! and says what the package sees in each. For every file and every tensor one of these must hold:
//! - both take it, and see the same type, shape, elements and metadata;
//! - both refuse it;
//! - only we refuse it, under a rule that is listed here and documented as stricter;
//! - only the package refuses it, with a message that is listed here, for a documented reason.
//!
//! Some of the files are as writers write them: what the package takes of these must be taken.
//!
//! The safetensors reader is compared with its crate by the test `safetensors` of the library.

mod references;

use crate::Result;
use crate::held::Held;
use crate::project::{self, Project};
use references::{REFERENCES, Reference};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Files of each format, unless told otherwise.
const FILES: usize = 4000;
/// Files that one call of the command looks at.
const AT_ONCE: usize = 500;
/// What the programs say of a file in which nothing is odd.
const PLAIN: &str = "nothing odd";

/// `[--files N] [FORMAT…]`
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let (files, wanted) = arguments(args)?;
    let project = Project::find()?;
    let tenfold = project.command()?;
    let mut agree = true;
    for reference in REFERENCES {
        if wanted.is_empty() || wanted.iter().any(|name| name == reference.format) {
            agree &= compare(&project, &tenfold, reference, files)?;
        }
    }
    Ok(agree)
}

fn arguments(args: &[String]) -> Result<(usize, Vec<String>)> {
    let mut files = FILES;
    let mut wanted = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--files" => files = args.next().ok_or("--files needs a number")?.parse()?,
            name if REFERENCES.iter().any(|known| known.format == name) => {
                wanted.push(name.to_owned());
            }
            other => {
                let known: Vec<_> = REFERENCES.iter().map(|known| known.format).collect();
                let known = known.join(", ");
                return Err(format!("{other:?} is neither --files N nor one of {known}").into());
            }
        }
    }
    Ok((files, wanted))
}

/// Compares both readers of one format, and prints what came of it.
fn compare(project: &Project, tenfold: &Path, reference: &Reference, files: usize) -> Result<bool> {
    let folder = project.target.join("differential").join(reference.format);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let theirs = theirs(project, reference, &folder, files)?;
    let mut tally = Tally::default();
    for some in theirs.chunks(AT_ONCE) {
        let paths: Vec<PathBuf> = some.iter().map(|one| folder.join(&one.file)).collect();
        for (theirs, ours) in some.iter().zip(ours(tenfold, reference.format, &paths)?) {
            tally.judge(reference, theirs, &ours);
        }
    }
    tally.print(reference, theirs.len());
    Ok(tally.disagreements.is_empty() && tally.same > 0)
}

/// A file, and what the package says of it.
struct Theirs {
    file: String,
    /// What was done to it.
    change: String,
    view: View,
}

/// What a reader sees: the tensors that it takes, and what it refuses. The name of the whole file is nothing.
#[derive(Default)]
struct View {
    held: Held,
    refused: BTreeMap<Option<String>, String>,
}

fn theirs(
    project: &Project,
    reference: &Reference,
    folder: &Path,
    files: usize,
) -> Result<Vec<Theirs>> {
    let python = project.environment(reference.installs, None)?;
    let program = project
        .root
        .join("xtask/differential")
        .join(reference.program);
    let said = project::output(
        project::python(&python, &program)
            .arg(project.root.join("fixtures").join(reference.format))
            .arg(folder)
            .arg(files.to_string()),
    )?;
    let lines = std::str::from_utf8(&said)?.lines();
    lines.map(|line| their_view(line.as_bytes())).collect()
}

fn their_view(line: &[u8]) -> Result<Theirs> {
    let json: Value = serde_json::from_slice(line)?;
    let text = |field: &str| json.get(field).and_then(Value::as_str).map(str::to_owned);
    let mut view = View::default();
    if let Some(why) = text("refused") {
        view.refused.insert(None, why);
    } else {
        view.held = Held::parse_only(line, |row| row.get("refused").is_none())?;
        for row in json
            .get("tensors")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let field = |name: &str| row.get(name).and_then(Value::as_str).map(str::to_owned);
            view.refused
                .extend(field("refused").map(|why| (field("name"), why)));
        }
    }
    Ok(Theirs {
        file: text("file").ok_or("no name of a file")?,
        change: text("change").unwrap_or_default(),
        view,
    })
}

/// What `tenfold` sees in some files. What `verify` finds wrong is refused, by its rule.
fn ours(tenfold: &Path, format: &str, paths: &[PathBuf]) -> Result<Vec<View>> {
    let ask = |command: &[&str]| -> Result<Vec<Value>> {
        let mut tenfold = Command::new(tenfold);
        tenfold.args(command).args(["--json", "--from", format]);
        let said = tenfold.args(paths).stdin(Stdio::null()).output()?;
        // 1 is a finding, 2 is a file that is refused: both are looked at. Anything else is a crash.
        if !matches!(said.status.code(), Some(0..=2)) {
            let messages = String::from_utf8_lossy(&said.stderr);
            return Err(format!("tenfold {command:?}: {}\n{messages}", said.status).into());
        }
        let all: Value = serde_json::from_slice(&said.stdout)?;
        match all {
            Value::Array(all) if all.len() == paths.len() => Ok(all),
            one if paths.len() == 1 => Ok(vec![one]),
            _ => Err(format!("tenfold {command:?} leaves out files").into()),
        }
    };
    let verified = ask(&["verify"])?;
    let inspected = ask(&["inspect", "--full"])?;
    let digests = ask(&["digest"])?;
    let mut views = Vec::new();
    for ((verified, inspected), digests) in verified.iter().zip(&inspected).zip(&digests) {
        views.push(our_view(verified, inspected, digests)?);
    }
    Ok(views)
}

fn our_view(verified: &Value, inspected: &Value, digests: &Value) -> Result<View> {
    let mut view = View::default();
    if let Some(error) = inspected.get("error").and_then(Value::as_str) {
        let rule = error.rsplit_once('[').map_or("", |(_, rule)| rule);
        let rule = rule.trim_end_matches(']').to_owned();
        view.refused.insert(None, rule);
        return Ok(view);
    }
    let findings = verified.get("findings").and_then(Value::as_array);
    for finding in findings.into_iter().flatten() {
        let field = |name: &str| finding.get(name).and_then(Value::as_str).map(str::to_owned);
        if field("severity").as_deref() == Some("error") {
            let rule = field("rule").ok_or("a finding without a rule")?;
            view.refused.entry(field("tensor")).or_insert(rule);
        }
    }
    if view.refused.contains_key(&None) {
        return Ok(view);
    }
    view.held = Held::parse(inspected.to_string().as_bytes())?;
    view.held.add_digests(digests.to_string().as_bytes())?;
    view.held
        .tensors
        .retain(|name, _| !view.refused.contains_key(&Some(name.clone())));
    Ok(view)
}

/// How often what happened.
#[derive(Default)]
struct Tally {
    /// Tensors that both take and that are the same.
    same: usize,
    /// Files that both take, all of whose tensors are the same.
    same_files: usize,
    both_refuse: usize,
    /// By our rule.
    stricter: BTreeMap<String, usize>,
    /// By the words of the reference.
    laxer: BTreeMap<&'static str, usize>,
    disagreements: Vec<String>,
}

impl Tally {
    fn judge(&mut self, reference: &Reference, theirs: &Theirs, ours: &View) {
        let Theirs { file, change, view } = theirs;
        let found = self.differences(reference, view, ours, change == PLAIN);
        let found = found.into_iter();
        self.disagreements
            .extend(found.map(|what| format!("{file}: {what} ({change})")));
    }

    /// Everything in which both readers differ without a documented reason.
    fn differences(
        &mut self,
        reference: &Reference,
        theirs: &View,
        ours: &View,
        plain: bool,
    ) -> Vec<String> {
        let gives_none = |view: &View| view.held.tensors.is_empty() && !view.refused.is_empty();
        match (theirs.refused.get(&None), ours.refused.get(&None)) {
            (Some(_), _) if gives_none(ours) => self.both_refuse += 1,
            // It refuses each tensor by itself, we the file.
            (_, Some(_)) if gives_none(theirs) => self.both_refuse += 1,
            // It refuses the file, we each tensor by itself.
            (Some(_), _) if reference.all_or_nothing && !ours.refused.is_empty() => {
                self.both_refuse += 1;
            }
            (Some(why), _) => return self.only_they_refuse(reference, why).into_iter().collect(),
            (None, Some(rule)) => {
                let found = self.only_we_refuse(reference, rule, plain);
                return found.into_iter().collect();
            }
            (None, None) => {
                let mut found = self.of_tensors(reference, theirs, ours, plain);
                let metadata = theirs.held.metadata_of_same_keys(&ours.held);
                found.extend(metadata.map(|what| format!("metadata: {what}")));
                let whole = theirs.refused.is_empty() && ours.refused.is_empty();
                self.same_files += usize::from(whole && found.is_empty());
                return found;
            }
        }
        Vec::new()
    }

    fn of_tensors(
        &mut self,
        reference: &Reference,
        theirs: &View,
        ours: &View,
        plain: bool,
    ) -> Vec<String> {
        let mut found = Vec::new();
        let mut names: Vec<&String> = theirs.held.tensors.keys().collect();
        names.extend(ours.held.tensors.keys());
        names.extend(theirs.refused.keys().chain(ours.refused.keys()).flatten());
        names.sort();
        names.dedup();
        for name in names {
            let (them, us) = (theirs.held.tensors.get(name), ours.held.tensors.get(name));
            let outcome = match (them, us) {
                (Some(them), Some(us)) => {
                    let difference = them.difference(us);
                    self.same += usize::from(difference.is_none());
                    difference
                }
                (Some(_), None) => match ours.refused.get(&Some(name.clone())) {
                    Some(rule) => self.only_we_refuse(reference, rule, plain),
                    None => Some("only they have it".to_owned()),
                },
                (None, Some(_)) => match theirs.refused.get(&Some(name.clone())) {
                    Some(why) => self.only_they_refuse(reference, why),
                    None => Some("only we have it".to_owned()),
                },
                (None, None) => {
                    self.both_refuse += 1;
                    None
                }
            };
            found.extend(outcome.map(|what| format!("tensor {name:?}: {what}")));
        }
        found
    }

    fn only_we_refuse(&mut self, reference: &Reference, rule: &str, plain: bool) -> Option<String> {
        *self.stricter.entry(rule.to_owned()).or_default() += 1;
        let known = reference.stricter.contains(&rule) && !plain;
        (!known).then(|| format!("only we refuse it, under {rule}"))
    }

    fn only_they_refuse(&mut self, reference: &Reference, why: &str) -> Option<String> {
        let mut laxer = reference.laxer.iter();
        match laxer.find(|(words, _)| why.contains(words)) {
            Some((words, _)) => {
                *self.laxer.entry(words).or_default() += 1;
                None
            }
            None => Some(format!("only they refuse it: {why}")),
        }
    }

    fn print(&self, reference: &Reference, files: usize) {
        println!(
            "{}: {files} files beside {}: {} taken with the same content, {} tensors in all; {} files or tensors refused by both",
            reference.format,
            reference.release(),
            self.same_files,
            self.same,
            self.both_refuse,
        );
        for (rule, count) in &self.stricter {
            println!("  {count:>6} refused by us alone: {rule}");
        }
        for (words, count) in &self.laxer {
            let why = reference.laxer.iter().find(|(known, _)| known == words);
            let why = why.map_or("", |(_, why)| why);
            println!("  {count:>6} refused by it alone: {words:?}: {why}");
        }
        println!("  {:>6} disagreements", self.disagreements.len());
        for what in &self.disagreements {
            println!("    {what}");
        }
    }
}

#[cfg(test)]
mod tests;
