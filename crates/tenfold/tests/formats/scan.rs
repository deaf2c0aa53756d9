//! `scan`: whatever a program is wrapped into, it is found, or the file is not called clean.

use tenfold::Bytes;
use tenfold::ops::{Scan, ScanOptions, Verdict, scan};

use crate::support::amplifiers::numpy::crc32;
use crate::support::{Kind, cases};

fn look(bytes: &[u8], name: &str) -> Scan {
    let bytes = Bytes::copy_from_slice(bytes);
    scan(&bytes, Some(name), &ScanOptions::new()).unwrap()
}

/// Loading it runs a command.
const EVIL: &[u8] = b"cos\nsystem\n(X\x04\x00\x00\x00truetR.";

/// Programs that import something dangerous, each in another way.
const PROGRAMS: &[(&str, &[u8])] = &[
    ("GLOBAL", EVIL),
    ("INST", b"(X\x04\x00\x00\x00trueios\nsystem\n."),
    ("OBJ", b"(cos\nsystem\nX\x04\x00\x00\x00trueo."),
    (
        "NEWOBJ_EX",
        b"\x80\x04cos\nsystem\nX\x04\x00\x00\x00true\x85}\x92.",
    ),
    (
        "STACK_GLOBAL",
        b"\x8c\x02os\x94\x8c\x06system\x94\x93X\x04\x00\x00\x00true\x85R.",
    ),
    (
        "texts of protocol 0",
        b"Vo\\u0073\np0\nVsyste\\U0000006d\np1\n\x93(Vtrue\ntR.",
    ),
    (
        "strings of Python 2",
        b"S'o\\x73'\nU\x06system\x93(S'true'\ntR.",
    ),
    (
        "texts from the memo",
        b"Vos\np1_0\n0Vsystem\np11\n0g 10\ng11\n\x93(Vtrue\ntR.",
    ),
    (
        "a path of attributes",
        b"\x80\x04\x8c\x0ctorch._utils\x8c\x09os.system\x93\x8c\x04true\x85R.",
    ),
    (
        "getattr",
        b"c__builtin__\ngetattr\n(ctorch\nTensor\nVshape\ntR.",
    ),
    ("an extension", b"\x82\x01(Vtrue\ntR."),
    (
        "a state that runs",
        b"\x96\x00\x00\x00\x00\x00\x00\x00\x00(K\x01e0cos\nsystem\n(Vtrue\ntR.",
    ),
    ("without an end", b"cos\nsystem\n(X\x04\x00\x00\x00truetR"),
    (
        "torch's own",
        b"ctorch.storage\n_load_from_bytes\n(C\x00tR.",
    ),
    ("torch's modules", b"ctorch.hub\nload\n(Vx\ntR."),
];

