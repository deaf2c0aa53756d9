//! `tenfold verify --against LIST`: reads what `tenfold digest` printed.

use std::path::Path;

use tenfold::model::{List, Map, Value};
use tenfold::ops::{self, Expected};

use crate::commands::Session;
use crate::failure::{Failure, Result};
use crate::metadata::read_json;
use crate::output::{Clean, Verbatim, show_path};

/// A list of one or several files, by the paths that they had.
pub(crate) struct Lists {
    path: String,
    files: Vec<(String, Expected)>,
    /// The names of tensors are as they are shown, not as they are.
    is_shown: bool,
}

impl Lists {
    pub(crate) fn read(path: &Path, session: &Session<'_>) -> Result<Self> {
        let shown = show_path(path);
        let text = String::from_utf8(session.read(path)?).map_err(|_| {
            Failure::Message(format!(
                "{shown} is not text, as a list that `digest` printed is"
            ))
        })?;
        let is_shown = !text.trim_start().starts_with(['{', '[']);
        let files = if is_shown {
            parse(&text).map_err(|(line, why)| format!("line {line} {why}"))
        } else {
            parse_json(&text)
        };
        let files = files.map_err(|why| {
            Failure::Message(format!(
                "{shown}: {why}; a list is what `tenfold digest` prints, as text or as JSON"
            ))
        })?;
        Ok(Self {
            path: shown,
            files,
            is_shown,
        })
    }

    /// The name that a tensor has in the list.
    pub(crate) fn listed(&self, name: &str) -> String {
        if self.is_shown {
            Verbatim(name).to_string()
        } else {
            name.to_owned()
        }
    }

    /// What the list says of a file: under its path, else under its name, else it is the only one.
    pub(crate) fn of(&self, path: &Path) -> Result<&Expected> {
        let shown = show_path(path);
        let name = |path: &str| {
            path.rsplit(std::path::is_separator)
                .next()
                .map(str::to_owned)
        };
        let same_path = self.files.iter().find(|(listed, _)| *listed == shown);
        let mut same_name = self
            .files
            .iter()
            .filter(|(listed, _)| name(listed) == name(&shown));
        let found = match (same_path, same_name.next(), same_name.next(), &*self.files) {
            (Some(found), ..) | (_, Some(found), None, _) | (_, None, _, [found]) => found,
            _ => {
                let message = format!("{} does not say what {shown} should be", self.path);
                return Err(Failure::Message(message));
            }
        };
        Ok(&found.1)
    }
}

/// A line for each tensor, and one for the content that ends the list of a file.
fn parse(text: &str) -> std::result::Result<Vec<(String, Expected)>, (usize, &'static str)> {
    let mut files = Vec::new();
    let mut open = Expected::default();
    let mut line = 0;
    for text in text.lines() {
        line += 1;
        let fail = |why| (line, why);
        if let Some(content) = text.strip_prefix("content ") {
            let (sum, path) = match content.split_once("  ") {
                Some((sum, path)) => (sum, path),
                None => return Err(fail("names no file")),
            };
            open.content = if sum.starts_with("unknown") {
                None
            } else {
                Some(sha256(sum).ok_or(fail("has no SHA-256"))?)
            };
            files.push((path.to_owned(), std::mem::take(&mut open)));
            continue;
        }
        // The name may begin with spaces, and be nothing.
        let (Some(sum), Some("  "), Some(name)) =
            (text.get(..64), text.get(64..66), text.get(66..))
        else {
            return Err(fail("is neither a tensor nor the content of a file"));
        };
        let sum = match sum.trim_end() {
            "unreadable" => None,
            sum => Some(sha256(sum).ok_or(fail("has no SHA-256"))?),
        };
        open.tensors.push((name.to_owned(), sum));
    }
    if open.tensors.is_empty() && !files.is_empty() {
        Ok(files)
    } else {
        Err((line, "is not the end of a list"))
    }
}

/// Every tensor by name, with its SHA-256 where it could be read.
type Tensors = Vec<(String, Option<[u8; 32]>)>;

