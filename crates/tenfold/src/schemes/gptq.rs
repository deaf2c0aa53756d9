//! GPTQ, with 2, 3, 4 or 8 bits.
//!
//! | tensor | type | shape |
//! |---|---|---|
//! | `X.qweight` | i32: codes down the rows | [in * bits / 32, out] |
//! | `X.qzeros` | i32: zero points along the rows | [groups, out * bits / 32] |
//! | `X.scales` | f16, bf16 or f32 | [groups, out] |
//! | `X.g_idx` | i32: the group of each row | \[in\] |
//!
//! The numbers are [out, in]: rows and columns are exchanged. The first version stores zero points less one, the second as
//! they are; files that say that they are of the first and have the zero points of the second are known by these.

use super::config::Config;
use super::decoder::{Formula, Grid, Order, Quant};
use super::plane::{Once, Packing, Plane, Values};
use super::refused::unread;
use super::set::{Member, Set};
use super::{Built, Method};
use crate::error::Result;
use crate::model::{Quoted, Scalar};
use crate::prelude::*;

pub(super) const METHOD: Method = Method {
    id: "gptq",
    title: "GPTQ",
    methods: &["gptq", "gptq-v2"],
    anchors: &[".qweight"],
    companions: &[".qweight", ".qzeros", ".g_idx"],
    main: ".qweight",
    scale: ".scales",
    reads: &[],
    build,
};

pub(super) const SCALES: [Scalar; 3] = [Scalar::F16, Scalar::BF16, Scalar::F32];
const BITS: [u32; 4] = [2, 3, 4, 8];

/// Whether the scales are for eight times as many columns as there are words in a row: a layout with codes along the rows.
pub(super) fn is_along(words: Member<'_>, scales: Member<'_>) -> bool {
    let (words, scales) = (words.shape().last(), scales.shape().last());
    scales
        .zip(words)
        .is_some_and(|(scales, words)| words.checked_mul(8) == Some(*scales))
}

fn build(set: &mut Set<'_, '_>) -> Result<Option<Built>> {
    let is_second = match set.config() {
        Some(config) => is_second_version(config)?,
        None => false,
    };
    let words = set.take(".qweight")?.is_of(&[Scalar::I32])?;
    let scales = set.take(".scales")?.is_of(&SCALES)?;
    if is_along(words, scales) && set.config().is_none() {
        return Ok(None);
    }
    let zeros = set.take(".qzeros")?.is_of(&[Scalar::I32])?;
    let [groups, cols] = scales.matrix()?;
    let [down, wide] = words.matrix()?;
    if wide != cols {
        let message = format!("it has {wide} columns, and the scales {cols}");
        return Err(set.error("quantized.shape", ".qweight", message));
    }
    let [zero_rows, zero_words] = zeros.matrix()?;
    let bits = bits(set, cols, zero_words, down)?;
    let rows = down
        .checked_mul(32)
        .filter(|all| all.is_multiple_of(bits.into()));
    let Some(rows) = rows.map(|all| all / u64::from(bits)) else {
        let message = format!("{down} rows of words hold no whole number of codes of {bits} bits");
        return Err(set.error("quantized.shape", ".qweight", message));
    };
    if zero_rows != groups {
        let message = format!("it has {zero_rows} rows for {groups} groups");
        return Err(set.error("quantized.shape", ".qzeros", message));
    }
    // Columns in another order than that of groups are listed.
    let is_listed = set.config().and_then(|config| config.flag("desc_act")) == Some(true);
    let index = if is_listed {
        Some(set.take(".g_idx")?)
    } else {
        set.maybe(".g_idx")?
    };
    let order = match index {
        Some(index) => {
            let index = index
                .is_of(&[Scalar::I32, Scalar::I64])?
                .has_shape(&[rows])?;
            Some(Order {
                blocks: index.plane(1, rows),
                may_be_plain: false,
                is_plain: Once::default(),
            })
        }
        None => None,
    };
    let said = set.config().and_then(|config| config.number("group_size"));
    let group = match &order {
        // Groups are listed, whatever their size is.
        Some(_) => rows.div_ceil(groups.max(1)).max(1),
        None => scales.block(rows, groups, said)?,
    };
    let row_len = zero_words.saturating_mul(4);
    let zeros = Plane::codes(zeros.part, Packing::Along { bits, row_len }, groups, cols);
    let zeros = zeros
        .meaning(zero_values(set.config(), bits, is_second))
        .turned();
    let codes = Plane::codes(words.part, Packing::Down { bits }, rows, cols).turned();
    let scales = Grid::new(scales.plane(groups, cols).turned(), [1, group]);
    let mut quant = Quant::new(codes, scales).with(Formula::Offset, Grid::new(zeros, [1, group]));
    let listed = if order.is_some() { ", listed" } else { "" };
    quant.order = order;
    Ok(Some(Built {
        name: format!("{}.weight", set.base),
        shape: vec![cols, rows],
        quant,
        says: format!("{bits} bits, groups of {group}{listed}"),
    }))
}

