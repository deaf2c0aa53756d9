//! How much a file may ask for.

/// Limits on what a file may ask for. The defaults pass every real file that we know.
///
/// ```
/// let limits = tenfold::io::Limits::default().header_bytes(16 << 20);
/// assert_eq!(limits.header_bytes, 16 << 20);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of headers and indexes that are read into memory.
    pub header_bytes: u64,
    /// Dimensions of a tensor. Many formats allow fewer, 64 or less, whatever this is.
    pub rank: usize,
    /// Depth of nested metadata.
    pub depth: usize,
    /// Bytes of a sparse or compressed tensor that must be in memory at once to be decoded: 4 GiB, or 512 MiB on a
    /// 32-bit machine.
    pub tensor_memory: u64,
    /// Bytes that a sparse tensor may take when it is written out densely, and that all sparse tensors of a file may take
    /// when they are digested. Unless it is set, fill values and strides of 0 may make 1 GiB or 64 times their file.
    pub dense_bytes: u64,
    /// Bytes of a stream that are kept, in a temporary file if they are many, because formats are not read in order.
    pub spool_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: 1 << 30,
            rank: 1024,
            depth: 512,
            tensor_memory: if cfg!(target_pointer_width = "64") {
                4 << 30
            } else {
                // All of the memory that there is has 4 GiB or less, and decoding takes several times the data.
                512 << 20
            },
            dense_bytes: 16 << 30,
            spool_bytes: 64 << 30,
        }
    }
}

impl Limits {
    /// Sets the limit on headers and indexes.
    #[must_use]
    pub fn header_bytes(mut self, bytes: u64) -> Self {
        self.header_bytes = bytes;
        self
    }

    /// Sets the limit on the dimensions of a tensor.
    #[must_use]
    pub fn rank(mut self, dimensions: usize) -> Self {
        self.rank = dimensions;
        self
    }

    /// Sets the limit on the depth of nested metadata.
    #[must_use]
    pub fn depth(mut self, levels: usize) -> Self {
        self.depth = levels;
        self
    }

    /// Sets the limit on what must be in memory at once to decode one tensor.
    #[must_use]
    pub fn tensor_memory(mut self, bytes: u64) -> Self {
        self.tensor_memory = bytes;
        self
    }

    /// Sets the limit of this name, as messages name it; `None` where there is none.
    #[must_use]
    pub fn named(self, name: &str, value: u64) -> Option<Self> {
        let size = usize::try_from(value).unwrap_or(usize::MAX);
        Some(match name {
            "header_bytes" => self.header_bytes(value),
            "rank" => self.rank(size),
            "depth" => self.depth(size),
            "tensor_memory" => self.tensor_memory(value),
            "dense_bytes" => self.dense_bytes(value),
            "spool_bytes" => self.spool_bytes(value),
            _ => return None,
        })
    }

    /// Sets the limit on the length of a stream.
    #[must_use]
    pub fn spool_bytes(mut self, bytes: u64) -> Self {
        self.spool_bytes = bytes;
        self
    }

    /// What may become of a file of so many bytes in which few stand for many, as fill values and strides of 0 do: 1 GiB,
    /// or 64 times the file. Whoever sets another limit for dense bytes means this too.
    pub(crate) fn expanded(&self, file: u64) -> u64 {
        const LEAST: u64 = 1 << 30;
        const TIMES: u64 = 64;
        if self.dense_bytes == Self::default().dense_bytes {
            LEAST.max(file.saturating_mul(TIMES))
        } else {
            self.dense_bytes
        }
    }

    /// Sets the limit on the dense size of a sparse tensor.
    #[must_use]
    pub fn dense_bytes(mut self, bytes: u64) -> Self {
        self.dense_bytes = bytes;
        self
    }
}
