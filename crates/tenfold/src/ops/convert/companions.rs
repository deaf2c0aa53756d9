//! Files that hold no tensors and come along with a model.

use crate::archive::Companion;
use crate::error::Result;
use crate::io::{FileSource, Output, Source};
use crate::threads::Work;

/// Bytes that are held at once.
const PIECE: u64 = 1 << 20;

/// Writes the files to an output, each under its name.
pub(super) fn bring(companions: &[Companion], out: &mut dyn Output, work: &Work) -> Result<()> {
    for Companion { path, name, .. } in companions {
        let source = FileSource::open(path)?;
        let mut sink = out.create(name, Some(source.len()))?;
        let mut at = 0;
        while at < source.len() {
            work.control.check()?;
            let end = source.len().min(at.saturating_add(PIECE));
            sink.write(&source.read(at..end)?)?;
            at = end;
        }
        sink.finish()?;
    }
    Ok(())
}
