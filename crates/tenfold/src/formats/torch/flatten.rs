//! Walks through what was saved: tensors and metadata by their paths.

use super::LONG;
use super::globals::{Allowed, Global};
use super::leaves;
use super::tensors::{Placed, StorageId, Storages, View, numpy_array};
use crate::error::lists::quoted;
use crate::error::{Error, ErrorKind, Result};
use crate::io::Limits;
use crate::model::{DType, Layout, List, Metadata, Packer, Payload, TensorInfo, Value as Meta};
use crate::prelude::*;
use crate::wire::pickle::{Budget, Kind, Node, Object, Place, Tree, Value};

/// Levels of containers, at most.
const MAX_DEPTH: usize = 256;
/// Values that are looked at, at most: what is named twice is looked at twice.
const MAX_VISITED: u64 = 10_000_000;
/// Values that are looked at in the shortest pickle; every byte is good for four more.
const FREE_VISITS: u64 = 100_000;
/// Levels of lists that are packed as one value.
const PACKED_DEPTH: usize = 8;
/// Other tensors of the same storage that are named, at most.
const MAX_SHARING: usize = 32;
/// Of a module, what its parameters, buffers and other modules are in: no part of their names.
const MODULE_PARTS: [&str; 3] = ["_parameters", "_buffers", "_modules"];

/// What was saved.
#[derive(Debug)]
pub(in crate::formats) struct Saved {
    pub(in crate::formats) tensors: Vec<TensorInfo>,
    pub(in crate::formats) metadata: Metadata,
    /// Storages that some tensor is all of, so that its checksum is theirs.
    pub(in crate::formats) covered: Vec<bool>,
    /// Tensors that share a storage with another, and how many storages.
    pub(in crate::formats) shared: (usize, usize),
    /// Storages that no tensor is all of.
    pub(in crate::formats) loose: Vec<Payload>,
    /// Keys of metadata that are there twice: one of them, and how many.
    pub(in crate::formats) repeated: Option<(String, usize)>,
    /// Metadata that is left out: one of it and why, and how much.
    skipped: Option<(String, usize)>,
}

impl Saved {
    /// Which metadata is left out, for a warning.
    pub(in crate::formats) fn left_out(&self) -> Option<String> {
        let (first, count) = self.skipped.as_ref()?;
        let more = match count {
            1 => String::new(),
            n => format!(", and {} more", n - 1),
        };
        Some(format!("metadata is left out: {first}{more}"))
    }
}

/// What walking needs to know.
#[derive(Clone, Copy, Debug)]
pub(in crate::formats) struct Around<'a> {
    /// Whose rules are broken, by its id.
    pub(in crate::formats) format: &'static str,
    /// What leads to what is listed, where that is not everything.
    pub(in crate::formats) root: Option<&'a str>,
    pub(in crate::formats) allowed: Allowed,
    pub(in crate::formats) storages: &'a Storages,
    pub(in crate::formats) limits: &'a Limits,
    pub(in crate::formats) place: &'a Place,
    /// Bytes of the pickle.
    pub(in crate::formats) pickle: usize,
    /// Bytes of the file.
    pub(in crate::formats) file: u64,
    /// What a tensor is called that has no name.
    pub(in crate::formats) stem: &'a str,
}

/// Walks through the result of a pickle.
pub(in crate::formats) fn flatten(
    tree: &Tree<'_>,
    around: Around<'_>,
    budget: &mut Budget,
) -> Result<Saved> {
    // Tensors need less than an eighth beside what is said about them.
    let for_metadata = budget.left() / 8 * 7;
    let mut walk = Walk {
        around,
        budget,
        for_metadata,
        skipped: None,
        tensors: Vec::new(),
        placed: Vec::new(),
        metadata: Metadata::new(),
        path: String::new(),
        levels: 0,
        on_path: Vec::new(),
        visited: 0,
    };
    let mut root = tree.root()?;
    if let Some(path) = walk.around.root {
        root = below(root, path)?;
    }
    walk.value(&root)?;
    walk.finish()
}

