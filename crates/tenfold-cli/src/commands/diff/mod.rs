//! `tenfold diff`: what is different between two files.

mod group;
mod text;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use tenfold::documents::DiffDocument;
use tenfold::model::TensorInfo;
use tenfold::ops::{self, Change, ChangeKind, Diff, DiffOptions, Tolerance, Which};
use tenfold::{Archive, Control, ErrorKind, Work};

use crate::args::DiffArgs;
use crate::commands::{Names, Session};
use crate::failure::{Exit, Failure, Result};
use crate::hints;
use crate::json;
use crate::output::{Out, say};
use crate::progress::Progress;

pub(crate) fn run(args: &DiffArgs, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    let names = Names::new(&args.filter)?;
    let open = |path: &Path| {
        let archive = if args.quiet {
            session.open_silently(path, &args.opening)
        } else {
            session.open(path, &args.opening)
        };
        archive
            .and_then(|archive| {
                let wanted = |info: &TensorInfo| names.contains(&info.name);
                Session::selected(archive, &args.numbers, wanted)
            })
            .map_err(|error| Failure::about(path, &error))
    };
    let (a, b) = (open(&args.a)?, open(&args.b)?);
    if !names.is_all() && a.tensors().len() + b.tensors().len() == 0 {
        let message = "the filters leave no tensor to compare in either file";
        return Err(Failure::Message(message.into()));
    }
    let diff = compare(&a, &b, args, session)?;
    let shown = Shown {
        a: &args.a,
        b: &args.b,
        names_only: args.names_only,
        full: args.full,
        quiet: args.quiet,
        json: args.json,
    };
    tell(&diff, &shown, out)
}

/// What is said of differences: between which files, and how much.
pub(crate) struct Shown<'s> {
    pub(crate) a: &'s Path,
    pub(crate) b: &'s Path,
    pub(crate) names_only: bool,
    pub(crate) full: bool,
    pub(crate) quiet: bool,
    pub(crate) json: bool,
}

/// Prints what is different.
pub(crate) fn tell(diff: &Diff, shown: &Shown<'_>, out: &mut Out<'_>) -> Result<Exit> {
    for change in &diff.changes {
        if let ChangeKind::Unreadable { of, error } = &change.kind {
            let file = match of {
                Which::First => shown.a,
                Which::Second => shown.b,
            };
            say(format_args!("{}: {}", file.display(), hints::line(error)));
        }
    }
    if shown.json && !shown.quiet {
        let (a, b) = (shown.a.to_string_lossy(), shown.b.to_string_lossy());
        json::write(out, &DiffDocument::new(&a, &b, diff, hints::words))?;
        writeln!(out)?;
    } else if !shown.quiet {
        text::write_text(shown, diff, out)?;
    }
    Ok(exit(diff))
}

fn compare(a: &Archive, b: &Archive, args: &DiffArgs, session: &Session<'_>) -> Result<Diff> {
    let tolerance = match (args.rtol, args.atol, args.ulp) {
        (None, None, None) => None,
        (rtol, atol, ulp) => Some(Tolerance::new(
            rtol.unwrap_or(0.0),
            atol.unwrap_or(0.0),
            ulp.unwrap_or(0),
        )),
    };
    let control = Arc::new(Control::new());
    let work = Work::new().threads(args.threads.count());
    let options = DiffOptions::new()
        .tolerance(tolerance)
        .ignore_dtype(args.ignore_dtype)
        .ignore_metadata(args.ignore_metadata)
        .names_only(args.names_only)
        .work(work.control(control.clone()));
    let bar = (!args.no_progress && !args.quiet).then(|| Progress::watch(control, &session.urls));
    let diff = ops::diff(a, b, &options);
    drop(bar);
    diff.map_err(|error| match error.kind() {
        ErrorKind::Canceled => Failure::Canceled,
        _ => Failure::about(&args.a, &error),
    })
}

fn exit(diff: &Diff) -> Exit {
    let unreadable = |change: &Change| matches!(change.kind, ChangeKind::Unreadable { .. });
    if diff.changes.iter().any(unreadable) {
        Exit::Trouble
    } else if diff.is_equal() {
        Exit::Done
    } else {
        Exit::Findings
    }
}