/// The documents of `tenfold digest --json`: one, or an array of them.
fn parse_json(text: &str) -> std::result::Result<Vec<(String, Expected)>, String> {
    let value = read_json(text).map_err(|error| error.message().to_owned())?;
    let documents = match value {
        Value::List(documents) => documents,
        document => vec![document].into(),
    };
    let mut files = Vec::new();
    for document in documents.iter() {
        let Value::Map(document) = document else {
            return Err("expected an object for every file".into());
        };
        match document.get("schema") {
            Some(Value::Str(schema)) if schema == "tenfold.digest/1" => {}
            // Nothing is known of a file that could not be read.
            Some(Value::Str(schema)) if schema == "tenfold.error/1" => continue,
            _ => return Err("the schema is not tenfold.digest/1".into()),
        }
        let Some(Value::Str(path)) = document.get("file") else {
            return Err("a document names no file".into());
        };
        let mut expected = Expected::default();
        // What another version of the digest says of the content cannot be compared, only the tensors.
        let version = document
            .get("content_version")
            .and_then(|value| value.as_u64());
        if version.is_none_or(|version| version == u64::from(ops::CONTENT_VERSION)) {
            expected.content = sum_of(&document, "content")?;
        }
        expected.tensors = tensors_of(&document)?;
        files.push((Clean(&path).to_string(), expected));
    }
    Ok(files)
}

fn tensors_of(document: &Map) -> std::result::Result<Tensors, String> {
    let tensors = match document.get("tensors") {
        Some(Value::List(tensors)) => tensors,
        Some(Value::Empty(_)) => List::new(),
        _ => return Err("a document has no tensors".into()),
    };
    let tensors = tensors.iter().map(|tensor| match tensor {
        Value::Map(tensor) => match tensor.get("name") {
            Some(Value::Str(name)) => Ok((name, sum_of(&tensor, "sha256")?)),
            _ => Err("a tensor has no name".into()),
        },
        _ => Err("expected an object for every tensor".into()),
    });
    tensors.collect()
}

fn sum_of(map: &Map, key: &str) -> std::result::Result<Option<[u8; 32]>, String> {
    match map.get(key) {
        Some(Value::Null) => Ok(None),
        Some(Value::Str(text)) => match sha256(&text) {
            Some(sum) => Ok(Some(sum)),
            None => Err(format!("{text:?} is not a SHA-256")),
        },
        _ => Err(format!("there is no {key}")),
    }
}

fn sha256(text: &str) -> Option<[u8; 32]> {
    let mut sum = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, digits) in sum.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_list_has_tensors_and_ends_with_the_content() {
        let sum = "ab".repeat(32);
        let unreadable = format!("{:64}", "unreadable");
        let text = format!(
            "{sum}   b  c\n{unreadable}  d\ncontent {sum}  x y.mag\ncontent unknown: no  e\n"
        );
        let files = parse(&text).unwrap_or_default();
        assert_eq!(files.len(), 2);
        assert_eq!(
            files.first().map(|(path, _)| path.as_str()),
            Some("x y.mag")
        );
        let tensors: Vec<_> = files.iter().flat_map(|(_, list)| &list.tensors).collect();
        assert_eq!(
            tensors,
            [
                &(" b  c".to_owned(), Some([0xab; 32])),
                &("d".to_owned(), None)
            ]
        );
    }

    #[test]
    fn what_is_no_list_is_refused_with_the_line() {
        let sum = "ab".repeat(32);
        let wrong = [
            ("", 0),
            ("{}", 1),
            (&format!("{sum}  a"), 1),
            (&format!("{sum}  a\ncontent x  y"), 2),
            (&format!("{}  a\ncontent {sum}  y", "xy".repeat(32)), 1),
        ];
        for (text, line) in wrong {
            assert_eq!(
                parse(text).map(drop).map_err(|(line, _)| line),
                Err(line),
                "{text:?}"
            );
        }
    }
}
