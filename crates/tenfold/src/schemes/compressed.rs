//! compressed-tensors, as llm-compressor writes it.
//!
//! | format | tensors beside `X.` | number |
//! |---|---|---|
//! | float, int | `weight` f8_e4m3 or i8, `weight_scale`, `weight_zero_point` | (code - zero) * scale |
//! | pack-quantized | `weight_packed` i32, `weight_scale` [out, groups], `weight_shape`, `weight_zero_point` i32 down the rows, `weight_g_idx` | (code - 2^(bits-1) - zero) * scale |
//! | nvfp4 | `weight_packed` u8, `weight_scale` e4m3 [out, in/16], `weight_global_scale` | e2m1 * (scale / global) |
//! | mxfp4, mxfp8 | `weight_packed` u8 or `weight` f8_e4m3, `weight_scale` u8 [out, in/32] | code * 2^(scale-127) |
//!
//! Several formats may be in one file, so each tensor is taken by its types. Versions up to 0.9.4 put as many codes into a
//! word as are whole in it; the number of words tells which it was.

use super::decoder::{Formula, Global, Grid, Order, Quant};
use super::fp8::{FLOATS, is_power, number_of};
use super::plane::{Once, Packing, Plane, Values};
use super::refused::unread;
use super::set::{Member, Set};
use super::{Built, Method};
use crate::error::Result;
use crate::model::{Scalar, Value};
use crate::prelude::*;

pub(super) const METHOD: Method = Method {
    id: "compressed-tensors",
    title: "compressed-tensors",
    methods: &["compressed-tensors"],
    anchors: &[".weight_scale", ".weight_packed"],
    companions: &[
        ".weight_packed",
        ".weight_global_scale",
        ".weight_zero_point",
        ".weight_g_idx",
    ],
    main: ".weight_packed",
    scale: ".weight_scale",
    reads: &[".weight_shape"],
    build,
};

/// Ways of writing that are not read.
const UNREAD: [&str; 4] = [
    "marlin-24",
    "sparse-24-bitmask",
    "sparse-bitmask",
    "sparse-24",
];
const FLOAT_SCALES: [Scalar; 4] = [Scalar::F32, Scalar::BF16, Scalar::F16, Scalar::F64];

fn build(set: &mut Set<'_, '_>) -> Result<Option<Built>> {
    check_formats(set)?;
    let is_packed = set.find(".weight_packed").is_some();
    if is_packed && set.ending != ".weight_packed" {
        return Ok(None);
    }
    let built = match (set.scalar(".weight_packed"), set.scalar(".weight")) {
        (Some(Scalar::U8), _) => four_bits(set)?,
        (Some(_), _) => packed(set)?,
        (None, Some(codes)) if FLOATS.contains(&codes) || codes == Scalar::I8 => {
            // Powers of two beside integers are FP4 of others.
            if codes == Scalar::I8 && is_power(set.scalar(".weight_scale")) {
                return Ok(None);
            }
            plain(set)?
        }
        _ => return Ok(None),
    };
    set.leave(super::ACTIVATIONS);
    Ok(Some(built))
}

fn check_formats(set: &Set<'_, '_>) -> Result<()> {
    let Some(config) = set.config() else {
        return Ok(());
    };
    let mut formats: Vec<String> = config.text("format").into_iter().collect();
    formats.extend(
        groups(set)
            .iter()
            .filter_map(|group| Some(text(group.get("format")?)?.to_lowercase())),
    );
    let sparse = config
        .get(&["sparsity_config", "format"])
        .as_ref()
        .and_then(|value| value.as_str().map(str::to_lowercase));
    formats.extend(sparse);
    match formats
        .iter()
        .find(|format| UNREAD.contains(&format.as_str()))
    {
        Some(format) => Err(unread(format!(
            "{} says that the weights are compressed as {format}",
            config.file
        ))),
        None => Ok(()),
    }
}

fn text(value: Value) -> Option<String> {
    Some(value.as_str()?.to_owned())
}

/// The groups of modules that the configuration speaks of.
fn groups(set: &Set<'_, '_>) -> Vec<crate::model::Map> {
    let groups = set
        .config()
        .and_then(|config| config.get(&["config_groups"]));
    let Some(Value::Map(groups)) = groups else {
        return Vec::new();
    };
    let maps = groups.iter().filter_map(|(_, value)| match value {
        Value::Map(map) => Some(map),
        _ => None,
    });
    maps.collect()
}

