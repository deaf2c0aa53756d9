//! Casts beside another way to find the nearest number: a search among all numbers of the type, in `f64`.

#![allow(
    clippy::cast_sign_loss,
    reason = "what `as` does with a sign is what is compared"
)]

use super::*;
use crate::prelude::*;

/// The value of the bits of a small type by the formula that defines it; `None` where they stand for no number.
fn value(scalar: Scalar, bits: u32) -> Option<f64> {
    let float = |exponent_bits: u32, fraction_bits: u32, bias: i32| {
        let sign = if bits >> (exponent_bits + fraction_bits) == 1 {
            -1.0
        } else {
            1.0
        };
        let exponent = (bits >> fraction_bits & ((1 << exponent_bits) - 1)).cast_signed();
        let fraction =
            f64::from(bits & ((1 << fraction_bits) - 1)) / f64::from(1u32 << fraction_bits);
        sign * match exponent {
            0 => fraction * 2f64.powi(1 - bias),
            _ => (1.0 + fraction) * 2f64.powi(exponent - bias),
        }
    };
    let integer = |signed: bool, width: u32| {
        let bits = f64::from(bits);
        let half = 2f64.powi(width.cast_signed() - 1);
        if signed && bits >= half {
            bits - 2.0 * half
        } else {
            bits
        }
    };
    Some(match scalar {
        Scalar::Bool => f64::from(u8::from(bits != 0)),
        Scalar::U1 | Scalar::U2 | Scalar::U4 | Scalar::U8 | Scalar::U16 => {
            integer(false, scalar.bits())
        }
        Scalar::I2 | Scalar::I4 | Scalar::I8 | Scalar::I16 => integer(true, scalar.bits()),
        Scalar::F4E2M1 => float(2, 1, 1),
        Scalar::F6E2M3 => float(2, 3, 1),
        Scalar::F6E3M2 => float(3, 2, 3),
        Scalar::F8E4M3 if bits & 0x7f == 0x7f => return None,
        Scalar::F8E4M3 => float(4, 3, 7),
        Scalar::F8E4M3Fnuz | Scalar::F8E5M2Fnuz if bits == 0x80 => return None,
        Scalar::F8E4M3Fnuz => float(4, 3, 8),
        Scalar::F8E5M2Fnuz => float(5, 2, 16),
        Scalar::F8E5M2 if bits & 0x7f > 0x7c => return None,
        Scalar::F8E5M2 if bits == 0x7c => f64::INFINITY,
        Scalar::F8E5M2 if bits == 0xfc => f64::NEG_INFINITY,
        Scalar::F8E5M2 => float(5, 2, 15),
        Scalar::F8E8M0 if bits == 0xff => return None,
        Scalar::F8E8M0 => 2f64.powi(bits.cast_signed() - 127),
        Scalar::F16 => half::f16::from_bits(u16::try_from(bits).unwrap()).to_f64(),
        Scalar::BF16 => half::bf16::from_bits(u16::try_from(bits).unwrap()).to_f64(),
        _ => unreachable!("{scalar:?} is not small"),
    })
    .filter(|value| !value.is_nan())
}

fn is_integer(scalar: Scalar) -> bool {
    scalar == Scalar::Bool || scalar.name().starts_with(['u', 'i'])
}

fn small() -> impl Iterator<Item = Scalar> {
    Scalar::all().filter(|scalar| scalar.bits() <= 16)
}

/// All numbers of a type in order, each with its bits.
struct Target {
    scalar: Scalar,
    numbers: Vec<(f64, u32)>,
}

/// What a cast should give: its bits, and what is counted.
#[derive(Debug, PartialEq)]
struct Expected {
    bits: u32,
    overflow: bool,
    underflow: bool,
}

impl Target {
    fn new(scalar: Scalar) -> Self {
        let bits = if scalar == Scalar::Bool {
            1
        } else {
            scalar.bits()
        };
        let mut numbers: Vec<_> = (0..1u32 << bits)
            .filter_map(|bits| Some((value(scalar, bits)?, bits)))
            .filter(|(value, _)| value.is_finite() && !(*value == 0.0 && value.is_sign_negative()))
            .collect();
        numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { scalar, numbers }
    }

    fn plain(bits: u32) -> Expected {
        Expected {
            bits,
            overflow: false,
            underflow: false,
        }
    }

