//! Archives of tensors that are in no file yet.

use super::Archive;
use crate::error::{Error, Result};
use crate::io::{Limits, Source};
use crate::model::{DType, Manifest, Metadata, Payload, SourceId, TensorInfo};
use crate::prelude::*;

/// Collects tensors that are in no file yet.
#[derive(Debug, Default)]
pub struct ArchiveBuilder {
    manifest: Manifest,
    sources: Vec<Arc<dyn Source>>,
    known: LookupMap<String, ()>,
}

impl ArchiveBuilder {
    /// No tensors yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a dense row-major little-endian tensor. Its bytes are read when they are needed.
    pub fn push(
        &mut self,
        name: impl Into<String>,
        dtype: DType,
        shape: &[u64],
        data: impl Source + 'static,
    ) -> Result<()> {
        let source = SourceId(u32::try_from(self.sources.len()).unwrap_or(u32::MAX));
        let payload = Payload::Raw {
            source,
            range: 0..data.len(),
        };
        let tensor = TensorInfo::dense(name, dtype, shape.to_vec(), payload);
        if tensor.dense_len() != Some(data.len()) {
            let message = format!("{} bytes for {dtype} of shape {shape:?}", data.len());
            return Err(Error::argument(message).in_tensor(&tensor.name));
        }
        self.add(tensor)?;
        self.sources.push(Arc::new(data));
        Ok(())
    }

    /// Adds a tensor in any layout. Its parts are in memory ([`Payload::Inline`]) or in the data of tensors that were
    /// pushed before, which are the sources from 0 on.
    pub fn push_info(&mut self, tensor: TensorInfo) -> Result<()> {
        for (source, range) in tensor.parts.iter().filter_map(|part| part.payload.stored()) {
            let data = self.sources.get(source.index());
            if data.is_none_or(|data| range.start > range.end || range.end > data.len()) {
                let message = format!("bytes {range:?} of data {} are not there", source.0);
                return Err(Error::argument(message).in_tensor(&tensor.name));
            }
        }
        self.add(tensor)
    }

    fn add(&mut self, tensor: TensorInfo) -> Result<()> {
        if self.known.insert(tensor.name.clone(), ()).is_some() {
            return Err(Error::argument(format!(
                "there are two tensors {:?}",
                tensor.name
            )));
        }
        self.manifest.tensors.push(tensor);
        Ok(())
    }

    /// What the file will say about itself.
    pub fn metadata(&mut self) -> &mut Metadata {
        &mut self.manifest.metadata
    }

    /// The archive.
    pub fn finish(self) -> Archive {
        let names = self.sources.iter().map(|_| None).collect();
        Archive::assemble(
            None,
            self.manifest,
            self.sources,
            names,
            Vec::new(),
            Limits::default(),
        )
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::error::ErrorKind;
    use crate::format::Registry;
    use crate::model::Value;
    use crate::ops::{ConvertOptions, prepare};

    /// A source that gives a byte less than it is asked for.
    struct Short;

    impl Source for Short {
        fn len(&self) -> u64 {
            8
        }

        fn read(&self, range: Range<u64>) -> Result<Bytes> {
            let len = range.end.saturating_sub(range.start).saturating_sub(1);
            Ok(Bytes::from(vec![1; usize::try_from(len).unwrap_or(0)]))
        }

        fn is_memory(&self) -> bool {
            true
        }
    }

    #[test]
    fn sources_are_shared_and_held_to_their_word() {
        let shared: Arc<dyn Source> = Arc::new(Bytes::from_static(&[1, 2, 3, 4]));
        let mut builder = ArchiveBuilder::new();
        builder.push("a", DType::U8, &[4], shared.clone()).unwrap();
        builder.push("b", DType::U8, &[2, 2], shared).unwrap();
        builder.push("short", DType::U8, &[8], Short).unwrap();
        let archive = builder.finish();
        assert_eq!(
            archive.tensor("b").unwrap().canonical().unwrap()[..],
            [1, 2, 3, 4]
        );
        let error = archive.tensor("short").unwrap().canonical().unwrap_err();
        assert_eq!(error.rule(), "file.changed");
    }

    #[test]
    #[cfg(feature = "safetensors")]
    fn a_key_that_is_there_twice_is_refused_before_anything_is_written() {
        let mut builder = ArchiveBuilder::new();
        builder.metadata().push("step", Value::Str("1".into()));
        builder.metadata().push("step", Value::Str("2".into()));
        let registry = Registry::standard();
        let target = registry.get("safetensors").unwrap();
        let refused = prepare(&builder.finish(), target, &ConvertOptions::default());
        let error = refused.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument);
        assert!(error.message().contains("\"step\""), "{error}");
    }
}
