//! Whole numbers of any size: as much of them as digits take.

use core::cmp::Ordering;

use crate::prelude::*;

/// A whole number, its lowest 32 bits first, without zeros at the end.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Natural(Vec<u32>);

impl Natural {
    pub(super) fn new(number: u128) -> Self {
        let mut words = vec![number];
        words.extend([number >> 32, number >> 64, number >> 96]);
        Self(words.into_iter().map(low).collect()).trimmed()
    }

    /// Times a power of two.
    pub(super) fn doubled(mut self, times: u32) -> Self {
        self.multiply(1 << (times % 32));
        let zeros = vec![0; times as usize / 32];
        self.0.splice(0..0, zeros);
        self.trimmed()
    }

    /// Times a power of ten.
    pub(super) fn times_ten(mut self, times: u32) -> Self {
        for _ in 0..times / 9 {
            self.multiply(1_000_000_000);
        }
        self.multiply(10u32.pow(times % 9));
        self
    }

    fn multiply(&mut self, by: u32) {
        let mut carried = 0;
        for word in &mut self.0 {
            carried += u64::from(*word) * u64::from(by);
            *word = low(carried.into());
            carried >>= 32;
        }
        self.0.push(low(carried.into()));
        *self = core::mem::take(self).trimmed();
    }

    pub(super) fn add(&mut self, other: &Self) {
        let len = self.0.len().max(other.0.len()) + 1;
        self.0.resize(len, 0);
        let mut carried = 0;
        for (word, added) in self.0.iter_mut().zip(other.words()) {
            carried += u64::from(*word) + u64::from(added);
            *word = low(carried.into());
            carried >>= 32;
        }
        *self = core::mem::take(self).trimmed();
    }

    /// Takes a number away that is not larger.
    pub(super) fn subtract(&mut self, other: &Self) {
        let mut borrowed = false;
        for (word, taken) in self.0.iter_mut().zip(other.words()) {
            let (left, first) = word.overflowing_sub(taken);
            let (left, second) = left.overflowing_sub(borrowed.into());
            (*word, borrowed) = (left, first || second);
        }
        *self = core::mem::take(self).trimmed();
    }

    /// Its words, and zeros after them.
    fn words(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied().chain(core::iter::repeat(0))
    }

    fn trimmed(mut self) -> Self {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }
}

impl Ord for Natural {
    fn cmp(&self, other: &Self) -> Ordering {
        let len = self.0.len().cmp(&other.0.len());
        len.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

impl PartialOrd for Natural {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The lowest 32 bits.
#[allow(clippy::cast_possible_truncation)]
fn low(number: u128) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_products_and_differences_are_those_of_128_bits() {
        let numbers = [
            0,
            1,
            9,
            0xffff_ffff,
            1 << 32,
            0x1234_5678_9abc_def0_1234,
            u128::MAX >> 8,
        ];
        for a in numbers {
            for b in numbers {
                let mut sum = Natural::new(a);
                sum.add(&Natural::new(b));
                assert_eq!(sum, Natural::new(a + b));
                sum.subtract(&Natural::new(a));
                assert_eq!(sum, Natural::new(b));
                assert_eq!(Natural::new(a).cmp(&Natural::new(b)), a.cmp(&b));
            }
            for shift in [0, 1, 31] {
                if a.leading_zeros() > shift {
                    assert_eq!(Natural::new(a).doubled(shift), Natural::new(a << shift));
                }
            }
        }
        assert_eq!(Natural::new(3).doubled(100), Natural::new(3 << 100));
        assert_eq!(
            Natural::new(7).times_ten(30),
            Natural::new(7 * 10u128.pow(30))
        );
        assert_eq!(Natural::new(0).doubled(64), Natural::default());
    }
}
