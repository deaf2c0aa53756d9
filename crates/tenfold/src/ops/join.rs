//! Several archives as one.

use crate::archive::Archive;
use crate::error::{Error, Result};
use crate::model::{Manifest, Metadata, Payload, SourceId, TensorInfo, Value};
use crate::prelude::*;

/// Which of several archives counts where they hold different things under one name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Prefer {
    /// The one that was given first.
    First,
    /// The one that was given last.
    Last,
}

/// Archives that became one.
#[derive(Debug)]
#[non_exhaustive]
pub struct Merged {
    /// All of them.
    pub archive: Archive,
    /// What two of them have, and which one counts.
    pub conflicts: Vec<Conflict>,
}

/// Something that two archives have under one name.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Conflict {
    /// The tensor, or the key of the metadata.
    pub name: String,
    /// Whether it is a tensor.
    pub is_tensor: bool,
    /// The archive whose tensor or value counts, by its place.
    pub kept: usize,
    /// The archive whose tensor or value is left out, by its place.
    pub left_out: usize,
}

/// The tensors and the metadata of several archives, in the order given.
///
/// A tensor that two of them have, and a key of the metadata with two values, are errors that name both files, unless
/// it is said which of them to prefer. Then they are listed in the result.
pub fn merge(archives: &[Archive], prefer: Option<Prefer>) -> Result<Merged> {
    // Lists that were not loaded could not be compared.
    let loaded: Vec<_> = archives
        .iter()
        .map(Archive::loaded)
        .collect::<Result<_>>()?;
    let merged = combine(&loaded, prefer.unwrap_or(Prefer::First))?;
    match prefer {
        Some(_) => Ok(merged),
        None => refuse(&loaded, &merged.conflicts, |_| true).map(|()| merged),
    }
}

/// The tensors of several archives, in the order given. A name that two of them have is an error that names both.
///
/// Metadata is that of all of them; where two say different things under one key, the first is kept if `prefer_first`,
/// else that is an error.
pub fn join(archives: &[Archive], prefer_first: bool) -> Result<Archive> {
    let merged = combine(archives, Prefer::First)?;
    refuse(archives, &merged.conflicts, |conflict| {
        conflict.is_tensor || !prefer_first
    })?;
    Ok(merged.archive)
}

/// Says which names are there twice, and in which files.
fn refuse(
    archives: &[Archive],
    conflicts: &[Conflict],
    counts: impl Fn(&Conflict) -> bool,
) -> Result<()> {
    const SHOWN: usize = 3;
    let wrong: Vec<_> = conflicts
        .iter()
        .filter(|conflict| counts(conflict))
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let mut shown: Vec<_> = (wrong.iter().take(SHOWN))
        .map(|conflict| describe(archives, conflict))
        .collect();
    if wrong.len() > SHOWN {
        shown.push(format!("and {} more", wrong.len() - SHOWN));
    }
    Err(Error::argument(shown.join("; ")))
}

fn describe(archives: &[Archive], conflict: &Conflict) -> String {
    let Conflict {
        name,
        is_tensor,
        kept,
        left_out,
    } = conflict;
    let (first, second) = titles(
        archives.get(*kept.min(left_out)),
        archives.get(*kept.max(left_out)),
    );
    match is_tensor {
        true => format!("tensor {name:?} is in {first} and in {second}"),
        false => format!("{first} and {second} disagree about metadata {name:?}"),
    }
}

/// What two archives are called: by their files, or by their paths where those have the same name.
fn titles(first: Option<&Archive>, second: Option<&Archive>) -> (String, String) {
    let file = |archive: Option<&Archive>| archive?.source_name(SourceId::MAIN).map(str::to_owned);
    let path = |archive: Option<&Archive>| archive?.opened().map(str::to_owned);
    let (files, paths) = ((file(first), file(second)), (path(first), path(second)));
    let same = files.0 == files.1 && paths.0.is_some() && paths.1.is_some();
    let (first, second) = if same { paths } else { files };
    let title = |name: Option<String>| match name {
        Some(name) => format!("{name:?}"),
        None => "another file".to_owned(),
    };
    (title(first), title(second))
}

