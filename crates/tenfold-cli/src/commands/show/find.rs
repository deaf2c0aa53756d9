//! The tensor that is meant.

use tenfold::model::Quoted;
use tenfold::{Archive, Tensor};

use crate::args::ShowArgs;
use crate::commands::tensor_named;
use crate::failure::{Failure, Result};
use crate::output::show_path;

/// The tensor that is asked for. A name that is not there is never taken for another.
pub(super) fn find<'a>(archive: &'a Archive, args: &ShowArgs) -> Result<Tensor<'a>> {
    if let Some(name) = &args.tensor {
        return tensor_named(archive, &args.file, name);
    }
    let file = show_path(&args.file);
    let mut tensors = archive.tensors();
    let count = tensors.len();
    match tensors.next() {
        Some(tensor) if count == 1 => Ok(tensor),
        Some(first) => Err(Failure::Message(format!(
            "{file} holds {count} tensors; name one, such as {} (`tenfold inspect {file}` lists them)",
            Quoted(first.name())
        ))),
        None => Err(Failure::Message(format!("{file} holds no tensors"))),
    }
}
