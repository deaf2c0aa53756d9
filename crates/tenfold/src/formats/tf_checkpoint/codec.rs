//! Between a bundle and the description of its tensors.

use bytes::Bytes;

use super::entry::{BundleEntry, Header};
use super::shards::{self, Bundle, INDEX, Shards};
use super::slices::{self, Slices};
use super::strings::Texts;
#[cfg(feature = "write")]
use super::write;
use super::{OBJECT_GRAPH, SPEC, V2, dtypes, graph, names, table};
use crate::error::{Error, Result};
use crate::format::salvage::CutOff;
#[cfg(feature = "write")]
use crate::format::{Arranged, Finding, Plan, PlanOptions};
use crate::format::{Confidence, Context, Format, Head, OptionSpec, Spec, diagnose};
use crate::formats::narrow::Narrow;
use crate::model::{
    Endian, Kept, Layout, Manifest, Over, Part, Payload, Region, Role, SealedRange, SourceId,
    TensorInfo,
};
use crate::prelude::*;

/// Reads and writes TensorFlow's checkpoints.
#[derive(Clone, Copy, Debug)]
pub(super) struct TfCheckpoint;

impl Format for TfCheckpoint {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn detect(&self, head: &Head<'_>) -> Result<Confidence> {
        let (first, name) = (head.first(), head.name().unwrap_or_default());
        if shards::names_latest(first) || begins_like_one(first) {
            return Ok(Confidence::Likely);
        }
        if name.ends_with(INDEX) && table::ends_like_one(head)? {
            return Ok(Confidence::Likely);
        }
        // A damaged one, or data alone: describing it says so.
        let is_index = name.ends_with(INDEX) && diagnose::instead(head).is_none();
        Ok(if is_index || shards::prefix_of_data(name).is_some() {
            Confidence::Possible
        } else {
            Confidence::No
        })
    }

    fn directory_file(&self, names: &[String]) -> Option<&'static str> {
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        if has("saved_model.pb") || has("saved_model.pbtxt") {
            return Some("variables/variables.index");
        }
        let has_index = || names.iter().any(|name| name.ends_with(INDEX));
        (has("checkpoint") && has_index()).then_some("checkpoint")
    }

    fn file_of_prefix(&self, prefix: &str) -> Option<String> {
        Some(format!("{prefix}{INDEX}"))
    }

    fn reading_options(&self) -> &'static [OptionSpec] {
        const { &[NAMES] }
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        let names = Names::of(cx)?;
        let bundle = Bundle::find(cx)?;
        let listing = Listing::read(cx, &bundle)?;
        let mut manifest = Manifest::new(V2);
        let index = 0..bundle.source(cx).len();
        manifest
            .regions
            .push(Region::new(bundle.id, index, "index"));
        let (id, prefix) = (bundle.id, bundle.prefix);
        Describing::new(cx, listing, prefix)?.describe(cx, &mut manifest, names, id)?;
        Ok(manifest)
    }

    #[cfg(feature = "write")]
    fn arrange(&self, what: &Manifest, _: &PlanOptions) -> Result<Option<Arranged>> {
        Ok(Some(write::arrange(what)))
    }

    #[cfg(feature = "write")]
    fn remarks(&self, what: &Manifest, options: &PlanOptions) -> Vec<Finding> {
        write::remarks(what, options)
    }

    #[cfg(feature = "write")]
    fn plan(&self, what: &Manifest, options: &PlanOptions) -> Result<Plan> {
        write::plan(what, options)
    }
}

/// Whether a table begins here whose first key is empty and has a header, of V2 or of V1: nothing else does.
fn begins_like_one(first: &[u8]) -> bool {
    // Nothing of the key is shared, and nothing is not.
    let Some(rest) = first.strip_prefix(&[0, 0]) else {
        return false;
    };
    let Some((len, value)) = short(rest) else {
        return false;
    };
    match value {
        [0x08, ..] => {
            let header = value.get(..len).map(Bytes::copy_from_slice);
            header.is_some_and(|header| Header::parse(&header).is_ok())
        }
        // V1 has a message about all tensors there.
        [0x0a, inner @ ..] => short(inner).is_some_and(|(inner, _)| inner < len),
        _ => false,
    }
}

/// A number of up to three bytes, and what is behind it.
fn short(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut number = 0;
    for (place, byte) in bytes.iter().take(3).enumerate() {
        number |= usize::from(byte & 0x7f) << (7 * place);
        if *byte < 0x80 {
            return Some((number, bytes.get(place + 1..)?));
        }
    }
    None
}

/// What tensors are called.
const NAMES: OptionSpec = OptionSpec::new(
    "names",
    "key|path|variable",
    "call tensors by their keys (default), by the paths of objects without /.ATTRIBUTES/VARIABLE_VALUE, or as the graph of objects says that variables were called",
);

