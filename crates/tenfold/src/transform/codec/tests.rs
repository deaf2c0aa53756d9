//! Streams of declared length, and frames with a table of them.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

use bytes::Bytes;

use super::frames::{TABLE_END, TABLE_FRAME};
use super::*;
use crate::io::{Limits, Source};
use crate::model::{DType, Endian, Part, Payload, Role, SourceId};
use crate::transform::{Data, View, as_size};

fn sample(len: u32) -> Vec<u8> {
    (0..len)
        .map(|n| ((n / 5) ^ (n >> 8)).to_le_bytes()[0])
        .collect()
}

/// Reads a part that is stored compressed, as numbers of a type in a byte order.
fn read_as(stored: &[u8], codec: Codec, len: u64, dtype: DType, endian: Endian) -> Result<Vec<u8>> {
    let sources: [Arc<dyn Source>; 1] = [Arc::new(Bytes::copy_from_slice(stored))];
    let limits = Limits::default();
    let data = Data::new(&sources, &limits);
    let payload = Payload::Encoded {
        source: SourceId::MAIN,
        range: 0..stored.len() as u64,
        codec,
        len,
    };
    let mut part = Part::new(Role::Values, dtype, payload);
    part.endian = endian;
    View::part(data, &part, dtype, Endian::Little)?.collect(u64::MAX)
}

fn read(stored: &[u8], codec: Codec, len: u64) -> Result<Vec<u8>> {
    read_as(stored, codec, len, DType::U8, Endian::Little)
}

fn encode(level: i32, piece: &[u8]) -> Result<Vec<u8>> {
    super::encode(level, piece, &|| Ok(()))
}

const ZSTD: Codec = Codec::Zstd { level: 0 };
const SEEKABLE: Codec = Codec::ZstdSeekable { level: 0, frame: 0 };

/// Frames of `frame` decoded bytes with their table after them.
fn seekable(content: &[u8], frame: usize) -> Vec<u8> {
    let mut stored = Vec::new();
    let mut sizes = Vec::new();
    for piece in content.chunks(frame) {
        let encoded = encode(3, piece).unwrap();
        sizes.push((
            u32::try_from(encoded.len()).unwrap(),
            u32::try_from(piece.len()).unwrap(),
        ));
        stored.extend_from_slice(&encoded);
    }
    stored.extend_from_slice(&seek_table(&sizes));
    stored
}

fn assert_refused(found: Result<Vec<u8>>, expected: &str) {
    let error = found.unwrap_err();
    assert_eq!(error.rule(), "file.zstd", "{error}");
    assert!(error.message().contains(expected), "{error}");
    assert!(error.range().is_some(), "{error} has no place");
}

#[test]
fn a_stream_gives_exactly_the_declared_bytes() {
    let content = sample(10_000);
    let stored = encode(3, &content).unwrap();
    assert_eq!(read(&stored, ZSTD, 10_000).unwrap(), content);
    assert_refused(read(&stored, ZSTD, 9_999), "more than the 9999 bytes");
    assert_refused(
        read(&stored, ZSTD, 10_001),
        "decodes to 10000 bytes, but declares 10001",
    );
    assert_refused(read(&stored, ZSTD, 0), "more than the 0 bytes");
    assert_refused(read(&stored, ZSTD, 1 << 60), "cannot decode to");
    let cut = &stored[..stored.len() - 1];
    assert_refused(read(cut, ZSTD, 10_000), "damaged");
    let more = [stored.as_slice(), b"!"].concat();
    assert_refused(read(&more, ZSTD, 10_000), "damaged");
}

#[test]
fn nothing_is_stored_as_a_frame_not_as_nothing() {
    assert_refused(read(&[], ZSTD, 0), "no compressed bytes");
    assert_refused(read(&[], SEEKABLE, 0), "no compressed bytes");
    assert_eq!(read(&encode(3, &[]).unwrap(), ZSTD, 0).unwrap(), [0u8; 0]);
    assert_eq!(read(&seekable(&[], 100), SEEKABLE, 0).unwrap(), [0u8; 0]);
}

