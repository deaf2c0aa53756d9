//! `cargo xtask features`: the library builds with none of its features, with each of them alone and with all of them.
//!
//! The command builds with none of its features, and with each of those alone that bring code of their own.
//!
//! What does not need `std` is built for a machine without an operating system, where nothing of `std` can slip in. The
//! default features are also built for WebAssembly, which has `std` and nothing of a system. The features are those of the
//! manifest: a new one is checked without a change here.

use crate::Result;
use crate::project::{self, Project};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

/// A target that has no `std`.
const BARE_METAL: &str = "thumbv7em-none-eabi";
const LIBRARY: &str = "tenfold";
/// The feature around everything that only writing needs.
const WRITE: &str = "write";
/// Features of the command that leave code out, and that nothing else builds without.
const COMMAND: [&str; 3] = ["", "remote", "view"];
/// A target that has `std` and neither files nor threads.
const WEB: &str = "wasm32-unknown-unknown";

/// Checks every combination; no arguments.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    project::check_alone(args, check)
}

/// Checks every combination; the remark says how many and for which target.
pub(crate) fn check(project: &Project) -> Result<Option<String>> {
    let features = Features::read(project)?;
    let target = added(project, BARE_METAL, "a use of std that the host hides");
    let web = added(project, WEB, "a use of what only systems have");
    let (with_std, without): (Vec<_>, Vec<_>) =
        features.names().partition(|name| features.needs_std(name));

    // Writers are code that nothing calls without the feature: each format is built with it, and all together without.
    let readers: Vec<_> = without
        .iter()
        .copied()
        .filter(|name| *name != WRITE)
        .collect();
    let mut combinations = vec![(String::new(), target)];
    combinations.extend(
        readers
            .iter()
            .map(|name| (format!("{name},{WRITE}"), target)),
    );
    combinations.push((readers.join(","), target));
    combinations.push((without.join(","), target));
    combinations.extend(with_std.iter().map(|name| ((*name).to_owned(), None)));
    combinations.push((features.names().collect::<Vec<_>>().join(","), None));
    combinations.extend(web.map(|web| ("default".to_owned(), Some(web))));
    let library = |(features, target)| (LIBRARY, features, target);
    let mut builds: Vec<_> = combinations.into_iter().map(library).collect();
    let command = COMMAND.map(|features| ("tenfold-cli", features.to_owned(), None));
    builds.extend(command);
    let failed = build_all(project, &builds);
    if !failed.is_empty() {
        return Err(format!("does not build with {}", failed.join(" nor with ")).into());
    }
    let place = |target: Option<&str>, what: &str, name: &str| match target {
        Some(target) => format!("{what} for {target}"),
        None => format!("NOT for {name}"),
    };
    let (count, bare) = (builds.len(), place(target, "those without std", BARE_METAL));
    let web = place(web, "the default ones", WEB);
    Ok(Some(format!("{count} combinations, {bare}, {web}")))
}

/// A package, its features, and a target that is not this machine.
type Build<'a> = (&'static str, String, Option<&'a str>);

/// Builds two combinations at a time, because checking one crate keeps one core busy; returns those that fail.
fn build_all(project: &Project, builds: &[Build<'_>]) -> Vec<String> {
    // Cargo lets only one build at a time into a folder.
    let folders = [
        project.target.join("features/1"),
        project.target.join("features/2"),
    ];
    let waiting = Mutex::new(builds.iter());
    let next = || waiting.lock().ok()?.next();
    let worker = |folder: &Path| {
        let mut failed = Vec::new();
        while let Some(one) = next() {
            if build(project, folder, one).is_err() {
                let (package, features, _) = one;
                failed.push(format!("{package} {features:?}"));
            }
        }
        failed
    };
    std::thread::scope(|scope| {
        let [one, other] = folders
            .each_ref()
            .map(|folder| scope.spawn(|| worker(folder)));
        let died = || vec!["a worker that ended too early".to_owned()];
        [one, other]
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_else(|_| died()))
            .collect()
    })
}