    /// The sign bit of floating-point types that have one.
    fn sign(&self, negative: bool) -> u32 {
        let has_sign = !is_integer(self.scalar) && self.scalar != Scalar::F8E8M0;
        u32::from(negative && has_sign) << (self.scalar.bits() - 1)
    }

    fn nan(&self, negative: bool) -> u32 {
        match self.scalar {
            Scalar::Bool => 1,
            scalar if is_integer(scalar) => 0,
            Scalar::F4E2M1 | Scalar::F6E2M3 | Scalar::F6E3M2 => self.sign(!negative),
            Scalar::F8E4M3Fnuz | Scalar::F8E5M2Fnuz => 0x80,
            Scalar::F8E8M0 => 0xff,
            Scalar::F8E4M3 => self.sign(negative) | 0x7f,
            Scalar::F8E5M2 => self.sign(negative) | 0x7e,
            Scalar::F16 => self.sign(negative) | 0x7e00,
            _ => self.sign(negative) | 0x7fc0,
        }
    }

    fn overflow(&self, negative: bool) -> Expected {
        let bits = match self.scalar {
            Scalar::F16 => self.sign(negative) | 0x7c00,
            Scalar::BF16 => self.sign(negative) | 0x7f80,
            Scalar::F8E5M2 => self.sign(negative) | 0x7c,
            Scalar::F8E4M3 | Scalar::F8E4M3Fnuz | Scalar::F8E5M2Fnuz | Scalar::F8E8M0 => {
                self.nan(negative)
            }
            _ if negative => self.numbers.first().unwrap().1,
            _ => self.numbers.last().unwrap().1,
        };
        Expected {
            bits,
            overflow: true,
            underflow: false,
        }
    }

    fn expected(&self, value: f64) -> Expected {
        let negative = value.is_sign_negative();
        if self.scalar == Scalar::Bool {
            return Self::plain(u32::from(value != 0.0));
        }
        if value.is_infinite() {
            let has_infinity = matches!(self.scalar, Scalar::F16 | Scalar::BF16 | Scalar::F8E5M2);
            let overflow = self.overflow(negative);
            return Expected {
                overflow: !has_infinity,
                ..overflow
            };
        }
        if self.scalar == Scalar::F8E8M0 {
            return self.expected_power(value);
        }
        if value == 0.0 {
            let has_negative_zero = !matches!(self.scalar, Scalar::F8E4M3Fnuz | Scalar::F8E5M2Fnuz);
            return Self::plain(self.sign(negative && has_negative_zero));
        }
        let above = self.numbers.partition_point(|(number, _)| *number < value);
        let Some(&(high, high_bits)) = self.numbers.get(above) else {
            return self.beyond(value);
        };
        if high == value {
            return Self::plain(high_bits);
        }
        let Some(&(low, low_bits)) = above.checked_sub(1).and_then(|n| self.numbers.get(n)) else {
            return self.beyond(value);
        };
        // Both differences are exact: the numbers of small types are far coarser than those of `f64`.
        let bits = match (value - low).total_cmp(&(high - value)) {
            core::cmp::Ordering::Less => low_bits,
            core::cmp::Ordering::Greater => high_bits,
            core::cmp::Ordering::Equal if low_bits % 2 == 0 => low_bits,
            core::cmp::Ordering::Equal => high_bits,
        };
        let zero = (low == 0.0 && bits == low_bits) || (high == 0.0 && bits == high_bits);
        let has_negative_zero = !matches!(self.scalar, Scalar::F8E4M3Fnuz | Scalar::F8E5M2Fnuz);
        Expected {
            bits: if zero {
                self.sign(negative && has_negative_zero)
            } else {
                bits
            },
            overflow: false,
            underflow: zero,
        }
    }

    /// Beyond the last number: the last, or what comes after it.
    fn beyond(&self, value: f64) -> Expected {
        let negative = value < 0.0;
        let ends = if negative {
            [0, 1]
        } else {
            [self.numbers.len() - 1, self.numbers.len() - 2]
        };
        let [(last, bits), (before, _)] = ends.map(|n| self.numbers[n]);
        let (beyond, half) = ((value - last).abs(), (last - before).abs() / 2.0);
        // A tie goes to the last if it is even.
        if beyond < half || beyond == half && bits % 2 == 0 {
            Expected {
                underflow: last == 0.0,
                ..Self::plain(bits)
            }
        } else {
            self.overflow(negative)
        }
    }

