//! CRC-32, as zip files have it.

#[cfg(any(target_family = "wasm", test))]
use super::crc::by_table;
use super::crc::times_x;

/// The polynomial, the highest power in the lowest bit.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// The sum of what it has seen.
#[derive(Clone, Copy, Default)]
pub(crate) struct Crc32(u32);

impl Crc32 {
    /// The sum of some bytes.
    pub(crate) fn of(bytes: &[u8]) -> u32 {
        let mut sum = Self::default();
        sum.update(bytes);
        sum.0
    }

    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        let mut sum = crc32fast::Hasher::new_with_initial(self.0);
        sum.update(bytes);
        self.0 = sum.finalize();
    }

    #[cfg(target_family = "wasm")]
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0 = by_table::<POLYNOMIAL>(self.0, bytes);
    }

    pub(crate) fn value(self) -> u32 {
        self.0
    }

    /// What it adds to the sum of these bytes with `len` others after them: that is this and the sum of the others, by
    /// exclusive or.
    pub(crate) fn in_front_of(self, len: u64) -> u32 {
        // Times x to as many bits.
        let mut power = 1 << 30;
        for _ in 0..3 {
            power = product(power, power);
        }
        let (mut moved, mut left) = (self.0, len);
        while left > 0 {
            if left & 1 == 1 {
                moved = product(power, moved);
            }
            power = product(power, power);
            left >>= 1;
        }
        moved
    }
}

/// The product of two polynomials, modulo that of CRC-32.
fn product(a: u32, b: u32) -> u32 {
    let (mut product, mut times) = (0, b);
    for bit in (0..32).rev() {
        if a >> bit & 1 == 1 {
            product ^= times;
        }
        times = times_x(times, POLYNOMIAL);
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;

    #[test]
    fn a_table_gives_what_the_processor_gives() {
        let bytes: Vec<u8> = (0..1000u32)
            .map(|n| ((n * n) >> 3).to_le_bytes()[0])
            .collect();
        for part in [&bytes[..], &bytes[1..8], &[], b"123456789"] {
            assert_eq!(by_table::<POLYNOMIAL>(0, part), Crc32::of(part));
        }
        assert_eq!(Crc32::of(b"123456789"), 0xcbf4_3926);
    }
}
