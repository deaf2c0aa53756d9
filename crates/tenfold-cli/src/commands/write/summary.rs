//! What was or would be done, for people and as JSON.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use tenfold::format::{Entry, Loss};
use tenfold::ops::{CastCounts, Conversion, Report};

use super::Request;
use crate::json::{Json, hex};
use crate::output::{Clean, Out, count, say, show_path, size};

/// What a command says of its own work in the JSON.
pub(crate) type Extra<'e> = dyn Fn(&mut Json<'_>) -> io::Result<()> + 'e;

pub(super) struct Summary<'a> {
    request: &'a Request<'a>,
    target: &'a Entry,
    version: &'static str,
    read_by: &'static str,
    because: Option<String>,
    losses: Vec<Loss>,
    /// Values may change, as was asked for.
    is_cast: bool,
    tensors: usize,
    /// The index and what it names, or numbered files; empty for one file.
    files: Vec<PathBuf>,
    /// The first of the files is an index of the others.
    has_index: bool,
    started: Instant,
    extra: &'a Extra<'a>,
}

impl<'a> Request<'a> {
    pub(super) fn summary(
        &'a self,
        target: &'a Entry,
        files: Vec<PathBuf>,
        conversion: &Conversion,
        extra: &'a Extra<'a>,
    ) -> Summary<'a> {
        let name = files.first().and_then(|file| file.file_name());
        let name = name.unwrap_or_default().to_string_lossy();
        Summary {
            request: self,
            target,
            version: conversion.profile.version,
            read_by: conversion.profile.read_by,
            because: conversion.because.clone(),
            losses: [conversion.losses.as_slice(), &conversion.casts].concat(),
            is_cast: !conversion.casts.is_empty(),
            tensors: conversion.tensors(),
            has_index: target.is_index(&name),
            files,
            started: self.started,
            extra,
        }
    }
}

impl Summary<'_> {
    /// What is written, for people.
    fn output(&self) -> String {
        match self.files.as_slice() {
            [index, shards @ ..] if self.has_index => {
                format!("{} and {}", show_path(index), count(shards.len(), "shard"))
            }
            [first, .., last] => {
                let n = count(self.files.len(), "file");
                format!("{} to {} ({n})", show_path(first), show_path(last))
            }
            _ => show_path(self.request.output),
        }
    }

    /// What casts did, where they may have changed something.
    fn casts<'r>(&self, report: &'r Report) -> Option<&'r CastCounts> {
        Some(&report.casts).filter(|casts| self.is_cast && casts.numbers > 0)
    }

    pub(super) fn say(&self, report: Option<&Report>) {
        let took = self.started.elapsed();
        let output = self.output();
        let what = self.target.spec.with_version(self.version);
        let tensors = count(self.tensors, "tensor");
        match report {
            None => say(format_args!(
                "{output} would be {what}, {tensors}; nothing was written"
            )),
            Some(report) => {
                report.notes.iter().for_each(say);
                if let Some(casts) = self.casts(report) {
                    say(counts(casts));
                }
                let checked = if self.request.check {
                    "; the digests of all tensors agree"
                } else {
                    ""
                };
                say(format_args!(
                    "{output}: {what}, {tensors}, {} in {:.2} s{checked}",
                    size(bytes(report)),
                    took.as_secs_f64()
                ));
                if let Some(content) = report.content.filter(|_| self.request.keeps_content) {
                    say(format_args!("content {} is unchanged", hex(&content)));
                }
            }
        }
        if !self.read_by.is_empty() {
            say(format_args!("{what} is read by {}", Clean(self.read_by)));
        }
    }

    pub(super) fn write_json(&self, report: Option<&Report>, out: &mut Out<'_>) -> io::Result<()> {
        let took = self.started.elapsed();
        let Request {
            command,
            inputs,
            output,
            writing,
            check,
            ..
        } = self.request;
        Json::new(out).object(|json| {
            json.text("schema", Some(&format!("tenfold.{command}/1")))?;
            match inputs {
                [only] => json.text("input", Some(&only.to_string_lossy()))?,
                several => {
                    json.texts("inputs", several.iter().map(|path| path.to_string_lossy()))?
                }
            }
            json.text("output", Some(&output.to_string_lossy()))?;
            if !self.files.is_empty() {
                let files = self.files.iter();
                json.texts("files", files.map(|path| path.to_string_lossy()))?;
            }
            json.text("format", Some(self.target.spec.id))?;
            json.text("version", Some(self.version))?;
            json.text("because", self.because.as_deref())?;
            json.text("read_by", Some(self.read_by))?;
            json.losses("losses", &self.losses)?;
            (self.extra)(json)?;
            json.key("dry_run")?.plain(writing.dry_run)?;
            json.key("checked")?.plain(*check && report.is_some())?;
            let content = report.and_then(|report| report.content);
            json.text("content", content.map(|sum| hex(&sum)).as_deref())?;
            json.number("tensors", Some(self.tensors as u64))?;
            json.number("bytes", report.map(bytes))?;
            if let Some(casts) = report.and_then(|report| self.casts(report)) {
                json.key("casts")?
                    .object(|json| write_counts(casts, json))?;
            }
            json.key("seconds")?
                .plain(format_args!("{:.3}", took.as_secs_f64()))
        })?;
        writeln!(out)
    }
}

/// What casts did, for people.
fn counts(casts: &CastCounts) -> String {
    let number = |n: u64, what: &str| match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    format!(
        "{} cast: {}, {}, {}",
        number(casts.numbers, "number"),
        number(casts.overflows, "overflow"),
        number(casts.underflows, "underflow"),
        number(casts.nans, "NaN")
    )
}

fn write_counts(casts: &CastCounts, json: &mut Json<'_>) -> io::Result<()> {
    json.number("numbers", Some(casts.numbers))?;
    json.number("overflows", Some(casts.overflows))?;
    json.number("underflows", Some(casts.underflows))?;
    json.number("nans", Some(casts.nans))
}

/// Bytes of all files that were written.
fn bytes(report: &Report) -> u64 {
    report.files.iter().map(|(_, len)| len).sum()
}
