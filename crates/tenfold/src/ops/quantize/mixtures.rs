//! Mixtures by name: which type each tensor of a model gets.

use super::names::{Architecture, Role, layer};
use crate::model::BlockSpec;

/// Types for the tensors of a language model, under a name of llama.cpp's.
///
/// ```
/// use tenfold::ops::Mixture;
/// let mixture = Mixture::from_name("q4_k_m").unwrap();
/// assert_eq!((mixture.name, mixture.file_type), ("Q4_K_M", 15));
/// assert_eq!(mixture.base().name, "Q4_K");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Mixture {
    /// The name, as llama-quantize has it.
    pub name: &'static str,
    /// The number that it has in `general.file_type`.
    pub file_type: u32,
    base: Type,
    /// What the values of the attention get; the first rule that holds.
    value: &'static [Rule],
    /// What `ffn_down` gets.
    down: &'static [Rule],
    /// What the output of the attention gets, in models that have not eight experts.
    attention_output: Option<Type>,
    /// The same in models with eight experts.
    attention_output_of_8: Option<Type>,
    /// What keys, and queries, of the attention get.
    query: Option<Type>,
    /// What `ffn_gate` and `ffn_up` of the layers in the middle get.
    middle: Option<Type>,
    /// What the embedding gets, where there is an output of its own.
    embedding: Option<Type>,
    /// What the output gets, or the embedding where that is the output.
    output: Type,
    /// Everything is decided by whether a tensor holds several matrices.
    of_matrices: Option<Type>,
    /// The smallest of all, which have rules of their own.
    is_smallest: bool,
    /// Makes no sense without importances, whatever its types are.
    pub(super) needs_importance: bool,
}

/// A type, and when it is taken.
type Rule = (When, Type);

type Type = &'static BlockSpec;

/// A condition on the number of a tensor among those of its kind.
#[derive(Clone, Copy, Debug)]
enum When {
    Always,
    /// It is one of the first.
    First(u64),
    /// It is in the first of so many parts of the model.
    FirstPart(u64),
    /// The first and the last eighth, and every third between.
    More,
    /// Four heads of queries and more for each of keys.
    Grouped,
    /// Four experts and more, or [`When::Grouped`].
    GroupedOrExperts,
    /// There are importances.
    Important,
    /// There are none.
    Plain,
    /// In the first eighth, and importances.
    ImportantEighth,
    /// In the first eighth, and no importances.
    PlainEighth,
    /// In the first eighth, or one of [`When::More`] in a model with eight experts.
    EighthOrExperts,
}

use When::{
    Always, EighthOrExperts, First, FirstPart, Grouped, GroupedOrExperts, Important,
    ImportantEighth, More, Plain, PlainEighth,
};

const IQ1_S: Type = BlockSpec::named("IQ1_S");
const IQ2_S: Type = BlockSpec::named("IQ2_S");
const IQ2_XS: Type = BlockSpec::named("IQ2_XS");
const IQ2_XXS: Type = BlockSpec::named("IQ2_XXS");
const IQ3_S: Type = BlockSpec::named("IQ3_S");
const IQ3_XXS: Type = BlockSpec::named("IQ3_XXS");
const IQ4_NL: Type = BlockSpec::named("IQ4_NL");
const IQ4_XS: Type = BlockSpec::named("IQ4_XS");
const MXFP4: Type = BlockSpec::named("MXFP4");
const Q1_0: Type = BlockSpec::named("Q1_0");
const Q2_0: Type = BlockSpec::named("Q2_0");
const Q2_K: Type = BlockSpec::named("Q2_K");
const Q3_K: Type = BlockSpec::named("Q3_K");
const Q4_0: Type = BlockSpec::named("Q4_0");
const Q4_1: Type = BlockSpec::named("Q4_1");
const Q4_K: Type = BlockSpec::named("Q4_K");
const Q5_0: Type = BlockSpec::named("Q5_0");
const Q5_1: Type = BlockSpec::named("Q5_1");
const Q5_K: Type = BlockSpec::named("Q5_K");
const Q6_K: Type = BlockSpec::named("Q6_K");
const Q8_0: Type = BlockSpec::named("Q8_0");
const TQ1_0: Type = BlockSpec::named("TQ1_0");
const TQ2_0: Type = BlockSpec::named("TQ2_0");

