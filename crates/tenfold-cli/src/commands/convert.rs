//! `tenfold convert`: the same tensors in another file.

use tenfold::documents::{LossDocument, Written};
use tenfold::format::Registry;
use tenfold::ops::{Conversion, Shards, Sparse};

use crate::args::ConvertArgs;
use crate::commands::Session;
use crate::commands::write::{Inputs, Places, Request, target};
use crate::failure::{Exit, Result};
use crate::hints;
use crate::output::Out;

pub(crate) fn run(args: &ConvertArgs, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    let (inputs, output) = args.places()?;
    let request = Request {
        max_dense: args.max_dense,
        salvage: args.salvage,
        check: args.checking.or(false),
        shards: args.shard_size.map(Shards::Size),
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
    let target = target(&request, None, &registry)?;
    request.check_output()?;
    let inputs = Inputs::open(&request)?;
    let archive = request.select(&args.filter, inputs.joined()?)?;
    let (archive, left_out) = request.salvaged(archive)?;
    let archive = request.retype(&args.types, archive)?;
    let options = request
        .options(target)?
        .sparse(match (args.sparse, args.keep_sparse) {
            (true, _) => Sparse::All,
            (_, true) => Sparse::Keep,
            _ => Sparse::AsIs,
        });
    let conversion =
        Conversion::prepare(&archive, target, &options).map_err(|error| request.about(&error))?;
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
    request.finish(target, conversion, &inputs, extra, out)
}
