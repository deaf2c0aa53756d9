//! TensorFlow's checkpoints: indexes of many entries. Their data is not there, which shows behind them.

use super::*;

/// Seven bits in each byte.
fn varint(mut number: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
    out
}

/// A block with its compression and its checksum.
fn block(out: &mut Vec<u8>, content: &[u8], kind: u8) -> Vec<u8> {
    let at = out.len();
    out.extend_from_slice(content);
    let handle = [varint(at), varint(content.len())].concat();
    out.push(kind);
    let crc = crc32c::crc32c(&out[at..]);
    let masked = crc.rotate_right(15).wrapping_add(0xa282_ead8);
    out.extend_from_slice(&masked.to_le_bytes());
    handle
}

const RESTARTS: [u8; 8] = [0, 0, 0, 0, 1, 0, 0, 0];
const HEADER: &[u8] = b"\x00\x00\x06\x08\x01\x1a\x02\x08\x01";

/// A table with one block of data.
fn table(entries: &[u8], kind: u8) -> Vec<u8> {
    let mut out = Vec::new();
    let data = block(&mut out, entries, kind);
    let mut footer = block(&mut out, &RESTARTS, 0);
    let index = [&[0, 1, data.len() as u8, 0xff][..], &data, &RESTARTS].concat();
    footer.extend(block(&mut out, &index, 0));
    footer.resize(40, 0);
    out.extend(footer);
    out.extend([0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb]);
    out
}

/// Entries with rising keys behind the header.
fn entries(len: usize, value: &[u8], key: impl Fn(usize) -> (usize, Vec<u8>)) -> Vec<u8> {
    let mut out = HEADER.to_vec();
    for n in 0.. {
        if out.len() >= len {
            break;
        }
        let (shared, rest) = key(n);
        out.extend(varint(shared));
        out.extend(varint(rest.len()));
        out.extend(varint(value.len()));
        out.extend(rest);
        out.extend_from_slice(value);
    }
    out.extend(RESTARTS);
    out
}

pub(super) fn fill(all: &mut Vec<Amplifier>) {
    let before = all.len();
    // Scalars without bytes are defects, each by itself.
    for (what, value) in [
        ("nothing is said of", &b""[..]),
        ("scalars", b"\x08\x01\x28\x04"),
        ("no elements", b"\x08\x01\x12\x02\x12\x00"),
        (
            "many dimensions",
            b"\x08\x01\x12\x10\x12\x00\x12\x00\x12\x00\x12\x00\x12\x00\x12\x00\x12\x00\x12\x00",
        ),
        ("slices", b"\x08\x01\x3a\x02\x0a\x00\x3a\x02\x0a\x00"),
    ] {
        add_refused(
            all,
            format!("tf_checkpoint, {what}"),
            "a.index",
            move |len| {
                table(
                    &entries(len, value, |n| (0, format!("{n:08}").into_bytes())),
                    0,
                )
            },
        );
    }
    add_refused(
        all,
        "tf_checkpoint, long keys that share nearly everything",
        "a.index",
        |len| {
            let long = vec![b'a'; 4096];
            let key = move |n: usize| match n {
                0 => (0, [&long[..], &[0; 3]].concat()),
                n => (4096, vec![(n >> 16) as u8, (n >> 8) as u8, n as u8]),
            };
            table(&entries(len, b"\x08\x01", key), 0)
        },
    );
    add_refused(
        all,
        "tf_checkpoint, a block of snappy that is nearly all copies",
        "a.index",
        |len| {
            let mut block = varint(len * 20);
            block.extend([0, 0]);
            block.extend([0xfe, 1, 0].repeat(len / 3));
            table(&block, 1)
        },
    );
    for amplifier in all.iter_mut().skip(before) {
        amplifier.room = 16 << 20;
    }
}
