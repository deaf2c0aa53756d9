//! Where pickles are: in archives, arrays and streams, and by themselves.

use bytes::Bytes;

use super::follow::{follow, is_plausible, search_all};
use super::{Scan, ScannedPickle};
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Limits, Source};
use crate::model::SourceId;
use crate::prelude::*;
use crate::transform::{Inflate, Input};
use crate::wire::numpy;
use crate::wire::pickle;
use crate::wire::zip::{Directory, Member, Zip};

/// Archives in archives, at most.
const MAX_DEPTH: usize = 4;
/// Bytes that are looked at to see what something is.
const HEAD: u64 = 512;
/// Bytes of a compressed member that are unpacked, at most.
const MAX_UNPACKED: u64 = 256 << 20;
/// Names of files that are pickles, whatever they begin with.
const EXTENSIONS: [&str; 10] = [
    "pkl",
    "pickle",
    "p",
    "pck",
    "pcl",
    "dill",
    "dat",
    "joblib",
    "debug_pkl",
    "data",
];
/// The first pickle of PyTorch's streams, without its protocol.
const STREAM: &[u8] = b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e";
/// Pickles of such a stream, before its storages.
const IN_STREAM: usize = 5;

/// What cannot be looked into here.
const CLOSED: &[(&[u8], &str)] = &[
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ\0", "an xz file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"\x04\x22\x4d\x18", "an lz4 file"),
    (b"Rar!", "a RAR archive"),
];

/// Looks for pickles and follows them.
pub(super) struct Finder<'s> {
    pub(super) scan: &'s mut Scan,
    pub(super) limits: &'s Limits,
}