/// The value that keys joined by dots lead to; a key may have dots itself.
fn below<'t>(value: Value<'t>, path: &str) -> Result<Value<'t>> {
    let mut rest = path;
    let mut value = value;
    'levels: loop {
        let mut known = Vec::new();
        if let Value::Node(node) = &value {
            for (place, entry) in node.entries().enumerate() {
                let (key, inner) = entry?;
                let key = shown_key(&key, place)?;
                if key == rest {
                    return Ok(inner);
                }
                let behind = rest.strip_prefix(&*key);
                if let Some(behind) = behind.and_then(|behind| behind.strip_prefix('.')) {
                    (value, rest) = (inner, behind);
                    continue 'levels;
                }
                known.push(key);
            }
        }
        let there = match known.as_slice() {
            [] => "there are no keys".to_owned(),
            keys => format!("there are {}", quoted(keys.iter().map(String::as_str))),
        };
        let message = format!("root {path:?} leads nowhere: no key is {rest:?}, {there}");
        return Err(Error::argument(message));
    }
}

struct Walk<'a, 'w> {
    around: Around<'a>,
    budget: &'w mut Budget,
    /// What of it is left for metadata.
    for_metadata: u64,
    skipped: Option<(String, usize)>,
    tensors: Vec<TensorInfo>,
    /// Which tensor, and where it is.
    placed: Vec<(u32, Placed)>,
    metadata: Metadata,
    path: String,
    levels: usize,
    /// The nodes that lead to the one that is looked at.
    on_path: Vec<usize>,
    visited: u64,
}

impl Walk<'_, '_> {
    fn visit(&mut self) -> Result<()> {
        self.visited += 1;
        let limit = MAX_VISITED.min(FREE_VISITS.saturating_add(self.around.pickle as u64 * 4));
        if self.visited > limit {
            let message = format!(
                "more than {limit} values in {} bytes, counting those that are named twice every time",
                self.around.pickle
            );
            return Err(Error::limit("limit", message));
        }
        Ok(())
    }

    fn value(&mut self, value: &Value<'_>) -> Result<()> {
        self.visit()?;
        match value {
            Value::Node(node) => {
                let node = *node;
                self.enter(node)?;
                self.node(node).map_err(|error| self.about(error, node))?;
                self.on_path.pop();
                Ok(())
            }
            plain => match leaves::plain(self.around.allowed, plain) {
                Some(value) => self.leaf(value),
                None => Ok(()),
            },
        }
    }

    fn enter(&mut self, node: Node<'_>) -> Result<()> {
        if self.on_path.contains(&node.number()) {
            let message = format!("{:?} contains itself", self.path);
            return Err(self.about(Error::malformed("cycle", message), node));
        }
        let limit = MAX_DEPTH.min(self.around.limits.depth);
        if self.on_path.len() >= limit {
            let message = format!("more than {limit} levels of lists and dicts");
            let mut error = Error::limit("depth", message);
            if limit < MAX_DEPTH {
                error = error.raised_by("depth", None);
            }
            return Err(self.about(error, node));
        }
        self.on_path.push(node.number());
        Ok(())
    }

    fn about(&self, error: Error, node: Node<'_>) -> Error {
        if error.range().is_some() {
            return error;
        }
        let at = node.at();
        error.at(self.around.place.of(at..at.saturating_add(1)))
    }

    fn node(&mut self, node: Node<'_>) -> Result<()> {
        match node.kind() {
            Kind::Dict => {
                let mut keys = Keys::default();
                self.entries(node, &mut keys)?;
                keys.check()
            }
            Kind::List | Kind::Tuple => self.items(node),
            Kind::Set | Kind::FrozenSet => {
                if self.spend(node.len().saturating_mul(16)) {
                    let items = leaves::set(self.around.allowed, node, &[], 0);
                    self.leaf_if(items.map(Meta::List))?;
                }
                Ok(())
            }
            Kind::Persistent => {
                let view = StorageId::parse(self.around.allowed, node).map(View::whole);
                self.view(view, node)
            }
            Kind::Call | Kind::New => {
                let object = node.object()?;
                self.object(node, &object)
            }
            Kind::Global => Ok(()),
        }
    }

