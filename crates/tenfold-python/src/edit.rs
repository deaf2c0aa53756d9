//! Archives with other types, names and metadata. Nothing is computed before it is read.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use tenfold::model;
use tenfold::ops::{self, Conflicts, Edit, ImportanceMatrix, QuantizeOptions, QuantizeTo};

use crate::archive::{Archive, globs};
use crate::dtype;
use crate::error::raised;
use crate::metadata::{from_python, like};

/// Types for tensors, each with the pattern of their names; the last that matches counts.
type Rules<'py> = Vec<(Bound<'py, PyAny>, Option<String>)>;

struct Rule {
    dtype: model::DType,
    names: Option<globset::GlobSet>,
}

impl Rule {
    fn all(rules: &Rules<'_>) -> PyResult<Vec<Self>> {
        let rules = rules.iter().map(|(dtype, pattern)| {
            let names = pattern
                .as_ref()
                .map(|pattern| globs(std::slice::from_ref(pattern)));
            Ok(Self {
                dtype: dtype::parse(dtype)?,
                names: names.transpose()?,
            })
        });
        rules.collect()
    }

    fn find<'r>(rules: &'r [Self], name: &str) -> Option<&'r Self> {
        let matches = |rule: &&Self| rule.names.as_ref().is_none_or(|set| set.is_match(name));
        rules.iter().rev().find(matches)
    }
}

/// Numbers of other types.
#[pyfunction]
pub(crate) fn cast(archive: &Archive, rules: Rules<'_>) -> PyResult<Archive> {
    let rules = Rule::all(&rules)?;
    let opened = archive.get()?;
    let is_number = |info: &model::TensorInfo| matches!(info.dtype, model::DType::Number(..));
    let changed = ops::cast(&opened, |info| {
        let rule = Rule::find(&rules, &info.name)?;
        // A rule for all tensors speaks of those that have numbers.
        (rule.names.is_some() || is_number(info)).then_some(rule.dtype)
    });
    Ok(archive.derived(changed.map_err(raised)?))
}

/// A type of blocks for the tensors that match; a pattern that is a name is taken at its word.
struct BlockRule {
    to: QuantizeTo,
    names: globset::GlobSet,
    is_name: bool,
}

/// Quantized numbers: what a type or a mixture says of all matrices, and what patterns say of some tensors.
#[pyfunction]
#[pyo3(signature = (archive, rules, imatrix, pure))]
pub(crate) fn quantize(
    archive: &Archive,
    rules: Rules<'_>,
    imatrix: Option<std::path::PathBuf>,
    pure: bool,
) -> PyResult<Archive> {
    let opened = archive.get()?;
    let mut options = QuantizeOptions::new().pure(pure);
    let mut named = Vec::new();
    for (to, pattern) in &rules {
        let pattern = pattern.as_ref().filter(|pattern| *pattern != "*");
        match (quantize_to(to, pattern.is_none())?, pattern) {
            (to, Some(pattern)) => named.push(BlockRule {
                to,
                names: globs(std::slice::from_ref(pattern))?,
                is_name: opened.index_of(pattern).is_some(),
            }),
            (QuantizeTo::Type(spec), None) => options = options.every_matrix(Some(spec)),
            (QuantizeTo::Mixture(mixture), None) => options = options.mixture(Some(mixture)),
            _ => {}
        }
    }
    named.reverse();
    let named: Arc<[BlockRule]> = named.into();
    let find = |of_names: bool| {
        let named = named.clone();
        move |info: &model::TensorInfo| {
            let rule = named.iter().find(|rule| rule.names.is_match(&info.name))?;
            match rule.to {
                QuantizeTo::Type(spec) if rule.is_name == of_names => Some(spec),
                _ => None,
            }
        }
    };
    options = options.rule(find(true)).rule_among_matrices(find(false));
    options = options.except(move |info| {
        let rule = named.iter().find(|rule| rule.names.is_match(&info.name));
        rule.is_some_and(|rule| matches!(rule.to, QuantizeTo::Keep))
    });
    if let Some(path) = imatrix {
        options = options.importance(ImportanceMatrix::open(path).map_err(raised)?);
    }
    let quantized = ops::quantize(&opened, &options).map_err(raised)?;
    Ok(archive.derived(quantized.archive))
}

