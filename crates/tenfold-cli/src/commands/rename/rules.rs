//! Rules as sed has them: `s/PATTERN/REPLACEMENT/FLAGS`, with the regular expressions that `--regex` takes.

use std::borrow::Cow;

use regex::{Captures, Regex, RegexBuilder};

use crate::commands;
use crate::failure::{Failure, Result};

/// One rule.
pub(crate) struct Rule {
    text: String,
    pattern: Regex,
    replacement: Vec<Piece>,
    /// All matches, not only the first.
    all: bool,
}

/// A piece of a replacement.
#[derive(Debug, Eq, PartialEq)]
enum Piece {
    Text(String),
    /// What a group of the pattern matched; 0 is the whole match.
    Group(usize),
}

impl Rule {
    /// `s`, a character that separates, the pattern, the replacement, and `g` or `i` after it.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let wrong = |why: String| Failure::Message(format!("--rule {text}: {why}"));
        let shape = || wrong("expected s/PATTERN/REPLACEMENT/".into());
        let mut rest = text.strip_prefix('s').ok_or_else(shape)?.chars();
        let separator = rest.next().filter(|c| !c.is_alphanumeric() && *c != '\\');
        let separator = separator.ok_or_else(shape)?;
        let (pattern, rest) = until(rest.as_str(), separator).ok_or_else(shape)?;
        let (replacement, flags) = until(rest, separator).ok_or_else(shape)?;
        if pattern.is_empty() {
            return Err(wrong(
                "the pattern is empty and would match every name".into(),
            ));
        }
        let (mut all, mut ignore_case) = (false, false);
        for flag in flags.chars() {
            match flag {
                'g' => all = true,
                'i' | 'I' => ignore_case = true,
                _ => return Err(wrong(format!("{flag:?} is neither g nor i"))),
            }
        }
        commands::regex(&pattern).map_err(wrong)?;
        let pattern = RegexBuilder::new(&pattern)
            .case_insensitive(ignore_case)
            .build()
            .map_err(|cause| wrong(cause.to_string()))?;
        let replacement = pieces(&replacement, pattern.captures_len()).map_err(wrong)?;
        Ok(Self {
            text: format!("the rule {text}"),
            pattern,
            replacement,
            all,
        })
    }

    /// Takes this from the beginning of names.
    pub(crate) fn strip_prefix(prefix: &str) -> Result<Self> {
        Self::at_the_beginning("--strip-prefix", prefix, &regex::escape(prefix), "")
    }

    /// Puts this in front of names.
    pub(crate) fn add_prefix(prefix: &str) -> Result<Self> {
        Self::at_the_beginning("--add-prefix", prefix, "", prefix)
    }

    fn at_the_beginning(option: &str, prefix: &str, from: &str, to: &str) -> Result<Self> {
        let wrong = |why: String| Failure::Message(format!("{option} {prefix:?}: {why}"));
        if prefix.is_empty() {
            return Err(wrong("the prefix is empty".into()));
        }
        let pattern = Regex::new(&format!("^{from}")).map_err(|cause| wrong(cause.to_string()))?;
        Ok(Self {
            text: format!("{option} {prefix:?}"),
            pattern,
            replacement: vec![Piece::Text(to.to_owned())],
            all: false,
        })
    }

    /// The rule as it was given.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The new name, if the pattern matches.
    pub(crate) fn apply(&self, name: &str) -> Option<String> {
        let limit = usize::from(!self.all);
        let replace = |found: &Captures<'_>| self.replacement(found);
        match self.pattern.replacen(name, limit, replace) {
            Cow::Owned(new) => Some(new),
            Cow::Borrowed(_) => None,
        }
    }

    fn replacement(&self, found: &Captures<'_>) -> String {
        let text = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Group(group) => {
                let group = found.get(*group);
                group.map_or(String::new(), |group| group.as_str().to_owned())
            }
        };
        self.replacement.iter().map(text).collect()
    }
}

/// The text before a separator, where a backslash in front of one makes it part of the text, and what is behind it.
fn until(text: &str, separator: char) -> Option<(String, &str)> {
    let mut before = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let next = chars.next()?;
                if next != separator {
                    before.push('\\');
                }
                before.push(next);
            }
            c if c == separator => return Some((before, chars.as_str())),
            c => before.push(c),
        }
    }
    None
}

/// `\1` to `\9` and `&` stand for what was matched; a backslash in front of what is not a letter makes it plain.
fn pieces(text: &str, groups: usize) -> std::result::Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let group = match c {
            '&' => Some(0),
            '\\' => {
                let next = chars.next().unwrap_or('\\');
                if next.is_alphabetic() {
                    return Err(format!(
                        "\\{next} has no meaning in a replacement; there are \\1 to \\9 and &"
                    ));
                }
                let digit = next
                    .to_digit(10)
                    .and_then(|digit| usize::try_from(digit).ok());
                if digit.is_none() {
                    plain.push(next);
                }
                digit
            }
            c => {
                plain.push(c);
                None
            }
        };
        let Some(group) = group else { continue };
        if group >= groups {
            let groups = groups.saturating_sub(1);
            return Err(format!(
                "\\{group}: the pattern has {groups} groups; a group is in ( and ) without backslashes"
            ));
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
        }
        pieces.push(Piece::Group(group));
    }
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(rule: &str, name: &str) -> Option<String> {
        Rule::parse(rule).ok().and_then(|rule| rule.apply(name))
    }

    #[test]
    fn rules_are_those_of_sed() {
        for (rule, name, new) in [
            (r"s/^model\.//", "model.a.model.b", Some("a.model.b")),
            (r"s/^model\.//", "a.model.b", None),
            ("s/a/x/", "banana", Some("bxnana")),
            ("s/a/x/g", "banana", Some("bxnxnx")),
            ("s/A/x/gi", "banana", Some("bxnxnx")),
            (
                r"s/h\.(\d+)\.(.*)/layers.\1.<&>.\2/",
                "h.12.w",
                Some("layers.12.<h.12.w>.w"),
            ),
            (r"s/(\d+)/\1\1\&\0/", "a7", Some("a77&7")),
            ("s|a/b|c/d|", "a/b", Some("c/d")),
            (r"s/a\/b/c\/d/", "a/b", Some("c/d")),
            (r"s/w$/$1/", "w", Some("$1")),
            ("s/(x)?y/[\\1]/", "y", Some("[]")),
            // The same name again is a match too.
            ("s/a/a/", "a", Some("a")),
            ("s/é+/e/", "éé", Some("e")),
        ] {
            assert_eq!(apply(rule, name).as_deref(), new, "{rule} {name}");
        }
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for wrong in [
            "",
            "s",
            "s/",
            "s/a",
            "s/a/b",
            "y/a/b/",
            "s//b/",
            "s/a/b/x",
            "s/(/b/",
            r"s/a/\1/",
            "saabab",
            r"s/a\/b/c",
        ] {
            assert!(Rule::parse(wrong).is_err(), "{wrong}");
        }
    }
}
