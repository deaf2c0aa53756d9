//! Several archives as one.

use crate::archive::Archive;
use crate::error::{Error, Result};
use crate::model::{Manifest, Payload, SourceId, Value};
use crate::prelude::*;

/// The tensors of several archives, in the order given. A name that two of them have is an error that names both.
///
/// Metadata is that of all of them; where two say different things under one key, the first is kept if `prefer_first`,
/// else that is an error.
pub fn join(archives: &[Archive], prefer_first: bool) -> Result<Archive> {
    let [first, ..] = archives else {
        return Err(Error::argument("nothing to join"));
    };
    if archives.len() == 1 {
        return Ok(first.clone());
    }
    let mut joined = Manifest::new(first.version());
    joined.strict_content = archives
        .iter()
        .any(|archive| archive.manifest().strict_content);
    let mut owner: LookupMap<&str, &Archive> = LookupMap::default();
    let mut sources = 0u32;
    for archive in archives {
        let manifest = archive.manifest();
        for (key, value) in manifest.metadata.iter() {
            let mut value = value.clone();
            if let Value::Elsewhere(list) = &mut value {
                list.source.0 += sources;
            }
            match joined.metadata.get(key) {
                None => joined.metadata.push(key, value),
                Some(known) if *known == value || prefer_first => {}
                Some(_) => {
                    return Err(Error::argument(format!(
                        "the files disagree about metadata {key:?}"
                    )));
                }
            }
        }
        for tensor in &manifest.tensors {
            if let Some(other) = owner.insert(&tensor.name, archive) {
                let message = format!(
                    "tensor {:?} is in {} and in {}",
                    tensor.name,
                    title(other),
                    title(archive)
                );
                return Err(Error::argument(message));
            }
            let mut tensor = tensor.clone();
            for part in &mut tensor.parts {
                if let Payload::Raw { source, .. } | Payload::Encoded { source, .. } =
                    &mut part.payload
                {
                    source.0 += sources;
                }
            }
            joined.tensors.push(tensor);
        }
        let moved = |source: SourceId| SourceId(source.0 + sources);
        joined
            .regions
            .extend(manifest.regions.iter().cloned().map(|mut region| {
                region.source = moved(region.source);
                region
            }));
        joined
            .sealed
            .extend(manifest.sealed.iter().cloned().map(|mut sealed| {
                sealed.source = moved(sealed.source);
                sealed
            }));
        joined
            .kept
            .extend(manifest.kept.iter().cloned().map(|mut kept| {
                kept.source = moved(kept.source);
                kept
            }));
        sources += archive.source_count();
    }
    Ok(Archive::joined(archives, joined))
}

fn title(archive: &Archive) -> String {
    archive
        .source_name(SourceId::MAIN)
        .map_or("another file".to_owned(), |name| format!("{name:?}"))
}
