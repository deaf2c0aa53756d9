//! CBOR: Burnpack and zTensor.

use super::*;

fn head(kind: u8, n: usize) -> Vec<u8> {
    let n = n as u64;
    let kind = kind << 5;
    match n {
        0..24 => vec![kind | n as u8],
        24..0x100 => vec![kind | 24, n as u8],
        0x100..0x1_0000 => [vec![kind | 25], (n as u16).to_be_bytes().to_vec()].concat(),
        0x1_0000..0x1_0000_0000 => [vec![kind | 26], (n as u32).to_be_bytes().to_vec()].concat(),
        _ => [vec![kind | 27], n.to_be_bytes().to_vec()].concat(),
    }
}

fn text(text: &str) -> Vec<u8> {
    [head(3, text.len()), text.as_bytes().to_vec()].concat()
}

fn list_of(item: &'static [u8]) -> impl Fn(usize) -> Vec<u8> + Clone {
    move |len| {
        let (count, items) = repeated(item, len);
        // The one pair of items.
        let each = if item == b"\x00\xf6" { 2 } else { 1 };
        [head(4, each * count), items].concat()
    }
}

fn map_of(value: &'static [u8]) -> impl Fn(usize) -> Vec<u8> + Clone {
    move |len| {
        let count = len / (4 + value.len());
        let entries = (0..count).map(|n| [&text(&key(n))[..], value].concat());
        [head(5, count), entries.collect::<Vec<_>>().concat()].concat()
    }
}

