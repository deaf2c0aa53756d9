//! How much a file may ask for.

/// Limits on what a file may ask for. The defaults pass every real file that we know.
///
/// ```
/// let limits = tenfold::io::Limits::default().with_header_bytes(16 << 20);
/// assert_eq!(limits.header_bytes, 16 << 20);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of headers and indexes that are read into memory.
    pub header_bytes: u64,
    /// Dimensions of a tensor.
    pub rank: usize,
    /// Depth of nested metadata.
    pub depth: usize,
    /// Bytes of a sparse or compressed tensor that must be in memory at once to be decoded.
    pub tensor_memory: u64,
    /// Bytes that a sparse tensor may take when it is written out densely.
    pub dense_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: 1 << 30,
            rank: 64,
            depth: 512,
            tensor_memory: 4 << 30,
            dense_bytes: 16 << 30,
        }
    }
}

impl Limits {
    /// Sets the limit on headers and indexes.
    #[must_use]
    pub fn with_header_bytes(mut self, bytes: u64) -> Self {
        self.header_bytes = bytes;
        self
    }

    /// Sets the limit on what must be in memory at once to decode one tensor.
    #[must_use]
    pub fn with_tensor_memory(mut self, bytes: u64) -> Self {
        self.tensor_memory = bytes;
        self
    }

    /// Sets the limit on the dense size of a sparse tensor.
    #[must_use]
    pub fn with_dense_bytes(mut self, bytes: u64) -> Self {
        self.dense_bytes = bytes;
        self
    }
}
