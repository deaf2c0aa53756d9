//! The graph of objects: which of them a variable belongs to, and what it was called when it was made.

use bytes::Bytes;

use super::entry::RULES;
use crate::error::Result;
use crate::prelude::*;
use crate::wire::protobuf::{Value, Walker};

/// The names that variables were made with, by the keys that their values are stored under.
pub(super) fn full_names(graph: &Bytes) -> Result<LookupMap<String, String>> {
    let end = graph.len() as u64;
    let mut w = Walker::over(graph, 0..end, RULES);
    let mut names = LookupMap::default();
    // Objects of the graph; of each the attributes, of each of these key and name.
    while let Some(object) = w.next(end)? {
        let (1, Value::Len(object)) = (object.number, object.value) else {
            continue;
        };
        w.enter(&object);
        while let Some(attribute) = w.next(object.end)? {
            let (2, Value::Len(attribute)) = (attribute.number, attribute.value) else {
                continue;
            };
            w.enter(&attribute);
            let (mut full, mut key) = (String::new(), String::new());
            while let Some(field) = w.next(attribute.end)? {
                match (field.number, field.value) {
                    (2, Value::Len(text)) => full = w.text(&text, "a name")?,
                    (3, Value::Len(text)) => key = w.text(&text, "a key")?,
                    _ => {}
                }
            }
            if !full.is_empty() && !key.is_empty() {
                names.insert(key, full);
            }
        }
    }
    Ok(names)
}
