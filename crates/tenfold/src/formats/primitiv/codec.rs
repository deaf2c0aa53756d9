//! From what is in the file to the model.

use super::raw::{self, Configs, Header, Key, Parser, Shape};
use super::values::DataType;
use super::{MAGIC, SPEC, VERSION, names, write};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Arranged, Confidence, Context, Format, Head, Plan, PlanOptions, Spec};
use crate::model::{
    self, DType, Layout, Manifest, Metadata, Part, Payload, Role, TensorInfo, Value,
};
use crate::prelude::*;

/// Reads and writes primitiv files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Primitiv;

impl Format for Primitiv {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn detect(&self, head: &Head<'_>) -> Result<Confidence> {
        let first = head.first();
        Ok(likeness(first.get(..15).unwrap_or(first)))
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        let mut described = Described::new(cx);
        described.file(cx)?;
        Ok(described.manifest)
    }

    #[cfg(feature = "write")]
    fn arrange(&self, what: &Manifest, options: &PlanOptions) -> Result<Option<Arranged>> {
        write::arrange(what, options).map(Some)
    }

    #[cfg(feature = "write")]
    fn plan(&self, what: &Manifest, options: &PlanOptions) -> Result<Plan> {
        write::plan(what, options)
    }
}

/// How much the first 15 bytes look like a primitiv file, or like one that its reader refuses and that should be told why.
fn likeness(head: &[u8]) -> Confidence {
    const UINT_32: Option<&u8> = Some(&0xce);
    if head.starts_with(MAGIC) {
        return Confidence::Certain;
    }
    let cut = !head.is_empty() && MAGIC.starts_with(head);
    let other_numbers = [0, 5, 10].iter().all(|&at| head.get(at) == UINT_32);
    // A whole file as one array: after the head of a short one, and of longer ones.
    let wrapped = |marker: u8, len: usize| {
        let first = head
            .first()
            .is_some_and(|&first| first & 0xf0 == 0x90 || first == marker);
        first && head.get(len..).is_some_and(|rest| rest.starts_with(MAGIC))
    };
    // The same numbers from an encoder that takes the shortest form of each.
    let short = matches!(
        head,
        [0, 1, 0xce, 0, 0, 0..=4, 0, ..] | [0, 1, 0xcd, 1..=4, 0, ..]
    );
    match head.len() {
        _ if other_numbers || wrapped(0x90, 1) || wrapped(0xdc, 3) || wrapped(0xdd, 5) => {
            Confidence::Likely
        }
        5.. if cut => Confidence::Likely,
        _ if cut || short => Confidence::Possible,
        _ => Confidence::No,
    }
}

/// A file while it is described.
struct Described<'a> {
    parser: Parser<'a>,
    manifest: Manifest,
    /// Where each tensor begins, its key or name included.
    starts: Vec<u64>,
    /// Where the last data ends.
    claimed: u64,
    /// Tensors before the first parameter that is not whole.
    complete: usize,
    /// How many parameters, or tensors of one parameter, should be there.
    announced: Option<u64>,
    /// Tensors with a batch: how many, and the first with its place.
    batches: u64,
    batched: Option<(String, Range<u64>)>,
}

impl<'a> Described<'a> {
    fn new(cx: &Context<'a>) -> Self {
        Self {
            parser: Parser::new(cx.source(), cx.limits()),
            manifest: Manifest::new(VERSION),
            starts: Vec::new(),
            claimed: 0,
            complete: 0,
            announced: None,
            batches: 0,
            batched: None,
        }
    }

    fn file(&mut self, cx: &mut Context<'_>) -> Result<()> {
        let data_type = Header::parse(&mut self.parser)?;
        let name = data_type.name().to_owned();
        self.manifest.metadata.push("data_type", Value::Str(name));
        let read = self.object(&cx.tensor_name(), data_type);
        if let Err(error) = read.and_then(|()| self.parser.end()) {
            self.salvage(cx, error)?;
        }
        self.unique_names()?;
        if data_type == DataType::Model {
            self.warn_about_prefixes(cx)?;
        }
        self.note_batches(cx);
        let end = cx.source().len();
        self.manifest.region(self.claimed..end, "header");
        Ok(())
    }

    /// The specification has the sentence, and the library writes batches nevertheless.
    fn note_batches(&mut self, cx: &mut Context<'_>) {
        if let Some((first, at)) = self.batched.take() {
            let more = match self.batches {
                1 => String::new(),
                n => format!(", and {} more tensors have one", n - 1),
            };
            let message = format!("{first}{more}; the specification requires 1");
            cx.note("primitiv.batch", at, message);
        }
    }

