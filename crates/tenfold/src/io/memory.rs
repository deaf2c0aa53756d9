//! Output into memory.

use alloc::collections::BTreeMap;

use bytes::Bytes;

use crate::error::Result;
use crate::io::{Output, Sink, Source};
use crate::prelude::*;

/// Files in memory: for tests, and where there is no file system.
#[derive(Debug, Default)]
pub struct MemoryOutput {
    files: BTreeMap<String, Vec<u8>>,
}

impl MemoryOutput {
    /// No files yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The files that were written, by name.
    pub fn into_files(self) -> BTreeMap<String, Vec<u8>> {
        self.files
    }
}

impl Output for MemoryOutput {
    fn create(&mut self, name: &str, _len: Option<u64>) -> Result<Box<dyn Sink + '_>> {
        let file = self.files.entry(name.to_owned()).or_default();
        // One that was written before is replaced, not added to.
        file.clear();
        Ok(Box::new(MemorySink(file)))
    }

    fn written(&self, name: &str) -> Result<Option<Arc<dyn Source>>> {
        Ok(self
            .files
            .get(name)
            .map(|bytes| Arc::new(Bytes::from(bytes.clone())) as Arc<dyn Source>))
    }

    fn commit(&mut self) -> Result<()> {
        Ok(())
    }
}

struct MemorySink<'a>(&'a mut Vec<u8>);

impl Sink for MemorySink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_created_again_begins_anew() {
        let mut output = MemoryOutput::new();
        for text in ["the first time", "again"] {
            output
                .create("x", None)
                .unwrap()
                .write(text.as_bytes())
                .unwrap();
        }
        assert_eq!(output.into_files()["x"], b"again");
    }
}
