//! The archives that are read, and the files that they consist of.

use std::path::{Path, PathBuf};

use tenfold::format::{Registry, Severity};
use tenfold::model::SourceId;
use tenfold::{Archive, ErrorKind};

use super::{Request, names, output};
use crate::commands::{directory_of, limits, open_with, options, say_warnings};
use crate::failure::{Failure, Result};
use crate::output::{Clean, say, show_path};

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
            return (self.archives.len() == 1).then(|| names::stem(first));
        }
        let numbered = names.iter().map(|name| names::numbered(name));
        let mut stems = numbered.collect::<Option<Vec<_>>>()?;
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
        self.shard_stem().unwrap_or_else(|| names::stem(&name))
    }

    fn has_part(&self, file: &Path) -> bool {
        self.parts.iter().any(|part| output::is_same(part, file))
    }

    /// All of them as one archive; where they disagree about metadata, the first counts.
    pub(crate) fn joined(&self) -> Result<Archive> {
        tenfold::ops::join(&self.archives, true).map_err(|error| match error.kind() {
            ErrorKind::Argument => Failure::from(
                error.adding("; `tenfold merge --prefer first` or `last` takes one of both"),
            ),
            _ => error.into(),
        })
    }
}

impl Request<'_> {
    /// Opens the inputs. None of the files that they consist of may be the output.
    pub(crate) fn open(&self) -> Result<Inputs> {
        let mut inputs = Inputs::default();
        for input in self.inputs {
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
            let archive = self.open_one(input);
            let archive = archive.map_err(|error| Failure::about(input, &error))?;
            inputs.push(input, archive);
        }
        for file in &inputs.files {
            self.refuse_input(file, self.output)?;
        }
        if inputs.has_part(self.output) {
            let message = "one of several files of a model, and only a single file is replaced";
            let shown = self.output.display();
            return Err(Failure::Message(format!(
                "{shown} is {message}; write to another name"
            )));
        }
        Ok(inputs)
    }

    /// The file, or what is whole of it: then the reason why that is not everything is said.
    fn open_one(&self, input: &Path) -> tenfold::Result<Archive> {
        let mut limits = limits();
        if let Some(bytes) = self.max_dense {
            limits = limits.with_dense_bytes(bytes);
        }
        let options = options(self.opening).limits(limits);
        let archive = open_with(input, &options.salvage(self.salvage))?;
        if self.writing.quiet {
            return Ok(archive);
        }
        if !self.salvage {
            if self.opening.no_verify {
                say_warnings(input, &archive);
            }
            return Ok(archive);
        }
        for finding in archive.findings() {
            if finding.severity > Severity::Note {
                let input = show_path(input);
                say(format_args!("{input}: {}", Clean(&finding.message)));
            }
        }
        Ok(archive)
    }
}
