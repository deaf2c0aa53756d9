//! The library does not know the command: no text of it names an option or a command. What would help is data
//! (`tenfold::Hint`), and each program says it in words of its own.

// A test may panic and print.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

const COMMANDS: &[&str] = &[
    "inspect",
    "verify",
    "digest",
    "show",
    "view",
    "scan",
    "convert",
    "diff",
    "stats",
    "extract",
    "merge",
    "split",
    "rename",
    "meta",
    "plan",
    "run",
    "join",
    "formats",
    "completions",
    "man",
];

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The texts in a program: the line on which each begins, and what is between its quotes.
fn literals(program: &str) -> Vec<(usize, String)> {
    let chars: Vec<char> = program.chars().collect();
    let at = |place: usize| chars.get(place).copied().unwrap_or('\0');
    let (mut found, mut place, mut line) = (Vec::new(), 0, 1);
    while place < chars.len() {
        let start = place;
        match (at(place), at(place + 1)) {
            ('/', '/') => {
                while place < chars.len() && at(place) != '\n' {
                    place += 1;
                }
            }
            ('/', '*') => {
                while place < chars.len() && (at(place), at(place + 1)) != ('*', '/') {
                    place += 1;
                }
                place += 2;
            }
            // A character in quotes, and not the name of a lifetime.
            ('\'', '\\') => {
                place += 3;
                while place < chars.len() && at(place) != '\'' {
                    place += 1;
                }
                place += 1;
            }
            ('\'', _) if at(place + 2) == '\'' => place += 3,
            ('r', '"' | '#') => {
                place += 1;
                let mut hashes = 0;
                while at(place) == '#' {
                    (hashes, place) = (hashes + 1, place + 1);
                }
                if at(place) == '"' {
                    let end: String = std::iter::once('"').chain(vec!['#'; hashes]).collect();
                    let rest: String = chars[place + 1..].iter().collect();
                    let text = rest.split(&end).next().unwrap_or_default();
                    place += 1 + text.chars().count() + end.len();
                    found.push((line, text.to_owned()));
                }
            }
            ('"', _) => {
                place += 1;
                while place < chars.len() && at(place) != '"' {
                    place += if at(place) == '\\' { 2 } else { 1 };
                }
                found.push((line, chars[start + 1..place].iter().collect()));
                place += 1;
            }
            _ => place += 1,
        }
        let passed = chars.iter().take(place).skip(start);
        line += passed.filter(|c| **c == '\n').count();
    }
    found
}

/// Whether a text names an option, or a command by its name.
fn names_the_command(text: &str) -> bool {
    let mut words = text.split(|c: char| c.is_whitespace() || "`'\"()[],;:.".contains(c));
    let is_option = |word: &str| {
        let long = word.strip_prefix("--");
        long.is_some_and(|word| word.starts_with(|c: char| c.is_ascii_lowercase())) || word == "-O"
    };
    let mut before = "";
    words.any(|word| {
        let is_command = before == "tenfold" && COMMANDS.contains(&word);
        if !word.is_empty() {
            before = word;
        }
        is_option(word) || is_command
    })
}

#[test]
fn no_text_of_the_library_names_an_option_of_the_command() {
    let mut files = Vec::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut files,
    );
    let (mut texts, mut wrong) = (0, Vec::new());
    for file in &files {
        for (line, text) in literals(&fs::read_to_string(file).unwrap()) {
            texts += 1;
            if names_the_command(&text) {
                wrong.push(format!("{}:{line}: {text:?}", file.display()));
            }
        }
    }
    assert!(files.len() > 100 && texts > 3000, "{texts} texts");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_names_the_command_is_found_in_texts_and_only_there() {
    let program = r##"
        // "--force" in a comment /* is none
        fn f<'a>(c: &'a str) -> char { '"' }
        let a = "pass --force to \"replace\" it"; /* "-O x=1" */
        let b = r#"see `tenfold convert` "here""#;
        let c = b"-O align=8"; let d = "a -- b, read by tenfold alone, x-O";
    "##;
    let named: Vec<_> = literals(program)
        .into_iter()
        .filter(|(_, text)| names_the_command(text))
        .map(|(line, _)| line)
        .collect();
    assert_eq!(named, [4, 5, 6]);
    assert_eq!(literals(program).len(), 4);
}
