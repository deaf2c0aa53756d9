//! Which type each tensor gets, and the archive in which they have them.

use alloc::borrow::Cow;

use super::mixtures::Mixer;
use super::names::{Architecture, Naming, may_be_quantized, order};
use super::{Base, ImportanceMatrix, Mixture, QuantizeOptions};
use crate::archive::Archive;
use crate::error::{Error, Hint, Result};
use crate::format::{Finding, Severity};
use crate::model::{BlockSpec, DType, Layout, Manifest, TensorInfo, Value};
use crate::ops::cast::before_cast;
use crate::prelude::*;
use crate::transform::quant;

/// An archive with tensors as blocks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Quantized {
    /// The tensors, those that are quantized as blocks; by a mixture in llama.cpp's order.
    pub archive: Archive,
    /// What became of each tensor, in the order of the archive.
    pub choices: Vec<Choice>,
    /// What is worth knowing of it.
    pub remarks: Vec<Finding>,
}

/// What becomes of a tensor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Choice {
    /// The tensor's name.
    pub name: String,
    /// The type of its elements before.
    pub from: DType,
    /// The type that they get.
    pub to: DType,
    /// The type that was wanted, where rows of the tensor are not whole blocks of it.
    pub instead_of: Option<&'static BlockSpec>,
    /// Whether it is known how much its columns count, and that makes a difference.
    pub important: bool,
}

impl Choice {
    /// Whether it stays as it is.
    pub fn is_left(&self) -> bool {
        self.from == self.to
    }
}

pub(super) fn quantize(archive: &Archive, options: &QuantizeOptions) -> Result<Quantized> {
    let what = archive.manifest();
    let naming = Naming::of(what);
    let mut planner = Planner {
        options,
        naming,
        mixer: mixer(what, naming, options)?,
        remarks: Vec::new(),
    };
    let names: Vec<_> = what
        .tensors
        .iter()
        .map(|tensor| naming.gguf(&tensor.name))
        .collect();
    let mut places: Vec<usize> = (0..names.len()).collect();
    if let Base::Mixture(_) = options.base {
        places.sort_by_key(|&place| names.get(place).map(|name| order(name)));
    }
    let mut manifest = what.clone();
    let mut changed: Vec<Option<(TensorInfo, Choice)>> =
        what.tensors.iter().map(|_| None).collect();
    // Mixtures count in llama.cpp's order, whatever the order of the file is.
    for &place in &places {
        if let (Some(tensor), Some(name), Some(slot)) = (
            what.tensors.get(place),
            names.get(place),
            changed.get_mut(place),
        ) {
            let done = planner.tensor(tensor, name);
            let mut done = done.map_err(|error| error.in_tensor(&tensor.name))?;
            if naming == Naming::Gguf && matches!(options.base, Base::Mixture(_)) {
                drop_outer_ones(&mut done.0);
            }
            *slot = Some(done);
        }
    }
    if naming == Naming::Gguf {
        let mut rest = changed;
        changed = places
            .iter()
            .map(|&place| rest.get_mut(place).and_then(Option::take))
            .collect();
    }
    let (tensors, choices): (Vec<_>, Vec<_>) = changed.into_iter().flatten().unzip();
    manifest.tensors = tensors.into_iter().collect();
    describe(&mut manifest, options);
    let mut remarks = planner.remarks;
    remarks.extend(fallbacks(&choices));
    Ok(Quantized {
        archive: archive.with_manifest(manifest),
        choices,
        remarks,
    })
}

/// What a mixture needs to count, if one gives types.
fn mixer(what: &Manifest, naming: Naming, options: &QuantizeOptions) -> Result<Option<Mixer>> {
    let Base::Mixture(mixture) = options.base else {
        return Ok(None);
    };
    if naming == Naming::Unknown && of_its_name(mixture).is_none() && !options.pure {
        let message = format!(
            "{} goes by the names that llama.cpp or transformers give tensors, and none is among these; {} is the type that \
             most tensors have in it",
            mixture.name,
            mixture.base().name
        );
        return Err(Error::unsupported("quantize", message));
    }
    if options.pure || naming == Naming::Unknown {
        return Ok(None);
    }
    let names: Vec<_> = what
        .tensors
        .iter()
        .map(|tensor| naming.gguf(&tensor.name))
        .collect();
    let model = Architecture::of(what, naming);
    let names = names.iter().map(|name| &**name);
    let important = options.importance.is_some();
    Ok(Some(Mixer::new(mixture, model, important, names)))
}

/// The type that is called like a mixture: `Q4_K` and `IQ2_S` are both. It is what is meant where the names of tensors say
/// nothing.
fn of_its_name(mixture: &Mixture) -> Option<&'static BlockSpec> {
    BlockSpec::from_name(mixture.name)
}

