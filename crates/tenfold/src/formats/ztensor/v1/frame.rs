//! Where the manifest is in the file.

use crate::error::{Error, Result};
use crate::format::Context;
use crate::formats::ztensor::v1::MAGIC;
use crate::io::Reader;
use crate::prelude::*;

/// Where the manifest is.
pub(super) struct Frame {
    pub(super) manifest: Range<u64>,
    pub(super) footer: Range<u64>,
    /// The generation without a magic at the end.
    pub(super) is_10: bool,
}

impl Frame {
    pub(super) fn find(cx: &Context<'_>) -> Result<Self> {
        let source = cx.source();
        let len = source.len();
        if len < 17 {
            let message =
                format!("{len} bytes are too few for a file of generation 1: it is truncated");
            return Err(Error::malformed("ztensor.truncated", message).at(0..len));
        }
        let is_10 = source.read(len - 8..len)? != MAGIC;
        let size_at = if is_10 { len - 8 } else { len - 16 };
        let size = Reader::over(source, size_at..len, "ztensor.truncated").u64("manifest size")?;
        let start = size_at
            .checked_sub(size)
            .filter(|&start| size > 0 && start >= 8);
        let footer = size_at..len;
        match start {
            Some(start) => Ok(Self {
                manifest: start..size_at,
                footer,
                is_10,
            }),
            None if is_10 => Err(Self {
                manifest: 0..0,
                footer,
                is_10,
            }
            .cut()),
            None => {
                let room = size_at.saturating_sub(8);
                let message = format!(
                    "the footer gives the manifest {size} bytes, there is room for 1 to {room}"
                );
                Err(Error::malformed("ztensor.index", message).at(footer))
            }
        }
    }

    /// What a file of 1.1 or 1.2 looks like without its end.
    pub(super) fn cut(&self) -> Error {
        let message = "ends neither with the magic (1.1, 1.2) nor with the size of a manifest that \
                       has tensors (1.0): the file is truncated or damaged";
        Error::malformed("ztensor.footer", message).at(self.footer.clone())
    }
}
