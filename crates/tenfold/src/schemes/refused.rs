//! Schemes that are recognized and not read: their codes are not passed on as if they were weights.

use super::config::Config;
use super::set::Model;
use crate::error::Error;
use crate::model::{DType, Quoted, TensorInfo};
use crate::prelude::*;

/// A scheme that is not read.
struct Refused {
    title: &'static str,
    /// The names that configurations have for it.
    methods: &'static [&'static str],
    /// Sets of endings that names have beside each other; any of them shows it.
    endings: &'static [&'static [&'static str]],
}

const REFUSED: &[Refused] = &[
    Refused {
        title: "EETQ",
        methods: &["eetq"],
        endings: &[&[".weight_scales", ".weight"]],
    },
    Refused {
        title: "AQLM",
        methods: &["aqlm"],
        endings: &[&[".codebooks", ".codes"]],
    },
    Refused {
        title: "VPTQ",
        methods: &["vptq"],
        endings: &[
            &[".centroids.weight", ".indices"],
            &[".centroids", ".indices"],
        ],
    },
    Refused {
        title: "QuIP#",
        methods: &["quip", "quip#", "quip-sharp"],
        endings: &[&[".Qidxs"], &[".Qidxs_0"]],
    },
    Refused {
        title: "SpQR",
        methods: &["spqr"],
        endings: &[&[".dense_weights", ".row_offsets"]],
    },
    Refused {
        title: "HIGGS",
        methods: &["higgs"],
        endings: &[&[".tables", ".tables2"]],
    },
    Refused {
        title: "FP-Quant",
        methods: &["fp-quant", "fpquant"],
        endings: &[&[".qweight", ".forward_hadamard_matrix"]],
    },
    Refused {
        title: "QQQ",
        methods: &["qqq"],
        endings: &[&[".B", ".s_channel"]],
    },
    Refused {
        title: "Marlin",
        methods: &[
            "marlin",
            "gptq-marlin",
            "gptq-marlin-24",
            "awq-marlin",
            "marlin-24",
        ],
        endings: &[&[".B", ".s"], &[".B_24"]],
    },
    Refused {
        title: "EXL2",
        methods: &["exl2"],
        endings: &[&[".q_weight", ".q_scale"]],
    },
    Refused {
        title: "EXL3",
        methods: &["exl3"],
        endings: &[&[".trellis"]],
    },
    Refused {
        title: "AutoRound",
        methods: &["auto-round", "intel/auto-round", "autoround"],
        endings: &[],
    },
    Refused {
        title: "Quark",
        methods: &["quark"],
        endings: &[],
    },
    Refused {
        title: "BitBLAS",
        methods: &["bitblas", "gptq-bitblas"],
        endings: &[],
    },
    Refused {
        title: "SINQ",
        methods: &["sinq"],
        endings: &[],
    },
];

/// That a configuration names one of them.
pub(super) fn by_config(config: &Config) -> Option<Error> {
    let refused = REFUSED
        .iter()
        .find(|refused| refused.methods.contains(&config.method.as_str()))?;
    Some(unread(format!(
        "{} says that the weights are quantized by {}",
        config.file, refused.title
    )))
}

/// That names of tensors are those of one of them.
pub(super) fn by_names<'m>(
    model: &Model<'m>,
    tensors: impl Iterator<Item = &'m TensorInfo>,
) -> Option<Error> {
    for tensor in tensors {
        for refused in REFUSED {
            for endings in refused.endings {
                let Some((first, others)) = endings.split_first() else {
                    continue;
                };
                let Some(base) = tensor.name.strip_suffix(first) else {
                    continue;
                };
                let beside =
                    |ending: &&str| model.get(&format!("{base}{ending}")).map(|(_, info)| info);
                let found: Vec<_> = others.iter().filter_map(beside).collect();
                // Weights that are floats beside such a name are weights.
                let is_plain = |info: &TensorInfo| matches!(info.dtype, DType::Number(scalar, _) if scalar.is_float() && scalar.bits() > 8);
                let is_plain =
                    *first == ".weight_scales" && found.iter().any(|info| is_plain(info));
                if found.len() == others.len() && !is_plain {
                    let message = format!(
                        "{} is a part of weights that are quantized by {}",
                        Quoted(&tensor.name),
                        refused.title
                    );
                    return Some(unread(message).in_tensor(&tensor.name));
                }
            }
        }
    }
    None
}

/// Something that is recognized and not read.
pub(super) fn unread(what: impl core::fmt::Display) -> Error {
    let message = format!("{what}, which tenfold cannot turn into numbers");
    Error::unsupported("quantized.scheme", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemes::METHODS;

    #[test]
    fn the_page_has_every_scheme() {
        let page = include_str!("../../../../docs/quantized.md");
        let titles = METHODS.iter().map(|method| method.title);
        for title in titles.chain(REFUSED.iter().map(|refused| refused.title)) {
            assert!(page.contains(title), "{title} is not in docs/quantized.md");
        }
    }
}
