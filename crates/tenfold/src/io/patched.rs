//! A file as it would be with some bytes replaced.

#[cfg(feature = "std")]
use bytes::Bytes;

#[cfg(feature = "std")]
use crate::error::{Error, Result};
#[cfg(feature = "std")]
use crate::io::{Source, Stamp, check_range};
use crate::prelude::*;

/// Bytes for a place in a file. Those past its end make it longer.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Patch {
    /// Where they go.
    pub at: u64,
    /// What will be there.
    pub bytes: Vec<u8>,
}

impl Patch {
    /// Bytes for a place in a file.
    pub fn new(at: u64, bytes: Vec<u8>) -> Self {
        Self { at, bytes }
    }

    /// The place after the last byte.
    #[cfg(feature = "std")]
    pub(crate) fn end(&self) -> u64 {
        self.at.saturating_add(self.bytes.len() as u64)
    }
}

/// A source with patches, of any length: what neither has is 0.
#[cfg(feature = "std")]
pub(crate) struct Patched {
    under: Arc<dyn Source>,
    patches: Vec<Patch>,
    len: u64,
}

#[cfg(feature = "std")]
impl Patched {
    pub(crate) fn new(under: Arc<dyn Source>, patches: Vec<Patch>, len: u64) -> Self {
        Self {
            under,
            patches,
            len,
        }
    }
}

#[cfg(feature = "std")]
impl Source for Patched {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        check_range(self.len, &range)?;
        let touches = |patch: &&Patch| patch.at < range.end && range.start < patch.end();
        let mut patches = self.patches.iter().filter(touches).peekable();
        if patches.peek().is_none() && range.end <= self.under.len() {
            return self.under.read(range);
        }
        let mut bytes = vec![0; crate::io::as_size(range.end - range.start)?];
        let there = range.start..range.end.min(self.under.len());
        if !there.is_empty() {
            let below = self.under.read(there)?;
            if let Some(start) = bytes.get_mut(..below.len()) {
                start.copy_from_slice(&below);
            }
        }
        for patch in patches {
            let common = patch.at.max(range.start)..patch.end().min(range.end);
            let from = crate::io::as_size(common.start - patch.at)?;
            let to = crate::io::as_size(common.start - range.start)?;
            let len = crate::io::as_size(common.end - common.start)?;
            match (
                bytes.get_mut(to..to + len),
                patch.bytes.get(from..from + len),
            ) {
                (Some(to), Some(from)) => to.copy_from_slice(from),
                _ => return Err(Error::argument("a patch outside what is read")),
            }
        }
        Ok(bytes.into())
    }

    fn window(&self) -> u64 {
        self.under.window()
    }

    fn stamp(&self) -> Option<Stamp> {
        self.under.stamp()
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    #[test]
    fn patches_are_over_what_is_below_them() {
        let under: Arc<dyn Source> = Arc::new(Bytes::from_static(b"0123456789"));
        let patches = vec![
            Patch::new(2, b"ab".to_vec()),
            Patch::new(9, b"xyz".to_vec()),
        ];
        let longer = Patched::new(under.clone(), patches.clone(), 13);
        assert_eq!(longer.read(0..13).unwrap()[..], *b"01ab45678xyz\0");
        assert_eq!(longer.read(3..5).unwrap()[..], *b"b4");
        assert_eq!(longer.read(4..9).unwrap()[..], *b"45678");
        assert_eq!(longer.read(12..13).unwrap()[..], *b"\0");
        let shorter = Patched::new(under, patches, 4);
        assert_eq!(shorter.read(0..4).unwrap()[..], *b"01ab");
        assert!(shorter.read(0..5).is_err());
    }
}
