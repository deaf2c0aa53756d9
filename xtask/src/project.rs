//! Where things are, and how tasks start other programs.

use crate::Result;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What it takes to make a package from sources that are older than today's tools.
pub(crate) struct Build {
    /// What is installed before it, because the sources do not say so.
    pub(crate) requires: &'static [&'static str],
    pub(crate) environment: &'static [(&'static str, &'static str)],
}

/// Runs a step of CI as a task of its own, which takes no arguments.
pub(crate) fn check_alone(
    args: &[String],
    check: impl FnOnce(&Project) -> Result<Option<String>>,
) -> Result<bool> {
    if !args.is_empty() {
        return Err("this task takes no arguments".into());
    }
    let remark = check(&Project::find()?)?;
    println!("{}", remark.unwrap_or_default());
    Ok(true)
}

/// The repository and the directory that cargo builds into.
pub(crate) struct Project {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
}

impl Project {
    /// Asks cargo, because `target` can be anywhere.
    pub(crate) fn find() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .ok_or("the task program has no folder above it")?;
        let answer = output(cargo(root).args(["metadata", "--no-deps", "--format-version", "1"]))?;
        let answer: Value = serde_json::from_slice(&answer)?;
        let target = answer
            .get("target_directory")
            .and_then(Value::as_str)
            .ok_or("cargo metadata names no target directory")?;
        Ok(Self {
            root: root.to_path_buf(),
            target: PathBuf::from(target),
        })
    }

    /// The release build of the command.
    pub(crate) fn command(&self) -> Result<PathBuf> {
        self.build(&["--package", "tenfold-cli"])?;
        Ok(self.target.join("release/tenfold"))
    }

    /// Builds something of the workspace as users get it.
    pub(crate) fn build(&self, what: &[&str]) -> Result<()> {
        status(
            cargo(&self.root)
                .args(["build", "--quiet", "--release"])
                .args(what),
        )
    }

    /// The command as the tests have built it, with the same features, so that nothing is built again.
    pub(crate) fn debug_command(&self) -> Result<PathBuf> {
        status(cargo(&self.root).args(["build", "--quiet", "--workspace", "--all-features"]))?;
        Ok(self.target.join("debug/tenfold"))
    }

    /// A program of a package, installed once under `target/`.
    pub(crate) fn tool(&self, package: &str) -> Result<PathBuf> {
        let folder = self.target.join("tools");
        let tool = folder.join("bin").join(package);
        if !tool.is_file() {
            eprintln!("installing {package}");
            let install = ["install", "--quiet", "--locked", package, "--root"];
            status(cargo(&self.root).args(install).arg(&folder))?;
        }
        Ok(tool)
    }

    /// Says and runs a command of cargo.
    pub(crate) fn cargo(&self, args: &[&str]) -> Result<Option<String>> {
        show(cargo(&self.root).args(args))
    }

    /// Makes sure that a component of the toolchain, which brings a command of cargo, is installed.
    pub(crate) fn require_component(&self, component: &str, command: &str) -> Result<()> {
        if output(cargo(&self.root).args([command, "--version"])).is_ok() {
            return Ok(());
        }
        eprintln!("installing {component}");
        let mut rustup = Command::new("rustup");
        status(
            rustup
                .current_dir(&self.root)
                .args(["component", "add", component]),
        )
    }

    /// A virtual environment with `packages`, as pip names them, made once and used again.
    ///
    /// Returns its Python. What has a build of its own is made from its sources. The name of the environment is that of the first package.
    pub(crate) fn environment(&self, packages: &[&str], build: Option<&Build>) -> Result<PathBuf> {
        let name = packages.first().ok_or("an environment needs a package")?;
        let at = self.target.join("interop").join(name.replace("==", "-"));
        let python = at.join("bin/python");
        // Written last, so that an interrupted installation is done again.
        let note = at.join("installed.txt");
        let wanted = packages.join("\n");
        if fs::read_to_string(&note).is_ok_and(|installed| installed == wanted) {
            return Ok(python);
        }
        eprintln!("installing {}", packages.join(" "));
        output(
            Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(&at),
        )?;
        let pip = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ];
        let mut install = Command::new(&python);
        install.args(pip).args(packages);
        if let Some(build) = build {
            output(Command::new(&python).args(pip).args(build.requires))?;
            let path = std::env::var("PATH").unwrap_or_default();
            install
                .args(["--no-build-isolation", "--no-deps"])
                .envs(build.environment.iter().copied())
                .env("PATH", format!("{}:{path}", at.join("bin").display()));
        }
        output(&mut install)?;
        fs::write(&note, wanted)?;
        Ok(python)
    }
}

/// The cargo that runs this task.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    cargo
}

/// A program of this folder under the Python of an environment, leaving no compiled files beside the source.
pub(crate) fn python(python: &Path, program: &Path) -> Command {
    let mut command = Command::new(python);
    command.env("PYTHONDONTWRITEBYTECODE", "1").arg(program);
    command
}

/// What a command prints; an error with its messages when it fails.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let done = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", shown(command)))?;
    if done.status.success() {
        return Ok(done.stdout);
    }
    let messages = String::from_utf8_lossy(&done.stderr);
    Err(format!(
        "{}: {}\n{}",
        shown(command),
        done.status,
        messages.trim_end()
    )
    .into())
}

/// Runs a command whose messages are for the user.
pub(crate) fn status(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .map_err(|error| format!("{}: {error}", shown(command)))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("{}: {status}", shown(command)).into())
}

/// Says what is run, then runs it.
pub(crate) fn show(command: &mut Command) -> Result<Option<String>> {
    println!("{}", shown(command));
    status(command).map(|()| None)
}

/// Runs tests, shows what they say, and counts those that passed. No test at all is an error.
pub(crate) fn run_tests(command: &mut Command) -> Result<u64> {
    println!("{}", shown(command));
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let said = child.stdout.take().ok_or("what it says is lost")?;
    let mut passed = 0;
    for line in BufReader::new(said).lines() {
        let line = line?;
        passed += passed_tests(&line);
        println!("{line}");
    }
    let status = child.wait()?;
    match passed {
        _ if !status.success() => Err(format!("{passed} tests passed, not all: {status}").into()),
        0 => Err("there was no test".into()),
        passed => Ok(passed),
    }
}

/// Of the line that a test program ends with.
fn passed_tests(line: &str) -> u64 {
    let count = || {
        let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
        counts.split_once(" passed")?.0.parse().ok()
    };
    count().unwrap_or(0)
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    let mut line = name.to_string_lossy().into_owned();
    for arg in command.get_args() {
        line.push(' ');
        line.push_str(&arg.to_string_lossy());
    }
    line
}

/// Every Rust file below a folder, in the order of their paths.
pub(crate) fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_passed_are_counted() {
        let line = "test result: ok. 412 passed; 0 failed; 2 ignored; 0 measured; finished in 1.2s";
        assert_eq!(passed_tests(line), 412);
        assert_eq!(passed_tests("test result: FAILED. 3 passed; 1 failed"), 3);
        assert_eq!(passed_tests("test mag/valid/empty ... ok"), 0);
    }
}