/// Something that is said of weights, of every group that says it.
fn said(set: &Set<'_, '_>, key: &str) -> Vec<Value> {
    let weights = groups(set)
        .into_iter()
        .filter_map(|group| match group.get("weights")? {
            Value::Map(weights) => weights.get(key),
            _ => None,
        });
    weights.collect()
}

fn said_sizes(set: &Set<'_, '_>) -> Vec<u64> {
    let sizes = said(set, "group_size").into_iter();
    sizes
        .filter_map(|size| size.as_u64())
        .filter(|size| *size > 0)
        .collect()
}

/// Rows and columns of blocks, as a list or as a text with an x.
fn said_blocks(set: &Set<'_, '_>) -> Vec<[u64; 2]> {
    let blocks = said(set, "block_structure")
        .into_iter()
        .filter_map(|value| match &value {
            Value::List(list) => <[u64; 2]>::try_from(list.as_u64s()?).ok(),
            value => {
                let (down, along) = value.as_str()?.split_once('x')?;
                Some([down.trim().parse().ok()?, along.trim().parse().ok()?])
            }
        });
    blocks.collect()
}

/// Which of the sizes that the groups have fits; `None` leaves it to the shapes.
fn fitting<T: Copy + PartialEq>(
    set: &Set<'_, '_>,
    sizes: Vec<T>,
    fits: impl Fn(T) -> bool,
) -> Result<Option<T>> {
    let mut fitting = sizes.into_iter().filter(|size| fits(*size));
    let first = fitting.next();
    if first.is_some_and(|first| fitting.any(|other| other != first)) {
        let message = "groups of the configuration that differ fit its scales";
        return Err(set.ambiguous(message));
    }
    Ok(first)
}

/// Numbers for groups along the rows, or for blocks.
fn grid(set: &Set<'_, '_>, of: Member<'_>, [count, rows, cols]: [u64; 3]) -> Result<Grid> {
    let (down, along) = match of.shape() {
        [.., down, along] => (*down, *along),
        _ => (1, 1),
    };
    let fits =
        |[a, b]: [u64; 2]| a > 0 && b > 0 && rows.div_ceil(a) == down && cols.div_ceil(b) == along;
    let blocks = said_blocks(set);
    let any = blocks.first().copied();
    let fitting_block = fitting(set, blocks, fits)?;
    // What is said and does not fit is an error.
    let block = if of.shape().len() < 2 {
        [None, None]
    } else if down != rows || fitting_block.is_some() {
        let block = fitting_block.or(any);
        [block.map(|[down, _]| down), block.map(|[_, along]| along)]
    } else if along <= 1 {
        [None, None]
    } else {
        let sizes = said_sizes(set);
        let any = sizes.first().copied();
        let size = fitting(set, sizes, |size| cols.div_ceil(size) == along)?;
        [None, size.or(any)]
    };
    of.grid([count, rows, cols], number_of(of.scalar), block)
}

/// Columns that do not belong to groups in their order.
fn order(set: &mut Set<'_, '_>, cols: u64) -> Result<Option<Order>> {
    let Some(index) = set.maybe(".weight_g_idx")? else {
        return Ok(None);
    };
    let index = index
        .is_of(&[Scalar::I32, Scalar::I64])?
        .has_shape(&[cols])?;
    Ok(Some(Order {
        blocks: index.plane(1, cols),
        may_be_plain: true,
        is_plain: Once::default(),
    }))
}

/// Zero points that may be missing, unless the configuration says of all groups that they are there.
fn zeros<'m>(set: &mut Set<'_, 'm>) -> Result<Option<Member<'m>>> {
    let said = said(set, "symmetric");
    let is_needed = !said.is_empty() && said.iter().all(|value| value.as_bool() == Some(false));
    if is_needed {
        set.take(".weight_zero_point").map(Some)
    } else {
        set.maybe(".weight_zero_point")
    }
}

fn name(set: &Set<'_, '_>) -> String {
    format!("{}.weight", set.base)
}

