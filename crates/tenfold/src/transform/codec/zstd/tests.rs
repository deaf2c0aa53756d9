//! Both decoders against the same streams: what one reads the other reads, what one refuses the other refuses.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

use bytes::Bytes;

use super::*;

type Decode = fn(&[u8], usize) -> Result<Vec<u8>>;

/// Decodes a whole stream, as many bytes at a time.
const DECODERS: [(&str, Decode); 2] = [("C", decode_with_c), ("Rust", decode_in_rust)];

fn decode_with_c(stream: &[u8], step: usize) -> Result<Vec<u8>> {
    let mut decoder = with_c::Decoder::new(Input::Memory(Bytes::copy_from_slice(stream)))?;
    drain(step, |out| decoder.read(out))
}

fn decode_in_rust(stream: &[u8], step: usize) -> Result<Vec<u8>> {
    let mut decoder = in_rust::Decoder::new(Input::Memory(Bytes::copy_from_slice(stream)))?;
    drain(step, |out| decoder.read(out))
}

fn drain(step: usize, mut read: impl FnMut(&mut [u8]) -> Result<usize>) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    let mut buffer = vec![0; step];
    loop {
        match read(&mut buffer)? {
            0 => return Ok(all),
            n => all.extend_from_slice(&buffer[..n]),
        }
    }
}

fn encode(level: i32, piece: &[u8]) -> Result<Vec<u8>> {
    super::encode(level, piece, &|| Ok(()))
}

/// Compressible, and different everywhere.
fn sample(len: u32) -> Vec<u8> {
    (0..len)
        .map(|n| ((n / 7) ^ (n >> 9)).to_le_bytes()[0])
        .collect()
}

fn skippable(len: u32) -> Vec<u8> {
    let mut frame = 0x184d_2a53u32.to_le_bytes().to_vec();
    frame.extend_from_slice(&len.to_le_bytes());
    frame.resize(frame.len() + len as usize, 0xab);
    frame
}

/// A frame as a streaming writer makes it: without its content's size, with or without a checksum.
fn streamed(content: &[u8], checksum: bool) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(checksum).unwrap();
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn assert_all_decode(stream: &[u8], expected: &[u8], what: &str) {
    for (name, decode) in DECODERS {
        for step in [1, 7, 4096, 1 << 20] {
            let found =
                decode(stream, step).unwrap_or_else(|error| panic!("{what}, {name}: {error}"));
            assert!(found == expected, "{what}, {name}, {step} bytes at a time");
        }
    }
}

fn assert_all_refuse(stream: &[u8], what: &str) {
    for (name, decode) in DECODERS {
        match decode(stream, 4096) {
            Ok(found) => panic!("{what}, {name}: {} bytes", found.len()),
            Err(error) => assert_eq!(error.rule(), "file.zstd", "{what}, {name}: {error}"),
        }
    }
}

#[test]
fn frames_follow_each_other_and_skippable_ones_are_passed_over() {
    let (a, b) = (sample(100_000), sample(777));
    let (frame_a, frame_b) = (encode(3, &a).unwrap(), streamed(&b, false));
    let both = [a.as_slice(), &b].concat();
    assert_all_decode(
        &[frame_a.clone(), frame_b.clone()].concat(),
        &both,
        "two frames",
    );
    let with_skips = [
        skippable(0),
        frame_a,
        skippable(5000),
        skippable(3),
        frame_b,
        skippable(9),
    ];
    assert_all_decode(&with_skips.concat(), &both, "skippable frames");
    assert_all_decode(&skippable(12), &[], "nothing but a skippable frame");
    assert_all_decode(&encode(3, &[]).unwrap(), &[], "an empty frame");
}

#[test]
fn every_level_and_kind_of_frame_is_read() {
    let content = sample(300_000);
    for level in [-5, 1, 9, 19] {
        assert_all_decode(&encode(level, &content).unwrap(), &content, "a level");
    }
    assert_all_decode(&streamed(&content, true), &content, "streamed");
    assert_all_decode(&streamed(&[7; 200_000], true), &[7; 200_000], "one value");
}

#[test]
fn a_stream_that_ends_inside_of_a_frame_is_refused() {
    let frame = encode(3, &sample(3000)).unwrap();
    for len in 1..frame.len() {
        assert_all_refuse(&frame[..len], &format!("{len} of {} bytes", frame.len()));
    }
    let skip = skippable(20);
    for len in 1..skip.len() {
        assert_all_refuse(&skip[..len], &format!("{len} bytes of a skippable frame"));
    }
}

#[test]
fn garbage_behind_a_frame_is_refused() {
    let mut stream = encode(3, &sample(100)).unwrap();
    stream.extend_from_slice(b"garbage");
    assert_all_refuse(&stream, "garbage");
    assert_all_refuse(b"not a frame at all", "no frame");
}

#[test]
fn a_frame_with_a_wrong_checksum_is_refused() {
    let mut frame = encode(3, &sample(1000)).unwrap();
    *frame.last_mut().unwrap() ^= 1;
    assert_all_refuse(&frame, "a wrong checksum");
}

#[test]
fn a_window_that_no_honest_frame_asks_for_is_refused() {
    // Magic, descriptor without a content size, a window of 2^(10 + 21) bytes, and a last raw block of one byte.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 0x09, 0, 0, 0x55];
    assert_all_refuse(&frame, "a window of 2 GiB");
    // One segment whose content is said to have 2^40 bytes.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
    frame.extend_from_slice(&(1u64 << 40).to_le_bytes());
    frame.extend_from_slice(&[0x09, 0, 0, 0x55]);
    assert_all_refuse(&frame, "a segment of 1 TiB");
}

#[test]
fn any_damage_is_an_error_or_gives_something_and_is_the_same_to_both() {
    let frame = encode(3, &sample(2000)).unwrap();
    for at in 0..frame.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut damaged = frame.clone();
            damaged[at] ^= change;
            // Where both succeed, they agree; the checksum leaves little room for that.
            if let [Ok(a), Ok(b)] = DECODERS.map(|(_, decode)| decode(&damaged, 4096)) {
                assert!(a == b, "byte {at} ^ {change:#x}");
            }
        }
    }
}

#[test]
fn one_frame_fills_its_place_exactly() {
    let content = sample(5000);
    let frame = encode(3, &content).unwrap();
    type DecodeFrame = fn(&[u8], &mut [u8]) -> Result<()>;
    let decoders: [(&str, DecodeFrame); 2] =
        [("C", with_c::decode_frame), ("Rust", in_rust::decode_frame)];
    for (name, decode) in decoders {
        let mut exact = vec![0; 5000];
        decode(&frame, &mut exact).unwrap();
        assert!(exact == content, "{name}");
        assert!(decode(&frame, &mut vec![0; 4999]).is_err(), "{name}");
        assert!(decode(&frame, &mut vec![0; 5001]).is_err(), "{name}");
        assert!(decode(&[], &mut [0]).is_err(), "{name}");
        assert!(
            decode(&frame[..frame.len() - 1], &mut exact).is_err(),
            "{name}"
        );
    }
}
