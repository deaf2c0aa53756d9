//! `tenfold merge`: the tensors of several files in one.

use std::io;
use std::path::PathBuf;

use tenfold::ErrorKind;
use tenfold::format::Registry;
use tenfold::ops::{self, Conflict, Prefer, Shards, prepare};

use crate::args::{MergeArgs, PreferArg};
use crate::commands::write::{LISTED, Request, target};
use crate::failure::{Exit, Failure, Result};
use crate::json::Json;
use crate::output::{Out, say, show_path};

pub(crate) fn run(args: &MergeArgs, out: &mut Out<'_>) -> Result<Exit> {
    let files = &args.files;
    let request = Request {
        check: args.checking.or(true),
        keeps_content: true,
        shards: args.sharding.shard_size.map(Shards::Size),
        ..Request::new(
            "merge",
            &files.inputs,
            &files.opening,
            &files.output,
            &args.writing,
        )
    };
    request.check_output()?;
    let inputs = request.open()?;
    let prefer = args.prefer.map(|prefer| match prefer {
        PreferArg::First => Prefer::First,
        PreferArg::Last => Prefer::Last,
    });
    // Tensors that are not wanted cannot be there twice.
    let wanted: Vec<_> = (inputs.archives.iter())
        .map(|archive| request.narrow(&args.filter, archive))
        .collect::<Result<_>>()?;
    let merged = ops::merge(&wanted, prefer).map_err(|error| match error.kind() {
        ErrorKind::Argument => Failure::Message(format!(
            "{}; pass --prefer first or --prefer last to choose",
            error.message()
        )),
        _ => request.about(&error),
    })?;
    if !args.writing.quiet {
        say_conflicts(&inputs.opened, &merged.conflicts);
    }
    let registry = Registry::standard();
    let target = target(&request, Some(&merged.archive), &registry)?;
    let all = (inputs.archives.iter()).flat_map(|archive| &archive.manifest().tensors);
    let names = all.map(|info| info.name.as_str());
    let count = names.clone().count();
    if count > 0 && merged.archive.tensors().len() == 0 {
        return Err(request.nothing_left(&args.filter, names, count));
    }
    let options = request.options()?;
    // One version for files of several: any that holds everything.
    let versions = |pair: &[tenfold::Archive]| matches!(pair, [a, b] if a.version() == b.version());
    let conversion = match inputs.archives.windows(2).all(versions) {
        true => request.prepare_rewrite(&merged.archive, target, &options)?,
        false => {
            prepare(&merged.archive, target, &options).map_err(|error| request.about(&error))?
        }
    };
    let conflicts = |json: &mut Json<'_>| write_conflicts(&inputs.opened, &merged.conflicts, json);
    request.finish(target, conversion, &inputs, &options, &conflicts, out)
}

fn say_conflicts(inputs: &[PathBuf], conflicts: &[Conflict]) {
    let path = |place: usize| {
        inputs
            .get(place)
            .map(|path| show_path(path))
            .unwrap_or_default()
    };
    for conflict in conflicts.iter().take(LISTED) {
        let what = if conflict.is_tensor {
            "tensor"
        } else {
            "metadata"
        };
        let (kept, left_out) = (path(conflict.kept), path(conflict.left_out));
        let name = &conflict.name;
        say(format_args!(
            "{what} {name:?} is that of {kept}, not that of {left_out}"
        ));
    }
    if conflicts.len() > LISTED {
        say(format_args!("and {} more", conflicts.len() - LISTED));
    }
}

fn write_conflicts(
    inputs: &[PathBuf],
    conflicts: &[Conflict],
    json: &mut Json<'_>,
) -> io::Result<()> {
    let path = |place: usize| inputs.get(place).map(|path| path.to_string_lossy());
    json.key("conflicts")?.array(|json| {
        conflicts.iter().try_for_each(|conflict| {
            json.line()?.object(|json| {
                let what = if conflict.is_tensor {
                    "tensor"
                } else {
                    "metadata"
                };
                json.text("what", Some(what))?;
                json.text("name", Some(&conflict.name))?;
                json.text("kept", path(conflict.kept).as_deref())?;
                json.text("left_out", path(conflict.left_out).as_deref())
            })
        })
    })
}
