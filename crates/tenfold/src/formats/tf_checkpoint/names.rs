//! The keys of slices: what is ordered by its bytes as it would be by its values.

use super::entry::Slice;
use crate::prelude::*;

/// What the keys of slices begin with.
pub(super) const MARK: u8 = 0;

/// The key under which a slice of a tensor is stored.
pub(super) fn of_slice(name: &str, slice: &Slice) -> Vec<u8> {
    let mut key = vec![MARK];
    for byte in name.bytes() {
        match byte {
            0 => key.extend([0, 0xff]),
            0xff => key.extend([0xff, 0]),
            byte => key.push(byte),
        }
    }
    key.extend([0, 1]);
    put_unsigned(&mut key, slice.len() as u64);
    for extent in slice {
        let (start, len) = match *extent {
            Some((start, len)) => (start.cast_signed(), len.cast_signed()),
            None => (0, -1),
        };
        put_signed(&mut key, start);
        put_signed(&mut key, len);
    }
    key
}

/// How many bytes count, and these, the most significant first.
fn put_unsigned(key: &mut Vec<u8>, number: u64) {
    let bytes = number.to_be_bytes();
    let first = bytes
        .iter()
        .position(|byte| *byte != 0)
        .unwrap_or(bytes.len());
    let digits = bytes.get(first..).unwrap_or_default();
    // At most 8.
    key.push(u8::try_from(digits.len()).unwrap_or(0));
    key.extend_from_slice(digits);
}

/// The fewest bytes that hold it, in the first of which as many bits as there are bytes say that; of a negative number all
/// bits are turned.
fn put_signed(key: &mut Vec<u8>, number: i64) {
    let magnitude = if number < 0 { !number } else { number }.cast_unsigned();
    // Seven bits in each byte, of which one is the sign.
    let bits = 64 - magnitude.leading_zeros();
    let len = (bits / 7 + 1).min(10);
    let places = crate::transform::as_size(len.into()).unwrap_or(0);
    let mut bytes = [0u8; 10];
    for (byte, digit) in bytes.iter_mut().rev().zip(magnitude.to_le_bytes()) {
        *byte = digit;
    }
    // As many ones from the front as there are bytes; all ten need more than a byte has.
    let marks = u16::MAX
        .checked_shl(16 - len)
        .unwrap_or(u16::MAX)
        .to_be_bytes();
    let from = bytes.len().saturating_sub(places);
    for (byte, mark) in bytes.iter_mut().skip(from).zip(marks) {
        *byte |= mark;
    }
    let turned = if number < 0 { 0xff } else { 0 };
    key.extend(bytes.iter().skip(from).map(|byte| byte ^ turned));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(number: i64) -> Vec<u8> {
        let mut key = Vec::new();
        put_signed(&mut key, number);
        key
    }

    #[test]
    fn numbers_are_ordered_as_their_bytes_are() {
        let mut powers: Vec<i64> = (0..63).map(|n| 1 << n).collect();
        powers.extend([i64::MAX, 0]);
        let mut numbers: Vec<i64> = (powers.iter())
            .flat_map(|n| [*n, -n, n - 1, -n - 1])
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert!(numbers.iter().map(|n| signed(*n)).is_sorted());
        let lens = [
            (63, 1),
            (64, 2),
            (-64, 1),
            (-65, 2),
            (8191, 2),
            (8192, 3),
            (i64::MIN, 10),
        ];
        for (number, len) in lens {
            assert_eq!(signed(number).len(), len, "{number}");
        }
    }

    #[test]
    fn small_numbers_are_one_byte() {
        assert_eq!(
            [signed(0), signed(-1), signed(5)].concat(),
            [0x80, 0x7f, 0x85]
        );
        assert_eq!(signed(64), [0xc0, 0x40]);
        assert_eq!(signed(-65), [0x3f, 0xbf]);
    }

    #[test]
    fn the_key_of_a_slice_has_its_name_and_its_extents() {
        let slice = vec![Some((2, 2)), None];
        let expected = b"\x00m\x00\x01\x01\x02\x82\x82\x80\x7f";
        assert_eq!(of_slice("m", &slice), expected);
        assert_eq!(of_slice("a\0", &Vec::new()), b"\x00a\x00\xff\x00\x01\x00");
    }
}
