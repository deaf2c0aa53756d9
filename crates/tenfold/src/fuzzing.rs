//! Doors to the decoders that formats share, for fuzzing and nothing else: not part of the interface.
//!
//! A door decodes, and where that succeeds it encodes again and looks whether the same comes back. What it returns is the
//! contradiction that it found.

#![allow(clippy::missing_errors_doc)]

use crate::prelude::*;

/// What contradicts itself, in words.
pub type Contradiction = String;

/// JSON of any kind: what was read and written again reads as the same value.
#[cfg(any(feature = "mag", feature = "safetensors"))]
pub fn json(bytes: &[u8]) -> Result<(), Contradiction> {
    use crate::wire::json::{Json, Rules, encode};

    static RULES: Rules = Rules {
        syntax: "json.syntax",
        text: "json.text",
        depth: "json.depth",
    };
    let read = |bytes: &[u8]| {
        let mut json = Json::new(bytes, 0, 128, &RULES)?;
        let value = json.value(&mut |_, _| Ok(()))?;
        json.end()?;
        Ok::<_, crate::Error>(value)
    };
    let skipped = Json::new(bytes, 0, 128, &RULES).and_then(|mut json| {
        json.skip()?;
        json.end()
    });
    let value = read(bytes);
    if skipped.is_ok() != value.is_ok() {
        return Err(format!("skipped {skipped:?}, read {value:?}"));
    }
    let Ok(value) = value else {
        return Ok(());
    };
    let mut text = String::new();
    encode(&value, &mut text).map_err(|error| format!("{value:?} is not encoded: {error}"))?;
    let again = read(text.as_bytes());
    // As text, because NaN does not equal itself.
    match again.as_ref().map(|again| format!("{again:?}")) {
        Ok(again) if again == format!("{value:?}") => Ok(()),
        _ => Err(format!("{value:?} became {text} became {again:?}")),
    }
}

/// CBOR: the deterministic encoding comes back byte by byte, any other one settles after it was encoded once.
#[cfg(any(feature = "burnpack", feature = "ztensor"))]
pub fn cbor(bytes: &[u8]) -> Result<(), Contradiction> {
    use crate::model::Value;
    use crate::wire::cbor::{Decoder, Encoder, Rules};

    static RULES: Rules = Rules {
        syntax: "cbor.syntax",
        depth: "cbor.depth",
        form: "cbor.form",
        duplicate: "cbor.duplicate",
        schema: "cbor.schema",
    };
    let read = |bytes: &[u8], deterministic: bool| {
        let mut decoder = Decoder::new(bytes, 0, &RULES, 64);
        if deterministic {
            decoder = decoder.deterministic();
        }
        let value = decoder.value()?;
        decoder.finish()?;
        Ok::<_, crate::Error>(value)
    };
    let write = |value: &Value, deterministic: bool| {
        let mut encoder = if deterministic {
            Encoder::deterministic()
        } else {
            Encoder::new()
        };
        encoder.value(value);
        encoder.into_bytes()
    };
    if let Ok(value) = read(bytes, true) {
        let again = write(&value, true);
        if again != bytes {
            return Err(format!("{bytes:02x?} is {value:?} is {again:02x?}"));
        }
    }
    if let Ok(value) = read(bytes, false) {
        let once = write(&value, false);
        let again = read(&once, false)
            .map_err(|error| format!("{value:?} became {once:02x?}, refused: {error}"))?;
        let twice = write(&again, false);
        if once != twice {
            return Err(format!("{once:02x?} became {twice:02x?}"));
        }
    }
    Ok(())
}

