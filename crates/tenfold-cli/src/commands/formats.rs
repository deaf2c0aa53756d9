//! `tenfold formats`: what is read and written, from the table that the code itself uses.

use std::io::{self, Write};

use serde::Serialize;
use tenfold::format::{Capabilities, Entry, Fit, OptionSpec, Profile, Registry, Spec};
use tenfold::model::{
    DType, Layout, Metadata, Operation, PairIndex, Pairs, Scheme, Symmetry, Value,
};

use crate::args::FormatsArgs;
use crate::failure::{Exit, Result};
use crate::json;
use crate::output::{BOLD, DIM, Out, Table};

pub(crate) fn run(args: &FormatsArgs, out: &mut Out<'_>) -> Result<Exit> {
    let registry = Registry::standard();
    match &args.name {
        Some(id) => {
            let entry = registry.get(id)?;
            if args.json {
                json::write_line(out, &Document::new(entry))?;
                writeln!(out)?;
            } else {
                write_details(entry, out)?;
            }
        }
        None if args.json => {
            let mut begin = "[";
            for entry in registry.entries() {
                writeln!(out, "{}", std::mem::replace(&mut begin, ","))?;
                json::write_line(out, &Document::new(entry))?;
            }
            writeln!(out, "]")?;
        }
        None => write_table(&registry, out)?,
    }
    Ok(Exit::Done)
}

/// What this build does with a format.
fn status(entry: &Entry) -> &'static str {
    match (entry.codec, entry.spec.writes.is_empty()) {
        (Some(_), false) => "read, written",
        (Some(_), true) => "read",
        (None, _) if entry.spec.reads.is_empty() => "recognized, not read yet",
        (None, _) => "not built in",
    }
}

fn write_table(registry: &Registry, out: &mut Out<'_>) -> io::Result<()> {
    let mut table = Table::new(&["format", "name", "extensions", "status", "reads"]);
    for entry in registry.entries() {
        let Spec {
            id, name, reads, ..
        } = entry.spec;
        table.row(&[
            id,
            name,
            &extensions(entry.spec),
            status(entry),
            &reads.join(", "),
        ]);
    }
    table.write(out, |_, _| Ok(()))?;
    let mut table = Table::new(&["writes", "version", "read by"]);
    for entry in registry
        .entries()
        .iter()
        .filter(|entry| entry.codec.is_some())
    {
        for profile in entry.spec.writes {
            table.row(&[entry.spec.id, profile.version, profile.read_by]);
        }
    }
    writeln!(out)?;
    table.write(out, |_, _| Ok(()))
}

fn extensions(spec: &Spec) -> String {
    let dotted: Vec<_> = spec
        .extensions
        .iter()
        .map(|name| format!(".{name}"))
        .collect();
    dotted.join(" ")
}

fn write_details(entry: &Entry, out: &mut Out<'_>) -> io::Result<()> {
    let spec = entry.spec;
    writeln!(
        out,
        "{}: {}, {}",
        out.paint(BOLD, spec.id),
        spec.name,
        status(entry)
    )?;
    writeln!(out, "extensions: {}", extensions(spec))?;
    if !spec.reads.is_empty() {
        writeln!(out, "reads: {}", spec.reads.join(", "))?;
    }
    for profile in spec.writes {
        writeln!(out, "\nwrites {}", out.paint(BOLD, profile.version))?;
        for (title, text) in facts(profile) {
            writeln!(
                out,
                "  {}{text}",
                out.paint(DIM, format_args!("{title:<16}"))
            )?;
        }
    }
    write_options("options for reading", reading_options(entry), out)?;
    write_options("options", spec.options, out)
}

fn reading_options(entry: &Entry) -> &'static [OptionSpec] {
    entry.codec.map_or(&[], |codec| codec.reading_options())
}

fn write_options(title: &str, options: &[OptionSpec], out: &mut Out<'_>) -> io::Result<()> {
    if !options.is_empty() {
        writeln!(out, "\n{title}")?;
    }
    let keys: Vec<_> = (options.iter())
        .map(|option| format!("-O {}={}", option.key, option.value))
        .collect();
    let width = keys.iter().map(String::len).max().unwrap_or(0);
    for (key, option) in keys.iter().zip(options) {
        writeln!(out, "  {key:width$}  {}", option.help)?;
    }
    Ok(())
}

fn facts(profile: &Profile) -> Vec<(&'static str, String)> {
    let can = &profile.can;
    let or_none = |list: Vec<String>| {
        if list.is_empty() {
            "none".to_owned()
        } else {
            list.join(", ")
        }
    };
    let yes_no = |yes| if yes { "yes" } else { "no" }.to_owned();
    let mut facts = vec![
        ("read by", profile.read_by.to_owned()),
        ("dtypes", or_none(dtypes(can))),
        ("dimensions", ranks(can)),
        ("sizes of 0", yes_no(can.zero_sizes)),
        ("layouts", or_none(layouts(can))),
        ("file metadata", or_none(metadata(can.file_value))),
        ("tensor metadata", or_none(metadata(can.tensor_value))),
        ("zstd", yes_no(can.zstd)),
        (
            "checksums",
            or_none(can.checksums.iter().map(ToString::to_string).collect()),
        ),
    ];
    if let Some(max) = max_tensors(can) {
        facts.push(("tensors", format!("at most {max}")));
    }
    facts
}

