//! `tenfold convert`: the same tensors in another file.

use tenfold::format::Registry;
use tenfold::ops::{Shards, Sparse, prepare};

use crate::args::ConvertArgs;
use crate::commands::write::{Request, target};
use crate::failure::{Exit, Result};
use crate::json::Json;
use crate::output::Out;

pub(crate) fn run(args: &ConvertArgs, out: &mut Out<'_>) -> Result<Exit> {
    let (inputs, output) = args.places()?;
    let request = Request {
        max_dense: args.max_dense,
        salvage: args.salvage,
        check: args.checking.or(false),
        shards: args.shard_size.map(Shards::Size),
        ..Request::new("convert", inputs, &args.opening, output, &args.writing)
    };
    let registry = Registry::standard();
    let target = target(&request, None, &registry)?;
    request.check_output()?;
    let inputs = request.open()?;
    let archive = request.select(&args.filter, inputs.joined()?)?;
    let (archive, left_out) = request.salvaged(archive)?;
    let archive = request.retype(&args.types, archive)?;
    let mut options = request.options()?;
    options.sparse = match (args.sparse, args.keep_sparse) {
        (true, _) => Sparse::All,
        (_, true) => Sparse::Keep,
        _ => Sparse::AsIs,
    };
    let conversion = prepare(&archive, target, &options).map_err(|error| request.about(&error))?;
    let extra = |json: &mut Json<'_>| match args.salvage {
        true => json.losses("left_out", &left_out),
        false => Ok(()),
    };
    request.finish(target, conversion, &inputs, &options, &extra, out)
}
