//! Between nodes and the model.

use super::array::{Array, Content, Described, Node};
use super::locate::{Chunks as Located, Recent};
use super::nodes::{Copies, Found};
use super::packed::Packed;
use super::store::Store;
use super::{ARRAY, COPIES, GROUP, NODE, SPEC, V2, V3, json, nodes};
use crate::error::{Error, ErrorKind, Result};
#[cfg(feature = "write")]
use crate::format::{Arranged, Finding, Plan, PlanOptions};
use crate::format::{Confidence, Context, Format, Head, Spec, stem};
use crate::io::{Source, Tree};
use crate::model::{
    Chunks, Cuts, DType, Kept, Layout, Manifest, Map, Order, Part, Payload, Role, SourceId,
    TensorInfo, Value, element_count,
};
use crate::prelude::*;
use crate::wire::zip::Kind;

/// Reads and writes Zarr.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zarr;

/// Where Orbax and tensorstore have arrays that are in no files of their own.
const OCDBT: &str = "manifest.ocdbt";
/// What Orbax writes beside the arrays.
const ORBAX: [&str; 2] = ["_METADATA", "_CHECKPOINT_METADATA"];
/// Arrays that are one uncompressed chunk each are read like any raw data, and files of them stay open: so many.
const MOST_OPEN: usize = 256;

impl Format for Zarr {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn detect(&self, head: &Head<'_>) -> Result<Confidence> {
        let name = head.name().unwrap_or_default();
        if is_document(name) {
            return Ok(Confidence::Certain);
        }
        if !head.first().starts_with(b"PK") {
            return Ok(Confidence::No);
        }
        if Kind::of(head)? == Kind::Zarr {
            return Ok(Confidence::Certain);
        }
        let is_named = name.ends_with(".zarr.zip") || name.ends_with(".zarr");
        Ok(if is_named {
            Confidence::Likely
        } else {
            Confidence::No
        })
    }

    fn directory_file(&self, names: &[String]) -> Option<&'static str> {
        let has = |wanted: &&str| names.iter().any(|name| name == wanted);
        let known = [NODE, ARRAY, GROUP, COPIES, OCDBT].into_iter();
        known.chain(ORBAX).find(has)
    }

    fn tree_file<'t>(&self, tree: &'t Tree) -> Option<&'t str> {
        // Arrays beside each other, as tensorstore writes them, and no stores that happen to lie together.
        let is_child = |key: &&str| match key.split_once('/') {
            Some((path, NODE | ARRAY)) => !path.ends_with(".zarr"),
            _ => false,
        };
        tree.keys().find(is_child)
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        let is_zip = cx.source().read(0..cx.source().len().min(2))? == b"PK"[..];
        let store = if is_zip && !cx.name().is_some_and(is_document) {
            Store::zip(cx)?
        } else {
            let Some(tree) = cx.tree()? else {
                let message = "this is one file of a Zarr store, and the others are not known";
                return Err(Error::unsupported("zarr.store", message));
            };
            Store::Tree(tree)
        };
        Reading::new(cx, store).manifest()
    }

    #[cfg(feature = "write")]
    fn writes_tree(&self, file_name: &str) -> bool {
        super::write::is_directory(file_name)
    }

    #[cfg(feature = "write")]
    fn arrange(&self, what: &Manifest, _: &PlanOptions) -> Result<Option<Arranged>> {
        Ok(super::write::arrange(what))
    }

    #[cfg(feature = "write")]
    fn remarks(&self, what: &Manifest, _: &PlanOptions) -> Vec<Finding> {
        super::write::remarks(what)
    }

    #[cfg(feature = "write")]
    fn plan(&self, what: &Manifest, options: &PlanOptions) -> Result<Plan> {
        super::write::plan(what, options)
    }
}

/// Whether a key is that of metadata that a store is opened by.
fn is_document(key: &str) -> bool {
    let name = key.rsplit('/').next().unwrap_or_default();
    [NODE, ARRAY, GROUP, COPIES, OCDBT].contains(&name) || ORBAX.contains(&name)
}

/// A store that is being described.
struct Reading<'c, 'x> {
    cx: &'c mut Context<'x>,
    store: Arc<Store>,
    recent: Arc<Recent>,
    manifest: Manifest,
    /// Files that stay open.
    open: usize,
}

impl<'c, 'x> Reading<'c, 'x> {
    fn new(cx: &'c mut Context<'x>, store: Store) -> Self {
        Self {
            cx,
            store: Arc::new(store),
            recent: Arc::new(Recent::default()),
            manifest: Manifest::new(V3),
            open: 0,
        }
    }

