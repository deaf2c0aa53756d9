//! What `.metadata` says: what was saved, in which chunks, and where these are.

use alloc::borrow::Cow;

use super::globals::{self, Class, instance};
use crate::error::{Error, Result};
use crate::model::{DType, Shape, TensorInfo, Tile};
use crate::prelude::*;
use crate::wire::pickle::{Budget, Kind, Node, Tree, Value};

/// What was saved under a name.
pub(super) enum Saved {
    Tensor(Result<TensorMeta>),
    Object,
}

/// A tensor and its chunks.
pub(super) struct TensorMeta {
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    pub(super) chunks: Vec<Tile>,
}

/// Where an item is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// By its place in the list of files.
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) is_zstd: bool,
}

impl Place {
    pub(super) fn end(&self) -> u64 {
        self.offset.saturating_add(self.len)
    }
}

/// Items that have the same bytes.
pub(super) struct Overlap {
    pub(super) names: [String; 2],
    /// By its place in the list of files.
    pub(super) file: u32,
    pub(super) bytes: Range<u64>,
    /// How many items begin within another one.
    pub(super) count: u64,
}

/// What an item is of: a name, and of a tensor where the chunk begins.
type Key<'t> = (Cow<'t, str>, Option<Shape>);

/// Everything that `.metadata` says.
pub(super) struct Described<'t> {
    pub(super) version: Option<String>,
    /// In the order in which they are listed.
    pub(super) saved: Vec<(String, Saved)>,
    /// The files, as they are named.
    pub(super) files: Vec<String>,
    places: LookupMap<Key<'t>, Place>,
    /// The keys that lead to what is under a name.
    paths: LookupMap<String, Vec<String>>,
}

/// What a chunk takes in memory, with all that finds it.
const CHUNK: usize = size_of::<Tile>() * 2 + 256;
const TENSOR: usize = size_of::<TensorInfo>() + 512;
const ITEM: usize = size_of::<Key<'_>>() + size_of::<Place>() + 64;

impl<'t> Described<'t> {
    pub(super) fn parse(tree: &'t Tree<'_>, rank: usize, budget: &mut Budget) -> Result<Self> {
        let root = tree.root()?;
        let Some(root) = instance(&root, Class::Metadata)? else {
            let message = format!(
                "the pickle holds {}, torch.distributed.checkpoint.metadata.Metadata is expected",
                root.what()
            );
            return Err(Error::malformed("dcp.metadata", message));
        };
        let mut described = Self {
            version: None,
            saved: Vec::new(),
            files: Vec::new(),
            places: LookupMap::default(),
            paths: LookupMap::default(),
        };
        let (mut has_saved, mut has_places) = (false, false);
        for attribute in attributes(root)? {
            let (key, value) = attribute?;
            match &*key {
                "state_dict_metadata" => {
                    has_saved = true;
                    described.read_saved(dict(&value, &key)?, rank, budget)?;
                }
                "storage_data" => {
                    has_places = true;
                    described.read_places(dict(&value, &key)?, rank, budget)?;
                }
                "planner_data" if matches!(value, Value::Node(_)) => {
                    described.read_paths(&value, budget)?;
                }
                "version" => {
                    if let Value::Text(version) = &value {
                        described.version = Some(version.to_string());
                    }
                }
                _ => {}
            }
        }
        if has_saved && has_places {
            return Ok(described);
        }
        let message = "state_dict_metadata or storage_data is missing";
        Err(Error::malformed("dcp.metadata", message))
    }

    /// The place of an item.
    pub(super) fn place(&self, name: &'t str, start: Option<&Shape>) -> Option<Place> {
        let key = (Cow::Borrowed(name), start.cloned());
        self.places.get(&key).copied()
    }

    /// Items whose bytes are another's, too: the names of the first two, the bytes, and how many more there are.
    pub(super) fn overlapping(&self) -> Option<Overlap> {
        let mut places: Vec<(&Place, &str)> = (self.places.iter())
            .filter(|(_, place)| place.len > 0)
            .map(|((name, _), place)| (place, &**name))
            .collect();
        places.sort_unstable_by_key(|(place, name)| (place.file, place.offset, place.end(), *name));
        let mut found: Option<Overlap> = None;
        let mut widest: Option<(&Place, &str)> = None;
        for (place, name) in places {
            match widest {
                Some((before, first))
                    if before.file == place.file && before.end() > place.offset =>
                {
                    let overlap = found.get_or_insert_with(|| Overlap {
                        names: [first.to_owned(), name.to_owned()],
                        file: place.file,
                        bytes: place.offset..before.end().min(place.end()),
                        count: 0,
                    });
                    overlap.count += 1;
                    if place.end() > before.end() {
                        widest = Some((place, name));
                    }
                }
                _ => widest = Some((place, name)),
            }
        }
        found
    }