    fn expected_power(&self, value: f64) -> Expected {
        if value <= 0.0 {
            return self.overflow(value < 0.0);
        }
        // The first of the powers to which it is not nearer than to the next; half way goes up.
        let power = (-1100..1100).find(|&n| value < 1.5 * 2f64.powi(n)).unwrap();
        match power + 127 {
            255.. => self.overflow(false),
            n @ 0.. => Self::plain(n.cast_unsigned()),
            _ => Expected {
                bits: 0,
                overflow: false,
                underflow: true,
            },
        }
    }
}

/// Packs the bits of numbers as they are stored.
fn pack(scalar: Scalar, numbers: impl Iterator<Item = u128>) -> (usize, Vec<u8>) {
    let width = scalar.bits() as usize;
    let mut bytes = Vec::new();
    let mut count = 0;
    if width >= 8 {
        bytes.extend(numbers.flat_map(|bits| bits.to_le_bytes().into_iter().take(width / 8)));
        return (bytes.len() * 8 / width, bytes);
    }
    for (n, bits) in numbers.enumerate() {
        for bit in 0..width {
            let place = n * width + bit;
            if place / 8 == bytes.len() {
                bytes.push(0);
            }
            bytes[place / 8] |= u8::from(bits >> bit & 1 == 1) << (place % 8);
        }
        count = n + 1;
    }
    (count, bytes)
}

fn unpack(scalar: Scalar, bytes: &[u8], n: usize) -> u128 {
    let width = scalar.bits() as usize;
    if width >= 8 {
        let bytes = &bytes[n * width / 8..][..width / 8];
        return bytes
            .iter()
            .rev()
            .fold(0, |bits, byte| bits << 8 | u128::from(*byte));
    }
    (0..width).fold(0, |bits, bit| {
        let place = n * width + bit;
        bits | u128::from(bytes[place / 8] >> (place % 8) & 1) << bit
    })
}

fn run(from: Scalar, to: Scalar, numbers: impl Iterator<Item = u128>) -> (Vec<u128>, CastCounts) {
    let (count, input) = pack(from, numbers);
    let mut output = vec![0xff; (count * to.bits() as usize).div_ceil(8)];
    let counts = Cast::new(from, to).apply(count, &input, &mut output);
    let unused = (count * to.bits() as usize) % 8;
    if unused != 0 {
        assert_eq!(
            output.last().unwrap() >> unused,
            0,
            "{from:?} to {to:?}: bits behind the end"
        );
    }
    assert_eq!(counts.numbers, count as u64);
    ((0..count).map(|n| unpack(to, &output, n)).collect(), counts)
}

/// Casts values of a type and compares each with what it should be.
fn compare(from: Scalar, target: &Target, numbers: &[(u128, Option<f64>, bool)]) {
    let to = target.scalar;
    let (found, counts) = run(from, to, numbers.iter().map(|number| number.0));
    let mut expected_counts = CastCounts {
        numbers: numbers.len() as u64,
        ..CastCounts::default()
    };
    for (&(bits, value, negative), found) in numbers.iter().zip(found) {
        let expected = match value {
            Some(value) => target.expected(value),
            None => {
                expected_counts.nans += 1;
                Target::plain(target.nan(negative))
            }
        };
        expected_counts.overflows += u64::from(expected.overflow);
        expected_counts.underflows += u64::from(expected.underflow);
        // Payloads are compared elsewhere.
        if value.is_none() && matches!(to, Scalar::F16 | Scalar::BF16 | Scalar::F8E5M2) {
            assert_eq!(
                found & u128::from(expected.bits),
                expected.bits.into(),
                "{from:?} {bits:#x} to {to:?}"
            );
            continue;
        }
        assert_eq!(
            found,
            expected.bits.into(),
            "{from:?} {bits:#x} = {value:?} to {to:?}"
        );
    }
    assert_eq!(counts, expected_counts, "{from:?} to {to:?}");
}

