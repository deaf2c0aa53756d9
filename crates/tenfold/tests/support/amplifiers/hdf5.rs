//! HDF5.

use super::*;

/// A file in the first form, which has no checksums: objects behind the superblock, the root first.
pub fn hdf5_file(objects: &[Vec<u8>]) -> Vec<u8> {
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
pub fn hdf5_object(messages: &[(u16, Vec<u8>)]) -> Vec<u8> {
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
pub fn hdf5_attribute(name: &str, datatype: &[u8], count: u64, data: &[u8]) -> (u16, Vec<u8>) {
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

pub fn hdf5_link(name: &str, address: u64) -> (u16, Vec<u8>) {
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

pub const HDF5_U8: &[u8] = &[0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0];
pub const HDF5_TEXT: &[u8] = &[0x19, 1, 0, 0, 16, 0, 0, 0];

pub(super) fn fill(all: &mut Vec<Amplifier>) {
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
