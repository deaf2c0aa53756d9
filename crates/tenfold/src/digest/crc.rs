//! CRC-32C: by the processor where it has an instruction for it, by a table in programs for browsers, where the tables of
//! faster ways would be a good part of what is loaded.

/// The polynomial, the highest power in the lowest bit.
#[cfg(any(not(feature = "std"), target_family = "wasm", test))]
const CRC32C: u32 = 0x82f6_3b78;

/// CRC-32C of bytes.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    crc32c_append(0, bytes)
}

#[cfg(all(feature = "std", not(target_family = "wasm")))]
pub(crate) fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc, bytes)
}

/// Without `std` there is no portable way to ask for the processor's instruction.
#[cfg(any(not(feature = "std"), target_family = "wasm"))]
pub(crate) fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    by_table::<CRC32C>(crc, bytes)
}

/// One byte at a time.
#[cfg(any(not(feature = "std"), target_family = "wasm", test))]
pub(super) fn by_table<const POLYNOMIAL: u32>(crc: u32, bytes: &[u8]) -> u32 {
    let table = const { &table(POLYNOMIAL) };
    #[allow(clippy::indexing_slicing)] // a byte indexes 256 entries
    let step = |crc: u32, &byte: &u8| crc >> 8 ^ table[usize::from(crc.to_le_bytes()[0] ^ byte)];
    !bytes.iter().fold(!crc, step)
}

#[cfg(any(not(feature = "std"), target_family = "wasm", test))]
#[allow(clippy::cast_possible_truncation, clippy::indexing_slicing)] // below 256
const fn table(polynomial: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = times_x(crc, polynomial);
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// A polynomial times x, modulo another.
pub(super) const fn times_x(number: u32, polynomial: u32) -> u32 {
    if number & 1 == 1 {
        number >> 1 ^ polynomial
    } else {
        number >> 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;

    #[test]
    fn tables_give_what_the_processor_gives() {
        let bytes: Vec<u8> = (0..1000u32)
            .map(|n| ((n * n) >> 3).to_le_bytes()[0])
            .collect();
        for part in [&bytes[..], &bytes[1..8], &[], b"123456789"] {
            assert_eq!(by_table::<CRC32C>(7, part), crc32c_append(7, part));
        }
        assert_eq!(by_table::<CRC32C>(0, b"123456789"), 0xe306_9283);
    }
}