#[test]
fn every_number_of_every_small_type_becomes_the_nearest_of_every_other() {
    let targets: Vec<_> = small().map(Target::new).collect();
    for from in small() {
        let bits = if from == Scalar::Bool { 1 } else { from.bits() };
        let numbers: Vec<_> = (0..1u32 << bits)
            .map(|bits| (u128::from(bits), value(from, bits), is_negative(from, bits)))
            .collect();
        for target in targets.iter().filter(|target| target.scalar != from) {
            compare(from, target, &numbers);
            // Few numbers go another way than many, and the last byte may be half full.
            compare(from, target, &numbers[..numbers.len().min(7)]);
        }
    }
}

fn is_negative(scalar: Scalar, bits: u32) -> bool {
    let unsigned = is_integer(scalar)
        || matches!(
            scalar,
            Scalar::F8E8M0 | Scalar::F8E4M3Fnuz | Scalar::F8E5M2Fnuz
        );
    !unsigned && bits >> (scalar.bits() - 1) == 1
}

/// Numbers without an end that are the same every time.
fn random() -> impl FnMut() -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// Values around everything at which rounding decides: numbers of the type, half way between them, and next to both.
fn around(target: &Target) -> Vec<f64> {
    let mut values = vec![
        0.0,
        -0.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN_POSITIVE,
        5e-324,
        -5e-324,
    ];
    let step = (target.numbers.len() / 4000).max(1);
    for pair in target
        .numbers
        .windows(2)
        .step_by(step)
        .chain(target.numbers.windows(2).rev().take(3))
    {
        let (low, high) = (pair[0].0, pair[1].0);
        for value in [
            low,
            (low + high) / 2.0,
            high,
            high + (high - low) / 2.0,
            low - (high - low) / 2.0,
        ] {
            values.extend([value, value.next_up(), value.next_down()]);
        }
    }
    values
}

#[test]
fn wide_floats_become_the_nearest_of_every_small_type_without_rounding_twice() {
    let mut random = random();
    for target in small().map(Target::new) {
        let mut values = around(&target);
        values.extend((0..3000).map(|_| f64::from_bits(random())));
        values.retain(|value| !value.is_nan());
        let doubles: Vec<_> = values
            .iter()
            .map(|v| (u128::from(v.to_bits()), Some(*v), false))
            .collect();
        compare(Scalar::F64, &target, &doubles);
        #[allow(clippy::cast_possible_truncation)]
        let singles: Vec<_> = (values.iter().map(|value| *value as f32))
            .flat_map(|value| [value, value.next_up(), value.next_down()])
            .map(|value| (u128::from(value.to_bits()), Some(f64::from(value)), false))
            .collect();
        compare(Scalar::F32, &target, &singles);
        // The same as 128 bits, exactly: another bias, a longer fraction. Numbers that are subnormal as 64 bits are not.
        let quads: Vec<_> = values
            .iter()
            .filter(|value| value.is_normal())
            .map(|value| (widened(*value, 0), Some(*value), false))
            .collect();
        compare(Scalar::F128, &target, &quads);
    }
}

/// A normal number as 128 bits, with lower bits that 64 do not have.
fn widened(value: f64, lower: u64) -> u128 {
    let bits = value.to_bits();
    let exponent = u128::from(bits >> 52 & 0x7ff) + 16383 - 1023;
    let fraction = u128::from(bits & ((1 << 52) - 1)) << 60 | u128::from(lower);
    u128::from(bits >> 63) << 127 | exponent << 112 | fraction
}

fn one(from: Scalar, to: Scalar, bits: u128) -> u128 {
    run(from, to, core::iter::once(bits)).0[0]
}

#[test]
fn the_lowest_of_128_bits_decides_a_tie() {
    let tie = 1.0 + 2f64.powi(-24);
    assert_eq!(one(Scalar::F128, Scalar::F32, widened(tie, 0)), 0x3f80_0000);
    assert_eq!(one(Scalar::F128, Scalar::F32, widened(tie, 1)), 0x3f80_0001);
    let tie = 1.0 + 2f64.powi(-8);
    assert_eq!(one(Scalar::F128, Scalar::BF16, widened(tie, 0)), 0x3f80);
    assert_eq!(one(Scalar::F128, Scalar::BF16, widened(tie, 1)), 0x3f81);
    // Through 32 bits it would be a tie.
    let above = (1.0 + 2f64.powi(-8) + 2f64.powi(-40)).to_bits();
    assert_eq!(one(Scalar::F64, Scalar::BF16, above.into()), 0x3f81);
    let below = widened(1.0 + 2f64.powi(-52), 1 << 59);
    assert_eq!(
        one(Scalar::F128, Scalar::F64, below),
        u128::from((1.0f64 + 2.0 * f64::EPSILON).to_bits())
    );
    assert_eq!(
        one(Scalar::F128, Scalar::F64, below - 1),
        u128::from((1.0f64 + f64::EPSILON).to_bits())
    );
}