const fn mixture(name: &'static str, file_type: u32, base: Type) -> Mixture {
    Mixture {
        name,
        file_type,
        base,
        value: &[],
        down: &[],
        attention_output: None,
        attention_output_of_8: None,
        query: None,
        middle: None,
        embedding: None,
        output: Q6_K,
        of_matrices: None,
        is_smallest: false,
        needs_importance: false,
    }
}

const FIVE_BITS: Option<Type> = Some(Q5_K);

/// One of the smallest mixtures.
const fn smallest(
    name: &'static str,
    file_type: u32,
    base: Type,
    better: &'static [Rule],
    values: &'static [Rule],
) -> Mixture {
    Mixture {
        value: values,
        down: better,
        attention_output_of_8: FIVE_BITS,
        embedding: Some(Q2_K),
        output: Q5_K,
        is_smallest: true,
        ..mixture(name, file_type, base)
    }
}

/// All of them, in the order of their sizes within a kind.
static MIXTURES: &[Mixture] = &[
    mixture("Q4_0", 2, Q4_0).down(&[(ImportantEighth, Q4_1)]),
    mixture("Q4_1", 3, Q4_1),
    mixture("Q5_0", 8, Q5_0).down(&[(ImportantEighth, Q5_1)]),
    mixture("Q5_1", 9, Q5_1),
    Mixture {
        output: Q8_0,
        ..mixture("Q8_0", 7, Q8_0)
    },
    Mixture {
        value: &[(Grouped, Q4_K), (Always, Q3_K)],
        down: &[(Always, Q3_K)],
        attention_output: Some(Q3_K),
        attention_output_of_8: FIVE_BITS,
        ..mixture("Q2_K", 10, Q2_K)
    },
    Mixture {
        value: &[(Grouped, Q4_K)],
        down: &[(FirstPart(8), Q4_K)],
        needs_importance: true,
        ..mixture("Q2_K_S", 21, Q2_K)
    },
    Mixture {
        attention_output_of_8: FIVE_BITS,
        ..mixture("Q3_K_S", 11, Q3_K)
    },
    Mixture {
        value: &[(First(2), Q5_K), (Always, Q4_K)],
        down: &[(FirstPart(16), Q5_K), (Always, Q4_K)],
        attention_output: Some(Q4_K),
        attention_output_of_8: FIVE_BITS,
        ..mixture("Q3_K_M", 12, Q3_K)
    },
    Mixture {
        value: &[(Always, Q5_K)],
        down: &[(Always, Q5_K)],
        attention_output: FIVE_BITS,
        ..mixture("Q3_K_L", 13, Q3_K)
    },
    Mixture {
        value: &[(First(4), Q5_K)],
        down: &[(FirstPart(8), Q5_K)],
        attention_output_of_8: FIVE_BITS,
        ..mixture("Q4_K_S", 14, Q4_K)
    },
    Mixture {
        value: &[(More, Q6_K)],
        down: &[(More, Q6_K)],
        attention_output_of_8: FIVE_BITS,
        ..mixture("Q4_K_M", 15, Q4_K)
    },
    mixture("Q5_K_S", 16, Q5_K),
    Mixture {
        value: &[(More, Q6_K)],
        down: &[(More, Q6_K)],
        ..mixture("Q5_K_M", 17, Q5_K)
    },
    mixture("Q6_K", 18, Q6_K),
    Mixture {
        value: &[(Grouped, Q5_K)],
        down: &[(PlainEighth, Q5_K)],
        attention_output_of_8: FIVE_BITS,
        ..mixture("IQ4_NL", 25, IQ4_NL)
    },
    Mixture {
        value: &[(Grouped, Q5_K)],
        down: &[(PlainEighth, Q5_K)],
        attention_output_of_8: FIVE_BITS,
        ..mixture("IQ4_XS", 30, IQ4_XS)
    },
    smallest(
        "IQ1_S",
        24,
        IQ1_S,
        &[(FirstPart(8), Q2_K)],
        &[(GroupedOrExperts, Q4_K), (Always, Q2_K)],
    )
    .attention(IQ2_XXS),
    smallest(
        "IQ2_XXS",
        19,
        IQ2_XXS,
        &[(FirstPart(8), Q2_K)],
        &[(GroupedOrExperts, Q4_K), (Always, Q2_K)],
    ),
    smallest(
        "IQ2_XS",
        20,
        IQ2_XS,
        &[(FirstPart(8), Q2_K)],
        &[(GroupedOrExperts, Q4_K), (Always, Q2_K)],
    ),
    Mixture {
        embedding: Some(IQ3_S),
        ..smallest(
            "IQ2_S",
            28,
            IQ2_XS,
            &[(FirstPart(8), IQ3_S)],
            &[(GroupedOrExperts, Q4_K), (Always, IQ3_S)],
        )
        .attention(IQ3_S)
    },
    Mixture {
        embedding: Some(IQ3_S),
        ..smallest(
            "IQ2_M",
            29,
            IQ2_S,
            &[(FirstPart(8), IQ3_S)],
            &[(GroupedOrExperts, Q4_K), (Always, IQ3_S)],
        )
        .attention(IQ3_S)
    },
    Mixture {
        value: &[(Grouped, Q4_K), (Plain, IQ3_S), (Important, IQ3_XXS)],
        down: &[(PlainEighth, Q4_K), (Plain, Q3_K)],
        attention_output: Some(IQ3_S),
        attention_output_of_8: FIVE_BITS,
        query: Some(IQ2_S),
        embedding: Some(IQ3_S),
        output: Q5_K,
        ..mixture("IQ3_XXS", 23, IQ3_XXS)
    },
    Mixture {
        value: &[(Grouped, Q4_K)],
        attention_output_of_8: FIVE_BITS,
        query: Some(IQ3_XXS),
        middle: Some(IQ3_XXS),
        ..mixture("IQ3_XS", 22, IQ3_S)
    },
    Mixture {
        value: &[(Grouped, Q4_K)],
        attention_output_of_8: FIVE_BITS,
        ..mixture("IQ3_S", 26, IQ3_S)
    },
    Mixture {
        value: &[(Always, Q4_K)],
        down: &[(EighthOrExperts, Q4_K)],
        attention_output: Some(Q4_K),
        attention_output_of_8: FIVE_BITS,
        ..mixture("IQ3_M", 27, IQ3_S)
    },
    Mixture {
        embedding: Some(Q4_K),
        ..mixture("TQ1_0", 36, TQ1_0)
    },
    Mixture {
        embedding: Some(Q4_K),
        ..mixture("TQ2_0", 37, TQ2_0)
    },
    mixture("Q1_0", 40, Q1_0),
    Mixture {
        embedding: Some(Q4_K),
        ..mixture("Q2_0", 41, Q2_0)
    },
    Mixture {
        output: Q8_0,
        of_matrices: Some(MXFP4),
        ..mixture("MXFP4_MOE", 38, Q8_0)
    },
];

