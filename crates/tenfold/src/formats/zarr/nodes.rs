//! The nodes of a tree: which there are, and what their metadata says.

use super::array::{Described, Node};
use super::store::Store;
use super::{ARRAY, ATTRIBUTES, COPIES, GROUP, NODE, json, v2, v3};
use crate::error::{Error, Result};
use crate::format::Context;
use crate::model::{Map, Metadata, Value};
use crate::prelude::*;

/// A node by its path, which is empty at the root, and which documents there are of it.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) path: String,
    has_node: bool,
    has_array: bool,
    has_group: bool,
    has_attributes: bool,
}

/// The nodes of a store that was listed.
pub(super) fn find(store: &Store) -> Vec<Found> {
    of_keys(store.keys())
}

/// Nodes in the order of the bytes of their paths' components.
pub(super) fn of_keys<'k>(keys: impl Iterator<Item = &'k str>) -> Vec<Found> {
    let mut found: Vec<(String, &'static str)> = Vec::new();
    for key in keys {
        let (path, name) = key.rsplit_once('/').unwrap_or(("", key));
        let known = [NODE, ARRAY, GROUP, ATTRIBUTES];
        if let Some(name) = known.into_iter().find(|known| *known == name) {
            push_tight(&mut found, (path.to_owned(), name));
        }
    }
    found.sort_by(|(a, _), (b, _)| a.split('/').cmp(b.split('/')));
    let mut nodes: Vec<Found> = Vec::new();
    for (path, name) in found {
        if nodes.last().is_none_or(|node| node.path != path) {
            let node = Found {
                path,
                ..Found::default()
            };
            push_tight(&mut nodes, node);
        }
        let Some(node) = nodes.last_mut() else {
            continue;
        };
        match name {
            NODE => node.has_node = true,
            ARRAY => node.has_array = true,
            GROUP => node.has_group = true,
            _ => node.has_attributes = true,
        }
    }
    // Attributes alone are of nothing.
    nodes.retain(|node| node.has_node || node.has_array || node.has_group);
    nodes
}

impl Found {
    fn key(&self, name: &str) -> String {
        match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}/{name}"),
        }
    }

    /// The documents of it that count: those of version 3 before those of version 2, and there those of an array.
    pub(super) fn documents(&self) -> Vec<String> {
        if self.has_node {
            return vec![self.key(NODE)];
        }
        let mut keys = vec![self.key(if self.has_array { ARRAY } else { GROUP })];
        if self.has_attributes {
            keys.push(self.key(ATTRIBUTES));
        }
        keys
    }

    pub(super) fn is_v3(&self) -> bool {
        self.has_node
    }

    /// What the documents say; the first of them about an error.
    pub(super) fn describe(&self, documents: &[Map]) -> Result<Described> {
        let Some(first) = documents.first() else {
            return Err(Error::argument("a node without a document"));
        };
        if self.has_node {
            return v3::node(first);
        }
        let node = if self.has_array {
            Node::Array(v2::array(first)?)
        } else {
            v2::check_format(first)?;
            Node::Group
        };
        let metadata = documents.get(1).map(Metadata::from).unwrap_or_default();
        Ok(Described { node, metadata })
    }
}

/// Copies of all metadata in one place: a document by its key.
pub(super) struct Copies(Vec<(String, Map)>);

impl Copies {
    /// Those that are in the metadata of the root.
    pub(super) fn v3(root: &Map) -> Option<Self> {
        let Value::Map(copies) = root.get("consolidated_metadata")? else {
            return None;
        };
        let Value::Map(nodes) = copies.get("metadata")? else {
            return None;
        };
        let nodes = nodes.iter().filter_map(|(path, node)| match node {
            Value::Map(map) => Some((format!("{path}/{NODE}"), map)),
            _ => None,
        });
        Some(Self(nodes.collect()))
    }

    /// Those of a `.zmetadata`.
    pub(super) fn v2(document: &Map) -> Result<Self> {
        let nodes = json::object(document, "metadata")?;
        let nodes = nodes.iter().filter_map(|(key, node)| match node {
            Value::Map(map) => Some((key.to_owned(), map)),
            _ => None,
        });
        Ok(Self(nodes.collect()))
    }

    /// Those of a store that cannot be listed: all that is known of it. Keys that lead out of it are refused.
    pub(super) fn read(store: &Store, cx: &Context<'_>) -> Result<Vec<(String, Map)>> {
        let mut all: Vec<(String, Map)> = Vec::new();
        let mut copies = None;
        let keys = [NODE, COPIES, ARRAY, GROUP, ATTRIBUTES].map(ToOwned::to_owned);
        store.documents(cx, &keys, &mut |key, bytes| {
            let Ok(bytes) = bytes else {
                return Ok(());
            };
            let map = json::parse(&bytes).map_err(|error| error.adding(&format!(" ({key})")))?;
            if key == COPIES {
                copies = Some(Self::v2(&map)?);
            } else {
                if key == NODE {
                    copies = Self::v3(&map);
                }
                all.push((key.to_owned(), map));
            }
            Ok(())
        })?;
        for (key, map) in copies.into_iter().flat_map(|copies| copies.0) {
            let is_plain = |part: &str| !matches!(part, "" | "." | "..");
            if !key.split('/').all(is_plain) || key.contains(['\\', '\0']) {
                let message = format!("the copies of metadata have the key {key:?}");
                return Err(Error::malformed("zarr.consolidated", message));
            }
            if all.iter().all(|(known, _)| *known != key) {
                all.push((key, map));
            }
        }
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(all)
    }

    /// The keys whose documents are not what the copies say, or are not there.
    pub(super) fn differing<'d>(&self, documents: &dyn Fn(&str) -> Option<&'d Map>) -> Vec<String> {
        let plain = |map: &Map| {
            let entries = map
                .iter()
                .filter(|(key, _)| *key != "consolidated_metadata");
            entries
                .map(|(key, value)| (key.to_owned(), value))
                .collect::<Vec<_>>()
        };
        let is_same = |key: &String, copy: &Map| {
            let own = documents(key);
            own.is_some_and(|own| {
                let (mut a, mut b) = (plain(own), plain(copy));
                a.sort_by(|a, b| a.0.cmp(&b.0));
                b.sort_by(|a, b| a.0.cmp(&b.0));
                // As text, because NaN does not equal itself.
                format!("{a:?}") == format!("{b:?}")
            })
        };
        let differing = self.0.iter().filter(|(key, copy)| !is_same(key, copy));
        differing.map(|(key, _)| key.clone()).collect()
    }
}
