//! What tensors are in a model, by their names: GGUF's, or those of transformers where it is known which of GGUF's they are.

use alloc::borrow::Cow;

use crate::model::{Manifest, TensorInfo, Value};
use crate::prelude::*;

/// Whose names the tensors of a model have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Naming {
    Gguf,
    HuggingFace,
    Unknown,
}

impl Naming {
    pub(super) fn of(what: &Manifest) -> Self {
        let any = |is: fn(&str) -> bool| what.tensors.iter().any(|tensor| is(&tensor.name));
        if any(|name| layer(name).is_some() || is_embedding(name) || name == OUTPUT) {
            Self::Gguf
        } else if any(|name| hugging_face(name).is_some()) {
            Self::HuggingFace
        } else {
            Self::Unknown
        }
    }

    /// What GGUF calls a tensor; what is not known keeps its name.
    pub(super) fn gguf(self, name: &str) -> Cow<'_, str> {
        match self {
            Self::HuggingFace => hugging_face(name).map_or(Cow::Borrowed(name), Cow::Owned),
            Self::Gguf | Self::Unknown => Cow::Borrowed(name),
        }
    }
}

pub(super) const OUTPUT: &str = "output.weight";

fn is_embedding(name: &str) -> bool {
    matches!(name, "token_embd.weight" | "per_layer_token_embd.weight")
}

/// The number of the layer that a tensor belongs to.
pub(super) fn layer(name: &str) -> Option<u64> {
    let (number, _) = name.strip_prefix("blk.")?.split_once('.')?;
    number.parse().ok()
}

/// The order in which llama.cpp writes tensors: what belongs to no layer, then layer by layer, each by name.
pub(super) fn order(name: &str) -> (Option<u64>, &str) {
    (layer(name), name)
}

/// What a tensor is for, as far as mixtures know.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Role {
    Output,
    Embedding,
    /// Also the tensor of all three, and the one of keys and values together.
    Value,
    Key,
    Query,
    AttentionOutput,
    Up,
    Gate,
    Down,
    Other,
}

impl Role {
    pub(super) fn of(name: &str) -> Self {
        let has = |part: &str| name.contains(part);
        match name {
            OUTPUT => Self::Output,
            name if is_embedding(name) => Self::Embedding,
            _ if ["attn_qkv.weight", "attn_kv_b.weight", "attn_v.weight"]
                .into_iter()
                .any(has) =>
            {
                Self::Value
            }
            _ if has("attn_k.weight") => Self::Key,
            _ if has("attn_q.weight") => Self::Query,
            _ if has("attn_output.weight") => Self::AttentionOutput,
            _ if has("ffn_up") => Self::Up,
            _ if has("ffn_gate") => Self::Gate,
            _ if has("ffn_down") => Self::Down,
            _ => Self::Other,
        }
    }
}

/// Parts of names of matrices that are left as they are: small, or too important.
const LEFT: &[&str] = &[
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    "time_mix_first.weight",
    "time_mix_w0.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_v0.weight",
    "time_mix_v1.weight",
    "time_mix_v2.weight",
    "time_mix_a0.weight",
    "time_mix_a1.weight",
    "time_mix_a2.weight",
    "time_mix_g1.weight",
    "time_mix_g2.weight",
    "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight",
    "attn_rel_b.weight",
    ".position_embd",
    "sam.pos_embd",
    "sam.neck.",
    "sam.net_",
    ".rel_pos",
    ".patch_embd",
    ".patch_merger",
    "a.rvq.codebook",
    "mm.a.code_embd",
];

/// Whether a matrix of a model with these names may be quantized, going by what GGUF calls it.
pub(super) fn may_be_quantized(naming: Naming, name: &str) -> bool {
    let is_weight = name.ends_with("weight") || naming == Naming::Unknown;
    is_weight
        && !matches!(name, "position_embd.weight" | "token_types.weight")
        && !LEFT.iter().any(|part| name.contains(part))
}

