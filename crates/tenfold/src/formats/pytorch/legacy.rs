//! The stream of before torch 1.6: five pickles, then the storages.

use super::SPEC;
use super::codec::ROOT;
use crate::error::{Error, Result};
use crate::format::Context;
use crate::format::salvage::CutOff;
use crate::formats::torch::{
    Allowed, Around, Saved, Storage, StorageId, Storages, budget, flatten,
};
use crate::io::{Reader, Source};
use crate::model::{Manifest, Payload, Region, SourceId};
use crate::prelude::*;
use crate::wire::pickle::{self, Budget, Kind, Place, Tree, Value};

/// The number of the first pickle, little-endian.
const MAGIC: [u8; 10] = [0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];
/// The number of the second.
const PROTOCOL: i64 = 1001;

/// Whether a file begins with the number, in any protocol.
pub(super) fn begins(head: &[u8]) -> bool {
    /// No way to write the number is longer.
    const LONGEST: usize = 64;
    let head = head.get(..head.len().min(LONGEST)).unwrap_or_default();
    let is_pickle = matches!(head.first(), Some(0x80 | b'L' | 0x8a | b'I'));
    if !is_pickle || !matches!(pickle::find_end(head), Ok(Some(_))) {
        return false;
    }
    let mut budget = Budget::new(4096);
    let tree = pickle::run(head, &Place::At(0), &mut Allowed::default(), &mut budget);
    tree.is_ok_and(|tree| tree.root().is_ok_and(|root| is_magic(&root)))
}

fn is_magic(value: &Value<'_>) -> bool {
    match value {
        Value::Integer(digits) => {
            let (low, high) = digits.split_at(digits.len().min(MAGIC.len()));
            low == MAGIC && high.iter().all(|byte| *byte == 0)
        }
        _ => false,
    }
}

/// Describes a stream, which may be one of several files.
pub(super) fn describe(
    cx: &mut Context<'_>,
    id: SourceId,
    source: &dyn Source,
    manifest: &mut Manifest,
) -> Result<Saved> {
    let allowed = Allowed {
        script: false,
        opaque: cx.is_opaque(),
    };
    let mut stream = Stream {
        source,
        at: 0,
        limit: cx.limits().header_bytes,
        allowed,
    };
    stream.next(|tree, at| {
        if is_magic(&tree.root()?) {
            return Ok(());
        }
        let message =
            "the first pickle is not the number of torch.save: a bare pickle, or another program's";
        Err(Error::malformed("pytorch.magic", message).at(at))
    })?;
    stream.next(|tree, at| match tree.root()?.as_i64() {
        Some(PROTOCOL) => Ok(()),
        _ => {
            let found = tree.root()?.what();
            let message = format!("protocol {found} of the stream, expected {PROTOCOL}");
            Err(Error::unsupported("pytorch.protocol", message).at(at))
        }
    })?;
    stream.next(check_machine)?;
    let (object, place) = stream.read()?;
    let mut budget = Budget::new(budget(object.len() as u64));
    let mut policy = allowed;
    let tree = pickle::run(&object, &place, &mut policy, &mut budget)?;
    let sizes = sizes(&tree, allowed)?;
    let mut keys = Vec::new();
    stream.next(|tree, at| {
        keys = keys_of(tree).map_err(|error| error.at(at))?;
        Ok(())
    })?;
    manifest
        .regions
        .push(Region::new(id, 0..stream.at, "pickles"));
    let (storages, end) = storages(id, source, stream.at, keys, &sizes, manifest)?;
    drop(sizes);
    let stem = cx.tensor_name();
    let around = Around {
        format: SPEC.id,
        root: cx.option(ROOT.key),
        allowed,
        storages: &storages,
        limits: cx.limits(),
        place: &place,
        pickle: object.len(),
        file: source.len(),
        stem: &stem,
    };
    let mut saved = flatten(&tree, around, &mut budget)?;
    if end > source.len() {
        let cut_off = CutOff {
            source: id,
            file: source.len(),
            expected: end,
            remark: "",
            error: None,
            rule: "pytorch.truncated",
            salvaged: "pytorch.salvaged",
        };
        cut_off.settle(cx, &mut saved.tensors)?;
    }
    Ok(saved)
}

/// Pickles one after the other.
struct Stream<'s> {
    source: &'s dyn Source,
    at: u64,
    limit: u64,
    allowed: Allowed,
}

impl Stream<'_> {
    fn read(&mut self) -> Result<(bytes::Bytes, Place)> {
        let bytes = pickle::read_next(self.source, self.at, self.limit)?;
        let place = Place::At(self.at);
        self.at += bytes.len() as u64;
        Ok((bytes, place))
    }

    /// Looks at what the next one makes.
    fn next(&mut self, look: impl FnOnce(&Tree<'_>, Range<u64>) -> Result<()>) -> Result<()> {
        let (bytes, place) = self.read()?;
        let mut budget = Budget::new(budget(bytes.len() as u64));
        let tree = pickle::run(&bytes, &place, &mut self.allowed, &mut budget)?;
        look(&tree, place.of(0..bytes.len()))
    }
}

