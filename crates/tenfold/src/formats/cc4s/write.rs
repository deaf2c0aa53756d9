//! The YAML file and the files with the elements.

use core::fmt::Write;

use super::elements::{spell_numbers, spell_pairs};
use super::yaml::plain_value;
use super::{VERSION, scalar_type};
use crate::error::{Error, Result};
use crate::format::stem;
use crate::format::{
    Arranged, Effect, FilePlan, Form, Loss, Lost, Plan, PlanOptions, Segment, Want,
};
use crate::model::{DType, Endian, Manifest, Metadata, Order, TensorInfo, Value};
use crate::prelude::*;

/// Finds what only shows when tensors are seen together, or a tensor with its metadata.
pub(super) fn arrange(what: &Manifest, _: &PlanOptions) -> Result<Arranged> {
    let mut manifest = what.clone();
    let mut losses = Vec::new();
    let first = what.tensors.first().map(|tensor| tensor.dtype);
    for tensor in &mut manifest.tensors {
        let mut lose = |what: Lost, why: &str, effect| {
            losses.push(Loss::new(Some(tensor.name.clone()), what, why, effect));
        };
        if Some(tensor.dtype) != first {
            let why =
                "all tensors of a set must have the same type; cast them, or write them separately";
            lose(Lost::DType(tensor.dtype), why, Effect::Impossible);
        }
        let kinds = tensor.metadata.get("dimensions");
        if matches!(kinds, Some(Value::List(kinds)) if kinds.len() != tensor.shape.len()) {
            let why = "expected one type for each dimension";
            lose(Lost::Metadata("dimensions".into()), why, Effect::Dropped);
            let keep = |key: &str, value: &Value| (key != "dimensions").then(|| value.clone());
            tensor.metadata = tensor.metadata.filter_map(keep);
        }
    }
    Ok(Arranged { manifest, losses })
}

pub(super) fn plan(what: &Manifest, options: &PlanOptions) -> Result<Plan> {
    let name = &options.file_name;
    let stem = match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    };
    let as_text = options.flag("text")?;
    let mut text = String::new();
    let mut files = Vec::new();
    match what.tensors.as_slice() {
        [tensor] if !as_set(tensor, stem, options)? => {
            describe(&mut text, tensor, as_text, 0);
            files.push(elements(0, tensor, as_text, stem));
        }
        tensors => {
            text.push_str(if tensors.is_empty() {
                "components: {}\n"
            } else {
                "components:\n"
            });
            for (index, tensor) in tensors.iter().enumerate() {
                let _ = writeln!(text, "  {}:", word(&tensor.name));
                describe(&mut text, tensor, as_text, 4);
                let base = format!("{stem}.components.{}", tensor.name);
                files.push(elements(index, tensor, as_text, &base));
            }
            let _ = writeln!(text, "type: TensorSet\nversion: {VERSION}");
        }
    }
    if let Some(clash) = files.iter().find(|file| file.name == *name) {
        let message = format!("{:?} is the name of its elements; name a .yaml", clash.name);
        return Err(Error::argument(message));
    }
    let main = FilePlan::new(name.clone(), vec![Segment::Bytes(text.into_bytes())]);
    files.insert(0, main);
    Ok(Plan { files })
}

/// A Tensor has no name but that of its file: one with another name is kept as a set of one.
fn as_set(tensor: &TensorInfo, stem: &str, options: &PlanOptions) -> Result<bool> {
    match options.option("set") {
        Some(_) => options.flag("set"),
        None => Ok(!tensor.is_unnamed() && tensor.name != stem::decode(stem)),
    }
}

fn elements(index: usize, tensor: &TensorInfo, as_text: bool, base: &str) -> FilePlan {
    let form = Form {
        dtype: tensor.dtype,
        order: Order::ColumnMajor,
        endian: Endian::Little,
    };
    let spell = match tensor.dtype {
        DType::C128 => spell_pairs,
        _ => spell_numbers,
    };
    let segment = if as_text {
        Segment::Text {
            index,
            form,
            spell,
            digest: None,
        }
    } else {
        Segment::Tensor {
            index,
            part: 0,
            want: Want::Dense(form),
            codec: None,
            digest: None,
        }
    };
    FilePlan::new(format!("{base}.elements"), vec![segment])
}

