//! Loops for the pairs of types that large files are cast between.
//!
//! They work on whole slices of numbers that the compiler can use vectors for, and count apart from casting, which is
//! cheap because hardly any block of numbers has something to count.

use bytemuck::Pod;
use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

use crate::model::Scalar;

use super::CastCounts;

/// Casts numbers that fill both slices.
pub(super) type Fast = fn(&[u8], &mut [u8]) -> CastCounts;

/// Numbers at a time: they stay in the nearest cache between casting and counting.
const BLOCK: usize = 1024;

/// The loop for a pair of types, if it has one.
pub(super) fn find(from: Scalar, to: Scalar) -> Option<Fast> {
    // The loops take bytes for numbers of this machine. A browser casts few numbers, and would have to load the loops.
    if cfg!(any(target_endian = "big", target_family = "wasm")) {
        return None;
    }
    let found = FAST.iter().find(|(pair, _)| *pair == (from, to));
    found.map(|(_, fast)| *fast)
}

/// Integers, which have a nearest floating-point number in range, whatever they are.
macro_rules! integers {
    ($from:ident, $number:ty, $to:ident, $float:ty) => {
        ((Scalar::$from, Scalar::$to), |input, output| {
            blocks(input, output, |from: &[$number], to: &mut [$float]| {
                for (from, to) in from.iter().zip(to) {
                    *to = *from as $float;
                }
                CastCounts::default()
            })
        })
    };
}

#[allow(clippy::cast_precision_loss, clippy::cast_lossless)] // to the nearest, ties to even, as wanted
const FAST: &[((Scalar, Scalar), Fast)] = &[
    ((Scalar::F32, Scalar::F16), |input, output| {
        blocks(input, output, |from: &[f32], to: &mut [u16]| {
            to.reinterpret_cast_mut::<f16>()
                .convert_from_f32_slice(from);
            count_f32(from, LARGE_HALF, SMALL_HALF)
        })
    }),
    ((Scalar::F32, Scalar::BF16), |input, output| {
        blocks(input, output, |from: &[f32], to: &mut [u16]| {
            // From half way between the greatest and infinity on; up to half of the smallest.
            let (large, small) = (0x7f7f_8000, 0x8000);
            if are_plain(from, large, small) {
                plain_f32_to_bf16(from, to);
                return CastCounts::default();
            }
            f32_to_bf16(from, to);
            count_f32(from, large, small)
        })
    }),
    ((Scalar::F16, Scalar::F32), |input, output| {
        blocks(input, output, |from: &[u16], to: &mut [f32]| {
            from.reinterpret_cast::<f16>().convert_to_f32_slice(to);
            count_nans(from, 0x7c00)
        })
    }),
    ((Scalar::BF16, Scalar::F32), |input, output| {
        blocks(input, output, |from: &[u16], to: &mut [f32]| {
            let counts = count_nans(from, 0x7f80);
            match counts.nans {
                0 => plain_bf16_to_f32(from, to),
                _ => bf16_to_f32(from, to),
            }
            counts
        })
    }),
    ((Scalar::F16, Scalar::BF16), |input, output| {
        blocks(input, output, |from: &[u16], to: &mut [u16]| {
            let mut wide = [0.0; BLOCK];
            let wide = &mut wide[..from.len()];
            from.reinterpret_cast::<f16>().convert_to_f32_slice(wide);
            f32_to_bf16(wide, to);
            // Every half is in range.
            count_nans(from, 0x7c00)
        })
    }),
    ((Scalar::BF16, Scalar::F16), |input, output| {
        blocks(input, output, |from: &[u16], to: &mut [u16]| {
            let mut wide = [0.0; BLOCK];
            let wide = &mut wide[..from.len()];
            bf16_to_f32(from, wide);
            to.reinterpret_cast_mut::<f16>()
                .convert_from_f32_slice(wide);
            count_f32(wide, LARGE_HALF, SMALL_HALF)
        })
    }),
    ((Scalar::F32, Scalar::F64), |input, output| {
        blocks(input, output, |from: &[u32], to: &mut [u64]| {
            for (from, to) in from.iter().zip(to) {
                *to = widen(*from);
            }
            count_f32(bytemuck::cast_slice(from), INFINITY, 0)
        })
    }),
    ((Scalar::F64, Scalar::F32), |input, output| {
        blocks(input, output, |from: &[f64], to: &mut [u32]| {
            for (from, to) in from.iter().zip(to) {
                *to = narrow(*from);
            }
            count_f64(from)
        })
    }),
    integers!(I8, i8, F32, f32),
    integers!(I16, i16, F32, f32),
    integers!(I32, i32, F32, f32),
    integers!(I64, i64, F32, f32),
    integers!(U8, u8, F32, f32),
    integers!(U16, u16, F32, f32),
    integers!(U32, u32, F32, f32),
    integers!(U64, u64, F32, f32),
    integers!(I8, i8, F64, f64),
    integers!(I16, i16, F64, f64),
    integers!(I32, i32, F64, f64),
    integers!(I64, i64, F64, f64),
    integers!(U8, u8, F64, f64),
    integers!(U16, u16, F64, f64),
    integers!(U32, u32, F64, f64),
    integers!(U64, u64, F64, f64),
];

/// The bits of infinity.
const INFINITY: u32 = 0x7f80_0000;
/// The bits of 65520, half way between the greatest half and the next that there would be: rounded up to infinity.
const LARGE_HALF: u32 = 0x477f_f000;
/// The bits of half of the smallest half, 2 to the -25: a tie that goes to zero.
const SMALL_HALF: u32 = 0x3300_0000;

