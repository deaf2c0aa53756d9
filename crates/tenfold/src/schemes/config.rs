//! What the files beside a model say of its quantization.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::model::{Map, Quoted, Value};
use crate::prelude::*;
use crate::wire::json::{Json, Rules};

/// The files that say something, the one that counts first.
pub(crate) const FILES: [&str; 5] = [
    "config.json",
    "quantize_config.json",
    "quant_config.json",
    "hf_quant_config.json",
    "quanto_qmap.json",
];
/// Configurations have a few KiB; those that list many modules some more.
pub(crate) const LONGEST: u64 = 4 << 20;
const MAX_DEPTH: usize = 128;
const RULES: Rules = Rules {
    syntax: "quantized.config",
    text: "quantized.config",
    depth: "quantized.config",
};

/// Lists of modules that are not quantized.
const LEFT_OUT: [&str; 6] = [
    "ignore",
    "ignored_layers",
    "modules_to_not_convert",
    "modules_to_exclude",
    "exclude_modules",
    "skip_modules",
];

/// A file beside a model.
#[derive(Clone, Debug)]
pub(crate) struct ConfigFile {
    pub(crate) name: &'static str,
    pub(crate) bytes: Bytes,
}

/// What is said of the quantization.
#[derive(Debug)]
pub(crate) struct Config {
    /// The file that says it.
    pub(crate) file: &'static str,
    /// The name of the method, in small letters with hyphens.
    pub(crate) method: String,
    /// Everything that is said of it.
    said: Map,
}

impl Config {
    /// What the files say, if one of them says anything.
    pub(super) fn find(files: &[ConfigFile]) -> Result<Option<Self>> {
        for name in FILES {
            let Some(file) = files.iter().find(|file| file.name == name) else {
                continue;
            };
            let said = read(file).map_err(|error| error.adding(&format!("in {name}")))?;
            if let Some(config) = said.and_then(|said| Self::of(name, &said)) {
                return Ok(Some(config));
            }
        }
        Ok(None)
    }

    fn of(file: &'static str, said: &Map) -> Option<Self> {
        let (method, said) = match file {
            "config.json" => in_config(said)?,
            "quantize_config.json" => (
                method_of(said).unwrap_or_else(|| "gptq".into()),
                said.clone(),
            ),
            "quant_config.json" => (method_of(said)?, said.clone()),
            "hf_quant_config.json" => ("modelopt".into(), map(said, "quantization")?),
            _ => ("quanto".into(), said.clone()),
        };
        let method = method.to_lowercase().replace('_', "-");
        Some(Self { file, method, said })
    }

    /// A value, by the keys that lead to it.
    pub(super) fn get(&self, path: &[&str]) -> Option<Value> {
        let (last, before) = path.split_last()?;
        let mut at = self.said.clone();
        for key in before {
            at = map(&at, key)?;
        }
        at.get(last).filter(|value| *value != Value::Null)
    }

    /// A text in small letters.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        Some(self.get(&[key])?.as_str()?.to_lowercase())
    }

    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        self.get(&[key])?.as_bool()
    }

    /// A number from 1 on; those below mean that there is none.
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.get(&[key])?.as_u64().filter(|&number| number > 0)
    }

    /// The numbers of a list.
    pub(super) fn numbers(&self, key: &str) -> Option<Vec<u64>> {
        match self.get(&[key])? {
            Value::List(list) => list.as_u64s(),
            _ => None,
        }
    }

    pub(super) fn entries(&self) -> &Map {
        &self.said
    }

    /// Whether a module is said not to be quantized: by its name, by the beginning or the end of it, or by a pattern whose
    /// fixed parts are in it.
    pub(super) fn leaves_out(&self, module: &str) -> bool {
        let mut lists = LEFT_OUT.iter().filter_map(|key| self.get(&[key]));
        lists.any(|list| match list {
            Value::List(list) => list.iter().any(|item| {
                let pattern = item.as_str();
                pattern.is_some_and(|pattern| matches(pattern, module))
            }),
            _ => false,
        })
    }

    pub(super) fn wrong(&self, message: impl core::fmt::Display) -> Error {
        let message = format!("{}: {message}", self.file);
        Error::malformed("quantized.config", message)
    }
}

/// Whether a module is meant by a pattern: a name, a part of one between dots, one with wildcards, or a regular expression
/// that is no more than one with wildcards.
fn matches(pattern: &str, module: &str) -> bool {
    let (pattern, is_regex) = match pattern.strip_prefix("re:") {
        Some(regex) => (regex.replace(".*", "*").replace("\\.", "."), true),
        None => (pattern.to_owned(), false),
    };
    let pattern = pattern.trim_start_matches('^').trim_end_matches('$');
    let is_part = || {
        let mut found = module.match_indices(pattern);
        found.any(|(at, _)| {
            let before = module.get(..at).unwrap_or_default();
            let behind = module.get(at + pattern.len()..).unwrap_or_default();
            let is_free = |rest: &str, c: Option<char>| rest.is_empty() || c == Some('.');
            is_free(before, before.chars().next_back()) && is_free(behind, behind.chars().next())
        })
    };
    if pattern.contains('*') || is_regex {
        globbed(pattern, module, is_regex)
    } else {
        !pattern.is_empty() && is_part()
    }
}

/// Whether the parts between the stars follow each other; what a regular expression does not say may follow.
fn globbed(pattern: &str, text: &str, is_prefix: bool) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty() || is_prefix;
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last) || (is_prefix && rest.contains(last))
}