/// How many tensors fit, where real files could come that far.
fn max_tensors(can: &Capabilities) -> Option<u64> {
    (can.max_tensors < u64::from(u32::MAX)).then_some(can.max_tensors)
}

fn ranks(can: &Capabilities) -> String {
    match can.max_rank {
        usize::MAX => format!("{} and more", can.min_rank),
        max => format!("{} to {max}", can.min_rank),
    }
}

/// The types that can be held; all of GGUF's blocks together are one word.
fn dtypes(can: &Capabilities) -> Vec<String> {
    let is_block = |dtype: &DType| matches!(dtype, DType::Block(_));
    let all_blocks = DType::all()
        .filter(is_block)
        .all(|dtype| (can.dtype)(dtype));
    let mut names: Vec<_> = DType::all()
        .filter(|dtype| (can.dtype)(*dtype) && !(all_blocks && is_block(dtype)))
        .map(|dtype| dtype.to_string())
        .collect();
    if all_blocks {
        names.push("gguf:*".into());
    }
    names
}

fn layouts(can: &Capabilities) -> Vec<String> {
    let known = [
        Layout::RowMajor,
        Layout::ColumnMajor,
        Layout::Coo { nnz: 1 },
        Layout::Csr { nnz: 1 },
        Layout::Csc { nnz: 1 },
        Layout::Packed(Box::new(Symmetry::new(Operation::Same, [1, 0]))),
        Layout::from(Pairs::new(1, PairIndex::ColumnMajor)),
        Layout::from(Scheme::new("others (passed on as parts)", "")),
    ];
    let held = known.iter().filter(|layout| (can.layout)(layout));
    held.map(|layout| layout.name().to_owned()).collect()
}

/// The kinds of values that can be held, asked with an example of each.
fn metadata(fit: fn(&str, &Value) -> Fit) -> Vec<String> {
    let examples = [
        Value::Null,
        Value::Bool(true),
        Value::U8(1),
        Value::U16(1),
        Value::U32(1),
        Value::U64(1),
        Value::I8(1),
        Value::I16(1),
        Value::I32(1),
        Value::I64(1),
        Value::F32(0.5),
        Value::F64(0.1),
        Value::Integer("123456789012345678901234567890".into()),
        Value::Str("text".into()),
        Value::Bytes(vec![1].into()),
        Value::List(vec![Value::Str("text".into())].into()),
        Value::from(Metadata::new()),
    ];
    examples
        .iter()
        .filter_map(|example| match fit("any key", example) {
            Fit::Exact | Fit::Typed => Some(example.type_name().to_owned()),
            Fit::As(other) if other.type_name() == example.type_name() => {
                Some(example.type_name().to_owned())
            }
            Fit::As(other) => Some(format!("{} as {}", example.type_name(), other.type_name())),
            _ => None,
        })
        .collect()
}

/// The document of a format.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    id: &'static str,
    name: &'static str,
    extensions: &'static [&'static str],
    status: &'static str,
    reads: &'static [&'static str],
    writes: Vec<Version>,
    options: Vec<OptionOf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reading_options: Vec<OptionOf>,
}

impl Document {
    fn new(entry: &Entry) -> Self {
        let spec = entry.spec;
        Self {
            schema: "tenfold.formats/1",
            id: spec.id,
            name: spec.name,
            extensions: spec.extensions,
            status: status(entry),
            reads: spec.reads,
            writes: spec.writes.iter().map(Version::new).collect(),
            options: spec.options.iter().map(OptionOf::new).collect(),
            reading_options: reading_options(entry).iter().map(OptionOf::new).collect(),
        }
    }
}

#[derive(Serialize)]
struct OptionOf {
    key: &'static str,
    value: &'static str,
    help: &'static str,
}

impl OptionOf {
    fn new(option: &OptionSpec) -> Self {
        Self {
            key: option.key,
            value: option.value,
            help: option.help,
        }
    }
}

/// A version that is written.
#[derive(Serialize)]
struct Version {
    version: &'static str,
    read_by: &'static str,
    dtypes: Vec<String>,
    min_rank: usize,
    max_rank: Option<usize>,
    max_tensors: Option<u64>,
    zero_sizes: bool,
    layouts: Vec<String>,
    file_metadata: Vec<String>,
    tensor_metadata: Vec<String>,
    zstd: bool,
    checksums: Vec<&'static str>,
}

impl Version {
    fn new(profile: &Profile) -> Self {
        let can = &profile.can;
        Self {
            version: profile.version,
            read_by: profile.read_by,
            dtypes: dtypes(can),
            min_rank: can.min_rank,
            max_rank: Some(can.max_rank).filter(|max| *max != usize::MAX),
            max_tensors: max_tensors(can),
            zero_sizes: can.zero_sizes,
            layouts: layouts(can),
            file_metadata: metadata(can.file_value),
            tensor_metadata: metadata(can.tensor_value),
            zstd: can.zstd,
            checksums: can.checksums.iter().map(|kind| kind.name()).collect(),
        }
    }
}
