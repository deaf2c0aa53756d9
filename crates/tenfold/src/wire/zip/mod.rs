//! Zip archives: where their members are, by stricter rules than most readers have.
//!
//! Members are located, not unpacked. Sizes, checksums and places come from the directory at the end; the header in front
//! of a member must agree about what it is. What readers disagree about is refused.

mod directory;
mod encode;
mod front;
mod headers;
mod kind;
mod name;

#[cfg(feature = "pytorch")]
pub(crate) use directory::has_end_record;
pub(crate) use directory::{Directory, Entry, no_end};
pub(crate) use encode::{CentralRecord, LocalHeader, directory as encode_directory};
pub(crate) use front::Front;
pub(crate) use kind::{KERAS_CONFIG, KERAS_WEIGHTS, Kind, TORCH_PICKLE, torch_root};

use bytes::Bytes;
use headers::Headers;

use crate::error::{Error, Result};
use crate::io::{Reader, Source};
use crate::prelude::*;

/// A local header without its name and extra fields.
const LOCAL_LEN: u64 = 30;
const LOCAL: [u8; 4] = *b"PK\x03\x04";
pub(crate) const DESCRIPTOR: [u8; 4] = *b"PK\x07\x08";
/// Sizes of 32 bits that are said elsewhere, with 64.
const SATURATED: u32 = u32::MAX;
/// The extra field with numbers of 64 bits.
const ZIP64: u16 = 1;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// Bits of the flags.
const ENCRYPTED: u16 = 1;
const DESCRIPTOR_FOLLOWS: u16 = 1 << 3;
const UTF8: u16 = 1 << 11;

/// A zip archive, with its members in the order of its directory.
pub(crate) struct Zip {
    pub(crate) members: Vec<Member>,
    /// The directory and everything after it.
    pub(crate) tail: Range<u64>,
    /// What readers tolerate: rule, place, message.
    pub(crate) remarks: Vec<(&'static str, Range<u64>, String)>,
}

/// A file in a zip archive.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) is_deflated: bool,
    pub(crate) crc32: u32,
    /// Bytes when unpacked.
    pub(crate) size: u64,
    /// The header in front of it.
    pub(crate) header: Range<u64>,
    /// Its bytes as they are stored.
    pub(crate) data: Range<u64>,
    /// What repeats its sizes after it, where it was written to a stream.
    pub(crate) descriptor: Option<Range<u64>>,
    /// What is known of its stored bytes: some at their beginning, where they were asked for.
    pub(crate) beginning: Bytes,
}

impl Zip {
    /// Locates all members; `None` where the end of the archive is [missing](no_end). `limit` is on the bytes of the
    /// directory.
    pub(crate) fn open(source: &dyn Source, limit: u64) -> Result<Option<Self>> {
        Self::open_with(source, limit, 0)
    }

    /// The same for who needs the beginnings of the members too: as many bytes of each are fetched with its header.
    pub(crate) fn open_with(
        source: &dyn Source,
        limit: u64,
        beginning: u64,
    ) -> Result<Option<Self>> {
        let Some(Directory { entries, range }) = Directory::read(source, limit)? else {
            return Ok(None);
        };
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by_key(|&place| entries.get(place).map(|entry| entry.local_at));
        let sorted = order.iter().filter_map(|&place| entries.get(place));
        let headers = Headers::fetch(source, &sorted.collect::<Vec<_>>(), &range, beginning)?;
        let mut remarks = Vec::new();
        let mut located: Vec<Option<Member>> = entries.iter().map(|_| None).collect();
        let mut end = 0;
        for (number, &place) in order.iter().enumerate() {
            let Some(entry) = entries.get(place) else {
                continue;
            };
            let next = order.get(number + 1).and_then(|&next| entries.get(next));
            let limit = next.map_or(range.start, |next| next.local_at);
            let mut reader = headers.reader(number, end);
            let member = locate(
                &mut reader,
                entry,
                limit,
                &headers.reader(number + 1, 0),
                &mut remarks,
            )?;
            end = reader.pos();
            if let Some(slot) = located.get_mut(place) {
                *slot = Some(headers.beginning(number, member));
            }
        }
        Ok(Some(Self {
            members: located.into_iter().flatten().collect(),
            tail: range.start..source.len(),
            remarks,
        }))
    }
}