/// What can stand in front of a program: a value of every kind, which is taken away again.
fn beginnings() -> Vec<Vec<u8>> {
    let eight = |code: u8| vec![code, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut all: Vec<Vec<u8>> = [
        &b"B\0\0\0\0"[..],
        b"C\0",
        b"F1\n",
        b"G\0\0\0\0\0\0\0\0",
        b"I1\n",
        b"J\0\0\0\0",
        b"K\0",
        b"L1L\n",
        b"M\0\0",
        b"N",
        b"S'a'\n",
        b"T\0\0\0\0",
        b"U\0",
        b"Va\n",
        b"X\0\0\0\0",
        b"(",
        b")",
        b"]",
        b"}",
        b"(l",
        b"(t",
        b"(d",
        b"\x88",
        b"\x89",
        b"\x8a\0",
        b"\x8b\0\0\0\0",
        b"\x8c\0",
        b"\x8f",
        b"(\x91",
        b"]N\x85\x30",
        b"]2\x30",
        b"N\x94",
        b"\x80\x02N",
    ]
    .iter()
    .map(|value| [value, &b"0"[..]].concat())
    .collect();
    for code in [0x8d, 0x8e, 0x96] {
        all.push([eight(code), b"0".to_vec()].concat());
    }
    // A frame is no value.
    all.push(eight(0x95));
    all
}

#[test]
fn whatever_opcode_a_pickle_begins_with_it_is_followed() {
    for beginning in beginnings() {
        for name in ["x.bin", "x", "x.pkl"] {
            let found = look(&[&beginning[..], EVIL].concat(), name);
            assert_eq!(
                found.verdict(),
                Verdict::Dangerous,
                "{beginning:02x?} {name}"
            );
        }
    }
}

#[test]
fn whatever_way_a_pickle_imports_it_is_found() {
    for (way, program) in PROGRAMS {
        for (wrapped_in, file) in wrappers(program) {
            let found = look(&file, "model.bin");
            assert_eq!(
                found.verdict(),
                Verdict::Dangerous,
                "{way}, {wrapped_in}: {found:?}"
            );
        }
    }
    // Which class it is, its own functions compute: that is not known to be harmless.
    let computed = b"cbuiltins\nstr\n(C\x02osX\x05\0\0\0asciitRcbuiltins\nstr\n(C\x06systemX\x05\0\0\0asciitR\x93(Vtrue\ntR.";
    assert_eq!(look(computed, "model.bin").verdict(), Verdict::Unknown);
}

/// Files that have a program somewhere.
fn wrappers(program: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let mut all = vec![
        ("by itself", program.to_vec()),
        (
            "behind another pickle",
            [b"\x80\x02]q\0.", program].concat(),
        ),
        ("behind one that is hard to tell", [b"].", program].concat()),
        ("in a stream of torch without protocols", stream(program)),
        ("in an array", array(1, b"'|O'", program)),
        (
            "in an array with blanks",
            array(2, &[&vec![b' '; 1 << 20][..], b"'|O'"].concat(), program),
        ),
        ("in an array with an escape", array(2, b"'|\\x4f'", program)),
        ("in a zip archive", zip(&[("archive/data.pkl", program)])),
        (
            "in the second of two",
            zip(&[("a/data.pkl", b"\x80\x02}."), ("b/data.pkl", program)]),
        ),
        (
            "among the storages",
            zip(&[("a/data.pkl", b"\x80\x02}."), ("a/data/0", program)]),
        ),
        (
            "in an array among the storages",
            zip(&[
                ("a/data.pkl", b"\x80\x02}."),
                ("a/data/x.npy", &array(1, b"'|O'", program)),
            ]),
        ),
        (
            "in a zip in a zip",
            zip(&[("x.zip", &zip(&[("y", program)]))]),
        ),
        (
            "behind a beginning",
            [b"hello world", &zip(&[("archive/data.pkl", program)])[..]].concat(),
        ),
        ("in gzip in a zip", zip(&[("x.gz", &gzip(0, program))])),
        ("in a tar archive", tar(b"0", program)),
        ("in an old tar archive", old_tar(program)),
        ("in a gzipped tar archive", gzip(0, &tar(b"0", program))),
        (
            "behind a folder of a tar archive that has a size",
            folder_with_size(program),
        ),
        (
            "in the frame of zlib",
            [b"\x78\x9c", &stored(program)[..]].concat(),
        ),
        (
            "in the second member of gzip",
            [gzip(0, b""), gzip(0, program)].concat(),
        ),
        (
            "behind zeros of gzip",
            [gzip(0, b""), vec![0; 7], gzip(0, program)].concat(),
        ),
    ];
    for flags in 1..32 {
        all.push(("in gzip with flags", gzip(flags, program)));
    }
    all
}

/// PyTorch's stream, whose first pickle does not say its protocol.
fn stream(program: &[u8]) -> Vec<u8> {
    let magic = b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
    [
        &magic[..],
        b"\x80\x02M\xe9\x03.\x80\x02}.",
        program,
        b"\x80\x02].",
    ]
    .concat()
}

fn array(version: u8, kind: &[u8], program: &[u8]) -> Vec<u8> {
    let header = [
        b"{'descr': ",
        kind,
        b", 'fortran_order': False, 'shape': (1,), }\n",
    ]
    .concat();
    let len = u32::try_from(header.len()).unwrap().to_le_bytes();
    let len = if version == 1 { &len[..2] } else { &len[..] };
    [b"\x93NUMPY", &[version, 0][..], len, &header, program].concat()
}

/// A deflated stream of one stored block.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let len = u16::try_from(bytes.len()).unwrap();
    [&[1][..], &len.to_le_bytes(), &(!len).to_le_bytes(), bytes].concat()
}

