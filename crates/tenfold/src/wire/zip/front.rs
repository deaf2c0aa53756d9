//! The members of an archive that lost its directory, by the headers in front of them.

use bytes::Bytes;

use super::directory::{Entry, is_directory};
use super::{DEFLATED, DESCRIPTOR, DESCRIPTOR_FOLLOWS, LOCAL, Local, Member, STORED, UTF8, name};
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Reader, Source};
use crate::prelude::*;

/// What the beginning of an archive holds.
pub(crate) struct Front {
    /// Members that are there to their last byte.
    pub(crate) whole: Vec<Member>,
    /// The one that the file ends in, whose data reaches past it.
    pub(crate) cut: Option<Member>,
    /// Behind the last member there is something of the directory: no member is missing.
    pub(crate) at_directory: bool,
    /// Where the members end that are known, and what is not known begins.
    pub(crate) end: u64,
}

impl Front {
    /// Goes from member to member as far as their headers say how long they are. `limit` is on the bytes of the headers.
    pub(crate) fn read(source: &dyn Source, limit: u64) -> Result<Self> {
        Self::read_with(source, limit, &mut |_, _| Ok(None))
    }

    /// The same; of a stored member whose header does not say how long it is, `len_of` may know, by its name and the place
    /// of its data.
    pub(crate) fn read_with(source: &dyn Source, limit: u64, len_of: LenOf<'_>) -> Result<Self> {
        let mut front = Self {
            whole: Vec::new(),
            cut: None,
            at_directory: false,
            end: 0,
        };
        let mut names = LookupMap::new();
        let mut headers = 0u64;
        let mut r = Reader::new(source, "zip.truncated");
        while let Some(member) = next(&mut r, &mut front.at_directory, len_of)? {
            headers = headers.saturating_add(member.header.end - member.header.start);
            if headers > limit {
                let message =
                    format!("the members' headers go on past {limit} bytes, the limit for headers");
                let error = Error::limit("zip.limit", message).at(member.header);
                return Err(error.raised_by("header_bytes", None));
            }
            if names.insert(member.name.clone(), ()).is_some() {
                let message = format!("two members are named {:?}", member.name);
                return Err(Error::malformed("zip.duplicate", message).at(member.header));
            }
            if member.data.end > source.len() {
                front.end = source.len();
                front.cut = Some(member);
                break;
            }
            front.end = member.descriptor.as_ref().unwrap_or(&member.data).end;
            r.skip_to(front.end, "a member's data")?;
            front.whole.push(member);
        }
        Ok(front)
    }
}

/// Says how long a stored member is, by its name and the place of its data.
pub(crate) type LenOf<'l> = &'l mut dyn FnMut(&str, u64) -> Result<Option<u64>>;

/// The member that comes next; `None` where there is none, or where it cannot be told how long it is.
fn next(r: &mut Reader<'_>, at_directory: &mut bool, len_of: LenOf<'_>) -> Result<Option<Member>> {
    let at = r.pos();
    let signature = match r.clone().array::<4>("signature") {
        Ok(signature) => signature,
        Err(error) => return cut_short(error),
    };
    *at_directory = is_directory(signature);
    if signature != LOCAL {
        return Ok(None);
    }
    let local = match Local::parse(r) {
        Ok(local) => local,
        Err(error) => return cut_short(error),
    };
    let header = at..r.pos();
    let about = |error: Error| error.at(header.clone());
    let name = name::decode(&local.name, local.flags & UTF8 != 0).map_err(about)?;
    let is_streamed = local.flags & DESCRIPTOR_FOLLOWS != 0;
    let sizes = match local.sizes {
        Some(sizes) if !is_streamed => Some(sizes),
        _ if is_streamed && local.method == STORED => {
            len_of(&name, header.end)?.map(|len| (len, len))
        }
        _ => None,
    };
    let Some((compressed, size)) = sizes else {
        return Ok(None);
    };
    let entry = Entry {
        name,
        raw_name: local.name,
        flags: local.flags,
        method: local.method,
        crc32: local.crc32,
        compressed,
        size,
        local_at: at,
    };
    entry.check(0, local.needed).map_err(about)?;
    let Some(end) = header.end.checked_add(compressed) else {
        return Ok(None);
    };
    let mut member = Member {
        name: entry.name,
        is_deflated: entry.method == DEFLATED,
        crc32: entry.crc32,
        size,
        data: header.end..end,
        header,
        descriptor: None,
        beginning: Bytes::new(),
    };
    if is_streamed && !describe_behind(r.clone(), &mut member)? {
        return Ok(None);
    }
    Ok(Some(member))
}

/// Takes the checksum from after a member; `false` where something else stands there than what repeats its length. One
/// that is cut off has no checksum.
fn describe_behind(mut r: Reader<'_>, member: &mut Member) -> Result<bool> {
    member.crc32 = 0;
    let end = member.data.end;
    if end > r.pos().saturating_add(r.remaining()) {
        return Ok(true);
    }
    r.skip_to(end, "a member's data")?;
    let mut parse = || {
        let is_one = r.array::<4>("signature")? == DESCRIPTOR;
        let crc32 = r.u32("checksum")?;
        let mut ahead = r.clone();
        if ahead.u64("sizes")? == member.size && ahead.u64("sizes")? == member.size {
            return Ok((is_one, crc32, ahead.pos()));
        }
        let sizes = [r.u32("size")?, r.u32("size")?];
        let is_same = sizes.iter().all(|size| u64::from(*size) == member.size);
        Ok((is_one && is_same, crc32, r.pos()))
    };
    match parse() {
        Ok((true, crc32, behind)) => {
            member.crc32 = crc32;
            member.descriptor = Some(end..behind);
            Ok(true)
        }
        Ok((false, ..)) => Ok(false),
        // The file ends within it.
        Err(error) => cut_short(error).map(|_| true),
    }
}

/// The file ends within a header; a disk that fails is not an end.
fn cut_short(error: Error) -> Result<Option<Member>> {
    match error.kind() {
        ErrorKind::Malformed => Ok(None),
        _ => Err(error),
    }
}