/// The map of a Tensor, its keys in alphabetical order as cc4s has them.
fn describe(out: &mut String, tensor: &TensorInfo, as_text: bool, indent: usize) {
    let mut map = Metadata::new();
    let kinds: Vec<_> = match tensor.metadata.get("dimensions") {
        Some(Value::List(kinds)) => kinds.iter().collect(),
        _ => Vec::new(),
    };
    let mut dimensions = Vec::with_capacity(tensor.shape.len());
    for (place, &length) in tensor.shape.iter().enumerate() {
        let mut dimension = Metadata::new();
        dimension.push("length", Value::U64(length));
        if let Some(kind @ Value::Str(_)) = kinds.get(place) {
            dimension.push("type", kind.clone());
        }
        dimensions.push(Value::from(dimension));
    }
    let named = |name: &str| Value::Str(name.to_owned());
    map.push("dimensions", Value::List(dimensions.into()));
    let kind = if as_text {
        "TextFile"
    } else {
        "IeeeBinaryFile"
    };
    let kind = ("type".to_owned(), named(kind));
    map.push("elements", Value::Map([kind].into_iter().collect()));
    if let Some(more) = tensor.metadata.get("metaData") {
        map.push("metaData", more.clone());
    }
    map.push(
        "scalarType",
        named(scalar_type(tensor.dtype).unwrap_or_default()),
    );
    map.push("type", named("Tensor"));
    let unit = tensor.metadata.get("unit").cloned();
    map.push("unit", unit.unwrap_or(Value::I64(1)));
    map.push("version", Value::Integer(VERSION.to_owned()));
    block(out, &map.into(), indent);
}

/// A map or list in lines of its own.
fn block(out: &mut String, value: &Value, indent: usize) {
    let pad = " ".repeat(indent);
    match value {
        Value::Map(entries) => {
            for (key, value) in entries.iter() {
                let _ = write!(out, "{pad}{}:", word(key));
                after(out, &value, indent);
            }
        }
        Value::List(items) => {
            for item in items.iter() {
                let _ = write!(out, "{pad}-");
                after(out, &item, indent);
            }
        }
        _ => {}
    }
}

/// What stands after a key or a dash.
fn after(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Map(entries) if !entries.is_empty() => {
            out.push('\n');
            block(out, value, indent + 2);
        }
        Value::List(items) if !items.is_empty() => {
            out.push('\n');
            block(out, value, indent + 2);
        }
        _ => {
            let _ = writeln!(out, " {}", scalar(value));
        }
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::F64(value) if value.is_nan() => ".nan".to_owned(),
        Value::F64(value) if value.is_infinite() => {
            if *value > 0.0 { ".inf" } else { "-.inf" }.to_owned()
        }
        // With a point or an exponent always, so that it stays a real number.
        Value::F64(value) => format!("{value:?}"),
        Value::Integer(digits) => digits.clone(),
        Value::Str(text) => word(text),
        Value::Map(_) => "{}".to_owned(),
        Value::List(_) | Value::Empty(_) => "[]".to_owned(),
        _ => match (value.as_i64(), value.as_u64()) {
            (Some(number), _) => number.to_string(),
            (_, Some(number)) => number.to_string(),
            _ => "null".to_owned(),
        },
    }
}

/// Text, in quotes wherever it could be taken for something else.
fn word(text: &str) -> String {
    // YAML 1.1, which other readers follow, has more words for true and false.
    const TAKEN: &[&str] = &["y", "n", "yes", "no", "on", "off"];
    let simple = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let is_text = matches!(plain_value(text), Value::Str(_));
    if is_text
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(simple)
        && !TAKEN.contains(&text.to_ascii_lowercase().as_str())
    {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            ' '..='~' => quoted.push(character),
            // Only what no reader folds, strips or refuses is written as it is.
            _ if character.is_alphanumeric() => quoted.push(character),
            _ => {
                let _ = write!(quoted, "\\U{:08X}", u32::from(character));
            }
        }
    }
    quoted.push('"');
    quoted
}
