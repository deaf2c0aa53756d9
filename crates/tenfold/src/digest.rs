//! Checksums and hashes, one interface for all kinds.

mod crc;
#[cfg(feature = "crc32")]
mod crc32;

use core::fmt;

use bytes::Bytes;

use crate::model::DigestKind;
use crate::prelude::*;
pub(crate) use crc::crc32c;
pub(crate) use crc::crc32c_append;
#[cfg(feature = "crc32")]
pub(crate) use crc32::Crc32;

/// Computes one checksum or hash.
pub struct Hasher(Inner);

enum Inner {
    Adler32(Adler32),
    #[cfg(feature = "crc32")]
    Crc32(Crc32),
    Crc32c(u32),
    #[cfg(feature = "onnx")]
    Sha1(Box<sha1::Sha1>),
    #[cfg(feature = "digest")]
    Sha256(Box<sha2::Sha256>),
    #[cfg(feature = "ztensor")]
    Xxh3(Box<xxhash_rust::xxh3::Xxh3>),
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hasher").finish_non_exhaustive()
    }
}

impl Hasher {
    /// A hasher of this kind; `None` when the kind is not part of this build.
    pub fn new(kind: DigestKind) -> Option<Self> {
        match kind {
            DigestKind::Adler32 => Some(Self(Inner::Adler32(Adler32::default()))),
            #[cfg(feature = "crc32")]
            DigestKind::Crc32 => Some(Self(Inner::Crc32(Crc32::default()))),
            DigestKind::Crc32c => Some(Self(Inner::Crc32c(0))),
            #[cfg(feature = "onnx")]
            DigestKind::Sha1 => Some(Self(Inner::Sha1(Box::default()))),
            #[cfg(feature = "digest")]
            DigestKind::Sha256 => Some(Self(Inner::Sha256(Box::default()))),
            #[cfg(feature = "ztensor")]
            DigestKind::Xxh3 => Some(Self(Inner::Xxh3(Box::default()))),
            #[allow(unreachable_patterns)] // with every feature there is nothing left
            _ => None,
        }
    }

    /// Takes in the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Inner::Adler32(sum) => sum.update(bytes),
            #[cfg(feature = "crc32")]
            Inner::Crc32(sum) => sum.update(bytes),
            Inner::Crc32c(crc) => *crc = crc32c_append(*crc, bytes),
            #[cfg(feature = "onnx")]
            Inner::Sha1(hasher) => sha1::Digest::update(&mut **hasher, bytes),
            #[cfg(feature = "digest")]
            Inner::Sha256(hasher) => sha2::Digest::update(&mut **hasher, bytes),
            #[cfg(feature = "ztensor")]
            Inner::Xxh3(hasher) => hasher.update(bytes),
        }
    }

    /// The value, most significant byte first.
    pub fn finish(self) -> Bytes {
        match self.0 {
            Inner::Adler32(sum) => Bytes::copy_from_slice(&sum.value().to_be_bytes()),
            #[cfg(feature = "crc32")]
            Inner::Crc32(sum) => Bytes::copy_from_slice(&sum.value().to_be_bytes()),
            Inner::Crc32c(crc) => Bytes::copy_from_slice(&crc.to_be_bytes()),
            #[cfg(feature = "onnx")]
            Inner::Sha1(hasher) => Bytes::copy_from_slice(&sha1::Digest::finalize(*hasher)),
            #[cfg(feature = "digest")]
            Inner::Sha256(hasher) => Bytes::copy_from_slice(&sha2::Digest::finalize(*hasher)),
            #[cfg(feature = "ztensor")]
            Inner::Xxh3(hasher) => Bytes::copy_from_slice(&hasher.digest().to_be_bytes()),
        }
    }
}

/// Adler-32, of bytes or of what is known by its own sum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Adler32 {
    low: u32,
    high: u32,
}

impl Default for Adler32 {
    fn default() -> Self {
        Self { low: 1, high: 0 }
    }
}

impl Adler32 {
    /// The greatest prime below 2^16.
    const MODULUS: u32 = 65521;
    /// Bytes of which the sums fit 32 bits.
    const MOST: usize = 5552;

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        for bytes in bytes.chunks(Self::MOST) {
            for byte in bytes {
                self.low += u32::from(*byte);
                self.high += self.low;
            }
            self.low %= Self::MODULUS;
            self.high %= Self::MODULUS;
        }
    }

    /// Takes in `len` bytes of which only the sum is known.
    pub(crate) fn append(&mut self, value: u32, len: u64) {
        let modulus = u64::from(Self::MODULUS);
        let (low, high) = (u64::from(value & 0xffff), u64::from(value >> 16));
        let before = u64::from(self.low);
        // Each byte adds what was there before once more; both begin with 1.
        let more = len % modulus * ((before + modulus - 1) % modulus);
        let low = (before + low + modulus - 1) % modulus;
        let high = (u64::from(self.high) + high + more) % modulus;
        self.low = u32::try_from(low).unwrap_or(0);
        self.high = u32::try_from(high).unwrap_or(0);
    }

    pub(crate) fn value(self) -> u32 {
        self.high << 16 | self.low
    }
}

/// Bytes as lower-case hexadecimal digits.
///
/// ```
/// use tenfold::digest::{Hex, unhex};
/// assert_eq!(Hex(&[0, 255]).to_string(), "00ff");
/// assert_eq!(unhex("00fF"), Some(vec![0, 255]));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The bytes of hexadecimal digits in any case.
pub fn unhex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(unhex_pair).collect()
}

/// The byte of two hexadecimal digits.
pub(crate) fn unhex_pair(digits: &[u8]) -> Option<u8> {
    let digit = |c: &u8| char::from(*c).to_digit(16);
    match digits {
        [high, low] => u8::try_from(digit(high)? * 16 + digit(low)?).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(kind: DigestKind, bytes: &[u8]) -> Option<String> {
        let mut hasher = Hasher::new(kind)?;
        hasher.update(bytes);
        Some(Hex(&hasher.finish()).to_string())
    }

    #[test]
    fn sums_of_pieces_make_the_sum_of_all() {
        let check = b"123456789";
        assert_eq!(hash(DigestKind::Adler32, check).unwrap(), "091e01de");
        let long: Vec<u8> = (0..70_000u32).map(|n| n.to_le_bytes()[0] | 0xf0).collect();
        let mut whole = Adler32::default();
        whole.update(&long);
        for at in [0, 1, 6000, 65_521, 70_000] {
            let (first, second) = long.split_at(at);
            let mut sum = Adler32::default();
            sum.update(first);
            let mut other = Adler32::default();
            other.update(second);
            sum.append(other.value(), second.len() as u64);
            assert_eq!(sum.value(), whole.value(), "{at}");
        }
    }

    #[test]
    fn known_values_of_the_published_check_string() {
        let check = b"123456789";
        assert_eq!(hash(DigestKind::Crc32c, check).unwrap(), "e3069283");
        if let Some(value) = hash(DigestKind::Crc32, check) {
            assert_eq!(value, "cbf43926");
        }
        if let Some(value) = hash(DigestKind::Sha256, b"abc") {
            assert_eq!(
                value,
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
            );
        }
        if let Some(value) = hash(DigestKind::Xxh3, b"") {
            assert_eq!(value, "2d06800538d394c2");
        }
    }
}
