//! Archives larger than what tests can write: sizes and places of 64 bits.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

use super::*;
use crate::error::Error;

/// Bytes at places, and zeros everywhere else.
struct Sparse {
    len: u64,
    pieces: Vec<(u64, Vec<u8>)>,
}

impl Source for Sparse {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        if range.end > self.len || range.end - range.start > 1 << 20 {
            return Err(Error::argument(format!("{range:?} of {}", self.len)));
        }
        let mut bytes = vec![0; usize::try_from(range.end - range.start).unwrap()];
        for (at, piece) in &self.pieces {
            for (place, byte) in (*at..).zip(piece) {
                if range.contains(&place) {
                    bytes[usize::try_from(place - range.start).unwrap()] = *byte;
                }
            }
        }
        Ok(bytes.into())
    }
}

/// An archive of stored members of zeros.
fn archive(sizes: &[u64], align: u64) -> Sparse {
    let mut pieces = Vec::new();
    let mut members = Vec::new();
    let mut at = 0;
    for (n, &size) in sizes.iter().enumerate() {
        let header = LocalHeader::aligned(format!("größe {n}"), at, size >= u32::MAX.into(), align);
        let bytes = header.encode(7, size, size);
        assert_eq!(bytes.len() as u64, header.len());
        assert_eq!((at + header.len()) % align, 0);
        pieces.push((at, bytes));
        members.push((header.clone(), size, at));
        at += header.len() + size;
    }
    let records = members.iter().map(|(header, size, at)| CentralRecord {
        header,
        crc32: 7,
        compressed: *size,
        size: *size,
        local_at: *at,
    });
    let tail = encode_directory(records, at);
    let len = at + tail.len() as u64;
    pieces.push((at, tail));
    Sparse { len, pieces }
}

#[test]
fn members_and_archives_of_more_than_4_gib_are_written_and_located() {
    let sizes = [
        10,
        5 << 30,
        3,
        u64::from(u32::MAX),
        u64::from(u32::MAX) - 1,
        0,
        1,
    ];
    let source = archive(&sizes, 64);
    let zip = Zip::open(&source, 1 << 20).unwrap().unwrap();
    let found: Vec<_> = zip.members.iter().map(|member| member.size).collect();
    assert_eq!(found, sizes);
    assert!(zip.remarks.is_empty(), "{:?}", zip.remarks);
    for (n, member) in zip.members.iter().enumerate() {
        assert_eq!(member.name, format!("größe {n}"));
        assert_eq!(member.data.start % 64, 0);
        assert_eq!(member.data.end - member.data.start, member.size);
    }
    assert_eq!(zip.tail.end, source.len);
}

#[test]
fn small_archives_have_nothing_of_64_bits() {
    let source = archive(&[10, 20], 64);
    let holds = |sign: &[u8]| {
        let mut pieces = source.pieces.iter();
        pieces.any(|(_, bytes)| bytes.windows(4).any(|found| found == sign))
    };
    assert!(holds(b"PK\x05\x06") && !holds(b"PK\x06\x06") && !holds(b"PK\x06\x07"));
    let zip = Zip::open(&source, 1 << 20).unwrap().unwrap();
    assert_eq!(zip.members.len(), 2);
}

#[test]
fn exactly_65535_members_are_read_with_and_without_the_larger_end_record() {
    let sizes = vec![0; 65535];
    let mut source = archive(&sizes, 1);
    source.pieces = vec![(0, flatten(&source))];
    assert_eq!(open_whole(&source).unwrap(), 65535);
    // As CPython writes it: without the record and its locator, which stand in front of the last 22 bytes.
    let whole = &mut source.pieces[0].1;
    let end = whole.len() - 22;
    whole.drain(end - 76..end);
    source.len -= 76;
    assert_eq!(open_whole(&source).unwrap(), 65535);
}

fn flatten(source: &Sparse) -> Vec<u8> {
    let mut whole = vec![0; usize::try_from(source.len).unwrap()];
    for (at, piece) in &source.pieces {
        let at = usize::try_from(*at).unwrap();
        whole[at..at + piece.len()].copy_from_slice(piece);
    }
    whole
}

fn open_whole(source: &Sparse) -> Result<usize> {
    let bytes = Bytes::from(source.pieces[0].1.clone());
    Ok(Zip::open(&bytes, 1 << 30)?.unwrap().members.len())
}

#[test]
fn an_archive_without_its_end_is_told_from_a_damaged_one() {
    let mut source = archive(&[10], 64);
    source.pieces = vec![(0, flatten(&source))];
    let whole = Bytes::from(source.pieces[0].1.clone());
    let cut = whole.slice(..whole.len() - 1);
    assert!(Zip::open(&cut, 1 << 20).unwrap().is_none());
    assert_eq!(no_end(&cut).rule(), "zip.end");
    let mut damaged = whole.to_vec();
    let directory = damaged.windows(4).position(|four| four == b"PK\x01\x02");
    damaged[directory.unwrap()] = b'?';
    let error = Zip::open(&Bytes::from(damaged), 1 << 20).err().unwrap();
    assert_eq!(error.rule(), "zip.directory");
}

#[test]
fn the_limit_for_headers_bounds_the_directory() {
    let error = Zip::open(&archive(&[1], 64), 16).err().unwrap();
    assert_eq!(error.rule(), "zip.limit");
}
