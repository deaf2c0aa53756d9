//! What would help, in the words of this package: its arguments, never options of the command.

use tenfold::Hint;

/// `; limits=tenfold.Limits(rank=9) raises it; …`
pub(crate) fn words(hints: &[Hint]) -> String {
    let mut words = String::new();
    for word in list(hints) {
        words += "; ";
        words += &word;
    }
    words
}

/// The same one by one.
pub(crate) fn list(hints: &[Hint]) -> Vec<String> {
    hints.iter().filter_map(word).collect()
}

fn word(hint: &Hint) -> Option<String> {
    Some(match hint {
        Hint::AllowHttp => "storage_options={\"allow_http\": True} does it all the same".into(),
        Hint::Anonymous => {
            "storage_options={\"anonymous\": True} asks without credentials, as public files need none".into()
        }
        Hint::Allow(effect) => format!("allow=\"{effect}\" accepts it"),
        Hint::Assume(None) => "assume_dtype= says what the bytes are".into(),
        Hint::Assume(Some(dtype)) => {
            let name = crate::dtype::name_of(*dtype);
            format!("assume_dtype= says what the bytes are, such as assume_dtype=\"{name}\"")
        }
        Hint::Cast(None) => "cast= writes another type".into(),
        Hint::Cast(Some(dtype)) => {
            format!(
                "cast=\"{}\" writes another type",
                crate::dtype::name_of(*dtype)
            )
        }
        Hint::ChooseFormat(ids) => {
            let ids: Vec<_> = ids.iter().map(|id| format!("\"{id}\"")).collect();
            format!("format= says which: {}", ids.join(" or "))
        }
        Hint::Dequantize => "dequantize=True writes plain numbers".into(),
        Hint::EnableFeature(id) => format!("this build has no support for {id}"),
        Hint::Exclude => "exclude= leaves it out".into(),
        Hint::FilePerTensor(id) => {
            format!("file_per_tensor=True, to=\"{id}\" writes a directory with a file for each")
        }
        Hint::FormatOption { key, value, does } => {
            format!("options={{\"{key}\": \"{value}\"}} {does}")
        }
        Hint::KeepSparse => "sparse=\"keep\" keeps it sparse".into(),
        Hint::NameFile => "open one of the files instead of the directory".into(),
        Hint::OneFile => "a format that holds all tensors in one file takes it".into(),
        Hint::Opaque => "opaque=True reads what is known of it; nothing is run".into(),
        Hint::RaiseLimit { name, needed } => match needed {
            Some(needed) => format!("limits=tenfold.Limits({name}={needed}) raises it"),
            None => format!("limits=tenfold.Limits({name}=…) raises it"),
        },
        Hint::Rename => "rename= gives the tensor another name".into(),
        Hint::Replace => "force=True replaces it".into(),
        Hint::RunAgain(Some(item)) => format!("run({item}, again=True) writes it again"),
        Hint::RunAgain(None) => "run(item, again=True) does an item again".into(),
        Hint::Salvage => "salvage=True opens what is whole".into(),
        Hint::Shard => "shard_size= writes several files".into(),
        Hint::SkipChecksums => "checksums=False reads it as it is".into(),
        Hint::WriteAs { format, version } => match *version {
            "-" => format!("format=\"{format}\" holds it"),
            version => format!("format=\"{format}\", version=\"{version}\" holds it"),
        },
        _ => return None,
    })
}