/// Reads the header in front of a member; what follows the member begins at `limit`, where `behind` knows more.
fn locate(
    r: &mut Reader<'_>,
    entry: &Entry,
    limit: u64,
    behind: &Reader<'_>,
    remarks: &mut Vec<(&'static str, Range<u64>, String)>,
) -> Result<Member> {
    let about = |error: Error| error.adding(&format!(" (member {:?})", entry.name));
    let overlap = |end: u64| {
        let message = format!(
            "member {:?} reaches to byte {end}, the next one begins at {limit}: they overlap",
            entry.name
        );
        Error::malformed("zip.overlap", message).at(entry.local_at..end)
    };
    if entry.local_at.saturating_add(LOCAL_LEN) > limit && limit < r.pos() + r.remaining() {
        return Err(overlap(entry.local_at.saturating_add(LOCAL_LEN)));
    }
    r.skip_to(entry.local_at, "a member's header")
        .map_err(about)?;
    let local = Local::parse(r).map_err(about)?;
    let header = entry.local_at..r.pos();
    local.check(entry, &header).map_err(about)?;
    let data = r.skip(entry.compressed, "a member's data").map_err(about)?;
    if data.end > limit {
        return Err(overlap(data.end));
    }
    let descriptor = match entry.flags & DESCRIPTOR_FOLLOWS {
        0 => {
            if let Some(message) = local.disagrees(entry) {
                remarks.push(("zip.local-header", header.clone(), message));
            }
            None
        }
        _ => {
            let mut behind = behind.clone();
            behind.go_to(data.end);
            descriptor(&behind, entry, limit)?
        }
    };
    Ok(Member {
        name: entry.name.clone(),
        is_deflated: entry.method == DEFLATED,
        crc32: entry.crc32,
        size: entry.size,
        header,
        data,
        descriptor,
        beginning: Bytes::new(),
    })
}

/// What the directory and the header in front of a member say in the same fields.
struct Said {
    flags: u16,
    method: u16,
    crc32: u32,
    compressed: u32,
    size: u32,
    name_len: u16,
    extra_len: u16,
}

impl Said {
    fn parse(r: &mut Reader<'_>) -> Result<Self> {
        let flags = r.u16("flags")?;
        let method = r.u16("method")?;
        let _time = r.u32("time")?;
        Ok(Self {
            flags,
            method,
            crc32: r.u32("CRC-32")?,
            compressed: r.u32("compressed size")?,
            size: r.u32("size")?,
            name_len: r.u16("name length")?,
            extra_len: r.u16("extra length")?,
        })
    }
}

/// The header in front of a member.
struct Local {
    signature: [u8; 4],
    /// The version that reading it needs, in tenths.
    needed: u8,
    flags: u16,
    method: u16,
    crc32: u32,
    /// The size stored and unpacked; `None` where the extra field should say it and does not.
    sizes: Option<(u64, u64)>,
    name: Bytes,
}

impl Local {
    fn parse(r: &mut Reader<'_>) -> Result<Self> {
        let signature = r.array("a member's signature")?;
        let [needed, _] = r.array("version needed")?;
        let said = Said::parse(r)?;
        let name = r.take(said.name_len.into(), "a member's name")?;
        let extra = r.take(said.extra_len.into(), "a member's extra fields")?;
        let mut numbers = Numbers::of(&extra);
        let mut resolve = |number: u32| match number {
            SATURATED => numbers.next(),
            number => Some(u64::from(number)),
        };
        let size = resolve(said.size);
        let compressed = resolve(said.compressed);
        Ok(Self {
            signature,
            needed,
            flags: said.flags,
            method: said.method,
            crc32: said.crc32,
            sizes: compressed.zip(size),
            name,
        })
    }

    /// What the header must say as the directory does.
    fn check(&self, entry: &Entry, header: &Range<u64>) -> Result<()> {
        let refuse =
            |message: String| Err(Error::malformed("zip.local-header", message).at(header.clone()));
        if self.signature != LOCAL {
            return refuse(format!(
                "the directory says that a member begins here, found \"{}\" instead of \"PK\\x03\\x04\"",
                self.signature.escape_ascii()
            ));
        }
        if self.name != entry.raw_name {
            return refuse(format!(
                "the name in front of the member is \"{}\", but the directory has another",
                self.name.escape_ascii()
            ));
        }
        if self.method != entry.method {
            let (local, central) = (self.method, entry.method);
            return refuse(format!(
                "the method is {local} in front of the member, but {central} in the directory"
            ));
        }
        if self.flags & ENCRYPTED != 0 {
            return refuse("the member is encrypted, but the directory says that it is not".into());
        }
        Ok(())
    }

    /// What readers that go by the directory do not notice.
    fn disagrees(&self, entry: &Entry) -> Option<String> {
        let same = self.sizes == Some((entry.compressed, entry.size)) && self.crc32 == entry.crc32;
        (!same).then(|| {
            format!(
                "member {:?}: the sizes or the CRC-32 in front of it differ from those of the directory, which count",
                entry.name
            )
        })
    }
}

/// What repeats the sizes after a member, where all that lies up to the next one can be that.
fn descriptor(r: &Reader<'_>, entry: &Entry, limit: u64) -> Result<Option<Range<u64>>> {
    let at = r.pos();
    let mut ahead = r.clone();
    let wide = |r: &mut Reader<'_>, is_wide: bool| -> Result<u64> {
        if is_wide {
            r.u64("size")
        } else {
            r.u32("size").map(u64::from)
        }
    };
    for (len, signed, is_wide) in [
        (16, true, false),
        (12, false, false),
        (24, true, true),
        (20, false, true),
    ] {
        if at.checked_add(len).is_none_or(|end| end > limit) {
            continue;
        }
        let mut r = ahead.clone();
        let is_signed = !signed || r.array::<4>("signature")? == DESCRIPTOR;
        let same = r.u32("CRC-32")? == entry.crc32
            && wide(&mut r, is_wide)? == entry.compressed
            && wide(&mut r, is_wide)? == entry.size;
        if is_signed && same {
            return Ok(Some(ahead.skip(len, "descriptor")?));
        }
    }
    Ok(None)
}

/// The numbers of 64 bits of the extra field for them, one after the other.
struct Numbers<'e>(&'e [u8]);

impl<'e> Numbers<'e> {
    fn of(extra: &'e [u8]) -> Self {
        let mut rest = extra;
        while let Some((&[a, b, c, d], after)) = rest.split_first_chunk::<4>() {
            let len = usize::from(u16::from_le_bytes([c, d]));
            let Some((field, after)) = after.split_at_checked(len) else {
                break;
            };
            if u16::from_le_bytes([a, b]) == ZIP64 {
                return Self(field);
            }
            rest = after;
        }
        Self(&[])
    }

    fn next(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }
}

#[cfg(test)]
mod tests;
