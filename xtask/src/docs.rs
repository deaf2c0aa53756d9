//! `cargo xtask docs`: what the documentation says about the formats and the command comes from the command itself.
//!
//! A generated part stands between `<!-- NAME: generated -->` and `<!-- /NAME -->`:
//! - `formats`: which formats are read and written; `crate-formats`, on the pages of the crates, with the features;
//! - `features`: the features of the library, as its manifest explains them;
//! - `example`: the first example of the library's page;
//! - `capabilities`, on the page of a format: what each version that is written can hold, and the format's options;
//! - `help`: the help of the command and of each of its sub-commands;
//! - `output`: what the commands of the code block before it print.

mod tables;

use crate::Result;
use crate::project::{self, Project};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Rewrites the generated parts, or with `--check` only says which are not fresh.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let project = Project::find()?;
    let stale = match args {
        [] => refresh(&project, true)?,
        [arg] if arg == "--check" => refresh(&project, false)?,
        _ => return Err("the only argument is --check".into()),
    };
    let verb = if args.is_empty() {
        "rewritten"
    } else {
        "not fresh"
    };
    for page in &stale {
        println!("{verb}: {}", page.display());
    }
    Ok(args.is_empty() || stale.is_empty())
}

/// An error that names the pages which are not fresh.
pub(crate) fn check(project: &Project) -> Result<Option<String>> {
    let stale = refresh(project, false)?;
    if stale.is_empty() {
        Ok(None)
    } else {
        Err(format!("run `cargo xtask docs`: {stale:?} are not fresh").into())
    }
}

/// The pages whose generated parts are not what they should be, or that do not exist; the others are written if asked.
fn refresh(project: &Project, write: bool) -> Result<Vec<PathBuf>> {
    let source = Generator::new(project)?;
    let mut stale = Vec::new();
    let mut missing = Vec::new();
    for page in source.pages() {
        let path = project.root.join(&page);
        let Ok(old) = fs::read_to_string(&path) else {
            missing.push(page.display().to_string());
            continue;
        };
        let new = rewrite(&old, |name, before| source.generate(name, before, &page))
            .map_err(|error| format!("{}: {error}", page.display()))?;
        if old != new {
            if write {
                fs::write(&path, new)?;
            }
            stale.push(page);
        }
    }
    if missing.is_empty() {
        Ok(stale)
    } else {
        Err(format!("every format has a page; not found: {}", missing.join(", ")).into())
    }
}

/// Replaces what stands between the markers by what `generate` makes of the part's name and the text before it.
fn rewrite(text: &str, generate: impl Fn(&str, &str) -> Result<String>) -> Result<String> {
    let mut new = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(": generated -->\n") {
        let (_, name) = before
            .rsplit_once("<!-- ")
            .ok_or("a marker does not begin with `<!-- `")?;
        let end = format!("<!-- /{name} -->");
        let (_, after) = after
            .split_once(&end)
            .ok_or_else(|| format!("`{end}` is missing"))?;
        new.push_str(before);
        let body = generate(name, &new)?;
        // Blank lines, because not every Markdown ends a table or begins a block at a comment.
        new.push_str(": generated -->\n\n");
        new.push_str(body.trim_end());
        new.push_str("\n\n");
        new.push_str(&end);
        rest = after;
    }
    new.push_str(rest);
    Ok(new)
}

/// Makes the generated parts, by asking the command.
struct Generator {
    tenfold: PathBuf,
    /// Where commands of the documentation run: the fixtures are there, and what they write stays there.
    folder: PathBuf,
    /// The folder of the library.
    library: PathBuf,
    /// What `tenfold formats --json` says.
    formats: Vec<Value>,
}

impl Generator {
    fn new(project: &Project) -> Result<Self> {
        let tenfold = project.debug_command()?;
        let folder = project.target.join("docs");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        std::os::unix::fs::symlink(project.root.join("fixtures"), folder.join("fixtures"))?;
        let formats = project::output(Command::new(&tenfold).args(["formats", "--json"]))?;
        Ok(Self {
            tenfold,
            folder,
            library: project.root.join("crates/tenfold"),
            formats: serde_json::from_slice(&formats)?,
        })
    }

    /// The pages with generated parts. Every format that is read has one.
    fn pages(&self) -> Vec<PathBuf> {
        let pages = [
            "README.md",
            "crates/tenfold/README.md",
            "crates/tenfold-cli/README.md",
            "docs/cli.md",
        ];
        let mut pages: Vec<_> = pages.iter().map(PathBuf::from).collect();
        let read = self.formats.iter().filter(|format| tables::is_read(format));
        pages.extend(read.map(|format| {
            let id = tables::text(format, "id");
            PathBuf::from(format!("docs/formats/{id}.md"))
        }));
        pages
    }

