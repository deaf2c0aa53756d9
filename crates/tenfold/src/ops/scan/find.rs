//! Where pickles are: in archives, arrays and streams, and by themselves.

use bytes::Bytes;

use super::follow::{follow, follow_known, search_all};
use super::packed::{self, Packed, Unpacked};
use super::{Scan, ScannedPickle, tar};
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Limits, Source};
use crate::prelude::*;
use crate::wire::numpy;
use crate::wire::pickle;
use crate::wire::zip::{self, Directory, Member, TORCH_PICKLE, Zip};

/// Archives in archives, at most.
const MAX_DEPTH: usize = 4;
/// Bytes that are looked at to see what something is: a header of tar.
const HEAD: u64 = tar::BLOCK;
/// Bytes that are unpacked, at most.
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
/// Pickles one behind the other, at most.
const MAX_PICKLES: usize = 100_000;

/// Looks for pickles and follows them.
pub(super) struct Finder<'s> {
    pub(super) scan: &'s mut Scan,
    pub(super) limits: &'s Limits,
}

/// Something to look at.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// Its own name.
    name: &'a str,
    /// Its path in the archives around it, or nothing.
    member: &'a str,
    /// How many those are.
    depth: usize,
    /// Whether it is elements of a tensor to whoever loads the archive around it.
    is_storage: bool,
}

impl<'a> Place<'a> {
    /// A file of this name.
    pub(super) fn file(name: &'a str) -> Self {
        Self {
            name,
            member: "",
            depth: 0,
            is_storage: false,
        }
    }

    /// What lies in it under this path.
    fn inner(self, name: &'a str, member: &'a str) -> Self {
        Self {
            name,
            member,
            depth: self.depth + 1,
            is_storage: false,
        }
    }

    fn path(self, name: &str) -> String {
        match self.member {
            "" => name.to_owned(),
            outer => format!("{outer}/{name}"),
        }
    }
}

