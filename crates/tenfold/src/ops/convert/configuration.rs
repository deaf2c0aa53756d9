//! The configuration of a model, which says of which type its weights are.

use crate::error::Result;
use crate::io::Source;
use crate::model::{DType, Manifest};
use crate::prelude::*;
use crate::wire::json::{Json, Kind, Rules};

/// How the file is called beside the weights.
pub(super) const NAME: &str = "config.json";
/// Configurations have a few KiB.
const LONGEST: u64 = 1 << 20;
const MAX_DEPTH: usize = 128;
const RULES: Rules = Rules {
    syntax: "file.config",
    text: "file.config",
    depth: "file.config",
};

/// The keys that name the type; the older one is still written by most.
const KEYS: [&str; 2] = ["torch_dtype", "dtype"];
/// What those of the parts of a model end in, and the one that is about something else.
const PART: &str = "_config";
const QUANTIZATION: &str = "quantization_config";

const NAMES: [(DType, &str); 4] = [
    (DType::BF16, "bfloat16"),
    (DType::F16, "float16"),
    (DType::F32, "float32"),
    (DType::F64, "float64"),
];

/// A configuration that follows what became of the weights; by default, it stays as it is.
#[derive(Default)]
pub(super) struct Followed {
    /// The text to be written in its place.
    pub(super) text: Option<String>,
    /// What was done, for people.
    pub(super) note: Option<String>,
}

/// What becomes of a configuration beside weights of other types than before.
pub(super) fn follow(source: &dyn Source, weights: &Manifest) -> Result<Followed> {
    if source.len() > LONGEST {
        return Ok(Followed::default());
    }
    let bytes = source.read(0..source.len())?;
    // What is no configuration says nothing of types.
    let (Ok(said), Ok(text)) = (said_types(&bytes), core::str::from_utf8(&bytes)) else {
        return Ok(Followed::default());
    };
    let name = only_type(weights);
    let is_other = |said: &&Said| name.is_none_or(|name| said.name != name);
    let Some(Said { key, name: old, .. }) = said.iter().find(is_other) else {
        return Ok(Followed::default());
    };
    let Some(name) = name else {
        let note = format!("{NAME} still says {key} = {old:?}: the weights now have other types");
        return Ok(Followed {
            note: Some(note),
            ..Followed::default()
        });
    };
    let mut new = String::new();
    let mut at = 0;
    for Said { range, .. } in &said {
        new += text.get(at..range.start).unwrap_or_default();
        new += &format!("{name:?}");
        at = range.end;
    }
    new += text.get(at..).unwrap_or_default();
    Ok(Followed {
        text: Some(new),
        note: Some(format!("{NAME} says {key} = {name:?} now, was {old:?}")),
    })
}

/// A type that a configuration names, and where.
struct Said {
    key: String,
    name: String,
    range: Range<usize>,
}

/// The types that it names, for the model and for its parts.
fn said_types(bytes: &[u8]) -> Result<Vec<Said>> {
    let mut json = Json::new(bytes, 0, MAX_DEPTH, &RULES)?;
    let mut said = Vec::new();
    let mut open = 1;
    json.object("the configuration")?;
    while open > 0 {
        let Some(key) = json.key()? else {
            open -= 1;
            continue;
        };
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let begin = place(json.at());
        match json.kind()? {
            Kind::Object if key.ends_with(PART) && key != QUANTIZATION => {
                json.object("a part of the configuration")?;
                open += 1;
            }
            Kind::Str if KEYS.contains(&&*key) => {
                let name = json.string("a type")?.into_owned();
                // Others, such as "auto", leave it open.
                if NAMES.iter().any(|(_, known)| *known == name) {
                    said.push(Said {
                        key: key.into_owned(),
                        name,
                        range: begin..place(json.end_at()),
                    });
                }
            }
            _ => json.skip()?,
        }
    }
    json.end()?;
    Ok(said)
}

/// The type of all weights that are no integers, if it is one that a configuration can name.
fn only_type(weights: &Manifest) -> Option<&'static str> {
    let is_whole = |dtype| matches!(dtype, DType::Number(number, _) if !number.is_float());
    let types = weights.tensors.iter().map(|tensor| tensor.dtype);
    let mut types = types.filter(|dtype| !is_whole(*dtype));
    let first = types.next()?;
    let (_, name) = NAMES.iter().find(|(dtype, _)| *dtype == first)?;
    types.all(|other| other == first).then_some(*name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_a_model_and_its_parts_are_found() {
        let text = r#"{"dtype": "float16", "n": [{"dtype": "float32"}], "torch_dtype" : "float32",
            "text_config": {"torch_dtype": "bfloat16", "x": null}, "other": {"dtype": "float32"},
            "quantization_config": {"dtype": "float32"}, "b_config": {"dtype": "auto"}}"#;
        let said = said_types(text.as_bytes()).unwrap();
        let found: Vec<_> = (said.iter())
            .map(|said| (said.key.as_str(), &text[said.range.clone()]))
            .collect();
        assert_eq!(
            found,
            [
                ("dtype", "\"float16\""),
                ("torch_dtype", "\"float32\""),
                ("torch_dtype", "\"bfloat16\""),
            ]
        );
        assert!(said_types(b"{").is_err());
        assert!(said_types(b"[]").is_err());
    }
}
