//! What every command takes that reads files.

use std::path::PathBuf;

use clap::Args;
use tenfold::format::{Registry, Spec};
use tenfold::model::DType;

use super::parse::{dtype, dtypes, format, formats, key_value};
use super::suggest::suggest;

/// What every reading command takes.
#[derive(Args, Debug)]
pub(crate) struct Inputs {
    /// Files or model directories to read
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print JSON: an object, or an array for several files
    #[arg(long)]
    pub(crate) json: bool,
}

/// How files are read.
#[derive(Args, Debug)]
pub(crate) struct Reading {
    /// Read as this format instead of detecting it
    #[arg(long, value_name = "FORMAT", value_parser = suggest(format, formats), hide_possible_values = true)]
    pub(crate) from: Option<String>,
    /// Read elements without a type (NumPy's V1, V2) as this one
    #[arg(long, value_name = "DTYPE", value_parser = suggest(dtype, dtypes), hide_possible_values = true)]
    pub(crate) assume: Option<DType>,
    /// Read a plain dump (--from raw) as an array of this shape; one side may be -1
    #[arg(long, value_name = "N,N,...", allow_hyphen_values = true)]
    pub(crate) shape: Option<String>,
    /// The first byte of the array in a plain dump
    #[arg(long, value_name = "N")]
    pub(crate) offset: Option<String>,
    /// The order of the elements of a plain dump: C or F
    #[arg(long, value_name = "ORDER")]
    pub(crate) order: Option<String>,
    /// The order of the bytes of a number in a plain dump: little or big
    #[arg(long, value_name = "ENDIAN")]
    pub(crate) endian: Option<String>,
    /// Read objects of unknown classes in a pickle as records of what they hold; nothing is run
    #[arg(long)]
    pub(crate) opaque: bool,
    /// An option of the format that is read or written (`tenfold formats NAME` lists them); repeatable
    #[arg(short = 'O', value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) options: Vec<(String, String)>,
}

impl Reading {
    /// The options that are about reading: those that some format has for it.
    pub(crate) fn reading_options(&self) -> impl Iterator<Item = (String, String)> {
        let registry = Registry::standard();
        let options = self.options.iter().cloned();
        let options = options.filter(move |(key, _)| is_reading(&registry, key));
        // Words of their own for what is said of every dump.
        let said = [
            ("shape", &self.shape),
            ("offset", &self.offset),
            ("order", &self.order),
            ("endian", &self.endian),
        ];
        let said = said.into_iter();
        let said = said.filter_map(|(key, value)| Some((key.to_owned(), value.clone()?)));
        options.chain(said)
    }

    /// The options that are about writing: those that the target has for it, and those that nothing has for reading.
    pub(crate) fn writing_options(&self, target: &Spec) -> impl Iterator<Item = (String, String)> {
        let registry = Registry::standard();
        let options = self.options.iter().cloned();
        options.filter(move |(key, _)| {
            let is_own = target.options.iter().any(|option| option.key == key);
            is_own || !is_reading(&registry, key)
        })
    }
}

fn is_reading(registry: &Registry, key: &str) -> bool {
    let codecs = registry.entries().iter().filter_map(|entry| entry.codec);
    let mut options = codecs.flat_map(|codec| codec.reading_options());
    options.any(|option| option.key == key)
}

/// How files are opened by every command but `verify`, which is there to compare checksums.
#[derive(Args, Debug)]
pub(crate) struct Opening {
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Do not verify checksums; a header that does not match gets a warning
    #[arg(long)]
    pub(crate) no_verify: bool,
}

/// What quantized tensors are looked at as.
#[derive(Args, Debug)]
pub(crate) struct AsNumbers {
    /// Read quantized tensors as the numbers they stand for
    #[arg(long)]
    pub(crate) dequantize: bool,
}

/// Which tensors.
#[derive(Args, Debug)]
pub(crate) struct Filter {
    /// Only tensors whose names match; * also matches dots; repeatable
    #[arg(long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,
    /// Leave out tensors whose names match; repeatable
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Like --include, with a regular expression found anywhere in the name; repeatable
    #[arg(long, value_name = "REGEX")]
    pub(crate) regex: Vec<String>,
}

/// How much is done at once.
#[derive(Args, Debug)]
pub(crate) struct Threads {
    /// Number of threads [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
}

impl Threads {
    /// 0 where none was given, which means as many as processors.
    pub(crate) fn count(&self) -> usize {
        self.threads.map_or(0, usize::from)
    }
}
