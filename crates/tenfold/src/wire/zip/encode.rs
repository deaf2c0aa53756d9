//! Headers and directories to be written.

use super::{DEFLATED, LOCAL, LOCAL_LEN, SATURATED, STORED, UTF8, ZIP64};
use crate::prelude::*;

/// 1980-01-01, the first day that zip knows: the same input gives the same bytes.
const DATE: [u8; 4] = [0, 0, 0x21, 0];
/// The extra field that makes data begin at a multiple, as in the files of PyTorch.
const PADDING: u16 = 0x4246;
/// Made on Unix, so that the rights below count.
const MADE_BY: u8 = 3;
/// A regular file that everybody may read.
const RIGHTS: u32 = 0o100_644 << 16;
const VERSION: u16 = 20;
const VERSION_64: u16 = 45;

/// A header in front of a member, whose length is known before the member's size is.
#[derive(Clone, Debug)]
pub(crate) struct LocalHeader {
    pub(crate) name: String,
    pub(crate) is_deflated: bool,
    /// Sizes take 64 bits.
    pub(crate) is_wide: bool,
    /// Bytes of padding, none or at least 4.
    pub(crate) padding: u16,
}

impl LocalHeader {
    /// A header that begins at byte `at`, with the member at a multiple of `align` after it.
    pub(crate) fn aligned(name: String, at: u64, is_wide: bool, align: u64) -> Self {
        let mut header = Self {
            name,
            is_deflated: false,
            is_wide,
            padding: 0,
        };
        let end = at.saturating_add(header.len());
        let missing = end
            .checked_next_multiple_of(align)
            .map_or(0, |next| next - end);
        let padding = match missing {
            0 => 0,
            1..4 => missing + align,
            missing => missing,
        };
        // A small multiple.
        header.padding = u16::try_from(padding).unwrap_or(0);
        header
    }

    pub(crate) fn len(&self) -> u64 {
        LOCAL_LEN
            + self.name.len() as u64
            + u64::from(self.padding)
            + if self.is_wide { 20 } else { 0 }
    }

    pub(crate) fn encode(&self, crc32: u32, compressed: u64, size: u64) -> Vec<u8> {
        let mut bytes = LOCAL.to_vec();
        put16(&mut bytes, version(self.is_wide));
        self.put_kind(&mut bytes);
        put32(&mut bytes, crc32);
        for number in [compressed, size] {
            put32(
                &mut bytes,
                if self.is_wide {
                    SATURATED
                } else {
                    narrow(number)
                },
            );
        }
        put16(&mut bytes, short(self.name.len()));
        put16(&mut bytes, self.padding + if self.is_wide { 20 } else { 0 });
        bytes.extend_from_slice(self.name.as_bytes());
        if self.is_wide {
            put16(&mut bytes, ZIP64);
            put16(&mut bytes, 16);
            bytes.extend_from_slice(&size.to_le_bytes());
            bytes.extend_from_slice(&compressed.to_le_bytes());
        }
        if let Some(zeros) = self.padding.checked_sub(4) {
            put16(&mut bytes, PADDING);
            put16(&mut bytes, zeros);
            bytes.resize(bytes.len() + usize::from(zeros), 0);
        }
        bytes
    }

    /// What header and directory record have in common: flags, method, date.
    fn put_kind(&self, bytes: &mut Vec<u8>) {
        put16(bytes, if self.name.is_ascii() { 0 } else { UTF8 });
        put16(bytes, if self.is_deflated { DEFLATED } else { STORED });
        bytes.extend_from_slice(&DATE);
    }
}

/// What the directory says of a member that was written.
pub(crate) struct CentralRecord<'h> {
    pub(crate) header: &'h LocalHeader,
    pub(crate) crc32: u32,
    pub(crate) compressed: u64,
    pub(crate) size: u64,
    pub(crate) local_at: u64,
}

impl CentralRecord<'_> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        let mut extra = Vec::new();
        let mut numbers = [0; 3];
        for (number, wide) in numbers
            .iter_mut()
            .zip([self.size, self.compressed, self.local_at])
        {
            *number = narrow(wide);
            if *number == SATURATED {
                extra.extend_from_slice(&wide.to_le_bytes());
            }
        }
        let [size, compressed, local_at] = numbers;
        bytes.extend_from_slice(b"PK\x01\x02");
        let needed = version(!extra.is_empty() || self.header.is_wide);
        put16(bytes, needed | u16::from(MADE_BY) << 8);
        put16(bytes, needed);
        self.header.put_kind(bytes);
        put32(bytes, self.crc32);
        put32(bytes, compressed);
        put32(bytes, size);
        put16(bytes, short(self.header.name.len()));
        put16(
            bytes,
            if extra.is_empty() {
                0
            } else {
                short(extra.len() + 4)
            },
        );
        // No comment, the first disk, no internal attributes.
        bytes.extend_from_slice(&[0; 6]);
        put32(bytes, RIGHTS);
        put32(bytes, local_at);
        bytes.extend_from_slice(self.header.name.as_bytes());
        if !extra.is_empty() {
            put16(bytes, ZIP64);
            put16(bytes, short(extra.len()));
            bytes.append(&mut extra);
        }
    }
}

/// The directory and the end records of an archive; the directory begins at byte `at`.
pub(crate) fn directory<'h>(records: impl Iterator<Item = CentralRecord<'h>>, at: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut count = 0u64;
    for record in records {
        record.encode(&mut bytes);
        count += 1;
    }
    let len = bytes.len() as u64;
    let narrow_count = u16::try_from(count).unwrap_or(u16::MAX);
    if narrow_count == u16::MAX || narrow(len) == SATURATED || narrow(at) == SATURATED {
        let end = at.saturating_add(len);
        bytes.extend_from_slice(b"PK\x06\x06");
        bytes.extend_from_slice(&44u64.to_le_bytes());
        put16(&mut bytes, VERSION_64 | u16::from(MADE_BY) << 8);
        put16(&mut bytes, VERSION_64);
        bytes.extend_from_slice(&[0; 8]);
        for number in [count, count, len, at] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(b"PK\x06\x07\0\0\0\0");
        bytes.extend_from_slice(&end.to_le_bytes());
        put32(&mut bytes, 1);
    }
    bytes.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    put16(&mut bytes, narrow_count);
    put16(&mut bytes, narrow_count);
    put32(&mut bytes, narrow(len));
    put32(&mut bytes, narrow(at));
    put16(&mut bytes, 0);
    bytes
}

fn version(is_wide: bool) -> u16 {
    if is_wide { VERSION_64 } else { VERSION }
}

/// A number in 32 bits, or the mark that it is elsewhere.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(SATURATED)
}

/// The length of a name, which the capabilities bound.
fn short(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}

fn put16(bytes: &mut Vec<u8>, number: u16) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

fn put32(bytes: &mut Vec<u8>, number: u32) {
    bytes.extend_from_slice(&number.to_le_bytes());
}
