//! What would help, in the words of this package: arguments of its functions, never options of the command.
//!
//! Whoever called a function that has the argument is told the argument; anybody else is told which function has it.

use std::borrow::Cow;

use pyo3::prelude::*;
use tenfold::Hint;
use tenfold::format::Effect;
use tenfold::model::DType;

/// What goes on: the function of `tenfold` that was called, where it is known, and whether it writes already.
#[derive(Clone, Copy, Default)]
pub(crate) struct During<'f> {
    function: &'f str,
    is_writing: bool,
}

impl<'f> During<'f> {
    /// A file is opened for this function.
    pub(crate) fn opening(function: &'f str) -> Self {
        Self {
            function,
            is_writing: false,
        }
    }

    /// This function writes.
    pub(crate) fn writing(function: &'f str) -> Self {
        Self {
            function,
            is_writing: true,
        }
    }
}

/// Functions that give what `open` takes on to it.
const OPENING: &[&str] = &[
    "open",
    "load",
    "loads",
    "load_model",
    "inspect",
    "verify",
    "digest",
    "diff",
    "stats",
    "convert",
];
/// The same, but for those that mean something of the output by the same name, or are there to compare checksums.
const READING: &[&str] = &[
    "open",
    "load",
    "loads",
    "load_model",
    "inspect",
    "digest",
    "diff",
    "stats",
];
const SAVING: &[&str] = &["save", "dumps"];
const REWRITING: &[&str] = &[
    "convert",
    "rename",
    "extract",
    "merge",
    "split",
    "edit_metadata",
];
const WRITING: &[&str] = &[
    "convert",
    "save",
    "dumps",
    "rename",
    "extract",
    "merge",
    "split",
    "edit_metadata",
];

/// `; limits=tenfold.Limits(rank=9) raises it; …`, wherever it comes up.
pub(crate) fn words(hints: &[Hint]) -> String {
    let list = list(hints, During::default());
    list.iter().map(|word| format!("; {word}")).collect()
}

/// The same one by one, for whoever called a function.
pub(crate) fn list(hints: &[Hint], during: During<'_>) -> Vec<String> {
    hints.iter().filter_map(|hint| word(hint, during)).collect()
}