impl Finder<'_> {
    /// Looks at a file, or a member of one, whose path in the archives around it is `member`.
    pub(super) fn file(
        &mut self,
        source: &dyn Source,
        name: &str,
        member: &str,
        depth: usize,
    ) -> Result<()> {
        let head = source.read(0..source.len().min(HEAD))?;
        if depth > MAX_DEPTH {
            return self.unread(member, "archives in archives, too many to look into");
        }
        if let Some((_, what)) = CLOSED.iter().find(|(magic, _)| head.starts_with(magic)) {
            return self.unread(
                member,
                &format!("{what}, which is not looked into; unpack it first"),
            );
        }
        if head.starts_with(numpy::MAGIC) {
            return self.array(source, &head, member);
        }
        if let Some(skip) = packed(&head) {
            return self.packed(source, skip, name, member, depth);
        }
        if head.get(257..262) == Some(b"ustar") {
            return self.tar(source, member, depth);
        }
        let is_zip = head.starts_with(b"PK\x03\x04");
        if !is_zip {
            self.pickles(source, 0, name, member)?;
        }
        // An archive can stand behind something else, and some programs find it there.
        if is_zip || has_end(source)? {
            self.zip(source, member, depth, is_zip)?;
        }
        Ok(())
    }

    fn unread(&mut self, member: &str, why: &str) -> Result<()> {
        let error = Error::unsupported("scan.unread", why);
        self.scan.unread.push((member.to_owned(), error));
        Ok(())
    }

    fn zip(&mut self, source: &dyn Source, member: &str, depth: usize, is_zip: bool) -> Result<()> {
        let zip = match Zip::open(source, self.limits.header_bytes) {
            Ok(Some(zip)) => zip,
            Ok(None) if !is_zip => return Ok(()),
            Ok(None) => return self.unread(member, "a zip archive whose end is missing"),
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            Err(error) => {
                self.scan.unread.push((member.to_owned(), error));
                return Ok(());
            }
        };
        for entry in &zip.members {
            let path = match member {
                "" => entry.name.clone(),
                outer => format!("{outer}/{}", entry.name),
            };
            match self.open(source, entry) {
                Ok(inner) => self.file(&*inner, &entry.name, &path, depth + 1)?,
                Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                Err(error) => self.scan.unread.push((path, error)),
            }
        }
        Ok(())
    }

    /// The bytes of a member: in place, or unpacked.
    fn open<'a>(&self, source: &'a dyn Source, entry: &Member) -> Result<Box<dyn Source + 'a>> {
        if !entry.is_deflated {
            let range = entry.data.clone();
            return Ok(Box::new(Within { source, range }));
        }
        let mut inflate = inflate(source, entry.data.clone());
        // Tensors are deflated too: what does not begin like a pickle is not unpacked.
        let limit = MAX_UNPACKED.min(self.limits.header_bytes);
        let mut head = vec![0; entry.size.min(HEAD).try_into().unwrap_or(0)];
        inflate.fill(&mut head)?;
        if !may_hold_pickle(&head, &entry.name) {
            return Ok(Box::new(Bytes::from(head)));
        }
        if entry.size > limit {
            let message = format!("{} bytes, of which {limit} would be unpacked", entry.size);
            return Err(Error::limit("scan.limit", message));
        }
        Ok(Box::new(unpack(inflate, head, entry.size)?))
    }

    /// A file that is compressed as a whole: joblib's, or gzip.
    fn packed(
        &mut self,
        source: &dyn Source,
        skip: u64,
        name: &str,
        member: &str,
        depth: usize,
    ) -> Result<()> {
        let limit = MAX_UNPACKED.min(self.limits.header_bytes);
        let inflate = inflate(source, skip.min(source.len())..source.len());
        match unpack(inflate, Vec::new(), limit) {
            Ok(bytes) if bytes.len() as u64 == limit => {
                self.unread(member, "compressed, and longer than is unpacked")
            }
            Ok(bytes) => self.file(&bytes, name, member, depth + 1),
            Err(error) if error.kind() == ErrorKind::Io => Err(error),
            // Bytes that only begin like that.
            Err(_) => self.pickles(source, 0, name, member),
        }
    }

    /// An array of Python objects is a pickle behind its header.
    fn array(&mut self, source: &dyn Source, head: &[u8], member: &str) -> Result<()> {
        let (len, at) = match head.get(6..12) {
            Some(&[1, _, a, b, _, _]) => (u32::from_le_bytes([a, b, 0, 0]), 10),
            Some(&[_, _, a, b, c, d]) => (u32::from_le_bytes([a, b, c, d]), 12),
            _ => return Ok(()),
        };
        let end = at + u64::from(len);
        let text = source.read(at.min(source.len())..end.min(source.len()).min(1 << 20))?;
        if !text.contains(&b'O') || end >= source.len() {
            return Ok(());
        }
        self.pickles(source, end, "object.pkl", member)
    }

    fn tar(&mut self, source: &dyn Source, member: &str, depth: usize) -> Result<()> {
        const BLOCK: u64 = 512;
        let mut at = 0u64;
        while let Some(end) = at.checked_add(BLOCK).filter(|end| *end <= source.len()) {
            let header = source.read(at..end)?;
            let text = |range: Range<usize>| {
                let bytes = header.get(range).unwrap_or_default();
                let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
                String::from_utf8_lossy(bytes).trim().to_owned()
            };
            let name = text(0..100);
            if name.is_empty() {
                break;
            }
            let Ok(size) = u64::from_str_radix(&text(124..136), 8) else {
                return self.unread(member, "a tar archive with a size that is no number");
            };
            let Some(next) = end.checked_add(size).filter(|next| *next <= source.len()) else {
                return self.unread(member, "a tar archive that ends within a member");
            };
            let path = match member {
                "" => name.clone(),
                outer => format!("{outer}/{name}"),
            };
            let inner = Within {
                source,
                range: end..next,
            };
            self.file(&inner, &name, &path, depth + 1)?;
            at = next.next_multiple_of(BLOCK);
        }
        Ok(())
    }

    /// Pickles one after the other, from a place on.
    fn pickles(&mut self, source: &dyn Source, start: u64, name: &str, member: &str) -> Result<()> {
        let head = source.read(start.min(source.len())..source.len().min(start + HEAD))?;
        let is_named = is_pickle_name(name);
        if !may_hold_pickle(&head, name) {
            return Ok(());
        }
        let is_stream = head
            .windows(STREAM.len())
            .take(16)
            .any(|bytes| bytes == STREAM);
        let mut at = start;
        for number in 0.. {
            if at >= source.len() || is_stream && number == IN_STREAM {
                break;
            }
            if number > 0 && !is_stream {
                let next = source.read(at..source.len().min(at + 2))?;
                if !begins_pickle(&next) {
                    self.rest(source, at, member)?;
                    break;
                }
            }
            let limit = self.limits.header_bytes.min(pickle::MAX_LEN);
            match pickle::read_next(source, at, limit) {
                Ok(bytes) => {
                    let (mut imports, fault) = follow(&bytes);
                    // Anything can be a pickle of protocol 0 that does nothing, or imports what is no name.
                    let is_sure = number > 0 || begins_pickle(&head) || is_named;
                    if !is_sure {
                        imports.retain(is_plausible);
                    }
                    if is_sure || !imports.is_empty() {
                        self.push(member, at, imports, fault);
                    }
                    at += bytes.len() as u64;
                }
                Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                Err(error) => {
                    // Not a pickle, or one with something between its opcodes.
                    let bytes = source.read(at..source.len().min(at.saturating_add(limit)))?;
                    let is_sure = is_named || begins_pickle(&head);
                    let (mut imports, _) = follow(&bytes);
                    if !is_sure {
                        imports.retain(is_plausible);
                    }
                    if is_sure || !imports.is_empty() {
                        self.push(member, at, imports, Some(error));
                    }
                    break;
                }
            }
        }
        Ok(())
    }

    /// What lies behind the last pickle, where a loader may go on.
    fn rest(&mut self, source: &dyn Source, at: u64, member: &str) -> Result<()> {
        let end = source.len().min(at.saturating_add(MAX_UNPACKED));
        let imports = search_all(&source.read(at..end)?);
        if !imports.is_empty() {
            let message = "behind the pickle there are bytes that look like more of it";
            let fault = Error::malformed("scan.rest", message);
            self.push(member, at, imports, Some(fault));
        }
        Ok(())
    }

    fn push(
        &mut self,
        member: &str,
        at: u64,
        imports: Vec<super::ScannedImport>,
        fault: Option<Error>,
    ) {
        self.scan.pickles.push(ScannedPickle {
            member: member.to_owned(),
            at,
            imports,
            fault,
        });
    }
}

