//! From the model to a file: what kind it is, which tensor is what in it, and its segments.

use super::raw::{Configs, Header, Key, Shape, Tensor};
use super::values::{self, DataType, MAX_DEPTH};
use super::{batch, names};
use crate::error::{Error, Result};
use crate::format::{Arranged, Effect, FilePlan, Form, Loss, Plan, PlanOptions, Segment, Want};
use crate::model::{DType, Endian, Layout, Manifest, Metadata, TensorInfo, Value};
use crate::prelude::*;
use crate::wire::msgpack::Encoder;

/// The tensors in the order of the file, without what the options leave out, and what stands in the way of writing them.
pub(super) fn arrange(what: &Manifest, options: &PlanOptions) -> Result<Arranged> {
    let mut manifest = what.clone();
    if drops_stats(options)? {
        manifest.tensors.retain(|tensor| !is_statistic(tensor));
    }
    let data_type = data_type(&manifest, options)?;
    let Contents {
        parameters,
        mut losses,
    } = Contents::of(&manifest, data_type);
    losses.extend(check_metadata(&mut manifest, data_type)?);
    let mut tensors: Vec<_> = core::mem::take(&mut manifest.tensors)
        .into_iter()
        .map(Some)
        .collect();
    let mut arranged = Vec::new();
    for parameter in &parameters {
        let first = arranged.len();
        for (is_value, index) in parameter.tensors() {
            let Some(mut tensor) = tensors.get_mut(index).and_then(Option::take) else {
                continue;
            };
            let batched = !is_value || data_type == DataType::Tensor;
            losses.extend(check_batch(&mut tensor, batched));
            losses.extend(shorten(&mut tensor));
            arranged.push(tensor);
        }
        if parameter.key.is_none() {
            name_anew(arranged.get_mut(first..).unwrap_or_default(), parameter);
        }
    }
    // What has no place is in the list of losses, and stays here so that the other checks see it too.
    arranged.extend(tensors.into_iter().flatten());
    manifest.tensors = arranged.into();
    Ok(Arranged { manifest, losses })
}

/// The file.
pub(super) fn plan(what: &Manifest, options: &PlanOptions) -> Result<Plan> {
    let data_type = data_type(what, options)?;
    let Contents { parameters, losses } = Contents::of(what, data_type);
    if let Some(loss) = losses.first() {
        return Err(Error::argument(loss.to_string()));
    }
    let mut writer = Writer {
        what,
        encoder: Encoder::new(),
        segments: Vec::new(),
    };
    Header::encode(data_type, &mut writer.encoder);
    match data_type {
        DataType::Shape => shape_of(&what.metadata)?.encode(&mut writer.encoder)?,
        DataType::Optimizer => {
            let (uints, floats) = configs_of(&what.metadata)?;
            Configs::encode(&uints, &floats, &mut writer.encoder)?;
        }
        DataType::Tensor => {
            for parameter in &parameters {
                writer.tensor(parameter.value)?;
            }
        }
        DataType::Model => {
            writer.count(parameters.len())?;
            for parameter in &parameters {
                writer.parameter(parameter)?;
            }
        }
        DataType::Parameter => {
            for parameter in &parameters {
                writer.parameter(parameter)?;
            }
        }
    }
    let file = FilePlan {
        name: options.file_name.clone(),
        segments: writer.finish(),
    };
    Ok(Plan { files: vec![file] })
}

struct Writer<'m> {
    what: &'m Manifest,
    encoder: Encoder,
    segments: Vec<Segment>,
}

impl Writer<'_> {
    fn parameter(&mut self, parameter: &Parameter) -> Result<()> {
        if let Some(key) = &parameter.key {
            Key::encode(key, &mut self.encoder)?;
        }
        self.tensor(parameter.value)?;
        self.count(parameter.stats.len())?;
        for (name, index) in &parameter.stats {
            self.encoder.text(name)?;
            self.tensor(*index)?;
        }
        Ok(())
    }

    fn tensor(&mut self, index: usize) -> Result<()> {
        let tensor = self.what.tensors.get(index);
        let tensor = tensor.ok_or_else(|| Error::argument("no such tensor"))?;
        let shape = shape(tensor).map_err(|error| error.in_tensor(&tensor.name))?;
        Tensor::encode(&shape, &mut self.encoder)?;
        self.segments.push(Segment::Bytes(self.encoder.take()));
        let form = Form {
            dtype: DType::F32,
            layout: Layout::ColumnMajor,
            endian: Endian::Little,
        };
        self.segments.push(Segment::Tensor {
            index,
            part: 0,
            want: Want::Dense(form),
            codec: None,
            digest: None,
        });
        Ok(())
    }

    fn count(&mut self, count: usize) -> Result<()> {
        let count = u32::try_from(count)
            .map_err(|cause| Error::argument(format!("{count} entries")).because(cause))?;
        self.encoder.u32(count);
        Ok(())
    }

    fn finish(mut self) -> Vec<Segment> {
        self.segments.push(Segment::Bytes(self.encoder.take()));
        self.segments
    }
}

