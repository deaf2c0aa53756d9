//! NumPy: headers, and archives of arrays.

use super::*;

pub fn npy(header: &str) -> Vec<u8> {
    let mut out = b"\x93NUMPY\x02\0".to_vec();
    out.extend(u32::try_from(header.len()).unwrap().to_le_bytes());
    out.extend(header.as_bytes());
    out
}

pub(crate) fn crc32(bytes: &[u8]) -> u32 {
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
pub(super) fn zip(len: usize, content: &[u8], name: impl Fn(usize) -> String) -> Vec<u8> {
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

pub(super) fn fill(all: &mut Vec<Amplifier>) {
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
