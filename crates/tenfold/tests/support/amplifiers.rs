//! Files that are made to take much more memory than their bytes: every list-like thing of every format, full of the
//! smallest entries that it can have. Of any length.

// Lengths are chosen to fit the few bytes that they are written in.
#![allow(clippy::cast_possible_truncation)]

use super::memory::on_this_thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tenfold::documents::ShownMetadata;
use tenfold::io::Source;
use tenfold::model::Metadata;
use tenfold::{Archive, Bytes, Error, OpenOptions, Result};

/// A kind of file.
pub struct Amplifier {
    /// What it is full of.
    pub what: String,
    /// What the file is called.
    pub name: &'static str,
    /// Whether it is a file that opens.
    pub opens: bool,
    /// Bytes that are known to be taken for it, however short it is, because so many of its entries are read.
    pub room: usize,
    make: Box<dyn Fn(usize) -> Vec<u8>>,
}

impl Amplifier {
    /// A file of about `len` bytes.
    pub fn make(&self, len: usize) -> Bytes {
        (self.make)(len).into()
    }
}

/// Opens a file and does all that is done with metadata: what it took at most, how many bytes were read for it, and
/// whether it opened.
pub fn measure(bytes: &Bytes, name: &str) -> (usize, usize, Result<()>) {
    let file = Arc::new(Read {
        bytes: bytes.clone(),
        read: AtomicU64::new(0),
    });
    let (done, used) = on_this_thread(|| {
        let options = OpenOptions::new().checksums(false);
        let archive = options.read(file.clone(), Some(name))?;
        use_metadata(&archive)
    });
    let read = file.read.load(Relaxed).min(bytes.len() as u64);
    (used.peak, usize::try_from(read).unwrap_or(0), done)
}

/// Loads metadata, prints it, and looks at it again.
pub fn use_metadata(archive: &Archive) -> Result<()> {
    let metadata = archive.load_metadata()?;
    let print = |metadata: &Metadata| {
        let document = ShownMetadata::new(metadata, true);
        let printed = serde_json::to_writer(std::io::sink(), &document);
        printed.map_err(|cause| Error::argument(cause.to_string()))
    };
    print(&metadata)?;
    for tensor in archive.tensors() {
        print(&tensor.info().metadata)?;
    }
    Ok(())
}

/// A file that is not in memory, and counts what is read of it.
#[derive(Debug)]
struct Read {
    bytes: Bytes,
    read: AtomicU64,
}

impl Source for Read {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, range: std::ops::Range<u64>) -> Result<Bytes> {
        let bytes = Source::read(&self.bytes, range)?;
        self.read.fetch_add(bytes.len() as u64, Relaxed);
        Ok(Bytes::copy_from_slice(&bytes))
    }
}

/// All of them.
pub fn all() -> Vec<Amplifier> {
    let mut all = Vec::new();
    cbor_formats(&mut all);
    json_formats(&mut all);
    gguf(&mut all);
    primitiv(&mut all);
    numpy(&mut all);
    tens(&mut all);
    mag(&mut all);
    onnx(&mut all);
    pytorch(&mut all);
    hdf5(&mut all);
    netcdf(&mut all);
    flax(&mut all);
    paddle(&mut all);
    tflite(&mut all);
    all
}

fn add(
    all: &mut Vec<Amplifier>,
    what: impl Into<String>,
    name: &'static str,
    make: impl Fn(usize) -> Vec<u8> + 'static,
) {
    all.push(Amplifier {
        what: what.into(),
        name,
        opens: true,
        room: 0,
        make: Box::new(make),
    });
}

/// The same for a file that is refused.
fn add_refused(
    all: &mut Vec<Amplifier>,
    what: impl Into<String>,
    name: &'static str,
    make: impl Fn(usize) -> Vec<u8> + 'static,
) {
    add(all, what, name, make);
    if let Some(last) = all.last_mut() {
        last.opens = false;
    }
}

/// The `n`th of many short keys, which rise by their lengths and then by their bytes.
fn key(n: usize) -> String {
    // Without quotes, backslashes and what a path could not have.
    const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let base = DIGITS.len();
    let (width, mut rest) = if n < base.pow(3) {
        (3, n)
    } else {
        (4, n - base.pow(3))
    };
    let mut text = vec![b'0'; width];
    for digit in text.iter_mut().rev() {
        *digit = DIGITS[rest % base];
        rest /= base;
    }
    String::from_utf8(text).unwrap()
}

/// `item` as often as it fits.
fn repeated(item: &[u8], len: usize) -> (usize, Vec<u8>) {
    let count = (len / item.len()).max(1);
    (count, item.repeat(count))
}

// CBOR

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

