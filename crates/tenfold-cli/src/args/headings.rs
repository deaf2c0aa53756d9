//! Headings for the help of commands that write: their options are many.

use clap::{Arg, Command};

/// The headings, and the options under each.
const HEADINGS: &[(&str, &[&str])] = &[
    (
        "What to read",
        &[
            "from",
            "assume",
            "shape",
            "offset",
            "order",
            "endian",
            "no_verify",
            "salvage",
        ],
    ),
    (
        "Where to",
        &[
            "output",
            "to",
            "version",
            "options",
            "shard_size",
            "max_size",
            "parts",
            "by_layer",
            "weights_only",
            "in_place",
            "force",
        ],
    ),
    (
        "Which tensors",
        &["tensors", "tensor", "include", "exclude", "regex", "prefer"],
    ),
    (
        "New names",
        &[
            "rules",
            "map",
            "strip_prefix",
            "add_prefix",
            "allow_unmatched",
        ],
    ),
    (
        "How they are stored",
        &[
            "cast",
            "quantize",
            "imatrix",
            "pure",
            "dequantize",
            "keep_sparse",
            "sparse",
            "max_dense",
            "zstd",
            "raw",
            "checksum",
        ],
    ),
    (
        "Safety",
        &["allow", "dry_run", "report", "check", "no_check", "no_sync"],
    ),
    ("Output", &["quiet", "json", "no_progress", "threads"]),
];

/// The command with headings for the options of the commands that write.
pub(super) fn add(command: Command) -> Command {
    let writing = ["convert", "extract", "merge", "split", "rename"];
    writing.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |inner| inner.mut_args(head))
    })
}

fn head(arg: Arg) -> Arg {
    let id = arg.get_id().as_str();
    let found = HEADINGS.iter().find(|(_, ids)| ids.contains(&id));
    match found.filter(|_| !arg.is_positional()) {
        Some((heading, _)) => arg.help_heading(*heading),
        None => arg,
    }
}
