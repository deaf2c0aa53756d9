//! What would help, in the words of the page.

use tenfold::{Error, Hint};

/// What an error says, and what would help.
pub(crate) fn message(error: &Error) -> String {
    format!("{}{}", error.message(), words(error.hints()))
}

/// `; …`, for each thing that would help and that somebody who looks at a page can do.
pub(crate) fn words(hints: &[Hint]) -> String {
    let words = hints.iter().filter_map(word);
    words.map(|word| format!("; {word}")).collect()
}

fn word(hint: &Hint) -> Option<String> {
    Some(match hint {
        Hint::Assume(_) => "`tenfold show --assume DTYPE` reads them as numbers".into(),
        Hint::ChooseFormat(ids) => format!("it may be one of {}", ids.join(", ")),
        Hint::EnableFeature(id) => format!("this page was made without {id}"),
        Hint::NameFile => "open one of the files instead of the directory".into(),
        Hint::Opaque => "`tenfold inspect --opaque` shows what is known of it".into(),
        Hint::RaiseLimit { name, needed } => match needed {
            Some(needed) => format!("`tenfold view --limit {name}={needed}` raises it"),
            None => format!("`tenfold view --limit {name}=N` raises it"),
        },
        Hint::Salvage => "`tenfold convert --salvage` rescues what is intact".into(),
        Hint::SkipChecksums => "`tenfold view --no-verify` reads it anyway".into(),
        _ => return None,
    })
}