#[test]
fn a_stream_longer_than_a_piece_is_given_in_pieces() {
    let content = sample(9 << 20);
    let frames: Vec<u8> = content
        .chunks(3_000_001)
        .flat_map(|piece| encode(1, piece).unwrap())
        .collect();
    assert!(read(&frames, ZSTD, 9 << 20).unwrap() == content);
    let table = seekable(&content, 1 << 20);
    assert!(read(&table, SEEKABLE, 9 << 20).unwrap() == content);
}

#[test]
fn frames_can_be_entered_at_any_of_them() {
    let content = sample(10_000);
    for frame in [1000, 999, 4096, 10_000, 20_000] {
        let stored = seekable(&content, frame);
        assert_eq!(read(&stored, SEEKABLE, 10_000).unwrap(), content, "{frame}");
        // A stream's reader passes over the table.
        assert_eq!(read(&stored, ZSTD, 10_000).unwrap(), content, "{frame}");
        let input = Input::Memory(stored.into());
        let frames = Frames::new(input, SEEKABLE, 10_000).unwrap();
        let step = as_size(frames.frame_len()).unwrap();
        for at in (0..10_000).step_by(step) {
            let mut out = vec![0; step.min(10_000 - at)];
            frames.read_into(at as u64, &mut out).unwrap();
            assert_eq!(out, content[at..at + out.len()], "{frame} at {at}");
        }
    }
}

#[test]
fn numbers_that_cross_frames_are_put_together() {
    let content = sample(24_000);
    for width in [2, 4, 8] {
        let dtype = [DType::U16, DType::U32, DType::U64][width / 4];
        let swapped: Vec<u8> = content
            .chunks(width)
            .flat_map(|number| number.iter().rev().copied())
            .collect();
        for frame in [1000, 1001, 1003, 7] {
            let stored = seekable(&swapped, frame);
            let found = read_as(&stored, SEEKABLE, 24_000, dtype, Endian::Big).unwrap();
            assert!(found == content, "{dtype} in frames of {frame}");
        }
    }
}

#[test]
fn a_table_with_checksums_of_its_frames_is_read() {
    let content = sample(2_500);
    let mut stored = Vec::new();
    let mut entries = Vec::new();
    for piece in content.chunks(1000) {
        let encoded = encode(3, piece).unwrap();
        entries.extend_from_slice(&u32::try_from(encoded.len()).unwrap().to_le_bytes());
        entries.extend_from_slice(&u32::try_from(piece.len()).unwrap().to_le_bytes());
        // The frame's own checksum, which stands at its end.
        entries.extend_from_slice(&encoded[encoded.len() - 4..]);
        stored.extend_from_slice(&encoded);
    }
    stored.extend_from_slice(&TABLE_FRAME.to_le_bytes());
    stored.extend_from_slice(&(3 * 12 + 9u32).to_le_bytes());
    stored.extend_from_slice(&entries);
    stored.extend_from_slice(&3u32.to_le_bytes());
    stored.push(0x80);
    stored.extend_from_slice(&TABLE_END.to_le_bytes());
    assert_eq!(read(&stored, SEEKABLE, 2_500).unwrap(), content);
}

