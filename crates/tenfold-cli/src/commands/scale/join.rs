//! `tenfold join`: what the items of a plan came to, as one process would print it.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tenfold::documents::{DigestDocument, StatsDocument};
use tenfold::ops::Diff;
use tenfold::ops::scale::{
    self, Check, DigestReport, FileReport, JoinOptions, Plan, Report, StatsReport, Status,
    VerifyReport,
};

use super::{read, site};
use crate::args::JoinArgs;
use crate::commands::verify::{Checked, Opened, missing_files};
use crate::commands::{Session, diff, digest, json_reports, stats, text_reports};
use crate::failure::{Exit, Failure, Result};
use crate::hints;
use crate::json;
use crate::output::{Out, count, say, size};

pub(crate) fn join(args: &JoinArgs, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    let plan = read(&args.plan, session)?;
    let site = site(session, args.threads.count())?;
    if args.status {
        return status(&plan, args, scale::status(&plan, &site)?, out);
    }
    if args.abandon {
        scale::abandon(&plan, &site)?;
        if !args.quiet {
            say("the plan was given up, and what its items left was removed");
        }
        return Ok(Exit::Done);
    }
    let check = if args.check {
        Check::Read
    } else {
        Check::Structure
    };
    let options = JoinOptions::new()
        .check(check)
        .force(args.force)
        .tidy(args.tidy);
    let report = scale::join(&plan, &options, &site);
    match report.map_err(|error| Failure::about(&args.plan, &error))? {
        Report::Unfinished(found) => status(&plan, args, found, out),
        report => tell(&plan, report, args, out),
    }
}

#[derive(Serialize)]
struct StatusDocument {
    schema: &'static str,
    items: usize,
    missing: Vec<usize>,
    joined: bool,
}

/// Says what is not done: with `--status` alone, so that it can be given to a scheduler.
fn status(plan: &Plan, args: &JoinArgs, status: Status, out: &mut Out<'_>) -> Result<Exit> {
    let exit = if status.missing.is_empty() {
        Exit::Done
    } else {
        Exit::Findings
    };
    if args.json {
        let document = StatusDocument {
            schema: "tenfold.status/1",
            items: plan.items.len(),
            joined: status.is_joined,
            missing: status.missing,
        };
        json::write(out, &document)?;
        writeln!(out)?;
        return Ok(exit);
    }
    let (missing, all) = (status.missing.len(), plan.items.len());
    match (exit, args.status) {
        (Exit::Findings, false) => writeln!(out, "not done: {}", status.missing_in_words())?,
        (Exit::Findings, true) => {
            writeln!(out, "{}", status.missing_in_words())?;
            if !args.quiet {
                say(format_args!(
                    "not done: {missing} of {}",
                    count(all, "item")
                ));
            }
        }
        _ if args.quiet => {}
        _ if status.is_joined => say("all items are done, and the plan was joined"),
        _ => say(format_args!("all of {} are done", count(all, "item"))),
    }
    Ok(exit)
}

#[derive(Serialize)]
struct JoinedDocument<'a> {
    schema: &'static str,
    output: &'a str,
    items: usize,
    bytes: u64,
    failed: Vec<FailedInput>,
}

#[derive(Serialize)]
struct FailedInput {
    file: String,
    error: String,
}

fn tell(plan: &Plan, report: Report, args: &JoinArgs, out: &mut Out<'_>) -> Result<Exit> {
    match report {
        Report::Converted { bytes, bad } => {
            let output = plan.output.as_ref().map_or("", |output| output.name());
            for (name, error) in &bad {
                say(format_args!("{name}: {}", hints::line(error)));
            }
            if args.json {
                let failed = bad.iter().map(|(name, error)| FailedInput {
                    file: name.clone(),
                    error: hints::line(error),
                });
                let document = JoinedDocument {
                    schema: "tenfold.join/1",
                    output,
                    items: plan.items.len(),
                    bytes,
                    failed: failed.collect(),
                };
                json::write(out, &document)?;
                writeln!(out)?;
            }
            if !args.quiet {
                let (items, bytes) = (count(plan.items.len(), "item"), size(bytes));
                say(format_args!("{output}: {bytes}, from {items}"));
            }
            Ok(if bad.is_empty() {
                Exit::Done
            } else {
                Exit::Findings
            })
        }
        Report::Digested(reports) => digests(&reports, args.json, out),
        Report::Verified(reports) => verified(plan, reports, args.json, out),
        Report::Summarized(reports) => figures(&reports, args.json, out),
        Report::Compared(found) => compared(plan, &found, args, out),
        _ => Err(Failure::Message(format!(
            "what {} came to is not known here",
            plan.verb.name()
        ))),
    }
}