fn cbor_formats(all: &mut Vec<Amplifier>) {
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

// JSON

fn json_list(item: &str, len: usize) -> String {
    let count = (len / (item.len() + 1)).max(1);
    let mut list = format!("{item},").repeat(count);
    list.pop();
    format!("[{list}]")
}

fn json_map(value: &str, len: usize) -> String {
    let count = len / (value.len() + 7);
    let entries: Vec<_> = (0..count)
        .map(|n| format!("\"{}\":{value}", key(n)))
        .collect();
    format!("{{{}}}", entries.join(","))
}

type JsonPayload = (&'static str, Box<dyn Fn(usize) -> String>);

fn json_payloads() -> Vec<JsonPayload> {
    let mut all: Vec<JsonPayload> = Vec::new();
    let items = [
        ("numbers", "0"),
        ("floats", "1."),
        ("floats with an exponent", "1e0"),
        ("bools", "true"),
        ("nulls", "null"),
        ("long numbers", "99999999999999999999"),
        ("empty texts", "\"\""),
        ("escapes", "\"\\n\""),
        ("empty lists", "[]"),
        ("empty maps", "{}"),
        ("lists of one", "[0]"),
        ("maps of one", "{\"\":0}"),
        ("numbers and texts", "0,\"\""),
    ];
    for (what, item) in items {
        // A point needs a digit.
        let item = if item == "1." { "1.5" } else { item };
        all.push((what, Box::new(move |len| json_list(item, len))));
    }
    for (what, value) in [
        ("a map of numbers", "0"),
        ("a map of empty texts", "\"\""),
        ("a map of texts", "\"x\""),
        ("a map of empty lists", "[]"),
        ("a map of lists of one", "[0]"),
        ("a map of maps of one", "{\"\":0}"),
    ] {
        all.push((what, Box::new(move |len| json_map(value, len))));
    }
    let repeated = |len: usize| {
        let list = json_list("\"\":0", len);
        format!("{{{}}}", &list[1..list.len() - 1])
    };
    all.push(("a map of one key", Box::new(repeated)));
    let escaped = |len: usize| format!("\"{}\"", "\\u0001".repeat(len / 6));
    all.push(("one long text of escapes", Box::new(escaped)));
    let deep = |len| {
        let list = json_list("0", len);
        format!("{}{list}{}", "[".repeat(40), "]".repeat(40))
    };
    all.push(("numbers in lists in lists", Box::new(deep)));
    all
}

pub fn mag_manifest(usr: &str, tensors: &str, others: &str) -> Vec<u8> {
    let manifest = format!(
        "{{\"manifest_ver\":1,\"timestamp\":\"\",\"magnetron_ver\":\"\",\"snapshot_ver\":\"0.3.0\",\
         \"usr_metadata\":{usr},\"tensor_map\":{tensors}{others}}}"
    );
    let mut out = b"MAG!".to_vec();
    out.extend(300u32.to_le_bytes());
    out.extend(0u32.to_le_bytes());
    let end = (44 + manifest.len() as u64).next_multiple_of(4096);
    for number in [44, manifest.len() as u64, end, 0] {
        out.extend(number.to_le_bytes());
    }
    out.extend(manifest.as_bytes());
    out.resize(usize::try_from(end).unwrap(), 0);
    out
}

pub fn safetensors(header: &str) -> Vec<u8> {
    let mut header = header.to_owned();
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat()
}

/// The entries of a map, to stand behind others.
fn more(map: &str) -> String {
    format!(",{}", &map[1..map.len() - 1])
}

fn json_formats(all: &mut Vec<Amplifier>) {
    const MAG_TENSOR: &str =
        "\"shape\":[0],\"dtype\":\"u8\",\"dtype_id\":8,\"offset\":0,\"nbytes\":0";
    const EMPTY: &str = "{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
    for (what, make) in json_payloads() {
        let make: Arc<dyn Fn(usize) -> String> = Arc::from(make);
        let of = make.clone();
        add(
            all,
            format!("mag manifest, a value: {what}"),
            "a.mag",
            move |len| mag_manifest(&format!("{{\"k\":{}}}", of(len)), "{}", ""),
        );
        let of = make.clone();
        add(
            all,
            format!("mag manifest, a field of a tensor: {what}"),
            "a.mag",
            move |len| {
                let tensor = format!("{{\"a\":{{{MAG_TENSOR},\"x\":{}}}}}", of(len));
                mag_manifest("{}", &tensor, "")
            },
        );
        let of = make.clone();
        add(
            all,
            format!("mag manifest, a field: {what}"),
            "a.mag",
            move |len| mag_manifest("{}", "{}", &format!(",\"x\":{}", of(len))),
        );
        if what.starts_with("a map of") {
            let of = make.clone();
            add(
                all,
                format!("mag manifest, values: {what}"),
                "a.mag",
                move |len| mag_manifest(&of(len), "{}", ""),
            );
            let of = make.clone();
            add(
                all,
                format!("mag manifest, fields of a tensor: {what}"),
                "a.mag",
                move |len| {
                    let tensor = format!("{{\"a\":{{{MAG_TENSOR}{}}}}}", more(&of(len)));
                    mag_manifest("{}", &tensor, "")
                },
            );
            {
                let of = make.clone();
                add_refused(
                    all,
                    format!("mag manifest, fields: {what}"),
                    "a.mag",
                    move |len| mag_manifest("{}", "{}", &more(&of(len))),
                );
            }
        }
        let of = make;
        add_refused(
            all,
            format!("safetensors index, metadata: {what}"),
            "a.safetensors.index.json",
            move |len| {
                format!(
                    "{{\"metadata\":{{\"x\":{}}},\"weight_map\":{{\"a\":\"a.safetensors\"}}}}",
                    of(len)
                )
                .into_bytes()
            },
        );
    }
    add(all, "mag manifest, tensors", "a.mag", |len| {
        mag_manifest("{}", &json_map(&format!("{{{MAG_TENSOR}}}"), len), "")
    });
    add(all, "mag manifest, shapes", "a.mag", |len| {
        let tensor = MAG_TENSOR.replace("[0]", &json_list("0", 2000));
        mag_manifest("{}", &json_map(&format!("{{{tensor}}}"), len), "")
    });
    add_refused(all, "mag manifest, a shape", "a.mag", |len| {
        let sizes = json_list("0", len);
        let tensor = MAG_TENSOR.replace("[0]", &sizes);
        mag_manifest("{}", &format!("{{\"a\":{{{tensor}}}}}"), "")
    });
    add(all, "safetensors, tensors", "a.safetensors", |len| {
        safetensors(&json_map(EMPTY, len))
    });
    add(all, "safetensors, metadata", "a.safetensors", |len| {
        safetensors(&format!("{{\"__metadata__\":{}}}", json_map("\"\"", len)))
    });
    add(all, "safetensors, one text", "a.safetensors", |len| {
        let text = "\\u0001".repeat(len / 6);
        safetensors(&format!("{{\"__metadata__\":{{\"a\":\"{text}\"}}}}"))
    });
    add_refused(all, "safetensors, a shape", "a.safetensors", |len| {
        let tensor = EMPTY.replace("[0]", &json_list("0", len));
        safetensors(&format!("{{\"a\":{tensor}}}"))
    });
    add(all, "safetensors, shapes", "a.safetensors", |len| {
        let tensor = EMPTY.replace("[0]", &json_list("0", 64));
        safetensors(&json_map(&tensor, len))
    });
    add(all, "safetensors, a name", "a.safetensors", |len| {
        let name = "\\u0001".repeat(len / 6);
        safetensors(&format!("{{\"{name}\":{EMPTY}}}"))
    });
    add_refused(
        all,
        "safetensors index, tensors",
        "a.safetensors.index.json",
        |len| format!("{{\"weight_map\":{}}}", json_map("\"a\"", len)).into_bytes(),
    );
    add_refused(
        all,
        "safetensors index, tensors and files",
        "a.safetensors.index.json",
        |len| {
            let count = len / 13;
            let entries: Vec<_> = (0..count)
                .map(|n| format!("\"{0}\":\"{0}\"", key(n)))
                .collect();
            format!("{{\"weight_map\":{{{}}}}}", entries.join(",")).into_bytes()
        },
    );
}

// GGUF

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

fn gguf(all: &mut Vec<Amplifier>) {
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

// MessagePack

fn primitiv_file(kind: u8, rest: &[u8]) -> Vec<u8> {
    let head = [0xce, 0, 0, 0, 0, 0xce, 0, 0, 0, 1, 0xce, 0, 0, kind, 0];
    [&head[..], rest].concat()
}

fn packed_text(text: &str) -> Vec<u8> {
    [&[0xa0 | text.len() as u8][..], text.as_bytes()].concat()
}

fn packed_number(n: usize) -> Vec<u8> {
    [&[0xce][..], &u32::try_from(n).unwrap().to_be_bytes()].concat()
}

/// A model of so many parameters, which are scalars or have so many elements, up to 63.
pub fn primitiv_parameters(count: usize, elements: usize) -> Vec<u8> {
    let dims = match elements {
        0 => vec![0x90],
        _ => [vec![0x91], packed_number(elements)].concat(),
    };
    let bytes = 4 * elements.max(1);
    let data = [vec![0xc4, bytes as u8], vec![0; bytes]].concat();
    let tensor = [dims, packed_number(1), data].concat();
    let entry = |n: usize| {
        let name = packed_text(&key(n));
        [&[0x91][..], &name, &tensor, &packed_number(0)].concat()
    };
    let entries: Vec<_> = (0..count).map(entry).collect();
    primitiv_file(3, &[packed_number(count), entries.concat()].concat())
}

fn primitiv(all: &mut Vec<Amplifier>) {
    let map = |count: usize, value: &[u8]| {
        let entries = (0..count).map(|n| [&packed_text(&key(n))[..], value].concat());
        let head = [&[0xdf][..], &u32::try_from(count).unwrap().to_be_bytes()].concat();
        [head, entries.collect::<Vec<_>>().concat()].concat()
    };
    add(all, "primitiv, whole numbers", "a.bin", move |len| {
        let numbers = map(len / 9, &[0xce, 0, 0, 0, 0]);
        primitiv_file(4, &[numbers, vec![0x80]].concat())
    });
    add(all, "primitiv, floats", "a.bin", move |len| {
        let numbers = map(len / 9, &[0xca, 0, 0, 0, 0]);
        primitiv_file(4, &[vec![0x80], numbers].concat())
    });
    const SCALAR: [u8; 12] = [0x90, 0xce, 0, 0, 0, 1, 0xc4, 4, 0, 0, 0, 0];
    let number = packed_number;
    let before = all.len();
    add_refused(all, "primitiv, parameters", "a.bin", move |len| {
        primitiv_parameters(len / (SCALAR.len() + 10), 0)
    });
    add_refused(all, "primitiv, statistics", "a.bin", move |len| {
        let count = len / (SCALAR.len() + 4);
        let entry = |n: usize| [&packed_text(&key(n))[..], &SCALAR].concat();
        let entries: Vec<_> = (0..count).map(entry).collect();
        primitiv_file(
            2,
            &[&SCALAR[..], &number(count), &entries.concat()].concat(),
        )
    });
    // More of them are refused than fit this.
    for amplifier in all.iter_mut().skip(before) {
        amplifier.room = 16 << 20;
    }
    add(all, "primitiv, keys of many parts", "a.bin", move |len| {
        let parts = 500;
        let count = len / (SCALAR.len() + 12 + parts);
        let entry = |n: usize| {
            let head = u16::try_from(parts + 1).unwrap().to_be_bytes();
            let empty = vec![0xa0; parts];
            [
                &[0xdc][..],
                &head,
                &empty,
                &packed_text(&key(n)),
                &SCALAR,
                &number(0),
            ]
            .concat()
        };
        let entries: Vec<_> = (0..count).map(entry).collect();
        primitiv_file(3, &[number(count), entries.concat()].concat())
    });
}

// NumPy

pub fn npy(header: &str) -> Vec<u8> {
    let mut out = b"\x93NUMPY\x02\0".to_vec();
    out.extend(u32::try_from(header.len()).unwrap().to_le_bytes());
    out.extend(header.as_bytes());
    out
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(u32::MAX, step)
}

fn shape(sizes: &str) -> String {
    format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({sizes}), }}\n")
}

fn empty_array() -> Vec<u8> {
    npy(&shape("0,"))
}

/// A zip archive of as many members as fit, all with the same content.
fn zip(len: usize, content: &[u8], name: impl Fn(usize) -> String) -> Vec<u8> {
    let each = 30 + 46 + 2 * name(0).len() + content.len();
    let count = len / each;
    let crc = crc32(content);
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for n in 0..=count {
        // An archive without an array is none of NumPy's.
        let (name, content) = if n == count {
            ("an array.npy".to_owned(), empty_array())
        } else {
            (name(n), content.to_vec())
        };
        let crc = if n == count { crc32(&content) } else { crc };
        let size = u32::try_from(content.len()).unwrap().to_le_bytes();
        let len = u16::try_from(name.len()).unwrap().to_le_bytes();
        let shared = [
            &[0; 4][..],
            &[0, 0, 0x21, 0],
            &crc.to_le_bytes(),
            &size,
            &size,
            &len,
            &[0, 0],
        ]
        .concat();
        directory.extend([&b"PK\x01\x02\x14\0\x14\0"[..], &shared, &[0; 10]].concat());
        directory.extend(u32::try_from(out.len()).unwrap().to_le_bytes());
        directory.extend(name.as_bytes());
        out.extend([&b"PK\x03\x04\x14\0"[..], &shared, name.as_bytes(), &content].concat());
    }
    let (at, size) = (out.len() as u64, directory.len() as u64);
    let count = count as u64 + 1;
    out.extend(directory);
    let end = out.len() as u64;
    out.extend(b"PK\x06\x06");
    out.extend(44u64.to_le_bytes());
    out.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for number in [count, count, size, at] {
        out.extend(number.to_le_bytes());
    }
    out.extend(b"PK\x06\x07\0\0\0\0");
    out.extend(end.to_le_bytes());
    out.extend(1u32.to_le_bytes());
    out.extend(b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0");
    out
}

fn numpy(all: &mut Vec<Amplifier>) {
    let shape =
        |sizes: &str| format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({sizes}), }}\n");
    add_refused(all, "npy, a shape", "a.npy", move |len| {
        npy(&shape(&"0,".repeat(len / 2)))
    });
    add_refused(all, "npy, fields", "a.npy", |len| {
        let fields = "('','|u1'),".repeat(len / 11);
        npy(&format!(
            "{{'descr': [{fields}], 'fortran_order': False, 'shape': (0,), }}\n"
        ))
    });
    add_refused(all, "npy, keys", "a.npy", |len| {
        let keys: Vec<_> = (0..len / 8).map(|n| format!("'{}':0,", key(n))).collect();
        npy(&format!("{{{}}}\n", keys.concat()))
    });
    add_refused(all, "npy, lists in lists", "a.npy", |len| {
        npy(&format!("{{'descr': {} }}\n", "[".repeat(len)))
    });
    add_refused(all, "npy, empty lists", "a.npy", |len| {
        npy(&format!("{{'descr': [{}] }}\n", "[],".repeat(len / 3)))
    });
    add(all, "npz, arrays", "a.npz", move |len| {
        zip(len, &empty_array(), |n| format!("{}.npy", key(n)))
    });
    add(all, "npz, other members", "a.npz", |len| zip(len, b"", key));
    add(all, "npz, members of no name to speak of", "a.npz", |len| {
        zip(len, b"", |n| format!("{}\u{1}\u{2}/", key(n)))
    });
    add(all, "npz, members of long names", "a.npz", |len| {
        zip(len, b"", |n| {
            format!("{}{}", key(n), "\u{1}".repeat(60_000))
        })
    });
}

