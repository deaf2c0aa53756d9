//! `tenfold convert`: the same tensors in another file.

use std::path::Path;

use tenfold::documents::{LossDocument, Written};
use tenfold::format::{Registry, ShardName};
use tenfold::ops::{Conversion, Shards, Sparse};

use crate::args::ConvertArgs;
use crate::commands::Session;
use crate::commands::write::{Inputs, Places, Request, as_directory, is_directory, target};
use crate::failure::{Exit, Result};
use crate::hints;
use crate::output::Out;
use crate::urls::is_model_directory;

pub(crate) fn run(args: &ConvertArgs, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    let (inputs, output) = args.places()?;
    let output = &as_directory(inputs, output);
    let request = Request {
        is_last: args.output.is_none(),
        max_dense: args.max_dense,
        salvage: args.salvage,
        check: args.checking.or(false),
        shards: args.shard_size.map(Shards::Size),
        brings_along: !args.along.weights_only,
        ..Request::new(
            "convert",
            Places {
                inputs,
                opening: &args.opening,
                output,
            },
            &args.writing,
            session,
        )
    };
    let registry = Registry::standard();
    // What cannot be written is said before anything is read. A model in a directory stays what it is.
    let keeps_format =
        is_directory(output) && inputs.iter().any(|input| is_model(input, &registry));
    if !keeps_format {
        target(&request, None, &registry)?;
    }
    request.check_output()?;
    let inputs = Inputs::open(&request)?;
    let all = inputs.joined()?;
    let target = target(&request, Some(&all).filter(|_| keeps_format), &registry)?;
    let request = request.keeping_files(&inputs, target);
    let source = all.format().map(|spec| spec.id);
    let (all, groups) = request.grouped(&args.types, all)?;
    let archive = request.select(&args.filter, all)?;
    let (archive, left_out) = request.salvaged(archive)?;
    let retyped = request.retype(&args.types, archive, groups)?;
    let archive = &retyped.archive;
    let options = request
        .options(target)?
        .sparse(match (args.sparse, args.keep_sparse) {
            (true, _) => Sparse::All,
            (_, true) => Sparse::Keep,
            _ => Sparse::AsIs,
        });
    let mut conversion =
        Conversion::prepare(archive, target, &options).map_err(|error| request.about(&error))?;
    if !args.types.dequantize && source != Some(target.spec.id) {
        request.remark_parts(archive, &mut conversion);
    }
    let left_out = || {
        left_out
            .iter()
            .map(|loss| LossDocument::new(loss, hints::words))
            .collect()
    };
    let extra = Written {
        left_out: args.salvage.then(left_out),
        ..Written::default()
    };
    request.finish_retyped(target, conversion, &inputs, extra, Some(&retyped), out)
}

/// Whether it is a model of several files: a directory, an index, or one of files that count themselves.
fn is_model(input: &Path, registry: &Registry) -> bool {
    let name = input.file_name().unwrap_or_default().to_string_lossy();
    let mut entries = registry.entries().iter();
    is_model_directory(input)
        || ShardName::parse(&name).is_some()
        || entries.any(|entry| entry.is_index(&name))
}
