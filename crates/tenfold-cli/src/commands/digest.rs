//! `tenfold digest`: what a file holds, as hashes that do not depend on the format.

use std::io::{self, Write};
use std::path::Path;

use tenfold::digest::Hex;
use tenfold::documents::DigestDocument;
use tenfold::ops::{self, DigestOptions, Digests, VerifyOptions};
use tenfold::{Error, Work};

use crate::args::DigestArgs;
use crate::commands::{Session, for_each_file, json_for_each_file};
use crate::failure::{Exit, Failure, Result, explain};
use crate::json;
use crate::losses;
use crate::output::{BOLD, Out, Verbatim, say, show_path};

pub(crate) fn run(args: &DigestArgs, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    let digest = |path: &Path| {
        let archive = session
            .open(path, &args.opening)
            .map_err(|error| Failure::about(path, &error))?;
        let archive = Session::selected(archive, &args.numbers, |_| true)
            .map_err(|error| Failure::about(path, &error))?;
        let work = Work::new().threads(args.threads.count());
        let compared = if args.opening.no_verify {
            Ok(())
        } else {
            ops::compare_checksums(&archive, &VerifyOptions::new().work(work.clone()))
        };
        let digests = ops::digest(&archive, &DigestOptions::new().work(work))
            .map_err(|error| Failure::about(path, &error))?;
        let exit = exit(path, &digests, compared.err().as_ref());
        Ok::<_, Failure>((archive.format().map(|spec| spec.id), digests, exit))
    };
    if args.inputs.json {
        return json_for_each_file(&args.inputs, out, |path, out| {
            let (format, digests, exit) = digest(path)?;
            let file = path.to_string_lossy();
            json::write(out, &DigestDocument::new(&file, format, &digests))?;
            Ok(exit)
        });
    }
    for_each_file(&args.inputs, out, |path, out| {
        let (_, digests, exit) = digest(path)?;
        write_text(path, &digests, out)?;
        Ok(exit)
    })
}

/// Says what is wrong, and what that means.
pub(crate) fn exit(path: &Path, digests: &Digests, mismatch: Option<&Error>) -> Exit {
    if let Some(error) = mismatch {
        let what = explain(path, error);
        say(format_args!(
            "{what}; the digests are those of the data as it is now"
        ));
    }
    let sums = digests.tensors.iter();
    let unreadable = sums.filter_map(|(_, sum)| sum.as_ref().err());
    losses::errors(path, unreadable).iter().for_each(say);
    if mismatch.is_none() && digests.tensors.iter().all(|(_, sum)| sum.is_ok()) {
        Exit::Done
    } else {
        Exit::Findings
    }
}

pub(crate) fn write_text(path: &Path, digests: &Digests, out: &mut Out<'_>) -> io::Result<()> {
    for (name, result) in &digests.tensors {
        match result {
            Ok(sha256) => writeln!(out, "{}  {}", Hex(sha256), Verbatim(name))?,
            Err(_) => writeln!(out, "{:64}  {}", "unreadable", Verbatim(name))?,
        }
    }
    let content = match &digests.content {
        Some(sha256) => Hex(sha256).to_string(),
        None => "unknown: not every tensor can be read".into(),
    };
    let path = show_path(path);
    writeln!(out, "{} {}  {path}", out.paint(BOLD, "content"), content)
}