    fn generate(&self, name: &str, before: &str, page: &Path) -> Result<String> {
        match name {
            "formats" => Ok(tables::formats(&self.formats)),
            "crate-formats" => Ok(tables::crate_formats(&self.formats)),
            "features" => {
                let manifest = fs::read_to_string(self.library.join("Cargo.toml"))?;
                tables::features(&manifest, &self.formats)
            }
            "example" => {
                let page = fs::read_to_string(self.library.join("README.md"))?;
                let example = page
                    .split_once("```rust")
                    .and_then(|(_, rest)| rest.split_once("\n```"));
                let (example, _) = example.ok_or("the library's page has no example")?;
                Ok(format!("```rust{example}\n```\n"))
            }
            "capabilities" => {
                let id = page.file_stem().unwrap_or_default().to_string_lossy();
                let format = (self.formats.iter()).find(|format| tables::text(format, "id") == id);
                Ok(tables::capabilities(
                    format.ok_or("the page is of no format")?,
                ))
            }
            "help" => self.help(),
            "output" => self.output(last_block(before).ok_or("no code block stands before it")?),
            _ => Err(format!("nothing is generated under the name {name:?}").into()),
        }
    }

    fn help(&self) -> Result<String> {
        let main = self.run(Command::new(&self.tenfold).arg("--help"))?;
        let mut page = format!("## tenfold\n\n{}", fenced(&main));
        for name in commands(&main) {
            let help = self.run(Command::new(&self.tenfold).args([name, "--help"]))?;
            page.push_str(&format!("\n## tenfold {name}\n\n{}", fenced(&help)));
            for inner in commands(&help) {
                let help = self.run(Command::new(&self.tenfold).args([name, inner, "--help"]))?;
                page.push_str(&format!(
                    "\n### tenfold {name} {inner}\n\n{}",
                    fenced(&help)
                ));
            }
        }
        Ok(page)
    }

    /// What the lines of a shell script print, messages included.
    fn output(&self, script: &str) -> Result<String> {
        let bin = self.tenfold.parent().unwrap_or(Path::new("."));
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("exec 2>&1\n{script}")])
            .env("PATH", format!("{}:{path}", bin.display()));
        Ok(fenced(&without_times(&self.run(&mut shell)?)))
    }

    fn run(&self, command: &mut Command) -> Result<String> {
        let printed = project::output(command.current_dir(&self.folder).env("NO_COLOR", "1"))?;
        Ok(String::from_utf8(printed)?)
    }
}

fn fenced(text: &str) -> String {
    let lines: Vec<_> = text.trim_end().lines().map(str::trim_end).collect();
    format!("```text\n{}\n```\n", lines.join("\n"))
}

/// How long something took differs from run to run: `in 0.02 s` becomes `in … s`.
fn without_times(text: &str) -> String {
    let words: Vec<_> = text.split(' ').collect();
    let mut shown: Vec<&str> = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let is_time = shown.last() == Some(&"in")
            && word.parse::<f64>().is_ok()
            && words
                .get(place + 1)
                .is_some_and(|unit| unit.trim() == "s" || unit.starts_with("s\n"));
        shown.push(if is_time { "…" } else { word });
    }
    shown.join(" ")
}

/// The names under `Commands:` in the help of the command.
fn commands(help: &str) -> Vec<&str> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        // A line that is further in continues the one before it.
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect()
}

/// The content of the last shell block of a text.
fn last_block(text: &str) -> Option<&str> {
    let (_, block) = text.rsplit_once("```sh\n")?;
    Some(block.split_once("```")?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "a\n```sh\nls\n```\n<!-- x: generated -->\n\nold\n\n<!-- /x -->\nz\n";

    #[test]
    fn only_what_stands_between_the_markers_changes() {
        let new = rewrite(PAGE, |name, before| {
            assert_eq!((name, last_block(before)), ("x", Some("ls\n")));
            Ok("new\n\n".into())
        });
        let new = new.unwrap();
        assert_eq!(new, PAGE.replace("old", "new"));
        assert_eq!(rewrite(&new, |_, _| Ok("new".into())).unwrap(), new);
    }

    #[test]
    fn a_marker_without_an_end_is_refused() {
        let page = PAGE.replace("<!-- /x -->", "");
        assert!(rewrite(&page, |_, _| Ok(String::new())).is_err());
    }

    #[test]
    fn only_times_are_left_out() {
        let text = "3 tensors in 0.12 s\nin 2 files in 3 s";
        assert_eq!(without_times(text), "3 tensors in … s\nin 2 files in … s");
    }

    #[test]
    fn commands_are_found_in_the_help() {
        let help =
            "Usage: x\n\nCommands:\n  ls    List\n        more\n  help  Print\n\nOptions:\n  -h\n";
        assert_eq!(commands(help), ["ls"]);
    }
}
