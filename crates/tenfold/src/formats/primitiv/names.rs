//! Between the keys of a Model and flat names, both ways without loss.
//!
//! The parts of a key are joined with `.`; inside a part, `\`, `.` and `@` are escaped with a backslash. A statistic is
//! the parameter's name, `@`, and its own name as it is.

use crate::prelude::*;

/// What a flat name says.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Address {
    /// The parts of the parameter's key, at least one.
    pub(super) key: Vec<String>,
    /// Which of the parameter's statistics; `None` for its value.
    pub(super) stat: Option<String>,
}

impl Address {
    /// The address that a name is the flat form of.
    pub(super) fn parse(name: &str) -> Result<Self, &'static str> {
        let mut key = Vec::new();
        let mut part = String::new();
        let mut chars = name.chars();
        let mut stat = None;
        while let Some(c) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some(escaped @ ('\\' | '.' | '@')) => part.push(escaped),
                    _ => return Err("a backslash stands before a backslash, a dot or an @ only"),
                },
                '.' => key.push(core::mem::take(&mut part)),
                '@' => {
                    stat = Some(chars.as_str().to_owned());
                    break;
                }
                _ => part.push(c),
            }
        }
        key.push(part);
        Ok(Self { key, stat })
    }
}

/// The flat name of a parameter.
#[cfg(any(feature = "primitiv", test))]
pub(super) fn join<S: AsRef<str>>(key: &[S]) -> String {
    let mut name = String::new();
    for (index, part) in key.iter().enumerate() {
        if index > 0 {
            name.push('.');
        }
        for c in part.as_ref().chars() {
            if matches!(c, '\\' | '.' | '@') {
                name.push('\\');
            }
            name.push(c);
        }
    }
    name
}

/// The characters of a parameter's name without escapes, and `None` between the parts of its key: in the order of keys.
#[cfg(feature = "primitiv")]
pub(super) fn symbols(name: &str) -> impl Iterator<Item = Option<char>> {
    let mut chars = name.chars();
    core::iter::from_fn(move || {
        Some(match chars.next()? {
            '\\' => chars.next(),
            '.' => None,
            c => Some(c),
        })
    })
}

/// Whether the key of a name begins with all of that of another.
#[cfg(feature = "primitiv")]
pub(super) fn is_inside(name: &str, outer: &str) -> bool {
    let mut rest = symbols(name);
    symbols(outer).all(|symbol| rest.next() == Some(symbol))
        && rest.next().is_none_or(|symbol| symbol.is_none())
}

/// The flat name of a statistic.
#[cfg(feature = "primitiv")]
pub(super) fn statistic(parameter: &str, stat: &str) -> String {
    format!("{parameter}@{stat}")
}

/// How many bytes of a flat name do not stand for the parameter.
#[cfg(feature = "primitiv")]
pub(super) fn own_len(stat: Option<&str>) -> u32 {
    let len = stat.map_or(0, |stat| statistic("", stat).len());
    // A name is shorter than its file's header may be.
    u32::try_from(len).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(key: &[&str], stat: Option<&str>) -> Address {
        Address {
            key: key.iter().map(|&part| part.to_owned()).collect(),
            stat: stat.map(ToOwned::to_owned),
        }
    }

    #[test]
    fn every_key_has_a_name_of_its_own_that_leads_back() {
        let keys: &[&[&str]] = &[
            &[""],
            &["", ""],
            &["a", "b"],
            &["a.b"],
            &["a\\", "b"],
            &["a\\.b"],
            &["a@b"],
            &["größe", "漢字"],
            &["@", ".", "\\"],
        ];
        let mut names: Vec<_> = keys.iter().map(|key| join(key)).collect();
        for (key, name) in keys.iter().zip(&names) {
            assert_eq!(Address::parse(name), Ok(address(key, None)), "{name}");
            for stat in ["", "Adam.m1", "a@b\\"] {
                let name = format!("{name}@{stat}");
                assert_eq!(
                    Address::parse(&name),
                    Ok(address(key, Some(stat))),
                    "{name}"
                );
            }
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), keys.len());
    }

    #[test]
    fn names_are_in_the_order_of_keys() {
        let keys: &[&[&str]] = &[
            &[""],
            &["", ""],
            &["", "a"],
            &["!"],
            &["a"],
            &["a", "b"],
            &["a", "b", "c"],
            &["a!"],
            &["a.b"],
            &["a\\", "b"],
            &["ab"],
        ];
        let name = |key: &[&str]| join(key);
        for a in keys {
            for b in keys {
                let (of_a, of_b) = (name(a), name(b));
                assert_eq!(symbols(&of_a).cmp(symbols(&of_b)), a.cmp(b), "{a:?} {b:?}");
                assert_eq!(is_inside(&of_a, &of_b), a.starts_with(b), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn a_backslash_that_escapes_nothing_is_no_name() {
        assert!(Address::parse("a\\b").is_err());
        assert!(Address::parse("a\\").is_err());
        assert!(Address::parse("a@b\\").is_ok());
    }
}
