//! Messages and headers, as they are written.

use super::super::limits::{empty, grid, is_long_text, width};
use super::Place;
use crate::model::{DType, Filter, Lanes, Scalar, Value, ValueKind};
use crate::prelude::*;
use crate::wire::hdf5::lookup3;

/// An address that leads nowhere.
pub(super) const UNDEFINED: u64 = u64::MAX;

/// Kinds of messages.
const DATASPACE: u8 = 1;
const LINK_INFO: u8 = 2;
const DATATYPE: u8 = 3;
const FILL: u8 = 5;
const LINK: u8 = 6;
const LAYOUT: u8 = 8;
const GROUP_INFO: u8 = 10;
const FILTERS: u8 = 11;
const ATTRIBUTE: u8 = 12;

/// The messages of an object header.
#[derive(Default)]
pub(super) struct Messages(Vec<u8>);

impl Messages {
    fn push(&mut self, kind: u8, flags: u8, data: &[u8]) {
        self.0.push(kind);
        // What is longer was not let in.
        let len = u16::try_from(data.len()).unwrap_or(u16::MAX);
        self.0.extend_from_slice(&len.to_le_bytes());
        self.0.push(flags);
        self.0.extend_from_slice(data);
    }

    /// What every group begins with.
    pub(super) fn group() -> Self {
        let mut messages = Self::default();
        let mut info = vec![0, 0];
        info.extend_from_slice(&UNDEFINED.to_le_bytes());
        info.extend_from_slice(&UNDEFINED.to_le_bytes());
        messages.push(LINK_INFO, 0, &info);
        messages.push(GROUP_INFO, 0, &[0, 0]);
        messages
    }

    /// An entry of a group.
    pub(super) fn link(&mut self, name: &str, address: u64) {
        // A name of two bytes' length, in UTF-8.
        let mut link = vec![1, 0x11, 1];
        let len = u16::try_from(name.len()).unwrap_or(u16::MAX);
        link.extend_from_slice(&len.to_le_bytes());
        link.extend_from_slice(name.as_bytes());
        link.extend_from_slice(&address.to_le_bytes());
        self.push(LINK, 0, &link);
    }

    /// A dataset of a type and a shape, with data at an address.
    pub(super) fn dataset(dtype: DType, shape: &[u64], place: &Place) -> Self {
        let mut messages = Self::default();
        messages.push(DATASPACE, 0, &dataspace(shape));
        messages.push(DATATYPE, 1, &datatype(dtype));
        let Some((cut, tree)) = &place.chunks else {
            // Allocated late, written if it is set, which it is not.
            messages.push(FILL, 0, &[3, 0x0a]);
            let mut layout = vec![3, 1];
            layout.extend_from_slice(&place.address.to_le_bytes());
            layout.extend_from_slice(&place.len.to_le_bytes());
            messages.push(LAYOUT, 0, &layout);
            return messages;
        };
        // Allocated chunk by chunk.
        messages.push(FILL, 0, &[3, 0x0b]);
        // The size of an element is one more dimension.
        let rank = u8::try_from(cut.sides.len() + 1).unwrap_or(u8::MAX);
        let mut layout = vec![3, 2, rank];
        layout.extend_from_slice(&cut.root(*tree).to_le_bytes());
        for side in cut.sides.iter().chain([&cut.width]) {
            let side = u32::try_from(*side).unwrap_or(u32::MAX);
            layout.extend_from_slice(&side.to_le_bytes());
        }
        messages.push(LAYOUT, 0, &layout);
        if !cut.filters.is_empty() {
            messages.push(FILTERS, 0, &filters(&cut.filters));
        }
        messages
    }

    /// An attribute; what does not fit a message goes to the heap.
    pub(super) fn attribute(&mut self, name: &str, value: &Value, heap: &mut Heap) {
        if let Some(dtype) = empty(value) {
            let datatype = dtype.map_or_else(|| text(1), datatype);
            return self.attribute_of(name, &datatype, NO_VALUE, &[]);
        }
        let Some((kind, dims)) = grid(value) else {
            return;
        };
        if is_long_text(name, value) {
            let references = heap.put(value);
            return self.attribute_of(name, LONG_TEXT, &dataspace(&dims), &references);
        }
        let width = width(kind, value);
        let datatype = match kind {
            ValueKind::Str | ValueKind::List => text(width),
            ValueKind::Bool => datatype(DType::BOOL),
            ValueKind::U8 => datatype(DType::U8),
            ValueKind::U16 => datatype(DType::U16),
            ValueKind::U32 => datatype(DType::U32),
            ValueKind::U64 => datatype(DType::U64),
            ValueKind::I8 => datatype(DType::I8),
            ValueKind::I16 => datatype(DType::I16),
            ValueKind::I32 => datatype(DType::I32),
            ValueKind::I64 => datatype(DType::I64),
            ValueKind::F32 => datatype(DType::F32),
            ValueKind::F64 => datatype(DType::F64),
        };
        let mut data = Vec::new();
        elements(value, width, &mut data);
        self.attribute_of(name, &datatype, &dataspace(&dims), &data);
    }

