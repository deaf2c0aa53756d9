//! A store in a zip archive: every file a member, stored as it is.

use crc32fast::Hasher;

use crate::error::{Error, Result};
use crate::format::{FilePlan, Segment, Written};
use crate::model::{DigestKind, Over};
use crate::prelude::*;
use crate::wire::zip::{CentralRecord, LocalHeader, encode_directory};

/// A member to be written.
struct Member {
    header: LocalHeader,
    content: Content,
}

enum Content {
    /// A document: its checksum and its length.
    Known(u32, u64),
    /// The data that is written as the n-th.
    Data(usize),
}

impl Member {
    /// The checksum, the length and where the data begins, of data that was written.
    fn done(&self, written: &[Written]) -> Result<(u32, u64)> {
        let place = match self.content {
            Content::Known(sum, len) => return Ok((sum, len)),
            Content::Data(place) => place,
        };
        let missing = || Error::argument("a member was not written, or without its checksum");
        let done = written.get(place).ok_or_else(missing)?;
        let sum = done.digest.as_ref().map(|digest| digest.value.as_ref());
        let sum = sum
            .and_then(|sum| sum.try_into().ok())
            .map(u32::from_be_bytes);
        let len = done.range.end.saturating_sub(done.range.start);
        Ok((sum.ok_or_else(missing)?, len))
    }
}

/// The segments of an archive with these files, each of which is a document or one piece of data.
pub(super) fn segments(files: Vec<FilePlan>) -> Result<Vec<Segment>> {
    let mut members = Vec::new();
    let mut contents = Vec::new();
    let mut data = 0;
    for file in files {
        let mut segments = file.segments;
        let content = match segments.first_mut() {
            Some(Segment::Bytes(bytes)) => {
                let mut sum = Hasher::new();
                sum.update(bytes);
                Content::Known(sum.finalize(), bytes.len() as u64)
            }
            Some(Segment::Tensor { digest, .. } | Segment::Chunks { digest, .. }) => {
                *digest = Some((DigestKind::Crc32, Over::Stored));
                data += 1;
                Content::Data(data - 1)
            }
            _ => return Err(Error::argument("a member of neither metadata nor data")),
        };
        let header = LocalHeader {
            name: file.name,
            is_deflated: false,
            is_wide: matches!(content, Content::Data(_)),
            padding: 0,
        };
        members.push(Member { header, content });
        contents.push(segments);
    }
    let members = Arc::new(members);
    let mut out = Vec::new();
    for (place, segments) in contents.into_iter().enumerate() {
        let all = members.clone();
        let len = all.get(place).map_or(0, |member| member.header.len());
        let make = move |written: &[Written], _: u64| {
            let member = all.get(place);
            let member = member.ok_or_else(|| Error::argument("a member that is not there"))?;
            let (sum, len) = member.done(written)?;
            Ok(member.header.encode(sum, len, len))
        };
        out.push(Segment::Late {
            len,
            make: Box::new(make),
        });
        out.extend(segments);
    }
    out.push(Segment::Computed(Box::new(move |written, at| {
        directory(&members, written, at)
    })));
    Ok(out)
}

fn directory(members: &[Member], written: &[Written], at: u64) -> Result<Vec<u8>> {
    let mut records = Vec::new();
    let mut local_at = 0u64;
    for member in members {
        let (crc32, size) = member.done(written)?;
        records.push(CentralRecord {
            header: &member.header,
            crc32,
            compressed: size,
            size,
            local_at,
        });
        local_at = local_at
            .saturating_add(member.header.len())
            .saturating_add(size);
    }
    Ok(encode_directory(records.into_iter(), at))
}
