//! Object headers: the messages that a group, a dataset or a type consists of.

use super::block::{Block, Fetch as _, File};
use crate::error::{Error, Result};
use crate::io::Reader;
use crate::prelude::*;

/// What a message is about.
pub(super) mod kind {
    pub(in super::super) const DATASPACE: u16 = 0x01;
    pub(in super::super) const LINK_INFO: u16 = 0x02;
    pub(in super::super) const DATATYPE: u16 = 0x03;
    pub(in super::super) const OLD_FILL: u16 = 0x04;
    pub(in super::super) const FILL: u16 = 0x05;
    pub(in super::super) const LINK: u16 = 0x06;
    pub(in super::super) const EXTERNAL_FILES: u16 = 0x07;
    pub(in super::super) const LAYOUT: u16 = 0x08;
    pub(in super::super) const GROUP_INFO: u16 = 0x0a;
    pub(in super::super) const FILTERS: u16 = 0x0b;
    pub(in super::super) const ATTRIBUTE: u16 = 0x0c;
    pub(in super::super) const CONTINUATION: u16 = 0x10;
    pub(in super::super) const SYMBOL_TABLE: u16 = 0x11;
    pub(in super::super) const ATTRIBUTE_INFO: u16 = 0x15;
}

/// Blocks that a header may be continued in.
const MOST_BLOCKS: usize = 1024;
/// Bytes of the longest beginning of a header.
const PREFIX: u64 = 34;
/// The flag of a message that is a reference to another header.
const SHARED: u8 = 2;

/// A message.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) kind: u16,
    flags: u8,
    pub(super) data: Block,
}

impl Message {
    /// Whether the data is a reference to the header that has the message itself.
    pub(super) fn is_shared(&self) -> bool {
        self.flags & SHARED != 0
    }
}

/// The messages of an object, in their order.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) messages: Vec<Message>,
    /// Where it begins in the file.
    pub(super) at: u64,
}

impl Header {
    pub(super) fn read(file: &mut File<'_>, address: u64) -> Result<Self> {
        let left = file.space.end.saturating_sub(address).max(1);
        let front = file.block(address, left.min(PREFIX), "an object header")?;
        let mut reading = Reading {
            messages: Vec::new(),
            later: Vec::new(),
            seen: Vec::new(),
            form: Form::One { left: 0 },
        };
        if front.bytes.starts_with(b"OHDR") {
            reading.second(file, address, &front)?;
        } else {
            reading.first(file, address, &front)?;
        }
        reading.continued(file)?;
        Ok(Self {
            messages: reading.messages,
            at: front.at,
        })
    }

    /// The messages of a kind.
    pub(super) fn of(&self, kind: u16) -> impl Iterator<Item = &Message> {
        self.messages
            .iter()
            .filter(move |message| message.kind == kind)
    }

    /// The first message of a kind; none but types may be shared.
    pub(super) fn one(&self, kind: u16) -> Result<Option<&Message>> {
        match self.of(kind).next() {
            Some(message) if message.is_shared() && kind != kind::DATATYPE => {
                let text =
                    format!("a shared message of type {kind:#x}; only types are read that way");
                Err(Error::unsupported("hdf5.message", text).at(message.data.range()))
            }
            found => Ok(found),
        }
    }

    pub(super) fn has(&self, kind: u16) -> bool {
        self.of(kind).next().is_some()
    }
}

/// How messages are written.
#[derive(Clone, Copy)]
enum Form {
    /// Version 1: so many messages are left.
    One { left: u16 },
    /// Version 2: whether each has the order in which it was made.
    Two { ordered: bool },
}

struct Reading {
    messages: Vec<Message>,
    /// Blocks that are still to be read: address and length.
    later: Vec<(u64, u64)>,
    /// Those that were, as addresses.
    seen: Vec<Range<u64>>,
    form: Form,
}

impl Reading {
    fn first(&mut self, file: &mut File<'_>, address: u64, front: &Block) -> Result<()> {
        let (left, size) = front.parse(|r| {
            let version = r.u8("version of an object header")?;
            if version != 1 {
                let message = format!("not an object header: its version would be {version}");
                return Err(Error::malformed("hdf5.header", message));
            }
            r.skip(1, "reserved")?;
            let count = r.u16("number of messages")?;
            r.skip(4, "reference count")?;
            Ok((count, r.u32("size of an object header")?))
        })?;
        self.form = Form::One { left };
        let start = address.saturating_add(16);
        let block = file.block(start, size.into(), "an object header")?;
        self.seen.push(start..start.saturating_add(size.into()));
        self.messages(&block)
    }