    fn attribute_of(&mut self, name: &str, datatype: &[u8], dataspace: &[u8], data: &[u8]) {
        let len = |bytes: usize| u16::try_from(bytes).unwrap_or(u16::MAX).to_le_bytes();
        let mut message = vec![3, 0];
        message.extend_from_slice(&len(name.len() + 1));
        message.extend_from_slice(&len(datatype.len()));
        message.extend_from_slice(&len(dataspace.len()));
        // UTF-8.
        message.push(1);
        message.extend_from_slice(name.as_bytes());
        message.push(0);
        for part in [datatype, dataspace, data] {
            message.extend_from_slice(part);
        }
        self.push(ATTRIBUTE, 0, &message);
    }

    /// Bytes of the header that has them.
    pub(super) fn header_len(&self) -> u64 {
        self.0.len() as u64 + 14
    }

    /// The header that has them.
    pub(super) fn header(self) -> Vec<u8> {
        let mut header = b"OHDR\x02\x02".to_vec();
        let len = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        header.extend_from_slice(&len.to_le_bytes());
        header.extend_from_slice(&self.0);
        seal(&mut header);
        header
    }
}

/// Collections of texts that are too long for their attributes, one for each attribute.
pub(super) struct Heap {
    /// Where the next one will be.
    at: u64,
    bytes: Vec<u8>,
}

impl Heap {
    /// Bytes of a collection, at least: readers refuse shorter ones.
    const LEAST: usize = 4096;
    /// Bytes of what stands in front of a collection, and in front of an object.
    const HEAD: usize = 16;

    pub(super) fn new(at: u64) -> Self {
        let bytes = Vec::new();
        Self { at, bytes }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Adds the texts of a value, and says where they are.
    fn put(&mut self, value: &Value) -> Vec<u8> {
        let mut texts = Vec::new();
        gather(value, &mut texts);
        let (mut objects, mut references) = (Vec::new(), Vec::new());
        for (place, text) in texts.iter().enumerate() {
            // There are fewer than fit 16 bits, because the references fit a message.
            let index = u16::try_from(place + 1).unwrap_or(u16::MAX);
            let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
            if text.is_empty() {
                references.extend_from_slice(&[0; 16]);
                continue;
            }
            references.extend_from_slice(&len.to_le_bytes());
            references.extend_from_slice(&self.at.to_le_bytes());
            references.extend_from_slice(&u32::from(index).to_le_bytes());
            objects.extend_from_slice(&index.to_le_bytes());
            // References to it, which nobody counts.
            objects.extend_from_slice(&[0; 6]);
            objects.extend_from_slice(&u64::from(len).to_le_bytes());
            objects.extend_from_slice(text.as_bytes());
            objects.resize(objects.len().next_multiple_of(8), 0);
        }
        // Object 0 is what is left.
        let len = (Self::HEAD + objects.len() + Self::HEAD).max(Self::LEAST);
        let left = len - Self::HEAD - objects.len();
        let end = self.bytes.len() + len;
        self.bytes.extend_from_slice(b"GCOL\x01\0\0\0");
        self.bytes.extend_from_slice(&(len as u64).to_le_bytes());
        self.bytes.extend_from_slice(&objects);
        self.bytes.extend_from_slice(&[0; 8]);
        self.bytes.extend_from_slice(&(left as u64).to_le_bytes());
        self.bytes.resize(end, 0);
        self.at += len as u64;
        references
    }
}

/// All texts of a value, in order.
fn gather(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Str(text) => texts.push(text.clone()),
        Value::List(list) => list.iter().for_each(|entry| gather(&entry, texts)),
        _ => {}
    }
}

/// The filters of chunks. A chunk may be stored without any of them, but not without its checksum.
fn filters(filters: &[Filter]) -> Vec<u8> {
    let count = u8::try_from(filters.len()).unwrap_or(u8::MAX);
    let mut bytes = vec![2, count];
    for filter in filters {
        let (id, value): (u16, Option<u32>) = match filter {
            Filter::Shuffle { width } => (2, Some(*width)),
            Filter::Deflate { level } => (1, Some(u32::try_from(*level).unwrap_or(6))),
            Filter::Fletcher32 => (3, None),
            // Never asked for.
            Filter::Blosc
            | Filter::Crc32c
            | Filter::Gzip
            | Filter::Lz4
            | Filter::Lz4Blocks
            | Filter::Lzf
            | Filter::Zstd { .. } => continue,
        };
        let has_value = u16::from(value.is_some());
        for number in [id, has_value, has_value] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend(value.into_iter().flat_map(u32::to_le_bytes));
    }
    bytes
}