/// What GGUF calls a tensor of a model of transformers.
fn hugging_face(name: &str) -> Option<String> {
    let whole = |found: &str| Some(found.to_owned());
    match name {
        "lm_head.weight" => return whole(OUTPUT),
        "model.embed_tokens.weight" | "model.language_model.embed_tokens.weight" => {
            return whole("token_embd.weight");
        }
        "model.norm.weight" | "model.language_model.norm.weight" => {
            return whole("output_norm.weight");
        }
        _ => {}
    }
    let rest = (name.strip_prefix("model.layers."))
        .or_else(|| name.strip_prefix("model.language_model.layers."))?;
    let (layer, rest) = rest.split_once('.')?;
    layer.parse::<u64>().ok()?;
    let own = IN_LAYERS.iter().find(|(theirs, _)| *theirs == rest);
    let own = own.map(|(_, own)| *own).or_else(|| expert(rest));
    // What is not known keeps its own words, and its layer.
    Some(format!("blk.{layer}.{}", own.unwrap_or(rest)))
}

/// What the tensors of a layer are called by transformers and in GGUF.
const IN_LAYERS: &[(&str, &str)] = &[
    ("self_attn.q_proj.weight", "attn_q.weight"),
    ("self_attn.k_proj.weight", "attn_k.weight"),
    ("self_attn.v_proj.weight", "attn_v.weight"),
    ("self_attn.o_proj.weight", "attn_output.weight"),
    ("self_attn.qkv_proj.weight", "attn_qkv.weight"),
    ("self_attn.kv_b_proj.weight", "attn_kv_b.weight"),
    ("self_attn.q_norm.weight", "attn_q_norm.weight"),
    ("self_attn.k_norm.weight", "attn_k_norm.weight"),
    ("input_layernorm.weight", "attn_norm.weight"),
    ("post_attention_layernorm.weight", "ffn_norm.weight"),
    ("mlp.up_proj.weight", "ffn_up.weight"),
    ("mlp.gate_up_proj.weight", "ffn_up.weight"),
    ("mlp.gate_proj.weight", "ffn_gate.weight"),
    ("mlp.down_proj.weight", "ffn_down.weight"),
    ("mlp.gate.weight", "ffn_gate_inp.weight"),
    ("block_sparse_moe.gate.weight", "ffn_gate_inp.weight"),
    ("mlp.shared_expert.up_proj.weight", "ffn_up_shexp.weight"),
    (
        "mlp.shared_expert.gate_proj.weight",
        "ffn_gate_shexp.weight",
    ),
    (
        "mlp.shared_expert.down_proj.weight",
        "ffn_down_shexp.weight",
    ),
    ("mlp.shared_experts.up_proj.weight", "ffn_up_shexp.weight"),
    (
        "mlp.shared_experts.gate_proj.weight",
        "ffn_gate_shexp.weight",
    ),
    (
        "mlp.shared_experts.down_proj.weight",
        "ffn_down_shexp.weight",
    ),
    ("mlp.shared_expert_gate.weight", "ffn_gate_inp_shexp.weight"),
];

/// A matrix of one expert, whose number transformers have in the name.
fn expert(rest: &str) -> Option<&'static str> {
    let (_, rest) = rest.split_once(".experts.")?;
    let (number, which) = rest.split_once('.')?;
    number.parse::<u64>().ok()?;
    match which {
        "up_proj.weight" | "w3.weight" => Some("ffn_up_exps.weight"),
        "gate_proj.weight" | "w1.weight" => Some("ffn_gate_exps.weight"),
        "down_proj.weight" | "w2.weight" => Some("ffn_down_exps.weight"),
        _ => None,
    }
}

/// What mixtures ask about a model.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Architecture {
    pub(super) is_falcon: bool,
    /// What llama.cpp takes for a model of 70B: 80 layers, of Llama with fewer heads of keys than of queries.
    pub(super) is_70b: bool,
    pub(super) layers: u64,
    /// Heads of queries for each of keys.
    pub(super) heads_per_key: u64,
    pub(super) experts: u64,
}