/// What the keys of the variables of objects end with.
const VALUE: &str = "/.ATTRIBUTES/VARIABLE_VALUE";

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Names {
    Key,
    Path,
    Variable,
}

impl Names {
    fn of(cx: &Context<'_>) -> Result<Self> {
        match cx.option(NAMES.key) {
            None | Some("key") => Ok(Names::Key),
            Some("path") => Ok(Names::Path),
            Some("variable") => Ok(Names::Variable),
            Some(other) => {
                let message = format!("names={other:?}: key, path or variable is expected");
                Err(Error::argument(message))
            }
        }
    }
}

/// What the index says.
#[derive(Default)]
struct Listing {
    header: Option<Header>,
    entries: Vec<(String, BundleEntry)>,
    slices: Slices,
    /// Bytes that were made of it, which its own length has to be good for.
    made: u64,
}

/// What is made of the shortest index, and of each byte of a longer one. Names share their beginnings: TensorFlow takes 24 bytes
/// for a variable of a name like `layers/999/weight.9990`, of which 500 are made.
const FREE: u64 = 8 << 20;
const TIMES: u64 = 24;
/// What a tensor takes beside its name.
const TENSOR: usize = size_of::<(String, BundleEntry)>() + size_of::<TensorInfo>();

impl Listing {
    fn read(cx: &mut Context<'_>, bundle: &Bundle) -> Result<Self> {
        let source = bundle.source(cx);
        let limit = FREE.saturating_add(source.len().saturating_mul(TIMES));
        let mut listing = Self::default();
        let read = table::read(cx, source, |cx, key, value| {
            listing.add(cx, key, value)?;
            if listing.made <= limit {
                return Ok(());
            }
            let message =
                "the index describes many times more than its own length: it takes too much memory";
            Err(Error::limit("tf_checkpoint.limit", message))
        });
        read.map_err(|error| match error.range() {
            Some((SourceId::MAIN, at)) => error.at_source(bundle.id, at),
            _ => error,
        })?;
        Ok(listing)
    }

    fn add(&mut self, cx: &Context<'_>, key: &[u8], value: &Bytes) -> Result<()> {
        if key.is_empty() {
            self.header = Some(Header::parse(value)?);
            return Ok(());
        }
        if self.header.is_none() {
            let message = "the index has no header, which comes first under the empty key";
            return Err(Error::malformed("tf_checkpoint.header", message));
        }
        let shown = || String::from_utf8_lossy(key).into_owned();
        let entry = BundleEntry::parse(cx, value).map_err(|error| error.in_tensor(&shown()))?;
        let extents: usize = entry.slices.iter().map(|slice| 24 + slice.len() * 24).sum();
        let dims = entry.shape.len().saturating_mul(8);
        self.made = self
            .made
            .saturating_add((TENSOR + key.len() + extents + dims) as u64);
        if key.first() == Some(&names::MARK) {
            self.slices.insert(key.to_vec(), entry);
            return Ok(());
        }
        let Ok(name) = core::str::from_utf8(key) else {
            let message = format!("the name \"{}\" is not UTF-8", key.escape_ascii());
            return Err(Error::malformed("tf_checkpoint.utf8", message));
        };
        push_tight(&mut self.entries, (name.to_owned(), entry));
        Ok(())
    }

    /// The files that have data of something.
    fn shards(&self, header: Header) -> Result<Vec<u64>> {
        let entries = self.entries.iter().map(|(_, entry)| entry);
        let slices = self
            .entries
            .iter()
            .filter(|(_, entry)| !entry.slices.is_empty());
        let slices = slices.flat_map(|(name, entry)| {
            let keys = entry
                .slices
                .iter()
                .map(|slice| names::of_slice(name, slice));
            keys.filter_map(|key| self.slices.get(&key))
        });
        let mut shards: Vec<u64> = (entries.chain(slices))
            .filter(|entry| entry.size > 0)
            .map(|entry| entry.shard)
            .collect();
        shards.sort_unstable();
        shards.dedup();
        match shards.last() {
            Some(last) if *last >= header.shards => {
                let message = format!(
                    "a tensor is in file {}, the index says that there are {}",
                    last.cast_signed(),
                    header.shards
                );
                Err(Error::malformed("tf_checkpoint.shards", message))
            }
            _ => Ok(shards),
        }
    }
}

/// A bundle while it is described.
struct Describing {
    endian: Endian,
    entries: Vec<(String, BundleEntry)>,
    slices: Slices,
    shards: Shards,
    tensors: Vec<TensorInfo>,
    sealed: Vec<SealedRange>,
    graph: Option<Bytes>,
}

