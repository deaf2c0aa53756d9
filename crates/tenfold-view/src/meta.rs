//! Metadata: all keys, and long values in parts.

use serde::Serialize;
use tenfold::documents::ShownValue;
use tenfold::model::{List, Metadata, Value};

use crate::answer::{Answer, Int, Refusal};
use crate::opened::Opened;
use crate::query::Query;

/// Letters of a text that a list of keys shows.
const SHORT: usize = 400;
/// Entries that are given at once.
const MOST: u64 = 1000;
/// Letters that are given at once.
const MOST_TEXT: u64 = 1 << 20;

#[derive(Serialize)]
struct Keys<'a> {
    count: usize,
    from: Int,
    entries: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    key: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    /// What the entries of a list are.
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<&'static str>,
    /// Entries, or bytes of a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<Int>,
    /// Whether it follows from the file, and is not said by it.
    fact: bool,
    /// Whether the value is cut.
    cut: bool,
    value: ShownValue<Value>,
}

impl<'a> Entry<'a> {
    fn new(key: &'a str, value: &Value, fact: bool) -> Self {
        let (of, count) = match value {
            Value::List(list) => (list.kind().map(|kind| kind.name()), Some(list.len() as u64)),
            Value::Elsewhere(list) => (Some(list.kind.name()), Some(list.count)),
            Value::Map(map) => (None, Some(map.len() as u64)),
            Value::Str(text) => (None, Some(text.len() as u64)),
            Value::Bytes(bytes) => (None, Some(bytes.len() as u64)),
            _ => (None, None),
        };
        let short = match value {
            Value::Str(text) if text.chars().nth(SHORT).is_some() => {
                Some(Value::Str(text.chars().take(SHORT).collect::<String>()))
            }
            Value::Bytes(bytes) if bytes.len() > SHORT => Some(Value::Bytes(bytes.slice(..SHORT))),
            _ => None,
        };
        Self {
            key,
            kind: value.type_name(),
            of,
            count: count.map(Int),
            fact,
            cut: short.is_some(),
            value: ShownValue::new(short.unwrap_or_else(|| value.clone()), false),
        }
    }
}

#[derive(Serialize)]
struct Items {
    key: String,
    count: Int,
    from: Int,
    items: Vec<ShownValue<Value>>,
}

#[derive(Serialize)]
struct Matches {
    key: String,
    matches: Vec<Match>,
    /// Whether there are more.
    more: bool,
}

#[derive(Serialize)]
struct Match {
    at: usize,
    value: ShownValue<Value>,
}

#[derive(Serialize)]
struct Text {
    key: String,
    count: Int,
    text: String,
}

pub(crate) fn meta(opened: &Opened, query: &Query) -> Result<Answer, Refusal> {
    let from = query.number_or("from", 0)?;
    let count = query.number_or("n", MOST)?.min(MOST);
    let tensor;
    let described = if query.text("t").is_some() {
        tensor = opened.tensor(query)?.1;
        &tensor.info().metadata
    } else {
        opened.archive()?.metadata()
    };
    let Some(key) = query.text("key") else {
        return Answer::json(&Keys {
            count: described.len(),
            from: Int(from),
            entries: taken(described.entries(), from, count)
                .map(|(key, value, fact)| Entry::new(key, value, fact))
                .collect(),
        });
    };
    let metadata = match described.get(key) {
        Some(Value::Elsewhere(_)) => opened.metadata()?,
        _ => described,
    };
    let value = found(metadata, key)?;
    if let Some(text) = query.text("find") {
        return find(key, value, text, count);
    }
    match value {
        Value::Str(text) => Answer::json(&Text {
            key: key.to_owned(),
            count: Int(text.len() as u64),
            text: taken(
                text.chars(),
                from,
                query.number_or("n", MOST_TEXT)?.min(MOST_TEXT),
            )
            .collect(),
        }),
        Value::List(list) => Answer::json(&items(key, list, from, count)),
        value => {
            // What has no entries is given whole.
            let items = vec![ShownValue::new(value.clone(), true)];
            Answer::json(&Items {
                key: key.to_owned(),
                count: Int(1),
                from: Int(0),
                items,
            })
        }
    }
}

fn found<'a>(metadata: &'a Metadata, key: &str) -> Result<&'a Value, Refusal> {
    let value = metadata.get(key);
    value.ok_or_else(|| Refusal::unknown(format!("there is no key {key:?}")))
}

fn items(key: &str, list: &List, from: u64, count: u64) -> Items {
    Items {
        key: key.to_owned(),
        count: Int(list.len() as u64),
        from: Int(from),
        items: taken(list.iter(), from, count)
            .map(|value| ShownValue::new(value, false))
            .collect(),
    }
}

/// The entries of a list whose text contains another.
fn find(key: &str, value: &Value, text: &str, count: u64) -> Result<Answer, Refusal> {
    let Value::List(list) = value else {
        return Err(Refusal::wrong(format!("{key:?} is no list")));
    };
    let wanted = list.iter().enumerate().filter(|(_, value)| {
        let number = || value.as_i64().map(|number| number.to_string());
        match value.as_str() {
            Some(entry) => entry.contains(text),
            None => number().is_some_and(|number| number == text),
        }
    });
    let mut matches: Vec<_> = taken(wanted, 0, count + 1)
        .map(|(at, value)| Match {
            at,
            value: ShownValue::new(value, false),
        })
        .collect();
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    let more = matches.len() > most;
    matches.truncate(most);
    Answer::json(&Matches {
        key: key.to_owned(),
        matches,
        more,
    })
}

fn taken<T>(all: impl Iterator<Item = T>, from: u64, count: u64) -> impl Iterator<Item = T> {
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    all.skip(size(from)).take(size(count))
}
