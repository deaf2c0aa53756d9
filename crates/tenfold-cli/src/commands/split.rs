//! `tenfold split`: the tensors of a file in several.

use std::path::{Path, PathBuf};

use tenfold::documents::Written;
use tenfold::format::Registry;
use tenfold::ops::Shards;

use crate::args::SplitArgs;
use crate::commands::Session;
use crate::commands::write::{Inputs, Places, Request, is_directory, is_empty, target};
use crate::failure::{Exit, Result};
use crate::output::Out;
use crate::urls::is_url;

pub(crate) fn run(args: &SplitArgs, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    let registry = Registry::standard();
    let shards = match (args.max_size, args.parts) {
        (Some(size), _) => Shards::Size(size),
        (_, Some(parts)) => Shards::Parts(parts.get()),
        _ => Shards::Layers,
    };
    let (files, given) = args.files.places("split")?;
    let places = Places {
        inputs: files,
        opening: &args.files.opening,
        output: given,
    };
    let first = Request {
        is_last: args.files.output.is_none(),
        shards: Some(shards),
        brings_along: !args.along.weights_only,
        ..Request::new("split", places, &args.writing, session)
    };
    let inputs = Inputs::open(&first)?;
    let all = inputs.joined()?;
    let target = target(&first, Some(&all), &registry)?;
    let stem = inputs.stem();
    let extension = target.spec.extensions.first().unwrap_or(&"bin");
    let output = output(given, &registry, &format!("{stem}.{extension}"));
    let request = Request {
        // Behind a URL, that is another download.
        check: args.checking.or(!is_url(&output)),
        keeps_content: true,
        name: Some(stem),
        output: &output,
        ..first
    };
    request.check_output()?;
    let archive = request.select(&args.filter, all)?;
    let options = request.options(target)?;
    let conversion = request.prepare_rewrite(&archive, target, &options)?;
    request.finish(target, conversion, &inputs, Written::default(), out)
}

/// Where files go. What has no extension of a format is a directory: a new one, which appears whole, or one that is
/// there, where the files get names after the input's.
fn output(given: &Path, registry: &Registry, name: &str) -> PathBuf {
    if given.is_dir() && !is_empty(given) {
        return given.join(name);
    }
    let is_file = registry.by_extension(&given.to_string_lossy()).is_some();
    if is_directory(given) || is_file {
        given.to_owned()
    } else {
        given.join("")
    }
}