    /// What is left of a name below some keys, joined by dots; `None` where it is not below them.
    pub(super) fn below(&self, name: &str, root: &str) -> Option<String> {
        if let Some(path) = self.paths.get(name) {
            let mut rest = root;
            for (depth, key) in path.iter().enumerate() {
                rest = rest.strip_prefix(key.as_str())?;
                let Some(further) = rest.strip_prefix('.') else {
                    let below = path.get(depth + 1..).unwrap_or_default();
                    return (rest.is_empty() && !below.is_empty()).then(|| below.join("."));
                };
                rest = further;
            }
            return None;
        }
        let below = name.strip_prefix(root)?.strip_prefix('.')?;
        (!below.is_empty()).then(|| below.to_owned())
    }

    fn read_saved(&mut self, node: Node<'t>, rank: usize, budget: &mut Budget) -> Result<()> {
        let mut names: LookupMap<String, ()> = LookupMap::default();
        for entry in node.entries() {
            let (name, value) = entry?;
            let name = text(&name, "a name")?.into_owned();
            budget.charge(TENSOR + 2 * name.len())?;
            if names.insert(name.clone(), ()).is_some() {
                let message = "two things have this name";
                return Err(Error::malformed("dcp.duplicate", message).in_tensor(&name));
            }
            let saved = if instance(&value, Class::Bytes)?.is_some() {
                Saved::Object
            } else {
                Saved::Tensor(tensor(&value, rank, budget).map_err(|error| error.in_tensor(&name)))
            };
            push_tight(&mut self.saved, (name, saved));
        }
        Ok(())
    }

    fn read_places(&mut self, node: Node<'t>, rank: usize, budget: &mut Budget) -> Result<()> {
        let mut files: LookupMap<Cow<'t, str>, u32> = LookupMap::default();
        for entry in node.entries() {
            let (key, value) = entry?;
            budget.charge(ITEM)?;
            let key = index(&key, rank)?;
            let place = self.read_place(&value, &mut files);
            let place = place.map_err(|error| error.in_tensor(&key.0))?;
            if self.places.contains_key(&key) {
                let (name, start) = key;
                let chunk = start.map_or_else(String::new, |start| {
                    format!(" of the chunk at {:?}", &*start)
                });
                let message = format!("storage_data says twice where the item{chunk} is");
                return Err(Error::malformed("dcp.duplicate", message).in_tensor(&name));
            }
            self.places.insert(key, place);
        }
        Ok(())
    }

    fn read_place(
        &mut self,
        value: &Value<'t>,
        files: &mut LookupMap<Cow<'t, str>, u32>,
    ) -> Result<Place> {
        let Some(node) = instance(value, Class::Place)? else {
            let message = format!("the place of an item is {}", value.what());
            return Err(Error::malformed("dcp.metadata", message));
        };
        let (mut path, mut offset, mut len, mut is_zstd) = (None, None, None, false);
        for attribute in attributes(node)? {
            let (key, value) = attribute?;
            match &*key {
                "relative_path" => path = Some(text(&value, "the file of an item")?),
                "offset" => offset = Some(number(&value, "the offset of an item", "dcp.item")?),
                "length" => len = Some(number(&value, "the length of an item", "dcp.item")?),
                "transform_descriptors" => is_zstd = transforms(&value)?,
                _ => {}
            }
        }
        let (Some(path), Some(offset), Some(len)) = (path, offset, len) else {
            let message = "an item without a file, an offset or a length";
            return Err(Error::malformed("dcp.metadata", message));
        };
        let file = match files.get(&path) {
            Some(file) => *file,
            None => {
                check_path(&path)?;
                let file = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
                self.files.push(path.to_string());
                files.insert(path, file);
                file
            }
        };
        Ok(Place {
            file,
            offset,
            len,
            is_zstd,
        })
    }