// TENS

fn tens(all: &mut Vec<Amplifier>) {
    fn file(order: u32, dimension: &[u8], chunks: &[u8]) -> Vec<u8> {
        let mut out = b"TENS".to_vec();
        out.extend(0x0001_0000u32.to_le_bytes());
        out.extend(b"uint");
        for number in [1u32, 1, order, 0, 0] {
            out.extend(number.to_le_bytes());
        }
        out.extend(dimension.repeat(order as usize));
        out.extend(chunks);
        out.extend(b"DENSDATA");
        out.extend(16u64.to_le_bytes());
        out
    }
    const DIMENSION: [u8; 8] = [0, 0, 0, 0, b'a', 0, 0, 0];
    const SPARSE: [u8; 8] = [0, 0, 0, 0, b'a', 1, 0, 0];
    add(all, "TENS, chunks", "a.tensor", |len| {
        let chunk = [&b"UNKNOWN!"[..], &16u64.to_le_bytes()].concat();
        file(1, &DIMENSION, &repeated(&chunk, len).1)
    });
    add(all, "TENS, symmetries", "a.tensor", |len| {
        let chunk = [&b"SYMMETRY"[..], &24u64.to_le_bytes(), b"\0\x01xa\0\0\0\0"].concat();
        file(1, &DIMENSION, &repeated(&chunk, len).1)
    });
    for (what, dimension) in [("dimensions", DIMENSION), ("sparse dimensions", SPARSE)] {
        add_refused(all, format!("TENS, {what}"), "a.tensor", move |len| {
            file(u32::try_from(len / 8).unwrap(), &dimension, &[])
        });
        add_refused(
            all,
            format!("TENS, {what} as many as are read"),
            "a.tensor",
            move |_| file(1024, &dimension, &[]),
        );
    }
}

