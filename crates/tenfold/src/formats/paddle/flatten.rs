//! Walks through what was saved: tensors and metadata by their paths.

use super::arrays::{Array, Strings, arguments};
use super::globals::{Global, meaning};
use super::{NAMES, PARAMETER_NAME, SLICES};
use crate::error::{Error, Result};
use crate::io::Limits;
use crate::model::{Metadata, Shape, TensorInfo, Value as Meta};
use crate::prelude::*;
use crate::wire::pickle::{Budget, Kind, Node, Value, decimal};

/// Levels of containers, at most.
const MAX_DEPTH: usize = 256;
/// Values that are looked at in the shortest pickle; every byte is good for four more.
const FREE_VISITS: u64 = 100_000;
/// Bytes that are made for a tensor and for a value, at most, beside their names.
const TENSOR: usize = 560;
const VALUE: usize = 160;

/// What was saved, as far as it has been walked through.
pub(super) struct Walk<'a, 'w> {
    strings: Strings<'a>,
    limits: &'a Limits,
    budget: &'w mut Budget,
    visits: u64,
    path: String,
    levels: usize,
    /// The nodes that lead to the one that is looked at.
    on_path: Vec<usize>,
    pub(super) tensors: Vec<TensorInfo>,
    pub(super) metadata: Metadata,
}

/// A parameter in slices.
struct Big {
    name: String,
    shape: Shape,
    slices: Vec<String>,
}

impl<'a, 'w> Walk<'a, 'w> {
    pub(super) fn new(strings: Strings<'a>, limits: &'a Limits, budget: &'w mut Budget) -> Self {
        let len = strings.condensed.program.len() as u64;
        Self {
            strings,
            limits,
            budget,
            visits: FREE_VISITS.saturating_add(len.saturating_mul(4)),
            path: String::new(),
            levels: 0,
            on_path: Vec::new(),
            tensors: Vec::new(),
            metadata: Metadata::new(),
        }
    }

    /// The result of a pickle; `stem` is the name of a tensor that is all of it.
    pub(super) fn root(&mut self, root: &Value<'_>, stem: &str) -> Result<()> {
        let is_container = match root {
            Value::Node(node) => !matches!(node.kind(), Kind::Set | Kind::FrozenSet | Kind::Global),
            _ => false,
        };
        if !is_container {
            let message = format!(
                "what was saved is {}, a dict of tensors is expected",
                root.what()
            );
            return Err(Error::malformed("paddle.root", message));
        }
        self.value(root)?;
        if let [only] = self.tensors.as_mut_slice()
            && only.name.is_empty()
            && self.metadata.is_empty()
        {
            stem.clone_into(&mut only.name);
            only.set_unnamed(true);
        }
        self.unique_names()
    }

    fn value(&mut self, value: &Value<'_>) -> Result<()> {
        self.visits = self.visits.checked_sub(1).ok_or_else(|| {
            let message = "too many values, counting those that are named twice every time";
            Error::limit("paddle.limit", message)
        })?;
        let leaf = match value {
            Value::Node(node) => {
                let node = *node;
                self.enter(node)?;
                self.node(node).map_err(|error| self.about(error, node))?;
                self.on_path.pop();
                return Ok(());
            }
            Value::None => Meta::Null,
            Value::Bool(value) => Meta::Bool(*value),
            Value::Integer(digits) => match value.as_i64() {
                Some(number) => Meta::I64(number),
                None => Meta::Integer(decimal(digits)),
            },
            Value::Float(number) => Meta::F64(*number),
            Value::Text(text) => Meta::Str(text.to_string()),
            Value::Bytes(_) => {
                let (bytes, is_text) = self.strings.short(value, self.limits.header_bytes)?;
                self.budget.charge(bytes.len())?;
                match core::str::from_utf8(&bytes) {
                    Ok(text) if is_text => Meta::Str(text.to_owned()),
                    _ => Meta::Bytes(bytes.to_vec().into()),
                }
            }
            Value::Global { module, name } => {
                let message = format!("{module}.{name}, which is no value");
                return Err(Error::unsupported("paddle.value", message));
            }
        };
        let heap = match &leaf {
            Meta::Str(text) => text.len(),
            _ => 0,
        };
        self.budget.charge(VALUE + heap + self.path.len())?;
        self.metadata.push(&self.path, leaf);
        Ok(())
    }

    fn enter(&mut self, node: Node<'_>) -> Result<()> {
        if self.on_path.contains(&node.number()) {
            let message = format!("{:?} contains itself", self.path);
            return Err(self.about(Error::malformed("paddle.cycle", message), node));
        }
        let limit = MAX_DEPTH.min(self.limits.depth);
        if self.on_path.len() >= limit {
            let message = format!("more than {limit} levels of lists and dicts");
            let mut error = Error::limit("paddle.depth", message);
            if limit < MAX_DEPTH {
                error = error.raised_by("depth", None);
            }
            return Err(self.about(error, node));
        }
        self.on_path.push(node.number());
        Ok(())
    }