impl Finder<'_> {
    /// Looks at a file, or a member of one, in every way in which somebody may load it.
    pub(super) fn file(&mut self, source: &dyn Source, place: Place<'_>) -> Result<()> {
        if place.depth > MAX_DEPTH {
            return self.unread(place, "archives in archives, too many to look into");
        }
        let head = source.read(0..source.len().min(HEAD))?;
        let is_zip = head.starts_with(b"PK\x03\x04");
        // As opcodes, those bytes ask the loader for something outside of the pickle: none that has it reads zip archives so.
        if !is_zip {
            self.pickles(source, 0, is_pickle_name(place.name), place)?;
        }
        let closed = packed::closed(&head, place.name);
        if let Some(what) = closed.filter(|_| !place.is_storage) {
            let why = format!("{what}, which is not looked into; unpack it first");
            self.unread(place, &why)?;
        }
        if head.starts_with(numpy::MAGIC) {
            self.array(source, &head, place)?;
        }
        if let Some(packed) = Packed::of(&head) {
            self.packed(source, packed, place)?;
        }
        if tar::is_header(&head) {
            self.tar(source, place)?;
        }
        // An archive can stand behind something else, and some programs find it there.
        if is_zip || !place.is_storage {
            self.zip(source, place, is_zip)?;
        }
        Ok(())
    }

    fn unread(&mut self, place: Place<'_>, why: &str) -> Result<()> {
        self.note(place.member, Error::unsupported("scan.unread", why))
    }

    /// Notes what could not be looked into. A file that cannot be read ends the search.
    fn note(&mut self, member: &str, error: Error) -> Result<()> {
        if error.kind() == ErrorKind::Io {
            return Err(error);
        }
        self.scan.unread.push((member.to_owned(), error));
        Ok(())
    }

    fn zip(&mut self, source: &dyn Source, place: Place<'_>, is_zip: bool) -> Result<()> {
        let limit = self.limits.header_bytes;
        let error = match Zip::open(source, limit) {
            Ok(Some(zip)) => return self.members(source, &zip, place),
            Ok(None) if is_zip || zip::has_end_record(source)? => {
                return self.unread(place, "a zip archive whose end is missing");
            }
            Ok(None) => return Ok(()),
            Err(error) => error,
        };
        // Behind something else, its places can count from its own beginning.
        let shift = Directory::shift(source).ok().flatten();
        if let Some(shift) = shift.filter(|shift| *shift > 0) {
            let range = shift..source.len();
            let behind = Within { source, range };
            if let Ok(Some(zip)) = Zip::open(&behind, limit) {
                return self.members(&behind, &zip, place);
            }
        }
        self.note(place.member, error)
    }

    fn members(&mut self, source: &dyn Source, zip: &Zip, place: Place<'_>) -> Result<()> {
        let mut folders = LookupMap::new();
        for member in &zip.members {
            if let Some((folder, TORCH_PICKLE)) = member.name.rsplit_once('/') {
                folders.insert(folder, ());
            }
        }
        for entry in &zip.members {
            let path = place.path(&entry.name);
            let folder = entry.name.rsplit_once('/').map(|(folder, _)| folder);
            let folder = folder.and_then(|folder| folder.strip_suffix("/data"));
            let inner = Place {
                is_storage: folder.is_some_and(|folder| folders.contains_key(folder)),
                ..place.inner(&entry.name, &path)
            };
            match self.open(source, entry) {
                Ok(bytes) => self.file(&*bytes, inner)?,
                Err(error) => self.note(&path, error)?,
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
        let mut inflate = packed::inflate(source, entry.data.clone());
        // Tensors are deflated too: what begins like nothing that is looked into is not unpacked.
        let limit = MAX_UNPACKED.min(self.limits.header_bytes);
        let mut bytes = vec![0; entry.size.min(HEAD).try_into().unwrap_or(0)];
        inflate.fill(&mut bytes)?;
        let head = Bytes::from(bytes);
        if !may_be_looked_into(&head, entry)? {
            return Ok(Box::new(head));
        }
        if entry.size > limit {
            let message = format!("{} bytes, of which {limit} would be unpacked", entry.size);
            return Err(Error::limit("scan.limit", message));
        }
        let mut bytes = head.to_vec();
        packed::drain(&mut inflate, limit, &mut bytes)?;
        Ok(Box::new(Bytes::from(bytes)))
    }

    /// A file that is compressed as a whole.
    fn packed(&mut self, source: &dyn Source, packed: Packed, place: Place<'_>) -> Result<()> {
        let limit = MAX_UNPACKED.min(self.limits.header_bytes);
        let Unpacked { bytes, fault } = packed.unpack(source, limit);
        let member = place.member;
        self.file(&bytes, place.inner(place.name, member))?;
        match fault {
            // Two bytes are no signature: many tensors begin with them.
            Some(fault) if packed == Packed::Gzip || fault.kind() != ErrorKind::Malformed => {
                self.note(member, fault)
            }
            _ => Ok(()),
        }
    }

    /// An array of Python objects is a pickle behind its header.
    fn array(&mut self, source: &dyn Source, head: &[u8], place: Place<'_>) -> Result<()> {
        let (len, at) = match head.get(6..12) {
            Some(&[1, _, a, b, _, _]) => (u32::from_le_bytes([a, b, 0, 0]), 10),
            Some(&[_, _, a, b, c, d]) => (u32::from_le_bytes([a, b, c, d]), 12),
            _ => return Ok(()),
        };
        let end = at + u64::from(len);
        if end >= source.len() {
            return Ok(());
        }
        let text = source.read(at..end.min(at.saturating_add(self.limits.header_bytes)))?;
        self.pickles(source, end, text.contains(&b'O'), place)
    }

    fn tar(&mut self, source: &dyn Source, place: Place<'_>) -> Result<()> {
        let mut at = 0;
        loop {
            let member = match tar::member(source, at) {
                Ok(Some(member)) => member,
                Ok(None) => return Ok(()),
                Err(error) => return self.note(place.member, error),
            };
            let path = place.path(&member.name);
            let inner = place.inner(&member.name, &path);
            if let Some(why) = member.odd {
                self.unread(inner, why)?;
            }
            let range = member.data.clone();
            self.file(&Within { source, range }, inner)?;
            at = member.next;
        }
    }

    /// Pickles one after the other, from a place on.
    fn pickles(
        &mut self,
        source: &dyn Source,
        start: u64,
        is_named: bool,
        place: Place<'_>,
    ) -> Result<()> {
        let head = source.read(start.min(source.len())..source.len().min(start + HEAD))?;
        let mut begins = head.windows(STREAM.len()).take(16);
        let is_stream = begins.any(|bytes| bytes == STREAM);
        let before = self.scan.pickles.len();
        let mut at = start;
        let mut number = 0;
        while at < source.len() {
            if number == MAX_PICKLES {
                self.unread(place, "more pickles than are looked into")?;
                break;
            }
            let next = source.read(at..source.len().min(at + 2))?;
            let is_sure = begins_pickle(&next) || is_named && number == 0;
            let Some(end) = self.program(source, at, is_sure, place)? else {
                break;
            };
            at = end;
            number += 1;
        }
        // What lies behind the last pickle, where a loader may go on: PyTorch's goes on with tensors.
        let found = self.scan.pickles.len() > before;
        if found && at < source.len() && !(is_stream && number >= IN_STREAM) {
            self.rest(source, at, place)?;
        }
        Ok(())
    }

    /// A pickle that begins at a place, if one does, and where it ends. Any bytes begin with opcodes now and then: one that
    /// does not begin as those of today do counts where it imports something before whoever loads it stops.
    fn program(
        &mut self,
        source: &dyn Source,
        at: u64,
        is_sure: bool,
        place: Place<'_>,
    ) -> Result<Option<u64>> {
        let outline = pickle::outline(source, at)?;
        if !is_sure && outline.imports == 0 && outline.fault.is_some() {
            return Ok(None);
        }
        // Arrays lie between the opcodes of joblib's files, and their loader goes on behind them.
        let end = match outline.fault {
            Some(_) if is_sure => source.len(),
            _ => outline.end,
        };
        let limit = self.limits.header_bytes.min(pickle::MAX_LEN);
        let bytes = source.read(at..end.min(at.saturating_add(limit)))?;
        let (imports, mut fault) = if is_sure {
            follow(&bytes)
        } else {
            follow_known(&bytes)
        };
        let mut ended = (outline.fault.is_none() && (is_sure || fault.is_none())).then_some(end);
        if let Some((why, _)) = outline.fault {
            fault = Some(why);
        } else if outline.end - at > limit {
            let message = format!("a pickle of more than {limit} bytes");
            fault = Some(Error::limit("scan.limit", message));
            ended = None;
        }
        if is_sure || !imports.is_empty() {
            self.push(place.member, at, imports, fault);
        }
        Ok(ended)
    }

    fn rest(&mut self, source: &dyn Source, at: u64, place: Place<'_>) -> Result<()> {
        let end = source.len().min(at.saturating_add(MAX_UNPACKED));
        let imports = search_all(&source.read(at..end)?);
        if !imports.is_empty() {
            let message = "behind the pickle there are bytes that look like more of it";
            let fault = Error::malformed("scan.rest", message);
            self.push(place.member, at, imports, Some(fault));
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

/// Whether a member of an archive can be something that is looked into, by its first bytes and its name.
fn may_be_looked_into(head: &Bytes, entry: &Member) -> Result<bool> {
    let is_known = head.starts_with(b"PK\x03\x04")
        || head.starts_with(numpy::MAGIC)
        || Packed::of(head).is_some()
        || tar::is_header(head)
        || is_pickle_name(&entry.name);
    let outline = pickle::outline(head, 0)?;
    Ok(is_known
        || begins_pickle(head)
        || outline.imports > 0
        || outline
            .fault
            .is_none_or(|(_, needs)| needs > head.len() as u64 && needs <= entry.size))
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
