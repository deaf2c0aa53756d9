//! Flax.

use super::*;

/// A map of many values under short keys.
fn flax_map(len: usize, value: &[u8]) -> Vec<u8> {
    let mut entries = Vec::new();
    let mut count = 0u32;
    while entries.len() < len {
        let key = key(count as usize);
        entries.push(0xd9);
        entries.push(key.len() as u8);
        entries.extend_from_slice(key.as_bytes());
        entries.extend_from_slice(value);
        count += 1;
    }
    [&[0xdf], &count.to_be_bytes()[..], &entries].concat()
}

pub(super) fn fill(all: &mut Vec<Amplifier>) {
    let before = all.len();
    let scalar = b"\xc7\x0a\x01\x93\x90\xa4int8\xc4\x01\x07";
    for (what, value) in [
        ("nothing", &b"\xc0"[..]),
        ("numbers", b"\x07"),
        ("empty maps", b"\x80"),
        ("empty texts", b"\xa0"),
        ("scalars", scalar),
        ("maps of one", b"\x81\xa0\xc0"),
    ] {
        add_refused(all, format!("flax, {what}"), "a.msgpack", move |len| {
            flax_map(len, value)
        });
    }
    add_refused(all, "flax, an array of nothing", "a.msgpack", |len| {
        [
            &b"\x82\xa1w"[..],
            scalar,
            b"\xa1a\xdd",
            &(len as u32).to_be_bytes(),
            &vec![0xc0; len],
        ]
        .concat()
    });
    add_refused(all, "flax, many chunks", "a.msgpack", |len| {
        let count = len / 22;
        let mut file =
            b"\x81\xa1w\x83\xb9__msgpack_chunked_array__\xc3\xa5shape\x81\xa10\xce".to_vec();
        file.extend_from_slice(&(count as u32).to_be_bytes());
        file.extend_from_slice(b"\xa6chunks\xdf");
        file.extend_from_slice(&(count as u32).to_be_bytes());
        for n in 0..count {
            let number = n.to_string();
            file.push(0xd9);
            file.push(number.len() as u8);
            file.extend_from_slice(number.as_bytes());
            file.extend_from_slice(b"\xc7\x0b\x01\x93\x91\x01\xa4int8\xc4\x01\x07");
        }
        file
    });
    // Millions of these are refused, and some thousand are not.
    for amplifier in all.iter_mut().skip(before) {
        amplifier.room = 16 << 20;
    }
}