/// Protobuf: fields follow each other without a gap, what is in them lies in them, and in their shortest form they are the
/// same fields. Whatever has bytes in it may be a message, and is entered.
#[cfg(feature = "onnx")]
pub fn protobuf(bytes: &[u8]) -> Result<(), Contradiction> {
    use crate::wire::protobuf::{Encoder, Rules, Value, Walker};
    use bytes::Bytes;

    const RULES: Rules = Rules {
        truncated: "protobuf.truncated",
        length: "protobuf.length",
        varint: "protobuf.varint",
        tag: "protobuf.tag",
        utf8: "protobuf.utf8",
    };
    /// The fields with values that are encoded here, up to the end or the first mistake.
    fn walk(all: &Bytes, depth: usize) -> Result<Vec<(u32, Value)>, Contradiction> {
        let len = all.len() as u64;
        let mut walker = Walker::over(all, 0..len, RULES);
        let mut fields = Vec::new();
        let mut end = 0;
        while let Ok(Some(field)) = walker.next(len) {
            if field.at.start != end || field.at.end > len {
                return Err(format!("{field:?} behind byte {end} of {len}"));
            }
            end = field.at.end;
            if let Value::Len(range) = &field.value {
                if range.end != end || range.start <= field.at.start {
                    return Err(format!("{field:?} is not in itself"));
                }
                let mut inside = walker.clone();
                let packed = inside.numbers(&field.value, |_| Ok(()));
                let text = walker.clone().text(range, "text");
                if packed.is_err() && text.is_err() && walker.parsed() > len {
                    return Err(format!("{} of {len} bytes were looked at", walker.parsed()));
                }
                let (from, to) = (as_place(range.start), as_place(range.end));
                if depth < 8 {
                    walk(&all.slice(from..to), depth + 1)?;
                }
            }
            if matches!(field.value, Value::Varint(_) | Value::Len(_)) {
                fields.push((field.number, field.value));
            }
        }
        Ok(fields)
    }
    fn as_place(at: u64) -> usize {
        usize::try_from(at).unwrap_or(usize::MAX)
    }
    let all = Bytes::copy_from_slice(bytes);
    let fields = walk(&all, 0)?;
    let mut encoder = Encoder::new();
    for (number, value) in &fields {
        match value {
            Value::Varint(value) => encoder.number(*number, *value),
            Value::Len(range) => {
                let inside = all.slice(as_place(range.start)..as_place(range.end));
                encoder.bytes(*number, &inside)
            }
            _ => &mut encoder,
        };
    }
    let short = Bytes::from(encoder.finish());
    let again = walk(&short, 0)?;
    let same = |((a, x), (b, y)): (&(u32, Value), &(u32, Value))| {
        let inside = |from: &Bytes, value: &Value| match value {
            Value::Len(range) => Some(from.slice(as_place(range.start)..as_place(range.end))),
            _ => None,
        };
        let (p, q) = (inside(&all, x), inside(&short, y));
        a == b && (p.is_some() && p == q || x == y)
    };
    if fields.len() != again.len() || !fields.iter().zip(&again).all(same) {
        return Err(format!("{fields:?} became {again:?}"));
    }
    Ok(())
}

/// MessagePack: an object is of one kind, and in its shortest form it is the same object.
#[cfg(feature = "primitiv")]
pub fn msgpack(bytes: &[u8]) -> Result<(), Contradiction> {
    use crate::wire::msgpack::{Decoder, Encoder, Rules};
    use bytes::Bytes;

    const RULES: Rules = Rules {
        truncated: "msgpack.truncated",
        kind: "msgpack.kind",
        utf8: "msgpack.utf8",
    };
    #[derive(Debug, PartialEq)]
    enum Object {
        U32(u32),
        F32(u32),
        Array(u32),
        Map(u32),
        Bin(u32),
        Text(String),
    }
    let all = Bytes::copy_from_slice(bytes);
    let try_all = |from: &Bytes| {
        let mut found = Vec::new();
        let mut look = |read: &dyn Fn(&mut Decoder<'_>) -> crate::Result<Object>| {
            let mut decoder = Decoder::new(from, RULES);
            if let Ok(object) = read(&mut decoder) {
                found.push((object, decoder.pos()));
            }
        };
        look(&|d| d.u32("field").map(Object::U32));
        look(&|d| d.f32("field").map(|value| Object::F32(value.to_bits())));
        look(&|d| d.array("field").map(Object::Array));
        look(&|d| d.map("field").map(Object::Map));
        look(&|d| {
            let len = d.bin("field")?;
            d.skip(len, "field").map(|_| Object::Bin(len))
        });
        look(&|d| d.text(u64::MAX, "field").map(Object::Text));
        found
    };
    // Six readings of each object and the errors of five of them take their time: more objects show nothing new.
    const MOST: usize = 1024;
    let mut rest = all;
    for _ in 0..MOST {
        let mut found = try_all(&rest);
        if found.len() > 1 {
            return Err(format!("several objects in one: {found:?}"));
        }
        let Some((object, len)) = found.pop() else {
            return Ok(());
        };
        let mut encoder = Encoder::new();
        let written = match &object {
            Object::U32(value) => Ok(encoder.u32(*value)),
            Object::F32(value) => Ok(encoder.f32(f32::from_bits(*value))),
            Object::Array(len) => encoder.array(*len as usize),
            Object::Map(len) => encoder.map(*len as usize),
            Object::Bin(len) => encoder.bin((*len).into()),
            Object::Text(text) => encoder.text(text),
        };
        written.map_err(|error| format!("{object:?} is not encoded: {error}"))?;
        let mut short = encoder.take();
        if let Object::Bin(len) = object {
            short.resize(short.len() + len as usize, 0);
        }
        let again = try_all(&Bytes::from(short));
        if again.first().map(|(object, _)| object) != Some(&object) {
            return Err(format!("{object:?} became {again:?}"));
        }
        let next = usize::try_from(len).unwrap_or(usize::MAX);
        rest = rest.slice(next.min(rest.len())..);
    }
    Ok(())
}

