//! What was or would be done, for people and as JSON.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use tenfold::Companion;
use tenfold::digest::Hex;
use tenfold::documents::{LossDocument, RemarkDocument, Written};
use tenfold::format::{Entry, Finding, Loss};
use tenfold::model::CastCounts;
use tenfold::ops::{Conversion, Report};

use super::Request;
use crate::hints;
use crate::json;
use crate::output::{Clean, Out, count, first_of, say, show_path, size};

pub(super) struct Summary<'a> {
    request: &'a Request<'a>,
    target: &'a Entry,
    version: &'static str,
    read_by: &'static str,
    because: Option<String>,
    losses: Vec<Loss>,
    remarks: Vec<Finding>,
    /// Values may change, as was asked for.
    is_cast: bool,
    tensors: usize,
    /// The index and what it names, or numbered files; empty for one file.
    files: Vec<PathBuf>,
    /// The first of the files is an index of the others.
    has_index: bool,
    /// The names of what comes along.
    along: Vec<String>,
    started: Instant,
}

impl<'a> Summary<'a> {
    pub(super) fn new(
        request: &'a Request<'a>,
        target: &'a Entry,
        files: Vec<PathBuf>,
        conversion: &Conversion,
    ) -> Self {
        let name = files.first().and_then(|file| file.file_name());
        let name = name.unwrap_or_default().to_string_lossy();
        Self {
            request,
            target,
            version: conversion.profile.version,
            read_by: conversion.profile.read_by,
            because: conversion.because.clone(),
            losses: [conversion.losses.as_slice(), &conversion.casts].concat(),
            remarks: conversion.remarks.clone(),
            is_cast: !conversion.casts.is_empty(),
            tensors: conversion.tensors(),
            has_index: target.is_index(&name),
            files,
            along: Vec::new(),
            started: request.started,
        }
    }

    /// The same with what comes along.
    pub(super) fn bringing(mut self, along: &[Companion]) -> Self {
        self.along = along.iter().map(|file| file.name.clone()).collect();
        self
    }

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
                let checked = if self.request.is_checked() {
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
                    say(format_args!("content {} is unchanged", Hex(&content)));
                }
            }
        }
        if !self.along.is_empty() {
            let names = first_of(self.along.iter().cloned()).join(", ");
            let verb = if report.is_some() {
                "copied"
            } else {
                "would copy"
            };
            say(format_args!("{verb} too: {}", Clean(&names)));
        }
        if !self.read_by.is_empty() {
            say(format_args!("{what} is read by {}", Clean(self.read_by)));
        }
    }

    pub(super) fn write_json(
        &self,
        report: Option<&Report>,
        extra: Written<'_>,
        out: &mut Out<'_>,
    ) -> io::Result<()> {
        let shown = |path: &PathBuf| path.to_string_lossy().into_owned();
        let request = self.request;
        let (input, inputs) = match request.inputs {
            [only] => (Some(shown(only)), Vec::new()),
            several => (None, several.iter().map(shown).collect()),
        };
        let document = Written {
            schema: format!("tenfold.{}/1", request.command),
            input,
            inputs,
            output: request.output.to_string_lossy().into_owned(),
            files: self.files.iter().map(shown).collect(),
            format: self.target.spec.id,
            version: Some(self.version).filter(|version| *version != "-"),
            remarks: (self.remarks.iter())
                .map(|remark| RemarkDocument::new(remark, hints::words))
                .collect(),
            because: self.because.as_deref(),
            read_by: self.read_by,
            losses: (self.losses.iter())
                .map(|loss| LossDocument::new(loss, hints::words))
                .collect(),
            dry_run: request.writing.dry_run,
            checked: request.is_checked() && report.is_some(),
            content: report.and_then(|report| report.content),
            tensors: self.tensors,
            bytes: report.map(bytes),
            casts: report.and_then(|report| self.casts(report)),
            along: self.along.clone(),
            seconds: (self.started.elapsed().as_secs_f64() * 1000.0).round() / 1000.0,
            ..extra
        };
        json::write(out, &document)?;
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

/// Bytes of all files that were written.
fn bytes(report: &Report) -> u64 {
    report.files.iter().map(|(_, len)| len).sum()
}