/// A part of a source.
#[derive(Debug)]
struct Within<'a> {
    source: &'a dyn Source,
    range: Range<u64>,
}

impl Source for Within<'_> {
    fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let start = self.range.start.saturating_add(range.start);
        let end = self.range.start.saturating_add(range.end);
        self.source.read(start..end.min(self.range.end))
    }

    fn window(&self) -> u64 {
        self.source.window()
    }
}

fn inflate(source: &dyn Source, range: Range<u64>) -> Inflate<'_> {
    Inflate::new(Input::Source {
        id: SourceId::MAIN,
        source,
        range,
        control: None,
    })
}

/// Everything that comes out, up to a limit, behind what came out before.
fn unpack(mut inflate: Inflate<'_>, mut bytes: Vec<u8>, limit: u64) -> Result<Bytes> {
    const PIECE: usize = 64 << 10;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    while bytes.len() < limit {
        let before = bytes.len();
        bytes.resize(limit.min(before.saturating_add(PIECE)), 0);
        let room = bytes.get_mut(before..).unwrap_or_default();
        let got = inflate.read(room)?;
        bytes.truncate(before + got);
        if got == 0 {
            break;
        }
    }
    Ok(bytes.into())
}

/// Where deflated data begins in a file that is compressed as a whole: zlib's, as joblib writes, or gzip's.
fn packed(head: &[u8]) -> Option<u64> {
    match head {
        [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] => Some(2),
        // Without a name or other fields.
        [0x1f, 0x8b, 8, 0, ..] => Some(10),
        [0x1f, 0x8b, 8, 8, ..] => {
            let name = head.get(10..)?.iter().position(|byte| *byte == 0)?;
            Some(11 + name as u64)
        }
        _ => None,
    }
}

/// Whether a file ends like a zip archive.
fn has_end(source: &dyn Source) -> Result<bool> {
    match Directory::scan(source, &mut |_, _| core::ops::ControlFlow::Break(())) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Io => Err(error),
        Err(_) => Ok(false),
    }
}

fn is_pickle_name(name: &str) -> bool {
    let end = name.rsplit_once('.').map(|(_, end)| end);
    end.is_some_and(|end| {
        EXTENSIONS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(end))
    })
}

/// PROTO, as every pickle since Python 2.3 begins that asks for it.
fn begins_pickle(head: &[u8]) -> bool {
    matches!(head, [0x80, 0..=5, ..])
}

/// Whether these bytes, or this name, can be those of a pickle of any protocol.
fn may_hold_pickle(head: &[u8], name: &str) -> bool {
    const FIRST: &[u8] = b"\x80(.)]}cilINSTUVXFGJKLMP\x8c\x8d\x8f\x93\x95";
    let is_archive = head.starts_with(b"PK\x03\x04") || head.starts_with(numpy::MAGIC);
    is_pickle_name(name) || is_archive || head.first().is_some_and(|first| FIRST.contains(first))
}
