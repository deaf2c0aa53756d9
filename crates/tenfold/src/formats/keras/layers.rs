//! What layers are called in the model, and which of them are quantized to 4 bits.

use super::codec::{MOST_DEPTH, RULES};
use crate::error::{Error, Result};
use crate::format::{Context, OptionSpec};
use crate::prelude::*;
use crate::wire::hdf5::Content;
use crate::wire::json::{Json, Kind};

/// Which names tensors get.
pub(super) const NAMES: OptionSpec = OptionSpec::new(
    "names",
    "group|layer",
    "call tensors by the groups that they are stored in (the default), or put the names of their layers there",
);
/// Whether the architecture is metadata.
pub(super) const AS_METADATA: OptionSpec = OptionSpec::new(
    "config",
    "true|false",
    "also give the text of config.json, as the file's metadata \"config\"",
);

/// The group of a layer's variables.
const VARIABLES: &str = "vars";
/// Bytes of a layer's name, at most. All of its variables have it, and a longer one would be there to take memory.
const LONGEST: usize = 512;

/// Whether the names of layers are asked for.
pub(super) fn are_wanted(cx: &Context<'_>) -> Result<bool> {
    match cx.option(NAMES.key) {
        None | Some("group") => Ok(false),
        Some("layer") => Ok(true),
        Some(other) => Err(Error::argument(format!(
            "option {}={other}: expected group or layer",
            NAMES.key
        ))),
    }
}

/// The name that a variable's layer has in the model: an attribute of the group with its variables.
pub(super) fn layer<'c>(content: &'c Content, variable: &str) -> Option<&'c str> {
    let (group, _) = variable.rsplit_once('/')?;
    name_of(content, group)
}

/// What the group of a layer's variables says that the layer is called.
fn name_of<'c>(content: &'c Content, group: &str) -> Option<&'c str> {
    let name = content.group(group, "name")?.as_str()?;
    (!name.is_empty() && name.len() <= LONGEST).then_some(name)
}

/// The path of a variable with the names of layers in the place of their groups, which are called after classes.
pub(super) fn renamed(content: &Content, variable: &str) -> String {
    let mut out = String::with_capacity(variable.len());
    let mut end = 0;
    for part in variable.split('/') {
        if end > 0 {
            out.push('/');
            end += 1;
        }
        end += part.len();
        let group = variable.get(..end).unwrap_or_default();
        let known = name_of(content, &format!("{group}/{VARIABLES}"));
        out.push_str(known.unwrap_or(part));
    }
    // Many long names within each other are as bad as a longer one.
    if out.len() > variable.len() + 2 * LONGEST {
        return variable.to_owned();
    }
    out
}

/// The layers whose kernels hold two values in a byte. What is no architecture has none: it is not ours to judge.
pub(super) fn packed(config: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let walked = Json::new(config, 0, MOST_DEPTH, &RULES).and_then(|mut json| {
        walk(&mut json, None, &mut found)?;
        json.end()
    });
    if walked.is_err() {
        found.clear();
    }
    found
}

/// Looks for `"mode": "int4…"`, the policy of a layer; the layer is the innermost object around it that has variables of its
/// own to be called after, and says so before its policy.
fn walk(json: &mut Json<'_>, layer: Option<&str>, found: &mut Vec<String>) -> Result<()> {
    match json.kind()? {
        Kind::Object => {
            let mut own: Option<String> = None;
            json.object("an object")?;
            while let Some(key) = json.key()? {
                let is_text = json.kind()? == Kind::Str;
                if is_text && key == "name" {
                    own = Some(json.string("a name")?.into_owned());
                } else if is_text && key == "mode" {
                    let is_packed = json.string("a mode")?.starts_with("int4");
                    let layer = layer
                        .filter(|layer| is_packed && found.last().is_none_or(|last| last != layer));
                    found.extend(layer.map(ToOwned::to_owned));
                } else {
                    walk(json, own.as_deref().or(layer), found)?;
                }
            }
        }
        Kind::List => {
            json.list("a list")?;
            while json.item()? {
                walk(json, layer, found)?;
            }
        }
        _ => json.skip()?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_belongs_to_the_layer_around_it() {
        let config = br#"{"config": {"name": "model", "layers": [
            {"config": {"name": "a", "dtype": {"config": {"mode": "int4/128"}}}},
            {"config": {"name": "b", "dtype": {"config": {"mode": "int8"}}}},
            {"config": {"name": "c", "dtype": {"config": {"mode": "int4", "source_name": "float32"}}}}
        ]}}"#;
        assert_eq!(packed(config), ["a", "c"]);
    }

    #[test]
    fn what_is_no_architecture_has_no_layers() {
        let cut_off = br#"{"config": {"name": "a", "dtype": {"mode": "int4"}"#;
        for text in [&b""[..], b"[]", b"\xff", cut_off] {
            assert!(packed(text).is_empty());
        }
    }
}