fn plain(set: &mut Set<'_, '_>) -> Result<Built> {
    let weight = set.take(".weight")?;
    let scale = set.take(".weight_scale")?;
    let sizes @ [count, rows, cols] = weight.matrices()?;
    if scale.scalar == Scalar::U8 || scale.scalar == Scalar::F8E8M0 {
        let grid = scale.grid(sizes, Scalar::F8E8M0, [Some(1), Some(32)])?;
        return Ok(Built {
            name: name(set),
            shape: weight.shape().to_vec(),
            quant: Quant::new(weight.plane(rows, cols), grid).matrices(count),
            says: "MXFP8".to_owned(),
        });
    }
    let scale = scale.is_of(&FLOAT_SCALES)?;
    let grid = grid(set, scale, sizes)?;
    let block = grid.block;
    let mut quant = Quant::new(weight.plane(rows, cols), grid).matrices(count);
    if let Some(zero) = zeros(set)? {
        let zero = zero.has_shape(scale.shape())?;
        let zeros = self::grid(set, zero, sizes)?;
        quant = quant.with(Formula::Offset, zeros);
    }
    quant.order = order(set, cols)?;
    let kind = if weight.scalar == Scalar::I8 {
        "integers"
    } else {
        "floats"
    };
    let says = match block {
        [down, along] if down >= rows && along >= cols => format!("{kind} of 8 bits, one scale"),
        [1, along] if along >= cols => format!("{kind} of 8 bits, a scale for each row"),
        [1, along] => format!("{kind} of 8 bits, groups of {along}"),
        [down, along] => format!("{kind} of 8 bits, blocks of {down} x {along}"),
    };
    Ok(Built {
        name: name(set),
        shape: weight.shape().to_vec(),
        quant,
        says,
    })
}

/// NVFP4 and MXFP4.
fn four_bits(set: &mut Set<'_, '_>) -> Result<Built> {
    let codes = set.take(".weight_packed")?;
    let scale = set.take(".weight_scale")?;
    let [count, rows, half] = codes.matrices()?;
    let cols = half.saturating_mul(2);
    let packing = Packing::Along {
        bits: 4,
        row_len: half,
    };
    let plane =
        Plane::codes(codes.part, packing, rows, cols).meaning(Values::Scalar(Scalar::F4E2M1));
    let sizes = [count, rows, cols];
    let (grid, says) = if scale.scalar == Scalar::F8E4M3 {
        let global = set.take(".weight_global_scale")?.is_of(&FLOAT_SCALES)?;
        if global.elements() != 1 {
            let message = format!("{} global scales where one is expected", global.elements());
            return Err(set.error("quantized.shape", ".weight_global_scale", message));
        }
        let mut grid = scale.grid(sizes, Scalar::F8E4M3, [Some(1), Some(16)])?;
        grid.global = Some(Global {
            number: global.plane(1, 1),
            divides: true,
        });
        (grid, "NVFP4")
    } else {
        let scale = scale.is_of(&[Scalar::U8, Scalar::F8E8M0, Scalar::F8E4M3])?;
        (
            scale.grid(sizes, Scalar::F8E8M0, [Some(1), Some(32)])?,
            "MXFP4",
        )
    };
    let mut shape = codes.shape().to_vec();
    if let Some(last) = shape.last_mut() {
        *last = cols;
    }
    Ok(Built {
        name: name(set),
        shape,
        quant: Quant::new(plane, grid).matrices(count),
        says: says.to_owned(),
    })
}

/// How codes lie in words of 32 bits.
#[derive(Clone, Copy)]
struct Words {
    bits: u32,
    /// Each holds as many as are whole in it.
    padded: bool,
}

impl Words {
    /// How many words so many codes take.
    fn count(self, codes: u64) -> Option<u64> {
        if self.padded {
            Some(codes.div_ceil(self.per_word()))
        } else {
            Some(codes.checked_mul(self.bits.into())?.div_ceil(32))
        }
    }

    fn per_word(self) -> u64 {
        u64::from(32 / self.bits)
    }

    /// Whether so many codes lie in the same places with and without gaps.
    fn has_no_gaps(self, codes: u64) -> bool {
        32u32.is_multiple_of(self.bits) || codes <= self.per_word()
    }

    fn along(self, words: u64) -> Packing {
        let (bits, row_len) = (self.bits, words.saturating_mul(4));
        if self.padded {
            Packing::Padded { bits, row_len }
        } else {
            Packing::Along { bits, row_len }
        }
    }

    fn down(self) -> Packing {
        let bits = self.bits;
        if self.padded {
            Packing::PaddedDown { bits }
        } else {
            Packing::Down { bits }
        }
    }
}

