//! YAML as a tree with places.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use crate::error::{Error, Result};
use crate::io::{Limits, Source};
use crate::model::Value;
use crate::prelude::*;

/// More than this is data, and belongs into an elements file.
const MAX_BYTES: u64 = 64 << 20;

/// A value of the file, and where it begins.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub at: u64,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Scalar { text: String, plain: bool },
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    /// Reads a file that is one YAML document.
    pub(super) fn read(source: &dyn Source, limits: &Limits) -> Result<Node> {
        let most = limits.header_bytes.min(MAX_BYTES);
        if source.len() > most {
            let message = format!("{} bytes of YAML, at most {most} are read", source.len());
            let error = Error::limit("cc4s.yaml", message).at(0..source.len());
            return Err(match most < MAX_BYTES {
                true => error.raised_by("header_bytes"),
                false => error,
            });
        }
        let bytes = source.read(0..source.len())?;
        let text = core::str::from_utf8(&bytes).map_err(|cause| {
            let at = cause.valid_up_to() as u64;
            broken(at, "the text is not UTF-8").because(cause)
        })?;
        Builder::new(text, limits.depth).document()
    }

    pub(super) fn error(&self, rule: &'static str, message: impl Into<String>) -> Error {
        Error::malformed(rule, message).at(self.at..self.at + 1)
    }

    /// The value of a key of a map.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        match &self.kind {
            Kind::Map(entries) => entries.iter().find(|(k, _)| k == key).map(|(_, node)| node),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The entries of a map.
    pub(super) fn entries(&self) -> Option<&[(String, Node)]> {
        match &self.kind {
            Kind::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The items of a list, or of a map with the keys 0, 1, ..., as cc4s writes lists.
    pub(super) fn items(&self) -> Option<Vec<&Node>> {
        let entries = match &self.kind {
            Kind::List(items) => return Some(items.iter().collect()),
            Kind::Map(entries) => entries,
            Kind::Scalar { text, plain } => {
                return (*plain && text.is_empty()).then(Vec::new);
            }
        };
        let mut items = Vec::with_capacity(entries.len());
        for (key, node) in entries {
            items.push((key.parse::<u64>().ok()?, node));
        }
        items.sort_by_key(|(key, _)| *key);
        let counted = (0u64..).zip(&items).all(|(place, (key, _))| place == *key);
        counted.then(|| items.into_iter().map(|(_, node)| node).collect())
    }

    /// The value as metadata.
    pub(super) fn value(&self) -> Value {
        match &self.kind {
            Kind::Scalar { text, plain: true } => plain_value(text),
            Kind::Scalar { text, .. } => Value::Str(text.clone()),
            Kind::List(items) => Value::List(items.iter().map(Node::value).collect()),
            Kind::Map(entries) => {
                let entries = entries.iter();
                Value::Map(
                    entries
                        .map(|(key, node)| (key.clone(), node.value()))
                        .collect(),
                )
            }
        }
    }
}

/// What a scalar without quotes stands for.
pub(super) fn plain_value(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Value::F64(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" => return Value::F64(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Value::F64(f64::NEG_INFINITY),
        _ => {}
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let numeric = |byte: u8| byte.is_ascii_digit() || b".eE+-".contains(&byte);
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        || !digits.bytes().all(numeric)
    {
        return Value::Str(text.to_owned());
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return match (text.parse(), text.parse()) {
            (Ok(number), _) => Value::I64(number),
            (_, Ok(number)) => Value::U64(number),
            _ => Value::Integer(text.trim_start_matches('+').to_owned()),
        };
    }
    text.parse()
        .map_or_else(|_| Value::Str(text.to_owned()), Value::F64)
}

fn broken(at: u64, message: impl Into<String>) -> Error {
    Error::malformed("cc4s.yaml", message).at(at..at + 1)
}

/// A list or map that is not complete yet.
struct Open {
    node: Node,
    /// The key whose value comes next.
    key: Option<String>,
    known: LookupMap<String, ()>,
}

/// Makes a tree from events.
struct Builder<'t> {
    text: &'t str,
    depth: usize,
    open: Vec<Open>,
    root: Option<Node>,
    /// The parser counts characters: so many are passed, and so many bytes.
    chars: usize,
    bytes: usize,
}

impl<'t> Builder<'t> {
    fn new(text: &'t str, depth: usize) -> Self {
        Self {
            text,
            depth,
            open: Vec::new(),
            root: None,
            chars: 0,
            bytes: 0,
        }
    }

    fn document(mut self) -> Result<Node> {
        for event in Parser::new_from_str(self.text) {
            let (event, span) = event.map_err(|cause| {
                let at = self.place(cause.marker().index());
                broken(at, format!("not YAML: {}", cause.info()))
            })?;
            self.event(event, span)?;
        }
        self.root
            .ok_or_else(|| broken(0, "there is no YAML document"))
    }

    /// The byte at which a character is. Events come in order, so that all of them together take one walk.
    fn place(&mut self, index: usize) -> u64 {
        let rest = self.text.get(self.bytes..).unwrap_or_default();
        for character in rest.chars().take(index.saturating_sub(self.chars)) {
            self.chars += 1;
            self.bytes += character.len_utf8();
        }
        self.bytes as u64
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<()> {
        let at = self.place(span.start.index());
        match event {
            Event::Scalar(text, style, _, tag) => {
                let text = text.into_owned();
                let plain = style == ScalarStyle::Plain && tag.is_none();
                self.add(Node {
                    at,
                    kind: Kind::Scalar { text, plain },
                })
            }
            Event::SequenceStart(..) => self.begin(at, Kind::List(Vec::new())),
            Event::MappingStart(..) => self.begin(at, Kind::Map(Vec::new())),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.add(open.node),
                None => Err(broken(at, "an end without a beginning")),
            },
            Event::Alias(_) => Err(broken(at, "aliases are not read")),
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(broken(at, "a second document; one is expected"))
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, at: u64, kind: Kind) -> Result<()> {
        if self.open.len() >= self.depth {
            let message = format!("nested deeper than {}", self.depth);
            let error = Error::limit("cc4s.yaml", message).at(at..at + 1);
            return Err(error.raised_by("depth"));
        }
        self.open.push(Open {
            node: Node { at, kind },
            key: None,
            known: LookupMap::new(),
        });
        Ok(())
    }

    fn add(&mut self, node: Node) -> Result<()> {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.node.kind {
            Kind::List(items) => items.push(node),
            Kind::Map(entries) => match open.key.take() {
                Some(key) => entries.push((key, node)),
                None => {
                    let Kind::Scalar { text, .. } = node.kind else {
                        return Err(broken(node.at, "a key that is not a scalar"));
                    };
                    if open.known.insert(text.clone(), ()).is_some() {
                        let message = format!("the key {text:?} is there twice");
                        let error = Error::malformed("cc4s.duplicate", message);
                        return Err(error.at(node.at..node.at + 1));
                    }
                    open.key = Some(text);
                }
            },
            Kind::Scalar { .. } => {}
        }
        Ok(())
    }
}
