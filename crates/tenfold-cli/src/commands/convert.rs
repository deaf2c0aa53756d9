//! `tenfold convert`: the same tensors in another file.

use globset::GlobSet;
use tenfold::Archive;
use tenfold::format::Registry;
use tenfold::model::{BlockSpec, DType, TensorInfo};
use tenfold::ops::{self, Shards, Sparse, prepare};

use crate::args::ConvertArgs;
use crate::commands::globs;
use crate::commands::write::{Request, target};
use crate::failure::{Exit, Result};
use crate::output::Out;

pub(crate) fn run(args: &ConvertArgs, out: &mut Out<'_>) -> Result<Exit> {
    let (inputs, output) = args.places()?;
    let request = Request {
        max_dense: args.max_dense,
        salvage: args.salvage,
        check: args.checking.or(false),
        shards: args.shard_size.map(Shards::Size),
        ..Request::new("convert", inputs, &args.reading, output, &args.writing)
    };
    let registry = Registry::standard();
    let target = target(&request, None, &registry)?;
    request.check_output()?;
    let inputs = request.open()?;
    let archive = request.select(&args.filter, inputs.joined()?)?;
    let archive = match args.dequantize {
        true => ops::dequantize(&archive).map_err(|error| request.about(&error))?,
        false => archive,
    };
    let archive = cast(args, &request, &archive)?;
    let archive = quantize(args, &request, &archive)?;
    let mut options = request.options()?;
    options.sparse = match (args.sparse, args.keep_sparse) {
        (true, _) => Sparse::All,
        (_, true) => Sparse::Keep,
        _ => Sparse::AsIs,
    };
    let conversion = prepare(&archive, target, &options).map_err(|error| request.about(&error))?;
    request.finish(target, conversion, &inputs, &options, &|_| Ok(()), out)
}

/// The last of the `--cast` rules that matches a tensor says which type it gets.
fn cast(args: &ConvertArgs, request: &Request<'_>, archive: &Archive) -> Result<Archive> {
    let mut rules: Vec<(DType, Option<GlobSet>)> = Vec::new();
    for (dtype, pattern) in args.cast.iter().rev() {
        request.check_pattern("--cast", pattern.as_ref(), archive)?;
        rules.push((*dtype, globs(pattern.as_slice())?));
    }
    let to = |info: &TensorInfo| {
        let matches = |set: &Option<GlobSet>| match set {
            Some(set) => set.is_match(&info.name),
            None => true,
        };
        let rule = rules.iter().find(|(_, set)| matches(set));
        rule.map(|(dtype, _)| *dtype)
    };
    ops::cast(archive, to).map_err(|error| request.about(&error))
}

/// The last of the `--quantize` rules that matches a tensor says which blocks it gets. A rule without a pattern is about
/// the tensors that it can be about: matrices of floats whose rows are whole blocks.
fn quantize(args: &ConvertArgs, request: &Request<'_>, archive: &Archive) -> Result<Archive> {
    let mut rules: Vec<(&'static BlockSpec, Option<GlobSet>)> = Vec::new();
    for (spec, pattern) in args.quantize.iter().rev() {
        request.check_pattern("--quantize", pattern.as_ref(), archive)?;
        rules.push((spec, globs(pattern.as_slice())?));
    }
    if rules.is_empty() {
        return Ok(archive.clone());
    }
    let fits = |info: &TensorInfo, spec: &BlockSpec| {
        let floats = [DType::F16, DType::BF16, DType::F32, DType::F64];
        let whole = |row: &u64| row.is_multiple_of(spec.elements.into());
        floats.contains(&info.dtype) && info.shape.len() > 1 && info.shape.last().is_some_and(whole)
    };
    let to = |info: &TensorInfo| {
        let rule = rules.iter().find(|(spec, set)| match set {
            Some(set) => set.is_match(&info.name),
            None => fits(info, spec),
        });
        rule.map(|(spec, _)| *spec)
    };
    ops::quantize(archive, to).map_err(|error| request.about(&error))
}
