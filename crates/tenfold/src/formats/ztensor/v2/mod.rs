//! Generation 2: objects made of parts, in one file or several, described in deterministic CBOR.
//!
//! | where  | size | content |
//! |--------|------|---------|
//! | 0      | 8 | magic |
//! | heap   |   | data and the manifest, at multiples of 4096 |
//! | end-40 | 8 | manifest offset, u64 LE |
//! | end-32 | 8 | manifest length, u64 LE |
//! | end-24 | 8 | XXH3-64 of the manifest, u64 LE |
//! | end-16 | 4 | version, 2 |
//! | end-12 | 4 | reserved, ignored |
//! | end-8  | 8 | magic |
//!
//! Offset, length and hash of 0 mark a file that holds data for others only.

mod object;
mod shards;

use crate::digest::Hasher;
use crate::error::{Error, Result};
use crate::format::Context;
use crate::formats::ztensor::capability::DEPTH_2;
use crate::formats::ztensor::raw::{Object, Others, SCHEMA_2};
use crate::formats::ztensor::read;
use crate::io::{Reader, Source};
use crate::model::{DigestKind, Manifest, Metadata};
use crate::prelude::*;
use crate::wire::cbor::{Decoder, Encoder, Key};

use object::Reading;
pub(super) use object::{BLOCK_BYTES, COO, CSR, ELEMS_PER_BLOCK, FRAME, SEEKABLE};
use shards::Shards;

pub(super) const MAGIC: &[u8] = b"\x89ZT2\r\n\x1a\n";
pub(super) const ALIGN: u64 = 4096;
const VERSION: u32 = 2;
/// Bytes of the keys that an object must have, rounded down.
const MIN_OBJECT: usize = 32;
const FOOTER: u64 = 40;
/// The same, of bytes in memory.
pub(super) const FOOTER_BYTES: usize = 40;
/// The magic and the footer.
pub(super) const MIN_FILE: u64 = 48;

/// The end of a file.
struct Footer {
    manifest_offset: u64,
    manifest_length: u64,
    manifest_hash: u64,
}

impl Footer {
    /// Checks the frame of a file: both magics and the version.
    fn parse(source: &dyn Source) -> Result<Self> {
        let len = source.len();
        let refuse = |rule, message: String, at| Err(Error::malformed(rule, message).at(at));
        if len < MIN_FILE {
            let message = format!("{len} bytes, the smallest file has {MIN_FILE}: it is truncated");
            return refuse("ztensor.truncated", message, 0..len);
        }
        if source.read(0..8)? != MAGIC {
            return refuse(
                "ztensor.magic",
                "does not begin with the magic".into(),
                0..8,
            );
        }
        let at = len - FOOTER;
        let mut r = Reader::over(source, at..len, "ztensor.truncated");
        let footer = Self {
            manifest_offset: r.u64("manifest offset")?,
            manifest_length: r.u64("manifest length")?,
            manifest_hash: r.u64("manifest hash")?,
        };
        let version = r.u32("version")?;
        r.skip(4, "reserved")?;
        if r.take(8, "magic")? != MAGIC {
            let message = "does not end with the magic: the file is truncated, or was being \
                           appended to";
            return refuse("ztensor.footer", message.into(), len - 8..len);
        }
        if version != VERSION {
            let message = format!("the footer is of version {version}, expected {VERSION}");
            return refuse("ztensor.version", message, len - 16..len - 12);
        }
        Ok(footer)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        for field in [
            self.manifest_offset,
            self.manifest_length,
            self.manifest_hash,
        ] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(MAGIC);
    }

    fn is_data_only(&self) -> bool {
        (
            self.manifest_offset,
            self.manifest_length,
            self.manifest_hash,
        ) == (0, 0, 0)
    }

    /// Where the manifest is, in a file of `len` bytes.
    fn manifest(&self, len: u64) -> Result<Range<u64>> {
        let end = len - FOOTER;
        let (offset, length) = (self.manifest_offset, self.manifest_length);
        let at = end..end + 16;
        match offset.checked_add(length) {
            Some(found) if found <= end && length > 0 => {
                read::place(offset, length, ALIGN, end, &at)
            }
            _ => {
                let message = format!(
                    "the footer puts the manifest at byte {offset} with {length} bytes, data ends at {end}"
                );
                Err(Error::malformed("ztensor.index", message).at(at))
            }
        }
    }
}

