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
/// The keys of what is about quantization: MLX has one of its own, and older files another.
const QUANTIZATIONS: [&str; 3] = [QUANTIZATION, "quantization", "compression_config"];
/// Files that are about quantization alone.
pub(super) const ABOUT_QUANTIZATION: [&str; 4] = [
    "quantize_config.json",
    "quant_config.json",
    "hf_quant_config.json",
    "quanto_qmap.json",
];

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

/// What becomes of a configuration beside weights of other types than before, or that are not quantized any more.
pub(super) fn follow(
    source: &dyn Source,
    weights: &Manifest,
    is_dequantized: bool,
) -> Result<Followed> {
    if source.len() > LONGEST {
        return Ok(Followed::default());
    }
    let bytes = source.read(0..source.len())?;
    // What is not a configuration says nothing of types.
    let (Ok(said), Ok(text)) = (said(&bytes), core::str::from_utf8(&bytes)) else {
        return Ok(Followed::default());
    };
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    let mut notes = Vec::new();
    if is_dequantized {
        changes.extend(
            said.quantizations
                .iter()
                .map(|(_, range)| (range.clone(), String::new())),
        );
        if let Some((key, _)) = said.quantizations.first() {
            notes.push(format!("{NAME} no longer has {key}"));
        }
    }
    let name = if is_dequantized {
        made_type(weights)
    } else {
        only_type(weights)
    };
    let is_other = |said: &&Said| name.is_none_or(|name| said.name != name);
    if let Some(Said { key, name: old, .. }) = said.types.iter().find(is_other) {
        match name {
            Some(name) => {
                let ranges = said.types.iter().map(|said| said.range.clone());
                changes.extend(ranges.map(|range| (range, format!("{name:?}"))));
                notes.push(format!("{NAME} now says {key} = {name:?}, not {old:?}"));
            }
            None => notes.push(format!(
                "{NAME} still says {key} = {old:?}: the weights now have other types"
            )),
        }
    }
    changes.sort_by_key(|(range, _)| range.start);
    Ok(Followed {
        text: (!changes.is_empty()).then(|| changed(text, &changes)),
        note: (!notes.is_empty()).then(|| notes.join("; ")),
    })
}

/// The text with other words in places that follow each other.
fn changed(text: &str, changes: &[(Range<usize>, String)]) -> String {
    let mut new = String::new();
    let mut at = 0;
    for (range, word) in changes {
        new += text.get(at..range.start).unwrap_or_default();
        new += word;
        at = range.end;
    }
    new += text.get(at..).unwrap_or_default();
    new
}

/// What a configuration says of the weights.
#[derive(Default)]
struct Sayings {
    types: Vec<Said>,
    /// What is about quantization: the key, and the entry with the comma that goes with it.
    quantizations: Vec<(String, Range<usize>)>,
}

/// A type that a configuration names, and where.
struct Said {
    key: String,
    name: String,
    range: Range<usize>,
}

