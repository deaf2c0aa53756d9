//! MLX: affine groups, and its mx modes.
//!
//! | tensor | type | shape |
//! |---|---|---|
//! | `X.weight` | u32: codes along the rows | [out, in * bits / 32] |
//! | `X.scales` | f16, bf16, f32; u8 in the mx modes | [out, in / group] |
//! | `X.biases` | as the scales; none in the mx modes | the same |
//!
//! A number is its code times the scale, plus the bias.

use super::decoder::{Formula, Quant};
use super::plane::{Packing, Plane, Values};
use super::refused::unread;
use super::set::{Member, Set};
use super::{Built, Method};
use crate::error::Result;
use crate::model::{Map, Quoted, Scalar, Value};
use crate::prelude::*;

pub(super) const METHOD: Method = Method {
    id: "mlx",
    title: "MLX",
    methods: &["mlx"],
    anchors: &[".scales"],
    companions: &[],
    main: ".weight",
    scale: ".scales",
    reads: &[],
    build,
};

const FLOATS: [Scalar; 3] = [Scalar::F16, Scalar::BF16, Scalar::F32];
const BITS: [u64; 6] = [2, 3, 4, 5, 6, 8];
const GROUPS: [u64; 3] = [32, 64, 128];

/// How codes and scales are meant.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Mode {
    Affine,
    Mxfp4,
    Mxfp8,
    Nvfp4,
}

/// Modes without biases: what codes and scales are, the bits of a code, and the size of a group.
const MODES: [(Mode, &str, Scalar, Scalar, u64, u64); 3] = [
    (Mode::Mxfp4, "mxfp4", Scalar::F4E2M1, Scalar::F8E8M0, 4, 32),
    (Mode::Mxfp8, "mxfp8", Scalar::F8E4M3, Scalar::F8E8M0, 8, 32),
    (Mode::Nvfp4, "nvfp4", Scalar::F4E2M1, Scalar::F8E4M3, 4, 16),
];

fn build(set: &mut Set<'_, '_>) -> Result<Option<Built>> {
    if set.scalar(".weight") != Some(Scalar::U32) {
        return Ok(None);
    }
    let codes = set.take(".weight")?;
    let scales = set.take(".scales")?;
    let [rows, words] = codes.rows()?;
    let row_len = words.saturating_mul(4);
    let [_, groups] = scales.rows()?;
    let (mode, bits, group) = meaning(set, scales, words, groups)?;
    let cols = words
        .checked_mul(32)
        .filter(|all| all.is_multiple_of(bits))
        .map(|all| all / bits);
    let Some(cols) = cols else {
        let message = format!("{words} words hold no whole number of codes of {bits} bits");
        return Err(set.error("quantized.shape", ".weight", message));
    };
    let packing = Packing::Along {
        // 8 at most.
        bits: u32::try_from(bits).unwrap_or(8),
        row_len,
    };
    let plane = Plane::codes(codes.part, packing, rows, cols);
    let said = [Some(1), Some(group)];
    let flat = |member: Member<'_>, scalar: Scalar| {
        let [lines, _] = member.rows()?;
        if lines != rows {
            let message = format!("{lines} rows of scales for {rows} rows of codes");
            return Err(super::set::wrong(member.info, "quantized.shape", message));
        }
        let block = member.block(cols, member.rows()?[1], said[1])?;
        let plane = Plane::numbers(member.part, scalar, rows, member.rows()?[1]);
        Ok(super::decoder::Grid::new(plane, [1, block]))
    };
    let mut shape = codes.shape().to_vec();
    if let Some(last) = shape.last_mut() {
        *last = cols;
    }
    let quant = if let Some(row) = MODES.iter().find(|row| row.0 == mode) {
        let scales = scales.is_of(&[Scalar::U8])?;
        Quant::new(plane.meaning(Values::Scalar(row.2)), flat(scales, row.3)?)
    } else {
        let scales = scales.is_of(&FLOATS)?;
        let biases = set
            .take(".biases")?
            .is_of(&FLOATS)?
            .has_shape(scales.shape())?;
        let grid = flat(scales, scales.scalar)?;
        Quant::new(plane, grid).with(Formula::Plus, flat(biases, biases.scalar)?)
    };
    let name = MODES
        .iter()
        .find(|row| row.0 == mode)
        .map_or("affine", |row| row.1);
    Ok(Some(Built {
        name: codes.info.name.clone(),
        shape,
        quant,
        says: format!("{name}, {bits} bits, groups of {group}"),
    }))
}