/// The header of a NumPy array: one that is written for what was read reads as the same array.
#[cfg(any(feature = "npy", feature = "npz"))]
pub fn numpy(bytes: &[u8]) -> Result<(), Contradiction> {
    use crate::model::{DType, Layout};
    use crate::wire::numpy::{Header, Place, encode};
    use bytes::Bytes;

    let read = |bytes: &[u8], assumed| {
        let mut rest = Bytes::copy_from_slice(bytes);
        let mut take = |n: u64, field: &'static str| match usize::try_from(n) {
            Ok(n) if n <= rest.len() => Ok(rest.split_to(n)),
            _ => Err(crate::Error::malformed("truncated", field)),
        };
        Header::parse(&mut take, &Place::At(0), assumed, 64)
    };
    for assumed in [None, Some(DType::BF16), Some(DType::F8_E4M3)] {
        let Ok(header) = read(bytes, assumed) else {
            continue;
        };
        if header.len > bytes.len() as u64 {
            return Err(format!("{header:?} is longer than its bytes"));
        }
        // What the user said that bytes are may have no name.
        let Some(written) = encode(header.dtype, &header.shape) else {
            continue;
        };
        let again = read(&written, None);
        let same = again.as_ref().is_ok_and(|again| {
            again.dtype == header.dtype
                && again.shape == header.shape
                && again.data_len == header.data_len
                && again.layout == Layout::RowMajor
                && again.len == written.len() as u64
        });
        if !same {
            return Err(format!("{header:?} became {again:?}"));
        }
    }
    Ok(())
}

/// Zip archives: members lie one after the other in the file, and an archive that is written of them has the same.
#[cfg(feature = "npz")]
pub fn zip(bytes: &[u8]) -> Result<(), Contradiction> {
    use crate::wire::zip::{Directory, Member, Zip};
    use bytes::Bytes;
    use core::ops::ControlFlow;

    const LIMIT: u64 = 1 << 20;
    let source = Bytes::copy_from_slice(bytes);
    let Ok(Some(zip)) = Zip::open(&source, LIMIT) else {
        return Ok(());
    };
    let mut names = Vec::new();
    let scanned = Directory::scan(&source, &mut |name, _| {
        names.push(name.to_owned());
        ControlFlow::Continue(())
    });
    if scanned.is_err()
        || !names
            .iter()
            .eq(zip.members.iter().map(|member| &member.name))
    {
        return Err(format!(
            "scanned {scanned:?} {names:?}, read {:?}",
            zip.members
        ));
    }
    let mut order: Vec<&Member> = zip.members.iter().collect();
    order.sort_by_key(|member| member.header.start);
    let mut end = 0;
    for member in order {
        let behind = member.descriptor.as_ref().unwrap_or(&member.data);
        let parts = [&member.header, &member.data, behind];
        if member.header.start < end
            || member.header.end != member.data.start
            || parts
                .iter()
                .any(|part| part.start > part.end || part.end > zip.tail.start)
        {
            return Err(format!(
                "{member:?} is not behind {end} and before {:?}",
                zip.tail
            ));
        }
        end = behind.end;
    }
    zip_again(bytes, &zip)
}

#[cfg(feature = "npz")]
fn zip_again(bytes: &[u8], zip: &crate::wire::zip::Zip) -> Result<(), Contradiction> {
    use crate::wire::zip::{CentralRecord, LocalHeader, Zip, encode_directory, no_end};
    use bytes::Bytes;

    let content = |bytes: &[u8], range: &Range<u64>| {
        let place = usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?;
        bytes.get(place).map(<[u8]>::to_vec)
    };
    let mut out = Vec::new();
    let mut headers = Vec::new();
    for member in &zip.members {
        // A name in the characters of the first PCs can be too long in others.
        if member.name.len() > 65_535 {
            return Ok(());
        }
        let at = out.len() as u64;
        let is_wide = member.size >= u32::MAX.into();
        let mut header = LocalHeader::aligned(member.name.clone(), at, is_wide, 64);
        header.is_deflated = member.is_deflated;
        let data = content(bytes, &member.data).ok_or("a member outside of the file")?;
        out.extend_from_slice(&header.encode(member.crc32, data.len() as u64, member.size));
        out.extend_from_slice(&data);
        headers.push((header, at, data.len() as u64));
    }
    let records = zip.members.iter().zip(&headers);
    let records = records.map(|(member, (header, local_at, compressed))| CentralRecord {
        header,
        crc32: member.crc32,
        compressed: *compressed,
        size: member.size,
        local_at: *local_at,
    });
    let directory = encode_directory(records, out.len() as u64);
    out.extend_from_slice(&directory);
    let again = Bytes::from(out.clone());
    let again = Zip::open(&again, u64::MAX)
        .and_then(|opened| opened.ok_or_else(|| no_end(&again)))
        .map_err(|error| format!("what was written of {:?} is refused: {error}", zip.members))?;
    let remarks = again.remarks.len();
    let same = remarks == 0
        && again.members.len() == zip.members.len()
        && again
            .members
            .iter()
            .zip(&zip.members)
            .all(|(again, member)| {
                (&again.name, again.is_deflated, again.crc32, again.size)
                    == (&member.name, member.is_deflated, member.crc32, member.size)
                    && content(&out, &again.data) == content(bytes, &member.data)
            });
    if same {
        Ok(())
    } else {
        Err(format!("{:?} became {:?}", zip.members, again.members))
    }
}

