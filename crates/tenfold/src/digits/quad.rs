//! Floating-point numbers of 128 bits, in whole numbers of any size.
//!
//! A number is the fraction `above / below`; its digits are what division by hand gives. (Steele and White, "How to print
//! floating-point numbers accurately", 1990.)

use core::cmp::Ordering;

use super::Decimal;
use super::natural::Natural;
use crate::prelude::*;

/// The least exponent, that of the numbers with the fewest bits.
const LEAST: i32 = 1 - 16_383 - 112;

/// A number between 1 and 10, times a power of ten.
struct Fraction {
    above: Natural,
    below: Natural,
    /// Half of the way to the next number below, and to the next above, over `below`.
    half_down: Natural,
    half_up: Natural,
    power: i32,
    /// Whether what is half way to its neighbours is read as this number.
    is_even: bool,
}

impl Fraction {
    /// The absolute value, which is not 0.
    fn new(bits: u128) -> Self {
        let biased = i32::from(u16::try_from(bits >> 112 & 0x7fff).unwrap_or_default());
        let fraction = bits & ((1 << 112) - 1);
        let (mantissa, exponent) = match biased {
            0 => (fraction, LEAST),
            _ => (fraction | 1 << 112, LEAST + biased - 1),
        };
        // Below a power of two, numbers are twice as near to each other. All in quarters.
        let is_power = fraction == 0 && biased > 1;
        let quarters = |number: u128| Natural::new(number).doubled(up(exponent));
        let log2 = i64::from(exponent) + 127 - i64::from(mantissa.leading_zeros());
        // By log10(2): too small or too large by 1 at most.
        let power = i32::try_from(log2 * 30_103 / 100_000).unwrap_or_default();
        let mut found = Self {
            above: quarters(mantissa).doubled(2).times_ten(up(-power)),
            below: Natural::new(4).doubled(up(-exponent)).times_ten(up(power)),
            half_down: quarters(if is_power { 1 } else { 2 }).times_ten(up(-power)),
            half_up: quarters(2).times_ten(up(-power)),
            power,
            is_even: mantissa % 2 == 0,
        };
        while found.above < found.below {
            found.next();
            found.power -= 1;
        }
        let tenfold = found.below.clone().times_ten(1);
        if found.above >= tenfold {
            found.below = tenfold;
            found.power += 1;
        }
        found
    }

    /// Takes the digit in front off.
    fn digit(&mut self) -> u8 {
        let mut digit = 0;
        while self.above >= self.below {
            self.above.subtract(&self.below);
            digit += 1;
        }
        digit
    }

    /// The next digit gets to the front.
    fn next(&mut self) {
        for number in [&mut self.above, &mut self.half_down, &mut self.half_up] {
            *number = core::mem::take(number).times_ten(1);
        }
    }

    /// Whether what is left is more than half of the last digit; of two equally near the even one.
    fn rounds_up(&self, last: u8) -> bool {
        match self.above.clone().doubled(1).cmp(&self.below) {
            Ordering::Less => false,
            Ordering::Equal => last % 2 == 1,
            Ordering::Greater => true,
        }
    }

    /// Whether the digits without what is left, and those with 1 added to the last, are still nearest to this number.
    fn is_enough(&self) -> (bool, bool) {
        let mut with_half = self.above.clone();
        with_half.add(&self.half_up);
        if self.is_even {
            (self.above <= self.half_down, with_half >= self.below)
        } else {
            (self.above < self.half_down, with_half > self.below)
        }
    }
}

/// The fewest digits that no other number of 128 bits is as near to.
pub(super) fn shortest(bits: u128) -> Decimal {
    let mut rest = Fraction::new(bits);
    let mut digits = Vec::new();
    loop {
        let digit = rest.digit();
        digits.push(digit);
        let is_up = match rest.is_enough() {
            (false, false) => {
                rest.next();
                continue;
            }
            (true, true) => rest.rounds_up(digit),
            (_, is_up) => is_up,
        };
        return decimal(digits, rest.power, is_up);
    }
}

/// As many digits as wanted, the last rounded to the nearest, ties to even.
pub(super) fn rounded(bits: u128, count: usize) -> Decimal {
    if bits << 1 == 0 {
        return Decimal::parse("0e0");
    }
    let mut rest = Fraction::new(bits);
    let mut digits = vec![rest.digit()];
    for _ in 1..count {
        rest.next();
        digits.push(rest.digit());
    }
    let is_up = rest.rounds_up(digits.last().copied().unwrap_or(0));
    decimal(digits, rest.power, is_up)
}

/// The digits, with 1 added to the last of them.
fn decimal(mut digits: Vec<u8>, mut power: i32, is_up: bool) -> Decimal {
    if is_up {
        while digits.last() == Some(&9) {
            digits.pop();
        }
        match digits.last_mut() {
            Some(last) => *last += 1,
            // 9.99 is rounded to 10.
            None => {
                digits.push(1);
                power += 1;
            }
        }
    }
    let text: String = digits
        .iter()
        .map(|digit| char::from(b'0' + digit))
        .collect();
    Decimal::parse(&format!("{}.{}e{power}", &text[..1], &text[1..]))
}

/// A power that is not negative; 0 for one that is.
fn up(power: i32) -> u32 {
    u32::try_from(power).unwrap_or(0)
}