    fn object(&mut self, node: Node<'_>, object: &Object<'_>) -> Result<()> {
        let allowed = self.around.allowed;
        let Some(global) = allowed.meaning(&object.function) else {
            return self.record(node, object);
        };
        let arguments = leaves::arguments(&object.arguments)?;
        match global {
            Global::Rebuild(rebuild) => {
                let view = View::parse(allowed, rebuild, &arguments, 0);
                self.view(view, node)
            }
            Global::Dict => {
                let mut keys = Keys::default();
                self.contents(&arguments, &mut keys)?;
                self.entries(node, &mut keys)?;
                keys.check()
            }
            Global::DefaultDict => {
                let mut keys = Keys::default();
                self.contents(arguments.get(1..).unwrap_or_default(), &mut keys)?;
                self.entries(node, &mut keys)?;
                keys.check()
            }
            Global::List => {
                self.contents_by_place(&arguments)?;
                self.items(node)
            }
            Global::First => match arguments.first() {
                Some(value) => self.value(value),
                None => Ok(()),
            },
            Global::Namespace | Global::Script => self.states(node),
            Global::NumpyArray => {
                self.charge_tensor()?;
                let name = self.name();
                let tensor = numpy_array(allowed, node, &name);
                let place = self.push(name, tensor, node);
                if let Some(tensor) = self.tensors.get_mut(place)
                    && tensor.defect.is_none()
                {
                    tensor.metadata.push_fact("numpy", Meta::Bool(true));
                }
                Ok(())
            }
            global => match leaves::made(allowed, global, node, &arguments).transpose() {
                Some(value) => self.leaf_if(value),
                // A class that is called, though it is no function: it could be a tensor.
                None => {
                    let message = format!("{} is called", object.function.what());
                    Err(Error::unsupported("value", message))
                }
            },
        }
    }

    /// What an object of an unknown class holds: what it was given, built with and filled with.
    fn record(&mut self, node: Node<'_>, object: &Object<'_>) -> Result<()> {
        if let Value::Node(arguments) = &object.arguments {
            for (place, argument) in arguments.items().enumerate() {
                let argument = argument?;
                if matches!(argument, Value::Node(_)) {
                    self.child(&place.to_string(), &argument)?;
                }
            }
        }
        self.states(node)?;
        self.items(node)?;
        let mut keys = Keys::default();
        self.entries(node, &mut keys)?;
        keys.check()
    }

    /// The attributes that an object was built with: a dict, or one and another of slots.
    fn states(&mut self, node: Node<'_>) -> Result<()> {
        for state in node.states() {
            let Value::Node(state) = state? else { continue };
            match state.kind() {
                Kind::Dict => self.attributes(state)?,
                Kind::Tuple => {
                    for (place, part) in state.items().enumerate() {
                        match part? {
                            Value::Node(part) if part.kind() == Kind::Dict => {
                                self.attributes(part)?;
                            }
                            part @ Value::Node(_) => self.child(&place.to_string(), &part)?,
                            _ => {}
                        }
                    }
                }
                _ => self.value(&Value::Node(state))?,
            }
        }
        Ok(())
    }

    fn attributes(&mut self, state: Node<'_>) -> Result<()> {
        self.enter(state)?;
        let mut keys = Keys::default();
        for (place, entry) in state.entries().enumerate() {
            let (key, value) = entry?;
            let is_part = matches!(&key, Value::Text(key) if MODULE_PARTS.contains(&&**key));
            let is_text = matches!(key, Value::Text(_));
            let key = shown_key(&key, place)?;
            keys.add(&key, is_text, self.budget)?;
            if is_part && self.around.allowed.opaque {
                self.value(&value)?;
            } else {
                self.child(&key, &value)?;
            }
        }
        self.on_path.pop();
        keys.check()
    }

