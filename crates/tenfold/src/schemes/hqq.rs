//! HQQ, with its state as tensors.
//!
//! | tensor | type | what |
//! |---|---|---|
//! | `X.W_q` | u8, i32 with 3 bits | codes of the matrix as groups: rows of words, each with a code of several rows |
//! | `X.scale`, `X.zero` | any floating-point type | one for each group |
//! | `X.nbits`, `X.group_size`, `X.axis`, `X.shape`, … | integers | how the matrix is cut into groups |

use super::decoder::{Formula, Grid, Quant};
use super::plane::{Packing, Plane};
use super::refused::unread;
use super::set::Set;
use super::{Built, Method};
use crate::error::Result;
use crate::prelude::*;

pub(super) const METHOD: Method = Method {
    id: "hqq",
    title: "HQQ",
    methods: &["hqq"],
    anchors: &[".W_q"],
    companions: &[".W_q", ".encoded_state_dict"],
    main: ".W_q",
    scale: ".scale",
    reads: &[".nbits", ".axis", ".shape", ".quant_scale", ".quant_zero"],
    build,
};

/// Settings that mean nothing once the weights are numbers.
const SETTINGS: &[&str] = &[
    ".channel_wise",
    ".compute_dtype",
    ".encoded_state_dict",
    ".group_size",
    ".offload_meta",
    ".optimize",
    ".packing",
    ".round_zero",
    ".stores_quant_config",
    ".unpack_view_dtype",
    ".view_as_float",
];

fn build(set: &mut Set<'_, '_>) -> Result<Option<Built>> {
    let codes = set.take(".W_q")?;
    for flag in [".quant_scale", ".quant_zero"] {
        if set.find(flag).is_some() && set.integer(flag)? != 0 {
            let message = format!("{}{flag} says that the scales are quantized too", set.base);
            return Err(unread(message).in_tensor(&codes.info.name));
        }
    }
    let bits = set.integer(".nbits")?;
    let axis = set.integer(".axis")?;
    let shape = set.integers(".shape")?;
    let shape: Option<Vec<u64>> = shape.iter().map(|dim| u64::try_from(*dim).ok()).collect();
    let count = shape.as_ref().and_then(|shape| {
        shape
            .iter()
            .try_fold(1u64, |all, dim| all.checked_mul(*dim))
    });
    let (Some(shape), Some(count)) = (shape, count) else {
        let message = "it is not the shape of a tensor";
        return Err(set.error("quantized.state", ".shape", message));
    };
    let scale = set.take(".scale")?;
    let zero = set.take(".zero")?;
    let groups = scale.elements();
    if zero.elements() != groups {
        let message = format!("{} zero points for {groups} scales", zero.elements());
        return Err(set.error("quantized.shape", ".zero", message));
    }
    if groups == 0 || !count.is_multiple_of(groups) {
        let message = format!("{groups} scales for {count} numbers");
        return Err(set.error("quantized.shape", ".scale", message));
    }
    let size = count / groups;
    let (rows, cols, block, lines) = match axis {
        1 => (groups, size, [1, size.max(1)], (groups, 1)),
        0 => (size, groups, [size.max(1), 1], (1, groups)),
        _ => {
            let message = format!("groups along axis {axis}, expected 0 or 1");
            return Err(set.error("quantized.state", ".axis", message));
        }
    };
    let Some((fields, width)) = fields(bits) else {
        let message = format!("codes of {bits} bits, expected 1, 2, 3, 4 or 8");
        return Err(set.error("quantized.state", ".nbits", message));
    };
    let bits = u32::try_from(bits).unwrap_or(8);
    let height = rows.div_ceil(fields.into());
    // Its rows and columns may be those of another type that the bytes are stored as.
    let len = height
        .checked_mul(cols)
        .and_then(|words| words.checked_mul(width));
    if len != codes.info.parts.first().map(|part| part.payload.len()) {
        let message = format!("{height} rows of {cols} words of {width} bytes are expected");
        return Err(set.error("quantized.shape", ".W_q", message));
    }
    let packing = Packing::Fields {
        bits,
        height,
        width,
        first: (fields - 1) * bits,
        falling: true,
    };
    let grid = |part, scalar| Grid::new(Plane::numbers(part, scalar, lines.0, lines.1), block);
    let plane = Plane::codes(codes.part, packing, rows, cols);
    let quant = Quant::new(plane, grid(scale.part, scale.scalar));
    let quant = quant.with(Formula::Offset, grid(zero.part, zero.scalar));
    set.leave(SETTINGS);
    Ok(Some(Built {
        name: format!("{}.weight", set.base),
        shape,
        quant,
        says: format!("{bits} bits, groups of {size} along axis {axis}"),
    }))
}

/// How many codes a word holds, and its bytes.
fn fields(bits: i64) -> Option<(u32, u64)> {
    Some(match bits {
        1 => (8, 1),
        2 => (4, 1),
        3 => (10, 4),
        4 => (2, 1),
        8 => (1, 1),
        _ => return None,
    })
}
