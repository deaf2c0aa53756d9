//! Lays out files of generations 0.1, 1.2 and 2: data first, then what describes it.

mod amend;
mod index;
mod pieces;
mod sharing;

use crate::error::{Error, Result};
use crate::format::{Checksums, Compression, FilePlan, Plan, PlanOptions, Segment, Survey};
use crate::formats::ztensor::{SPEC, v01, v1, v2};
use crate::model::{Codec, DigestKind, Manifest, Over, TensorInfo};
use crate::prelude::*;

pub(super) use amend::amend;
use index::Catalog;
use pieces::Object;
use sharing::share;

/// Where data begins in the canonical form of generation 2.
const CANONICAL_ALIGN: u64 = 65536;
/// Padding that can be asked for, at most.
const MAX_ALIGN: u64 = 1 << 30;
/// The level for data that was compressed in another way.
const LEVEL: i32 = 3;

/// A generation that is written.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Generation {
    V01,
    V12,
    V2,
}

/// What is to be written, and how.
struct Target {
    generation: Generation,
    align: u64,
    canonical: bool,
    /// Uncompressed numbers are written big-endian.
    big: bool,
    checksums: Checksums,
    kinds: &'static [DigestKind],
    /// Bytes of room in front of the index.
    reserve: usize,
}

/// Generation 2 wants sorted rows. Canonical files store equal data once: for that it must be known by its hash.
pub(super) fn survey(options: &PlanOptions) -> Result<Survey> {
    let target = Target::new(options)?;
    Ok(Survey {
        digest: target.canonical.then_some(DigestKind::Sha256),
        rising_columns: target.generation == Generation::V2,
        ..Survey::default()
    })
}

pub(super) fn plan(what: &Manifest, options: &PlanOptions) -> Result<Plan> {
    let target = Target::new(options)?;
    check_names(&what.tensors)?;
    let mut objects = Vec::with_capacity(what.tensors.len());
    let mut requests = Vec::with_capacity(what.tensors.len());
    for (index, info) in what.tensors.iter().enumerate() {
        let compression = (options.compression)(info);
        let object = Object::new(&target, index, info, compression, &mut requests);
        objects.push(object.map_err(|error| error.in_tensor(&info.name))?);
    }
    if target.canonical {
        requests = sharing::canonical_order(&what.tensors, &mut objects, requests)?;
    }
    let requests = share(&mut objects, requests);
    let blobs: Vec<_> = requests.iter().map(|request| request.of).collect();
    let mut segments = vec![Segment::Bytes(target.magic().to_vec())];
    segments.reserve(2 * blobs.len() + 2);
    for request in requests {
        segments.push(Segment::Align {
            to: target.align,
            fill: 0,
        });
        segments.push(request.segment(target.over()));
    }
    if target.reserve > 0 && target.generation != Generation::V2 {
        segments.push(Segment::Bytes(vec![0; target.reserve]));
    }
    if target.generation == Generation::V2 {
        segments.push(Segment::Align {
            to: target.align,
            fill: 0,
        });
    }
    let catalog = Catalog {
        metadata: what.metadata.clone(),
        tensors: what.tensors.clone(),
        objects,
        blobs,
    };
    segments.push(target.index(catalog));
    let name = options.file_name.clone();
    Ok(Plan {
        files: vec![FilePlan { name, segments }],
    })
}

fn check_names(tensors: &[TensorInfo]) -> Result<()> {
    let mut known = LookupMap::default();
    known.reserve(tensors.len());
    for info in tensors {
        if known.insert(info.name.as_str(), ()).is_some() {
            let message = "two tensors have this name; rename one of them";
            return Err(Error::argument(message).in_tensor(&info.name));
        }
    }
    Ok(())
}

