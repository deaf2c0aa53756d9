//! How the writing was asked to be done, in the words of the library.

use std::sync::Arc;

use globset::GlobSet;
use tenfold::format::{Checksums, Compression, Effect};
use tenfold::model::{DigestKind, TensorInfo};
use tenfold::ops::ConvertOptions;

use super::{Request, is_directory};
use crate::args::{Allow, Checksum, Writing};
use crate::commands::globs;
use crate::failure::{Failure, Result};

impl Request<'_> {
    /// How the writing was asked to be done.
    pub(crate) fn options(&self) -> Result<ConvertOptions> {
        let writing = self.writing;
        let mut options = ConvertOptions::default();
        options.version.clone_from(&writing.version);
        options.options.clone_from(&writing.options);
        options.compression = compression(writing)?;
        options.checksums = match writing.checksum {
            Checksum::Keep => Checksums::Keep,
            Checksum::None => Checksums::None,
            Checksum::Crc32c => Checksums::With(DigestKind::Crc32c),
            Checksum::Sha256 => Checksums::With(DigestKind::Sha256),
            Checksum::Xxh3 => Checksums::With(DigestKind::Xxh3),
        };
        options.allow = match writing.allow {
            None => Effect::Rearranged,
            Some(Allow::Changed) => Effect::Changed,
            Some(Allow::Dropped) => Effect::Dropped,
        };
        options.verify = !self.opening.no_verify;
        options.check = self.check;
        options.shards = self.shards;
        options.file_per_tensor = is_directory(self.output) && self.shards.is_none();
        options.execute.threads = writing.threads.count();
        options.timestamp = timestamp()?;
        Ok(options)
    }
}

type Choose = Arc<dyn Fn(&TensorInfo) -> Compression + Send + Sync>;

/// The last of the `--zstd` rules that matches, else raw or as it is.
fn compression(writing: &Writing) -> Result<Choose> {
    let otherwise = if writing.raw {
        Compression::Raw
    } else {
        Compression::Keep
    };
    let mut rules: Vec<(i32, Option<GlobSet>)> = Vec::new();
    for (level, pattern) in writing.zstd.iter().rev() {
        rules.push((*level, globs(pattern.as_slice())?));
    }
    Ok(Arc::new(move |info| {
        let matches =
            |set: &Option<GlobSet>| set.as_ref().is_none_or(|set| set.is_match(&info.name));
        let rule = rules.iter().find(|(_, set)| matches(set));
        rule.map_or(otherwise, |(level, _)| Compression::Zstd(*level))
    }))
}

/// The time for formats that record one: that of the build that asks for reproducible output, else none.
fn timestamp() -> Result<u64> {
    match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text.parse().map_err(|_| {
            Failure::Message(format!(
                "SOURCE_DATE_EPOCH is {text:?}, seconds since 1970 are expected"
            ))
        }),
        Err(_) => Ok(0),
    }
}
