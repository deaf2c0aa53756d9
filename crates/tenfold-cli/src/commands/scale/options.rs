//! The options of the command as those of a plan.

use std::path::{Path, PathBuf};

use tenfold::format::Registry;
use tenfold::ops::scale::Options;

use crate::args::{
    Allow, AsNumbers, Checksum, ConvertArgs, DiffArgs, DigestArgs, Filter, Opening, Reading,
    StatsArgs, VerifyArgs,
};
use crate::commands::Session;
use crate::commands::write::{Inputs, Places, Request, as_directory, is_directory, timestamp};
use crate::failure::{Failure, Result};
use crate::urls::is_model_directory;

fn reading(reading: &Reading, limits: &[(String, u64)]) -> Options {
    Options {
        from: reading.from.clone(),
        assume: reading.assume.map(|dtype| dtype.to_string()),
        opaque: reading.opaque,
        reading: reading.options.clone(),
        limits: limits.to_vec(),
        ..Options::default()
    }
}

fn opening(opening: &Opening, limits: &[(String, u64)]) -> Options {
    Options {
        no_verify: opening.no_verify,
        ..reading(&opening.reading, limits)
    }
}

pub(super) fn digest(args: &DigestArgs, limits: &[(String, u64)]) -> Result<Options> {
    refuse_numbers(&args.numbers)?;
    Ok(opening(&args.opening, limits))
}

fn filtered(filter: &Filter, options: Options) -> Options {
    Options {
        include: filter.include.clone(),
        exclude: filter.exclude.clone(),
        regex: filter.regex.clone(),
        ..options
    }
}

pub(super) fn verify(args: &VerifyArgs, limits: &[(String, u64)]) -> Result<Options> {
    if args.against.is_some() {
        let message = "--against needs the digests of all tensors: plan a digest, and compare what `tenfold join` prints with the list";
        return Err(Failure::Message(message.into()));
    }
    Ok(Options {
        content: args.content,
        strict: args.strict,
        ..reading(&args.reading, limits)
    })
}

pub(super) fn stats(args: &StatsArgs, limits: &[(String, u64)]) -> Result<Options> {
    refuse_numbers(&args.numbers)?;
    if args.hist.is_some() {
        let message =
            "--hist needs the extremes of all tensors before it counts, so one process makes it";
        return Err(Failure::Message(message.into()));
    }
    Ok(filtered(&args.filter, opening(&args.opening, limits)))
}

pub(super) fn diff(args: &DiffArgs, limits: &[(String, u64)]) -> Result<Options> {
    refuse_numbers(&args.numbers)?;
    let options = Options {
        rtol: args.rtol,
        atol: args.atol,
        ulp: args.ulp,
        ignore_dtype: args.ignore_dtype,
        ignore_metadata: args.ignore_metadata,
        names_only: args.names_only,
        ..opening(&args.opening, limits)
    };
    Ok(filtered(&args.filter, options))
}

/// Quantized tensors are converted to numbers in a plan, and not looked at as such.
fn refuse_numbers(numbers: &AsNumbers) -> Result<()> {
    if numbers.dequantize {
        let message = "--dequantize is for one process here: plan a conversion with it, and then one that looks at the numbers";
        return Err(Failure::Message(message.into()));
    }
    Ok(())
}

/// Where the result goes: a directory, where a model of one is written into another.
pub(super) fn output(inputs: &[PathBuf], output: &Path) -> PathBuf {
    as_directory(inputs, output)
}

pub(super) fn convert(
    args: &ConvertArgs,
    inputs: &[PathBuf],
    output: &Path,
    limits: &[(String, u64)],
    session: &Session<'_>,
) -> Result<Options> {
    let (writing, opening) = (&args.writing, &args.opening);
    if writing.dry_run {
        let message = "a plan writes nothing; `-o -` prints it instead of keeping it";
        return Err(Failure::Message(message.into()));
    }
    if !args.types.quantize.is_empty() {
        let message = "--quantize looks at all tensors of a model and is for one process: quantize on one machine, or before the plan";
        return Err(Failure::Message(message.into()));
    }
    let registry = Registry::standard();
    let name = output.to_string_lossy();
    let mut options = Options {
        to: writing.to.clone(),
        version: writing.version.clone(),
        zstd: writing.zstd.clone(),
        raw: writing.raw,
        checksum: match writing.checksum {
            Checksum::Keep => None,
            Checksum::None => Some("none".into()),
            Checksum::Crc32c => Some("crc32c".into()),
            Checksum::Sha256 => Some("sha256".into()),
            Checksum::Xxh3 => Some("xxh3".into()),
        },
        allow: match writing.allow {
            None => None,
            Some(Allow::Changed) => Some("changed".into()),
            Some(Allow::Dropped) => Some("dropped".into()),
        },
        cast: (args.types.cast.iter())
            .map(|(dtype, pattern)| (dtype.to_string(), pattern.clone()))
            .collect(),
        dequantize: args.types.dequantize,
        salvage: args.salvage,
        keep_sparse: args.keep_sparse,
        sparse: args.sparse,
        max_dense: args.max_dense,
        shard_size: args.shard_size,
        timestamp: timestamp()?,
        ..self::opening(opening, limits)
    };
    options.reading = opening.reading.reading_options().collect();
    options = filtered(&args.filter, options);
    let is_tree = is_directory(output) && writing.to.is_some() && inputs.len() == 1;
    if is_directory(output) && !(is_tree && is_tree_of_models(inputs)) {
        options = into_directory(args, inputs, output, options, session)?;
    }
    let target = match &options.to {
        Some(id) => Some(registry.get(id)?),
        None => registry.by_extension(&name),
    };
    if let Some(target) = target {
        options.writing = opening.reading.writing_options(target.spec).collect();
    }
    Ok(options)
}

/// Whether a directory holds other directories: then it may be a tree of models.
fn is_tree_of_models(inputs: &[PathBuf]) -> bool {
    let [only] = inputs else { return false };
    is_model_directory(only) && !only.join("config.json").exists()
}

/// A model of a directory keeps its files, as `convert` does it.
fn into_directory(
    args: &ConvertArgs,
    inputs: &[PathBuf],
    output: &Path,
    options: Options,
    session: &Session<'_>,
) -> Result<Options> {
    let request = Request {
        salvage: args.salvage,
        max_dense: args.max_dense,
        shards: args.shard_size.map(tenfold::ops::Shards::Size),
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
    let opened = Inputs::open(&request)?;
    let all = opened.joined()?;
    let registry = Registry::standard();
    let target = crate::commands::write::target(&request, Some(&all), &registry)?;
    let request = request.keeping_files(&opened, target);
    Ok(Options {
        to: Some(target.spec.id.to_owned()),
        keep_files: request.keeps_files(),
        file_per_tensor: request.shards.is_none() && !request.whole,
        stem: request.name.clone(),
        along: !args.along.weights_only && inputs.iter().all(|input| input.is_dir()),
        ..options
    })
}