/// A member of gzip, with fields as its flags say.
fn gzip(flags: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3];
    for (flag, field) in [
        (4, &b"\x04\0abcd"[..]),
        (8, b"name\0"),
        (16, b"comment\0"),
        (2, b"\0\0"),
    ] {
        if flags & flag != 0 {
            out.extend_from_slice(field);
        }
    }
    out.extend(stored(bytes));
    out.extend(crc32(bytes).to_le_bytes());
    out.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
    out
}

fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut directory = Vec::new();
    for (name, content) in members {
        let at = u32::try_from(out.len()).unwrap();
        let len = u32::try_from(content.len()).unwrap().to_le_bytes();
        let said = [
            &b"\x0a\0\0\0\0\0\0\0\x21\0"[..],
            &crc32(content).to_le_bytes(),
            &len,
            &len,
            &u16::try_from(name.len()).unwrap().to_le_bytes(),
            b"\0\0",
        ]
        .concat();
        out.extend([b"PK\x03\x04", &said[..], name.as_bytes(), content].concat());
        let place = at.to_le_bytes();
        directory.extend(
            [
                b"PK\x01\x02\x0a\0",
                &said[..],
                &[0; 10],
                &place,
                name.as_bytes(),
            ]
            .concat(),
        );
    }
    let count = u16::try_from(members.len()).unwrap().to_le_bytes();
    let len = u32::try_from(directory.len()).unwrap().to_le_bytes();
    let at = u32::try_from(out.len()).unwrap().to_le_bytes();
    out.extend(directory);
    out.extend(
        [
            b"PK\x05\x06\0\0\0\0",
            &count[..],
            &count,
            &len,
            &at,
            b"\0\0",
        ]
        .concat(),
    );
    out
}

/// The header of a member, without the mark of newer archives.
fn header(name: &[u8], kind: &[u8; 1], size: usize) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..name.len()].copy_from_slice(name);
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    header[148..156].fill(b' ');
    header[156..157].copy_from_slice(kind);
    seal(&mut header);
    header
}

