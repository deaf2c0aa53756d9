//! Files that hold no tensors and come along with a model.

use super::Conversion;
use crate::archive::Companion;
use crate::error::Result;
use crate::io::{FileSource, Output, Source};
use crate::prelude::*;

/// Bytes that are held at once.
const PIECE: u64 = 1 << 20;

impl Conversion {
    /// Writes the files to an output, each under its name, and gives what people should know of them.
    pub(super) fn bring(&self, out: &mut dyn Output) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        for Companion { path, name, .. } in &self.companions {
            let source = FileSource::open(path)?;
            let (text, note) = self.follow(name, &source)?;
            notes.extend(note);
            if let Some(text) = text {
                let mut sink = out.create(name, Some(text.len() as u64))?;
                sink.write(text.as_bytes())?;
                sink.finish()?;
                continue;
            }
            let mut sink = out.create(name, Some(source.len()))?;
            let mut at = 0;
            while at < source.len() {
                self.options.work.control.check()?;
                let end = source.len().min(at.saturating_add(PIECE));
                sink.write(&source.read(at..end)?)?;
                at = end;
            }
            sink.finish()?;
        }
        Ok(notes)
    }

    /// What is written in the place of a file that says something of the tensors, and what was noticed.
    #[cfg(any(
        feature = "gguf",
        feature = "keras",
        feature = "mag",
        feature = "pytorch",
        feature = "safetensors"
    ))]
    fn follow(&self, name: &str, source: &FileSource) -> Result<(Option<String>, Option<String>)> {
        use super::configuration;
        let mut tensors = self.source.manifest().tensors.iter();
        let is_cast = tensors.any(|tensor| crate::ops::cast::before_cast(tensor).is_some());
        if name != configuration::NAME || !is_cast {
            return Ok((None, None));
        }
        let followed = configuration::follow(source, &self.adapted)?;
        Ok(followed.map_or((None, None), |followed| {
            (followed.text, Some(followed.note))
        }))
    }

    /// Without a format that has JSON, nothing reads it.
    #[cfg(not(any(
        feature = "gguf",
        feature = "keras",
        feature = "mag",
        feature = "pytorch",
        feature = "safetensors"
    )))]
    fn follow(&self, _: &str, _: &FileSource) -> Result<(Option<String>, Option<String>)> {
        Ok((None, None))
    }
}