/// Warnings count here too. Code that a combination leaves unused is none: the library says so at its root.
fn build(project: &Project, folder: &Path, (package, features, target): &Build<'_>) -> Result<()> {
    let shown = if features.is_empty() {
        "none"
    } else {
        features
    };
    println!(
        "{package}, features {shown}, {}",
        target.unwrap_or("this machine")
    );
    let mut cargo = project::cargo(&project.root);
    cargo
        .env("CARGO_TARGET_DIR", folder)
        .args(["clippy", "--quiet", "--package", package])
        .args(["--no-default-features", "--features", features]);
    if let Some(target) = target {
        cargo.args(["--target", target]);
    }
    project::status(cargo.args(["--", "-D", "warnings"]))
}

/// A target, added if it is not there yet; `None` with loud words about what is not checked where it cannot be had.
pub(crate) fn added(project: &Project, target: &'static str, unseen: &str) -> Option<&'static str> {
    let add = || {
        if has(target)? {
            return Ok(());
        }
        let mut rustup = Command::new("rustup");
        rustup.current_dir(&project.root);
        project::output(rustup.args(["target", "add", target]))?;
        if has(target)? {
            Ok(())
        } else {
            Err("the compiler still does not find it".into())
        }
    };
    let result: Result<()> = add();
    if let Err(why) = result {
        eprintln!("***********************************************************************");
        eprintln!("NOT CHECKED for {target}, which could not be added: {why}");
        eprintln!("Not noticed would be: {unseen}.");
        eprintln!("***********************************************************************");
        return None;
    }
    Some(target)
}

fn has(target: &str) -> Result<bool> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let question = ["--print", "target-libdir", "--target", target];
    let answer = project::output(Command::new(rustc).args(question))?;
    Ok(Path::new(String::from_utf8(answer)?.trim()).is_dir())
}

/// The features of the library, each with what it turns on.
pub(crate) struct Features(Vec<(String, Vec<String>)>);

impl Features {
    pub(crate) fn read(project: &Project) -> Result<Self> {
        let answer = project::output(project::cargo(&project.root).args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
        ]))?;
        let answer: Value = serde_json::from_slice(&answer)?;
        Self::of_library(&answer).ok_or_else(|| "cargo metadata names no feature of tenfold".into())
    }

    fn of_library(metadata: &Value) -> Option<Self> {
        let library = (metadata.get("packages")?.as_array()?.iter())
            .find(|package| package.get("name").is_some_and(|name| name == "tenfold"))?;
        let table = library.get("features")?.as_object()?;
        let turned_on = |value: &Value| {
            let names = value.as_array().into_iter().flatten();
            names
                .filter_map(|name| Some(name.as_str()?.to_owned()))
                .collect()
        };
        let rows = table
            .iter()
            .map(|(name, value)| (name.clone(), turned_on(value)));
        Some(Self(rows.collect()))
    }

    /// All but `default`, which is a selection of the others.
    fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.0.iter().map(|(name, _)| name.as_str());
        names.filter(|name| *name != "default")
    }

    /// Those that work without an operating system.
    pub(crate) fn without_std(&self) -> Vec<&str> {
        self.names().filter(|name| !self.needs_std(name)).collect()
    }

    fn needs_std(&self, name: &str) -> bool {
        name == "std"
            || (self.0.iter())
                .filter(|(known, _)| known == name)
                .flat_map(|(_, turned_on)| turned_on)
                .any(|other| self.needs_std(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_feature_needs_std_through_another_one() {
        let metadata = json!({"packages": [{"name": "tenfold", "features": {
            "default": ["std"], "std": [], "mmap": ["std"], "fast": ["mmap"], "mag": ["dep:crc"],
        }}]});
        let features = Features::of_library(&metadata).unwrap();
        let with_std: Vec<_> = features
            .names()
            .filter(|name| features.needs_std(name))
            .collect();
        assert_eq!(with_std, ["fast", "mmap", "std"]);
    }
}