    fn second(&mut self, file: &mut File<'_>, address: u64, front: &Block) -> Result<()> {
        let (flags, prefix, size) = front.parse(|r| {
            r.skip(4, "signature")?;
            let version = r.u8("version of an object header")?;
            if version != 2 {
                let message = format!("object header of version {version}, 2 is known");
                return Err(Error::unsupported("hdf5.header", message));
            }
            let flags = r.u8("flags of an object header")?;
            let times = if flags & 0x20 == 0 { 0 } else { 16 };
            let phases = if flags & 0x10 == 0 { 0 } else { 4 };
            r.skip(times + phases, "times")?;
            let size = sized(r, flags & 3, "size of an object header")?;
            Ok((flags, r.pos(), size))
        })?;
        self.form = Form::Two {
            ordered: flags & 4 != 0,
        };
        let len = size.saturating_add(prefix + 4);
        let whole = file.sealed(address, len, *b"OHDR", "an object header")?;
        self.seen.push(address..address.saturating_add(len));
        let block = whole.part(prefix, size, "an object header")?;
        self.messages(&block)
    }

    fn continued(&mut self, file: &mut File<'_>) -> Result<()> {
        while let Some((address, len)) = self.later.pop() {
            let range = address..address.saturating_add(len);
            let overlaps = |seen: &Range<u64>| seen.start < range.end && range.start < seen.end;
            if self.seen.iter().any(overlaps) || self.seen.len() >= MOST_BLOCKS {
                let message =
                    format!("an object header continues at address {address}, inside itself");
                return Err(Error::malformed("hdf5.header", message));
            }
            self.seen.push(range);
            let what = "the continuation of an object header";
            let block = match self.form {
                Form::One { .. } => file.block(address, len, what)?,
                Form::Two { .. } => {
                    let whole = file.sealed(address, len, *b"OCHK", what)?;
                    whole.part(4, whole.len().saturating_sub(4), what)?
                }
            };
            self.messages(&block)?;
        }
        Ok(())
    }

    fn messages(&mut self, block: &Block) -> Result<()> {
        let form = &mut self.form;
        let (messages, later) = (&mut self.messages, &mut self.later);
        block.parse(|r| {
            loop {
                let header = match form {
                    Form::One { .. } => 8,
                    Form::Two { ordered: false } => 4,
                    Form::Two { ordered: true } => 6,
                };
                if r.remaining() < header {
                    return Ok(());
                }
                let (kind, size, flags);
                match form {
                    Form::One { left: 0 } => return Ok(()),
                    Form::One { left } => {
                        *left -= 1;
                        kind = r.u16("type of a message")?;
                        size = r.u16("size of a message")?;
                        flags = r.u8("flags of a message")?;
                        r.skip(3, "reserved")?;
                    }
                    Form::Two { ordered } => {
                        kind = r.u8("type of a message")?.into();
                        size = r.u16("size of a message")?;
                        flags = r.u8("flags of a message")?;
                        if *ordered {
                            r.skip(2, "order of a message")?;
                        }
                    }
                }
                let at = block.at + r.pos();
                let data = Block {
                    bytes: r.take(size.into(), "a message")?,
                    at,
                };
                match kind {
                    0 => {}
                    kind::CONTINUATION => {
                        let place = data.parse(|r| {
                            Ok((r.u64("address of a block")?, r.u64("length of a block")?))
                        });
                        // Its place is that of the file already.
                        later.push(place.map_err(|error| error.at(r.pos()..r.pos()))?);
                    }
                    _ => messages.push(Message { kind, flags, data }),
                }
            }
        })
    }
}

/// A number of 1, 2, 4 or 8 bytes.
pub(super) fn sized(r: &mut Reader<'_>, log: u8, field: &'static str) -> Result<u64> {
    match log {
        0 => r.u8(field).map(u64::from),
        1 => r.u16(field).map(u64::from),
        2 => r.u32(field).map(u64::from),
        _ => r.u64(field),
    }
}

/// A number of up to 8 bytes.
pub(super) fn number(r: &mut Reader<'_>, width: u64, field: &'static str) -> Result<u64> {
    if !(1..=8).contains(&width) {
        let message = format!("{field} has {width} bytes");
        return Err(Error::malformed("hdf5.size", message));
    }
    let bytes = r.take(width, field)?;
    let mut number = [0; 8];
    for (place, byte) in number.iter_mut().zip(&bytes) {
        *place = *byte;
    }
    Ok(u64::from_le_bytes(number))
}

/// Follows a reference to the header that has a type.
pub(super) fn shared_type(file: &mut File<'_>, reference: &Block) -> Result<Block> {
    let address = reference.parse(|r| {
        let version = r.u8("version of a reference")?;
        let kind = r.u8("type of a reference")?;
        match (version, kind) {
            (1, _) => r.skip(6, "reserved").map(drop)?,
            (2, _) | (3, 2) => {}
            (3, 1) => {
                let message = "a message in the heap of shared messages, which is not read";
                return Err(Error::unsupported("hdf5.message", message));
            }
            _ => {
                let message = format!("a reference of version {version} and type {kind}");
                return Err(Error::unsupported("hdf5.message", message));
            }
        }
        r.u64("address of a type")
    })?;
    let header = Header::read(file, address)?;
    match header.of(kind::DATATYPE).next() {
        Some(message) if !message.is_shared() => Ok(message.data.clone()),
        _ => {
            let message = format!("the header at address {address} has no type");
            Err(reference.wrong("hdf5.message", message))
        }
    }
}