/// The third pickle: facts about the machine that wrote the file.
fn check_machine(tree: &Tree<'_>, at: Range<u64>) -> Result<()> {
    let Value::Node(node) = tree.root()? else {
        return Ok(());
    };
    for entry in node.entries() {
        let (key, value) = entry?;
        let is_order = matches!(&key, Value::Text(key) if key == "little_endian");
        if is_order && !matches!(value, Value::Bool(true)) {
            let message = "the stream is big-endian; no known program writes that";
            return Err(Error::unsupported("pytorch.byte-order", message).at(at));
        }
    }
    Ok(())
}

/// Bytes of the elements and their number, by the key of the storage.
type Sizes = LookupMap<String, (u64, u64)>;

/// What the pickle says of all storages, also of those that no tensor has.
fn sizes(tree: &Tree<'_>, allowed: Allowed) -> Result<Sizes> {
    let mut sizes = Sizes::new();
    for node in tree.nodes(Kind::Persistent) {
        let id = match StorageId::parse(allowed, node) {
            Ok(id) => id,
            // The tensor says why, if there is one.
            Err(_) if allowed.opaque => continue,
            Err(error) => return Err(error),
        };
        let Some(width) = id.dtype.and_then(|dtype| dtype.width()) else {
            let message = format!(
                "storage {:?} is bytes without a type, which torch itself cannot load from a stream",
                id.key
            );
            return Err(Error::unsupported("pytorch.storage-class", message));
        };
        let size = (width as u64, id.count);
        match sizes.get(&id.key) {
            None => {
                sizes.insert(id.key, size);
            }
            Some(known) if *known == size => {}
            Some(_) => {
                let message = format!("storage {:?} is of two sizes or types", id.key);
                return Err(Error::malformed("pytorch.storage-size", message));
            }
        }
    }
    Ok(sizes)
}

fn keys_of(tree: &Tree<'_>) -> Result<Vec<String>> {
    let wrong = || {
        let message = "the fifth pickle is not the list of the storages";
        Error::malformed("pytorch.keys", message)
    };
    let Value::Node(node) = tree.root()? else {
        return Err(wrong());
    };
    if !matches!(node.kind(), Kind::List | Kind::Tuple) {
        return Err(wrong());
    }
    let keys = node.items().map(|key| match key? {
        Value::Text(key) => Ok(key.to_string()),
        key @ Value::Integer(_) => Ok(key.what()),
        _ => Err(wrong()),
    });
    keys.collect()
}

/// Goes from storage to storage, also where the file has ended, and says where the last one does.
fn storages(
    id: SourceId,
    source: &dyn Source,
    start: u64,
    keys: Vec<String>,
    sizes: &Sizes,
    manifest: &mut Manifest,
) -> Result<(Storages, u64)> {
    /// Bytes of the number of elements in front of a storage.
    const HEAD: u64 = 8;
    let mut storages = Storages::default();
    let mut r = Reader::over(source, start..source.len(), "pytorch.truncated");
    let mut at = start;
    for key in keys {
        let overflow = || {
            let message = format!("storage {key:?} has more bytes than fit 64 bits");
            Error::malformed("pytorch.storage-size", message)
        };
        let head = at..at.checked_add(HEAD).ok_or_else(overflow)?;
        let about = |error: Error| error.at(head.clone());
        let Some((width, expected)) = sizes.get(&key).copied() else {
            let message = format!("storage {key:?} is in the list and no tensor is of it");
            return Err(about(Error::malformed("pytorch.keys", message)));
        };
        if head.end <= source.len() {
            r.skip_to(at, "a storage")?;
            let count = r.i64("the number of elements of a storage")?;
            if u64::try_from(count) != Ok(expected) {
                let message =
                    format!("storage {key:?} has {count} elements, the pickle says {expected}");
                return Err(about(Error::malformed("pytorch.storage-size", message)));
            }
            push_tight(
                &mut manifest.regions,
                Region::new(id, head.clone(), "storage's header"),
            );
        }
        if storages.place(&key).is_some() {
            let message = format!("storage {key:?} is in the list twice");
            return Err(about(Error::malformed("pytorch.keys", message)));
        }
        let len = expected.checked_mul(width);
        let end = len.and_then(|len| head.end.checked_add(len));
        let range = head.end..end.ok_or_else(|| about(overflow()))?;
        at = range.end;
        storages.add(Storage {
            key,
            payload: Payload::Raw { source: id, range },
            crc32: None,
        });
    }
    Ok((storages, at))
}
