//! What `.metadata` of a distributed checkpoint says: tensors, chunks, places, all of them as short as memo can make them.

use super::*;

/// `.metadata` with these entries of dicts. Objects and texts are in the memo: `h` and a byte.
fn metadata(saved: &[u8], places: &[u8], planned: &[u8]) -> Vec<u8> {
    const MODULE: &str = "torch.distributed.checkpoint.metadata";
    const FILES: &str = "torch.distributed.checkpoint.filesystem";
    let mut out = b"\x80\x04".to_vec();
    let mut remember = |made: &[u8], number: u8| {
        out.extend([made, b"q", &[number], b"0"].concat());
    };
    let class = |module: &str, name: &str| format!("c{module}\n{name}\n").into_bytes();
    remember(&class(MODULE, "TensorStorageMetadata"), 1);
    remember(&class(MODULE, "TensorProperties"), 2);
    remember(&class(MODULE, "ChunkStorageMetadata"), 3);
    remember(&class("torch", "Size"), 4);
    remember(&class("torch", "float32"), 5);
    remember(&class(MODULE, "MetadataIndex"), 6);
    remember(&class(FILES, "_StorageInfo"), 7);
    let texts = [
        "properties",
        "size",
        "chunks",
        "fqn",
        "relative_path",
        "offset",
        "length",
    ];
    for (number, text) in (20..).zip(texts) {
        remember(&text_of(text), number);
    }
    remember(b"h\x02)\x81h\x05N\x86b", 8);
    remember(b"h\x04K\x01\x85\x85R", 9);
    remember(b"h\x04K\x00\x85\x85R", 10);
    let sides = [
        b"h\x03)\x81}(",
        &text_of("offsets")[..],
        b"h\x0a",
        &text_of("sizes"),
        b"h\x09ub",
    ];
    remember(&sides.concat(), 11);
    remember(b"](h\x0be", 12);
    remember(&[b"](", &b"h\x0b".repeat(1000)[..], b"e"].concat(), 13);
    out.extend(class(MODULE, "Metadata"));
    out.extend(b")\x81}(");
    for (name, entries) in [
        ("state_dict_metadata", saved),
        ("storage_data", places),
        ("planner_data", planned),
    ] {
        out.extend(text_of(name));
        out.extend([b"}(", entries, b"u"].concat());
    }
    out.extend(b"ub.");
    out
}

fn text_of(text: &str) -> Vec<u8> {
    [&[0x8c, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
}

/// As many entries as fit, with short keys.
fn entries(len: usize, entry: impl Fn(Vec<u8>) -> Vec<u8>) -> Vec<u8> {
    let mut all = Vec::new();
    for n in 0.. {
        if all.len() >= len {
            break;
        }
        all.extend(entry(text_of(&key(n))));
    }
    all
}

pub(super) fn fill(all: &mut Vec<Amplifier>) {
    for (what, chunks) in [("tensors", 12u8), ("tensors that share chunks", 13)] {
        add_refused(all, format!("dcp, {what}"), ".metadata", move |len| {
            let tensor = [
                &b"h\x01)\x81}(h\x14h\x08h\x15h\x09h\x16h"[..],
                &[chunks],
                b"ub",
            ]
            .concat();
            metadata(
                &entries(len, |name| [&name[..], &tensor].concat()),
                b"",
                b"",
            )
        });
    }
    add_refused(all, "dcp, chunks", ".metadata", |len| {
        let chunks = b"h\x0b".repeat(len / 2);
        let tensor = [
            b"\x8c\x01ah\x01)\x81}(h\x14h\x08h\x15h\x09h\x16](",
            &chunks[..],
            b"eub",
        ]
        .concat();
        metadata(&tensor, b"", b"")
    });
    add_refused(all, "dcp, places", ".metadata", |len| {
        let place = |name: Vec<u8>| {
            let file = b"h\x07)\x81}(h\x18\x8c\x01fh\x19K\x00h\x1aK\x00ub";
            [b"h\x06)\x81}(h\x17", &name[..], b"ub", file].concat()
        };
        metadata(b"", &entries(len, place), b"")
    });
    add_refused(all, "dcp, files", ".metadata", |len| {
        let place = |name: Vec<u8>| {
            let file = [b"h\x07)\x81}(h\x18", &name[..], b"h\x19K\x00h\x1aK\x00ub"].concat();
            [b"h\x06)\x81}(h\x17", &name[..], b"ub", &file].concat()
        };
        metadata(b"", &entries(len, place), b"")
    });
    add_refused(all, "dcp, paths", ".metadata", |len| {
        metadata(
            b"",
            b"",
            &entries(len, |name| [&name[..], b"h\x14h\x15h\x16\x87"].concat()),
        )
    });
    add_refused(all, "dcp, objects", ".metadata", |len| {
        let object = b"ctorch.distributed.checkpoint.metadata\nBytesStorageMetadata\nq\x63)\x81";
        let mut first = [b"\x8c\x01!", &object[..]].concat();
        first.extend(entries(len, |name| [&name[..], b"hc)\x81"].concat()));
        metadata(&first, b"", b"")
    });
}