fn digests(reports: &[FileReport<DigestReport>], is_json: bool, out: &mut Out<'_>) -> Result<Exit> {
    if is_json {
        return json_reports(reports, out, |path, found, out| {
            let exit = digest::exit(path, &found.digests, found.mismatch.as_ref());
            let file = path.to_string_lossy();
            json::write(
                out,
                &DigestDocument::new(&file, found.format, &found.digests),
            )?;
            Ok(exit)
        });
    }
    text_reports(reports, out, |path, found, out| {
        let exit = digest::exit(path, &found.digests, found.mismatch.as_ref());
        digest::write_text(path, &found.digests, out)?;
        Ok(exit)
    })
}

fn figures(reports: &[FileReport<StatsReport>], is_json: bool, out: &mut Out<'_>) -> Result<Exit> {
    let tell = |path: &Path, found: &StatsReport| {
        stats::say_others(path, &found.others);
        stats::say_unreadable(path, &found.stats);
    };
    if is_json {
        return json_reports(reports, out, |path, found, out| {
            tell(path, found);
            let file = path.to_string_lossy();
            let document = StatsDocument::new(&file, &found.archive, &found.stats, hints::words);
            json::write(out, &document)?;
            Ok(stats::exit(&found.stats))
        });
    }
    let mut first = true;
    text_reports(reports, out, |path, found, out| {
        tell(path, found);
        if !std::mem::replace(&mut first, false) {
            writeln!(out)?;
        }
        stats::write_text(path, &found.archive, &found.stats, None, out)?;
        Ok(stats::exit(&found.stats))
    })
}

fn verified(
    plan: &Plan,
    reports: Vec<FileReport<VerifyReport>>,
    is_json: bool,
    out: &mut Out<'_>,
) -> Result<Exit> {
    let strict = plan.options.strict;
    let paths: Vec<PathBuf> = reports
        .iter()
        .map(|report| report.name.clone().into())
        .collect();
    let missing = missing_files(&paths);
    // One that could not be opened is a finding like any other.
    let checked = reports.into_iter().map(|report| {
        let path = PathBuf::from(&report.name);
        let found = match report.found {
            Ok(found) => {
                let opened = Opened {
                    format_name: found.format_name,
                    version: found.version,
                    tensors: found.tensors,
                    bytes: found.bytes,
                    sources: found.sources,
                };
                let format = (found.format, opened);
                Ok(Checked::of(
                    &path,
                    format,
                    found.verified,
                    found.numbers,
                    &missing,
                ))
            }
            Err(error) => Checked::failed(&path, &error).map_err(|_| error),
        };
        FileReport::new(report.name, found)
    });
    let checked: Vec<_> = checked.collect();
    if is_json {
        return json_reports(&checked, out, |path, found, out| {
            found.write_json(path, strict, out)?;
            Ok(found.exit(strict))
        });
    }
    text_reports(&checked, out, |path, found, out| {
        found.write_text(path, strict, out)?;
        Ok(found.exit(strict))
    })
}

fn compared(plan: &Plan, found: &Diff, args: &JoinArgs, out: &mut Out<'_>) -> Result<Exit> {
    let name = |place: usize| {
        let input = plan.inputs.get(place);
        PathBuf::from(input.map_or("", |input| input.name()))
    };
    let (a, b) = (name(0), name(1));
    let shown = diff::Shown {
        a: &a,
        b: &b,
        names_only: plan.options.names_only,
        full: false,
        quiet: false,
        json: args.json,
    };
    diff::tell(found, &shown, out)
}
