//! `inspect -r`: what is in a tree of directories.

use tenfold::OpenOptions;

use crate::args::Inputs;
use crate::failure::{Failure, Result};
use crate::output::show_path;
use crate::urls::refuse_url;

/// The directories at or below those given that hold tensor files; files stay as they are.
pub(super) fn models(inputs: &Inputs) -> Result<Inputs> {
    let mut files = Vec::new();
    for path in &inputs.files {
        refuse_url(path, "--recursive looks through directories of")?;
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let found = OpenOptions::new().models_below(path);
        if found.is_empty() {
            let message = "there are no tensor files in it or below it";
            let message = format!("{}: {message}", show_path(path));
            return Err(Failure::not_found(path, message));
        }
        files.extend(found);
    }
    Ok(Inputs {
        files,
        json: inputs.json,
    })
}