/// Pickles: a list of what may be loaded refuses nothing that a lenient one does not follow too, both stop where the
/// program does, and everything that is built can be looked at.
#[cfg(feature = "pytorch")]
pub fn pickle(bytes: &[u8]) -> Result<(), Contradiction> {
    use crate::wire::pickle::{Budget, Import, Kind, Place, Policy, find_end, run};

    struct Names {
        lenient: bool,
        count: u64,
    }
    impl Policy for Names {
        fn import(&mut self, import: Import<'_>) -> crate::Result<()> {
            self.count += 1;
            if self.lenient || crate::formats::is_known_to_torch(import.module, import.name) {
                return Ok(());
            }
            Err(crate::Error::unsupported("pickle-global", import.name))
        }
        fn may_build(&self, module: &str, name: &str) -> bool {
            crate::formats::is_known_to_torch(module, name)
        }
        fn is_lenient(&self) -> bool {
            self.lenient
        }
    }
    let names = |lenient| {
        let mut policy = Names { lenient, count: 0 };
        let mut budget = Budget::new(1 << 20);
        let ran = run(bytes, &Place::At(0), &mut policy, &mut budget);
        (ran, policy.count)
    };
    let (strict, few) = names(false);
    let (lenient, many) = names(true);
    if few > many {
        return Err(format!("{few} names are loaded, {many} where all may be"));
    }
    if let (Ok(_), Err(error)) = (&strict, &lenient) {
        return Err(format!("a list allows what nothing forbids: {error}"));
    }
    let Ok(tree) = lenient else {
        return Ok(());
    };
    let end = find_end(bytes);
    if !matches!(end, Ok(Some(end)) if end <= bytes.len()) {
        return Err(format!("it stops, and its end is {end:?}"));
    }
    for kind in [Kind::Dict, Kind::List, Kind::Tuple, Kind::Call, Kind::New] {
        for node in tree.nodes(kind) {
            let items = node.items().filter_map(core::result::Result::ok);
            if items.count() > node.len() || node.at() >= bytes.len() {
                return Err(format!("a node of {} items at {}", node.len(), node.at()));
            }
            node.entries().chain(core::iter::empty()).for_each(drop);
            node.states().for_each(drop);
        }
    }
    Ok(())
}

/// The structures of HDF5: whatever is found lies in the file, under a name of its own, and is found again.
#[cfg(feature = "hdf5")]
pub fn hdf5(bytes: &[u8]) -> Result<(), Contradiction> {
    use crate::model::{Payload, SourceId};
    use bytes::Bytes;

    let file = Bytes::copy_from_slice(bytes);
    let len = bytes.len() as u64;
    let read =
        || crate::wire::hdf5::read(&file, SourceId::MAIN, 0..len, &crate::io::Limits::default());
    let (Ok(content), Ok(again)) = (read(), read()) else {
        return Ok(());
    };
    let mut names = LookupMap::new();
    for (tensor, again) in content.tensors.iter().zip(&again.tensors) {
        if names.insert(tensor.name.as_str(), ()).is_some() || tensor.name != again.name {
            return Err(format!("{:?} is there twice, or not again", tensor.name));
        }
        for part in &tensor.parts {
            match &part.payload {
                Payload::Raw { range, .. } if range.start > range.end || range.end > len => {
                    return Err(format!("{:?} is at {range:?} of {len}", tensor.name));
                }
                Payload::Chunks(chunks) if chunks.shape != tensor.shape => {
                    return Err(format!("{:?}: chunks of {:?}", tensor.name, chunks.shape));
                }
                _ => {}
            }
        }
    }
    Ok(())
}
