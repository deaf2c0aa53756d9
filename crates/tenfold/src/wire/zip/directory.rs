//! The directory at the end of a zip archive.

use core::ops::ControlFlow;

use bytes::Bytes;

use super::{DEFLATED, ENCRYPTED, Numbers, SATURATED, STORED, Said, UTF8, name};
use crate::error::{Error, Result};
use crate::io::{Reader, Source, read_exactly};
use crate::prelude::*;

const END: [u8; 4] = *b"PK\x05\x06";
const END_LEN: u64 = 22;
const END64: [u8; 4] = *b"PK\x06\x06";
const END64_LEN: u64 = 56;
const LOCATOR: [u8; 4] = *b"PK\x06\x07";
const LOCATOR_LEN: u64 = 20;
const RECORD: [u8; 4] = *b"PK\x01\x02";
const RECORD_LEN: u64 = 46;
/// The latest version of the format, in tenths: what needs a later one may mean something else.
const LATEST: u8 = 63;
/// Bytes of the end record and the comment after it, at most.
const LONGEST_END: u64 = END_LEN + 0xffff;

/// A directory of up to this length is read at once.
const AT_ONCE: u64 = 8 << 20;

/// The directory of a zip archive.
pub(crate) struct Directory {
    pub(crate) entries: Vec<Entry>,
    pub(crate) range: Range<u64>,
}

/// What the directory says of a member.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(super) raw_name: Bytes,
    pub(super) flags: u16,
    pub(super) method: u16,
    pub(super) crc32: u32,
    pub(super) compressed: u64,
    pub(super) size: u64,
    pub(super) local_at: u64,
}