/// The shape as the file has it.
fn shape(tensor: &TensorInfo) -> Result<Shape> {
    let batch = batch(tensor);
    let depth = tensor.shape.len() - usize::from(batch.is_some());
    let dims = tensor.shape.iter().take(depth).map(|&dim| {
        u32::try_from(dim)
            .map_err(|cause| Error::argument(format!("a dimension of {dim}")).because(cause))
    });
    Ok(Shape {
        dims: dims.collect::<Result<_>>()?,
        batch: batch.unwrap_or(1),
    })
}

/// What the file is to hold: what was asked for, else what the metadata says as long as the tensors are like that, else a
/// Model.
fn data_type(what: &Manifest, options: &PlanOptions) -> Result<DataType> {
    if let Some(asked) = options.option("kind") {
        return DataType::from_option(asked).ok_or_else(|| {
            let message = format!(
                "-O kind={asked}: model, parameter, tensor, shape or optimizer is expected"
            );
            Error::argument(message)
        });
    }
    let metadata = &what.metadata;
    let said = metadata
        .get("data_type")
        .and_then(Value::as_str)
        .and_then(DataType::from_name);
    let fits = |data_type| Contents::of(what, data_type).losses.is_empty();
    let is_shape = || what.tensors.is_empty() && shape_of(metadata).is_ok();
    let is_optimizer = || what.tensors.is_empty() && configs_of(metadata).is_ok();
    Ok(match said {
        Some(DataType::Parameter) if fits(DataType::Parameter) => DataType::Parameter,
        Some(DataType::Tensor) if fits(DataType::Tensor) => DataType::Tensor,
        Some(DataType::Optimizer) | None if is_optimizer() => DataType::Optimizer,
        Some(DataType::Shape) | None if is_shape() => DataType::Shape,
        _ => DataType::Model,
    })
}

fn drops_stats(options: &PlanOptions) -> Result<bool> {
    match options.option("stats") {
        None | Some("keep") => Ok(false),
        Some("drop") => Ok(true),
        Some(other) => Err(Error::argument(format!(
            "-O stats={other}: keep or drop is expected"
        ))),
    }
}

fn is_statistic(tensor: &TensorInfo) -> bool {
    match tensor.metadata.get("role").and_then(Value::as_str) {
        Some("stat") => true,
        Some("value") => false,
        _ => names::Address::parse(&tensor.name).is_ok_and(|address| address.stat.is_some()),
    }
}

fn shape_of(metadata: &Metadata) -> Result<Shape> {
    let dims = metadata.get("dims").and_then(values::dims);
    let batch = metadata.get("batch").and_then(values::positive);
    match (dims, batch) {
        (Some(dims), Some(batch)) => Ok(Shape { dims, batch }),
        _ => Err(Error::argument(
            "a Shape is made of metadata: `dims`, at most 8 sizes, and `batch`",
        )),
    }
}

type ConfigsOf<'m> = (Vec<(&'m str, u32)>, Vec<(&'m str, f32)>);

fn configs_of(metadata: &Metadata) -> Result<ConfigsOf<'_>> {
    let uints = metadata.get("uint_configs").and_then(values::uints);
    let floats = metadata.get("float_configs").and_then(values::floats);
    uints.zip(floats).ok_or_else(|| {
        Error::argument("an Optimizer is made of metadata: `uint_configs` and `float_configs`, maps of 32-bit numbers")
    })
}

/// A parameter to be written.
struct Parameter {
    /// `None` where the file is the parameter.
    key: Option<Vec<String>>,
    value: usize,
    stats: Vec<(String, usize)>,
}

impl Parameter {
    /// Its tensors in the order of the file; whether each is the value.
    fn tensors(&self) -> impl Iterator<Item = (bool, usize)> {
        let stats = self.stats.iter().map(|&(_, index)| (false, index));
        core::iter::once((true, self.value)).chain(stats)
    }
}

/// The parameters of a file in order, and the tensors that have no place among them.
struct Contents {
    parameters: Vec<Parameter>,
    losses: Vec<Loss>,
}