fn seal(header: &mut [u8]) {
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn old_tar(program: &[u8]) -> Vec<u8> {
    let header = header(b"pickle", b"0", program.len());
    [header, padded(program), vec![0; 1024]].concat()
}

fn tar(kind: &[u8; 1], program: &[u8]) -> Vec<u8> {
    let mut header = header(b"pickle", kind, program.len());
    header[257..265].copy_from_slice(b"ustar\x0000");
    seal(&mut header);
    [header, padded(program), vec![0; 1024]].concat()
}

/// Python's `tarfile` looks for the next header right behind a folder, others behind its size.
fn folder_with_size(program: &[u8]) -> Vec<u8> {
    let member = tar(b"0", program);
    let folder = header(b"folder", b"5", member.len());
    [folder, member].concat()
}

#[test]
fn what_looks_like_an_archive_is_a_pickle_all_the_same() {
    // A text of 520 bytes in which a tar archive seems to begin.
    let mut text = vec![b'A'; 520];
    text[257 - 7..262 - 7].copy_from_slice(b"ustar");
    let pickle = [&b"\x80\x02X\x08\x02\0\0"[..], &text, b"0", EVIL].concat();
    assert_eq!(look(&pickle, "model.bin").verdict(), Verdict::Dangerous);
    // The same with the checksum of a header.
    let mut block = [&b"\x80\x02X\x08\x02\0\0"[..], &text].concat();
    block[124..136].copy_from_slice(b"00000000000\0");
    seal(&mut block[..512]);
    let pickle = [&block[..], b"0", EVIL].concat();
    assert_eq!(look(&pickle, "model.bin").verdict(), Verdict::Dangerous);
}

#[test]
fn what_cannot_be_looked_into_is_not_called_clean() {
    let damaged = |mut bytes: Vec<u8>, at: usize| {
        bytes[at] ^= 0xff;
        bytes
    };
    let zipped = zip(&[("a", EVIL)]);
    // As `lzma.compress(b"", format=lzma.FORMAT_ALONE)` begins.
    let lzma = b"\x5d\x00\x00\x80\x00\xff\xff\xff\xff\xff\xff\xff\xff\x00\x83\xff\xfb\xff\xff\xc0";
    for (what, file) in [
        ("7z", b"7z\xbc\xaf\x27\x1c\0\x04".to_vec()),
        ("bzip2", b"BZh91AY&SY".to_vec()),
        ("xz", b"\xfd7zXZ\0\0\x04".to_vec()),
        ("LZMA", lzma.to_vec()),
        ("zstd", b"\x28\xb5\x2f\xfd\x20\0".to_vec()),
        (
            "zstd behind a frame to skip",
            b"\x50\x2a\x4d\x18\0\0\0\0\x28\xb5\x2f\xfd".to_vec(),
        ),
        ("lz4", b"\x04\x22\x4d\x18\x64\x40".to_vec()),
        ("old joblib", b"ZF0x19".to_vec()),
        ("gzip that ends early", gzip(0, b"text")[..12].to_vec()),
        (
            "gzip with something behind it",
            [gzip(0, b"text"), b"more".to_vec()].concat(),
        ),
        (
            "a zip archive without its end",
            zipped[..zipped.len() - 30].to_vec(),
        ),
        (
            "a zip archive with more behind it",
            [&zipped[..], b"more"].concat(),
        ),
        (
            "the same behind a beginning",
            [b"hello", &zipped[..], b"more"].concat(),
        ),
        (
            "a damaged directory",
            damaged(zipped.clone(), 30 + 1 + EVIL.len()),
        ),
        ("a sparse member", tar(b"S", b"text")),
        (
            "a tar archive that goes on as none",
            [&tar(b"0", b"text")[..], &[b'x'; 512]].concat(),
        ),
    ] {
        let found = look(&file, "model.bin");
        assert!(found.verdict() >= Verdict::Unknown, "{what}: {found:?}");
        assert!(!found.unread.is_empty(), "{what}: {found:?}");
    }
}

#[test]
fn elements_of_tensors_are_no_pickles() {
    let mut random = crate::support::random::Rng::new(15);
    for round in 0..2000 {
        let bytes = random.bytes(2000);
        let found = look(
            &zip(&[("a/data.pkl", b"\x80\x02}."), ("a/data/0", &bytes)]),
            "model.pt",
        );
        let begins = matches!(bytes.as_slice(), [0x80, 0..=5, ..]);
        assert!(
            begins || found.verdict() == Verdict::Harmless,
            "{round}: {found:?}"
        );
    }
    for text in [
        "",
        "a,b\n1,2\n",
        "import numpy\n",
        "# Title\n\ncontent\n",
        "(a) ... b\n",
        "{\"a\": [1]}",
    ] {
        assert_eq!(
            look(text.as_bytes(), "text").verdict(),
            Verdict::Harmless,
            "{text:?}"
        );
        assert!(look(text.as_bytes(), "text").pickles.is_empty(), "{text:?}");
    }
}

#[test]
fn every_hostile_file_is_found_and_every_sound_one_is_clean() {
    for case in cases(Kind::Reject)
        .into_iter()
        .filter(|case| case.format == "pytorch")
    {
        let Some(file) = case.file() else { continue };
        let found = look(&file.bytes, &file.name);
        if case.title().contains("/evil_") {
            assert_eq!(found.verdict(), Verdict::Dangerous, "{}", case.title());
        }
        if let Some(named) = case.text("message_must_name") {
            let imports = found.pickles.iter().flat_map(|pickle| &pickle.imports);
            let mut globals = imports.map(|import| format!("{}.{}", import.module, import.name));
            assert!(
                globals.any(|global| global == named),
                "{}: {named}",
                case.title()
            );
        }
    }
    for case in cases(Kind::Valid)
        .into_iter()
        .filter(|case| case.format == "pytorch")
    {
        let Some(file) = case.file() else { continue };
        let found = look(&file.bytes, &file.name);
        assert_eq!(
            found.verdict(),
            Verdict::Harmless,
            "{}: {found:?}",
            case.title()
        );
        assert!(!found.pickles.is_empty(), "{}", case.title());
    }
}

#[test]
fn a_scan_goes_on_behind_what_it_cannot_follow() {
    let joblib = b"\x80\x03]q\0.\x80\x03cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81}b\xff\xfe\xfdcos\nsystem\nX\x01\0\0\0aR.";
    assert_eq!(look(joblib, "a.joblib").verdict(), Verdict::Dangerous);
    let texts = b"\x80\x04\xff\x8c\x05posix\x94X\x06\0\0\0systemq\x01\x93.";
    assert_eq!(look(texts, "a.joblib").verdict(), Verdict::Dangerous);
    let plain = look(b"\x80\x02].", "");
    assert_eq!(
        (plain.verdict(), plain.pickles.len()),
        (Verdict::Harmless, 1)
    );
}
