//! The archives that are read, and the files that they consist of.

use std::path::{Path, PathBuf};

use tenfold::format::{Registry, Severity, ShardName};
use tenfold::model::SourceId;
use tenfold::ops::{self, Conflicts};
use tenfold::{Archive, ErrorKind};

use super::{Request, output};
use crate::commands::{directory_of, say_passed_over, say_warnings};
use crate::failure::{Failure, Result};
use crate::hints;
use crate::output::{Clean, say, show_path};
use crate::urls::is_model_directory;

/// What was opened.
#[derive(Default)]
pub(crate) struct Inputs {
    pub(crate) archives: Vec<Archive>,
    /// What each of them was opened by.
    pub(crate) opened: Vec<PathBuf>,
    /// The files that the archives consist of.
    pub(crate) files: Vec<PathBuf>,
    /// Those of archives that consist of several.
    parts: Vec<PathBuf>,
}

impl Inputs {
    /// Opens what was asked for. None of the files that they consist of may be the output.
    pub(crate) fn open(request: &Request<'_>) -> Result<Self> {
        let mut inputs = Self::default();
        for input in request.inputs {
            // Any of the parts of a model opens all of them.
            if inputs.has_part(input) {
                continue;
            }
            if inputs
                .opened
                .iter()
                .any(|other| output::is_same(other, input))
            {
                let shown = show_path(input);
                return Err(Failure::Message(format!("{shown} is given twice")));
            }
            let archive = open_one(request, input);
            let archive = archive.map_err(|error| {
                let failure = Failure::about(input, &error);
                inputs.named(request, input).unwrap_or(failure)
            })?;
            inputs.push(input, archive);
        }
        for file in &inputs.files {
            request.refuse_input(file, request.output)?;
        }
        if inputs.has_part(request.output) {
            let message = "one of several files of a model, and only single files can be replaced";
            let shown = request.output.display();
            return Err(Failure::Message(format!(
                "{shown} is {message}; write to another name"
            )));
        }
        Ok(inputs)
    }

    /// Where the name of a tensor was given as a file: how to ask for the tensor.
    fn named(&self, request: &Request<'_>, input: &Path) -> Option<Failure> {
        let name = input.to_str().filter(|_| !input.exists())?;
        let has_it = |archive: &&Archive| archive.get(name).is_some();
        self.archives.iter().find(has_it)?;
        let file = show_path(self.opened.first()?);
        let option = match request.command {
            "extract" => "-t",
            _ => "--include",
        };
        Some(Failure::not_found(
            input,
            format!("there is no file {name}; it is a tensor of {file}: {option} {name} takes it"),
        ))
    }

    fn push(&mut self, input: &Path, archive: Archive) {
        let directory = directory_of(input);
        let names = (0u32..).map_while(|id| archive.source_name(SourceId(id)));
        let files: Vec<_> = names.map(|name| directory.join(name)).collect();
        if files.len() > 1 {
            self.parts.extend(files.iter().cloned());
        }
        self.files.extend(files);
        self.archives.push(archive);
        self.opened.push(input.to_owned());
    }

    /// What the names of the files begin with if they belong together: an index and those that it names, or files that
    /// count themselves.
    pub(crate) fn shard_stem(&self) -> Option<String> {
        let name = |file: &PathBuf| Some(file.file_name()?.to_string_lossy().into_owned());
        let names: Vec<_> = self.files.iter().filter_map(name).collect();
        let first = names.first()?;
        let registry = Registry::standard();
        if registry.entries().iter().any(|entry| entry.is_index(first)) {
            return (self.archives.len() == 1).then(|| stem_of(first));
        }
        let shards = names.iter().map(|name| ShardName::parse(name));
        let mut stems = shards
            .map(|shard| Some(shard?.stem))
            .collect::<Option<Vec<_>>>()?;
        stems.dedup();
        match stems.as_slice() {
            [only] if names.len() > 1 => Some((*only).to_owned()),
            _ => None,
        }
    }

    /// The name that those of several files are made from: that of the shards that are read, of the only file of a
    /// directory, or of what was given.
    pub(crate) fn stem(&self) -> String {
        let given = self.opened.first().map_or(Path::new(""), PathBuf::as_path);
        let file = match self.files.as_slice() {
            [only] => only.as_path(),
            _ => given,
        };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        self.shard_stem().unwrap_or_else(|| stem_of(&name))
    }

    /// Whether it is one model of a directory, or of several files.
    pub(crate) fn is_model(&self) -> bool {
        let is_directory = matches!(self.opened.as_slice(), [only] if is_model_directory(only));
        is_directory || self.shard_stem().is_some()
    }

    /// The name of the only file that is read, without its ending.
    pub(crate) fn file_stem(&self) -> Option<String> {
        match self.files.as_slice() {
            [only] => Some(stem_of(&only.file_name()?.to_string_lossy())),
            _ => None,
        }
    }

    fn has_part(&self, file: &Path) -> bool {
        self.parts.iter().any(|part| output::is_same(part, file))
    }

    /// All of them as one archive; where they disagree about metadata, the first counts.
    pub(crate) fn joined(&self) -> Result<Archive> {
        match ops::merge(&self.archives, Conflicts::FirstMetadata) {
            Ok(merged) => Ok(merged.archive),
            Err(error) if error.kind() == ErrorKind::Argument => Err(Failure::from(
                error.adding("; `tenfold merge --prefer first` or `last` chooses one"),
            )),
            Err(error) => Err(error.into()),
        }
    }
}

/// The file, or what is whole of it: then the reason why that is not everything is said.
fn open_one(request: &Request<'_>, input: &Path) -> tenfold::Result<Archive> {
    let mut options = request.session.input_options(request.opening);
    if let Some(bytes) = request.max_dense {
        options = options.limits(request.session.limits.dense_bytes(bytes));
    }
    let options = options.salvage(request.salvage);
    let archive = request.session.open_with(input, &options)?;
    if request.writing.quiet {
        return Ok(archive);
    }
    say_passed_over(input, &archive);
    if !request.salvage {
        if request.opening.no_verify {
            say_warnings(input, &archive);
        }
        return Ok(archive);
    }
    for finding in archive.findings() {
        if finding.severity > Severity::Note {
            let input = show_path(input);
            say(format_args!("{input}: {}", Clean(&hints::finding(finding))));
        }
    }
    Ok(archive)
}

/// The name that those of several files are made from: a file's without its extension and the numbers of a shard.
fn stem_of(name: &str) -> String {
    let whole = name.strip_suffix(".index.json").unwrap_or(name);
    let stem = whole.rsplit_once('.').map_or(whole, |(stem, _)| stem);
    match ShardName::parse(name).map_or(stem, |shard| shard.stem) {
        "" | "-" => "model".to_owned(),
        stem => stem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::stem_of as stem;

    #[test]
    fn names_of_parts_come_from_the_name_of_the_input() {
        assert_eq!(stem("model.safetensors"), "model");
        assert_eq!(stem("model.safetensors.index.json"), "model");
        assert_eq!(stem("tiny-00002-of-00009.gguf"), "tiny");
        assert_eq!(stem("v1.5-of-2.zt"), "v1.5-of-2");
        assert_eq!(stem("weights"), "weights");
        assert_eq!(stem(""), "model");
    }
}