impl Mixture {
    const fn down(mut self, down: &'static [Rule]) -> Self {
        self.down = down;
        self
    }

    const fn attention(mut self, to: Type) -> Self {
        self.attention_output = Some(to);
        self
    }

    /// Every mixture.
    pub fn all() -> &'static [Mixture] {
        MIXTURES
    }

    /// The mixture with this name, in any case.
    pub fn from_name(name: &str) -> Option<&'static Mixture> {
        MIXTURES
            .iter()
            .find(|mixture| mixture.name.eq_ignore_ascii_case(name))
    }

    /// The type of tensors that no rule is about.
    pub fn base(&self) -> &'static BlockSpec {
        self.base
    }
}

/// Gives the tensors of a model their types, one after the other in llama.cpp's order: rules count.
pub(super) struct Mixer {
    mixture: &'static Mixture,
    model: Architecture,
    has_importance: bool,
    /// The embedding is the output too.
    is_tied: bool,
    /// Tensors of values of the attention, and how many there were already.
    values: u64,
    value: u64,
    down: u64,
    gate: u64,
    up: u64,
}

impl Mixer {
    /// `names` are those of all tensors, as GGUF has them.
    pub(super) fn new<'n>(
        mixture: &'static Mixture,
        model: Architecture,
        has_importance: bool,
        names: impl Iterator<Item = &'n str>,
    ) -> Self {
        let (mut values, mut is_tied) = (0, true);
        for name in names {
            match Role::of(name) {
                Role::Value => values += 1,
                Role::Output => is_tied = false,
                _ => {}
            }
        }
        Self {
            mixture,
            model,
            has_importance,
            is_tied,
            values,
            value: 0,
            down: 0,
            gate: 0,
            up: 0,
        }
    }

    /// The type for the next tensor.
    pub(super) fn next(&mut self, name: &str, shape: &[u64]) -> Type {
        let mixture = self.mixture;
        let role = Role::of(name);
        let is_output = role == Role::Output || (self.is_tied && role == Role::Embedding);
        let found = if is_output {
            Some(self.output(shape))
        } else if let Some(several) = mixture.of_matrices {
            let matrices = shape.iter().rev().nth(2).copied().unwrap_or(1);
            Some(several).filter(|_| matrices > 1)
        } else {
            match role {
                Role::Embedding => mixture.embedding,
                Role::Value => Some(self.values()),
                Role::Key => self.key(),
                Role::Query => mixture.query,
                Role::Down => self.downs(name),
                Role::AttentionOutput => self.attention_output(),
                Role::Gate => {
                    self.gate += 1;
                    self.middle(name, self.gate - 1)
                }
                Role::Up => {
                    self.up += 1;
                    self.middle(name, self.up - 1)
                }
                Role::Output | Role::Other => None,
            }
        };
        found.unwrap_or(mixture.base)
    }

    fn output(&self, shape: &[u64]) -> Type {
        let columns = shape.last().copied().unwrap_or(1);
        let block = u64::from(self.mixture.base.elements);
        if self.model.is_falcon || !columns.is_multiple_of(block) {
            Q8_0
        } else {
            self.mixture.output
        }
    }

    fn values(&mut self) -> Type {
        let number = self.value;
        self.value += 1;
        let found = self.find(self.mixture.value, number, self.values);
        let found = found.unwrap_or(self.mixture.base);
        if self.mixture.is_smallest {
            found
        } else if self.model.experts == 8 {
            Q8_0
        } else if self.model.is_70b && [Q3_K, Q4_K].contains(&found) {
            Q5_K
        } else {
            found
        }
    }

    fn key(&self) -> Option<Type> {
        match (self.model.experts, self.mixture.is_smallest) {
            (8, true) => Some(Q4_K),
            (8, false) => Some(Q8_0),
            _ => self.mixture.query,
        }
    }

    fn downs(&mut self, name: &str) -> Option<Type> {
        let number = self.number(name, self.down);
        self.down += 1;
        let layers = self.model.layers;
        if self.model.is_falcon {
            let more = More.holds(self, number, layers);
            return match self.mixture.name {
                "Q3_K_M" if number < layers / 16 => Some(Q5_K),
                "Q3_K_M" => more.then_some(Q4_K),
                "Q3_K_L" => Some(Q4_K),
                "Q4_K_M" if number < layers / 16 => Some(Q6_K),
                "Q4_K_M" => more.then_some(Q5_K),
                "Q4_K_S" => None,
                _ => self.find(self.mixture.down, number, layers),
            };
        }
        self.find(self.mixture.down, number, layers)
    }

    fn attention_output(&self) -> Option<Type> {
        let mixture = self.mixture;
        if self.model.is_falcon && !mixture.is_smallest {
            return (mixture.name == "Q3_K_L").then_some(Q4_K);
        }
        match self.model.experts {
            8 => mixture.attention_output_of_8,
            _ => mixture.attention_output,
        }
    }

    fn middle(&self, name: &str, number: u64) -> Option<Type> {
        let (number, layers) = (self.number(name, number), self.model.layers);
        let is_middle = number >= layers / 8 && number < layers.saturating_mul(7) / 8;
        self.mixture.middle.filter(|_| is_middle)
    }

    /// In models with experts the number of the layer counts, because tensors of a layer are several.
    fn number(&self, name: &str, running: u64) -> u64 {
        let by_layer = self.model.experts > 1 && !self.mixture.is_smallest;
        layer(name).filter(|_| by_layer).unwrap_or(running)
    }

    fn find(&self, rules: &[Rule], number: u64, of: u64) -> Option<Type> {
        let rule = rules.iter().find(|(when, _)| when.holds(self, number, of));
        rule.map(|(_, name)| *name)
    }
}

impl When {
    /// Whether it holds for the tensor with this number of so many.
    fn holds(self, mixer: &Mixer, number: u64, of: u64) -> bool {
        let is_early = number < of / 8;
        match self {
            Always => true,
            First(count) => number < count,
            FirstPart(parts) => number < of / parts,
            More => {
                is_early
                    || number >= of.saturating_mul(7) / 8
                    || number.saturating_sub(of / 8) % 3 == 2
            }
            Grouped => mixer.model.heads_per_key >= 4,
            GroupedOrExperts => mixer.model.heads_per_key >= 4 || mixer.model.experts >= 4,
            Important => mixer.has_importance,
            Plain => !mixer.has_importance,
            ImportantEighth => is_early && mixer.has_importance,
            PlainEighth => is_early && !mixer.has_importance,
            EighthOrExperts => {
                is_early || (mixer.model.experts == 8 && More.holds(mixer, number, of))
            }
        }
    }
}