fn read(file: &ConfigFile) -> Result<Option<Map>> {
    if file.bytes.len() as u64 > LONGEST {
        let message = format!("it has {} bytes, the limit is {LONGEST}", file.bytes.len());
        return Err(Error::limit("quantized.config", message));
    }
    let mut json = Json::new(&file.bytes, 0, MAX_DEPTH, &RULES)?;
    // Of a repeated key the last counts, as in Python.
    let value = json.value(&mut |_, _| Ok(()))?;
    json.end()?;
    Ok(match value {
        Value::Map(map) => Some(map),
        _ => None,
    })
}

fn map(of: &Map, key: &str) -> Option<Map> {
    match of.get(key)? {
        Value::Map(map) => Some(map),
        _ => None,
    }
}

/// What the configuration of a model says.
fn in_config(said: &Map) -> Option<(String, Map)> {
    let nested = || {
        ["text_config", "llm_config", "thinker_config"]
            .iter()
            .find_map(|key| map(&map(said, key)?, "quantization_config"))
    };
    let config = map(said, "quantization_config")
        .or_else(|| map(said, "compression_config"))
        .or_else(nested);
    if let Some(config) = &config
        && let Some(method) = method_of(config)
    {
        return Some((method, config.clone()));
    }
    // MLX says it twice, and has no method.
    let mlx = map(said, "quantization");
    if let Some(config) = mlx.filter(|config| config.get("bits").is_some()) {
        return Some(("mlx".into(), config));
    }
    let config = config?;
    let has = |key: &str| config.get(key).is_some();
    let method = if has("bits") && (has("desc_act") || has("sym") || has("checkpoint_format")) {
        "gptq"
    } else {
        // A configuration of something that is not known is not passed over.
        "unnamed"
    };
    Some((method.into(), config))
}

/// The method that a configuration names, or shows by keys that no other has.
fn method_of(config: &Map) -> Option<String> {
    let has = |key: &str| config.get(key).is_some();
    if let Some(method) = config.get("quant_method") {
        return method.as_str().map(ToOwned::to_owned);
    }
    let is_set = |key: &str| config.get(key).and_then(|value| value.as_bool()) == Some(true);
    if is_set("load_in_4bit") || is_set("load_in_8bit") {
        Some("bitsandbytes".into())
    } else if has("config_groups") {
        Some("compressed-tensors".into())
    } else if has("w_bit") || has("q_group_size") {
        Some("awq".into())
    } else if has("quant_algo") {
        Some("modelopt".into())
    } else {
        None
    }
}

/// A method that nobody here knows.
pub(super) fn unknown(config: &Config) -> Error {
    let message = format!(
        "{} says that the weights are quantized by {}, which tenfold does not know",
        config.file,
        Quoted(&config.method)
    );
    Error::unsupported("quantized.scheme", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(name: &'static str, text: &str) -> Result<Option<Config>> {
        let bytes = Bytes::from(text.to_owned());
        Config::find(&[ConfigFile { name, bytes }])
    }

    #[test]
    fn methods_are_named_or_shown_by_their_keys() {
        let method = |name, text| config(name, text).unwrap().map(|config| config.method);
        for (text, expected) in [
            (
                r#"{"quantization_config": {"quant_method": "GPTQ"}}"#,
                "gptq",
            ),
            (
                r#"{"quantization_config": {"bits": 4}, "quantization": {"bits": 4, "group_size": 64}}"#,
                "mlx",
            ),
            (
                r#"{"quantization_config": {"load_in_4bit": true}}"#,
                "bitsandbytes",
            ),
            (
                r#"{"text_config": {"quantization_config": {"quant_method": "fbgemm_fp8"}}}"#,
                "fbgemm-fp8",
            ),
            (
                r#"{"quantization_config": {"config_groups": {}}}"#,
                "compressed-tensors",
            ),
            (
                r#"{"quantization_config": {"bits": 4, "desc_act": false}}"#,
                "gptq",
            ),
            (r#"{"quantization_config": {"x": 4}}"#, "unnamed"),
        ] {
            assert_eq!(
                method("config.json", text).as_deref(),
                Some(expected),
                "{text}"
            );
        }
        assert_eq!(
            method("config.json", r#"{"quantization_config": null}"#),
            None
        );
        assert_eq!(method("config.json", "[]"), None);
        assert_eq!(
            method("quantize_config.json", r#"{"bits": 4}"#).as_deref(),
            Some("gptq")
        );
        assert_eq!(
            method("quant_config.json", r#"{"w_bit": 4}"#).as_deref(),
            Some("awq")
        );
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        let error = config("config.json", "{\"a\": 1,,}").unwrap_err();
        assert_eq!(error.rule(), "quantized.config");
        assert!(error.range().is_some());
        let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
        assert_eq!(
            config("config.json", &deep).unwrap_err().rule(),
            "quantized.config"
        );
    }

    #[test]
    fn modules_are_left_out_by_name_part_and_pattern() {
        for (pattern, module, expected) in [
            ("lm_head", "lm_head", true),
            ("lm_head", "model.lm_head", true),
            ("gate", "model.mlp.gate_proj", false),
            ("mlp.gate", "model.layers.0.mlp.gate", true),
            (
                "model.layers.*.self_attn",
                "model.layers.12.self_attn",
                true,
            ),
            ("re:.*lm_head", "model.lm_head", true),
            ("re:.*router$", "model.layers.0.mlp.up_proj", false),
            ("*gate*", "model.mlp.gate_proj", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, module), expected, "{pattern} {module}");
        }
    }
}
