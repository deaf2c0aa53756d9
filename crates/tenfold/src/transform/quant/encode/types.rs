//! The types that numbers are written in.

#[cfg(feature = "std")]
use super::grids;
use super::{floats, legacy, nonlinear, small_codes, super_blocks};

/// Writes the blocks of numbers.
pub(super) type Plain = fn(&[f32], &mut [u8]);

/// Writes blocks of one row of numbers that have importances. The last number is the mean of the squares of the row.
pub(super) type Weighted = fn(&[f32], &[f32], f32, &mut [u8]);

/// How a type is written.
pub(super) struct Encoder {
    pub(super) name: &'static str,
    /// Without importances; some types make no sense without.
    pub(super) plain: Option<Plain>,
    /// With importances; some types do not use them.
    pub(super) weighted: Option<Weighted>,
    /// With importances, a block depends on its whole row.
    pub(super) whole_rows: bool,
    pub(super) scales: Scales,
}

/// Where a block says how large its numbers are.
pub(super) enum Scales {
    /// In numbers of 16 bits at these places.
    Halves(&'static [usize]),
    /// In the first byte, which holds any power of two that a number of 32 bits has.
    Powers,
    /// In the first bytes, one for 16 numbers each, of which this is the largest.
    Bytes { most: f32 },
}

const fn encoder(name: &'static str, plain: Plain, scales: Scales) -> Encoder {
    Encoder {
        name,
        plain: Some(plain),
        weighted: None,
        whole_rows: false,
        scales,
    }
}

/// A type that makes no sense without importances.
#[cfg(feature = "std")]
const fn weighted_only(name: &'static str, weighted: Weighted, scales: Scales) -> Encoder {
    Encoder {
        name,
        plain: None,
        weighted: Some(weighted),
        whole_rows: false,
        scales,
    }
}

impl Encoder {
    const fn weighted(mut self, weighted: Weighted) -> Self {
        self.weighted = Some(weighted);
        self
    }