fn packed(set: &mut Set<'_, '_>) -> Result<Built> {
    let codes = set.take(".weight_packed")?.is_of(&[Scalar::I32])?;
    let scale = set.take(".weight_scale")?.is_of(&FLOAT_SCALES)?;
    let shape = set.integers(".weight_shape")?;
    let shape: Option<Vec<u64>> = shape.iter().map(|dim| u64::try_from(*dim).ok()).collect();
    let [stored_rows, words] = codes.matrix()?;
    let Some(&[rows, cols]) = shape.as_deref() else {
        let message = "it is not the shape of a matrix";
        return Err(set.error("quantized.state", ".weight_shape", message));
    };
    if rows != stored_rows {
        let message = format!("it says {rows} rows, and there are codes for {stored_rows}");
        return Err(set.error("quantized.shape", ".weight_shape", message));
    }
    let zero = zeros(set)?;
    let in_words = words_of(set, [rows, cols], words, zero)?;
    let bits = in_words.bits;
    let half = 1u8 << (bits - 1);
    let packing = in_words.along(words);
    let plane = Plane::codes(codes.part, packing, rows, cols).meaning(Values::Less(half));
    let sizes = [1, rows, cols];
    let grid = grid(set, scale, sizes)?;
    let block = grid.block;
    let mut quant = Quant::new(plane, grid);
    if let Some(zero) = zero {
        let [_, groups] = zero.matrix()?;
        if block[0] != 1 {
            let message = "there are zero points for rows, and scales for blocks of them";
            return Err(set.error("quantized.shape", ".weight_zero_point", message));
        }
        let zeros = Plane::codes(zero.part, in_words.down(), rows, groups);
        let zeros = zeros.meaning(Values::Less(half));
        quant = quant.with(Formula::Offset, Grid::new(zeros, block));
    }
    quant.order = order(set, cols)?;
    let along = match block {
        [_, along] if along >= cols => "a scale for each row".to_owned(),
        [_, along] => format!("groups of {along}"),
    };
    Ok(Built {
        name: name(set),
        shape: vec![rows, cols],
        quant,
        says: format!("{bits} bits, {along}"),
    })
}

/// The bits of a code and how codes lie in words, by what the configuration says, and by the numbers of words that there
/// are along the rows for codes and down the columns for zero points.
fn words_of(
    set: &Set<'_, '_>,
    [rows, cols]: [u64; 2],
    words: u64,
    zero: Option<Member<'_>>,
) -> Result<Words> {
    let said = said(set, "num_bits")
        .into_iter()
        .filter_map(|bits| u32::try_from(bits.as_u64()?).ok());
    let mut bits: Vec<u32> = said.filter(|bits| (1..=8).contains(bits)).collect();
    bits.sort_unstable();
    bits.dedup();
    if bits.is_empty() {
        bits = (1..=8).collect();
    }
    let both = |&bits: &u32| [false, true].map(|padded| Words { bits, padded });
    let mut fitting: Vec<Words> = bits.iter().flat_map(both).collect();
    fitting.retain(|each| each.count(cols) == Some(words));
    if fitting.is_empty() {
        let said: Vec<_> = bits.iter().map(ToString::to_string).collect();
        let message = format!(
            "{words} words for {cols} codes of {} bits",
            said.join(" or ")
        );
        return Err(set.error("quantized.shape", ".weight_packed", message));
    }
    if let Some(zero) = zero {
        let [zero_words, _] = zero.is_of(&[Scalar::I32])?.matrix()?;
        fitting.retain(|each| each.count(rows) == Some(zero_words));
        if fitting.is_empty() {
            let message = format!(
                "{zero_words} words down the columns do not hold zero points for {rows} rows"
            );
            return Err(set.error("quantized.shape", ".weight_zero_point", message));
        }
    }
    // Where gaps make no difference there is one way, not two.
    let is_same =
        |each: &Words| each.has_no_gaps(cols) && (zero.is_none() || each.has_no_gaps(rows));
    fitting.retain(|each| !(each.padded && is_same(each)));
    match fitting.as_slice() {
        &[only] => Ok(only),
        [first, others @ ..] if others.iter().all(|other| other.bits == first.bits) => {
            let message = format!(
                "{words} words for {cols} codes of {} bits are as many with gaps between them as without; nothing says which it is",
                first.bits
            );
            Err(set.ambiguous(message))
        }
        _ => {
            let message = format!(
                "{words} words for {cols} codes can hold codes of several widths; only a configuration can say which"
            );
            Err(set.ambiguous(message))
        }
    }
}
