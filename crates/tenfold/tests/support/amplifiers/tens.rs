//! TENS.

use super::*;

pub(super) fn fill(all: &mut Vec<Amplifier>) {
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