// mag

fn mag(all: &mut Vec<Amplifier>) {
    fn version_1(tensors: usize, values: usize, records: &[u8]) -> Vec<u8> {
        let mut out = b"MAG!\x01\0\0\0\0\0\0\0".to_vec();
        for number in [tensors, values, 0] {
            out.extend(u32::try_from(number).unwrap().to_le_bytes());
        }
        out.extend(records);
        out
    }
    let sized = |key: &str| {
        let len = u32::try_from(key.len()).unwrap();
        [&len.to_le_bytes()[..], key.as_bytes()].concat()
    };
    let spec = move |name: &str, end: usize| {
        let mut out = sized(name);
        out.extend([0; 6 * 8]);
        out.push(0);
        out.extend([0; 8]);
        out.extend((end as u64).to_le_bytes());
        out.extend([0; 4]);
        out
    };
    add(all, "mag spec-1, values", "a.mag", move |len| {
        let count = len / 19;
        let records = (0..count).map(|n| [vec![0; 12], sized(&key(n))].concat());
        let records = records.collect::<Vec<_>>().concat();
        let end = 24 + records.len() + spec("a", 0).len();
        version_1(1, count, &[records, spec("a", end)].concat())
    });
    add(all, "mag spec-1, tensors", "a.mag", move |len| {
        let count = len / spec("aaa", 0).len();
        let end = 24 + (0..count).map(|n| spec(&key(n), 0).len()).sum::<usize>();
        let records: Vec<_> = (0..count).map(|n| spec(&key(n), end)).collect();
        version_1(count, 0, &records.concat())
    });
    add(all, "mag archive-1, tensors", "a.mag", move |len| {
        let record = |n: usize, end: u64| {
            let head = [0x0100u32.to_le_bytes()].concat();
            let fields = [1, end + 4 * n as u64, 1].map(u64::to_le_bytes).concat();
            [head, fields, sized(&key(n))].concat()
        };
        let count = len / record(0, 0).len();
        let end = 24 + (0..count).map(|n| record(n, 0).len() as u64).sum::<u64>();
        let records: Vec<_> = (0..count).map(|n| record(n, end)).collect();
        version_1(count, 0, &[records.concat(), vec![0; 4 * count]].concat())
    });
    add(all, "mag snapshot, tensors", "a.mag", |len| {
        let count = u32::try_from(len / (4 + 3 + 32)).unwrap().min(65_534);
        let mut out = b"MAG!".to_vec();
        out.extend(100u32.to_le_bytes());
        out.extend([0; 8 + 4 + 4 + 4]);
        out.extend(count.to_le_bytes());
        out.extend(b"SRP!");
        out.extend(count.to_le_bytes());
        for n in 0..=count {
            out.extend((4 * n).to_le_bytes());
        }
        for n in 0..count {
            out.extend(format!("{n:04x}").as_bytes().iter().rev().take(4));
        }
        out.extend(b"MDT!DSC!");
        for n in 0..count {
            out.extend([1, 0, 0, 0]);
            out.extend(n.to_le_bytes());
            out.extend([0; 8 + 8 + 8]);
        }
        out.extend(b"BUF!");
        out
    });
}

