//! ONNX.

use super::*;

/// A field of protobuf with some bytes.
pub fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut len = bytes.len();
    while len > 0x7f {
        out.push(len as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
    out.extend_from_slice(bytes);
    out
}

/// A model with these fields behind its version, among which there is a graph.
pub fn onnx_model(fields: &[u8]) -> Vec<u8> {
    [b"\x08\x0a", fields].concat()
}

/// A model with a graph of many of these, of which some make up the length.
fn onnx_graph(len: usize, item: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let mut graph = Vec::new();
    for n in 0.. {
        if graph.len() >= len {
            break;
        }
        graph.extend(item(n));
    }
    onnx_model(&field(7, &graph))
}

/// An initializer with a short name.
fn onnx_tensor(n: usize, rest: &[u8]) -> Vec<u8> {
    let name = field(8, key(n).as_bytes());
    field(5, &[&name[..], rest].concat())
}

pub(super) fn fill(all: &mut Vec<Amplifier>) {
    let before = all.len();
    // Millions of these are refused, and a few thousand are not.
    for (what, rest) in [
        ("scalars", &b"\x10\x02\x4a\x01\x00"[..]),
        ("empty tensors", b"\x10\x02\x08\x00"),
        ("numbers of their own", b"\x10\x06\x28\x00"),
        ("numbers in pieces", b"\x10\x02\x08\x02\x28\x00\x28\x00"),
        ("types that nobody knows", b"\x10\x63"),
        (
            "data in other files",
            b"\x10\x02\x70\x01\x6a\x0d\x0a\x08location\x12\x01a",
        ),
        ("documentation", b"\x10\x02\x4a\x01\x00\x62\x01x"),
        (
            "metadata of tensors",
            b"\x10\x02\x4a\x01\x00\x82\x01\x03\x0a\x01k",
        ),
    ] {
        add_refused(all, format!("onnx, {what}"), "a.onnx", move |len| {
            onnx_graph(len, |n| onnx_tensor(n, rest))
        });
    }
    add_refused(all, "onnx, nothing", "a.onnx", |len| {
        onnx_graph(len, |_| b"\x2a\x00".to_vec())
    });
    add_refused(all, "onnx, graphs of one tensor", "a.onnx", |len| {
        let graphs = (0..len / 16).map(|n| field(7, &onnx_tensor(n, b"\x10\x02\x4a\x01\x00")));
        onnx_model(&graphs.collect::<Vec<_>>().concat())
    });
    for amplifier in all.iter_mut().skip(before) {
        amplifier.room = 16 << 20;
    }
    add(all, "onnx, nodes", "a.onnx", |len| {
        onnx_graph(len, |_| b"\x0a\x00".to_vec())
    });
    add(all, "onnx, unknown fields", "a.onnx", |len| {
        onnx_graph(len, |_| b"\x98\x06\x00".to_vec())
    });
    add(all, "onnx, sparse initializers", "a.onnx", |len| {
        onnx_graph(len, |n| match n {
            0 => onnx_tensor(0, b"\x10\x02\x4a\x01\x00"),
            _ => b"\x7a\x00".to_vec(),
        })
    });
    add(all, "onnx, keys of metadata", "a.onnx", |len| {
        let entry = |n: usize| field(14, &field(1, key(n).as_bytes()));
        let entries: Vec<_> = (0..len / 7).map(entry).collect();
        onnx_model(&[b"\x3a\x00", &entries.concat()[..]].concat())
    });
    add(all, "onnx, the same key of metadata", "a.onnx", |len| {
        onnx_model(&[b"\x3a\x00", &b"\x72\x00".repeat((len / 2).min(1 << 20))[..]].concat())
    });
    add(all, "onnx, operators", "a.onnx", |len| {
        let entry = |n: usize| field(8, &field(1, key(n).as_bytes()));
        let entries: Vec<_> = (0..len / 7).map(entry).collect();
        onnx_model(&[b"\x3a\x00", &entries.concat()[..]].concat())
    });
    add(all, "onnx, external_data of one tensor", "a.onnx", |len| {
        let entries = b"\x6a\x03\x0a\x01k".repeat(len / 5);
        let rest = [b"\x10\x02\x4a\x01\x00", &entries[..]].concat();
        onnx_model(&field(7, &onnx_tensor(0, &rest)))
    });
    add_refused(all, "onnx, dimensions", "a.onnx", |len| {
        let dims = field(1, &vec![1; len]);
        let rest = [b"\x10\x02\x4a\x01\x00", &dims[..]].concat();
        onnx_model(&field(7, &onnx_tensor(0, &rest)))
    });
}