impl Directory {
    /// Gives the names of the members, and how many bytes of the directory were read up to each, until `put` has enough.
    pub(crate) fn scan(
        source: &dyn Source,
        put: &mut dyn FnMut(&str, u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let end = End::find(source)?.ok_or_else(|| no_end(source))?;
        let range = end.directory(source.len())?;
        let mut r = Reader::over(source, range.clone(), "zip.directory");
        for _ in 0..r.count(end.count, RECORD_LEN, "the number of members")? {
            let entry = Entry::parse(&mut r)?;
            if put(&entry.name, r.pos() - range.start).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Reads the directory; `None` where the end of the archive is missing. `limit` is on the directory's bytes.
    pub(crate) fn read(source: &dyn Source, limit: u64) -> Result<Option<Self>> {
        let Some(end) = End::find(source)? else {
            return Ok(None);
        };
        let range = end.directory(source.len())?;
        let len = range.end - range.start;
        if len > limit {
            let message =
                format!("the directory has {len} bytes, the limit for headers is {limit}");
            let error = Error::limit("zip.limit", message).at(range);
            return Err(error.raised_by("header_bytes", len));
        }
        let mut r = Reader::over(source, range.clone(), "zip.directory");
        if len <= AT_ONCE {
            r = r.knowing(range.start, read_exactly(source, range.clone())?);
        }
        let mut entries = Vec::new();
        let mut names = LookupMap::new();
        for _ in 0..r.count(end.count, RECORD_LEN, "the number of members")? {
            let at = r.pos();
            let entry = Entry::parse(&mut r)?;
            if names.insert(entry.name.clone(), ()).is_some() {
                let message = format!(
                    "two members are named {:?}; readers disagree about which one counts",
                    entry.name
                );
                return Err(Error::malformed("zip.duplicate", message).at(at..r.pos()));
            }
            entries.push(entry);
        }
        if r.remaining() > 0 {
            let message = format!(
                "the end record announces {} members, and {} bytes of the directory are left after them",
                end.count,
                r.remaining()
            );
            return Err(Error::malformed("zip.directory", message).at(r.pos()..range.end));
        }
        Ok(Some(Self { entries, range }))
    }
}

impl Directory {
    /// How much later the directory lies than its end record says: by what stands in front of the archive. `None` where there
    /// is no end record, or the directory would have to lie earlier.
    #[cfg(feature = "pytorch")]
    pub(crate) fn shift(source: &dyn Source) -> Result<Option<u64>> {
        let end = End::find(source)?;
        Ok(end.and_then(|end| {
            end.at
                .checked_sub(end.directory_at.checked_add(end.directory_len)?)
        }))
    }
}

/// Whether there is something like an end record where readers look for it, whatever lies behind it.
#[cfg(feature = "pytorch")]
pub(crate) fn has_end_record(source: &dyn Source) -> Result<bool> {
    let len = source.len();
    let tail = source.read(len - len.min(LONGEST_END)..len)?;
    Ok(tail.windows(END.len()).any(|bytes| bytes == END))
}

/// The error for an archive whose end is missing.
pub(crate) fn no_end(source: &dyn Source) -> Error {
    let len = source.len();
    let message = "the file does not end with an end record \"PK\\x05\\x06\" and its comment: truncated, or bytes were added";
    Error::malformed("zip.end", message).at(len.saturating_sub(LONGEST_END)..len)
}

impl Entry {
    fn parse(r: &mut Reader<'_>) -> Result<Self> {
        let at = r.pos();
        let signature: [u8; 4] = r.array("a directory record")?;
        if signature != RECORD {
            let message = format!(
                "a record of the directory begins with \"PK\\x01\\x02\", found \"{}\"",
                signature.escape_ascii()
            );
            return Err(Error::malformed("zip.directory", message).at(at..at + 4));
        }
        let [_, _, needed, _] = r.array("versions")?;
        let said = Said::parse(r)?;
        let comment_len = r.u16("comment length")?;
        let disk = r.u16("disk")?;
        let _attributes: [u8; 6] = r.array("attributes")?;
        let local_at = r.u32("place of the member")?;
        let raw_name = r.take(said.name_len.into(), "a member's name")?;
        let extra = r.take(said.extra_len.into(), "a member's extra fields")?;
        r.skip(comment_len.into(), "a member's comment")?;
        let place = at..r.pos();
        let name = name::decode(&raw_name, said.flags & UTF8 != 0)
            .map_err(|error| error.at(place.clone()))?;
        let about = |error: Error| error.at(place.clone());
        let mut numbers = Numbers::of(&extra);
        let mut resolve = |number: u32, what: &str| match number {
            SATURATED => numbers.next().ok_or_else(|| {
                let message = format!(
                    "member {name:?}: its {what} should be in the 64-bit field, which is missing"
                );
                about(Error::malformed("zip.zip64", message))
            }),
            number => Ok(u64::from(number)),
        };
        let size = resolve(said.size, "size")?;
        let compressed = resolve(said.compressed, "compressed size")?;
        let local_at = resolve(local_at, "place")?;
        let entry = Self {
            raw_name,
            flags: said.flags,
            method: said.method,
            crc32: said.crc32,
            compressed,
            size,
            local_at,
            name,
        };
        entry.check(disk, needed).map_err(about)?;
        Ok(entry)
    }

    /// What a single member must be.
    pub(super) fn check(&self, disk: u16, needed: u8) -> Result<()> {
        let name = &self.name;
        if needed > LATEST {
            let (whole, tenth) = (needed / 10, needed % 10);
            let message =
                format!("member {name:?} needs version {whole}.{tenth} of zip, 6.3 is the latest");
            return Err(Error::unsupported("zip.version", message));
        }
        if !matches!(disk, 0 | 0xffff) {
            return Err(several_disks());
        }
        if self.flags & ENCRYPTED != 0 {
            let message = format!("member {name:?} is encrypted; decrypt the archive first");
            return Err(Error::unsupported("zip.encrypted", message));
        }
        match self.method {
            STORED if self.compressed != self.size => {
                let message = format!(
                    "member {name:?} is stored uncompressed in {} bytes, but its size is {}",
                    self.compressed, self.size
                );
                Err(Error::malformed("zip.size", message))
            }
            STORED | DEFLATED => Ok(()),
            other => {
                let known = match other {
                    9 => " (deflate64)",
                    12 => " (bzip2)",
                    14 => " (lzma)",
                    93 => " (zstd)",
                    95 => " (xz)",
                    _ => "",
                };
                let message = format!(
                    "member {name:?} is compressed by method {other}{known}; stored (0) and deflated (8) members are read"
                );
                Err(Error::unsupported("zip.method", message))
            }
        }
    }
}

/// Whether something of the directory begins like this.
pub(super) fn is_directory(signature: [u8; 4]) -> bool {
    [RECORD, END64, LOCATOR, END].contains(&signature)
}

/// The record at the very end.
struct End {
    /// Where it begins, or the one with numbers of 64 bits in front of it.
    at: u64,
    count: u64,
    directory_len: u64,
    directory_at: u64,
}

impl End {
    /// `None` where there is none at the end of the file.
    fn find(source: &dyn Source) -> Result<Option<Self>> {
        let len = source.len();
        let most = len.min(LONGEST_END);
        // Most archives have no comment, or a short one.
        let mut n = END_LEN.min(most);
        loop {
            if let Some(at) = find_end(&source.read(len - n..len)?) {
                return Self::parse(source, len - n + at as u64).map(Some);
            }
            if n == most {
                return Ok(None);
            }
            n = (n * 2).min(most);
        }
    }

    fn parse(source: &dyn Source, at: u64) -> Result<Self> {
        let mut r = Reader::over(source, at..source.len(), "zip.end");
        r.skip(4, "signature")?;
        let disks = [r.u16("disk")?, r.u16("disk of the directory")?];
        let on_disk = r.u16("members on this disk")?;
        let count = r.u16("members")?;
        let directory_len = r.u32("size of the directory")?;
        let directory_at = r.u32("place of the directory")?;
        // Not only where a number is saturated: CPython writes the larger record from 2 GiB on. And where one is, it can
        // be missing: exactly 65535 members are written without it by some.
        if let Some(end) = Self::parse_64(source, at)? {
            let agree_16 = |small: u16, large: u64| small == u16::MAX || u64::from(small) == large;
            let agree_32 = |small: u32, large: u64| small == SATURATED || u64::from(small) == large;
            let agree = disks.iter().all(|&disk| agree_16(disk, 0))
                && agree_16(on_disk, end.count)
                && agree_16(count, end.count)
                && agree_32(directory_len, end.directory_len)
                && agree_32(directory_at, end.directory_at);
            if agree {
                return Ok(end);
            }
            let message =
                "the end record and the 64-bit one before it disagree about the directory";
            return Err(Error::malformed("zip.zip64", message).at(at..at + END_LEN));
        }
        if disks != [0, 0] || on_disk != count {
            return Err(several_disks().at(at + 4..at + 12));
        }
        Ok(Self {
            at,
            count: count.into(),
            directory_len: directory_len.into(),
            directory_at: directory_at.into(),
        })
    }

    /// The end record with numbers of 64 bits, if the one at `end` says where it is.
    fn parse_64(source: &dyn Source, end: u64) -> Result<Option<Self>> {
        let Some(locator_at) = end.checked_sub(LOCATOR_LEN) else {
            return Ok(None);
        };
        let mut r = Reader::over(source, locator_at..end, "zip.zip64");
        if r.array::<4>("locator")? != LOCATOR {
            return Ok(None);
        }
        let disk = r.u32("disk of the end record")?;
        let at = r.u64("place of the end record")?;
        let disks = r.u32("number of disks")?;
        let wrong = |message: &str| Error::malformed("zip.zip64", message).at(locator_at..end);
        if disk != 0 || disks > 1 {
            return Err(several_disks().at(locator_at..end));
        }
        if at.checked_add(END64_LEN).is_none_or(|end| end > locator_at) {
            return Err(wrong("the 64-bit end record would lie outside the file"));
        }
        let mut r = Reader::over(source, at..locator_at, "zip.zip64");
        if r.array::<4>("end record")? != END64 {
            return Err(wrong(
                "there is no end record \"PK\\x06\\x06\" where the locator says",
            ));
        }
        if r.u64("size of the end record")?.checked_add(12) != Some(locator_at - at) {
            return Err(wrong(
                "the 64-bit end record does not end where its locator begins",
            ));
        }
        r.skip(4, "versions")?;
        let disks = [r.u32("disk")?, r.u32("disk of the directory")?];
        let on_disk = r.u64("members on this disk")?;
        let count = r.u64("members")?;
        if disks != [0, 0] || on_disk != count {
            return Err(several_disks().at(at + 16..at + 40));
        }
        Ok(Some(Self {
            at,
            count,
            directory_len: r.u64("size of the directory")?,
            directory_at: r.u64("place of the directory")?,
        }))
    }

    /// The bytes of the directory: up to the end record, because some readers count back from there.
    fn directory(&self, file: u64) -> Result<Range<u64>> {
        let end = self.directory_at.checked_add(self.directory_len);
        if end == Some(self.at) {
            return Ok(self.directory_at..self.at);
        }
        let message = format!(
            "the directory of {} bytes at byte {} should end at byte {}, where the end record begins",
            self.directory_len, self.directory_at, self.at
        );
        Err(Error::malformed("zip.directory", message).at(self.at..file))
    }
}

/// The last end record, if its comment ends with the bytes. No other is looked for after or in front of it: which one
/// readers would take is not the same for all.
fn find_end(tail: &[u8]) -> Option<usize> {
    let at = tail.windows(END.len()).rposition(|bytes| bytes == END)?;
    let record = tail.get(at..)?;
    let comment: [u8; 2] = record.get(20..22)?.try_into().ok()?;
    let len = usize::from(u16::from_le_bytes(comment)) + 22;
    (record.len() == len).then_some(at)
}

fn several_disks() -> Error {
    let message = "the archive is split over several disks; join it first";
    Error::unsupported("zip.disks", message)
}