// ONNX

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

fn onnx(all: &mut Vec<Amplifier>) {
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

// PyTorch

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

fn pytorch(all: &mut Vec<Amplifier>) {
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

// HDF5

/// A file in the first form, which has no checksums: objects behind the superblock, the root first.
fn hdf5_file(objects: &[Vec<u8>]) -> Vec<u8> {
    let objects = objects.concat();
    let mut file = b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0\x04\0\x10\0\0\0\0\0".to_vec();
    let end = 96 + objects.len() as u64;
    for address in [0, u64::MAX, end, u64::MAX, 0, 96, 0, 0, 0] {
        file.extend_from_slice(&address.to_le_bytes());
    }
    file.extend_from_slice(&objects);
    file
}

/// An object header.
fn hdf5_object(messages: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, data) in messages {
        let len = data.len().next_multiple_of(8);
        body.extend_from_slice(&kind.to_le_bytes());
        body.extend_from_slice(&(len as u16).to_le_bytes());
        body.extend_from_slice(&[0; 4]);
        body.extend_from_slice(data);
        body.resize(body.len() + len - data.len(), 0);
    }
    let mut header = vec![1, 0];
    header.extend_from_slice(&(messages.len() as u16).to_le_bytes());
    header.extend_from_slice(&1u32.to_le_bytes());
    header.extend_from_slice(&(body.len() as u32).to_le_bytes());
    header.extend_from_slice(&[0; 4]);
    header.extend_from_slice(&body);
    header
}

/// An attribute with a type and so many elements.
fn hdf5_attribute(name: &str, datatype: &[u8], count: u64, data: &[u8]) -> (u16, Vec<u8>) {
    let mut dataspace = vec![2, 1, 0, 1];
    dataspace.extend_from_slice(&count.to_le_bytes());
    let mut message = vec![3, 0];
    for len in [name.len() + 1, datatype.len(), dataspace.len()] {
        message.extend_from_slice(&(len as u16).to_le_bytes());
    }
    message.push(1);
    message.extend_from_slice(name.as_bytes());
    message.push(0);
    message.extend_from_slice(datatype);
    message.extend_from_slice(&dataspace);
    message.extend_from_slice(data);
    (12, message)
}

fn hdf5_link(name: &str, address: u64) -> (u16, Vec<u8>) {
    let mut link = vec![1, 1];
    link.extend_from_slice(&(name.len() as u16).to_le_bytes());
    link.extend_from_slice(name.as_bytes());
    link.extend_from_slice(&address.to_le_bytes());
    (6, link)
}

/// A scalar byte in its header.
fn hdf5_dataset() -> Vec<u8> {
    hdf5_object(&[
        (1, vec![2, 0, 0, 0]),
        (3, HDF5_U8.to_vec()),
        (8, vec![3, 0, 1, 0, 7]),
    ])
}

const HDF5_U8: &[u8] = &[0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0];
const HDF5_TEXT: &[u8] = &[0x19, 1, 0, 0, 16, 0, 0, 0];

fn hdf5(all: &mut Vec<Amplifier>) {
    // A header has at most 65 535 messages.
    const MOST: usize = 65_000;
    add(all, "hdf5, attributes", "a.h5", |len| {
        let count = (len / 48).min(MOST);
        let attributes: Vec<_> = (0..count)
            .map(|n| hdf5_attribute(&key(n), HDF5_U8, 1, &[1]))
            .collect();
        hdf5_file(&[hdf5_object(&attributes)])
    });
    add(all, "hdf5, lists of bytes", "a.h5", |len| {
        let data = vec![1; 60_000];
        let attributes: Vec<_> = (0..len.div_ceil(60_000))
            .map(|n| hdf5_attribute(&key(n), HDF5_U8, 60_000, &data))
            .collect();
        hdf5_file(&[hdf5_object(&attributes)])
    });
    add(all, "hdf5, lists of no text", "a.h5", |len| {
        let data = vec![0; 4000 * 16];
        let attributes: Vec<_> = (0..len.div_ceil(64_000))
            .map(|n| hdf5_attribute(&key(n), HDF5_TEXT, 4000, &data))
            .collect();
        hdf5_file(&[hdf5_object(&attributes)])
    });
    add_refused(
        all,
        "hdf5, the same long text again and again",
        "a.h5",
        |len| {
            // Behind the root, a collection of one text that every element refers to.
            let text_len = (len / 2) as u64;
            let make = |collection: u64| {
                let mut reference = (text_len as u32).to_le_bytes().to_vec();
                reference.extend_from_slice(&collection.to_le_bytes());
                reference.extend_from_slice(&1u32.to_le_bytes());
                let data = reference.repeat(4000);
                hdf5_object(&[hdf5_attribute("a", HDF5_TEXT, 4000, &data)])
            };
            let collection = 96 + make(0).len() as u64;
            let mut heap = b"GCOL\x01\0\0\0".to_vec();
            heap.extend_from_slice(&(text_len + 48).to_le_bytes());
            heap.extend_from_slice(&1u16.to_le_bytes());
            heap.extend_from_slice(&[0; 6]);
            heap.extend_from_slice(&text_len.to_le_bytes());
            heap.resize(heap.len() + text_len as usize, b'x');
            heap.resize(heap.len() + 32, 0);
            hdf5_file(&[make(collection), heap])
        },
    );
    add(all, "hdf5, datasets", "a.h5", |len| {
        let dataset = hdf5_dataset();
        let count = (len / (dataset.len() + 24)).clamp(1, MOST);
        let root = |at: u64| {
            let links = (0..count).map(|n| hdf5_link(&key(n), at + (n * dataset.len()) as u64));
            hdf5_object(&links.collect::<Vec<_>>())
        };
        let at = 96 + root(0).len() as u64;
        hdf5_file(&[root(at), dataset.repeat(count)])
    });
    add(all, "hdf5, other names of one dataset", "a.h5", |len| {
        let count = (len / 24).clamp(1, MOST);
        let root = |at: u64| {
            let links = (0..count).map(|n| hdf5_link(&key(n), at));
            hdf5_object(&links.collect::<Vec<_>>())
        };
        let at = 96 + root(0).len() as u64;
        hdf5_file(&[root(at), hdf5_dataset()])
    });
    add_refused(
        all,
        "hdf5, datasets in a group of a long name",
        "a.h5",
        |len| {
            let dataset = hdf5_dataset();
            let count = (len / (dataset.len() + 24)).clamp(4000, MOST);
            let name = "n".repeat(60_000);
            let group = |at: u64| {
                let links = (0..count).map(|n| hdf5_link(&key(n), at + (n * dataset.len()) as u64));
                hdf5_object(&links.collect::<Vec<_>>())
            };
            let root = |at: u64| hdf5_object(&[hdf5_link(&name, at)]);
            let first = 96 + root(0).len() as u64;
            let second = first + group(0).len() as u64;
            hdf5_file(&[root(first), group(second), dataset.repeat(count)])
        },
    );
}

// NetCDF

/// A name of NetCDF, or text: its length, its bytes, and zeros up to a multiple of four.
fn netcdf_name(name: &str) -> Vec<u8> {
    let mut out = (name.len() as u32).to_be_bytes().to_vec();
    out.extend_from_slice(name.as_bytes());
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// A file of CDF-1 with a list of these, and nothing in the others: which of the three it is, its tag and its entries.
fn netcdf_file(which: usize, tag: u32, entries: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"CDF\x01\0\0\0\0".to_vec();
    for list in 0..3 {
        if list == which {
            file.extend_from_slice(&tag.to_be_bytes());
            file.extend_from_slice(&(entries.len() as u32).to_be_bytes());
            file.extend_from_slice(&entries.concat());
        } else {
            file.extend_from_slice(&[0; 8]);
        }
    }
    file
}

fn netcdf(all: &mut Vec<Amplifier>) {
    add(all, "netcdf, dimensions", "a.nc", |len| {
        let entry = |n| [netcdf_name(&key(n)), vec![0, 0, 0, 1]].concat();
        let entries: Vec<_> = (0..len / 12).map(entry).collect();
        netcdf_file(0, 10, &entries)
    });
    add(all, "netcdf, attributes", "a.nc", |len| {
        let entry = |n| {
            [
                netcdf_name(&key(n)),
                vec![0, 0, 0, 1, 0, 0, 0, 1, 7, 0, 0, 0],
            ]
            .concat()
        };
        let entries: Vec<_> = (0..len / 20).map(entry).collect();
        netcdf_file(1, 12, &entries)
    });
    add(all, "netcdf, a long attribute", "a.nc", |len| {
        let mut entry = netcdf_name("a");
        entry.extend_from_slice(&[0, 0, 0, 1]);
        entry.extend_from_slice(&((len / 4 * 4) as u32).to_be_bytes());
        entry.resize(entry.len() + len / 4 * 4, 7);
        netcdf_file(1, 12, &[entry])
    });
    add(all, "netcdf, variables", "a.nc", |len| {
        // Without dimensions; each has a byte of its own behind the header.
        let count = len / 32;
        let mut entries = Vec::new();
        let header: usize = 8
            + 24
            + (0..count)
                .map(|n| netcdf_name(&key(n)).len() + 24)
                .sum::<usize>();
        for n in 0..count {
            let mut entry = netcdf_name(&key(n));
            entry.extend_from_slice(&[0; 12]);
            entry.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 4]);
            entry.extend_from_slice(&((header + 4 * n) as u32).to_be_bytes());
            entries.push(entry);
        }
        let mut file = netcdf_file(2, 11, &entries);
        file.resize(file.len() + 4 * count, 0);
        file
    });
}