    fn manifest(mut self) -> Result<Manifest> {
        let mut documents = LookupMap::new();
        let found = if self.store.is_listed() {
            let found = nodes::find(&self.store);
            self.read(&found, &mut documents)?;
            found
        } else {
            let known = Copies::read(&self.store, self.cx)?;
            let found = nodes::of_keys(known.iter().map(|(key, _)| key.as_str()));
            documents.extend(known.into_iter().map(|(key, map)| (key, Ok(map))));
            found
        };
        if found.is_empty() {
            return Err(self.nothing());
        }
        let root = found.iter().find(|node| node.path.is_empty());
        let first = root.or_else(|| found.first());
        let is_v3 = first.is_some_and(Found::is_v3);
        if !is_v3 {
            V2.clone_into(&mut self.manifest.version);
        }
        self.compare(&documents)?;
        for node in &found {
            self.node(node, &mut documents)?;
        }
        self.unique()?;
        self.regions();
        Ok(self.manifest)
    }

    /// Reads the documents of all nodes.
    fn read(
        &mut self,
        found: &[Found],
        documents: &mut LookupMap<String, Result<Map>>,
    ) -> Result<()> {
        let keys: Vec<String> = found.iter().flat_map(Found::documents).collect();
        self.store.documents(self.cx, &keys, &mut |key, bytes| {
            // What cannot be read says nothing about what it holds.
            let parsed = json::parse(&bytes?).map_err(|error| {
                let error = error.adding(&format!(" ({key})"));
                if matches!(&*self.store, Store::Zip(_)) {
                    error
                } else {
                    error.nowhere()
                }
            });
            documents.insert(key.to_owned(), parsed);
            Ok(())
        })
    }

    /// That there are no nodes.
    fn nothing(&self) -> Error {
        let is_ocdbt = |key: &str| key == OCDBT || key.ends_with("/manifest.ocdbt");
        if self.store.keys().any(is_ocdbt) {
            let message = "the arrays are in an OCDBT database, as Orbax writes by default; only those in files of their own are read (save with use_ocdbt=False)";
            return Error::unsupported("zarr.ocdbt", message);
        }
        Error::malformed("zarr.root", "there is no metadata of a group or an array")
    }