    /// Entries that a dict is made of: pairs, or another dict.
    fn contents(&mut self, arguments: &[Value<'_>], keys: &mut Keys) -> Result<()> {
        for argument in arguments {
            let Value::Node(node) = argument else {
                continue;
            };
            self.enter(*node)?;
            match node.kind() {
                Kind::Dict => self.entries(*node, keys)?,
                _ => {
                    for (place, pair) in node.items().enumerate() {
                        let pair = leaves::arguments_of(&pair?)?;
                        let [key, value] = pair.as_slice() else {
                            let message = "a dict is made of something other than pairs";
                            return Err(Error::malformed("value", message));
                        };
                        let is_text = matches!(key, Value::Text(_));
                        let key = shown_key(key, place)?;
                        keys.add(&key, is_text, self.budget)?;
                        self.child(&key, value)?;
                    }
                }
            }
            self.on_path.pop();
        }
        Ok(())
    }

    /// Items that a list is made of.
    fn contents_by_place(&mut self, arguments: &[Value<'_>]) -> Result<()> {
        for argument in arguments {
            if let Value::Node(node) = argument {
                self.enter(*node)?;
                self.items(*node)?;
                self.on_path.pop();
            }
        }
        Ok(())
    }

    fn entries(&mut self, node: Node<'_>, keys: &mut Keys) -> Result<()> {
        for (place, entry) in node.entries().enumerate() {
            let (key, value) = entry?;
            let is_text = matches!(key, Value::Text(_));
            let key = shown_key(&key, place)?;
            keys.add(&key, is_text, self.budget)?;
            self.child(&key, &value)?;
        }
        Ok(())
    }

    fn items(&mut self, node: Node<'_>) -> Result<()> {
        if node.len() > LONG
            && let Some(list) = self.long(node)?
        {
            return self.leaf(Meta::List(list));
        }
        for (place, item) in node.items().enumerate() {
            self.child(&place.to_string(), &item?)?;
        }
        Ok(())
    }

    /// A long list of numbers, texts and lists of these, packed: a path for every entry would take many times as much.
    fn long(&mut self, node: Node<'_>) -> Result<Option<List>> {
        let mut packer = Packer::list();
        for item in node.items() {
            if !self.pack(&mut packer, &item?, 0)? {
                return Ok(None);
            }
        }
        Ok(Some(packer.into_list()))
    }

    /// Adds a value to a list, if it is one that can be packed.
    fn pack(&mut self, packer: &mut Packer, value: &Value<'_>, depth: usize) -> Result<bool> {
        self.visit()?;
        if let Value::Node(node) = value {
            if !matches!(node.kind(), Kind::List | Kind::Tuple) || depth == PACKED_DEPTH {
                return Ok(false);
            }
            if !self.spend(8) {
                return Ok(false);
            }
            packer.open_list();
            for item in node.items() {
                if !self.pack(packer, &item?, depth + 1)? {
                    return Ok(false);
                }
            }
            packer.close();
            return Ok(true);
        }
        let size = match value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        let Some(value) = leaves::plain(self.around.allowed, value) else {
            return Ok(false);
        };
        let is_paid = self.spend(3 + size);
        if is_paid {
            packer.value(&value);
        }
        Ok(is_paid)
    }

    fn child(&mut self, key: &str, value: &Value<'_>) -> Result<()> {
        let len = self.path.len();
        if self.levels > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        self.levels += 1;
        self.value(value)?;
        self.levels -= 1;
        self.path.truncate(len);
        Ok(())
    }

    fn name(&self) -> String {
        if self.levels == 0 {
            return self.around.stem.to_owned();
        }
        self.path.clone()
    }

    fn leaf(&mut self, value: Meta) -> Result<()> {
        const ENTRY: usize = 64;
        const SHORT: usize = 21;
        let key = if self.levels == 0 {
            self.around.stem
        } else {
            &self.path
        };
        let long = if key.len() > SHORT { key.len() } else { 0 };
        let heap = match &value {
            Meta::Str(text) | Meta::Integer(text) => text.len(),
            Meta::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        if self.spend(ENTRY + long + heap) {
            let key = self.name();
            self.metadata.push(&key, value);
        }
        Ok(())
    }

    /// Takes what metadata needs, as long as there is some; then it is left out.
    fn spend(&mut self, bytes: usize) -> bool {
        let left = self.for_metadata.checked_sub(bytes as u64);
        match left.filter(|_| self.budget.charge(bytes).is_ok()) {
            Some(left) => {
                self.for_metadata = left;
                true
            }
            None => {
                self.skip("it takes more memory than a pickle of this length may");
                false
            }
        }
    }

    /// Notes metadata that is left out. Tensors are never lost for it.
    fn skip(&mut self, why: &str) {
        match &mut self.skipped {
            Some((_, count)) => *count += 1,
            None => self.skipped = Some((format!("{:?}: {why}", self.name()), 1)),
        }
    }

    /// A value of metadata, if it has a form here.
    fn leaf_if(&mut self, value: Result<Meta>) -> Result<()> {
        match value {
            Ok(value) => self.leaf(value),
            Err(error) if error.kind() == ErrorKind::Limit => Err(error),
            Err(error) => {
                self.skip(error.message());
                Ok(())
            }
        }
    }

    fn charge_tensor(&mut self) -> Result<()> {
        // With the one value of metadata that each has.
        let size = size_of::<TensorInfo>() + 128 + self.path.len();
        self.budget.charge(size)
    }

    /// A tensor that is a view of a storage.
    fn view(&mut self, view: Result<View>, node: Node<'_>) -> Result<()> {
        self.charge_tensor()?;
        let name = self.name();
        let flags = view
            .as_ref()
            .map(|view| (view.requires_grad, view.is_parameter));
        let (requires_grad, is_parameter) = flags.unwrap_or_default();
        let Around {
            storages,
            limits,
            file,
            ..
        } = self.around;
        let made = view.and_then(|view| view.place(&name, storages, limits, file));
        let (tensor, placed) = match made {
            Ok((tensor, placed)) => (Ok(tensor), Some(placed)),
            Err(error) => (Err(error), None),
        };
        let place = self.push(name, tensor, node);
        if let Some(tensor) = self.tensors.get_mut(place) {
            for (key, is_set) in [
                ("requires_grad", requires_grad),
                ("parameter", is_parameter),
            ] {
                if is_set {
                    tensor.metadata.push(key, Meta::Bool(true));
                    tensor.set_derived(&DERIVED);
                }
            }
        }
        if let (Some(placed), Ok(place)) = (placed, u32::try_from(place)) {
            push_tight(&mut self.placed, (place, placed));
        }
        Ok(())
    }

    /// Adds a tensor. What is wrong with it loses only itself.
    fn push(&mut self, name: String, tensor: Result<TensorInfo>, node: Node<'_>) -> usize {
        let mut tensor = match tensor {
            Ok(tensor) => tensor,
            Err(error) => {
                let error = self.about(error.in_tensor(&name).in_format(self.around.format), node);
                let mut tensor =
                    TensorInfo::new(&name, DType::UNKNOWN, Vec::new(), Layout::RowMajor);
                tensor.defect = Some(error);
                tensor
            }
        };
        tensor.set_unnamed(self.levels == 0);
        push_tight(&mut self.tensors, tensor);
        self.tensors.len() - 1
    }

    fn finish(mut self) -> Result<Saved> {
        unique_names(&self.tensors)?;
        let repeated = unique_keys(&mut self.metadata);
        self.placed.sort_by_key(|(_, placed)| placed.storage);
        let mut covered = vec![false; self.around.storages.list.len()];
        let placed = core::mem::take(&mut self.placed);
        let mut shared = (0, 0);
        for group in placed.chunk_by(|(_, a), (_, b)| a.storage == b.storage) {
            if group.len() > 1 {
                shared = (shared.0 + group.len(), shared.1 + 1);
            }
            self.facts(group, &mut covered)?;
        }
        let storages = self.around.storages.list.iter().zip(&covered);
        let loose = storages
            .filter(|(_, covered)| !**covered)
            .map(|(storage, _)| storage.payload.clone())
            .collect();
        Ok(Saved {
            shared,
            loose,
            tensors: self.tensors,
            metadata: self.metadata,
            covered,
            repeated,
            skipped: self.skipped,
        })
    }

    /// What is known of tensors that have the same storage.
    fn facts(&mut self, group: &[(u32, Placed)], covered: &mut [bool]) -> Result<()> {
        let Some((_, first)) = group.first() else {
            return Ok(());
        };
        let storage = self.around.storages.list.get(first.storage as usize);
        let key = storage.map_or("", |storage| storage.key.as_str());
        if let Some(covered) = covered.get_mut(first.storage as usize) {
            *covered = group.iter().any(|(_, placed)| placed.is_whole);
        }
        for (tensor, placed) in group {
            let sharing = self.sharing(*tensor, group);
            let Some(tensor) = self.tensors.get_mut(*tensor as usize) else {
                continue;
            };
            let before = core::mem::take(&mut tensor.metadata);
            let mut facts = Metadata::one_fact("storage_key", Meta::Str(key.to_owned()));
            if placed.offset > 0 {
                facts.push_fact("storage_offset", Meta::U64(placed.offset));
            }
            if let Some(stride) = &placed.stride {
                let stride = stride.iter().copied().map(Meta::U64).collect();
                facts.push_fact("stride", Meta::List(stride));
            }
            if let Some(sharing) = sharing {
                facts.push_fact("shares_storage_with", Meta::List(sharing));
            }
            for (key, value) in before.iter() {
                facts.push(key, value.clone());
            }
            tensor.metadata = facts;
        }
        Ok(())
    }

    /// The names of the first other tensors of a group, as far as there is room for them.
    fn sharing(&mut self, tensor: u32, group: &[(u32, Placed)]) -> Option<List> {
        if group.len() < 2 {
            return None;
        }
        let mut packer = Packer::list();
        let others = group.iter().filter(|(other, _)| *other != tensor);
        for (other, _) in others.take(MAX_SHARING) {
            let name = self.tensors.get(*other as usize)?.name.as_str();
            if self.budget.charge(name.len() + 8).is_err() {
                break;
            }
            packer.str(name);
        }
        Some(packer.into_list())
    }
}

/// A key as Python prints it; one that has no such form here by what it is and its place.
fn shown_key(key: &Value<'_>, place: usize) -> Result<String> {
    match leaves::key(key, 0) {
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            Ok(format!("{} {place}", key.what()))
        }
        shown => shown,
    }
}

/// The keys of one dict, as far as it takes to see one that is there twice. Python keeps the last value of such a key and
/// writes none: what stands under the others would be shown here and be nowhere there.
#[derive(Default)]
struct Keys(Vec<u128>);

impl Keys {
    /// Adds a key as it is printed; the text "1" is not the number 1.
    fn add(&mut self, key: &str, is_text: bool, budget: &mut Budget) -> Result<()> {
        // FNV-1a of 128 bits. Two keys that collide on purpose have their own file refused.
        const PRIME: u128 = (1 << 88) + 0x13b;
        const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        let hash = key.bytes().fold(BASIS ^ u128::from(is_text), |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(PRIME)
        });
        budget.charge(size_of::<u128>())?;
        self.0.push(hash);
        Ok(())
    }

    fn check(mut self) -> Result<()> {
        self.0.sort_unstable();
        let mut neighbours = self.0.iter().zip(self.0.iter().skip(1));
        if neighbours.any(|(a, b)| a == b) {
            let message =
                "a dict has a key twice: Python keeps the last value, and writes no such file";
            return Err(Error::malformed("duplicate", message));
        }
        Ok(())
    }
}

/// What a dense tensor of another format loses nothing by.
const DERIVED: [&str; 2] = ["parameter", "requires_grad"];

fn unique_names(tensors: &[TensorInfo]) -> Result<()> {
    match crate::model::repeated(tensors.iter().map(|tensor| tensor.name.as_str())) {
        Some((_, name)) => {
            let message = "two tensors get this name when the keys that lead to them are joined";
            let error = Error::malformed("duplicate", message);
            Err(error.in_tensor(name))
        }
        None => Ok(()),
    }
}

/// Keeps the last value of every key, as Python does; says one that was there twice, and how many.
fn unique_keys(metadata: &mut Metadata) -> Option<(String, usize)> {
    let keys: Vec<&str> = metadata.iter().map(|(key, _)| key).collect();
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|place| keys.get(*place));
    let mut pairs = order.iter().zip(order.iter().skip(1));
    let is_same = |(a, b): &(&usize, &usize)| keys.get(**a) == keys.get(**b);
    let mut repeated: Vec<usize> = pairs.by_ref().filter(is_same).map(|(a, _)| *a).collect();
    let first = *repeated.first()?;
    let key = (*keys.get(first)?).to_owned();
    repeated.sort_unstable();
    let mut place = 0;
    let kept: Vec<(String, Meta)> = metadata
        .iter()
        .filter(|_| {
            let is_repeated = repeated.binary_search(&place).is_ok();
            place += 1;
            !is_repeated
        })
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect();
    let count = repeated.len();
    *metadata = kept.into_iter().collect();
    Some((key, count))
}
