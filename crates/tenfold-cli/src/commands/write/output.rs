//! Where files go: the format that their name says, and that nothing is lost by writing them.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use tenfold::format::{Entry, Registry};
use tenfold::io::AtomicOutput;
use tenfold::model::SourceId;
use tenfold::ops::Conversion;
use tenfold::{Archive, OpenOptions};

use super::Request;
use crate::commands::is_stream;
use crate::failure::{Failure, Result};
use crate::urls::{is_model_directory, is_url};

/// The format to write: what was asked for, else that of the output's name, else that of the input.
pub(crate) fn target<'r>(
    request: &Request<'_>,
    input: Option<&Archive>,
    registry: &'r Registry,
) -> Result<&'r Entry> {
    let input = input.and_then(Archive::format);
    let name = request.output.to_string_lossy();
    let replaced = (request.may_replace || request.in_place)
        && request
            .inputs
            .iter()
            .any(|input| is_same(input, request.output));
    let entry = match (&request.writing.to, input) {
        (Some(id), _) => registry.get(id)?,
        // Whatever it is called.
        (None, Some(spec)) if replaced => registry.get(spec.id)?,
        (None, _) => match (registry.by_extension(&name), input) {
            (Some(entry), _) => entry,
            (None, Some(spec)) => registry.get(spec.id)?,
            (None, None) => return Err(no_format(&name, registry)),
        },
    };
    if !is_written(entry) {
        return Err(Failure::Message(format!(
            "{} files can be read, but not written",
            entry.spec.name
        )));
    }
    Ok(entry)
}

fn no_format(name: &str, registry: &Registry) -> Failure {
    let written = registry.entries().iter().filter(|entry| is_written(entry));
    let ids: Vec<_> = written.map(|entry| entry.spec.id).collect();
    Failure::Message(format!(
        "{name}: its extension names no format; pick one with --to: {}",
        ids.join(", ")
    ))
}

fn is_written(entry: &Entry) -> bool {
    entry.codec.is_some() && !entry.spec.writes.is_empty()
}

/// A path that ends like a directory gets a file for every tensor.
pub(crate) fn is_directory(path: &Path) -> bool {
    path.to_string_lossy().ends_with(std::path::is_separator)
}

/// Where the result goes: a model of a directory goes into a directory, unless the name has the ending of a format or a
/// file has it.
pub(crate) fn as_directory(inputs: &[PathBuf], output: &Path) -> PathBuf {
    let is_model = matches!(inputs, [only] if is_model_directory(only));
    let name = output.to_string_lossy();
    let has_ending = Registry::standard().by_extension(&name).is_some();
    let is_taken = output.exists() && !(output.is_dir() && is_empty(output));
    if !is_model || has_ending || is_taken || is_directory(output) || name == "-" {
        output.to_owned()
    } else {
        output.join("")
    }
}

/// Whether a directory holds nothing.
pub(crate) fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none())
}

