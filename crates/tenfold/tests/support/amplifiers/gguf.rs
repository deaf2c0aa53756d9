//! GGUF.

use super::*;

fn gguf_file(count: usize, pairs: &[u8]) -> Vec<u8> {
    let mut out = b"GGUF\x03\0\0\0".to_vec();
    out.extend([0; 8]);
    out.extend((count as u64).to_le_bytes());
    out.extend(pairs);
    out.resize(out.len().next_multiple_of(32), 0);
    out
}

fn gguf_key(key: &str) -> Vec<u8> {
    [&(key.len() as u64).to_le_bytes()[..], key.as_bytes()].concat()
}

fn gguf_array(kind: u32, count: usize) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &(count as u64).to_le_bytes()].concat()
}

pub(super) fn fill(all: &mut Vec<Amplifier>) {
    for (kind, width) in [
        (0, 1),
        (1, 1),
        (2, 2),
        (3, 2),
        (4, 4),
        (5, 4),
        (6, 4),
        (7, 1),
        (10, 8),
        (11, 8),
        (12, 8),
    ] {
        for fill in [0u8, 1, 0xff] {
            if kind == 7 && fill > 1 {
                continue;
            }
            add(
                all,
                format!("GGUF, an array of type {kind} of {fill}"),
                "a.gguf",
                move |len| {
                    let count = len / width;
                    let items = vec![fill; count * width];
                    let pair = [
                        gguf_key("k"),
                        9u32.to_le_bytes().to_vec(),
                        gguf_array(kind, count),
                        items,
                    ];
                    gguf_file(1, &pair.concat())
                },
            );
        }
    }
    let arrays: [(&str, u32, Vec<u8>); 5] = [
        ("empty texts", 8, vec![0; 8]),
        ("texts", 8, gguf_key("a")),
        ("bytes", 8, [&1u64.to_le_bytes()[..], b"\xff"].concat()),
        ("empty arrays", 9, gguf_array(0, 0)),
        ("arrays of one", 9, [gguf_array(0, 1), vec![0]].concat()),
    ];
    for (what, kind, item) in arrays {
        add(
            all,
            format!("GGUF, an array of {what}"),
            "a.gguf",
            move |len| {
                let (count, items) = repeated(&item, len);
                let pair = [
                    gguf_key("k"),
                    9u32.to_le_bytes().to_vec(),
                    gguf_array(kind, count),
                    items,
                ];
                gguf_file(1, &pair.concat())
            },
        );
    }
    let values: [(&str, Vec<u8>); 4] = [
        ("numbers", [&0u32.to_le_bytes()[..], &[0]].concat()),
        (
            "texts",
            [8u32.to_le_bytes().to_vec(), gguf_key("")].concat(),
        ),
        (
            "empty arrays",
            [9u32.to_le_bytes().to_vec(), gguf_array(0, 0)].concat(),
        ),
        (
            "short arrays",
            [9u32.to_le_bytes().to_vec(), gguf_array(0, 64), vec![0; 64]].concat(),
        ),
    ];
    for (what, value) in values {
        add(all, format!("GGUF, values: {what}"), "a.gguf", move |len| {
            let count = len / (value.len() + 11);
            let pairs: Vec<_> = (0..count)
                .map(|n| [gguf_key(&key(n)), value.clone()].concat())
                .collect();
            gguf_file(count, &pairs.concat())
        });
    }
    let long: Vec<u8> = [&9u32.to_le_bytes()[..], &gguf_array(0, 65), &[0; 65]].concat();
    add(
        all,
        "GGUF, arrays that are just not loaded",
        "a.gguf",
        move |len| {
            let count = len / (long.len() + 11);
            let pairs: Vec<_> = (0..count)
                .map(|n| [gguf_key(&key(n)), long.clone()].concat())
                .collect();
            gguf_file(count, &pairs.concat())
        },
    );
    add(all, "GGUF, tensors", "a.gguf", |len| {
        let count = len / 35;
        let mut out = b"GGUF\x03\0\0\0".to_vec();
        out.extend((count as u64).to_le_bytes());
        out.extend([0; 8]);
        for n in 0..count {
            out.extend(gguf_key(&key(n)));
            out.extend(1u32.to_le_bytes());
            out.extend([0; 8 + 4 + 8]);
        }
        out.resize(out.len().next_multiple_of(32), 0);
        out
    });
}
