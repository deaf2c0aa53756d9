//! Between the members of a model and the model of tensors.

use bytes::Bytes;

use super::{CONFIG, METADATA, SPEC, WEIGHTS, layers, shards};
use crate::digest::Crc32;
use crate::error::{Error, ErrorKind, Hint, Result};
use crate::format::{Confidence, Context, Format, Head, OptionSpec, Spec};
use crate::io::{Limits, Source};
use crate::model::{
    Checksum, DType, DigestKind, Kept, Manifest, Metadata, Over, Packer, SealedRange, SourceId,
    Value,
};
use crate::prelude::*;
use crate::transform::{Inflate, Input};
use crate::wire::hdf5::{self, Content, Remark, RemarkKind};
use crate::wire::json::{Json, Rules};
use crate::wire::zip::{self, Member, Zip};

/// Reads Keras models.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keras;

/// Bytes of `metadata.json`, at most.
const MOST_METADATA: u64 = 1 << 20;
/// A deflated member is held in memory: as many times its stored bytes, or so many bytes.
const MOST_RATIO: u64 = 12;
const FREE: u64 = 8 << 20;

pub(super) const RULES: Rules = Rules {
    syntax: "keras.json",
    text: "keras.utf8",
    depth: "keras.depth",
};
pub(super) const MOST_DEPTH: usize = 64;

impl Format for Keras {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn detect(&self, head: &Head<'_>) -> Result<Confidence> {
        let is_named = |ending: &str| head.name().is_some_and(|name| name.ends_with(ending));
        let name = head.name().unwrap_or_default();
        let is_named_index = shards::is_index_name(name) && !head.first().is_empty();
        if is_named_index || shards::is_index_text(head.first()) {
            return Ok(Confidence::Certain);
        }
        if !head.first().starts_with(b"PK\x03\x04") {
            return Ok(Confidence::No);
        }
        let by_name = if is_named(".keras") {
            Confidence::Likely
        } else {
            Confidence::No
        };
        Ok(if zip::Kind::of(head)? == zip::Kind::Keras {
            Confidence::Certain
        } else {
            by_name
        })
    }

    fn is_index(&self, name: &str) -> bool {
        shards::is_index_name(name)
    }

    fn directory_file(&self, names: &[String]) -> Option<&'static str> {
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        (has(WEIGHTS) && has(CONFIG)).then_some(CONFIG)
    }

    fn reading_options(&self) -> &'static [OptionSpec] {
        const { &[layers::NAMES, layers::AS_METADATA] }
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        let first = cx.source().read(0..cx.source().len().min(4))?;
        if first == b"PK\x03\x04"[..] {
            archive(cx)
        } else if cx.name() == Some(CONFIG) {
            directory(cx)
        } else {
            shards::describe(cx)
        }
    }
}

/// A model in a zip archive.
fn archive(cx: &mut Context<'_>) -> Result<Manifest> {
    let source = cx.source();
    let Some(zip) = Zip::open(source, cx.limits().header_bytes)? else {
        return Err(zip::no_end(source));
    };
    for (rule, at, message) in zip.remarks {
        cx.warn(rule, at, message)?;
    }
    let mut manifest = Manifest::new("zip");
    let (mut weights, mut config) = (None, None);
    for member in &zip.members {
        manifest.region(member.header.clone(), "member's header");
        if let Some(range) = &member.descriptor {
            manifest.region(range.clone(), "member's descriptor");
        }
        match member.name.as_str() {
            WEIGHTS => weights = Some(member),
            METADATA => {
                manifest.region(member.data.clone(), "metadata");
                let text = unpacked(cx, member, MOST_METADATA)?;
                manifest.metadata = metadata(&text, member.data.start)?;
            }
            name => {
                if name == CONFIG {
                    config = Some(member);
                }
                manifest.region(member.data.clone(), "other member");
                let range = member.data.clone();
                let kept = Kept::new(SPEC.id, &member.name, SourceId::MAIN, range);
                manifest.kept.push(kept);
            }
        }
        if !member.is_deflated {
            manifest.sealed.push(seal(member));
        }
    }
    manifest.region(zip.tail, "directory");
    let weights = weights.ok_or_else(|| no_weights(&zip.members))?;
    let content = if weights.is_deflated {
        manifest.region(weights.data.clone(), "deflated weights");
        let bytes = unpacked(cx, weights, room(cx, weights))?;
        let len = bytes.len() as u64;
        let id = cx.add(WEIGHTS, Arc::new(bytes.clone()));
        hdf5::read(&bytes, id, 0..len, cx.limits()).map_err(|error| error.in_file(id, WEIGHTS))?
    } else {
        let content = hdf5::read(source, SourceId::MAIN, weights.data.clone(), cx.limits())?;
        for range in content.others() {
            manifest.region(range, "structures");
        }
        content
    };
    if let Some(member) = config {
        let most = cx.limits().header_bytes.min(room(cx, member));
        let text = |cx: &Context<'_>| unpacked(cx, member, most);
        architecture(cx, &mut manifest, &content, text)?;
    }
    add(cx, &mut manifest, content)?;
    Ok(manifest)
}

