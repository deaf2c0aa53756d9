//! Several archives as one.

use crate::archive::Archive;
use crate::error::lists::first_of;
use crate::error::{Error, Result};
use crate::model::{Manifest, Metadata, Quoted, SourceId, TensorInfo, Value};
use crate::prelude::*;

/// What happens where several archives hold different things under one name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Conflicts {
    /// It is an error that names both files.
    Refuse,
    /// The archive that was given first counts.
    First,
    /// The archive that was given last counts.
    Last,
    /// Two tensors are an error; of metadata the first counts, as where files are parts of one model. Long lists that were
    /// not loaded yet are not compared.
    FirstMetadata,
}

/// Several archives, merged into one.
#[derive(Debug)]
#[non_exhaustive]
pub struct Merged {
    /// All of them.
    pub archive: Archive,
    /// What two of them both have, and which one counts.
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

/// Merges the tensors and the metadata of several archives, in the order given. The result lists what two of them have
/// under one name, unless that was refused.
///
/// ```
/// use tenfold::{Archive, ops};
/// let archive = |name: &str, number: u8| {
///     let mut builder = Archive::builder();
///     builder.tensor(name, [1], [number])?;
///     Ok::<_, tenfold::Error>(builder.finish())
/// };
/// let archives = [archive("x", 1)?, archive("y", 2)?, archive("x", 3)?];
/// assert!(ops::merge(&archives, ops::Conflicts::Refuse).is_err());
/// let merged = ops::merge(&archives, ops::Conflicts::Last)?;
/// assert_eq!(merged.archive.tensor("x")?.canonical()?, [3].as_slice());
/// assert_eq!(merged.conflicts[0].left_out, 0);
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn merge(archives: &[Archive], conflicts: Conflicts) -> Result<Merged> {
    let loaded: Vec<_>;
    let archives = if conflicts == Conflicts::FirstMetadata {
        archives
    } else {
        // Lists that were not loaded could not be compared.
        let load = archives.iter().map(Archive::loaded);
        loaded = load.collect::<Result<_>>()?;
        &loaded
    };
    let merged = combine(archives, conflicts)?;
    let is_refused = |conflict: &Conflict| match conflicts {
        Conflicts::Refuse => true,
        Conflicts::FirstMetadata => conflict.is_tensor,
        Conflicts::First | Conflicts::Last => false,
    };
    refuse(archives, &merged.conflicts, is_refused)?;
    Ok(merged)
}

/// Says which names are there twice, and in which files.
fn refuse(
    archives: &[Archive],
    conflicts: &[Conflict],
    counts: impl Fn(&Conflict) -> bool,
) -> Result<()> {
    let wrong: Vec<_> = conflicts
        .iter()
        .filter(|conflict| counts(conflict))
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let sentences = wrong.iter().map(|conflict| describe(archives, conflict));
    Err(Error::argument(first_of(sentences)))
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
    if *is_tensor {
        format!("tensor {} is in {first} and in {second}", Quoted(name))
    } else {
        format!(
            "{first} and {second} disagree about metadata {}",
            Quoted(name)
        )
    }
}

/// What two archives are called: by their files, or by their paths where those have the same name.
fn titles(first: Option<&Archive>, second: Option<&Archive>) -> (String, String) {
    let file = |archive: Option<&Archive>| archive?.source_name(SourceId::MAIN).map(str::to_owned);
    let path = |archive: Option<&Archive>| archive?.opened();
    let (files, paths) = ((file(first), file(second)), (path(first), path(second)));
    let same = files.0 == files.1 && paths.0.is_some() && paths.1.is_some();
    let (first, second) = if same { paths } else { files };
    let title = |name: Option<String>| match name {
        Some(name) => format!("{name:?}"),
        None => "another file".to_owned(),
    };
    (title(first), title(second))
}

fn combine(archives: &[Archive], prefer: Conflicts) -> Result<Merged> {
    let [first, rest @ ..] = archives else {
        return Err(Error::argument("nothing to merge"));
    };
    if rest.is_empty() {
        return Ok(Merged {
            archive: first.clone(),
            conflicts: Vec::new(),
        });
    }
    let mut merged = Manifest::new(first.version());
    let (owners, mut conflicts) = owners(archives, prefer);
    let mut metadata = Combined::default();
    let mut sources = 0u32;
    for (place, archive) in archives.iter().enumerate() {
        let manifest = archive.manifest();
        merged.strict_content |= manifest.strict_content;
        metadata.add(place, &manifest.metadata, sources, prefer);
        let own = |tensor: &&TensorInfo| owners.get(tensor.name.as_str()) == Some(&place);
        let tensors = manifest.tensors.iter().filter(own).cloned();
        merged
            .tensors
            .extend(tensors.map(|tensor| moved(tensor, sources)));
        let places = sources;
        let to = |source: SourceId| SourceId(source.0 + places);
        merged
            .regions
            .extend(manifest.regions.iter().cloned().map(|mut region| {
                region.source = to(region.source);
                region
            }));
        merged
            .sealed
            .extend(manifest.sealed.iter().cloned().map(|mut sealed| {
                sealed.source = to(sealed.source);
                sealed
            }));
        // What frames the tensors of one file does not frame those of several.
        let kept = manifest.kept.iter().filter(|kept| !kept.is_frame);
        merged.kept.extend(kept.cloned().map(|mut kept| {
            kept.source = to(kept.source);
            kept
        }));
        sources += archive.source_count();
    }
    merged.metadata = metadata.all;
    conflicts.extend(metadata.conflicts);
    Ok(Merged {
        archive: Archive::joined(archives, merged),
        conflicts,
    })
}

/// The archive that each tensor is taken from, and those that are there more than once.
fn owners(archives: &[Archive], prefer: Conflicts) -> (LookupMap<&str, usize>, Vec<Conflict>) {
    let mut owners: LookupMap<&str, usize> = LookupMap::default();
    let mut conflicts = Vec::new();
    for (place, archive) in archives.iter().enumerate() {
        for tensor in &archive.manifest().tensors {
            let Some(&other) = owners.get(tensor.name.as_str()) else {
                owners.insert(&tensor.name, place);
                continue;
            };
            let (kept, left_out) = match prefer {
                Conflicts::Last => (place, other),
                _ => (other, place),
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

/// A tensor of an archive whose files come after others.
fn moved(mut tensor: TensorInfo, sources: u32) -> TensorInfo {
    for part in &mut tensor.parts {
        part.payload.move_behind(sources);
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
    fn add(&mut self, archive: usize, metadata: &Metadata, sources: u32, prefer: Conflicts) {
        for (key, value, is_fact) in metadata.entries() {
            let mut value = value.clone();
            if let Value::Elsewhere(list) = &mut value {
                list.source.0 += sources;
            }
            let Some(&(place, other)) = self.known.get(key) else {
                self.known.insert(key.to_owned(), (self.all.len(), archive));
                if is_fact {
                    self.all.push_fact(key, value)
                } else {
                    self.all.push(key, value)
                }
                continue;
            };
            // What a file says about itself need not agree with what another says about itself.
            if is_fact || (self.all.at(place)).is_some_and(|known| same(known, &value)) {
                continue;
            }
            let (kept, left_out) = match prefer {
                Conflicts::Last => (archive, other),
                _ => (other, archive),
            };
            self.conflicts.push(Conflict {
                name: key.to_owned(),
                is_tensor: false,
                kept,
                left_out,
            });
            if prefer == Conflicts::Last {
                self.known.insert(key.to_owned(), (place, archive));
                self.all.set_at(place, value);
            }
        }
    }
}

/// Equal, even where numbers are not equal to themselves.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::List(a), Value::List(b)) => a == b || a.is_same(b),
        (Value::Map(a), Value::Map(b)) => a == b || a.is_same(b),
        (Value::F32(a), Value::F32(b)) => a == b || a.is_nan() && b.is_nan(),
        (Value::F64(a), Value::F64(b)) => a == b || a.is_nan() && b.is_nan(),
        _ => a == b,
    }
}