impl Contents {
    fn of(what: &Manifest, data_type: DataType) -> Self {
        match data_type {
            DataType::Shape | DataType::Optimizer => {
                let why = format!("a file of kind {} holds no tensors", data_type.name());
                let losses = what.tensors.iter().map(|tensor| impossible(tensor, &why));
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
            contents.losses.push(Loss {
                tensor: None,
                what: "no tensors".into(),
                why: "a file of this kind holds one".into(),
                effect: Effect::Impossible,
            });
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
                Err(why) => contents.losses.push(impossible(tensor, &why)),
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
            if let Err(why) = contents.push(address, index) {
                contents.losses.push(impossible(tensor, &why));
            }
        }
        contents
    }

    /// Adds a tensor to a Model. They come in order: a value right before its statistics, and right before what is inside
    /// of it.
    fn push(&mut self, address: names::Address, index: usize) -> Result<(), String> {
        let names::Address { key, stat } = address;
        let last = self.parameters.last_mut();
        let last = last.map(|last| (last.key.as_deref().unwrap_or_default(), &mut last.stats));
        match (last, stat) {
            (Some((of, stats)), Some(stat)) if of == key => stats.push((stat, index)),
            (_, Some(_)) => {
                let parameter = names::join(&key);
                return Err(format!(
                    "it is a statistic of {parameter:?}, which is not there; -O stats=drop leaves statistics out"
                ));
            }
            (Some((of, _)), None) if key.starts_with(of) => {
                let outer = names::join(of);
                return Err(format!(
                    "{outer:?} is a parameter, and no model that this could be in"
                ));
            }
            (_, None) => self.parameters.push(Parameter {
                key: Some(key),
                value: index,
                stats: Vec::new(),
            }),
        }
        Ok(())
    }
}

fn impossible(tensor: &TensorInfo, why: &str) -> Loss {
    Loss {
        tensor: Some(tensor.name.clone()),
        what: "its place".into(),
        why: why.to_owned(),
        effect: Effect::Impossible,
    }
}

/// Takes away the metadata of other kinds of files, which this one has no place for.
fn check_metadata(manifest: &mut Manifest, data_type: DataType) -> Result<Vec<Loss>> {
    let held: &[&str] = match data_type {
        DataType::Shape => shape_of(&manifest.metadata).map(|_| ["dims", "batch"].as_slice())?,
        DataType::Optimizer => {
            configs_of(&manifest.metadata).map(|_| ["uint_configs", "float_configs"].as_slice())?
        }
        DataType::Tensor | DataType::Parameter | DataType::Model => &[],
    };
    let mut losses = Vec::new();
    manifest.metadata = manifest.metadata.filter_map(|key, value| {
        let of_a_kind = matches!(key, "dims" | "batch" | "uint_configs" | "float_configs");
        if of_a_kind && !held.contains(&key) {
            let why = format!("a file of kind {} has no place for it", data_type.name());
            losses.push(dropped(None, key, why));
            return None;
        }
        Some(value.clone())
    });
    Ok(losses)
}

/// Takes a batch away that is none, or that has no place.
fn check_batch(tensor: &mut TensorInfo, batched: bool) -> Option<Loss> {
    let said = tensor.metadata.get("batch").and_then(values::positive)?;
    if batched && (said == 1 || batch(tensor).is_some()) {
        return None;
    }
    let why = match batched {
        true => format!("the last dimension is not {said}"),
        false => "the value of a parameter has no batch; the dimension stays".to_owned(),
    };
    tensor.metadata = tensor
        .metadata
        .filter_map(|key, value| (key != "batch").then(|| value.clone()));
    (said != 1).then(|| dropped(Some(&tensor.name), "batch", why))
}

/// Drops dimensions of 1 at the end as long as there are too many: the original does so with all of them.
fn shorten(tensor: &mut TensorInfo) -> Option<Loss> {
    let before = tensor.shape.clone();
    let batch = batch(tensor).map(u64::from);
    tensor
        .shape
        .truncate(before.len() - usize::from(batch.is_some()));
    while tensor.shape.len() > MAX_DEPTH && tensor.shape.last() == Some(&1) {
        tensor.shape.pop();
    }
    tensor.shape.extend(batch);
    (tensor.shape != before).then(|| Loss {
        tensor: Some(tensor.name.clone()),
        what: format!("shape {before:?}"),
        why: format!("written as {:?}", tensor.shape),
        effect: Effect::Rearranged,
    })
}

/// Names that come from the file need not be such as a Model could have: they are not written.
fn name_anew(tensors: &mut [TensorInfo], parameter: &Parameter) {
    let Some((value, stats)) = tensors.split_first_mut() else {
        return;
    };
    if names::Address::parse(&value.name).is_err() {
        value.name = names::join(&[&value.name]);
        for (tensor, (stat, _)) in stats.iter_mut().zip(&parameter.stats) {
            tensor.name = names::statistic(&value.name, stat);
        }
    }
}

fn dropped(tensor: Option<&str>, key: &str, why: String) -> Loss {
    Loss {
        tensor: tensor.map(ToOwned::to_owned),
        what: format!("metadata {key:?}"),
        why,
        effect: Effect::Dropped,
    }
}