    /// Says where a node is, if nothing more exact is known.
    fn about(&self, error: Error, node: Node<'_>) -> Error {
        if error.range().is_some() {
            return error;
        }
        let at = node.at() as u64;
        error.at(self.strings.condensed.place(at..at + 1))
    }

    fn node(&mut self, node: Node<'_>) -> Result<()> {
        match node.kind() {
            Kind::Dict => self.entries(node),
            Kind::Tuple => match self.pair(node)? {
                Some((name, array)) => self.tensor(Some(&name), array),
                None => self.items(node),
            },
            Kind::List => self.items(node),
            Kind::Call | Kind::New => self.object(node),
            Kind::Set | Kind::FrozenSet | Kind::Persistent | Kind::Global => {
                let message = format!("{} as a value", Value::Node(node).what());
                Err(Error::unsupported("paddle.value", message))
            }
        }
    }

    fn object(&mut self, node: Node<'_>) -> Result<()> {
        let object = node.object()?;
        let of = arguments(&object.arguments)?;
        match (meaning(&object.function), of.as_slice()) {
            (Some(Global::Array), _) => {
                let array = self.strings.array(node)?;
                self.tensor(None, array)
            }
            (Some(Global::Scalar), of) => {
                let array = self.strings.scalar(of)?;
                self.tensor(None, array)
            }
            (Some(Global::Dict), []) => self.entries(node),
            // `tuple([name, array])`, or of anything else.
            (Some(Global::Tuple), [Value::Node(inner)])
                if matches!(inner.kind(), Kind::List | Kind::Tuple) =>
            {
                match self.pair(*inner)? {
                    Some((name, array)) => self.tensor(Some(&name), array),
                    None => self.items(*inner),
                }
            }
            (Some(Global::Encode), [Value::Text(text), Value::Text(_)]) => {
                self.value(&Value::Text(text.clone()))
            }
            _ => {
                let message = format!("a call of {}, which makes no value", object.function.what());
                Err(Error::unsupported("paddle.value", message))
            }
        }
    }

    /// A tensor with Paddle's name for it: exactly a text and an array.
    fn pair(&self, node: Node<'_>) -> Result<Option<(String, Array)>> {
        if node.len() != 2 {
            return Ok(None);
        }
        match arguments(&Value::Node(node))?.as_slice() {
            [Value::Text(name), array] => {
                Ok(self.array(array)?.map(|array| (name.to_string(), array)))
            }
            _ => Ok(None),
        }
    }

    /// An array; `None` for any other value.
    fn array(&self, value: &Value<'_>) -> Result<Option<Array>> {
        let Value::Node(node) = value else {
            return Ok(None);
        };
        if !matches!(node.kind(), Kind::Call | Kind::New) {
            return Ok(None);
        }
        let object = node.object()?;
        match meaning(&object.function) {
            Some(Global::Array) => {
                let array = self.strings.array(*node);
                array.map(Some).map_err(|error| self.about(error, *node))
            }
            _ => Ok(None),
        }
    }

    fn tensor(&mut self, parameter: Option<&str>, array: Array) -> Result<()> {
        let tensor = array.tensor(self.path.clone());
        self.push(tensor, parameter)
    }

    fn push(&mut self, mut tensor: TensorInfo, parameter: Option<&str>) -> Result<()> {
        let name = parameter.map_or(0, str::len);
        self.budget.charge(TENSOR + self.path.len() + name)?;
        if let Some(parameter) = parameter {
            let value = Meta::Str(parameter.to_owned());
            tensor.metadata.push(PARAMETER_NAME, value);
        }
        push_tight(&mut self.tensors, tensor);
        Ok(())
    }

    fn items(&mut self, node: Node<'_>) -> Result<()> {
        for (place, item) in node.items().enumerate() {
            let item = item?;
            self.under(&place.to_string(), |walk| walk.value(&item))?;
        }
        Ok(())
    }

    fn entries(&mut self, node: Node<'_>) -> Result<()> {
        let (mut names, mut bigs) = (LookupMap::default(), Vec::new());
        for entry in node.entries() {
            match entry? {
                (Value::Text(key), Value::Node(table)) if key == NAMES => {
                    for entry in table.entries() {
                        if let (Value::Text(key), Value::Text(name)) = entry? {
                            self.budget.charge(key.len() + name.len() + 64)?;
                            names.insert(key.to_string(), name.to_string());
                        }
                    }
                }
                (Value::Text(key), Value::Node(table)) if key == SLICES => {
                    bigs = self.bigs(table)?;
                }
                _ => {}
            }
        }
        let mut slices = self.slices(node, &bigs)?;
        for entry in node.entries() {
            let (key, value) = entry?;
            let key = self.key_text(&key)?;
            if (key == NAMES || key == SLICES) && matches!(value, Value::Node(_)) {
                continue;
            }
            if let Some(big) = bigs.iter().position(|big| big.slices.contains(&key)) {
                let (Some(big), Some(found)) = (bigs.get(big), slices.get_mut(big)) else {
                    continue;
                };
                // The first slice is the place of the whole.
                let found = core::mem::take(found);
                if big.slices.first() == Some(&key) {
                    let parameter = names.get(&big.name).cloned();
                    self.under(&big.name, |walk| {
                        let tensor = Array::join(walk.path.clone(), big.shape.clone(), found)?;
                        walk.push(tensor, parameter.as_deref())
                    })?;
                }
                continue;
            }
            let before = self.tensors.len();
            self.under(&key, |walk| walk.value(&value))?;
            if let (Some(name), true) = (names.get(&key), self.tensors.len() == before + 1)
                && let Some(tensor) = self.tensors.last_mut()
                && tensor.metadata.is_empty()
            {
                tensor
                    .metadata
                    .push(PARAMETER_NAME, Meta::Str(name.clone()));
            }
        }
        Ok(())
    }