struct Planner<'o> {
    options: &'o QuantizeOptions,
    naming: Naming,
    mixer: Option<Mixer>,
    remarks: Vec<Finding>,
}

impl Planner<'_> {
    /// The tensor as it will be, and what became of it. `name` is what GGUF calls it.
    fn tensor(&mut self, tensor: &TensorInfo, name: &str) -> Result<(TensorInfo, Choice)> {
        let left = |tensor: &TensorInfo| {
            let choice = Choice {
                name: tensor.name.clone(),
                from: tensor.dtype,
                to: tensor.dtype,
                instead_of: None,
                important: false,
            };
            (tensor.clone(), choice)
        };
        let Some(wanted) = self.wanted(tensor, name) else {
            return Ok(left(tensor));
        };
        if tensor.dtype == DType::Block(wanted) {
            return Ok(left(tensor));
        }
        let tensor = tensor.readable()?;
        let from = tensor.dtype;
        not_yet(tensor)?;
        let (to, instead_of) = fallback(wanted, tensor);
        let mut made = tensor.clone();
        let mut important = false;
        match to {
            Some(spec) => {
                let importance = self.importance(tensor, name, spec)?;
                important = importance.is_some();
                let quantizer = quant::quantizer(tensor, spec, importance)?;
                made.dtype = quantizer.dtype();
                made.layout = Layout::Decoded;
                made.decoder = Some(quantizer);
            }
            None => made.dtype = DType::F16,
        }
        let choice = Choice {
            name: tensor.name.clone(),
            from,
            to: made.dtype,
            instead_of,
            important,
        };
        Ok((made, choice))
    }

    /// The type that a tensor should get, if any.
    fn wanted(&mut self, tensor: &TensorInfo, name: &str) -> Option<&'static BlockSpec> {
        if let Some(spec) = self.options.rule.as_ref().and_then(|rule| rule(tensor)) {
            return Some(spec);
        }
        let is_excepted = |keep: &super::Chosen| keep(tensor);
        if self.options.except.as_ref().is_some_and(is_excepted)
            || !is_matrix(tensor)
            || !may_be_quantized(self.naming, name)
        {
            return None;
        }
        let preferred = self.options.among_matrices.as_ref();
        if let Some(spec) = preferred.and_then(|rule| rule(tensor)) {
            return Some(spec);
        }
        match (self.options.base, &mut self.mixer) {
            (Base::AsIs, _) => None,
            (Base::Type(spec), _) => Some(spec),
            (Base::Mixture(_), Some(mixer)) => Some(mixer.next(name, &tensor.shape)),
            (Base::Mixture(mixture), None) if self.options.pure => Some(mixture.base()),
            (Base::Mixture(mixture), None) => of_its_name(mixture),
        }
    }

    /// How much the columns of a tensor count, where that is known and makes a difference.
    fn importance(
        &mut self,
        tensor: &TensorInfo,
        name: &str,
        spec: &BlockSpec,
    ) -> Result<Option<Arc<[f32]>>> {
        let found = self
            .options
            .importance
            .as_deref()
            .and_then(|matrix: &ImportanceMatrix| {
                matrix.get(&tensor.name).or_else(|| matrix.get(name))
            });
        let columns = tensor.shape.last().copied().unwrap_or(1);
        let matrices = (tensor.shape.iter().rev().skip(2))
            .try_fold(1u64, |product, &dim| product.checked_mul(dim));
        let expected = matrices.and_then(|matrices| matrices.checked_mul(columns));
        let found = match found {
            Some(found) if expected == Some(found.len() as u64) => Some(found.clone()),
            Some(found) => {
                let message = format!(
                    "it has {} importances for {} columns",
                    found.len(),
                    expected.unwrap_or(u64::MAX)
                );
                // Counted otherwise by some programs; llama.cpp goes on without.
                if !matches!(name, "token_embd.weight" | "per_layer_token_embd.weight") {
                    return Err(Error::unsupported("imatrix", message));
                }
                let message = format!("tensor {name:?}: {message}: they are not used");
                self.remarks
                    .push(Finding::new(Severity::Warning, "imatrix.columns", message));
                None
            }
            None => None,
        };
        let is_exempt = matches!(
            name,
            "token_embd.weight" | "per_layer_token_embd.weight" | super::names::OUTPUT
        );
        let by_mixture = matches!(
            self.options.base,
            Base::Mixture(Mixture {
                needs_importance: true,
                ..
            })
        );
        let needs =
            quant::needs_importance(spec) || (by_mixture && spec.name == "Q2_K" && !is_exempt);
        if found.is_none() && needs {
            let message = format!(
                "into {} only with an importance matrix, and there is none for it",
                spec.name
            );
            return Err(Error::unsupported("quantize", message));
        }
        Ok(found.filter(|_| quant::uses_importance(spec)))
    }
}

