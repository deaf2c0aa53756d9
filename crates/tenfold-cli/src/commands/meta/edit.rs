//! `meta set`, `meta unset` and `meta import`: a file with other metadata.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use tenfold::documents::Written;
use tenfold::format::{Entry, Fit, Registry};
use tenfold::model::{Metadata, Value};
use tenfold::ops::{self, Edit};
use tenfold::{Archive, Error};

use crate::args::{MetaEdit, MetaImport, MetaSet, MetaUnset, no_output};
use crate::commands::write::{Inputs, Places, Request, as_directory, target};
use crate::commands::{Session, no_metadata, tensor_named};
use crate::failure::{Exit, Failure, Result};
use crate::json::short_value;
use crate::metadata::{
    VALUE_TYPES, parse_value, parse_value_like, read_metadata, value_like, value_type,
};
use crate::output::{Out, say_first};

pub(super) fn set(args: &MetaSet, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    rewrite(&args.file, &args.edit, session, out, |context| {
        let values = args.values.iter();
        let edits = values.map(|(key, text)| {
            let value = context.value(key, text, args.kind.as_deref())?;
            Ok(Edit::Set(key.clone(), value))
        });
        edits.collect()
    })
}

pub(super) fn unset(args: &MetaUnset, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    rewrite(&args.file, &args.edit, session, out, |context| {
        let unset = |key: &String| match context.before.get(key) {
            Some(_) => Ok(Edit::Unset(key.clone())),
            None => {
                let message = no_metadata(context.file, context.before, key);
                Err(Failure::not_found(context.file, message))
            }
        };
        args.keys.iter().map(unset).collect()
    })
}

pub(super) fn import(args: &MetaImport, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    let path = &args.document;
    let text = read(path)?;
    let new = read_metadata(&text)
        .map_err(|error| Failure::Message(format!("{}: {}", path.display(), error.message())))?;
    rewrite(&args.file, &args.edit, session, out, |context| {
        let mut edits = Vec::new();
        if args.replace {
            let gone = context.before.iter().map(|(key, _)| key);
            let gone = gone.filter(|key| new.get(key).is_none() && !context.before.is_fact(key));
            edits.extend(gone.map(|key| Edit::Unset(key.to_owned())));
        }
        for (key, value) in new.iter() {
            let value = match context.before.get(key) {
                Some(before) => {
                    value_like(before, value.clone()).map_err(|error| context.about(key, &error))?
                }
                None => value.clone(),
            };
            edits.push(Edit::Set(key.to_owned(), value));
        }
        Ok(edits)
    })
}

/// The text of a file, or of standard input.
fn read(path: &Path) -> Result<String> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).map(drop)
    } else {
        std::fs::read_to_string(path).map(|read| text = read)
    };
    match read {
        Ok(()) => Ok(text),
        Err(cause) => Err(Failure::Message(format!(
            "cannot read {}: {cause}",
            path.display()
        ))),
    }
}