/// The mode, the bits of a code and the size of a group: as the configuration says for the module or for all of them, else
/// what the shapes leave.
fn meaning(
    set: &Set<'_, '_>,
    scales: Member<'_>,
    words: u64,
    groups: u64,
) -> Result<(Mode, u64, u64)> {
    let Some(config) = set.config() else {
        return guess(set, scales, words, groups);
    };
    let own = match config.get(&[set.base]) {
        Some(Value::Map(own)) => Some(own),
        _ => None,
    };
    let number = |map: &Map, key: &str| map.get(key).and_then(|value| value.as_u64());
    let said = |key: &str| {
        let own = own.as_ref().and_then(|own| number(own, key));
        own.or_else(|| number(config.entries(), key))
    };
    let text = |map: &Map| Some(map.get("mode")?.as_str()?.to_lowercase());
    let mode = own
        .as_ref()
        .and_then(text)
        .or_else(|| text(config.entries()));
    let (mode, usual) = match mode.as_deref() {
        None | Some("affine") => (Mode::Affine, (4, 64)),
        Some(name) => match MODES.iter().find(|row| row.1 == name) {
            Some(row) => (row.0, (row.4, row.5)),
            None => {
                let message = format!("{} says that the mode is {}", config.file, Quoted(name));
                return Err(unread(message));
            }
        },
    };
    let bits = said("bits").unwrap_or(usual.0);
    let group = said("group_size").unwrap_or(usual.1);
    let is_known = match MODES.iter().find(|row| row.0 == mode) {
        Some(row) => (bits, group) == (row.4, row.5),
        None => BITS.contains(&bits) && group > 0,
    };
    if is_known {
        Ok((mode, bits, group))
    } else {
        Err(config.wrong(format_args!("{bits} bits in groups of {group} are unknown")))
    }
}

/// What a row of codes and one of scales leave.
fn guess(
    set: &Set<'_, '_>,
    scales: Member<'_>,
    words: u64,
    groups: u64,
) -> Result<(Mode, u64, u64)> {
    let all = words.saturating_mul(32);
    let fits = |bits: u64, group: u64| groups.checked_mul(bits * group) == Some(all);
    if scales.scalar == Scalar::U8 {
        let row = MODES.iter().find(|row| fits(row.4, row.5));
        return row.map(|row| (row.0, row.4, row.5)).ok_or_else(|| {
            let message = format!("{groups} scales for {words} words fit no mode");
            set.error("quantized.shape", ".scales", message)
        });
    }
    let pairs = BITS
        .iter()
        .flat_map(|bits| GROUPS.iter().map(move |group| (*bits, *group)));
    let fitting: Vec<_> = pairs.filter(|(bits, group)| fits(*bits, *group)).collect();
    match fitting.as_slice() {
        [(bits, group)] => Ok((Mode::Affine, *bits, *group)),
        [] => {
            let message = format!("{groups} scales for {words} words fit no bits and groups");
            Err(set.error("quantized.shape", ".scales", message))
        }
        several => {
            let each = several
                .iter()
                .map(|(bits, group)| format!("{bits} bits in groups of {group}"));
            let each: Vec<_> = each.collect();
            let message = format!(
                "it could have {}; only a configuration can say which",
                each.join(" or ")
            );
            Err(set.ambiguous(message))
        }
    }
}