/// What a deflated member may take in memory. Whoever sets another limit on that means this too.
fn room(cx: &Context<'_>, member: &Member) -> u64 {
    let stored = member.data.end - member.data.start;
    let usual = stored.saturating_mul(MOST_RATIO).saturating_add(FREE);
    let limit = cx.limits().tensor_memory;
    if limit == Limits::default().tensor_memory {
        usual
    } else {
        limit.max(usual)
    }
}

/// What the architecture says, where that is asked for or about bytes that are more than they seem.
fn architecture(
    cx: &mut Context<'_>,
    manifest: &mut Manifest,
    content: &Content,
    text: impl FnOnce(&Context<'_>) -> Result<Bytes>,
) -> Result<()> {
    let is_wanted = cx.flag(layers::AS_METADATA.key)?;
    let has_bytes = content
        .tensors
        .iter()
        .any(|tensor| tensor.dtype == DType::I8);
    if !is_wanted && !has_bytes {
        return Ok(());
    }
    let text = text(cx)?;
    if let [first, others @ ..] = layers::packed(&text).as_slice() {
        let more = match others.len() {
            0 => String::new(),
            n => format!(", and so are {n} more"),
        };
        let message = format!(
            "layer {first:?} is quantized to 4 bits{more}: kernels hold two values in each i8, in an order of Keras' own"
        );
        cx.note("keras.int4", 0..0, message);
    }
    if is_wanted {
        let text = core::str::from_utf8(&text).map_err(|cause| {
            let message = format!("{CONFIG} is not UTF-8");
            Error::malformed("keras.utf8", message).because(cause)
        })?;
        manifest
            .metadata
            .push("config", Value::Str(text.to_owned()));
    }
    Ok(())
}

/// The error for an archive without weights.
fn no_weights(members: &[Member]) -> Error {
    let npz = members
        .iter()
        .find(|member| member.name == "model.weights.npz");
    match npz {
        Some(npz) => {
            let message = "the weights are pickled objects in model.weights.npz, which Keras itself cannot load; only model.weights.h5 is read";
            Error::unsupported("keras.weights", message).at(npz.header.clone())
        }
        None => {
            let message =
                format!("there is no member {WEIGHTS:?}: no Keras model, or one without weights");
            Error::malformed("keras.weights", message)
        }
    }
}

fn seal(member: &Member) -> SealedRange {
    let value = Bytes::copy_from_slice(&member.crc32.to_be_bytes());
    let checksum = Checksum::new(DigestKind::Crc32, Over::Stored, value);
    let what = format!("member {:?}", member.name);
    SealedRange::new(SourceId::MAIN, member.data.clone(), checksum, what)
}

/// The bytes of a member, of which there may be `most`.
fn unpacked(cx: &Context<'_>, member: &Member, most: u64) -> Result<Bytes> {
    let at = member.data.clone();
    if member.size > most {
        let message = format!(
            "member {:?} has {} bytes unpacked, the limit is {most}",
            member.name, member.size
        );
        let error = Error::limit("keras.member-size", message).at(at);
        return Err(match most {
            MOST_METADATA => error,
            _ => error.raised_by("tensor_memory", member.size),
        });
    }
    if !member.is_deflated {
        return cx.source().read(at);
    }
    let mut inflate = Inflate::new(Input::Source {
        id: SourceId::MAIN,
        source: cx.source(),
        range: at.clone(),
        control: None,
    });
    let mut bytes = crate::io::zeros(member.size)?;
    let is_whole = inflate
        .fill(&mut bytes)
        .map_err(|error| error.at(at.clone()))?;
    let is_end = inflate
        .read(&mut [0])
        .map_err(|error| error.at(at.clone()))?
        == 0;
    if !is_whole || !is_end {
        let message = format!(
            "member {:?} does not unpack to {} bytes",
            member.name, member.size
        );
        return Err(Error::malformed("keras.member-size", message).at(at));
    }
    let found = Crc32::of(&bytes);
    if found != member.crc32 {
        let message = format!(
            "the CRC-32 of member {:?} is {found:08x}, {:08x} is stored",
            member.name, member.crc32
        );
        return Err(Error::mismatch("keras.checksum", message).at(at));
    }
    Ok(bytes.into())
}

/// A model in a directory, opened through its `config.json`.
fn directory(cx: &mut Context<'_>) -> Result<Manifest> {
    let mut manifest = Manifest::new("directory");
    let len = cx.source().len();
    manifest.region(0..len, "architecture");
    manifest
        .kept
        .push(Kept::new(SPEC.id, CONFIG, SourceId::MAIN, 0..len));
    let names = cx.siblings()?;
    if names.iter().any(|name| name == METADATA) {
        let id = cx.sibling(METADATA)?;
        if let Some(source) = cx.open(id) {
            if source.len() > MOST_METADATA {
                let message = format!("{METADATA} has {} bytes", source.len());
                return Err(Error::limit("keras.member-size", message));
            }
            let text = source.read(0..source.len())?;
            manifest.metadata = metadata(&text, 0).map_err(|error| error.in_file(id, METADATA))?;
        }
    }
    let id = cx.sibling(WEIGHTS).map_err(|cause| match cause.kind() {
        ErrorKind::NotFound => {
            let message = format!("there is no {WEIGHTS} beside {CONFIG}");
            Error::new(ErrorKind::NotFound, "keras.weights", message).because(cause)
        }
        _ => cause,
    })?;
    let source = cx
        .open(id)
        .ok_or_else(|| Error::argument("a file that was not opened"))?;
    let content = hdf5::read(&*source, id, 0..source.len(), cx.limits());
    let content = content.map_err(|error| error.in_file(id, WEIGHTS))?;
    architecture(cx, &mut manifest, &content, |cx| {
        let (len, limit) = (cx.source().len(), cx.limits().header_bytes);
        if len > limit {
            let message = format!("{CONFIG} has {len} bytes, the limit is {limit}");
            return Err(Error::limit("keras.limit", message).raised_by("header_bytes", len));
        }
        cx.source().read(0..len)
    })?;
    add(cx, &mut manifest, content)?;
    Ok(manifest)
}

/// What `metadata.json` says.
fn metadata(text: &[u8], at: u64) -> Result<Metadata> {
    let mut json = Json::new(text, at, MOST_DEPTH, &RULES)?;
    let mut again = |key: &str, at: u64| {
        let message = format!("metadata.json has {key:?} twice");
        Err(Error::malformed("keras.duplicate", message).at(at..at + 1))
    };
    let mut packer = Packer::map();
    let mut places = Vec::new();
    json.object("metadata.json")?;
    while let Some(key) = json.key()? {
        places.push(json.key_at());
        packer.key(&key);
        json.pack(&mut packer, &mut again)?;
    }
    json.end()?;
    packer
        .last_wins(&mut |key, place| again(key, places.get(place).copied().unwrap_or_default()))?;
    Ok(Metadata::from(&packer.into_map()))
}

/// Adds the tensors of an HDF5 file, with the names that their layers have.
pub(super) fn add(
    cx: &mut Context<'_>,
    manifest: &mut Manifest,
    mut content: Content,
) -> Result<()> {
    report(cx, &content)?;
    let renames = layers::are_wanted(cx)?;
    let mut seen: LookupMap<String, String> = LookupMap::new();
    let mut tensors = core::mem::take(&mut content.tensors);
    for tensor in &mut tensors {
        if let Some(layer) = layers::layer(&content, &tensor.name) {
            let layer = layer.to_owned();
            tensor.metadata.push_fact("layer", layer.into());
        }
        if renames {
            let name = layers::renamed(&content, &tensor.name);
            let path = core::mem::replace(&mut tensor.name, name.clone());
            if let Some(other) = seen.insert(name.clone(), path.clone()) {
                let message =
                    format!("{other:?} and {path:?} would have this name by their layers");
                let error = Error::malformed("keras.duplicate", message).in_tensor(&name);
                return Err(error.hinting(Hint::FormatOption {
                    key: layers::NAMES.key,
                    value: "group",
                    does: "names them by their groups",
                }));
            }
        }
    }
    for tensor in tensors {
        push_tight(&mut manifest.tensors, tensor);
    }
    Ok(())
}

/// Says what is no tensor of its own. Weights that are links into other files are none that could be read.
fn report(cx: &mut Context<'_>, content: &Content) -> Result<()> {
    for Remark { kind, path, why } in &content.remarks {
        let message = format!("{path:?}: {why}");
        match kind {
            RemarkKind::External => return Err(Error::unsupported("hdf5.external", message)),
            RemarkKind::Alias => cx.note("hdf5.alias", content.range.clone(), message),
            RemarkKind::Attribute => cx.note("hdf5.attribute", content.range.clone(), message),
            RemarkKind::Named => cx.note("hdf5.named", content.range.clone(), message),
            RemarkKind::Skipped => cx.note("hdf5.skipped", content.range.clone(), message),
        }
    }
    Ok(())
}