/// Writes the file again with the edits that `edits` makes of what it says now.
fn rewrite(
    file: &PathBuf,
    edit: &MetaEdit,
    session: &Session<'_>,
    out: &mut Out<'_>,
    edits: impl FnOnce(&Context<'_>) -> Result<Vec<Edit>>,
) -> Result<Exit> {
    let inputs = std::slice::from_ref(file);
    let output = match &edit.output {
        _ if edit.in_place => file.clone(),
        Some(output) => as_directory(inputs, output),
        None => return Err(no_output("meta")),
    };
    let request = Request {
        brings_along: !edit.along.weights_only,
        check: edit.checking.or(false),
        may_replace: true,
        in_place: edit.in_place,
        keeps_content: true,
        ..Request::new(
            "meta-edit",
            Places {
                inputs,
                opening: &edit.opening,
                output: &output,
            },
            &edit.writing,
            session,
        )
    };
    request.check_output()?;
    let inputs = Inputs::open(&request)?;
    let archive = inputs.joined()?;
    let registry = Registry::standard();
    let target = target(&request, Some(&archive), &registry)?;
    let about =
        |error: &Error| Failure::Message(format!("{}: {}", file.display(), error.message()));
    let tensor = edit.tensor.as_deref();
    let before = match tensor {
        None => archive.metadata(),
        Some(name) => {
            tensor_named(&archive, file, name)?;
            let mut tensors = archive.manifest().tensors.iter();
            match tensors.find(|info| info.name == name) {
                Some(info) => &info.metadata,
                None => archive.metadata(),
            }
        }
    };
    let context = Context {
        file,
        before,
        is_typed: is_typed(target, &archive, edit),
    };
    let edits = edits(&context)?;
    let edited = ops::edit_metadata(&archive, tensor, &edits).map_err(|error| about(&error))?;
    if !edit.writing.quiet {
        say_edits(&edits, before);
    }
    let request = request.keeping_files(&inputs, target);
    let options = request.options(target)?;
    let conversion = request.prepare_rewrite(&edited, target, &options)?;
    let extra = Written {
        changed: Some(edits.iter().map(key).collect()),
        ..Written::default()
    };
    request.finish(target, conversion, &inputs, extra, out)
}

fn key(edit: &Edit) -> &str {
    match edit {
        Edit::Set(key, _) | Edit::Unset(key) => key,
        _ => "",
    }
}

/// Whether the target holds numbers as numbers.
fn is_typed(target: &Entry, archive: &Archive, edit: &MetaEdit) -> bool {
    let version = edit.writing.version.as_deref().unwrap_or(archive.version());
    let profile = target.spec.profile(version).or(target.spec.writes.first());
    profile.is_some_and(|profile| {
        let fit = match edit.tensor {
            None => profile.can.file_value,
            Some(_) => profile.can.tensor_value,
        };
        fit("key", &Value::I64(1)) == Fit::Exact
    })
}

/// What a file says before it is edited.
struct Context<'c> {
    file: &'c Path,
    before: &'c Metadata,
    is_typed: bool,
}

impl Context<'_> {
    fn about(&self, key: &str, error: &Error) -> Failure {
        let file = self.file.display();
        Failure::Message(format!("{file}: metadata {key:?}: {}", error.message()))
    }

    /// The value that a text stands for: of the type in front of it, of `--type`, of what the key has now, else text.
    /// What could be a number or text in a file that has both is not guessed.
    fn value(&self, key: &str, text: &str, kind: Option<&str>) -> Result<Value> {
        let about = |error| self.about(key, &error);
        if let Some((kind, rest)) = text.split_once(':').filter(|(kind, _)| is_type(kind)) {
            return parse_value(kind, rest).map_err(about);
        }
        if let Some((kind, _)) = text
            .split_once(':')
            .filter(|(word, _)| looks_like_type(word))
        {
            let file = self.file.display();
            return Err(Failure::Message(format!(
                "{file}: metadata {key:?}: there is no type {kind}; for text write {key}=string:{text}"
            )));
        }
        if let Some(kind) = kind {
            return parse_value(kind, text).map_err(about);
        }
        if let Some(before) = self.before.get(key) {
            return parse_value_like(before, text).map_err(about);
        }
        let number = text.parse::<f64>().is_ok() || matches!(text, "true" | "false");
        if self.is_typed && number {
            let kind = match (text.parse::<i64>(), text.parse::<f64>()) {
                (Ok(_), _) => "u32",
                (_, Ok(_)) => "f32",
                _ => "bool",
            };
            let file = self.file.display();
            return Err(Failure::Message(format!(
                "{file}: metadata {key:?} is new; is it text ({key}=string:{text}) or not ({key}={kind}:{text})?"
            )));
        }
        Ok(Value::Str(text.to_owned()))
    }
}

/// Whether a word is the name of a type, or of a list of one.
fn is_type(word: &str) -> bool {
    let word = word.strip_suffix("[]").unwrap_or(word);
    matches!(word, "str" | "int") || VALUE_TYPES.iter().any(|(name, _)| *name == word)
}

/// Whether a word could be meant as the name of a type: `u31`, `f8`.
fn looks_like_type(word: &str) -> bool {
    let bits = word.strip_prefix(['u', 'i', 'f']).unwrap_or_default();
    !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit())
}

fn say_edits(edits: &[Edit], before: &Metadata) {
    say_first(edits.iter().map(|edit| {
        let was = |key: &str| match before.get(key) {
            Some(value) => format!(", was {} ({})", short_value(value), value_type(value)),
            None => String::new(),
        };
        match edit {
            Edit::Set(key, value) => {
                let (new, kind) = (short_value(value), value_type(value));
                format!("setting {key:?} to {new} ({kind}){}", was(key))
            }
            edit => format!("removing {:?}{}", key(edit), was(key(edit))),
        }
    }));
}