/// The name of a mixture, of a type, or a type.
fn quantize_to(to: &Bound<'_, PyAny>, all: bool) -> PyResult<QuantizeTo> {
    if let Ok(name) = to.extract::<String>()
        && let Some(to) = QuantizeTo::from_name(&name, all)
    {
        return Ok(to);
    }
    match dtype::parse(to)? {
        model::DType::Block(spec) => Ok(QuantizeTo::Type(spec)),
        other => Err(raised(tenfold::Error::argument(format!(
            "numbers are not quantized to {other}; cast them"
        )))),
    }
}

/// Quantized tensors as the numbers that they stand for.
#[pyfunction]
pub(crate) fn dequantize(archive: &Archive) -> PyResult<Archive> {
    let changed = ops::dequantize(&archive.get()?).map_err(raised)?;
    Ok(archive.derived(changed))
}

/// Tensors that are quantized together as one each.
#[pyfunction]
pub(crate) fn grouped(archive: &Archive) -> PyResult<Archive> {
    let quantized = ops::quantized(&archive.get()?).map_err(raised)?;
    Ok(archive.derived(quantized.archive))
}

/// Tensors under other names.
#[pyfunction]
pub(crate) fn rename(archive: &Archive, names: HashMap<String, String>) -> PyResult<Archive> {
    let changed = ops::rename(&archive.get()?, |name| names.get(name).cloned());
    Ok(archive.derived(changed.map_err(raised)?))
}

/// Other metadata of the file, or of a tensor.
#[pyfunction]
#[pyo3(signature = (archive, tensor, set, unset))]
pub(crate) fn edit_metadata(
    archive: &Archive,
    tensor: Option<&str>,
    set: Vec<(String, Bound<'_, PyAny>)>,
    unset: Vec<String>,
) -> PyResult<Archive> {
    let opened = archive.get()?;
    let before = match tensor {
        Some(name) => {
            let gone = || PyKeyError::new_err(format!("there is no tensor {name:?}"));
            &opened.get(name).ok_or_else(gone)?.info().metadata
        }
        None => opened.metadata(),
    };
    let mut edits: Vec<_> = unset.into_iter().map(Edit::Unset).collect();
    for (key, value) in set {
        let is_plain = value.get_type().module()? != "numpy";
        let mut value = from_python(&value, 0)?;
        if is_plain {
            value = like(before.get(&key), value).map_err(raised)?;
        }
        edits.push(Edit::Set(key, value));
    }
    let changed = ops::edit_metadata(&opened, tensor, &edits).map_err(raised)?;
    Ok(archive.derived(changed))
}

/// The tensors of several archives as one, and the conflicts: whether it is a tensor, its name, which one counts, which not.
#[pyfunction]
#[allow(clippy::type_complexity)] // rows
pub(crate) fn merge(
    archives: Vec<PyRef<'_, Archive>>,
    prefer: Option<&str>,
) -> PyResult<(Archive, Vec<(bool, String, usize, usize)>)> {
    let opened = archives
        .iter()
        .map(|archive| archive.get())
        .collect::<PyResult<Vec<_>>>()?;
    let conflicts = match prefer {
        Some("first") => Conflicts::First,
        Some("last") => Conflicts::Last,
        Some("first-metadata") => Conflicts::FirstMetadata,
        _ => Conflicts::Refuse,
    };
    let merged = ops::merge(&opened, conflicts).map_err(raised)?;
    let rows = merged.conflicts.into_iter();
    let rows = rows.map(|it| (it.is_tensor, it.name, it.kept, it.left_out));
    Ok((Archive::new(merged.archive, None), rows.collect()))
}
