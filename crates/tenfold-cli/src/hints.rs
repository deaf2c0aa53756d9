//! What would help, in the words of this command.

use tenfold::format::{Finding, Loss};
use tenfold::{Error, Hint};

/// Formats that are listed; more are counted.
const FORMATS: usize = 5;

/// What an error says, and what would help.
pub(crate) fn message(error: &Error) -> String {
    format!("{}{}", error.message(), words(error.hints()))
}

/// An error as a line: what it is about, what it says, what would help, the place and the rule.
pub(crate) fn line(error: &Error) -> String {
    error.clone().adding(&words(error.hints())).to_string()
}

/// What was found, and what would help.
pub(crate) fn finding(finding: &Finding) -> String {
    format!("{}{}", finding.message, words(&finding.hints))
}

/// A loss as a line, with what would keep it.
pub(crate) fn loss(loss: &Loss) -> String {
    format!("{loss}{}", words(&loss.hints))
}

/// Why something is lost, and what would keep it.
pub(crate) fn why(loss: &Loss) -> String {
    format!("{}{}", loss.why, words(&loss.hints))
}

/// `; --limit rank=9 raises it; …`
pub(crate) fn words(hints: &[Hint]) -> String {
    let mut words = String::new();
    let mut targets = Vec::new();
    for hint in hints {
        if let Hint::WriteAs { format, .. } = hint {
            targets.push(*format);
        } else if let Some(word) = word(hint) {
            words += "; ";
            words += &word;
        }
    }
    // The version follows from what it has to hold.
    match targets.as_slice() {
        [] => {}
        [only] => words += &format!("; --to {only} can"),
        several => {
            let shown: Vec<_> = several.iter().take(FORMATS).copied().collect();
            words += &format!("; these formats can (--to): {}", shown.join(", "));
            if several.len() > FORMATS {
                words += &format!(" and {} more", several.len() - FORMATS);
            }
        }
    }
    words
}

/// What this command can do of it, if anything.
fn word(hint: &Hint) -> Option<String> {
    Some(match hint {
        Hint::AllowHttp => "--allow-http allows it".into(),
        Hint::Anonymous => {
            "--anonymous asks without credentials, which public files do not need".into()
        }
        Hint::Allow(effect) => format!("pass --allow {effect} to accept"),
        Hint::Assume(None) => "if they are numbers, name their type with --assume DTYPE".into(),
        Hint::Assume(Some(dtype)) => {
            format!("name their type with --assume, such as --assume {dtype}")
        }
        Hint::Cast(None) => "convert --cast TYPE converts it".into(),
        Hint::Cast(Some(dtype)) => format!("convert --cast {dtype} converts it"),
        Hint::ChooseFormat(_) => "--from FORMAT picks one".into(),
        Hint::Dequantize => "convert --dequantize writes plain numbers".into(),
        Hint::EnableFeature(id) => format!("enable feature `{id}`"),
        Hint::Exclude => "--exclude leaves it out".into(),
        Hint::FilePerTensor(id) => {
            format!("OUT/ --to {id} writes each to its own file in a directory")
        }
        Hint::FormatOption { key, value, does } => format!("-O {key}={value} {does}"),
        Hint::KeepSparse => "convert --keep-sparse keeps it sparse".into(),
        Hint::RaiseLimit { name, needed } => match needed {
            Some(needed) => format!("--limit {name}={needed} raises it"),
            None => format!("--limit {name}=N raises it"),
        },
        Hint::NameFile => "name one of the files instead of the directory".into(),
        Hint::Opaque => "--opaque reads the parts that are known, and runs nothing".into(),
        Hint::OneFile => "or write a format that holds all tensors in one file".into(),
        Hint::Rename => "`tenfold rename` gives it another name".into(),
        Hint::Replace => "pass --force to replace it".into(),
        Hint::RunAgain(Some(item)) => {
            format!("`tenfold run PLAN --item {item} --again` writes it again")
        }
        Hint::RunAgain(None) => "`tenfold run PLAN --item N --again` does an item again".into(),
        Hint::Salvage => "convert --salvage rescues what is intact".into(),
        Hint::Shard => "--shard-size SIZE writes several files".into(),
        Hint::SkipChecksums => "--no-verify reads it anyway".into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tenfold::format::Effect;
    use tenfold::model::DType;

    use super::*;
    use crate::args;

    /// One of each.
    fn all() -> Vec<Hint> {
        vec![
            Hint::Allow(Effect::Dropped),
            #[cfg(feature = "remote")]
            Hint::AllowHttp,
            #[cfg(feature = "remote")]
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
            Hint::Rename,
            Hint::Replace,
            Hint::RunAgain(None),
            Hint::RunAgain(Some(3)),
            Hint::Salvage,
            Hint::Shard,
            Hint::SkipChecksums,
            Hint::WriteAs {
                format: "ztensor",
                version: "2",
            },
        ]
    }

    #[test]
    fn every_hint_has_words_and_names_options_that_exist() {
        let command = args::command();
        let commands = command.get_subcommands().chain([&command]);
        let known: BTreeSet<_> = commands
            .flat_map(|command| command.get_arguments())
            .filter_map(|option| option.get_long())
            .collect();
        for hint in all() {
            let said = words(std::slice::from_ref(&hint));
            assert!(said.starts_with("; "), "{hint:?}");
            let options = said.split_whitespace().filter_map(|word| {
                let word = word.trim_matches(['(', ')', ',', ';', '`']);
                word.strip_prefix("--")
            });
            for option in options {
                assert!(known.contains(option), "{said}");
            }
        }
    }

    #[test]
    fn formats_that_hold_everything_are_said_last_and_at_once() {
        let as_ = |format, version| Hint::WriteAs { format, version };
        let hints = [
            as_("ztensor", "2"),
            as_("safetensors", "-"),
            Hint::Cast(None),
        ];
        assert_eq!(
            words(&hints),
            "; convert --cast TYPE converts it; these formats can (--to): ztensor, safetensors"
        );
    }

    #[test]
    fn a_line_has_what_would_help_before_the_place_and_the_rule() {
        let error = Error::limit("rank", "9 dimensions, the limit is 8").at(4..8);
        let error = error.raised_by("rank", 9).in_format("mag");
        assert_eq!(
            line(&error),
            "mag: 9 dimensions, the limit is 8; --limit rank=9 raises it (at byte 4) [mag.rank]"
        );
    }
}