    fn has_batch(&mut self, batch: u32, at: Range<u64>, of: impl FnOnce() -> String) {
        if batch != 1 {
            self.batches += 1;
            self.batched
                .get_or_insert_with(|| (format!("batch {batch} of {}", of()), at));
        }
    }

    fn object(&mut self, name: &str, data_type: DataType) -> Result<()> {
        match data_type {
            DataType::Shape => self.shape(),
            DataType::Tensor => {
                let at = self.parser.pos();
                let tensor = raw::Tensor::parse(&mut self.parser);
                let tensor = tensor.map_err(|error| error.in_tensor(name))?;
                self.tensor(at, name.to_owned(), tensor, Address::default());
                Ok(())
            }
            DataType::Parameter => self.parameter(self.parser.pos(), name, None),
            DataType::Model => self.model(),
            DataType::Optimizer => self.optimizer(),
        }
    }

    fn shape(&mut self) -> Result<()> {
        let at = self.parser.pos();
        let Shape { dims, batch } = Shape::parse(&mut self.parser)?;
        self.has_batch(batch, at..self.parser.pos(), || "the shape".to_owned());
        let dims = dims.into_iter().map(Value::U32).collect();
        self.manifest.metadata.push("dims", Value::List(dims));
        self.manifest.metadata.push("batch", Value::U32(batch));
        Ok(())
    }

    fn optimizer(&mut self) -> Result<()> {
        let configs = Configs::parse(&mut self.parser)?;
        let metadata = &mut self.manifest.metadata;
        metadata.push("uint_configs", Value::Map(configs.uint_configs));
        metadata.push("float_configs", Value::Map(configs.float_configs));
        Ok(())
    }

    fn model(&mut self) -> Result<()> {
        let count = self.parser.count("the number of parameters")?;
        self.announced = Some(count.into());
        for _ in 0..count {
            let at = self.parser.pos();
            let key = Key::parse(&mut self.parser)?;
            self.parameter(at, &names::join(&key), Some(&key))?;
            self.check_count()?;
            self.complete = self.manifest.tensors.len();
        }
        Ok(())
    }

    /// A value and its statistics. Only a parameter that is a file by itself may be complete in parts.
    fn parameter(&mut self, at: u64, name: &str, key: Option<&[String]>) -> Result<()> {
        let value = raw::Value::parse(&mut self.parser);
        let (value, stats) = value.map_err(|error| error.in_tensor(name))?;
        self.tensor(at, name.to_owned(), value, Address { key, stat: None });
        if key.is_none() {
            self.announced = Some(1 + u64::from(stats));
        }
        for _ in 0..stats {
            let at = self.parser.pos();
            let stat = raw::parse_stat_name(&mut self.parser);
            let stat = stat.map_err(|error| error.in_tensor(name))?;
            let name = names::statistic(name, &stat);
            let tensor = raw::Tensor::parse(&mut self.parser);
            let tensor = tensor.map_err(|error| error.in_tensor(&name))?;
            self.tensor(
                at,
                name,
                tensor,
                Address {
                    key,
                    stat: Some(stat),
                },
            );
            self.check_count()?;
        }
        Ok(())
    }

    fn tensor(&mut self, at: u64, name: String, tensor: raw::Tensor, address: Address<'_>) {
        let raw::Tensor { shape, data } = tensor;
        self.has_batch(shape.batch, at..data.start, || format!("tensor {name:?}"));
        let batch = (shape.batch > 1).then_some(shape.batch);
        let shape = shape.dims.into_iter().chain(batch).map(u64::from);
        let shape: model::Shape = shape.collect();
        let mut info = TensorInfo::new(name, DType::F32, shape, Layout::ColumnMajor);
        let own = names::own_len(address.stat.as_deref());
        info.set_own_name(address.key.is_none().then_some(own));
        info.set_derived(&["role", "stat", "key"]);
        self.manifest.region(self.claimed..data.start, "header");
        self.claimed = data.end;
        let payload = Payload::main(data);
        info.parts = Part::new(Role::Values, DType::F32, payload).into();
        if address.key.is_none() {
            self.complete = self.manifest.tensors.len() + 1;
        }
        info.metadata = address.metadata(batch);
        push_tight(&mut self.manifest.tensors, info);
        push_tight(&mut self.starts, at);
    }

    /// Refuses a file of so many tensors that are so small that what describes them would take many times the file.
    fn check_count(&self) -> Result<()> {
        /// Bytes that a tensor takes in memory, and those that no file is refused for.
        const EACH: u64 = 1024;
        const ROOM: u64 = 12 << 20;
        let (count, at) = (self.manifest.tensors.len() as u64, self.parser.pos());
        if count.saturating_mul(EACH) <= ROOM.saturating_add(at.saturating_mul(16)) {
            return Ok(());
        }
        let message = format!(
            "{count} tensors in {at} bytes: listing so many of less than 64 bytes each would take many times \
            the size of the file"
        );
        Err(Error::limit("primitiv.limit", message).at(at..at))
    }