impl Target {
    fn new(options: &PlanOptions) -> Result<Self> {
        let generation = match options.version {
            "0.1" => Generation::V01,
            "1.2" => Generation::V12,
            _ => Generation::V2,
        };
        let refuse = |message: String| Err(Error::argument(message));
        let canonical = options.flag("canonical")?;
        if canonical && generation != Generation::V2 {
            return Err(options.wrong("canonical", "it is for version 2 only"));
        }
        let big = match options.option("endian") {
            None | Some("little") => false,
            Some("big") if generation == Generation::V01 => true,
            Some("big") => return Err(options.wrong("endian", "it is for version 0.1 only")),
            Some(_) => return Err(options.wrong("endian", "expected little or big")),
        };
        let kinds = SPEC
            .profile(options.version)
            .map_or(&[][..], |profile| profile.can.checksums);
        let unknown = match options.checksums {
            Checksums::With(kind) => Some(kind).filter(|kind| !kinds.contains(kind)),
            _ => None,
        };
        if let Some(kind) = unknown {
            let known: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
            let (version, known) = (options.version, known.join(", "));
            return refuse(format!(
                "zTensor {version} has no {kind} checksum; it has {known}"
            ));
        }
        let checksums = match options.checksums {
            Checksums::Keep | Checksums::With(DigestKind::Xxh3) if canonical => {
                Checksums::With(DigestKind::Xxh3)
            }
            _ if canonical => return refuse("canonical files have xxh3 checksums".into()),
            other => other,
        };
        let align = alignment(options, generation, canonical)?;
        Ok(Self {
            generation,
            align,
            canonical,
            big,
            checksums,
            kinds,
            reserve: reserve(options)?,
        })
    }

    fn magic(&self) -> &'static [u8] {
        match self.generation {
            Generation::V01 => v01::MAGIC,
            Generation::V12 => v1::MAGIC,
            Generation::V2 => v2::MAGIC,
        }
    }

    /// Which bytes checksums cover.
    fn over(&self) -> Over {
        match self.generation {
            Generation::V01 | Generation::V12 => Over::Stored,
            Generation::V2 => Over::Decoded,
        }
    }

    fn codec(&self, level: i32) -> Codec {
        match self.generation {
            Generation::V01 | Generation::V12 => Codec::Zstd { level },
            Generation::V2 => Codec::ZstdSeekable {
                level,
                frame: v2::FRAME,
            },
        }
    }

    /// Whether compressed data can be taken over as it is.
    fn has(&self, codec: Codec) -> bool {
        match codec {
            Codec::Deflate { .. } | Codec::Zlib { .. } => false,
            Codec::Zstd { .. } => self.generation != Generation::V2,
            Codec::ZstdSeekable { .. } => self.generation == Generation::V2,
        }
    }

    fn check_compression(&self, compression: Compression) -> Result<()> {
        match compression {
            Compression::Zstd(_) if self.canonical => {
                Err(Error::argument("canonical files are not compressed"))
            }
            _ => Ok(()),
        }
    }

    fn index(&self, catalog: Catalog) -> Segment {
        Segment::Computed(match self.generation {
            Generation::V01 => Box::new(move |written, _| catalog.v01(written)),
            Generation::V12 => Box::new(move |written, _| catalog.v12(written)),
            Generation::V2 => {
                let reserve = self.reserve;
                Box::new(move |written, at| {
                    // The room is in front of the footer, which says where the manifest is.
                    let mut index = catalog.v2(written, at)?;
                    let footer = index.split_off(index.len().saturating_sub(v2::FOOTER_BYTES));
                    index.resize(index.len() + reserve, 0);
                    index.extend(footer);
                    Ok(index)
                })
            }
        })
    }
}

/// Room that was asked for.
fn reserve(options: &PlanOptions) -> Result<usize> {
    const MOST: u64 = 100_000_000;
    let bytes = options.number("reserve")?.unwrap_or(0);
    match usize::try_from(bytes) {
        _ if options.flag("canonical")? && bytes > 0 => {
            Err(options.wrong("reserve", "canonical files have no room"))
        }
        Ok(size) if bytes <= MOST => Ok(size),
        _ => Err(options.wrong("reserve", format_args!("expected at most {MOST}"))),
    }
}

/// Where data begins.
fn alignment(options: &PlanOptions, generation: Generation, canonical: bool) -> Result<u64> {
    let (least, usual) = match generation {
        Generation::V01 => (v01::ALIGN, v01::ALIGN),
        Generation::V12 => (v1::ALIGN, v1::ALIGN),
        Generation::V2 if canonical => (v2::ALIGN, CANONICAL_ALIGN),
        Generation::V2 => (v2::ALIGN, v2::ALIGN),
    };
    let align = options.number("align")?.unwrap_or(usual);
    if canonical && align != CANONICAL_ALIGN {
        let why = format_args!("canonical files have {CANONICAL_ALIGN}");
        return Err(options.wrong("align", why));
    }
    if align == 0 || align % least != 0 || align > MAX_ALIGN {
        let version = options.version;
        let why = format!("version {version} needs a multiple of {least}, up to {MAX_ALIGN}");
        return Err(options.wrong("align", why));
    }
    Ok(align)
}