#[test]
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]
fn wide_integers_become_the_nearest_floats() {
    let mut random = random();
    let mut wide: Vec<u128> = vec![0, 1, u128::MAX, u128::MAX - 1, 1 << 127, (1 << 127) + 1];
    for shift in 0..128u32 {
        let bits = u128::from(random()) << 64 | u128::from(random());
        let power = 1u128 << shift;
        wide.extend([
            bits >> shift,
            power,
            power - 1,
            power + 1,
            power | power >> 24,
            power | power >> 25 | power >> 24,
            power | power >> 53 | 1,
        ]);
    }
    for &bits in &wide {
        let signed = bits.cast_signed();
        let (low, high) = (bits as u64, bits as u32);
        for (from, bits, single, double) in [
            (Scalar::U128, bits, bits as f32, bits as f64),
            (Scalar::I128, bits, signed as f32, signed as f64),
            (Scalar::U64, low.into(), low as f32, low as f64),
            (
                Scalar::I64,
                low.into(),
                low.cast_signed() as f32,
                low.cast_signed() as f64,
            ),
            (Scalar::U32, high.into(), high as f32, f64::from(high)),
            (
                Scalar::I32,
                high.into(),
                high.cast_signed() as f32,
                f64::from(high.cast_signed()),
            ),
        ] {
            assert_eq!(
                one(from, Scalar::F32, bits),
                single.to_bits().into(),
                "{from:?} {bits}"
            );
            assert_eq!(
                one(from, Scalar::F64, bits),
                double.to_bits().into(),
                "{from:?} {bits}"
            );
        }
    }
    // By hand: 2^24 + 1 is a tie of f32, which one more bit decides.
    assert_eq!(
        one(Scalar::U64, Scalar::F32, (1 << 24) + 1),
        u128::from(16_777_216f32.to_bits())
    );
    assert_eq!(
        one(Scalar::U128, Scalar::F32, (1 << 88) + (1 << 64) + 1),
        u128::from((2f32.powi(88) + 2f32.powi(65)).to_bits())
    );
    assert_eq!(
        run(Scalar::U128, Scalar::F16, [65519, 65520].into_iter()).0,
        [0x7bff, 0x7c00]
    );
}

#[test]
#[allow(clippy::cast_possible_truncation)]
fn floats_and_integers_of_any_width_agree_with_the_machine() {
    let mut random = random();
    let mut values: Vec<f64> = vec![
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        1e300,
        -1e300,
        f64::INFINITY,
        9.3e18,
        -9.3e18,
        1.9e19,
    ];
    values.extend((0..2000).map(|_| f64::from_bits(random())));
    values.extend((0..2000).map(|_| random().cast_signed() as f64 / 1e10));
    for value in values {
        let bits = u128::from(value.to_bits());
        let rounded = value.round_ties_even();
        // `as` takes the nearest in range, and 0 for NaN.
        assert_eq!(
            one(Scalar::F64, Scalar::I64, bits),
            u128::from((rounded as i64).cast_unsigned()),
            "{value}"
        );
        assert_eq!(
            one(Scalar::F64, Scalar::U64, bits),
            u128::from(rounded as u64),
            "{value}"
        );
        assert_eq!(
            one(Scalar::F64, Scalar::I32, bits),
            u128::from((rounded as i32).cast_unsigned()),
            "{value}"
        );
        assert_eq!(
            one(Scalar::F64, Scalar::I128, bits),
            (rounded as i128).cast_unsigned(),
            "{value}"
        );
        assert_eq!(
            one(Scalar::F64, Scalar::U128, bits),
            rounded as u128,
            "{value}"
        );
        if !value.is_nan() {
            assert_eq!(
                one(Scalar::F64, Scalar::F32, bits),
                u128::from((value as f32).to_bits()),
                "{value}"
            );
            let back = one(
                Scalar::F128,
                Scalar::F64,
                one(Scalar::F64, Scalar::F128, bits),
            );
            assert_eq!(back, bits, "{value}");
        }
    }
    assert_eq!(one(Scalar::I32, Scalar::U8, 0xffff_ffff), 0);
    assert_eq!(one(Scalar::I32, Scalar::I8, 300), 127);
    assert_eq!(one(Scalar::I128, Scalar::I4, u128::MAX - 99), 8);
}