    fn read_paths(&mut self, value: &Value<'t>, budget: &mut Budget) -> Result<()> {
        for entry in dict(value, "planner_data")?.entries() {
            let (name, path) = entry?;
            let (Value::Text(name), Value::Node(path)) = (name, path) else {
                continue;
            };
            let mut keys = Vec::new();
            for key in path.items() {
                let key = match key? {
                    Value::Text(key) => key.into_owned(),
                    other => other.what(),
                };
                budget.charge(size_of::<String>() + key.len())?;
                push_tight(&mut keys, key);
            }
            budget.charge(96 + name.len())?;
            self.paths.insert(name.into_owned(), keys);
        }
        Ok(())
    }
}

/// The files are beside `.metadata`, or in directories below.
fn check_path(path: &str) -> Result<()> {
    let is_plain = |name: &str| !matches!(name, "" | "." | "..");
    if path.split('/').all(is_plain) && !path.contains(['\\', '\0', ':']) {
        return Ok(());
    }
    let message = format!("an item lies in {path:?}, which leads out of the directory");
    Err(Error::malformed("dcp.path", message))
}

/// Whether an item is compressed with zstd; anything else that is done to it is refused.
fn transforms(value: &Value<'_>) -> Result<bool> {
    let node = match value {
        Value::None => return Ok(false),
        Value::Node(node) if matches!(node.kind(), Kind::List | Kind::Tuple) => node,
        other => {
            let message = format!("transform_descriptors are {}", other.what());
            return Err(Error::malformed("dcp.metadata", message));
        }
    };
    let mut is_zstd = false;
    for item in node.items() {
        match item? {
            Value::Text(name) if name == "stream.zstd/1" && !is_zstd => is_zstd = true,
            other => {
                let message = format!(
                    "an item went through {}; stream.zstd/1 is known, once",
                    other.what()
                );
                return Err(Error::unsupported("dcp.transform", message));
            }
        }
    }
    Ok(is_zstd)
}

/// What an item is of.
fn index<'t>(value: &Value<'t>, rank: usize) -> Result<Key<'t>> {
    let Some(node) = instance(value, Class::Index)? else {
        let message = format!("a key of storage_data is {}", value.what());
        return Err(Error::malformed("dcp.metadata", message));
    };
    let (mut name, mut start) = (None, None);
    for attribute in attributes(node)? {
        let (key, value) = attribute?;
        match (&*key, &value) {
            ("fqn", value) => name = Some(text(value, "a name")?),
            ("offset", Value::None) => {}
            ("offset", value) => start = Some(size(value, "an offset", rank)?),
            _ => {}
        }
    }
    let missing = || Error::malformed("dcp.metadata", "a key of storage_data without a name");
    Ok((name.ok_or_else(missing)?, start))
}

fn tensor(value: &Value<'_>, rank: usize, budget: &mut Budget) -> Result<TensorMeta> {
    let Some(node) = instance(value, Class::Tensor)? else {
        let message = format!("it is described by {}", value.what());
        return Err(Error::malformed("dcp.metadata", message));
    };
    let (mut dtype, mut shape, mut chunks) = (None, None, None);
    for attribute in attributes(node)? {
        let (key, value) = attribute?;
        match &*key {
            "properties" => dtype = Some(properties(&value)?),
            "size" => shape = Some(size(&value, "the size", rank)?),
            "chunks" => chunks = Some(tiles(&value, rank, budget)?),
            _ => {}
        }
    }
    match (dtype, shape, chunks) {
        (Some(dtype), Some(shape), Some(chunks)) => Ok(TensorMeta {
            dtype,
            shape,
            chunks,
        }),
        _ => {
            let message = "a tensor without properties, size or chunks";
            Err(Error::malformed("dcp.metadata", message))
        }
    }
}

/// The type, which is the first of a tuple, or an attribute.
fn properties(value: &Value<'_>) -> Result<DType> {
    let Some(node) = instance(value, Class::Properties)? else {
        let message = format!("the properties of a tensor are {}", value.what());
        return Err(Error::malformed("dcp.metadata", message));
    };
    let missing = || Error::malformed("dcp.metadata", "a tensor without a type");
    match node.states().last().transpose()? {
        Some(Value::Node(state)) if state.kind() == Kind::Tuple => {
            let first = state.items().next().ok_or_else(missing)??;
            globals::dtype(&first)
        }
        Some(Value::Node(state)) if state.kind() == Kind::Dict => {
            for attribute in state.entries() {
                let (key, value) = attribute?;
                if matches!(&key, Value::Text(key) if key == "dtype") {
                    return globals::dtype(&value);
                }
            }
            Err(missing())
        }
        _ => Err(missing()),
    }
}

