//! The tensor that is meant.

use tenfold::{Archive, Tensor};

use crate::args::ShowArgs;
use crate::failure::{Failure, Result};
use crate::output::show_path;

/// The tensor that is asked for. A name that is not there is never taken for another.
pub(super) fn find<'a>(archive: &'a Archive, args: &ShowArgs) -> Result<Tensor<'a>> {
    let list = format!("`tenfold inspect {}` lists them", show_path(&args.file));
    let Some(name) = &args.tensor else {
        let mut tensors = archive.tensors();
        let count = tensors.len();
        return match tensors.next() {
            Some(tensor) if count == 1 => Ok(tensor),
            Some(first) => Err(Failure::Message(format!(
                "{} holds {count} tensors, name one of them, such as {:?}; {list}",
                show_path(&args.file),
                first.name()
            ))),
            None => {
                let message = format!("{} holds no tensors", show_path(&args.file));
                Err(Failure::Message(message))
            }
        };
    };
    if let Some(tensor) = archive.get(name) {
        return Ok(tensor);
    }
    let near = near_names(archive, name);
    let near: Vec<_> = near.iter().map(|name| format!("{name:?}")).collect();
    let hint = match near.is_empty() {
        true => list,
        false => format!("did you mean {}?", near.join(" or ")),
    };
    let file = show_path(&args.file);
    Err(Failure::Message(format!(
        "{file}: there is no tensor {name:?}; {hint}"
    )))
}

/// Up to three names that could have been meant: those that end with this one first, then the most similar.
fn near_names<'a>(archive: &'a Archive, name: &str) -> Vec<&'a str> {
    const SIMILAR: f64 = 0.85;
    let likeness = |other: &str| match other.strip_suffix(name) {
        Some(before) if before.ends_with(['.', '/', ':']) => 1.0,
        _ => strsim::jaro(&other.to_lowercase(), &name.to_lowercase()),
    };
    let mut near: Vec<(f64, &str)> = (archive.tensors())
        .map(|tensor| (likeness(tensor.name()), tensor.name()))
        .filter(|(likeness, _)| *likeness >= SIMILAR)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.into_iter().take(3).map(|(_, name)| name).collect()
}
