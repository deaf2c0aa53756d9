//! AWQ in its `gemm` form, 4 bits.
//!
//! | tensor | type | shape |
//! |---|---|---|
//! | `X.qweight` | i32: eight codes of a row in an order of its own | [in, out / 8] |
//! | `X.qzeros` | the same | [groups, out / 8] |
//! | `X.scales` | f16, bf16 or f32 | [groups, out] |
//!
//! The numbers are [out, in]: rows and columns are exchanged.

use super::config::Config;
use super::decoder::{Formula, Grid, Quant};
use super::gptq::{SCALES, is_along};
use super::plane::{Packing, Plane};
use super::refused::unread;
use super::set::Set;
use super::{Built, Method};
use crate::error::Result;
use crate::model::{Quoted, Scalar};
use crate::prelude::*;

pub(super) const METHOD: Method = Method {
    id: "awq",
    title: "AWQ",
    methods: &["awq"],
    anchors: &[".qweight"],
    companions: &[".qweight", ".qzeros"],
    main: ".qweight",
    scale: ".scales",
    reads: &[],
    build,
};

fn build(set: &mut Set<'_, '_>) -> Result<Option<Built>> {
    if let Some(config) = set.config() {
        check_version(config)?;
    }
    let words = set.take(".qweight")?.is_of(&[Scalar::I32])?;
    let scales = set.take(".scales")?.is_of(&SCALES)?;
    if !is_along(words, scales) {
        if set.config().is_none() {
            return Ok(None);
        }
        let message = format!(
            "its shape is {:?}, and that of the scales {:?}: eight codes in a word would have eight scales",
            words.shape(),
            scales.shape()
        );
        return Err(set.error("quantized.shape", ".qweight", message));
    }
    let [groups, cols] = scales.matrix()?;
    let [rows, wide] = words.matrix()?;
    let zeros = set
        .take(".qzeros")?
        .is_of(&[Scalar::I32])?
        .has_shape(&[groups, wide])?;
    let said = set.config().and_then(|config| {
        config
            .number("group_size")
            .or_else(|| config.number("q_group_size"))
    });
    let group = scales.block(rows, groups, said)?;
    let plane = |part, rows| Plane::codes(part, Packing::Interleaved, rows, cols).turned();
    let scales = Grid::new(scales.plane(groups, cols).turned(), [1, group]);
    let zeros = Grid::new(plane(zeros.part, groups), [1, group]);
    let quant = Quant::new(plane(words.part, rows), scales).with(Formula::Offset, zeros);
    Ok(Some(Built {
        name: format!("{}.weight", set.base),
        shape: vec![cols, rows],
        quant,
        says: format!("4 bits, groups of {group}"),
    }))
}

fn check_version(config: &Config) -> Result<()> {
    let says = |what: String| {
        Err(unread(format!(
            "{} says that the weights are {what}",
            config.file
        )))
    };
    let bits = config.number("bits").or_else(|| config.number("w_bit"));
    match config.text("version") {
        Some(version) if version != "gemm" => says(format!("laid out as {}", Quoted(&version))),
        _ if bits.is_some_and(|bits| bits != 4) => {
            says(format!("of {} bits", bits.unwrap_or_default()))
        }
        _ => Ok(()),
    }
}