fn tiles(value: &Value<'_>, rank: usize, budget: &mut Budget) -> Result<Vec<Tile>> {
    let Value::Node(list) = value else {
        let message = format!("the chunks of a tensor are {}", value.what());
        return Err(Error::malformed("dcp.metadata", message));
    };
    let mut tiles = Vec::new();
    for chunk in list.items() {
        let chunk = chunk?;
        let Some(node) = instance(&chunk, Class::Chunk)? else {
            let message = format!("a chunk of a tensor is {}", chunk.what());
            return Err(Error::malformed("dcp.metadata", message));
        };
        budget.charge(CHUNK)?;
        let (mut start, mut sides) = (None, None);
        for attribute in attributes(node)? {
            let (key, value) = attribute?;
            match &*key {
                "offsets" => start = Some(size(&value, "an offset", rank)?),
                "sizes" => sides = Some(size(&value, "a size", rank)?),
                _ => {}
            }
        }
        let (Some(start), Some(sides)) = (start, sides) else {
            let message = "a chunk without offsets or sizes";
            return Err(Error::malformed("dcp.metadata", message));
        };
        push_tight(&mut tiles, Tile { start, sides });
    }
    Ok(tiles)
}

/// `torch.Size`, or the numbers that it is made of.
fn size(value: &Value<'_>, what: &str, rank: usize) -> Result<Shape> {
    let wrong = || {
        let message = format!("{what} is {}, a torch.Size is expected", value.what());
        Error::malformed("dcp.size", message)
    };
    let numbers = match instance(value, Class::Size)? {
        Some(node) => {
            let arguments = node.object()?.arguments;
            let Value::Node(arguments) = arguments else {
                return Err(wrong());
            };
            match arguments.items().next().transpose()? {
                Some(Value::Node(numbers)) => numbers,
                _ => return Err(wrong()),
            }
        }
        None => match value {
            Value::Node(node) => *node,
            _ => return Err(wrong()),
        },
    };
    if !matches!(numbers.kind(), Kind::Tuple | Kind::List) {
        return Err(wrong());
    }
    if numbers.len() > rank {
        let message = format!("{} dimensions, at most {rank} are read", numbers.len());
        return Err(Error::limit("dcp.rank", message));
    }
    numbers
        .items()
        .map(|item| number(&item?, what, "dcp.size"))
        .collect()
}

fn number(value: &Value<'_>, what: &str, rule: &'static str) -> Result<u64> {
    let number = value.as_i64().and_then(|number| u64::try_from(number).ok());
    number.ok_or_else(|| {
        let message = format!("{what} is {}, a number from 0 is expected", value.what());
        Error::malformed(rule, message)
    })
}

fn text<'t>(value: &Value<'t>, what: &str) -> Result<Cow<'t, str>> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        other => {
            let message = format!("{what} is {}, text is expected", other.what());
            Err(Error::malformed("dcp.metadata", message))
        }
    }
}

/// A dict, or an object that is one.
fn dict<'t>(value: &Value<'t>, what: &str) -> Result<Node<'t>> {
    match value {
        Value::Node(node) if matches!(node.kind(), Kind::Dict | Kind::Call | Kind::New) => {
            Ok(*node)
        }
        other => {
            let message = format!("{what} is {}, a dict is expected", other.what());
            Err(Error::malformed("dcp.metadata", message))
        }
    }
}

/// The attributes of an object: what it was built with last, if that is a dict.
fn attributes<'t>(
    node: Node<'t>,
) -> Result<impl Iterator<Item = Result<(Cow<'t, str>, Value<'t>)>>> {
    let state = match node.states().last().transpose()? {
        Some(Value::Node(state)) if state.kind() == Kind::Dict => Some(state),
        _ => None,
    };
    let entries = state.into_iter().flat_map(Node::entries);
    Ok(entries.map(|entry| {
        let (key, value) = entry?;
        Ok((text(&key, "an attribute")?, value))
    }))
}