/// Whether a tensor is a matrix of floats, or several of them; one row is none.
pub(super) fn is_matrix(tensor: &TensorInfo) -> bool {
    let floats = [DType::F16, DType::BF16, DType::F32, DType::F64];
    let is_float = floats.contains(&tensor.dtype) || matches!(tensor.dtype, DType::Block(_));
    let shape: &[u64] = &tensor.shape;
    let rank = shape.iter().skip_while(|&&dim| dim == 1).count();
    is_float && rank > 1
}

/// llama.cpp counts dimensions from the rows on, up to the last that is not 1.
fn drop_outer_ones(tensor: &mut TensorInfo) {
    let shape: &[u64] = &tensor.shape;
    let ones = shape.iter().take_while(|&&dim| dim == 1).count();
    let ones = ones.min(shape.len().saturating_sub(1));
    let is_plain = matches!(tensor.layout, Layout::RowMajor | Layout::Decoded);
    if let (Some(rest @ [_, ..]), true, true) = (shape.get(ones..), ones > 0, is_plain) {
        tensor.shape = rest.to_vec().into();
    }
}

/// A cast that was asked for before would be passed over, and blocks are made of numbers.
fn not_yet(tensor: &TensorInfo) -> Result<()> {
    if before_cast(tensor).is_some() {
        let message = "it is cast too; a tensor is either cast or quantized";
        return Err(Error::unsupported("quantize", message));
    }
    match (tensor.dtype, &tensor.layout) {
        (DType::Block(spec), _) => {
            let message = format!("it is quantized to {} already", spec.name);
            Err(Error::unsupported("quantize", message).hinting(Hint::Dequantize))
        }
        _ => Ok(()),
    }
}

/// The type for rows of this length: the wanted one, else one with smaller blocks, else none, which is f16.
fn fallback(
    wanted: &'static BlockSpec,
    tensor: &TensorInfo,
) -> (Option<&'static BlockSpec>, Option<&'static BlockSpec>) {
    let row = tensor.shape.last().copied().unwrap_or(1);
    let fits = |spec: &&'static BlockSpec| row.is_multiple_of(spec.elements.into());
    if fits(&wanted) {
        return (Some(wanted), None);
    }
    let other = match wanted.name {
        name if name.starts_with("IQ") => BlockSpec::named("IQ4_NL"),
        "Q2_0" | "Q2_K" | "Q3_K" | "TQ1_0" | "TQ2_0" => BlockSpec::named("Q4_0"),
        "Q4_K" => BlockSpec::named("Q5_0"),
        "Q5_K" => BlockSpec::named("Q5_1"),
        "Q6_K" => BlockSpec::named("Q8_0"),
        _ => wanted,
    };
    (Some(other).filter(fits), Some(wanted))
}

/// What metadata of GGUF says about the types.
fn describe(manifest: &mut Manifest, options: &QuantizeOptions) {
    let file_type = match options.base {
        Base::Mixture(mixture) => mixture.file_type,
        // What most tensors are is said by whoever writes the file.
        _ => return describe_importance(manifest, options),
    };
    manifest
        .metadata
        .set("general.file_type", Value::U32(file_type));
    manifest
        .metadata
        .set("general.quantization_version", Value::U32(2));
    manifest.knows_types = true;
    describe_importance(manifest, options);
}

fn describe_importance(manifest: &mut Manifest, options: &QuantizeOptions) {
    if let Some(importance) = &options.importance {
        importance.describe(&mut manifest.metadata);
    }
}

/// Says which tensors got another type than was wanted, one line for each pair of types.
fn fallbacks(choices: &[Choice]) -> Vec<Finding> {
    let mut pairs: Vec<(&BlockSpec, DType, Vec<&str>)> = Vec::new();
    for choice in choices {
        let Some(wanted) = choice.instead_of else {
            continue;
        };
        match pairs
            .iter_mut()
            .find(|(spec, to, _)| *spec == wanted && *to == choice.to)
        {
            Some((.., names)) => names.push(&choice.name),
            None => pairs.push((wanted, choice.to, vec![&choice.name])),
        }
    }
    let say = |(wanted, to, names): (&BlockSpec, DType, Vec<&str>)| {
        let to: Cow<'_, str> = match to {
            DType::Block(spec) => spec.name.into(),
            other => other.to_string().into(),
        };
        let first = names.first().copied().unwrap_or_default();
        let whose = match names.len() {
            1 => format!("the rows of {first:?} are"),
            n => format!("the rows of {n} tensors ({first:?}, …) are"),
        };
        let message = format!(
            "{whose} not whole blocks of {}, which have {} elements: {to} is taken instead",
            wanted.name, wanted.elements
        );
        Finding::new(Severity::Warning, "quantize.rows", message)
    };
    pairs.into_iter().map(say).collect()
}