/// XXH3-64, as the footer has it.
fn xxh3(bytes: &[u8]) -> u64 {
    let Some(mut hasher) = Hasher::new(DigestKind::Xxh3) else {
        return 0; // part of every build that has this format
    };
    hasher.update(bytes);
    hasher
        .finish()
        .iter()
        .fold(0, |hash, &byte| hash << 8 | u64::from(byte))
}

pub(super) fn describe(cx: &mut Context<'_>) -> Result<Manifest> {
    let source = cx.source();
    let len = source.len();
    let footer = Footer::parse(source)?;
    let mut manifest = Manifest::new("2");
    manifest.strict_content = true;
    manifest.region(0..8, "magic");
    manifest.region(len - FOOTER..len, "footer");
    if footer.is_data_only() {
        manifest.region(8..len - FOOTER, "data of other files");
        let message = "holds data that another file describes, and no tensors of its own";
        cx.note("ztensor.shard", len - FOOTER..len, message);
        return Ok(manifest);
    }
    let range = footer.manifest(len)?;
    let bytes = read::index(cx, range.clone())?;
    let hash = xxh3(&bytes);
    if hash != footer.manifest_hash {
        let message = format!(
            "the manifest hashes to {hash:016x}, the footer says {:016x}",
            footer.manifest_hash
        );
        cx.mismatch("ztensor.manifest-hash", range.clone(), message)?;
    }
    manifest.region(range.clone(), "manifest");
    parse(cx, &bytes, &range, len - FOOTER, &mut manifest)?;
    Ok(manifest)
}

/// Fields of the manifest, in the order of their encoded keys.
const ROOT: [&str; 3] = ["shards", "objects", "attributes"];

fn parse(
    cx: &mut Context<'_>,
    bytes: &[u8],
    range: &Range<u64>,
    data_end: u64,
    manifest: &mut Manifest,
) -> Result<()> {
    let mut shards = Shards::default();
    let mut others = Others::default();
    let mut objects = false;
    let mut blobs = vec![read::Blob {
        file: 0,
        range: range.clone(),
        at: range.clone(),
    }];
    let mut cbor = Decoder::new(bytes, range.start, &read::RULES, DEPTH_2).deterministic();
    // The order of keys puts `shards` before the objects that refer to them.
    cbor.fields("the manifest", &ROOT, |cbor, key| {
        match key {
            Key::Field(0) => {
                shards = Shards::parse(cbor, cx, &mut manifest.sealed, &mut others)?;
            }
            Key::Field(1) => {
                objects = true;
                manifest.tensors.reserve(cbor.room(MIN_OBJECT));
                blobs.reserve(cbor.room(MIN_OBJECT));
                let mut reading = Reading {
                    cx: &mut *cx,
                    shards: &mut shards,
                    data_end,
                    blobs: &mut blobs,
                };
                cbor.map("objects", |cbor, name| {
                    let at = cbor.pos();
                    SCHEMA_2.check_name("an object", &name, at)?;
                    let object = Object::parse(cbor, &SCHEMA_2, reading.cx, &mut others)?;
                    let tensor = reading.tensor(&name, object);
                    manifest
                        .tensors
                        .push(tensor.map_err(|error| error.in_tensor(&name))?);
                    Ok(())
                })?;
            }
            Key::Field(_) => manifest.metadata = SCHEMA_2.attributes(cbor)?,
            key => others.take(cbor, &key)?,
        }
        Ok(())
    })?;
    manifest.kept.extend(others.into_kept());
    cbor.finish()?;
    read::required(objects.then_some(()), "objects", range)?;
    read::check_overlaps(blobs)?;
    shards.report_unused(cx, range)
}

/// The manifest, which begins at `at`, and the footer.
pub(super) fn encode(metadata: &Metadata, objects: &[(&str, Object<'_>)], at: u64) -> Vec<u8> {
    let [_, list, attributes] = ROOT;
    let mut cbor = Encoder::deterministic();
    cbor.map(1 + usize::from(!metadata.is_empty()));
    cbor.text(list).map(objects.len());
    for (name, object) in objects {
        object.encode(&SCHEMA_2, cbor.text(name));
    }
    if !metadata.is_empty() {
        cbor.text(attributes).entries(metadata);
    }
    let mut bytes = cbor.into_bytes();
    let footer = Footer {
        manifest_offset: at,
        manifest_length: bytes.len() as u64,
        manifest_hash: xxh3(&bytes),
    };
    footer.encode(&mut bytes);
    bytes
}