/// Puts the checksum of everything behind it.
fn seal(bytes: &mut Vec<u8>) {
    let sum = lookup3(bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
}

/// The superblock of a file of so many bytes.
pub(super) fn superblock(root: u64, end: u64) -> Vec<u8> {
    let mut bytes = crate::wire::hdf5::SIGNATURE.to_vec();
    // The version, and addresses and lengths of 8 bytes.
    bytes.extend_from_slice(&[2, 8, 8, 0]);
    for address in [0, UNDEFINED, end, root] {
        bytes.extend_from_slice(&address.to_le_bytes());
    }
    seal(&mut bytes);
    bytes
}

/// The dataspace of what has a type and no value.
const NO_VALUE: &[u8] = &[2, 0, 0, 2];

fn dataspace(dims: &[u64]) -> Vec<u8> {
    // At most 32.
    let rank = u8::try_from(dims.len()).unwrap_or(u8::MAX);
    let mut bytes = vec![2, rank, 0, u8::from(rank > 0)];
    for dim in dims {
        bytes.extend_from_slice(&dim.to_le_bytes());
    }
    bytes
}

/// Text of a fixed length that ends with a zero byte, in UTF-8.
fn text(width: usize) -> Vec<u8> {
    let mut bytes = vec![0x13, 0x10, 0, 0];
    bytes.extend_from_slice(&u32::try_from(width).unwrap_or(u32::MAX).to_le_bytes());
    bytes
}

/// Text of any length, in UTF-8: references to sequences of bytes.
const LONG_TEXT: &[u8] = &[
    0x19, 0x01, 0x01, 0, 16, 0, 0, 0, // And those bytes.
    0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0,
];

fn integer(size: u8, signed: bool) -> Vec<u8> {
    let bits = if signed { 8 } else { 0 };
    vec![0x10, bits, 0, 0, size, 0, 0, 0, 0, 0, size * 8, 0]
}

/// A floating-point number: bytes, bits of the exponent, bits of the mantissa.
fn float(size: u8, exponent: u8, mantissa: u8) -> Vec<u8> {
    let bias = (1u32 << (exponent - 1)) - 1;
    // The first bit of the mantissa is implied; the sign is the highest bit.
    let mut bytes = vec![0x11, 0x20, size * 8 - 1, 0, size, 0, 0, 0];
    bytes.extend_from_slice(&[0, 0, size * 8, 0, mantissa, exponent, 0, mantissa]);
    bytes.extend_from_slice(&bias.to_le_bytes());
    bytes
}

fn scalar(scalar: Scalar) -> Vec<u8> {
    match scalar {
        Scalar::U8 => integer(1, false),
        Scalar::U16 => integer(2, false),
        Scalar::U32 => integer(4, false),
        Scalar::U64 => integer(8, false),
        Scalar::I8 => integer(1, true),
        Scalar::I16 => integer(2, true),
        Scalar::I32 => integer(4, true),
        Scalar::I64 => integer(8, true),
        Scalar::F8E4M3 => float(1, 4, 3),
        Scalar::F8E5M2 => float(1, 5, 2),
        Scalar::F16 => float(2, 5, 10),
        Scalar::BF16 => float(2, 8, 7),
        Scalar::F64 => float(8, 11, 52),
        Scalar::Bool => {
            // Numbers with two names, as h5py has it.
            let mut bytes = vec![0x38, 2, 0, 0, 1, 0, 0, 0];
            bytes.extend_from_slice(&integer(1, true));
            bytes.extend_from_slice(b"FALSE\0TRUE\0\0\x01");
            bytes
        }
        // No other type was let in.
        _ => float(4, 8, 23),
    }
}

fn datatype(dtype: DType) -> Vec<u8> {
    let DType::Number(number, lanes) = dtype else {
        return Vec::new();
    };
    if lanes != Lanes::Complex {
        return scalar(number);
    }
    // A compound of two, as h5py has it.
    let part = scalar(number);
    let size = if number == Scalar::F64 { 16 } else { 8 };
    let mut bytes = vec![0x36, 2, 0, 0, size, 0, 0, 0];
    for (name, offset) in [(b"r\0", 0), (b"i\0", size / 2)] {
        bytes.extend_from_slice(name);
        bytes.push(offset);
        bytes.extend_from_slice(&part);
    }
    bytes
}

/// The data of an attribute.
fn elements(value: &Value, width: usize, out: &mut Vec<u8>) {
    match value {
        Value::Bool(value) => out.push(u8::from(*value)),
        Value::U8(value) => out.push(*value),
        Value::U16(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::U32(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::U64(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::I8(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::I16(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::I32(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::I64(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::F32(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::F64(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::Str(text) => {
            let end = out.len() + width;
            out.extend_from_slice(text.as_bytes());
            out.resize(end, 0);
        }
        Value::List(list) => list.iter().for_each(|entry| elements(&entry, width, out)),
        _ => {}
    }
}