    /// Leaves what is whole of a damaged file, with a warning, where that is wanted; else an error that names it.
    fn salvage(&mut self, cx: &mut Context<'_>, error: Error) -> Result<()> {
        let Some(announced) = self
            .announced
            .filter(|_| error.kind() == ErrorKind::Malformed)
        else {
            return Err(error);
        };
        self.manifest.tensors.truncate(self.complete);
        let summary = self.summary(announced);
        if self.complete > 0 && !cx.salvages() {
            return Err(error.leaving(summary));
        }
        let error = error.adding(&summary);
        if self.complete == 0 {
            return Err(error);
        }
        let rest = self.claimed..cx.source().len();
        let at = error.range().map_or(rest, |(_, range)| range);
        let tensor = error.tensor().map(|name| format!("tensor {name:?}: "));
        let message = tensor.unwrap_or_default() + error.message();
        cx.warn("primitiv.salvaged", at, message)
    }

    /// `; 1 of 3 parameters is complete: "a"`
    fn summary(&self, announced: u64) -> String {
        const SHOWN: usize = 10;
        let of_a_model = |tensor: &&TensorInfo| !tensor.is_unnamed();
        let tensors = &self.manifest.tensors;
        let is_model = tensors.first().as_ref().is_none_or(of_a_model);
        let is_value = |tensor: &&TensorInfo| tensor.metadata.get("stat").is_none();
        let complete: Vec<&str> = tensors
            .iter()
            .filter(|tensor| !is_model || is_value(tensor))
            .map(|tensor| tensor.name.as_str())
            .collect();
        let what = if is_model { "parameters" } else { "tensors" };
        let verb = if complete.len() == 1 { "is" } else { "are" };
        let mut text = format!("; {} of {announced} {what} {verb} complete", complete.len());
        for (index, name) in complete.iter().take(SHOWN).enumerate() {
            text += if index == 0 { ": " } else { ", " };
            text += &format!("{name:?}");
        }
        if complete.len() > SHOWN {
            text += &format!(" and {} more", complete.len() - SHOWN);
        }
        text
    }

    fn unique_names(&self) -> Result<()> {
        let tensors = &self.manifest.tensors;
        let names = tensors.iter().map(|tensor| tensor.name.as_str());
        let Some((place, name)) = crate::model::repeated(names) else {
            return Ok(());
        };
        let tensor = tensors.get(place);
        let message = match tensor.and_then(|tensor| tensor.metadata.get("stat")) {
            Some(_) => "the parameter has this statistic twice",
            None => "there are two parameters with this key",
        };
        let at = self.starts.get(place).copied().unwrap_or_default();
        let error = Error::malformed("primitiv.duplicate", message);
        Err(error.at(at..at + 1).in_tensor(name))
    }

    /// A key is the way through models in models: what is a parameter is not a model that has others.
    fn warn_about_prefixes(&self, cx: &mut Context<'_>) -> Result<()> {
        let values = self.manifest.tensors.iter().zip(&self.starts);
        let mut keys: Vec<_> = values
            .filter(|(tensor, _)| tensor.metadata.get("stat").is_none())
            .map(|(tensor, &at)| (tensor.name.as_str(), at))
            .collect();
        keys.sort_unstable_by(|(a, _), (b, _)| names::symbols(a).cmp(names::symbols(b)));
        for ((short, _), (long, at)) in keys.iter().zip(keys.iter().skip(1)) {
            if names::is_inside(long, short) {
                let message = format!(
                    "{short:?} is a parameter, and {long:?} is inside it: no model can hold both"
                );
                cx.warn("primitiv.prefix", *at..*at + 1, message)?;
            }
        }
        Ok(())
    }
}

/// What a tensor is in its file.
#[derive(Default)]
struct Address<'k> {
    /// The key of its parameter; `None` where the file is the parameter.
    key: Option<&'k [String]>,
    stat: Option<String>,
}

impl Address<'_> {
    fn metadata(self, batch: Option<u32>) -> Metadata {
        let text = |text: &str| Value::Str(text.to_owned());
        let mut metadata = Metadata::new();
        let role = if self.stat.is_some() { "stat" } else { "value" };
        metadata.push("role", text(role));
        if let Some(stat) = self.stat {
            metadata.push("stat", Value::Str(stat));
        }
        if let Some(key) = self.key {
            let parts = key.iter().map(|part| text(part)).collect();
            metadata.push("key", Value::List(parts));
        }
        if let Some(batch) = batch {
            metadata.push("batch", Value::U32(batch));
        }
        metadata
    }
}
