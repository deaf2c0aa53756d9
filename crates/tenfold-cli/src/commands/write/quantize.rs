//! Numbers as quantized blocks: what was asked for, what was chosen for each tensor, and how good that is.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use globset::GlobSet;
use tenfold::Archive;
use tenfold::documents::{ChoiceDocument, DequantizedDocument};
use tenfold::format::Finding;
use tenfold::model::{BlockSpec, DType, TensorInfo};
use tenfold::ops::{
    self, Choice, ImportanceMatrix, Quality, QuantizeOptions, QuantizeTo, Quantized, QuantizedGroup,
};

use super::options::Rules;
use super::{Request, is_stream};
use crate::args::Types;
use crate::commands::globs;
use crate::failure::{Failure, Result};
use crate::output::{Clean, Out, count, size};
use crate::urls::{is_url, refuse_url};

/// The tensors with other types.
pub(crate) struct Retyped {
    pub(crate) archive: Archive,
    pub(super) quantized: Option<QuantizedTensors>,
    /// Those of the file that were taken for one quantized tensor each, which became numbers.
    pub(super) dequantized: Option<Vec<QuantizedGroup>>,
}

impl Retyped {
    /// A line for each tensor that is quantized, or was.
    pub(super) fn list(&self, out: &mut Out<'_>) -> Result<()> {
        for group in self.dequantized.iter().flatten() {
            let stored: Vec<_> = endings(&group.tensors).collect();
            let line = format!(
                "{}  from {} ({}): {}",
                group.name,
                group.scheme.name,
                group.scheme.parameters,
                stored.join(", ")
            );
            writeln!(out, "{}", Clean(&line))?;
        }
        match &self.quantized {
            Some(quantized) => quantized.list(out),
            None => Ok(()),
        }
    }

    pub(super) fn groups(&self) -> Option<Vec<DequantizedDocument<'_>>> {
        let groups = self.dequantized.as_ref()?.iter();
        Some(groups.map(DequantizedDocument::new).collect())
    }
}

/// Names without the modules that all of them are in.
fn endings(names: &[String]) -> impl Iterator<Item = &str> {
    let first = names.first().map_or("", String::as_str);
    let is_shared = |module: &&str| names.iter().all(|name| name.starts_with(*module));
    let mut modules = (first.rmatch_indices('.')).filter_map(|(at, _)| first.get(..=at));
    let shared = modules.find(is_shared).unwrap_or_default();
    names
        .iter()
        .filter_map(move |name| name.strip_prefix(shared))
}

/// What was quantized.
pub(crate) struct QuantizedTensors {
    /// The tensors with the numbers that they had.
    pub(super) before: Archive,
    pub(super) choices: Vec<Choice>,
    pub(super) remarks: Vec<Finding>,
    /// Whether it is to be said how good it is.
    pub(super) report: bool,
}

/// What was asked for.
pub(super) struct Quantizing {
    pub(super) options: QuantizeOptions,
    /// The patterns that give types.
    patterns: Vec<(String, BlockRule)>,
}

/// A type for the tensors that match a pattern; one without wildcards is a name, which is taken at its word.
#[derive(Clone)]
struct BlockRule {
    to: QuantizeTo,
    names: Option<GlobSet>,
    is_name: bool,
}

impl BlockRule {
    fn is_about(&self, name: &str) -> bool {
        self.names
            .as_ref()
            .is_some_and(|names| names.is_match(name))
    }
}

impl Request<'_> {
    /// What is to be quantized, if anything is.
    pub(super) fn quantizing(
        &self,
        types: &Types,
        archive: &Archive,
        casts: Arc<Rules<DType>>,
    ) -> Result<Option<Quantizing>> {
        if types.quantize.is_empty() {
            return Ok(None);
        }
        if types.report && (is_stream(self.output) || is_url(self.output)) {
            let message = "--report reads the output back, so write to a file";
            return Err(Failure::Message(message.into()));
        }
        let mut options = QuantizeOptions::new().pure(types.pure);
        let mut patterns = Vec::new();
        for (to, pattern) in &types.quantize {
            self.check_pattern("--quantize", pattern.as_ref(), archive)?;
            match (to, pattern) {
                (to, Some(pattern)) => {
                    let rule = BlockRule {
                        to: *to,
                        names: globs(std::slice::from_ref(pattern))?,
                        is_name: archive.index_of(pattern).is_some(),
                    };
                    patterns.push((pattern.clone(), rule));
                }
                (QuantizeTo::Type(spec), None) => options = options.every_matrix(Some(spec)),
                (QuantizeTo::Mixture(mixture), None) => options = options.mixture(Some(mixture)),
                (_, None) => {}
            }
        }
        let rules: Arc<[BlockRule]> = patterns
            .iter()
            .rev()
            .map(|(_, rule)| rule.clone())
            .collect();
        options = with_rules(options, &rules);
        options = options.except(move |info: &TensorInfo| {
            let rule = rules.iter().find(|rule| rule.is_about(&info.name));
            match rule.map(|rule| rule.to) {
                Some(QuantizeTo::Keep) => true,
                Some(_) => false,
                None => casts.find(info).is_some_and(|(_, by_name)| by_name),
            }
        });
        if let Some(path) = &types.imatrix {
            refuse_url(path, "--imatrix reads files of")?;
            options = options.importance(importance(path)?);
        }
        Ok(Some(Quantizing { options, patterns }))
    }
}