impl Describing {
    fn new(cx: &mut Context<'_>, listing: Listing, prefix: String) -> Result<Self> {
        let header = listing.header.ok_or_else(|| {
            Error::malformed(
                "tf_checkpoint.header",
                "the index is empty: it has no header",
            )
        })?;
        let needed = listing.shards(header)?;
        Ok(Self {
            endian: header.endian,
            shards: Shards::open(cx, prefix, header.shards, &needed)?,
            entries: listing.entries,
            slices: listing.slices,
            tensors: Vec::new(),
            sealed: Vec::new(),
            graph: None,
        })
    }

    fn describe(
        mut self,
        cx: &mut Context<'_>,
        manifest: &mut Manifest,
        names: Names,
        index: SourceId,
    ) -> Result<()> {
        for (name, entry) in core::mem::take(&mut self.entries) {
            if entry.dtype == dtypes::STRING {
                let read = self.text(cx, &name, &entry, manifest);
                read.map_err(|error| error.in_tensor(&name))?;
                continue;
            }
            let tensor = self.tensor(cx, &name, &entry).unwrap_or_else(|error| {
                let dtype = dtypes::known(entry.dtype).unwrap_or(crate::model::DType::UNKNOWN);
                let mut tensor =
                    TensorInfo::new(&name, dtype, entry.shape.clone(), Layout::RowMajor);
                tensor.defect = Some(error.in_tensor(&name).in_format(SPEC.id));
                tensor
            });
            push_tight(&mut self.tensors, tensor);
        }
        self.settle(cx)?;
        if let Some(count @ 1..) = Some(self.slices.len()) {
            let message = format!("{count} slices belong to no tensor");
            cx.warn_in(index, "tf_checkpoint.slice-left", 0..0, message)?;
        }
        if names != Names::Key {
            self.rename(names)?;
            manifest.kept.clear();
        }
        manifest.tensors = self.tensors.into();
        manifest.sealed.append(&mut self.sealed);
        Ok(())
    }

    fn tensor(&mut self, cx: &Context<'_>, name: &str, entry: &BundleEntry) -> Result<TensorInfo> {
        let dtype = dtypes::known(entry.dtype).ok_or_else(|| unread(entry.dtype))?;
        if !entry.slices.is_empty() {
            let types = (dtype, self.endian);
            let (tensor, mut sealed) =
                slices::tensor(name, entry, types, &mut self.slices, &self.shards)?;
            self.sealed.append(&mut sealed);
            return Ok(tensor);
        }
        slices::check_size(entry, dtype)?;
        if dtypes::is_narrow(dtype) {
            return self.narrow(cx, name, entry);
        }
        let payload = match entry.size {
            0 => Payload::Inline(Bytes::new()),
            _ => {
                let (shard, range) = self.shards.place(entry)?;
                let source = shard.id;
                Payload::Raw { source, range }
            }
        };
        let mut tensor = TensorInfo::new(name, dtype, entry.shape.clone(), Layout::RowMajor);
        let mut part = Part::new(Role::Values, dtype, payload);
        part.endian = self.endian;
        if entry.size > 0 {
            part.checksum = Some(Box::new(slices::checksum(entry.crc32c, Over::Stored)));
        }
        tensor.parts = part.into();
        Ok(tensor)
    }

    /// A tensor of elements below a byte, each of which has a byte in the file.
    fn narrow(&mut self, cx: &Context<'_>, name: &str, entry: &BundleEntry) -> Result<TensorInfo> {
        let dtype = dtypes::known(entry.dtype).ok_or_else(|| unread(entry.dtype))?;
        if entry.size == 0 {
            let nothing = Payload::Inline(Bytes::new());
            return Ok(TensorInfo::dense(name, dtype, entry.shape.clone(), nothing));
        }
        let (shard, range) = self.shards.range(entry)?;
        let id = shard.id;
        let source = cx
            .open(id)
            .ok_or_else(|| Error::argument("a file that is not open"))?;
        let sum = slices::checksum(entry.crc32c, Over::Stored);
        let sealed = SealedRange::new(id, range.clone(), sum, format!("the data of {name:?}"));
        push_tight(&mut self.sealed, sealed);
        let narrow = Narrow {
            id,
            source,
            bits: 4,
            is_strict: true,
            limit: cx.limits().tensor_memory,
            ranges: vec![range],
        };
        let payload = Payload::Lazy {
            len: entry.size.div_ceil(2),
            maker: Arc::new(narrow),
        };
        Ok(TensorInfo::dense(name, dtype, entry.shape.clone(), payload))
    }