#[test]
fn a_table_that_lies_is_refused() {
    let content = sample(2_500);
    let good = seekable(&content, 1000);
    let len = good.len();
    let table = len - (8 + 3 * 8 + 9);
    let changed = |at: usize, bytes: &[u8]| {
        let mut stored = good.clone();
        stored[at..at + bytes.len()].copy_from_slice(bytes);
        read(&stored, SEEKABLE, 2_500)
    };
    let number = |value: u32| value.to_le_bytes();

    assert_refused(read(&good[..len - 1], SEEKABLE, 2_500), "no seek table");
    assert_refused(read(&good[..3], SEEKABLE, 3), "no seek table");
    assert_refused(changed(len - 4, &number(0)), "no seek table");
    assert_refused(changed(len - 9, &number(u32::MAX)), "do not fit");
    assert_refused(changed(len - 9, &number(2)), "does not begin");
    assert_refused(changed(table, &number(0)), "does not begin");
    assert_refused(changed(table + 4, &number(1)), "does not begin");
    // Stored and decoded sizes of single frames.
    assert_refused(changed(table + 8, &number(0)), "frame 0");
    assert_refused(changed(table + 8 + 4, &number(999)), "frame 1");
    assert_refused(changed(table + 8 + 12, &number(1001)), "frame 1");
    assert_refused(changed(table + 8 + 20, &number(1001)), "frame 2");
    assert_refused(changed(table + 8 + 20, &number(499)), "covers");
    assert_refused(changed(table + 8, &number(1)), "covers");
    assert_refused(read(&good, SEEKABLE, 2_501), "covers");
    assert_refused(read(&good, SEEKABLE, 2_499), "covers");
}

#[test]
fn a_frame_that_differs_from_its_entry_is_refused_with_its_place() {
    let content = sample(3_000);
    let frames: Vec<_> = content
        .chunks(1000)
        .map(|piece| encode(3, piece).unwrap())
        .collect();
    // The table says equal frames; the second holds less.
    let short = encode(3, &content[1000..1999]).unwrap();
    let mut stored = [frames[0].as_slice(), &short, &frames[2]].concat();
    let sizes = [&frames[0], &short, &frames[2]].map(|frame| {
        let size = u32::try_from(frame.len()).unwrap();
        (size, 1000)
    });
    stored.extend_from_slice(&seek_table(&sizes));
    let error = read(&stored, SEEKABLE, 3_000).unwrap_err();
    let start = frames[0].len() as u64;
    assert_eq!(
        error.range().unwrap().1,
        start..start + short.len() as u64,
        "{error}"
    );
}

#[test]
fn a_frame_too_large_to_be_held_is_refused() {
    let table = seek_table(&[(600, 17 << 20)]);
    let stored = [vec![0; 600], table].concat();
    assert_refused(read(&stored, SEEKABLE, 17 << 20), "frame 0");
}

#[cfg(feature = "deflate")]
#[test]
#[allow(clippy::type_complexity)] // rows
fn a_codec_asks_whether_to_go_on_and_stops_where_it_is() {
    let piece = sample(4 << 20);
    let stream = deflate_zlib(&piece, 1, &|| Ok(())).unwrap();
    let codecs: [(&str, &dyn Fn(Check<'_>) -> Result<Vec<u8>>); 4] = [
        ("zstd", &|check| super::encode(1, &piece, check)),
        ("deflate", &|check| encode_deflate(1, &piece, check)),
        ("zlib", &|check| deflate_zlib(&piece, 1, check)),
        ("inflate", &|check| inflate_zlib(&stream, 4 << 20, check)),
    ];
    for (what, codec) in codecs {
        let asked = core::cell::Cell::new(0);
        let whole = codec(&|| {
            asked.set(asked.get() + 1);
            Ok(())
        });
        let len = if what == "inflate" {
            stream.len()
        } else {
            piece.len()
        };
        assert!(asked.get() >= len.div_ceil(STEP), "{what}: {}", asked.get());
        asked.set(0);
        let stopped = codec(&|| {
            asked.set(asked.get() + 1);
            if asked.get() < 2 {
                Ok(())
            } else {
                Err(Error::canceled())
            }
        });
        assert_eq!(
            stopped.unwrap_err().kind(),
            crate::ErrorKind::Canceled,
            "{what}"
        );
        assert_eq!(asked.get(), 2, "{what}");
        // What was stopped leaves nothing behind for the next.
        assert!(codec(&|| Ok(())).unwrap() == whole.unwrap(), "{what}");
    }
}