/// Gives the numbers block by block, as they are where they are aligned, else through a copy.
#[inline(always)]
fn blocks<A: Pod, B: Pod>(
    input: &[u8],
    output: &mut [u8],
    cast: impl Fn(&[A], &mut [B]) -> CastCounts,
) -> CastCounts {
    let mut counts = CastCounts::default();
    let inputs = input.chunks(BLOCK * size_of::<A>());
    for (input, output) in inputs.zip(output.chunks_mut(BLOCK * size_of::<B>())) {
        counts += match (
            bytemuck::try_cast_slice(input),
            bytemuck::try_cast_slice_mut(output),
        ) {
            (Ok(from), Ok(to)) => cast(from, to),
            _ => {
                let mut from = [A::zeroed(); BLOCK];
                let mut to = [B::zeroed(); BLOCK];
                let numbers = input.len() / size_of::<A>();
                let (from, to) = (&mut from[..numbers], &mut to[..numbers]);
                bytemuck::cast_slice_mut(from).copy_from_slice(input);
                let counts = cast(from, to);
                output.copy_from_slice(bytemuck::cast_slice(to));
                counts
            }
        };
    }
    counts
}

/// Numbers that stay finite.
fn plain_f32_to_bf16(from: &[f32], to: &mut [u16]) {
    for (from, to) in from.iter().zip(to) {
        let bits = from.to_bits();
        #[allow(clippy::cast_possible_truncation)] // 16 bits are left
        let half = ((bits + (0x7fff + (bits >> 16 & 1))) >> 16) as u16;
        *to = half;
    }
}

fn f32_to_bf16(from: &[f32], to: &mut [u16]) {
    for (from, to) in from.iter().zip(to) {
        let bits = from.to_bits();
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
        let chosen = if bits & 0x7fff_ffff > 0x7f80_0000 {
            bits | 0x0040_0000
        } else {
            rounded
        };
        #[allow(clippy::cast_possible_truncation)] // 16 bits are left
        let half = (chosen >> 16) as u16;
        *to = half;
    }
}

/// Numbers without NaN among them.
fn plain_bf16_to_f32(from: &[u16], to: &mut [f32]) {
    for (from, to) in from.iter().zip(to) {
        *to = f32::from_bits(u32::from(*from) << 16);
    }
}

fn bf16_to_f32(from: &[u16], to: &mut [f32]) {
    for (from, to) in from.iter().zip(to) {
        let quiet = if from & 0x7fff > 0x7f80 { 0x40 } else { 0 };
        *to = f32::from_bits(u32::from(from | quiet) << 16);
    }
}

/// NaN is widened by its bits: what processors make of it differs.
#[inline(always)]
fn widen(bits: u32) -> u64 {
    let payload = u64::from(bits & 0x7f_ffff) << 29;
    let nan = u64::from(bits >> 31) << 63 | 0x7ff8_0000_0000_0000 | payload;
    if bits & 0x7fff_ffff > 0x7f80_0000 {
        nan
    } else {
        f64::from(f32::from_bits(bits)).to_bits()
    }
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // to the nearest, as wanted
fn narrow(from: f64) -> u32 {
    let bits = from.to_bits();
    let nan = (bits >> 32) as u32 & 0x8000_0000 | 0x7fc0_0000 | (bits >> 29) as u32 & 0x7f_ffff;
    if from.is_nan() {
        nan
    } else {
        (from as f32).to_bits()
    }
}

/// Whether the magnitudes of all numbers are between those with these bits.
fn are_plain(numbers: &[f32], large: u32, small: u32) -> bool {
    let found = numbers.iter().map(|number| {
        // Those that are too small come out above all others.
        let above = (number.to_bits() & 0x7fff_ffff).wrapping_sub(small + 1);
        u32::from(above >= large - small - 1)
    });
    found.sum::<u32>() == 0
}

/// Counts numbers that become infinite, which are those from `large` on, and that become zero, which are those up to
/// `small`, both given by their bits.
fn count_f32(numbers: &[f32], large: u32, small: u32) -> CastCounts {
    if are_plain(numbers, large, small) {
        return CastCounts::default();
    }
    let count = |is: &dyn Fn(u32) -> bool| -> u64 {
        let found = numbers.iter().filter(|n| is(n.to_bits() & 0x7fff_ffff));
        found.count() as u64
    };
    CastCounts {
        numbers: 0,
        overflows: count(&|magnitude| (large..INFINITY).contains(&magnitude)),
        underflows: count(&|magnitude| (1..=small).contains(&magnitude)),
        nans: count(&|magnitude| magnitude > INFINITY),
    }
}

/// Counts what becomes infinite or zero as 32 bits.
#[allow(clippy::cast_possible_truncation)] // to the nearest, as wanted
fn count_f64(numbers: &[f64]) -> CastCounts {
    let mut counts = CastCounts::default();
    let is_remarkable = |number: f64| {
        let cast = number as f32;
        !cast.is_finite() || cast == 0.0
    };
    let remarkable = numbers.iter().map(|n| u32::from(is_remarkable(*n)));
    if remarkable.sum::<u32>() == 0 {
        return counts;
    }
    for &number in numbers {
        let cast = number as f32;
        counts.nans += u64::from(number.is_nan());
        counts.overflows += u64::from(number.is_finite() && cast.is_infinite());
        counts.underflows += u64::from(number != 0.0 && cast == 0.0);
    }
    counts
}

/// Counts NaN among numbers of 16 bits.
fn count_nans(numbers: &[u16], infinity: u16) -> CastCounts {
    let nans = numbers
        .iter()
        .map(|bits| u16::from(bits & 0x7fff > infinity));
    CastCounts {
        // A block has fewer numbers than 16 bits can count.
        nans: nans.sum::<u16>().into(),
        ..CastCounts::default()
    }
}
