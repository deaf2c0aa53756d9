//! Which files there will be: one, one for every tensor, shards with an index, or numbered ones.

use crate::archive::Archive;
use crate::error::{Error, Hint, Result};
use crate::format::stem;
use crate::format::{Format, Plan, PlanOptions, Segment, Written};
use crate::model::{Manifest, SourceId, TensorInfo};
use crate::ops::convert::ConvertOptions;
use crate::ops::shards::{self, Shards};
use crate::ops::shared::readback::Opened;
use crate::prelude::*;

/// The files to be written, and which of them are opened together to read which tensors.
pub(super) fn plan(
    format: &dyn Format,
    what: &Manifest,
    from: &Archive,
    wanted: &ConvertOptions,
    mut options: PlanOptions,
) -> Result<(Plan, Vec<Opened>)> {
    let is_tree = format.writes_tree(&options.file_name);
    if wanted.file_per_tensor && !is_tree {
        let extension = format.spec().extensions.first().copied().unwrap_or("bin");
        let files = what.tensors.iter().enumerate().map(|(place, tensor)| {
            let name = format!("{}.{extension}", stem::encode(&tensor.name));
            (name, vec![place], alone(what, tensor.clone()))
        });
        return separate(format, files, &options);
    }
    let groups = match &wanted.shards {
        // Where the data is now, before anything was made of it.
        Some(Shards::Keep) => {
            options.shard_names = shards::source_names(from);
            Some(shards::group(&from.manifest().tensors, &Shards::Keep)?)
        }
        Some(rule) => Some(shards::group(&what.tensors, rule)?),
        None => None,
    };
    match groups {
        Some(groups) if format.writes_shards() => options.shards = Some(groups),
        Some(groups) if groups.len() > 1 && is_tree => {
            let message = "a directory of arrays is not written in several parts";
            return Err(Error::argument(message));
        }
        Some(groups) if groups.len() > 1 => {
            let count = groups.len();
            let name = options.file_name.clone();
            // A tensor may be read from a file beside the one that is opened.
            let extension = name.rfind('.').and_then(|at| name.get(at..));
            let is_file = |other: &String| extension.is_some_and(|end| other.ends_with(end));
            let names = options.shard_names.clone();
            let names = names.filter(|names| names.iter().all(is_file));
            let names = names.unwrap_or_default();
            let files = groups.into_iter().enumerate().map(|(number, places)| {
                let name = match names.get(number) {
                    Some(name) => name.clone(),
                    None => shards::numbered(&name, number + 1, count),
                };
                let part = part(what, &places, number == 0);
                (name, places, part)
            });
            return separate(format, files, &options);
        }
        _ => {}
    }
    let plan = format.plan(what, &options)?;
    let opened = Opened {
        files: names(&plan),
        places: (0..what.tensors.len()).collect(),
    };
    Ok((plan, vec![opened]))
}

/// Files that are whole by themselves, each with some of the tensors.
fn separate(
    format: &dyn Format,
    files: impl Iterator<Item = (String, Vec<usize>, Manifest)>,
    options: &PlanOptions,
) -> Result<(Plan, Vec<Opened>)> {
    let mut all = Plan::default();
    let mut opened = Vec::new();
    for (name, places, what) in files {
        let mut options = options.clone();
        options.file_name = name;
        let mut plan = format.plan(&what, &options)?;
        plan.files
            .iter()
            .try_for_each(|file| check_name(&file.name))?;
        let places: Arc<[usize]> = places.into();
        for segment in plan.files.iter_mut().flat_map(|file| &mut file.segments) {
            renumber(segment, &places);
        }
        opened.push(Opened {
            files: names(&plan),
            places: places.to_vec(),
        });
        all.files.extend(plan.files);
    }
    Ok((all, opened))
}

/// What file systems take as a name.
fn check_name(name: &str) -> Result<()> {
    /// Of the common systems, in bytes.
    const LONGEST: usize = 255;
    match name.len() {
        0..=LONGEST => Ok(()),
        len => {
            let start: String = name.chars().take(40).collect();
            let message = format!(
                "the file {start}… would have a name of {len} bytes, and file systems take at most {LONGEST}"
            );
            let error = Error::argument(message);
            Err(error.hinting(Hint::Rename).hinting(Hint::OneFile))
        }
    }
}

fn names(plan: &Plan) -> Vec<String> {
    plan.files.iter().map(|file| file.name.clone()).collect()
}

/// A description of some of the tensors. What is kept without being understood goes into the first file only.
fn part(what: &Manifest, places: &[usize], first: bool) -> Manifest {
    let mut part = Manifest::new(what.version.clone());
    part.metadata = what.metadata.clone();
    part.strict_content = what.strict_content;
    if first {
        part.kept.clone_from(&what.kept);
    }
    let tensors = places.iter().filter_map(|&place| what.tensors.get(place));
    part.tensors.extend(tensors.cloned());
    part
}

/// A description of one tensor by itself.
pub(super) fn alone(what: &Manifest, tensor: TensorInfo) -> Manifest {
    let mut alone = Manifest::new(what.version.clone());
    alone.metadata = what.metadata.clone();
    alone.kept.clone_from(&what.kept);
    alone.kept.retain(|kept| comes_from(&tensor, kept.source));
    alone.tensors.push(tensor);
    alone
}

/// Whether a tensor has data in a file.
fn comes_from(tensor: &TensorInfo, source: SourceId) -> bool {
    let mut stored = tensor.parts.iter().filter_map(|part| part.payload.stored());
    stored.any(|(file, _)| file == source)
}

/// Makes a segment that was planned for some of the tensors, `places`, one of all of them.
fn renumber(segment: &mut Segment, places: &Arc<[usize]>) {
    match segment {
        Segment::Tensor { index, .. }
        | Segment::Chunks { index, .. }
        | Segment::Text { index, .. } => {
            if let Some(place) = places.get(*index) {
                *index = *place;
            }
        }
        Segment::Computed(make) | Segment::Late { make, .. } => {
            let planned = core::mem::replace(make, Box::new(|_, _| Ok(Vec::new())));
            let among: LookupMap<usize, usize> = (places.iter().enumerate())
                .map(|(index, &place)| (place, index))
                .collect();
            *make = Box::new(move |written, at| {
                let own = written.iter().filter_map(|part| {
                    let index = *among.get(&part.index)?;
                    Some(Written {
                        index,
                        ..part.clone()
                    })
                });
                planned(&own.collect::<Vec<_>>(), at)
            });
        }
        Segment::Align { .. } | Segment::Bytes(_) | Segment::Copy { .. } => {}
    }
}
