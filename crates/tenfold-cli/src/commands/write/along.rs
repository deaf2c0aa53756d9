//! What comes along with the tensors of a directory.

use tenfold::{Companion, OpenOptions};

use super::{Request, is_directory};
use crate::failure::Result;
use crate::output::{first_of, say, size};
use crate::urls::is_model_directory;

/// The largest file that comes along: weights that no format here claims are larger, and tokenizers are not.
const LARGEST: u64 = 64 << 20;

impl Request<'_> {
    /// The files that come along: from one directory into another, what is not a tensor file. What is too large is said.
    pub(super) fn along(&self) -> Result<Vec<Companion>> {
        let [directory] = self.inputs else {
            return Ok(Vec::new());
        };
        if !self.brings_along || !is_model_directory(directory) || !is_directory(self.output) {
            return Ok(Vec::new());
        }
        let found = match self.session.urls.companions(directory)? {
            Some(found) => found,
            None => OpenOptions::new().companions(directory)?,
        };
        let (small, large): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|file| file.len <= LARGEST);
        if !self.writing.quiet {
            let lines = large.iter().map(|file| {
                let (name, len, limit) = (&file.name, size(file.len), size(LARGEST));
                format!("not copied: {name}, which has {len}; the limit is {limit}")
            });
            first_of(lines).iter().for_each(say);
        }
        Ok(small)
    }
}