// Flax

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

fn flax(all: &mut Vec<Amplifier>) {
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

// Paddle

fn paddle(all: &mut Vec<Amplifier>) {
    let before = all.len();
    let dict = |value: &'static [u8]| {
        move |len: usize| {
            let mut program = b"\x80\x04}(".to_vec();
            for n in 0.. {
                if program.len() >= len {
                    break;
                }
                let key = key(n);
                program.extend_from_slice(&[0x8c, key.len() as u8]);
                program.extend_from_slice(key.as_bytes());
                program.extend_from_slice(value);
            }
            [&program[..], b"u."].concat()
        }
    };
    let array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85C\x01b\x87R(K\x01)cnumpy\ndtype\n\x8c\x02i1\
        \x89\x88\x87R(K\x03\x8c\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89C\x01\x07tb";
    for (what, value) in [
        ("None", &b"N"[..]),
        ("empty bytes", b"C\0"),
        ("empty dicts", b"}"),
        ("texts", b"\x8c\x01a"),
        ("arrays", array),
    ] {
        add_refused(all, format!("paddle, {what}"), "a.pdparams", dict(value));
    }
    // Millions of these are refused, and some thousand are not.
    for amplifier in all.iter_mut().skip(before) {
        amplifier.room = 16 << 20;
    }
}

// TensorFlow Lite

/// A model of one subgraph in which one tensor of one buffer is listed many times.
fn tflite(all: &mut Vec<Amplifier>) {
    let before = all.len();
    add_refused(
        all,
        "tflite, the same tensor again and again",
        "a.tflite",
        |len| {
            let count = len / 4;
            let mut file = Vec::new();
            let halves = |numbers: &[u16]| {
                numbers
                    .iter()
                    .flat_map(|n| n.to_le_bytes())
                    .collect::<Vec<u8>>()
            };
            file.extend_from_slice(&52u32.to_le_bytes());
            file.extend_from_slice(b"TFL3");
            // The vtables of the model, a subgraph, a tensor and a buffer.
            file.extend(halves(&[14, 16, 4, 0, 8, 0, 12, 0]));
            file.extend(halves(&[6, 8, 4, 0]));
            file.extend(halves(&[10, 8, 0, 0, 4, 0]));
            file.extend(halves(&[6, 8, 4, 0]));
            let end = 116 + 4 * count as u32;
            for word in [
                44,
                3,
                36,
                4,
                2,
                8,
                4,
                36,
                4,
                4,
                0,
                1,
                4,
                80,
                4,
                count as u32,
            ] {
                file.extend_from_slice(&word.to_le_bytes());
            }
            for n in 0..count as u32 {
                file.extend_from_slice(&(end - 116 - 4 * n).to_le_bytes());
            }
            file.extend_from_slice(&(end - 32).to_le_bytes());
            file.extend_from_slice(&1u32.to_le_bytes());
            file
        },
    );
    // Millions of these are refused, and some thousand are not.
    for amplifier in all.iter_mut().skip(before) {
        amplifier.room = 16 << 20;
    }
}