    /// Which arrays of a dict are slices of a parameter.
    fn bigs(&mut self, table: Node<'_>) -> Result<Vec<Big>> {
        let wrong = |message: String| Error::malformed("paddle.slices", message);
        let mut bigs = Vec::new();
        for entry in table.entries() {
            let (Value::Text(name), Value::Node(said)) = entry? else {
                return Err(wrong(format!(
                    "{SLICES} has a parameter without a name or a dict"
                )));
            };
            self.budget.charge(name.len() + 128)?;
            let (mut shape, mut slices) = (None, None);
            for entry in said.entries() {
                match entry? {
                    (Value::Text(key), value) if key == "OriginShape" => {
                        shape = Some(self.strings.shape(&value)?);
                    }
                    (Value::Text(key), Value::Node(list)) if key == "slices" => {
                        let mut keys = Vec::new();
                        for key in list.items() {
                            let key = self.key_text(&key?)?;
                            self.budget.charge(key.len() + 64)?;
                            keys.push(key);
                        }
                        slices = Some(keys);
                    }
                    _ => {}
                }
            }
            let (Some(shape), Some(slices)) = (shape, slices) else {
                return Err(wrong(format!(
                    "{SLICES} says no shape or no slices of {name:?}"
                )));
            };
            bigs.push(Big {
                name: name.to_string(),
                shape,
                slices,
            });
        }
        Ok(bigs)
    }

    /// The arrays of every parameter in slices.
    fn slices(&mut self, node: Node<'_>, bigs: &[Big]) -> Result<Vec<Vec<Array>>> {
        if bigs.is_empty() {
            return Ok(Vec::new());
        }
        let mut known: LookupMap<String, Array> = LookupMap::default();
        let wanted: LookupMap<&str, ()> = (bigs.iter())
            .flat_map(|big| big.slices.iter().map(|key| (key.as_str(), ())))
            .collect();
        for entry in node.entries() {
            let (key, value) = entry?;
            let key = self.key_text(&key)?;
            if wanted.contains_key(key.as_str()) {
                self.budget.charge(TENSOR)?;
                if let Some(array) = self.array(&value)? {
                    known.insert(key, array);
                }
            }
        }
        let mut all = Vec::new();
        for big in bigs {
            let mut found = Vec::new();
            for key in &big.slices {
                let slice = known.remove(key).ok_or_else(|| {
                    let message = format!("slice {key:?} of {:?} is not there", big.name);
                    Error::malformed("paddle.slices", message)
                })?;
                found.push(slice);
            }
            all.push(found);
        }
        Ok(all)
    }

    /// Something under a key.
    fn under(&mut self, key: &str, walk: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let len = self.path.len();
        if self.levels > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        self.levels += 1;
        walk(self)?;
        self.levels -= 1;
        self.path.truncate(len);
        Ok(())
    }

    /// Two paths may be the same when they are joined.
    fn unique_names(&self) -> Result<()> {
        let tensors = self.tensors.iter().map(|tensor| tensor.name.as_str());
        let names = tensors.chain(self.metadata.iter().map(|(key, _)| key));
        match crate::model::repeated(names) {
            Some((_, name)) => {
                let message = format!("two values are called {name:?}");
                Err(Error::malformed("paddle.duplicate", message))
            }
            None => Ok(()),
        }
    }

    /// A key of a dict.
    fn key_text(&mut self, key: &Value<'_>) -> Result<String> {
        let what = match key {
            Value::Text(text) => return Ok(text.to_string()),
            Value::Integer(digits) => return Ok(decimal(digits)),
            Value::Bytes(_) => {
                let (bytes, is_text) = self.strings.short(key, self.limits.header_bytes)?;
                self.budget.charge(bytes.len())?;
                match core::str::from_utf8(&bytes) {
                    Ok(text) if is_text => return Ok(text.to_owned()),
                    _ => format!("{} bytes", bytes.len()),
                }
            }
            other => other.what(),
        };
        let message = format!("{what} as the key of a dict");
        Err(Error::unsupported("paddle.key", message))
    }
}
