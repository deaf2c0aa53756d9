//! `tenfold split`: the tensors of a file in several.

use std::path::{Path, PathBuf};

use tenfold::format::Registry;
use tenfold::ops::Shards;

use crate::args::SplitArgs;
use crate::commands::write::{Request, is_directory, target};
use crate::failure::{Exit, Result};
use crate::output::Out;

pub(crate) fn run(args: &SplitArgs, out: &mut Out<'_>) -> Result<Exit> {
    let registry = Registry::standard();
    let shards = match (args.max_size, args.parts) {
        (Some(size), _) => Shards::Size(size),
        (_, Some(parts)) => Shards::Parts(parts.get()),
        _ => Shards::Layers,
    };
    let stem = stem(&args.inputs);
    let first = Request {
        shards: Some(shards),
        ..Request::new(
            "split",
            &args.inputs,
            &args.reading,
            &args.output,
            &args.writing,
        )
    };
    let inputs = first.open()?;
    let all = inputs.joined()?;
    let target = target(&first, Some(&all), &registry)?;
    let extension = target.spec.extensions.first().unwrap_or(&"bin");
    let output = output(&args.output, &registry, &format!("{stem}.{extension}"));
    let request = Request {
        check: args.checking.or(true),
        keeps_content: true,
        name: Some(stem),
        output: &output,
        ..first
    };
    request.check_output()?;
    let archive = request.select(&args.filter, all)?;
    let options = request.options()?;
    let conversion = request.prepare_rewrite(&archive, target, &options)?;
    request.finish(target, conversion, &inputs, &options, &|_| Ok(()), out)
}

/// Where files go. What has no extension of a format is a directory: a new one, which appears whole, or one that is
/// there, where the files get names after the input's.
fn output(given: &Path, registry: &Registry, name: &str) -> PathBuf {
    if given.is_dir() {
        return given.join(name);
    }
    let is_file = registry.by_extension(&given.to_string_lossy()).is_some();
    match is_directory(given) || is_file {
        true => given.to_owned(),
        false => given.join(""),
    }
}

/// The name that those of the files are made from: the input's without its extension and the numbers of a shard.
fn stem(inputs: &[PathBuf]) -> String {
    let name = inputs.first().and_then(|input| input.file_name());
    let name = name.unwrap_or_default().to_string_lossy().into_owned();
    let whole = name.strip_suffix(".index.json").unwrap_or(&name);
    let stem = whole.rsplit_once('.').map_or(whole, |(stem, _)| stem);
    let digits = |text: &str| text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let unnumbered = stem.rsplit_once("-of-").and_then(|(rest, count)| {
        let (stem, number) = rest.rsplit_once('-')?;
        (digits(number) && digits(count)).then_some(stem)
    });
    match unnumbered.unwrap_or(stem) {
        "" => "model".to_owned(),
        stem => stem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parts_come_from_the_name_of_the_input() {
        let stem = |name: &str| stem(&[PathBuf::from(name)]);
        assert_eq!(stem("a/model.safetensors"), "model");
        assert_eq!(stem("model.safetensors.index.json"), "model");
        assert_eq!(stem("tiny-00002-of-00009.gguf"), "tiny");
        assert_eq!(stem("v1.5-of-2.zt"), "v1.5-of-2");
        assert_eq!(stem("weights/"), "weights");
        assert_eq!(stem("/"), "model");
    }
}