impl Architecture {
    /// From the metadata, and where that does not say, from the tensors.
    pub(super) fn of(what: &Manifest, naming: Naming) -> Self {
        let metadata = &what.metadata;
        let name = metadata
            .get("general.architecture")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let number = |key: &str| {
            let value = metadata.get(&format!("{name}.{key}"))?;
            match value {
                // One for each layer.
                Value::List(list) => list.first().and_then(|first| first.as_u64()),
                value => value
                    .as_u64()
                    .or_else(|| value.as_i64().and_then(|number| u64::try_from(number).ok())),
            }
        };
        let tensors = Tensors { what, naming };
        let layers = number("block_count").unwrap_or_else(|| tensors.layers());
        let heads = number("attention.head_count");
        let heads_per_key = match (heads, number("attention.head_count_kv")) {
            (Some(heads), Some(keys)) => heads.checked_div(keys).unwrap_or(0),
            (Some(_), None) => 1,
            (None, _) => tensors.heads_per_key(),
        };
        Self {
            is_falcon: name == "falcon",
            is_70b: layers == 80
                && match name {
                    "llama" => heads_per_key > 1,
                    "" => heads_per_key > 1 && naming != Naming::Unknown,
                    "deci" | "qwen2" => true,
                    _ => false,
                },
            layers,
            heads_per_key,
            experts: number("expert_count").unwrap_or_else(|| tensors.experts()),
        }
    }
}

/// What the tensors say about a model.
struct Tensors<'m> {
    what: &'m Manifest,
    naming: Naming,
}

impl Tensors<'_> {
    fn layers(&self) -> u64 {
        let names = self.what.tensors.iter();
        let layers = names.filter_map(|tensor| layer(&self.naming.gguf(&tensor.name)));
        layers.max().map_or(0, |last| last.saturating_add(1))
    }

    fn rows(&self, role: Role) -> Option<u64> {
        let mut tensors = self.what.tensors.iter();
        let has_role = |tensor: &&TensorInfo| Role::of(&self.naming.gguf(&tensor.name)) == role;
        let tensor = tensors.find(has_role)?;
        tensor.shape.iter().rev().nth(1).copied()
    }

    fn heads_per_key(&self) -> u64 {
        match (self.rows(Role::Query), self.rows(Role::Key)) {
            (Some(queries), Some(keys)) => queries.checked_div(keys).unwrap_or(1),
            _ => 1,
        }
    }

    /// Experts whose number is in the names, or the first dimension of what holds all of them.
    fn experts(&self) -> u64 {
        let of = |tensor: &TensorInfo| {
            if let Some((_, rest)) = tensor.name.split_once(".experts.") {
                let (number, _) = rest.split_once('.')?;
                return number.parse::<u64>().ok()?.checked_add(1);
            }
            let name = self.naming.gguf(&tensor.name);
            let holds_all = name.contains("_exps.") && tensor.shape.len() == 3;
            tensor.shape.first().copied().filter(|_| holds_all)
        };
        self.what.tensors.iter().filter_map(of).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_transformers_are_those_of_gguf() {
        let gguf = |name| Naming::HuggingFace.gguf(name).into_owned();
        assert_eq!(
            gguf("model.layers.12.self_attn.v_proj.weight"),
            "blk.12.attn_v.weight"
        );
        assert_eq!(
            gguf("model.layers.0.mlp.experts.3.down_proj.weight"),
            "blk.0.ffn_down_exps.weight"
        );
        assert_eq!(gguf("lm_head.weight"), OUTPUT);
        assert_eq!(gguf("model.layers.1.x.weight"), "blk.1.x.weight");
        assert_eq!(gguf("visual.x.weight"), "visual.x.weight");
    }

    #[test]
    fn what_belongs_to_no_layer_comes_first_and_layers_in_the_order_of_their_numbers() {
        let mut names = ["blk.10.a", "output.weight", "blk.2.b", "blk.2.a"];
        names.sort_unstable_by_key(|name| order(name));
        assert_eq!(names, ["output.weight", "blk.2.a", "blk.2.b", "blk.10.a"]);
    }
}
