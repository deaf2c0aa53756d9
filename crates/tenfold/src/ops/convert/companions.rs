//! Files that hold no tensors and come along with a model.

use bytes::Bytes;

use super::Conversion;
use super::configuration::{self, Followed};
use crate::archive::Companion;
use crate::error::Result;
use crate::io::{Output, Source};
use crate::model::Layout;
use crate::ops::cast::before_cast;
use crate::prelude::*;

/// Bytes that are held at once.
const PIECE: u64 = 1 << 20;

impl Conversion {
    /// Writes the files to an output, each under its name, and gives what people should know of them.
    pub(super) fn bring(&self, out: &mut dyn Output) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        for companion in &self.companions {
            let Companion { name, .. } = companion;
            if self.is_dequantized() && configuration::ABOUT_QUANTIZATION.contains(&name.as_str()) {
                notes.push(format!(
                    "{name} is left out: the weights are no longer quantized"
                ));
                continue;
            }
            let file = companion.open()?;
            let Followed { text, note } = self.follow(name, &*file)?;
            notes.extend(note);
            let source: Arc<dyn Source> = match text {
                Some(text) => Arc::new(Bytes::from(text)),
                None => file,
            };
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

    /// What becomes of a file that says something of the tensors.
    fn follow(&self, name: &str, file: &dyn Source) -> Result<Followed> {
        let mut tensors = self.source.manifest().tensors.iter();
        let is_cast = tensors.any(|tensor| before_cast(tensor).is_some());
        let is_dequantized = self.is_dequantized();
        if name == configuration::NAME && (is_cast || is_dequantized) {
            configuration::follow(file, &self.adapted, is_dequantized)
        } else {
            Ok(Followed::default())
        }
    }

    /// Whether tensors become numbers that were quantized together, which a configuration says.
    fn is_dequantized(&self) -> bool {
        let mut tensors = self.source.manifest().tensors.iter();
        tensors.any(|tensor| {
            let decoder = tensor
                .decoder
                .as_ref()
                .filter(|_| tensor.layout == Layout::Decoded);
            decoder.is_some_and(|decoder| decoder.scheme().is_some())
        })
    }
}
