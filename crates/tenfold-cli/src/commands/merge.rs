//! `tenfold merge`: the tensors of several files in one.

use std::path::PathBuf;

use tenfold::ErrorKind;
use tenfold::documents::{ConflictDocument, Written};
use tenfold::format::Registry;
use tenfold::model::Quoted;
use tenfold::ops::{self, Conflict, Conflicts, Conversion};

use crate::args::{MergeArgs, PreferArg};
use crate::commands::Session;
use crate::commands::write::{Inputs, Places, Request, target};
use crate::failure::{Exit, Failure, Result};
use crate::output::{Out, say_first, show_path};
use crate::urls::is_url;

pub(crate) fn run(args: &MergeArgs, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    let (inputs, output) = args.files.several("merge")?;
    let places = Places {
        inputs,
        opening: &args.files.opening,
        output,
    };
    let request = Request {
        // Behind a URL, that is another download.
        check: args.checking.or(!is_url(output)),
        keeps_content: true,
        shards: args.sharding.shards(),
        ..Request::new("merge", places, &args.writing, session)
    };
    request.check_output()?;
    let inputs = Inputs::open(&request)?;
    let conflicts = match args.prefer {
        None => Conflicts::Refuse,
        Some(PreferArg::First) => Conflicts::First,
        Some(PreferArg::Last) => Conflicts::Last,
    };
    // Tensors that are not wanted cannot be there twice.
    let wanted: Vec<_> = (inputs.archives.iter())
        .map(|archive| request.narrow(&args.filter, archive))
        .collect::<Result<_>>()?;
    let merged = ops::merge(&wanted, conflicts).map_err(|error| match error.kind() {
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
    let options = request.options(target)?;
    // One version for files of several: any that holds everything.
    let versions = |pair: &[tenfold::Archive]| matches!(pair, [a, b] if a.version() == b.version());
    let conversion = if inputs.archives.windows(2).all(versions) {
        request.prepare_rewrite(&merged.archive, target, &options)?
    } else {
        Conversion::prepare(&merged.archive, target, &options)
            .map_err(|error| request.about(&error))?
    };
    let conflicts = merged.conflicts.iter();
    let extra = Written {
        conflicts: Some(conflicts.map(|it| document(&inputs.opened, it)).collect()),
        ..Written::default()
    };
    request.finish(target, conversion, &inputs, extra, out)
}

fn say_conflicts(inputs: &[PathBuf], conflicts: &[Conflict]) {
    let path = |place: usize| {
        inputs
            .get(place)
            .map(|path| show_path(path))
            .unwrap_or_default()
    };
    say_first(conflicts.iter().map(|conflict| {
        let what = what(conflict);
        let (kept, left_out) = (path(conflict.kept), path(conflict.left_out));
        let name = Quoted(&conflict.name);
        format!("{what} {name} is taken from {kept}, not from {left_out}")
    }));
}

/// What was done about a conflict, with the paths of both files.
fn document<'a>(inputs: &[PathBuf], conflict: &'a Conflict) -> ConflictDocument<'a> {
    let path = |place: usize| Some(inputs.get(place)?.to_string_lossy().into_owned());
    ConflictDocument {
        what: what(conflict),
        name: &conflict.name,
        kept: path(conflict.kept),
        left_out: path(conflict.left_out),
    }
}

fn what(conflict: &Conflict) -> &'static str {
    if conflict.is_tensor {
        "tensor"
    } else {
        "metadata"
    }
}