    const fn of_rows(mut self) -> Self {
        self.whole_rows = true;
        self
    }
}

use Scales::{Bytes, Halves, Powers};

/// The types that are written.
pub(super) static TYPES: &[Encoder] = &[
    encoder("Q4_0", |x, out| each(x, out, legacy::q4_0), Halves(&[0]))
        .weighted(legacy::q4_0_weighted)
        .of_rows(),
    encoder("Q4_1", |x, out| each(x, out, legacy::q4_1), Halves(&[0, 2]))
        .weighted(legacy::q4_1_weighted)
        .of_rows(),
    encoder("Q5_0", |x, out| each(x, out, legacy::q5_0), Halves(&[0]))
        .weighted(legacy::q5_0_weighted)
        .of_rows(),
    encoder("Q5_1", |x, out| each(x, out, legacy::q5_1), Halves(&[0, 2]))
        .weighted(legacy::q5_1_weighted)
        .of_rows(),
    encoder("Q8_0", |x, out| each(x, out, legacy::q8_0), Halves(&[0])),
    encoder(
        "Q2_K",
        |x, out| each(x, out, super_blocks::q2_k),
        Halves(&[80, 82]),
    )
    .weighted(|x, q, _, out| pairs(x, q, out, super_blocks::q2_k_weighted)),
    encoder(
        "Q3_K",
        |x, out| each(x, out, super_blocks::q3_k),
        Halves(&[108]),
    )
    .weighted(|x, q, _, out| pairs(x, q, out, super_blocks::q3_k_weighted)),
    encoder(
        "Q4_K",
        |x, out| each(x, out, super_blocks::q4_k),
        Halves(&[0, 2]),
    )
    .weighted(|x, q, _, out| pairs(x, q, out, super_blocks::q4_k_weighted)),
    encoder(
        "Q5_K",
        |x, out| each(x, out, super_blocks::q5_k),
        Halves(&[0, 2]),
    )
    .weighted(|x, q, _, out| pairs(x, q, out, super_blocks::q5_k_weighted)),
    encoder(
        "Q6_K",
        |x, out| each(x, out, super_blocks::q6_k),
        Halves(&[208]),
    )
    .weighted(|x, q, _, out| pairs(x, q, out, super_blocks::q6_k_weighted)),
    encoder(
        "IQ4_NL",
        |x, out| nonlinear::iq4_nl(x, None, out),
        Halves(&[0]),
    )
    .weighted(|x, q, _, out| nonlinear::iq4_nl(x, Some(q), out)),
    encoder(
        "IQ4_XS",
        |x, out| each(x, out, |x, out| nonlinear::iq4_xs(x, None, out)),
        Halves(&[0]),
    )
    .weighted(|x, q, _, out| pairs(x, q, out, |x, q, out| nonlinear::iq4_xs(x, Some(q), out))),
    #[cfg(feature = "std")]
    weighted_only(
        "IQ1_S",
        |x, q, _, out| pairs(x, q, out, grids::iq1_s),
        Halves(&[0]),
    ),
    #[cfg(feature = "std")]
    weighted_only(
        "IQ2_XXS",
        |x, q, _, out| pairs(x, q, out, grids::iq2_xxs),
        Halves(&[0]),
    ),
    #[cfg(feature = "std")]
    weighted_only(
        "IQ2_XS",
        |x, q, _, out| pairs(x, q, out, grids::iq2_xs),
        Halves(&[0]),
    ),
    #[cfg(feature = "std")]
    encoder(
        "IQ2_S",
        |x, out| each(x, out, |x, out| grids::iq2_s(x, None, out)),
        Halves(&[0]),
    )
    .weighted(|x, q, _, out| pairs(x, q, out, |x, q, out| grids::iq2_s(x, Some(q), out))),
    #[cfg(feature = "std")]
    encoder(
        "IQ3_XXS",
        |x, out| each(x, out, |x, out| grids::iq3_xxs(x, None, out)),
        Halves(&[0]),
    )
    .weighted(|x, q, _, out| pairs(x, q, out, |x, q, out| grids::iq3_xxs(x, Some(q), out))),
    #[cfg(feature = "std")]
    encoder(
        "IQ3_S",
        |x, out| each(x, out, |x, out| grids::iq3_s(x, None, out)),
        Halves(&[0]),
    )
    .weighted(|x, q, _, out| pairs(x, q, out, |x, q, out| grids::iq3_s(x, Some(q), out))),
    encoder(
        "TQ1_0",
        |x, out| each(x, out, small_codes::tq1_0),
        Halves(&[52]),
    ),
    encoder(
        "TQ2_0",
        |x, out| each(x, out, small_codes::tq2_0),
        Halves(&[64]),
    ),
    encoder(
        "Q1_0",
        |x, out| each(x, out, small_codes::q1_0),
        Halves(&[0]),
    ),
    encoder(
        "Q2_0",
        |x, out| each(x, out, small_codes::q2_0),
        Halves(&[0]),
    ),
    encoder("MXFP4", |x, out| each(x, out, floats::mxfp4), Powers),
    encoder(
        "NVFP4",
        |x, out| each(x, out, floats::nvfp4),
        // The largest scale times the largest value.
        Bytes { most: 448.0 * 6.0 },
    ),
];

/// One block after the other.
#[inline(always)]
fn each<const N: usize, const BYTES: usize>(
    x: &[f32],
    out: &mut [u8],
    encode: impl Fn(&[f32; N], &mut [u8; BYTES]),
) {
    for (x, out) in x.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
        encode(x, out);
    }
}

/// The same with importances.
#[inline(always)]
fn pairs<const N: usize, const BYTES: usize>(
    x: &[f32],
    importance: &[f32],
    out: &mut [u8],
    encode: impl Fn(&[f32; N], &[f32; N], &mut [u8; BYTES]),
) {
    let blocks = x.as_chunks().0.iter().zip(importance.as_chunks().0);
    for ((x, q), out) in blocks.zip(out.as_chunks_mut().0) {
        encode(x, q, out);
    }
}