/// How zero points are stored.
fn zero_values(config: Option<&Config>, bits: u32, is_second: bool) -> Values {
    let is_symmetric = config.and_then(|config| config.flag("sym")).unwrap_or(true);
    if is_second {
        Values::Same
    } else if is_symmetric {
        Values::SameIfAll(1 << (bits - 1), Once::default())
    } else {
        Values::Next
    }
}

/// Whether zero points are stored as they are; other layouts are refused.
fn is_second_version(config: &Config) -> Result<bool> {
    let format = config
        .text("checkpoint_format")
        .or_else(|| config.text("format"));
    let is_marlin = config.flag("is_marlin_format") == Some(true);
    match format.as_deref() {
        _ if is_marlin => Err(unread(format!(
            "{} says that the weights are laid out for Marlin",
            config.file
        ))),
        None | Some("gptq") => Ok(config.method == "gptq-v2"),
        Some("gptq_v2") => Ok(true),
        Some(other) => Err(unread(format!(
            "{} says that the weights are laid out as {}",
            config.file,
            Quoted(other)
        ))),
    }
}

/// The bits of a code, by the zero points of a row, and by the rows where something lists them.
fn bits(set: &Set<'_, '_>, cols: u64, words: u64, down: u64) -> Result<u32> {
    let rows = set.find(".g_idx").and_then(|index| index.elements());
    let fits = |bits: &u32| {
        let bits = u64::from(*bits);
        let is_wide = cols.checked_mul(bits).map(|all| all.div_ceil(32)) == Some(words);
        let is_high = rows.is_none_or(|rows| rows.checked_mul(bits) == down.checked_mul(32));
        is_wide && is_high
    };
    let fitting: Vec<u32> = BITS.into_iter().filter(fits).collect();
    let config = set.config();
    let said = config.and_then(|config| config.number("bits"));
    let may_differ = config.is_some_and(|config| config.get(&["dynamic"]).is_some());
    match (said, fitting.as_slice()) {
        (Some(said), _) if fitting.iter().any(|bits| u64::from(*bits) == said) => {
            Ok(u32::try_from(said).unwrap_or_default())
        }
        (Some(said), [_, ..]) if !may_differ => {
            let message =
                format!("{words} words for {cols} zero points are not those of {said} bits");
            Err(set.error("quantized.shape", ".qzeros", message))
        }
        (_, [only]) => Ok(*only),
        (_, []) => {
            let message =
                format!("{words} words for {cols} zero points fit none of 2, 3, 4 and 8 bits");
            Err(set.error("quantized.shape", ".qzeros", message))
        }
        (_, _) => {
            let message = format!(
                "{words} words for {cols} zero points can be of several widths; only a configuration can say which"
            );
            Err(set.ambiguous(message))
        }
    }
}