    /// Says where copies of metadata are not what the files say, which count.
    fn compare(&mut self, documents: &LookupMap<String, Result<Map>>) -> Result<()> {
        if !self.store.is_listed() {
            return Ok(());
        }
        let mut copies = Vec::new();
        if let Some(Ok(root)) = documents.get(NODE) {
            copies.extend(Copies::v3(root));
        }
        if self.store.keys().any(|key| key == COPIES) {
            let keys = [COPIES.to_owned()];
            let mut parsed = None;
            self.store.documents(self.cx, &keys, &mut |_, bytes| {
                parsed = Some(bytes.and_then(|bytes| json::parse(&bytes)));
                Ok(())
            })?;
            match parsed.map(|parsed| parsed.and_then(|map| Copies::v2(&map))) {
                Some(Ok(found)) => copies.push(found),
                Some(Err(error)) => {
                    let message = format!("{COPIES}, a copy of metadata: {}", error.message());
                    self.cx.warn("zarr.consolidated", 0..0, message)?;
                }
                None => {}
            }
        }
        for copies in copies {
            let own = |key: &str| documents.get(key).and_then(|map| map.as_ref().ok());
            let differing = copies.differing(&own);
            if let [first, others @ ..] = differing.as_slice() {
                let more = match others.len() {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let message = format!(
                    "the copies of metadata are not what {first}{more} say; the files count"
                );
                self.cx.warn("zarr.consolidated", 0..0, message)?;
            }
        }
        Ok(())
    }

    fn node(
        &mut self,
        found: &Found,
        documents: &mut LookupMap<String, Result<Map>>,
    ) -> Result<()> {
        let keys = found.documents();
        let maps = keys.iter().filter_map(|key| documents.remove(key));
        let maps: Result<Vec<Map>> = maps.collect();
        let described = maps.and_then(|maps| found.describe(&maps));
        let key = keys.into_iter().next().unwrap_or_default();
        match described {
            Ok(Described {
                node: Node::Group,
                metadata,
            }) => {
                if found.path.is_empty() {
                    self.manifest.metadata = metadata;
                } else if !metadata.is_empty() {
                    let path = format!("/{}", found.path);
                    self.manifest
                        .metadata
                        .push(path, Value::Map(metadata.into()));
                }
                Ok(())
            }
            Ok(Described {
                node: Node::Array(Content::Other(what)),
                ..
            }) => {
                let name = self.name(found);
                let message = format!("array {name:?} is no tensor: {what}");
                self.cx.note("zarr.skipped", 0..0, message);
                let kept = Kept::new(SPEC.id, name, SourceId::MAIN, 0..0);
                push_tight(&mut self.manifest.kept, kept);
                Ok(())
            }
            Ok(Described {
                node: Node::Array(Content::Numbers(array)),
                metadata,
            }) => {
                let name = self.name(found);
                let (dtype, shape) = (array.dtype, array.shape.clone());
                let mut tensor = match self.tensor(name.clone(), found, *array) {
                    Ok(tensor) => tensor,
                    Err(error) => defective(name, dtype, &shape, error)?,
                };
                if found.path.is_empty() {
                    tensor.set_unnamed(true);
                    // Its attributes are those of the file.
                    for (key, value, is_fact) in metadata.entries() {
                        if key == super::DIMENSIONS || is_fact {
                            tensor.metadata.push(key, value.clone());
                        } else {
                            self.manifest.metadata.push(key, value.clone());
                        }
                    }
                } else {
                    tensor.metadata = metadata;
                }
                push_tight(&mut self.manifest.tensors, tensor);
                Ok(())
            }
            // A root that is not understood leaves nothing to be read.
            Err(error) if found.path.is_empty() || !key.ends_with(ARRAY) && is_group(&error) => {
                Err(error)
            }
            Err(error) => {
                let tensor = defective(self.name(found), DType::UNKNOWN, &[], error)?;
                push_tight(&mut self.manifest.tensors, tensor);
                Ok(())
            }
        }
    }

    /// The name of the tensor that an array is: its path, or that of the store.
    fn name(&self, found: &Found) -> String {
        if !found.path.is_empty() {
            return found.path.clone();
        }
        let name = match &*self.store {
            Store::Zip(_) => self.cx.name().map(ToOwned::to_owned),
            Store::Tree(_) => self.cx.directory_name(),
        };
        let name = name.unwrap_or_default();
        let stem = name.strip_suffix(".zip").unwrap_or(&name);
        let stem = stem.strip_suffix(".zarr").unwrap_or(stem);
        match stem {
            "" => "value".to_owned(),
            stem => stem::decode(stem).into_owned(),
        }
    }

    fn tensor(&mut self, name: String, found: &Found, array: Array) -> Result<TensorInfo> {
        let (dtype, endian) = (array.dtype, array.endian);
        let count = element_count(&array.shape).filter(|count| *count <= u64::MAX / 16);
        let Some(count) = count else {
            let message = format!(
                "a shape of {:?} has more elements than can be counted",
                array.shape
            );
            return Err(Error::malformed("zarr.shape", message));
        };
        let prefix = match found.path.as_str() {
            "" => String::new(),
            path => format!("{path}/"),
        };
        if let Some(tensor) = self.raw(&name, &prefix, &array, count)? {
            return Ok(tensor);
        }
        let is_packed = dtype.width().is_none();
        let width = dtype.width().unwrap_or(1);
        let mut chunks = Chunks::new(array.shape.as_slice(), width);
        let pipeline = &array.pipeline;
        chunks.grid = pipeline
            .sides
            .iter()
            .map(|side| Cuts::Every(*side))
            .collect();
        let chunk = pipeline
            .sides
            .iter()
            .copied()
            .try_fold(width as u64, u64::checked_mul);
        if chunk.is_none() {
            let message = format!(
                "chunks of {:?} have more bytes than can be counted",
                pipeline.sides
            );
            return Err(Error::malformed("zarr.shape", message));
        }
        if !pipeline.axes.is_sorted() {
            chunks.axes.clone_from(&pipeline.axes);
        }
        chunks.filters.clone_from(&pipeline.filters);
        chunks.fill = array.fill.clone();
        chunks.files = vec![SourceId::MAIN];
        chunks.room = self.room(&prefix, &chunks)?;
        let shape = array.shape.clone();
        if count > 0 {
            chunks.index = Some(Arc::new(Located {
                store: self.store.clone(),
                prefix,
                array,
                recent: self.recent.clone(),
                memory: self.cx.limits().tensor_memory,
                #[cfg(feature = "std")]
                present: std::sync::OnceLock::new(),
            }));
        }
        if is_packed {
            return self.packed(name, dtype, shape, chunks);
        }
        let mut tensor = TensorInfo::new(name, dtype, shape, Layout::Chunked);
        let mut part = Part::new(Role::Values, dtype, Payload::Chunks(Arc::new(chunks)));
        part.endian = endian;
        tensor.parts = part.into();
        Ok(tensor)
    }

    /// One uncompressed chunk that is the whole array: its bytes.
    fn raw(
        &mut self,
        name: &str,
        prefix: &str,
        array: &Array,
        count: u64,
    ) -> Result<Option<TensorInfo>> {
        let pipeline = &array.pipeline;
        let is_reversed = pipeline.axes.iter().rev().is_sorted() && array.shape.len() > 1;
        let is_raw = pipeline.shards.is_empty()
            && pipeline.filters.is_empty()
            && array.sides == array.shape
            && count > 0
            && (pipeline.axes.is_sorted() || is_reversed);
        let len = array
            .dtype
            .width()
            .and_then(|width| count.checked_mul(width as u64));
        let Some(len) = len.filter(|_| is_raw) else {
            return Ok(None);
        };
        let key = format!("{prefix}{}", array.keys.name(&vec![0; array.shape.len()]));
        let (source, range) = match &*self.store {
            Store::Zip(_) => match self.store.raw(&key) {
                Some(range) => (SourceId::MAIN, range),
                None => return Ok(None),
            },
            Store::Tree(tree) => {
                if self.open >= MOST_OPEN || !tree.is_listed() || !tree.contains(&key)? {
                    return Ok(None);
                }
                let id = self.cx.below(&key.split('/').collect::<Vec<_>>())?;
                self.open += 1;
                let len = self.cx.open(id).map_or(0, |source| source.len());
                (id, 0..len)
            }
        };
        // What is wrong with a chunk shows when it is read.
        if range.end - range.start != len {
            return Ok(None);
        }
        let payload = Payload::Raw { source, range };
        let mut tensor = TensorInfo::dense(name, array.dtype, array.shape.as_slice(), payload);
        if !pipeline.axes.is_sorted() {
            tensor.layout = Order::ColumnMajor.into();
        }
        for part in &mut tensor.parts {
            part.endian = array.endian;
        }
        Ok(Some(tensor))
    }

    /// Elements of less than a byte, each of which has one in the chunks.
    fn packed(
        &self,
        name: String,
        dtype: DType,
        shape: Vec<u64>,
        chunks: Chunks,
    ) -> Result<TensorInfo> {
        let DType::Number(scalar, _) = dtype else {
            return Err(Error::argument("elements that are no numbers"));
        };
        let (bytes, limit) = (
            chunks.len().unwrap_or(u64::MAX),
            self.cx.limits().tensor_memory,
        );
        let most = limit.min(self.cx.limits().expanded(chunks.room));
        if bytes > most {
            let message =
                format!("{bytes} elements of {dtype}, of which {most} are unpacked at most");
            return Err(Error::limit("zarr.limit", message).raised_by("tensor_memory", bytes));
        }
        let Some(main) = self.cx.open(SourceId::MAIN) else {
            return Err(Error::argument("a file that was not opened"));
        };
        let len = dtype.bytes_for(bytes).unwrap_or(0);
        let maker = Arc::new(Packed {
            chunks: Arc::new(chunks),
            main,
            limits: *self.cx.limits(),
            bits: scalar.bits(),
        });
        let payload = Payload::Lazy { len, maker };
        Ok(TensorInfo::dense(name, dtype, shape, payload))
    }

    /// Bytes that chunks are stored in: looked at where they make a difference, because there may be millions of files.
    fn room(&self, prefix: &str, chunks: &Chunks) -> Result<u64> {
        let (len, most) = (
            chunks.len().unwrap_or(u64::MAX),
            self.cx.limits().expanded(0),
        );
        let count = chunks.counts().into_iter().fold(1, u64::saturating_mul);
        if len <= most && count <= 1 << 20 {
            return Ok(0);
        }
        let enough = (len / 64).saturating_add(1).max(count.saturating_mul(8));
        self.store.bytes_below(prefix, enough)
    }

    /// Two arrays of one name: that at the root may be called like another.
    fn unique(&self) -> Result<()> {
        let mut tensors = self.manifest.tensors.iter();
        let root = tensors.find(|tensor| tensor.is_unnamed());
        let Some(root) = root else {
            return Ok(());
        };
        let named = self
            .manifest
            .tensors
            .iter()
            .filter(|tensor| tensor.name == root.name);
        if named.count() > 1 {
            let message = "the array at the root is called like the store, and so is another";
            return Err(Error::malformed("zarr.duplicate", message).in_tensor(&root.name));
        }
        Ok(())
    }

    /// What of the main file is no tensor's data.
    fn regions(&mut self) {
        let len = self.cx.source().len();
        if matches!(&*self.store, Store::Tree(_)) {
            self.manifest.region(0..len, "metadata");
        }
    }
}

/// Whether what failed is a group: nothing in it could be found.
fn is_group(error: &Error) -> bool {
    error.kind() == ErrorKind::Io
}

/// A tensor that is listed and not read. A shape that cannot be counted is none.
fn defective(name: String, dtype: DType, shape: &[u64], error: Error) -> Result<TensorInfo> {
    if matches!(error.kind(), ErrorKind::Io | ErrorKind::Canceled) {
        return Err(error);
    }
    let shape = match element_count(shape) {
        Some(_) => shape,
        None => &[],
    };
    let defect = error.in_tensor(&name).in_format(SPEC.id);
    let mut tensor = TensorInfo::new(name, dtype, shape, Layout::RowMajor);
    tensor.defect = Some(defect);
    Ok(tensor)
}
