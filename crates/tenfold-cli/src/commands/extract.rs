//! `tenfold extract`: some of the tensors in a new file, or each in its own.

use tenfold::Archive;
use tenfold::format::Registry;
use tenfold::ops::Shards;

use crate::args::{ExtractArgs, Filter};
use crate::commands::Names;
use crate::commands::write::{Request, target};
use crate::failure::{Exit, Failure, Result};
use crate::output::{Out, count};

pub(crate) fn run(args: &ExtractArgs, out: &mut Out<'_>) -> Result<Exit> {
    let files = &args.files;
    let request = Request {
        check: args.checking.check,
        shards: args.sharding.shard_size.map(Shards::Size),
        ..Request::new(
            "extract",
            &files.inputs,
            &files.reading,
            &files.output,
            &args.writing,
        )
    };
    request.check_output()?;
    let inputs = request.open()?;
    let all = inputs.joined()?;
    let registry = Registry::standard();
    let target = target(&request, Some(&all), &registry)?;
    let archive = select(&request, &args.filter, &args.tensors, all)?;
    let options = request.options()?;
    let conversion = request.prepare_rewrite(&archive, target, &options)?;
    request.finish(target, conversion, &inputs, &options, &|_| Ok(()), out)
}

/// The tensors that are named, and those that the patterns leave. A name that no tensor has is an error.
fn select(
    request: &Request<'_>,
    filter: &Filter,
    tensors: &[String],
    archive: Archive,
) -> Result<Archive> {
    if tensors.is_empty() {
        return request.select(filter, archive);
    }
    if let Some(missing) = tensors.iter().find(|name| archive.get(name).is_none()) {
        let input = request.title();
        let all = count(archive.tensors().len(), "tensor");
        return Err(Failure::Message(format!(
            "{}: there is no tensor {missing:?} among {all}; `tenfold ls` lists them, --include takes patterns",
            input.display()
        )));
    }
    let names = Names::new(filter)?;
    let patterns = !filter.include.is_empty() || !filter.regex.is_empty();
    Ok(archive.select(|info| {
        let named = tensors.contains(&info.name);
        named || (patterns && names.contains(&info.name))
    }))
}