/// The rules that give types: those that name a tensor, and those with wildcards.
fn with_rules(options: QuantizeOptions, rules: &Arc<[BlockRule]>) -> QuantizeOptions {
    let find = |of_names: bool| {
        let rules = rules.clone();
        move |info: &TensorInfo| -> Option<&'static BlockSpec> {
            let rule = rules.iter().find(|rule| rule.is_about(&info.name))?;
            match rule.to {
                QuantizeTo::Type(spec) if rule.is_name == of_names => Some(spec),
                _ => None,
            }
        }
    };
    options.rule(find(true)).rule_among_matrices(find(false))
}

fn importance(path: &Path) -> Result<ImportanceMatrix> {
    ImportanceMatrix::open(path).map_err(|error| Failure::about(path, &error))
}

impl Quantizing {
    /// Refuses a pattern that would do nothing.
    pub(super) fn check(&self, plan: &Quantized) -> Result<()> {
        for (pattern, rule) in &self.patterns {
            let QuantizeTo::Type(spec) = rule.to else {
                continue;
            };
            let mut about = (plan.choices.iter()).filter(|choice| rule.is_about(&choice.name));
            let is_done = |choice: &Choice| {
                !choice.is_left() || choice.instead_of.is_some() || choice.to == DType::Block(spec)
            };
            if !about.any(is_done) {
                return Err(Failure::Message(format!(
                    "--quantize: {pattern:?} matches no matrix of floating-point numbers that llama.cpp quantizes; the name \
                     of a tensor quantizes that"
                )));
            }
        }
        Ok(())
    }
}

impl QuantizedTensors {
    /// A line for each tensor.
    fn list(&self, out: &mut Out<'_>) -> Result<()> {
        let width = (self.choices.iter()).map(|choice| choice.name.len()).max();
        let width = width.unwrap_or(0);
        for choice in &self.choices {
            let (name, from) = (Clean(&choice.name).to_string(), choice.from);
            let what = match (choice.is_left(), choice.instead_of) {
                (true, _) => "stays".to_owned(),
                (false, None) => format!("to {}", word(choice.to)),
                (false, Some(wanted)) => {
                    format!("to {} instead of {}", word(choice.to), wanted.name)
                }
            };
            let important = if choice.important {
                ", with importances"
            } else {
                ""
            };
            writeln!(
                out,
                "{name:width$}  {:5} {what}{important}",
                from.to_string()
            )?;
        }
        Ok(())
    }

    /// How many tensors of which types there are, and what an element takes.
    pub(super) fn summary(&self, archive: &Archive) -> String {
        let mut types: Vec<(DType, usize)> = Vec::new();
        let (mut elements, mut bytes) = (0u64, 0u64);
        for info in &archive.manifest().tensors {
            let len = info.shape.iter().copied().fold(1, u64::saturating_mul);
            elements = elements.saturating_add(len);
            bytes = bytes.saturating_add(info.dtype.bytes_for(len).unwrap_or(0));
            match types.iter_mut().find(|(dtype, _)| *dtype == info.dtype) {
                Some((_, count)) => *count += 1,
                None => types.push((info.dtype, 1)),
            }
        }
        types.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let types: Vec<_> = (types.iter())
            .map(|(dtype, count)| format!("{} ({count})", word(*dtype)))
            .collect();
        let changed = self
            .choices
            .iter()
            .filter(|choice| !choice.is_left())
            .count();
        #[allow(clippy::cast_precision_loss)] // for people
        let bits = if elements == 0 {
            0.0
        } else {
            8.0 * bytes as f64 / elements as f64
        };
        format!(
            "{} quantized: {}; {} of data, {bits:.2} bits for each number",
            count(changed, "tensor"),
            types.join(", "),
            size(bytes)
        )
    }

    /// How far what was written is from what was read.
    pub(super) fn quality(&self, request: &Request<'_>, written: &Path) -> Result<Quality> {
        let about = |error| Failure::about(written, &error);
        let after = request
            .session
            .open_silently(written, request.opening)
            .map_err(about)?;
        ops::quality(&self.before, &after, &self.choices, &request.work()).map_err(about)
    }

    pub(super) fn documents(&self) -> Vec<ChoiceDocument<'_>> {
        self.choices.iter().map(ChoiceDocument::new).collect()
    }
}

/// A type in a word.
fn word(dtype: DType) -> String {
    match dtype {
        DType::Block(spec) => spec.name.to_owned(),
        other => other.to_string(),
    }
}

/// How good it is, for people: all together, and the worst.
pub(super) fn write_quality(quality: &Quality, out: &mut Out<'_>) -> Result<()> {
    const WORST: usize = 10;
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.6}"));
    writeln!(
        out,
        "relative error {}, cosine {} of {}",
        number(quality.relative_l2),
        number(quality.cosine),
        count(quality.tensors.len(), "quantized tensor")
    )?;
    for tensor in quality.tensors.iter().take(WORST) {
        writeln!(
            out,
            "{:>10}  {:>9}  {:8} {}",
            number(tensor.relative_l2),
            number(tensor.cosine),
            word(tensor.dtype),
            Clean(&tensor.name)
        )?;
    }
    let more = quality.tensors.len().saturating_sub(WORST);
    if more > 0 {
        writeln!(out, "{:>10}  {more} more, all closer", "")?;
    }
    Ok(())
}
