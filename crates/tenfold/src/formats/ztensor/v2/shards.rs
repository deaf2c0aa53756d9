//! Other files that hold data: `NAME` of `stem.zt` is `stem-NAME.zt` beside it.

use crate::error::{Error, Result};
use crate::format::Context;
use crate::formats::ztensor::checksum::{Sum, digest_text};
use crate::formats::ztensor::raw::Others;
use crate::formats::ztensor::read;
use crate::formats::ztensor::v2::{FOOTER, Footer, MIN_FILE};
use crate::model::{Checksum, Over, SealedRange, SourceId};
use crate::prelude::*;
use crate::wire::cbor::{Decoder, Key};

/// The files that the manifest names.
#[derive(Default)]
pub(super) struct Shards {
    shards: Vec<Shard>,
    by_name: LookupMap<String, usize>,
}

pub(super) struct Shard {
    name: String,
    size: u64,
    /// The file, or why it cannot be used.
    source: Result<SourceId>,
    used: bool,
}

impl Shard {
    /// Where data in it must end.
    pub(super) fn data_end(&self) -> u64 {
        self.size.saturating_sub(FOOTER)
    }

    pub(super) fn source(&self) -> Result<SourceId> {
        self.source.clone()
    }
}

impl Shards {
    pub(super) fn parse(
        cbor: &mut Decoder<'_>,
        cx: &mut Context<'_>,
        sealed: &mut Vec<SealedRange>,
        others: &mut Others,
    ) -> Result<Self> {
        let mut shards = Self::default();
        cbor.map("shards", |cbor, name| {
            let from = cbor.pos();
            check_name(&name, from)?;
            let (mut size, mut digest) = (None, None);
            cbor.fields("a shard", &["size", "digest"], |cbor, key| {
                match key {
                    Key::Field(0) => size = Some(cbor.unsigned("size")?),
                    Key::Field(_) => digest = Some((cbor.pos(), digest_text(cbor, cx, true)?)),
                    key => others.take(cbor, &key)?,
                }
                Ok(())
            })?;
            let at = from..cbor.pos();
            let size = read::required(size, "size", &at)?;
            let (digest_at, digest) = read::required(digest, "digest", &at)?;
            if size < MIN_FILE {
                let message = format!("shard {name:?} has {size} bytes, a file has {MIN_FILE}");
                return Err(Error::malformed("ztensor.shard", message).at(at));
            }
            let digest_at = digest_at..digest_at + 1;
            let source = open(cx, &name, size);
            // A digest of the wrong length can match no file.
            let sum = Sum::parse(cx, digest.as_deref(), true, &digest_at);
            let checksum = sum.map(|sum| sum.checksum);
            let source = match (source, checksum) {
                (Ok(source), Ok(checksum)) => {
                    sealed.extend(checksum.map(|checksum| SealedRange {
                        source,
                        range: 0..size,
                        checksum: Checksum {
                            over: Over::Stored,
                            ..checksum
                        },
                        what: format!("shard {name:?}"),
                    }));
                    Ok(source)
                }
                (Err(error), _) | (_, Err(error)) => Err(error),
            };
            shards
                .by_name
                .insert(name.clone().into_owned(), shards.shards.len());
            shards.shards.push(Shard {
                name: name.into_owned(),
                size,
                source,
                used: false,
            });
            Ok(())
        })?;
        Ok(shards)
    }

    /// The shard with this name and its number among the files, from 1 on.
    pub(super) fn get(&mut self, name: &str, at: &Range<u64>) -> Result<(usize, &Shard)> {
        let found = self.by_name.get(name).and_then(|&place| {
            let shard = self.shards.get_mut(place)?;
            shard.used = true;
            Some((place + 1, &*shard))
        });
        found.ok_or_else(|| {
            let message = format!("shard {name:?} is not in the table of shards");
            Error::malformed("ztensor.shard", message).at(at.clone())
        })
    }

    /// Files that no tensor is in cannot be a tensor's defect.
    pub(super) fn report_unused(&self, cx: &mut Context<'_>, at: &Range<u64>) -> Result<()> {
        for shard in self.shards.iter().filter(|shard| !shard.used) {
            if let Err(error) = &shard.source {
                let message = format!(
                    "shard {:?}, which is not used: {}",
                    shard.name,
                    error.message()
                );
                cx.warn("ztensor.shard", at.clone(), message)?;
            }
        }
        Ok(())
    }
}

/// Names make file names, so they are narrow; `at` is after the name.
fn check_name(name: &str, at: u64) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if (1..=64).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(plain) {
        return Ok(());
    }
    let from = at.saturating_sub(name.len() as u64);
    let message = format!(
        "shard name {name:?}: expected 1 to 64 letters, digits, dots, dashes and underscores, no \
         dot in front"
    );
    Err(Error::malformed("ztensor.shard", message).at(from..at))
}

/// Opens a shard and checks its size and its frame.
fn open(cx: &mut Context<'_>, name: &str, size: u64) -> Result<SourceId> {
    let main = cx.name().unwrap_or_default();
    let stem = main.rsplit_once('.').map_or(main, |(stem, _)| stem);
    let file = format!("{stem}-{name}.zt");
    let refuse = |message: String| Error::mismatch("ztensor.shard", message);
    let id = cx.sibling(&file).map_err(|cause| {
        refuse(format!("shard {name:?} is missing: {}", cause.message())).because(cause)
    })?;
    let source = cx
        .open(id)
        .ok_or_else(|| refuse(format!("{file} is not open")))?;
    let len = source.len();
    if len != size {
        let message = format!("shard {name:?}: {file} has {len} bytes, the manifest says {size}");
        return Err(refuse(message).at_source(id, 0..len));
    }
    Footer::parse(&*source).map_err(|cause| {
        let at = cause.range().map_or(0..len, |(_, range)| range);
        let message = format!("shard {name:?}: {file} {}", cause.message());
        refuse(message).at_source(id, at).because(cause)
    })?;
    Ok(id)
}
