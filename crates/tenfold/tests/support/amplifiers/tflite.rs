//! TensorFlow Lite.

use super::*;

/// A model of one subgraph in which one tensor of one buffer is listed many times.
pub(super) fn fill(all: &mut Vec<Amplifier>) {
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