#[test]
fn loops_of_their_own_give_what_exact_numbers_give() {
    let mut random = random();
    for from in Scalar::all() {
        for to in Scalar::all() {
            let Some(_) = fast::find(from, to) else {
                continue;
            };
            let quick = Cast::new(from, to);
            let slow = Cast {
                fast: None,
                ..quick
            };
            let numbers: usize = if cfg!(miri) { 300 } else { 5000 };
            let mut input: Vec<u8> = (0..numbers * 2)
                .flat_map(|_| random().to_le_bytes())
                .collect();
            // More small, large and special ones than chance gives.
            for (n, byte) in input.iter_mut().enumerate() {
                if n % 7 == 3 {
                    *byte = [0, 0x7f, 0x80, 0xff, 0x47, 0x33][n / 7 % 6];
                }
            }
            let width = |scalar: Scalar| scalar.bits() as usize / 8;
            for misaligned in [0, 1] {
                let input = &input[misaligned..][..numbers * width(from)];
                let mut outputs = [
                    vec![0; numbers * width(to) + 1],
                    vec![0; numbers * width(to) + 1],
                ];
                let [a, b] = &mut outputs;
                let found =
                    quick.apply(numbers, input, &mut a[misaligned..][..numbers * width(to)]);
                let expected =
                    slow.apply(numbers, input, &mut b[misaligned..][..numbers * width(to)]);
                assert_eq!(found, expected, "{from:?} to {to:?}");
                assert_eq!(a, b, "{from:?} to {to:?}");
            }
        }
    }
}

#[test]
fn a_nan_stays_one_and_keeps_its_sign_and_what_fits_of_its_payload() {
    for (from, to, bits, expected) in [
        (Scalar::F32, Scalar::F16, 0x7f80_0001, 0x7e00),
        (Scalar::F32, Scalar::F16, 0xffc0_2000, 0xfe01),
        (Scalar::F32, Scalar::BF16, 0xff81_0000, 0xffc1),
        (Scalar::F16, Scalar::F32, 0xfc01, 0xffc0_2000),
        (Scalar::F32, Scalar::F64, 0xff80_0001, 0xfff8_0000_2000_0000),
        (Scalar::F64, Scalar::F32, 0x7ff0_0000_2000_0000, 0x7fc0_0001),
        (Scalar::F8E4M3, Scalar::F16, 0xff, 0xfe00),
        (
            Scalar::F64,
            Scalar::F128,
            0xfff8_0000_0000_0001,
            0xffff_8000_0000_0000_1000_0000_0000_0000,
        ),
    ] {
        assert_eq!(
            one(from, to, bits),
            expected,
            "{from:?} {bits:#x} to {to:?}"
        );
    }
}

#[test]
fn what_is_said_to_be_exact_comes_back_and_nothing_else_does() {
    for from in small() {
        let bits = if from == Scalar::Bool { 1 } else { from.bits() };
        let is_nan = |bits: u128| value(from, u32::try_from(bits).unwrap()).is_none();
        for to in Scalar::all() {
            let (there, counts) = run(from, to, 0..1 << bits);
            let (back, _) = run(to, from, there.iter().copied());
            let same = (0u128..)
                .zip(&back)
                .all(|(before, after)| before == *after || is_nan(before) && is_nan(*after));
            let clean = counts.overflows == 0 && counts.underflows == 0;
            assert_eq!(is_exact(from, to), same && clean, "{from:?} to {to:?}");
        }
    }
}

#[test]
fn the_number_that_does_not_fit_is_shown() {
    let cast = Cast::new(Scalar::I64, Scalar::U32);
    let shown = |numbers: [i64; 3]| {
        let bytes: Vec<u8> = numbers.into_iter().flat_map(i64::to_le_bytes).collect();
        cast.misfit(3, &bytes)
    };
    assert_eq!(shown([1, -5, 1 << 40]).as_deref(), Some("-5"));
    assert_eq!(shown([1, 1 << 40, 3]).as_deref(), Some("1099511627776"));
    assert_eq!(shown([1, 2, 3]), None);
}