impl Request<'_> {
    /// Says so before any work is done; the output itself looks again before it takes the name.
    pub(crate) fn check_output(&self) -> Result<()> {
        let output = self.output;
        if is_url(output) {
            return self.check_url();
        }
        if self.in_place {
            if is_stream(output) {
                return Err(Failure::Message(
                    "standard input cannot be edited in place".into(),
                ));
            }
            return Ok(());
        }
        if is_stream(output) {
            return self.check_stream();
        }
        let shown = output.display();
        for input in self.inputs {
            self.refuse_input(input, output)?;
        }
        let parent = output
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let problem = match (output.symlink_metadata(), parent) {
            (Ok(_), _) if is_directory(output) && is_empty(output) => return Ok(()),
            (Ok(_), _) if is_directory(output) => {
                format!(
                    "{shown} already exists, and directories with something in them are never replaced"
                )
            }
            (Ok(_), _) if output.is_dir() => format!(
                "{shown} is a directory; name a file in it, or a directory that does not exist yet with a / at the end"
            ),
            (Ok(_), _) if output.metadata().is_ok_and(|found| !found.is_file()) => {
                format!("{shown} is a device or a pipe, not a file, and is not replaced")
            }
            // The files that are written have other names.
            (Ok(_), _) if self.shards.is_some() => return Ok(()),
            (Ok(_), _) if !self.writing.force && self.is_last && is_archive(output) => format!(
                "{shown} already exists: if it is an input, name the output with -o OUT; if it is the output, \
                pass --force to replace it"
            ),
            (Ok(_), _) if !self.writing.force => {
                format!("{shown} already exists; pass --force to replace it")
            }
            (_, Some(parent)) if !parent.is_dir() => {
                format!("there is no directory {}", parent.display())
            }
            _ => return Ok(()),
        };
        Err(Failure::Message(problem))
    }

    /// Says what does not go to a server; what is there already is for the server to say.
    fn check_url(&self) -> Result<()> {
        let output = self.output;
        let shown = output.display();
        if self.in_place || self.inputs.iter().any(|input| input == output) {
            return Err(Failure::Message(format!(
                "{shown} is at a URL, where files are written whole or not at all; name another output with -o"
            )));
        }
        self.session.urls.refuse_output(output)?;
        Ok(())
    }

    /// Says what does not go into a stream, and that a screen is none.
    fn check_stream(&self) -> Result<()> {
        let problem = if self.shards.is_some() {
            "standard output takes one file; name a directory for several"
        } else if self.writing.json {
            "standard output takes the file or the JSON, not both; name a file with -o"
        } else if std::io::stdout().is_terminal() {
            "standard output is a terminal; send it to a file or a pipe"
        } else {
            return Ok(());
        };
        Err(Failure::Message(problem.into()))
    }

    /// The files that will be written, where there are several; the one that is opened comes first. None of them may
    /// exist or be an input, and replacing one must leave nothing behind that belongs to it.
    pub(super) fn check_files(
        &self,
        target: &Entry,
        conversion: &Conversion,
        inputs: &[PathBuf],
    ) -> Result<Vec<PathBuf>> {
        if is_stream(self.output) {
            return Ok(Vec::new());
        }
        let is_new = is_directory(self.output) && self.shards.is_none();
        let replaces = self.writing.force && !is_directory(self.output);
        if self.shards.is_none() && !replaces && !is_new {
            return Ok(Vec::new());
        }
        if is_new {
            // There is nothing yet that could be in the way, and only the names may be at fault.
            conversion.file_names(&self.name_in_directory(target))?;
            return Ok(Vec::new());
        }
        let paths = self.paths(target, conversion)?;
        if is_url(self.output) {
            return Ok(paths);
        }
        for path in &paths {
            for input in inputs {
                self.refuse_input(input, path)?;
            }
            if !self.writing.force && path.symlink_metadata().is_ok() {
                let shown = path.display();
                let problem = format!("{shown} already exists; pass --force to replace it");
                return Err(Failure::Message(problem));
            }
        }
        refuse_leftovers(&paths)?;
        match self.shards {
            Some(_) => Ok(paths),
            None => Ok(Vec::new()),
        }
    }

    /// Where the files will be.
    fn paths(&self, target: &Entry, conversion: &Conversion) -> Result<Vec<PathBuf>> {
        if is_directory(self.output) {
            let names = conversion.file_names(&self.name_in_directory(target))?;
            return Ok(names.iter().map(|name| self.output.join(name)).collect());
        }
        if is_url(self.output) {
            let main = self.output.file_name().unwrap_or_default();
            let names = conversion.file_names(&main.to_string_lossy())?;
            let beside = names.iter().map(|name| self.output.with_file_name(name));
            return Ok(beside.collect());
        }
        // Asked of what will write them: a link leads to another name, and maybe to another directory.
        let output = AtomicOutput::file(self.output)?;
        let names = conversion.file_names(output.main_name())?;
        Ok(names.iter().map(|name| output.path_of(name)).collect())
    }

    /// The name that those of several files in a directory are made from.
    pub(super) fn name_in_directory(&self, target: &Entry) -> String {
        let stem = self.name.as_deref().unwrap_or("model");
        format!(
            "{stem}.{}",
            target.spec.extensions.first().unwrap_or(&"bin")
        )
    }

    /// Refuses to write over an input, unless that is what was asked for.
    pub(super) fn refuse_input(&self, input: &Path, output: &Path) -> Result<()> {
        if !is_same(input, output) || self.in_place || (self.may_replace && self.writing.force) {
            return Ok(());
        }
        let (output, input) = (output.display(), input.display());
        Err(Failure::Message(if self.may_replace {
            format!("{output} is the input; pass --force to replace it")
        } else {
            format!("{output} is the same file as the input {input}; write to another name")
        }))
    }
}

/// Whether it can be opened as a file of tensors.
fn is_archive(path: &Path) -> bool {
    path.is_file() && OpenOptions::new().open(path).is_ok()
}

/// Comparing opens both, and opening a pipe waits for somebody to write. What does not exist or cannot be opened is nothing
/// that could be lost; opening it says more.
pub(super) fn is_same(input: &Path, output: &Path) -> bool {
    let are_files = [input, output].iter().all(|path| path.is_file());
    are_files && same_file::is_same_file(input, output).unwrap_or(false)
}

/// Refuses to replace a file that names others, such as an index its shards, where those would stay without it.
fn refuse_leftovers(paths: &[PathBuf]) -> Result<()> {
    const SHOWN: usize = 3;
    let Some(main) = paths.first().filter(|main| main.is_file()) else {
        return Ok(());
    };
    // What cannot be opened names nothing.
    let Ok(old) = OpenOptions::new().open(main) else {
        return Ok(());
    };
    let directory = main.parent().unwrap_or(Path::new(""));
    let names = (0u32..).map_while(|id| old.source_name(SourceId(id)));
    let left: Vec<_> = names
        .map(|name| directory.join(name))
        .filter(|file| !paths.iter().any(|path| path == file || is_same(path, file)))
        .map(|file| file.display().to_string())
        .collect();
    if left.is_empty() {
        return Ok(());
    }
    let more = match left.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown: Vec<_> = left.into_iter().take(SHOWN).collect();
    Err(Failure::Message(format!(
        "replacing {} would leave behind files that belong to it: {}{more}; remove them, or write to another name",
        main.display(),
        shown.join(", ")
    )))
}
