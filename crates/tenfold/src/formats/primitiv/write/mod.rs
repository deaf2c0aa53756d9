//! From the model to a file: what kind it is, which tensor is what in it, and its segments.

mod arrange;
mod contents;

pub(super) use arrange::arrange;

use super::batch;
use super::raw::{Configs, Header, Key, Shape, Tensor};
use super::values::{self, DataType};
use crate::error::{Error, Result};
use crate::format::{FilePlan, Form, Plan, PlanOptions, Segment, Want};
use crate::model::{DType, Endian, Manifest, Metadata, Order, TensorInfo, Value};
use crate::prelude::*;
use crate::wire::msgpack::Encoder;

use contents::{Contents, Parameter};

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
    let file = FilePlan::new(options.file_name.clone(), writer.finish());
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
            order: Order::ColumnMajor,
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
            let why = "expected model, parameter, tensor, shape or optimizer";
            options.wrong("kind", why)
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
