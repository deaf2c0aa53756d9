//! `tenfold scan`: what would the pickles in a file import?

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use tenfold::documents::ScanDocument;
use tenfold::io::FileSource;
use tenfold::ops::{self, Scan, ScanOptions, ScannedImport, Verdict};

use crate::args::ScanArgs;
use crate::commands::{Session, for_each_file, json_for_each_file};
use crate::failure::{Exit, Failure, Result};
use crate::hints;
use crate::json;
use crate::output::{BOLD, Clean, GREEN, Out, RED, YELLOW, count, show_path};

pub(crate) fn run(args: &ScanArgs, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    let scan = |path: &Path| scan(path, session);
    if args.inputs.json && !args.quiet {
        return json_for_each_file(&args.inputs, out, |path, out| {
            let scan = scan(path)?;
            let file = path.to_string_lossy();
            json::write(out, &ScanDocument::new(&file, &scan, hints::words))?;
            Ok(exit(&scan))
        });
    }
    for_each_file(&args.inputs, out, |path, out| {
        let scan = scan(path)?;
        if !args.quiet {
            write_text(&scan, path, args.all, out)?;
        }
        Ok(exit(&scan))
    })
}

fn scan(path: &Path, session: &Session<'_>) -> Result<Scan> {
    let about = |error| Failure::about(path, &error);
    let source = match session.urls.source(path).map_err(about)? {
        Some(source) => source,
        None => Arc::new(FileSource::open(path).map_err(about)?),
    };
    let name = path.file_name().map(|name| name.to_string_lossy());
    let options = ScanOptions::new().limits(session.limits);
    ops::scan(&source, name.as_deref(), &options).map_err(about)
}

fn exit(scan: &Scan) -> Exit {
    if scan.verdict() == Verdict::Harmless {
        Exit::Done
    } else {
        Exit::Findings
    }
}

fn write_text(scan: &Scan, path: &Path, all: bool, out: &mut Out<'_>) -> io::Result<()> {
    let place = |member: &str| match member {
        "" => show_path(path),
        member => format!("{}: {}", show_path(path), Clean(member)),
    };
    for pickle in &scan.pickles {
        for import in &pickle.imports {
            if import.verdict > Verdict::Harmless || all {
                write_import(import, &place(&pickle.member), pickle.at, out)?;
            }
        }
        if let Some(fault) = &pickle.fault {
            let (place, why) = (place(&pickle.member), hints::message(fault));
            let what = out.paint(YELLOW, "not followed to its end");
            writeln!(out, "{place}: {what}: {}", Clean(&why))?;
        }
    }
    for (member, why) in &scan.unread {
        let what = out.paint(YELLOW, "not looked into");
        writeln!(
            out,
            "{}: {what}: {}",
            place(member),
            Clean(&hints::message(why))
        )?;
    }
    write_closing(scan, path, out)
}

/// A class or function on a line: where, what it is, and what it could do.
fn write_import(import: &ScannedImport, place: &str, at: u64, out: &mut Out<'_>) -> io::Result<()> {
    let style = match import.verdict {
        Verdict::Harmless => GREEN,
        Verdict::Dangerous => RED,
        _ => YELLOW,
    };
    let verdict = out.paint(style, import.verdict);
    let global = format!("{}.{}", import.module, import.name);
    write!(out, "{place}: {verdict}: {}", Clean(&global))?;
    if let Some(could) = import.could {
        write!(out, ", which {could}")?;
    }
    write!(out, " ({}, byte {}", import.opcode, import.at)?;
    if at > 0 {
        write!(out, " of the pickle at byte {at}")?;
    }
    if import.times > 1 {
        write!(out, ", {} times", import.times)?;
    }
    writeln!(out, ")")
}

fn write_closing(scan: &Scan, path: &Path, out: &mut Out<'_>) -> io::Result<()> {
    let path = out.paint(BOLD, show_path(path));
    if scan.pickles.is_empty() && scan.unread.is_empty() {
        return writeln!(
            out,
            "{path}: {}, no pickle in it",
            out.paint(GREEN, "clean")
        );
    }
    let verdict = match scan.verdict() {
        Verdict::Harmless => out.paint(GREEN, "clean"),
        Verdict::Dangerous => out.paint(RED, "dangerous"),
        _ => out.paint(YELLOW, "not known to be harmless"),
    };
    let imports = || scan.pickles.iter().flat_map(|pickle| &pickle.imports);
    let of = |verdict| imports().filter(|import| import.verdict == verdict).count();
    write!(
        out,
        "{path}: {verdict}; {}",
        count(scan.pickles.len(), "pickle")
    )?;
    writeln!(
        out,
        ", {} dangerous, {} unknown, {} harmless",
        of(Verdict::Dangerous),
        of(Verdict::Unknown),
        of(Verdict::Harmless)
    )
}