type Payload = (&'static str, bool, Box<dyn Fn(usize) -> Vec<u8>>);

/// Values of CBOR, and whether the deterministic encoding has them.
fn cbor_payloads() -> Vec<Payload> {
    let mut all: Vec<Payload> = Vec::new();
    let items: [(&str, bool, &'static [u8]); 18] = [
        ("small numbers", true, b"\x00"),
        ("negative numbers", true, b"\x20"),
        ("bools", true, b"\xf4"),
        ("nulls", true, b"\xf6"),
        ("halves", true, b"\xf9\x3c\x00"),
        ("floats", true, b"\xfa\x3f\x80\x00\x01"),
        ("empty texts", true, b"\x60"),
        ("short texts", true, b"\x61a"),
        ("empty bytes", true, b"\x40"),
        ("empty lists", true, b"\x80"),
        ("empty maps", true, b"\xa0"),
        ("lists of one", true, b"\x81\x00"),
        ("maps of one", true, b"\xa1\x60\x00"),
        ("maps with keys that are no text", false, b"\xa1\x00\x00"),
        ("simple values", false, b"\xe0"),
        ("tagged values", false, b"\xc1\x00"),
        ("texts in no pieces", false, b"\x7f\xff"),
        ("numbers and nulls", true, b"\x00\xf6"),
    ];
    for (what, deterministic, item) in items {
        all.push((what, deterministic, Box::new(list_of(item))));
    }
    let values: [(&str, &'static [u8]); 5] = [
        ("a map of numbers", b"\x00"),
        ("a map of texts", b"\x61x"),
        ("a map of empty lists", b"\x80"),
        ("a map of lists of one", b"\x81\x00"),
        ("a map of maps of one", b"\xa1\x60\x00"),
    ];
    for (what, value) in values {
        all.push((what, true, Box::new(map_of(value))));
    }
    let last_differs = |len| {
        let mut list = list_of(b"\x00")(len);
        *list.last_mut().unwrap() = 0xf6;
        list
    };
    all.push(("numbers and at last a null", true, Box::new(last_differs)));
    let falling = |len: usize| {
        let count = len / 5;
        let entries = (0..count)
            .rev()
            .map(|n| [&text(&key(n))[..], b"\x00"].concat());
        [head(5, count), entries.collect::<Vec<_>>().concat()].concat()
    };
    all.push(("a map of falling keys", false, Box::new(falling)));
    let deep = |len| [vec![0x81; 12], list_of(b"\x00")(len)].concat();
    all.push(("numbers in lists in lists", true, Box::new(deep)));
    let long = |len| text(&"\u{1}".repeat(len));
    all.push(("one long text", true, Box::new(long)));
    all
}

pub fn entry(key: &str, value: Vec<u8>) -> Vec<u8> {
    [text(key), value].concat()
}

pub fn burnpack(root: &[u8]) -> Vec<u8> {
    let mut out = b"NRUB\x01\x00".to_vec();
    out.extend(u32::try_from(root.len()).unwrap().to_le_bytes());
    out.extend(root);
    out.resize(out.len().next_multiple_of(256), 0);
    out
}

pub fn ztensor_1(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut root = head(5, entries.len() + 1);
    root.extend(entry("version", text("1.2.0")));
    root.extend(entries.concat());
    let mut out = b"ZTEN1000".to_vec();
    out.resize(64, 0);
    out.extend(&root);
    out.extend((root.len() as u64).to_le_bytes());
    out.extend(b"ZTEN1000");
    out
}

pub fn ztensor_01(entries: &[u8]) -> Vec<u8> {
    let mut out = b"ZTEN0001".to_vec();
    out.resize(64, 0);
    out.extend(entries);
    out.extend((entries.len() as u64).to_le_bytes());
    out
}

/// The entries are in the order of their encoded keys.
pub fn ztensor_2(entries: &[Vec<u8>]) -> Vec<u8> {
    let magic = b"\x89ZT2\r\n\x1a\n";
    let root = [head(5, entries.len()), entries.concat()].concat();
    let mut out = magic.to_vec();
    out.resize(4096, 0);
    out.extend(&root);
    out.extend(4096u64.to_le_bytes());
    out.extend((root.len() as u64).to_le_bytes());
    out.extend([0; 8]);
    out.extend(2u32.to_le_bytes());
    out.extend([0; 4]);
    out.extend(magic);
    out
}

/// A map of many short keys with the same value.
fn many(len: usize, value: &[u8]) -> Vec<u8> {
    let count = len / (4 + value.len());
    let entries = (0..count).map(|n| [&text(&key(n))[..], value].concat());
    [head(5, count), entries.collect::<Vec<_>>().concat()].concat()
}

pub fn map(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let all = entries.iter().map(|(key, value)| entry(key, value.clone()));
    [head(5, entries.len()), all.collect::<Vec<_>>().concat()].concat()
}

/// A tensor of zTensor 1.2 with so many components.
pub fn ztensor_components(count: usize) -> Vec<u8> {
    let component = map(&[
        ("dtype", text("i8")),
        ("offset", vec![0x18, 64]),
        ("length", vec![0]),
    ]);
    let object = map(&[
        ("shape", vec![0x81, 0]),
        ("format", text("parts")),
        (
            "components",
            many(count * (4 + component.len()), &component),
        ),
    ]);
    ztensor_1(&[entry("objects", map(&[("a", object)]))])
}

fn ztensor_part() -> Vec<u8> {
    map(&[
        ("blob", vec![0x82, 0x19, 0x10, 0x00, 0]),
        ("dtype", text("u8")),
    ])
}

/// A tensor of zTensor 2 with so many parts.
pub fn ztensor_parts(count: usize) -> Vec<u8> {
    let part = ztensor_part();
    let object = map(&[
        ("parts", many(count * (4 + part.len()), &part)),
        ("shape", vec![0x81, 0]),
        ("layout", text("x")),
    ]);
    ztensor_2(&[entry("objects", map(&[("a", object)]))])
}

pub(super) fn fill(all: &mut Vec<Amplifier>) {
    for (what, deterministic, make) in cbor_payloads() {
        let make: Arc<dyn Fn(usize) -> Vec<u8>> = Arc::from(make);
        let of = make.clone();
        add(
            all,
            format!("burnpack, a key that is not known: {what}"),
            "a.bpk",
            move |len| {
                let root = map(&[("tensors", head(5, 0)), ("x", of(len))]);
                burnpack(&root)
            },
        );
        let of = make.clone();
        add(
            all,
            format!("zTensor 0.1, a field: {what}"),
            "a.zt",
            move |len| {
                let fields = map(&[
                    ("name", text("a")),
                    ("offset", vec![0x18, 64]),
                    ("size", vec![0]),
                    ("dtype", text("float32")),
                    ("shape", vec![0x81, 0]),
                    ("encoding", text("raw")),
                    ("x", of(len)),
                ]);
                ztensor_01(&[head(4, 1), fields].concat())
            },
        );
        let of = make.clone();
        add(
            all,
            format!("zTensor 1.2, an attribute: {what}"),
            "a.zt",
            move |len| {
                let attributes = map(&[("x", of(len))]);
                ztensor_1(&[
                    entry("objects", head(5, 0)),
                    entry("attributes", attributes),
                ])
            },
        );
        let of = make.clone();
        if what.contains("map of") && !what.starts_with("maps") {
            add(
                all,
                format!("zTensor 1.2, the attributes: {what}"),
                "a.zt",
                move |len| ztensor_1(&[entry("objects", head(5, 0)), entry("attributes", of(len))]),
            );
        }
        let of = make;
        if deterministic {
            add(
                all,
                format!("zTensor 2, an attribute: {what}"),
                "a.zt",
                move |len| {
                    let attributes = map(&[("x", of(len))]);
                    ztensor_2(&[
                        entry("objects", head(5, 0)),
                        entry("attributes", attributes),
                    ])
                },
            );
        }
    }
    add(all, "burnpack, metadata", "a.bpk", |len| {
        burnpack(&map(&[
            ("tensors", head(5, 0)),
            ("metadata", many(len, b"\x60")),
        ]))
    });
    add(all, "burnpack, scalars", "a.bpk", |len| {
        let scalar = b"\xa1\x63Int\x00";
        burnpack(&map(&[
            ("tensors", head(5, 0)),
            ("scalars", many(len, scalar)),
        ]))
    });
    let descriptor = || {
        map(&[
            ("dtype", text("U8")),
            ("shape", vec![0x81, 0]),
            ("data_offsets", vec![0x82, 0, 0]),
        ])
    };
    add(all, "burnpack, tensors", "a.bpk", move |len| {
        // More are refused.
        let tensor = descriptor();
        burnpack(&map(&[(
            "tensors",
            many(len.min(100_000 * (tensor.len() + 4)), &tensor),
        )]))
    });
    add(all, "burnpack, shapes", "a.bpk", |len| {
        let tensor = map(&[
            ("dtype", text("U8")),
            ("shape", list_of(b"\x00")(64)),
            ("data_offsets", vec![0x82, 0, 0]),
        ]);
        let len = len.min(100_000 * (tensor.len() + 4));
        burnpack(&map(&[("tensors", many(len, &tensor))]))
    });
    add_refused(all, "burnpack, the shape of a tensor", "a.bpk", |len| {
        let tensor = map(&[
            ("dtype", text("U8")),
            ("shape", list_of(b"\x00")(len)),
            ("data_offsets", vec![0x82, 0, 0]),
        ]);
        burnpack(&map(&[("tensors", map(&[("a", tensor)]))]))
    });
    add_refused(all, "burnpack, a scheme", "a.bpk", |len| {
        let tensor = map(&[
            ("dtype", map(&[("QFloat", many(len, b"\x00"))])),
            ("shape", vec![0x81, 0]),
            ("data_offsets", vec![0x82, 0, 0]),
        ]);
        burnpack(&map(&[("tensors", map(&[("a", tensor)]))]))
    });
    for (what, dtype) in [("tensors", "int8"), ("tensors of no known type", "")] {
        add(all, format!("zTensor 0.1, {what}"), "a.zt", move |len| {
            let entry = |n: usize| {
                map(&[
                    ("name", text(&key(n))),
                    ("offset", vec![0x18, 64]),
                    ("size", vec![0]),
                    ("dtype", text(dtype)),
                    ("shape", vec![0x81, 0]),
                    ("encoding", text("raw")),
                ])
            };
            let count = len / entry(0).len();
            let entries: Vec<_> = (0..count).map(entry).collect();
            ztensor_01(&[head(4, count), entries.concat()].concat())
        });
    }
    add(all, "zTensor 0.1, fields", "a.zt", |len| {
        let fields = map(&[
            ("name", text("a")),
            ("offset", vec![0x18, 64]),
            ("size", vec![0]),
            ("dtype", text("float32")),
            ("shape", vec![0x81, 0]),
            ("encoding", text("raw")),
        ]);
        let count = len / 5;
        let custom = (0..).map(key).filter(|key| key != "name" && key != "size");
        let custom = custom
            .take(count)
            .map(|key| [&text(&key)[..], b"\x00"].concat());
        let custom = custom.collect::<Vec<_>>().concat();
        ztensor_01(&[&[0x81][..], &head(5, count + 6), &fields[1..], &custom].concat())
    });
    let object = |dtype: &str| {
        let component = map(&[
            ("dtype", text(dtype)),
            ("offset", vec![0x18, 64]),
            ("length", vec![0]),
        ]);
        map(&[
            ("shape", vec![0x81, 0]),
            ("format", text("dense")),
            ("components", map(&[("data", component)])),
        ])
    };
    add(all, "zTensor 1.2, tensors", "a.zt", move |len| {
        ztensor_1(&[entry("objects", many(len, &object("i8")))])
    });
    add_refused(all, "zTensor 1.2, components", "a.zt", |len| {
        ztensor_components(len / 31)
    });
    add(
        all,
        "zTensor 1.2, tensors with attributes",
        "a.zt",
        move |len| {
            let object = object("x");
            let attributes = entry("attributes", map(&[("x", vec![0x60])]));
            let object = [&head(5, 4), &object[1..], &attributes].concat();
            ztensor_1(&[entry("objects", many(len, &object))])
        },
    );
    add(all, "zTensor 1.2, empty objects", "a.zt", |len| {
        let object = map(&[
            ("shape", vec![0x80]),
            ("format", vec![0x60]),
            ("components", vec![0xa0]),
        ]);
        ztensor_1(&[entry("objects", many(len, &object))])
    });
    add(all, "zTensor 2, tensors", "a.zt", move |len| {
        let object = map(&[
            ("parts", map(&[("data", ztensor_part())])),
            ("shape", vec![0x81, 0]),
            ("layout", text("dense")),
        ]);
        ztensor_2(&[entry("objects", many(len, &object))])
    });
    add_refused(all, "zTensor 2, parts", "a.zt", |len| {
        ztensor_parts(len / 25)
    });
    add(all, "zTensor 2, the attributes", "a.zt", |len| {
        ztensor_2(&[
            entry("objects", head(5, 0)),
            entry("attributes", many(len, b"\x00")),
        ])
    });
}
