//! `tenfold digest`: what a file holds, as hashes that do not depend on the format.

use std::io::{self, Write};
use std::path::Path;

use tenfold::format::ExecuteOptions;
use tenfold::ops::{self, Digests};

use crate::args::DigestArgs;
use crate::commands::{for_each_file, json_for_each_file, open};
use crate::failure::{Exit, Failure, Result, explain};
use crate::json::{Json, hex};
use crate::output::{BOLD, Out, Verbatim, say, show_path};

pub(crate) fn run(args: &DigestArgs, out: &mut Out<'_>) -> Result<Exit> {
    let digest = |path: &Path| {
        let archive = open(path, &args.opening).map_err(|error| Failure::about(path, &error))?;
        let mut options = ExecuteOptions::default();
        options.threads = args.threads.count();
        let compared = match args.opening.no_verify {
            true => Ok(()),
            false => ops::compare_checksums(&archive, &options),
        };
        if let Err(error) = &compared {
            let what = explain(path, error);
            say(format_args!("{what}; the digests are of what is there now"));
        }
        let digests = ops::digest(&archive, args.threads.count());
        for (_, result) in &digests.tensors {
            if let Err(error) = result {
                say(explain(path, error));
            }
        }
        let exit = match compared.is_ok() && digests.tensors.iter().all(|(_, sum)| sum.is_ok()) {
            true => Exit::Done,
            false => Exit::Findings,
        };
        Ok::<_, Failure>((archive.format().map(|spec| spec.id), digests, exit))
    };
    if args.inputs.json {
        return json_for_each_file(&args.inputs, out, |path, json| {
            let (format, digests, exit) = digest(path)?;
            write_json(path, format, &digests, json)?;
            Ok(exit)
        });
    }
    for_each_file(&args.inputs, out, |path, out| {
        let (_, digests, exit) = digest(path)?;
        write_text(path, &digests, out)?;
        Ok(exit)
    })
}

fn write_text(path: &Path, digests: &Digests, out: &mut Out<'_>) -> io::Result<()> {
    for (name, result) in &digests.tensors {
        match result {
            Ok(sha256) => writeln!(out, "{}  {}", hex(sha256), Verbatim(name))?,
            Err(_) => writeln!(out, "{:64}  {}", "unreadable", Verbatim(name))?,
        }
    }
    let content = match &digests.content {
        Some(sha256) => hex(sha256),
        None => "unknown: not every tensor can be read".into(),
    };
    let path = show_path(path);
    writeln!(out, "{} {}  {path}", out.paint(BOLD, "content"), content)
}

fn write_json(
    path: &Path,
    format: Option<&str>,
    digests: &Digests,
    json: &mut Json<'_>,
) -> io::Result<()> {
    json.object(|json| {
        json.text("schema", Some("tenfold.digest/1"))?;
        json.text("file", Some(&path.to_string_lossy()))?;
        json.text("format", format)?;
        json.text(
            "content",
            digests.content.as_ref().map(|sha| hex(sha)).as_deref(),
        )?;
        json.number("content_version", Some(ops::CONTENT_VERSION.into()))?;
        json.key("tensors")?.array(|json| {
            digests.tensors.iter().try_for_each(|(name, result)| {
                json.line()?.object(|json| {
                    json.text("name", Some(name))?;
                    json.text(
                        "sha256",
                        result.as_ref().ok().map(|sha| hex(sha)).as_deref(),
                    )
                })
            })
        })
    })
}
