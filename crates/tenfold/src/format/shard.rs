//! Names of numbered files.

use core::fmt;

/// The name of one of several files of a model: `STEM-00002-of-00003.EXTENSION`.
///
/// ```
/// use tenfold::format::ShardName;
/// let name = ShardName::parse("m-00002-of-00003.zt").unwrap();
/// assert_eq!((name.stem, name.number, name.count, name.extension), ("m", 2, 3, ".zt"));
/// assert_eq!(name.to_string(), "m-00002-of-00003.zt");
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ShardName<'n> {
    /// What comes before the numbers.
    pub stem: &'n str,
    /// Which of the files it is; most programs count from 1.
    pub number: u64,
    /// How many files there are.
    pub count: u64,
    /// The extension with its dot; empty if there is none.
    pub extension: &'n str,
}

impl<'n> ShardName<'n> {
    /// The parts of such a name. Numbers have five digits or more.
    pub fn parse(name: &'n str) -> Option<Self> {
        let at = name.rfind('.').unwrap_or(name.len());
        let (stem, extension) = name.split_at_checked(at)?;
        Self::in_stem(stem).map(|name| Self { extension, ..name })
    }

    /// The same of a name that has no extension, whatever dots are in it.
    pub(crate) fn in_stem(stem: &'n str) -> Option<Self> {
        let number = |text: &str| {
            let is_number = text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| is_number)
        };
        let (rest, count) = stem.rsplit_once("-of-")?;
        let (stem, place) = rest.rsplit_once('-')?;
        Some(Self {
            stem,
            number: number(place)?,
            count: number(count)?,
            extension: "",
        })
    }

    /// Whether both are names of files of the same model.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        let number = self.number;
        *self == Self { number, ..*other }
    }
}

impl fmt::Display for ShardName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            stem,
            number,
            count,
            extension,
        } = self;
        write!(f, "{stem}-{number:05}-of-{count:05}{extension}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_files_have_five_digits_or_more() {
        let numbers =
            |stem| ShardName::in_stem(stem).map(|name| (name.stem, name.number, name.count));
        assert_eq!(numbers("m-00002-of-00003"), Some(("m", 2, 3)));
        assert_eq!(numbers("a-b-000002-of-123456"), Some(("a-b", 2, 123_456)));
        for other in [
            "m-2-of-3",
            "m-00001",
            "00001-of-00002",
            "v1.5-of-2",
            "m-00001-of-",
        ] {
            assert_eq!(numbers(other), None, "{other}");
        }
    }
}
