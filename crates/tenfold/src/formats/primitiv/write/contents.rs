//! Which tensor is what in a file.

use super::super::names;
use super::super::values::DataType;
use crate::error::Hint;
use crate::format::{Effect, Loss, Lost};
use crate::model::{Manifest, TensorInfo};
use crate::prelude::*;

/// A parameter to be written.
pub(super) struct Parameter {
    /// `None` where the file is the parameter.
    pub(super) key: Option<Vec<String>>,
    pub(super) value: usize,
    pub(super) stats: Vec<(String, usize)>,
}

impl Parameter {
    /// Its tensors in the order of the file; whether each is the value.
    pub(super) fn tensors(&self) -> impl Iterator<Item = (bool, usize)> {
        let stats = self.stats.iter().map(|&(_, index)| (false, index));
        core::iter::once((true, self.value)).chain(stats)
    }
}

/// The parameters of a file in order, and the tensors that have no place among them.
pub(super) struct Contents {
    pub(super) parameters: Vec<Parameter>,
    pub(super) losses: Vec<Loss>,
}

impl Contents {
    pub(super) fn of(what: &Manifest, data_type: DataType) -> Self {
        match data_type {
            DataType::Shape | DataType::Optimizer => {
                let why = format!("a file of kind {} holds no tensors", data_type.name());
                let losses = what.tensors.iter();
                let losses = losses.map(|tensor| impossible(tensor, why.as_str()));
                Self {
                    parameters: Vec::new(),
                    losses: losses.collect(),
                }
            }
            DataType::Tensor => Self::of_one(what, |_, _| {
                Err("a file of kind Tensor holds one tensor".into())
            }),
            DataType::Parameter => Self::of_one(what, |value, tensor| {
                let stat = tensor
                    .name
                    .strip_prefix(value)
                    .and_then(|rest| rest.strip_prefix('@'));
                stat.map(ToOwned::to_owned).ok_or_else(|| {
                    "a file of kind Parameter holds one value and its statistics".to_owned()
                })
            }),
            DataType::Model => Self::of_model(what),
        }
    }

    /// One value, which has the shortest name, and statistics of it.
    fn of_one(what: &Manifest, stat: impl Fn(&str, &TensorInfo) -> Result<String, String>) -> Self {
        let mut contents = Self {
            parameters: Vec::new(),
            losses: Vec::new(),
        };
        let tensors = what.tensors.iter().enumerate();
        let Some((value, first)) = tensors.min_by_key(|(_, tensor)| tensor.name.len()) else {
            let why = "a file of this kind holds one";
            let loss = Loss::new(None, Lost::NoTensors, why, Effect::Impossible);
            contents.losses.push(loss);
            return contents;
        };
        let mut stats = Vec::new();
        for (index, tensor) in what
            .tensors
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != value)
        {
            match stat(&first.name, tensor) {
                Ok(name) => stats.push((name, index)),
                Err(why) => contents.losses.push(impossible(tensor, why)),
            }
        }
        stats.sort();
        contents.parameters.push(Parameter {
            key: None,
            value,
            stats,
        });
        contents
    }

    fn of_model(what: &Manifest) -> Self {
        let mut contents = Self {
            parameters: Vec::new(),
            losses: Vec::new(),
        };
        // Names that are none are refused one by one, by what the format can hold.
        let addresses = what.tensors.iter().enumerate();
        let mut addresses: Vec<_> = addresses
            .filter_map(|(index, tensor)| Some((names::Address::parse(&tensor.name).ok()?, index)))
            .collect();
        addresses.sort();
        for (address, index) in addresses {
            let Some(tensor) = what.tensors.get(index) else {
                continue;
            };
            contents.push(address, tensor, index);
        }
        contents
    }

    /// Adds a tensor to a Model, or a loss where it has no place. They come in order: a value right before its statistics,
    /// and right before what is inside of it.
    fn push(&mut self, address: names::Address, tensor: &TensorInfo, index: usize) {
        let names::Address { key, stat } = address;
        let last = self.parameters.last_mut();
        let last = last.map(|last| (last.key.as_deref().unwrap_or_default(), &mut last.stats));
        match (last, stat) {
            (Some((of, stats)), Some(stat)) if of == key => stats.push((stat, index)),
            (_, Some(_)) => {
                let parameter = names::join(&key);
                let why = format!("it is a statistic of {parameter:?}, which is missing");
                let loss = impossible(tensor, why).hinting(Hint::FormatOption {
                    key: "stats",
                    value: "drop",
                    does: "leaves statistics out",
                });
                self.losses.push(loss);
            }
            (Some((of, _)), None) if key.starts_with(of) => {
                let outer = names::join(of);
                let why = format!("{outer:?} is a parameter, not a model that could contain this");
                self.losses.push(impossible(tensor, why));
            }
            (_, None) => self.parameters.push(Parameter {
                key: Some(key),
                value: index,
                stats: Vec::new(),
            }),
        }
    }
}

fn impossible(tensor: &TensorInfo, why: impl Into<String>) -> Loss {
    let name = Some(tensor.name.clone());
    Loss::new(name, Lost::Place, why, Effect::Impossible)
}