fn word(hint: &Hint, during: During<'_>) -> Option<String> {
    let takes = |functions: &[&str]| functions.contains(&during.function);
    let reaching: &[&str] = if during.is_writing {
        &["convert", "save"]
    } else {
        OPENING
    };
    // Arguments, the functions that have them, of which the first is named to others, and what they do.
    let (arguments, functions, does): (Cow<'_, str>, &[&str], Cow<'_, str>) = match hint {
        Hint::Allow(effect) => (
            format!("allow=\"{effect}\"").into(),
            WRITING,
            "accepts it".into(),
        ),
        Hint::AllowHttp => (
            "storage_options={\"allow_http\": True}".into(),
            reaching,
            "does it all the same".into(),
        ),
        Hint::Anonymous => (
            "storage_options={\"anonymous\": True}".into(),
            reaching,
            "asks without credentials, as public files need none".into(),
        ),
        Hint::Assume(dtype) => (
            format!("assume_dtype={}", quoted(*dtype)).into(),
            OPENING,
            "says what the bytes are".into(),
        ),
        Hint::Cast(dtype) => (
            format!("cast={}", quoted(*dtype)).into(),
            &["convert", "save", "dumps"],
            "writes another type".into(),
        ),
        Hint::ChooseFormat(ids) => {
            let ids: Vec<_> = ids.iter().map(|id| format!("\"{id}\"")).collect();
            (
                "format=…".into(),
                OPENING,
                format!("says which: {}", ids.join(" or ")).into(),
            )
        }
        Hint::Dequantize => (
            "dequantize=True".into(),
            &["convert"],
            "writes plain numbers".into(),
        ),
        Hint::EnableFeature(id) => return Some(format!("this build has no support for {id}")),
        Hint::Exclude => (
            "exclude=…".into(),
            &["convert", "extract"],
            "leaves it out".into(),
        ),
        Hint::FilePerTensor(id) => (
            format!("file_per_tensor=True, to=\"{id}\"").into(),
            &["convert"],
            "writes a directory with a file for each".into(),
        ),
        Hint::FormatOption { key, value, does } => (
            format!("options={{\"{key}\": \"{value}\"}}").into(),
            if during.is_writing { WRITING } else { READING },
            (*does).into(),
        ),
        Hint::KeepSparse => ("sparse=\"keep\"".into(), WRITING, "keeps it sparse".into()),
        Hint::NameFile => return Some("open one of the files instead of the directory".into()),
        Hint::OneFile => {
            return Some("a format that holds all tensors in one file takes it".into());
        }
        Hint::Opaque => (
            "opaque=True".into(),
            OPENING,
            "reads what is known of it; nothing is run".into(),
        ),
        Hint::RaiseLimit { name, needed } => {
            let needed = needed.map_or("…".to_owned(), |needed| needed.to_string());
            (
                format!("limits=tenfold.Limits({name}={needed})").into(),
                OPENING,
                "raises it".into(),
            )
        }
        Hint::Rename if during.function == "rename" => {
            return Some("rules= gives the tensor another name".into());
        }
        Hint::Rename => (
            "rename=…".into(),
            &["convert"],
            "gives the tensor another name".into(),
        ),
        Hint::Replace => (
            "force=True".into(),
            &[
                "convert",
                "save",
                "rename",
                "extract",
                "merge",
                "edit_metadata",
            ],
            "replaces it".into(),
        ),
        Hint::Salvage => ("salvage=True".into(), OPENING, "opens what is whole".into()),
        Hint::Shard => (
            "shard_size=…".into(),
            &[
                "convert",
                "save",
                "rename",
                "extract",
                "merge",
                "edit_metadata",
            ],
            "writes several files".into(),
        ),
        // That they match is what is asked.
        Hint::SkipChecksums if during.function == "verify" => return None,
        Hint::SkipChecksums if during.is_writing => (
            "verify=False".into(),
            REWRITING,
            "writes it as it is".into(),
        ),
        Hint::SkipChecksums => (
            "checksums=False".into(),
            READING,
            "reads it as it is".into(),
        ),
        Hint::WriteAs { format, version } => {
            let (name, functions) = if takes(SAVING) {
                ("format", SAVING)
            } else {
                ("to", REWRITING)
            };
            let version = match *version {
                "-" => String::new(),
                version => format!(", version=\"{version}\""),
            };
            (
                format!("{name}=\"{format}\"{version}").into(),
                functions,
                "holds it".into(),
            )
        }
        // Of a plan, whose method has the argument.
        Hint::RunAgain(Some(item)) => {
            return Some(format!("run({item}, again=True) writes it again"));
        }
        Hint::RunAgain(None) => return Some("run(item, again=True) does an item again".into()),
        _ => return None,
    };
    Some(if takes(functions) {
        format!("{arguments} {does}")
    } else {
        let function = functions.first().copied().unwrap_or_default();
        format!("tenfold.{function}(…, {arguments}) {does}")
    })
}

fn quoted(dtype: Option<DType>) -> Cow<'static, str> {
    match dtype {
        Some(dtype) => format!("\"{}\"", crate::dtype::name_of(dtype)).into(),
        None => "…".into(),
    }
}

/// One of each hint in the words for whoever called a function: tests compare them with what the functions take.
#[pyfunction]
pub(crate) fn hints(function: &str, is_writing: bool) -> Vec<String> {
    let during = During {
        function,
        is_writing,
    };
    let all = [
        Hint::Allow(Effect::Dropped),
        Hint::AllowHttp,
        Hint::Anonymous,
        Hint::Assume(None),
        Hint::Assume(Some(DType::BF16)),
        Hint::Cast(None),
        Hint::Cast(Some(DType::F32)),
        Hint::ChooseFormat(vec!["npy", "npz"]),
        Hint::Dequantize,
        Hint::EnableFeature("npz"),
        Hint::Exclude,
        Hint::FilePerTensor("npy"),
        Hint::FormatOption {
            key: "stats",
            value: "drop",
            does: "leaves statistics out",
        },
        Hint::KeepSparse,
        Hint::NameFile,
        Hint::OneFile,
        Hint::Opaque,
        Hint::RaiseLimit {
            name: "rank",
            needed: None,
        },
        Hint::RaiseLimit {
            name: "depth",
            needed: Some(9),
        },
        Hint::Rename,
        Hint::Replace,
        Hint::Salvage,
        Hint::Shard,
        Hint::SkipChecksums,
        Hint::WriteAs {
            format: "safetensors",
            version: "-",
        },
        Hint::WriteAs {
            format: "ztensor",
            version: "2",
        },
    ];
    list(&all, during)
}