/// The types that it names, for the model and for its parts, and what it says of quantization.
fn said(bytes: &[u8]) -> Result<Sayings> {
    let mut json = Json::new(bytes, 0, MAX_DEPTH, &RULES)?;
    let mut said = Sayings::default();
    let mut open = 1;
    json.object("the configuration")?;
    while open > 0 {
        let Some(key) = json.key()? else {
            open -= 1;
            continue;
        };
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let key_at = place(json.key_at());
        let begin = place(json.at());
        match json.kind()? {
            Kind::Object if QUANTIZATIONS.contains(&&*key) => {
                json.skip()?;
                let gone = said.quantizations.last().map_or(0, |(_, range)| range.end);
                let entry = entry(bytes, key_at..place(json.end_at()), gone);
                said.quantizations.push((key.into_owned(), entry));
            }
            Kind::Object if key.ends_with(PART) => {
                json.object("a part of the configuration")?;
                open += 1;
            }
            Kind::Str if KEYS.contains(&&*key) => {
                let name = json.string("a type")?.into_owned();
                // Others, such as "auto", leave it open.
                if NAMES.iter().any(|(_, known)| *known == name) {
                    said.types.push(Said {
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

/// An entry of an object with the comma before it, or the one after it where it is the first of what stays. Everything
/// up to `gone` goes already.
fn entry(bytes: &[u8], range: Range<usize>, gone: usize) -> Range<usize> {
    let is_space = |byte: &&u8| byte.is_ascii_whitespace();
    let before = bytes.get(gone..range.start).unwrap_or_default();
    let spaces = before.iter().rev().take_while(is_space).count();
    let stays = before.len() - spaces;
    if let Some((at, b',')) = stays
        .checked_sub(1)
        .and_then(|at| Some((at, before.get(at)?)))
    {
        return gone + at..range.end;
    }
    let behind = bytes.get(range.end..).unwrap_or_default();
    let spaces = behind.iter().take_while(is_space).count();
    if behind.get(spaces) != Some(&b',') {
        return range;
    }
    let rest = behind.get(spaces + 1..).unwrap_or_default();
    let more = rest.iter().take_while(is_space).count();
    range.start..range.end + spaces + 1 + more
}

/// The type of the numbers that were quantized, where all of them have one that a configuration can name.
fn made_type(weights: &Manifest) -> Option<&'static str> {
    let made = weights.tensors.iter().filter(|tensor| {
        let decoder = tensor.decoder.as_ref();
        decoder.is_some_and(|decoder| decoder.scheme().is_some())
    });
    type_of(made.map(|tensor| tensor.dtype))
}

/// The type of all weights that are not integers, if it is one that a configuration can name.
fn only_type(weights: &Manifest) -> Option<&'static str> {
    let is_whole = |dtype| matches!(dtype, DType::Number(number, _) if !number.is_float());
    let types = weights.tensors.iter().map(|tensor| tensor.dtype);
    type_of(types.filter(|dtype| !is_whole(*dtype)))
}

/// The one type that there is, if a configuration can name it.
fn type_of(mut types: impl Iterator<Item = DType>) -> Option<&'static str> {
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
        let said = said(text.as_bytes()).unwrap();
        let found: Vec<_> = (said.types.iter())
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
        let [(key, range)] = &said.quantizations[..] else {
            panic!("{:?}", said.quantizations);
        };
        assert_eq!(key, "quantization_config");
        assert_eq!(
            &text[range.clone()],
            ",\n            \"quantization_config\": {\"dtype\": \"float32\"}"
        );
        assert!(super::said(b"{").is_err());
        assert!(super::said(b"[]").is_err());
    }

    #[test]
    fn an_entry_goes_with_its_comma() {
        for (text, left) in [
            (r#"{"quantization": {}}"#, "{}"),
            (r#"{"a": 1, "quantization": {"bits": 4} }"#, r#"{"a": 1 }"#),
            (r#"{"quantization": {"bits": 4} , "a": 1}"#, r#"{"a": 1}"#),
            (
                r#"{"a": 1, "quantization": {"q": []}, "quantization_config": {}, "b": 2}"#,
                r#"{"a": 1, "b": 2}"#,
            ),
            (
                r#"{"a": 1, "quantization": {}, "quantization_config": {}}"#,
                r#"{"a": 1}"#,
            ),
            (
                r#"{"quantization": {}, "quantization_config": {}, "b": 2}"#,
                r#"{"b": 2}"#,
            ),
            (r#"{"quantization": {}, "quantization_config": {} }"#, "{ }"),
        ] {
            let said = said(text.as_bytes()).unwrap();
            let gone: Vec<_> = (said.quantizations.into_iter())
                .map(|(_, range)| (range, String::new()))
                .collect();
            assert_eq!(changed(text, &gone), left, "{text}");
        }
    }
}