    /// A tensor of text: a value of metadata, or the graph of objects.
    fn text(
        &mut self,
        cx: &mut Context<'_>,
        name: &str,
        entry: &BundleEntry,
        manifest: &mut Manifest,
    ) -> Result<()> {
        let count = crate::model::element_count(&entry.shape);
        let count = count.ok_or_else(|| {
            let message = format!(
                "shape {:?} has more elements than can be counted",
                entry.shape
            );
            Error::malformed("tf_checkpoint.shape", message)
        })?;
        let limit = cx.limits().header_bytes;
        if entry.size > limit {
            let message = format!("text of {} bytes, the limit is {limit}", entry.size);
            let error = Error::limit("tf_checkpoint.limit", message);
            return Err(error.raised_by("header_bytes", entry.size));
        }
        if entry.size == 0 && count == 0 {
            manifest.metadata.push(
                name,
                crate::model::Value::List(crate::model::List::default()),
            );
            return Ok(());
        }
        let (shard, range) = self.shards.range(entry)?;
        let source = cx.open(shard.id);
        let source = source.ok_or_else(|| Error::argument("a file that is not open"))?;
        let bytes = crate::io::read_exactly(&*source, range.clone())?;
        let texts =
            Texts::parse(bytes, count).map_err(|error| error.at_source(shard.id, range.clone()))?;
        if !texts.lengths_match || texts.checksum != entry.crc32c {
            let what = if texts.lengths_match {
                "text"
            } else {
                "the lengths of text"
            };
            let message = format!("{what} of {name:?} do not have the checksum that is stored");
            cx.mismatch_in(shard.id, "tf_checkpoint.checksum", range.clone(), message)?;
        }
        let region = |label| Region::new(shard.id, range.clone(), label);
        if name == OBJECT_GRAPH
            && entry.shape.is_empty()
            && let Some(graph) = texts.only()
        {
            push_tight(&mut manifest.regions, region("object graph"));
            let kept = Kept::new(SPEC.id, name, shard.id, range.clone()).frame(true);
            manifest.kept.push(kept);
            self.graph = Some(graph);
            return Ok(());
        }
        push_tight(&mut manifest.regions, region("text"));
        match texts.value(&entry.shape) {
            Some(value) => manifest.metadata.push(name, value),
            None => {
                let message = format!(
                    "text of the shape {:?} has too many dimensions",
                    entry.shape
                );
                return Err(Error::unsupported("tf_checkpoint.text", message));
            }
        }
        Ok(())
    }

    /// Refuses files of data that end before their tensors do.
    fn settle(&mut self, cx: &mut Context<'_>) -> Result<()> {
        for (shard, len) in self.shards.all() {
            let stored = self.tensors.iter().flat_map(|tensor| &tensor.parts);
            let ends = stored.filter_map(|part| match part.payload.stored() {
                Some((id, range)) if id == shard && !range.is_empty() => Some(range.end),
                _ => None,
            });
            let Some(expected) = ends.max().filter(|end| *end > len) else {
                continue;
            };
            let cut = CutOff {
                source: shard,
                file: len,
                expected,
                remark: "",
                error: None,
                rule: "tf_checkpoint.bounds",
                salvaged: "tf_checkpoint.cut-off",
            };
            cut.settle(cx, &mut self.tensors)?;
        }
        Ok(())
    }

    /// Calls tensors otherwise, as far as no two are called the same.
    fn rename(&mut self, names: Names) -> Result<()> {
        let full = match &self.graph {
            Some(graph) if names == Names::Variable => graph::full_names(graph)?,
            _ => LookupMap::default(),
        };
        let wanted = |name: &str| match full.get(name) {
            Some(full) => Some(full.clone()),
            None => name.strip_suffix(VALUE).map(ToOwned::to_owned),
        };
        let mut taken: LookupMap<String, usize> = LookupMap::default();
        for tensor in &self.tensors {
            let name = wanted(&tensor.name).unwrap_or_else(|| tensor.name.clone());
            *taken.entry(name).or_default() += 1;
        }
        for tensor in &mut self.tensors {
            if let Some(name) = wanted(&tensor.name).filter(|name| !name.is_empty())
                && taken.get(&name) == Some(&1)
            {
                tensor.name = name;
            }
        }
        Ok(())
    }
}

/// Says what a type is that is not read.
fn unread(number: u64) -> Error {
    /// References to variables of the graph.
    const REFERENCE: u64 = 100;
    if let Some(name) = dtypes::other(number) {
        let message = format!("its type is {name}, which is not read");
        return Error::unsupported("tf_checkpoint.dtype", message);
    }
    let message = match number {
        0 => "its type is not said".to_owned(),
        REFERENCE.. if dtypes::known(number - REFERENCE).is_some() => {
            format!("its type is {number}, a reference")
        }
        number => format!("its type is {}, which is not known", number.cast_signed()),
    };
    Error::malformed("tf_checkpoint.dtype", message)
}
