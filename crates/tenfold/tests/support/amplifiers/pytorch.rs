//! PyTorch: zip archives and streams of pickles.

use super::*;

/// A stream of before torch 1.6 with this object and one storage of one f32, called `0`.
pub fn torch_stream(object: &[u8]) -> Vec<u8> {
    let mut out = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e".to_vec();
    out.extend_from_slice(b"\x80\x02M\xe9\x03.\x80\x02}.\x80\x02");
    out.extend_from_slice(object);
    let has_storage = object.windows(7).any(|bytes| bytes == b"storage");
    out.extend_from_slice(if has_storage {
        b"\x80\x02]X\x01\0\0\x000a."
    } else {
        b"\x80\x02]."
    });
    if has_storage {
        out.extend_from_slice(&1u64.to_le_bytes());
        out.extend_from_slice(&1f32.to_le_bytes());
    }
    out
}

/// The opcodes of a tensor without dimensions.
pub const TORCH_SCALAR: &[u8] =
    b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\n\
    X\x01\0\0\x000X\x03\0\0\0cpuK\x01NtQK\0))\x89ccollections\nOrderedDict\n)RtR";

pub(super) fn fill(all: &mut Vec<Amplifier>) {
    let before = all.len();
    let text = |text: &str| {
        let len = u8::try_from(text.len()).unwrap();
        [&[0x8c, len], text.as_bytes()].concat()
    };
    let list = |item: &'static [u8]| {
        move |len: usize| torch_stream(&[b"](", &item.repeat(len / item.len())[..], b"e."].concat())
    };
    add(
        all,
        "pickle, a list of small numbers",
        "a.pt",
        list(b"K\x01"),
    );
    add(all, "pickle, a list of texts", "a.pt", list(b"\x8c\x01a"));
    // These may be refused: they take more than sixteen times their bytes to build.
    for (what, item) in [
        ("None", &b"N"[..]),
        ("empty lists", b"]"),
        ("empty tuples", b")"),
        ("tuples of one", b"N\x85"),
        ("lists of one", b"]Na"),
        ("lists that are remembered", b"]\x94"),
        ("values that are remembered", b"N\x94"),
        ("objects", b"ccollections\nOrderedDict\n)R"),
    ] {
        add_refused(all, format!("pickle, {what}"), "a.pt", list(item));
    }
    add_refused(all, "pickle, marks", "a.pt", |len| {
        torch_stream(&[vec![b'('; len], b"N.".to_vec()].concat())
    });
    add_refused(all, "pickle, lists in lists", "a.pt", |len| {
        torch_stream(&[vec![b']'; len / 2], vec![b'a'; len / 2 - 1], b".".to_vec()].concat())
    });
    add_refused(
        all,
        "pickle, entries of the memo far apart",
        "a.pt",
        |len| {
            let puts = (0..len / 5).flat_map(|n| {
                let [a, b, c, d] = (n as u32 * 100).to_le_bytes();
                [b'r', a, b, c, d]
            });
            let puts: Vec<u8> = puts.collect();
            torch_stream(&[b"N", &puts[..], b"."].concat())
        },
    );
    add_refused(all, "pickle, entries of a dict", "a.pt", move |len| {
        let entries = (0..len / 6).flat_map(|n| [text(&key(n)), b"N".to_vec()].concat());
        let entries: Vec<u8> = entries.collect();
        torch_stream(&[b"}(", &entries[..], b"u."].concat())
    });
    add_refused(
        all,
        "pickle, a list of long lists that is one",
        "a.pt",
        |len| {
            let inner = b"K\x01".repeat(len / 4);
            let outer = b"h\0".repeat(len / 4);
            torch_stream(&[b"](](", &inner[..], b"eq\0", &outer[..], b"e."].concat())
        },
    );
    add(all, "pickle, tensors", "a.pt", move |len| {
        let each = TORCH_SCALAR.len() + 5;
        let entries = (0..len / each).flat_map(|n| [&text(&key(n)), TORCH_SCALAR].concat());
        let entries: Vec<u8> = entries.collect();
        torch_stream(&[b"}(", &entries[..], b"u."].concat())
    });
    add_refused(
        all,
        "pickle, one tensor under many names",
        "a.pt",
        move |len| {
            let entries = (0..len / 7).flat_map(|n| [text(&key(n)), b"h\0".to_vec()].concat());
            let entries: Vec<u8> = entries.collect();
            torch_stream(&[b"}(U\x01x", TORCH_SCALAR, b"q\0", &entries[..], b"u."].concat())
        },
    );
    // Millions of these are refused, and a few thousand are not.
    for amplifier in all.iter_mut().skip(before) {
        amplifier.room = 16 << 20;
    }
}
