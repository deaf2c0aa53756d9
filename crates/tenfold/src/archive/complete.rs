//! Whether a set of files that are numbered by their names, such as `model-00002-of-00003.safetensors`, is complete.

use core::fmt;

use crate::archive::Archive;
use crate::error::{Error, ErrorKind};
use crate::format::{Effect, Finding, Loss, Lost, Severity, ShardName};
use crate::prelude::*;

/// The rule that is about it.
pub(crate) const MISSING: &str = "file.shard-missing";

/// Names that are listed; more are counted.
const SHOWN: usize = 3;

/// A set of files that are numbered by their names, some of which are missing.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct MissingFiles {
    /// What the names begin with, before the numbers.
    pub stem: String,
    /// What the names end in, with the dot.
    pub extension: String,
    /// How many files there should be.
    pub count: u64,
    /// The names of the first that are missing.
    pub missing: Vec<String>,
    /// How many more are missing.
    pub more: u64,
}

impl MissingFiles {
    /// Whether a file of this name is one of them.
    pub fn contains(&self, name: &str) -> bool {
        let one = ShardName {
            stem: &self.stem,
            number: 0,
            count: self.count,
            extension: &self.extension,
        };
        ShardName::parse(name).is_some_and(|name| name.is_beside(&one))
    }

    /// A warning that says what is missing.
    pub fn finding(&self) -> Finding {
        let error = Error::new(ErrorKind::NotFound, MISSING, self.to_string());
        Finding {
            severity: Severity::Warning,
            ..Finding::from(&error)
        }
    }
}

impl fmt::Display for MissingFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.missing.join(", "))?;
        let verb = match (self.missing.len(), self.more) {
            (1, 0) => "is",
            _ => "are",
        };
        if self.more > 0 {
            write!(f, " and {} more", self.more)?;
        }
        write!(
            f,
            " {verb} missing: by the names of the others, there are {} files",
            self.count
        )
    }
}

/// Which files are missing from sets that are numbered by their names, `STEM-00001-of-00003.EXTENSION`, from 0 or 1.
/// Ignores other names.
///
/// ```
/// let found = tenfold::ops::missing_files(["m-00001-of-00003.zt", "m-00003-of-00003.zt", "other.zt"]);
/// assert_eq!(found[0].missing, ["m-00002-of-00003.zt"]);
/// ```
pub fn missing_files<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<MissingFiles> {
    let mut sets: Vec<(ShardName<'_>, Vec<u64>)> = Vec::new();
    let mut known: LookupMap<ShardName<'_>, usize> = LookupMap::default();
    for name in names.into_iter().filter_map(ShardName::parse) {
        let set = ShardName { number: 0, ..name };
        let place = *known.entry(set).or_insert_with(|| {
            sets.push((set, Vec::new()));
            sets.len() - 1
        });
        if let Some((_, numbers)) = sets.get_mut(place) {
            numbers.push(name.number);
        }
    }
    let sets = sets.into_iter();
    sets.filter_map(|(set, numbers)| missing(set, numbers))
        .collect()
}

fn missing(set: ShardName<'_>, mut numbers: Vec<u64>) -> Option<MissingFiles> {
    let count = set.count;
    numbers.sort_unstable();
    numbers.dedup();
    let first = u64::from(numbers.first() != Some(&0));
    let last = match first {
        0 => count.saturating_sub(1),
        _ => count,
    };
    numbers.retain(|number| (first..=last).contains(number));
    let missing = count.saturating_sub(numbers.len() as u64);
    // There are never more steps than files and names that are shown.
    let absent = (first..=last).filter(|number| numbers.binary_search(number).is_err());
    let names = absent.take(SHOWN);
    let names: Vec<_> = names
        .map(|number| ShardName { number, ..set }.to_string())
        .collect();
    (missing > 0).then(|| MissingFiles {
        stem: set.stem.to_owned(),
        extension: set.extension.to_owned(),
        count,
        more: missing - names.len() as u64,
        missing: names,
    })
}

/// Warnings about files that are missing among those that archives consist of.
pub(crate) fn findings(archives: &[Archive]) -> Vec<Finding> {
    let names = archives.iter().flat_map(Archive::counted);
    missing_files(names)
        .iter()
        .map(MissingFiles::finding)
        .collect()
}

/// Whether it says that a file is not there.
pub(crate) fn is_missing(finding: &Finding) -> bool {
    finding.kind == ErrorKind::NotFound
}

/// The names of an archive's files that belong to the same files as the one that was opened: an index, and formats that
/// find their files themselves, look after their own.
pub(crate) fn own<'n>(names: &'n [Option<String>]) -> Vec<&'n str> {
    let main = names.first().and_then(Option::as_deref);
    let Some(main) = main.and_then(ShardName::parse) else {
        return Vec::new();
    };
    let same = |name: &&'n str| ShardName::parse(name).is_some_and(|name| name.is_beside(&main));
    (names.iter().filter_map(Option::as_deref))
        .filter(same)
        .collect()
}

/// What is not written because a file is missing.
pub(crate) fn losses(from: &Archive) -> impl Iterator<Item = Loss> {
    let findings = from.findings().iter();
    findings
        .filter(|finding| is_missing(finding))
        .map(|finding| {
            let why = finding.message.as_str();
            Loss::new(None, Lost::MissingFile, why, Effect::Dropped)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_count_themselves_are_missed() {
        let shown = |names: &[&str]| -> Vec<_> {
            let found = missing_files(names.iter().copied());
            found.iter().map(ToString::to_string).collect()
        };
        assert!(shown(&["m-00001-of-00002.zt", "m-00002-of-00002.zt", "m.zt"]).is_empty());
        assert!(shown(&["m-00000-of-00002.zt", "m-00001-of-00002.zt"]).is_empty());
        assert!(shown(&["m-00001-of-00001", "m-00000-of-00000.zt"]).is_empty());
        assert_eq!(
            shown(&["m-00001-of-00002.zt"]),
            ["m-00002-of-00002.zt is missing: by the names of the others, there are 2 files"]
        );
        // One of each of two.
        assert_eq!(
            shown(&["m-00001-of-00002.zt", "m-00002-of-00003.zt"]),
            [
                "m-00002-of-00002.zt is missing: by the names of the others, there are 2 files",
                "m-00001-of-00003.zt, m-00003-of-00003.zt are missing: by the names of the others, there are 3 files"
            ]
        );
        // A number beyond the count is of no use.
        assert_eq!(
            shown(&["m-00009-of-00002.zt", "m-00001-of-00002.zt"]).len(),
            1
        );
        let huge = missing_files(["m-00001-of-18446744073709551615.zt"]);
        assert_eq!(huge[0].more, u64::MAX - 4);
        assert!(huge[0].contains("m-00007-of-18446744073709551615.zt"));
        assert!(!huge[0].contains("m-00007-of-00007.zt"));
    }
}
