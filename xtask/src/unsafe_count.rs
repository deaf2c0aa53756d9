//! `cargo xtask unsafe-count`: the word `unsafe` stands where it is known to stand, and nowhere else.

use crate::Result;
use crate::project::{self, Project};
use std::fs;

/// How often the word stands in which file. A change here needs a reason in the same change.
const KNOWN: &[(&str, usize)] = &[
    // Mapping, and the promise that it needs of whoever asks for it.
    ("crates/tenfold/src/archive/mapped.rs", 4),
    ("crates/tenfold/src/io/mmap.rs", 4),
    ("crates/tenfold/tests/memory.rs", 1),
    ("crates/tenfold/tests/property.rs", 1),
    ("crates/tenfold/tests/reading.rs", 1),
    // An allocator that counts, for the tests of memory: the trait is unsafe.
    ("crates/tenfold/tests/support/memory.rs", 9),
    // The structures of DLPack, memory of Python, and mapping for those who read its documentation.
    ("crates/tenfold-python/src/dlpack.rs", 11),
    ("crates/tenfold-python/src/memory.rs", 4),
    ("crates/tenfold-python/src/open.rs", 1),
    // The border to a browser: names of exports, calls of imports.
    ("crates/tenfold-wasm/src/border.rs", 7),
    // The programs that are timed map a file that nobody changes.
    ("xtask/bench/tenfold/src/bin/get.rs", 1),
    ("xtask/bench/tenfold/src/bin/load.rs", 2),
    ("xtask/bench/tenfold/src/bin/open.rs", 1),
    ("xtask/bench/tenfold/src/bin/read.rs", 1),
];

/// Counts; no arguments.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    project::check_alone(args, check)
}

/// Compares what is there with what is known.
pub(crate) fn check(project: &Project) -> Result<Option<String>> {
    let mut found = Vec::new();
    let mut files = project::rust_files(&project.root.join("crates"))?;
    files.extend(project::rust_files(
        &project.root.join("xtask/bench/tenfold"),
    )?);
    for file in files {
        let count = count(&fs::read_to_string(&file)?);
        if count > 0 {
            let name = file
                .strip_prefix(&project.root)?
                .to_string_lossy()
                .into_owned();
            found.push((name, count));
        }
    }
    let known: Vec<_> = (KNOWN.iter())
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect();
    if found != known {
        return Err(format!("unsafe stands in {found:?}, known is {known:?}").into());
    }
    let blocks: usize = KNOWN.iter().map(|(_, count)| count).sum();
    Ok(Some(format!("{blocks} unsafe in {} file", KNOWN.len())))
}

/// How often the word stands outside of line comments. In a string or a block comment it counts too: better one too many.
fn count(text: &str) -> usize {
    let is_part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    text.lines()
        .filter_map(|line| line.split("//").next())
        .flat_map(|code| code.split(|c| !is_part_of_word(c)))
        .filter(|word| *word == "unsafe")
        .count()
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn comments_and_the_name_of_the_lint_do_not_count() {
        let text = "//! no unsafe\n#![allow(unsafe_code)]\nlet map = unsafe { map() }; // unsafe\nunsafe fn f() {}\n";
        assert_eq!(count(text), 2);
    }
}