fn combine(archives: &[Archive], prefer: Prefer) -> Result<Merged> {
    let [first, rest @ ..] = archives else {
        return Err(Error::argument("nothing to join"));
    };
    if rest.is_empty() {
        return Ok(Merged {
            archive: first.clone(),
            conflicts: Vec::new(),
        });
    }
    let mut joined = Manifest::new(first.version());
    let (owners, mut conflicts) = owners(archives, prefer);
    let mut metadata = Combined::default();
    let mut sources = 0u32;
    for (place, archive) in archives.iter().enumerate() {
        let manifest = archive.manifest();
        joined.strict_content |= manifest.strict_content;
        metadata.add(place, &manifest.metadata, sources, prefer);
        let own = |tensor: &&TensorInfo| owners.get(tensor.name.as_str()) == Some(&place);
        let tensors = manifest.tensors.iter().filter(own).cloned();
        joined
            .tensors
            .extend(tensors.map(|tensor| moved(tensor, sources)));
        let places = sources;
        let to = |source: SourceId| SourceId(source.0 + places);
        joined
            .regions
            .extend(manifest.regions.iter().cloned().map(|mut region| {
                region.source = to(region.source);
                region
            }));
        joined
            .sealed
            .extend(manifest.sealed.iter().cloned().map(|mut sealed| {
                sealed.source = to(sealed.source);
                sealed
            }));
        joined
            .kept
            .extend(manifest.kept.iter().cloned().map(|mut kept| {
                kept.source = to(kept.source);
                kept
            }));
        sources += archive.source_count();
    }
    joined.metadata = metadata.all;
    conflicts.extend(metadata.conflicts);
    Ok(Merged {
        archive: Archive::joined(archives, joined),
        conflicts,
    })
}

/// The archive that each tensor is taken from, and those that are there more than once.
fn owners(archives: &[Archive], prefer: Prefer) -> (LookupMap<&str, usize>, Vec<Conflict>) {
    let mut owners: LookupMap<&str, usize> = LookupMap::default();
    let mut conflicts = Vec::new();
    for (place, archive) in archives.iter().enumerate() {
        for tensor in &archive.manifest().tensors {
            let Some(&other) = owners.get(tensor.name.as_str()) else {
                owners.insert(&tensor.name, place);
                continue;
            };
            let (kept, left_out) = match prefer {
                Prefer::First => (other, place),
                Prefer::Last => (place, other),
            };
            owners.insert(&tensor.name, kept);
            conflicts.push(Conflict {
                name: tensor.name.clone(),
                is_tensor: true,
                kept,
                left_out,
            });
        }
    }
    (owners, conflicts)
}

/// A tensor of an archive whose files come behind others.
fn moved(mut tensor: TensorInfo, sources: u32) -> TensorInfo {
    for part in &mut tensor.parts {
        if let Payload::Raw { source, .. } | Payload::Encoded { source, .. } = &mut part.payload {
            source.0 += sources;
        }
    }
    tensor.defect = tensor.defect.map(|defect| match defect.range() {
        Some((source, range)) => defect.at_source(SourceId(source.0 + sources), range),
        None => defect,
    });
    tensor
}

/// The metadata of several archives.
#[derive(Default)]
struct Combined {
    all: Metadata,
    /// Where a key is, and the archive that its value is from.
    known: LookupMap<String, (usize, usize)>,
    conflicts: Vec<Conflict>,
}

impl Combined {
    fn add(&mut self, archive: usize, metadata: &Metadata, sources: u32, prefer: Prefer) {
        for (key, value, is_fact) in metadata.entries() {
            let mut value = value.clone();
            if let Value::Elsewhere(list) = &mut value {
                list.source.0 += sources;
            }
            let Some(&(place, other)) = self.known.get(key) else {
                self.known.insert(key.to_owned(), (self.all.len(), archive));
                match is_fact {
                    true => self.all.push_fact(key, value),
                    false => self.all.push(key, value),
                }
                continue;
            };
            // What a file says about itself need not agree with what another says about itself.
            if is_fact || (self.all.at(place)).is_some_and(|known| same(known, &value)) {
                continue;
            }
            let (kept, left_out) = match prefer {
                Prefer::First => (other, archive),
                Prefer::Last => (archive, other),
            };
            self.conflicts.push(Conflict {
                name: key.to_owned(),
                is_tensor: false,
                kept,
                left_out,
            });
            if prefer == Prefer::Last {
                self.known.insert(key.to_owned(), (place, archive));
                self.all.set_at(place, value);
            }
        }
    }
}

/// Equal, also where numbers are not equal to themselves.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::List(a), Value::List(b)) => a == b || a.is_same(b),
        (Value::Map(a), Value::Map(b)) => a == b || a.is_same(b),
        (Value::F32(a), Value::F32(b)) => a == b || a.is_nan() && b.is_nan(),
        (Value::F64(a), Value::F64(b)) => a == b || a.is_nan() && b.is_nan(),
        _ => a == b,
    }
}
