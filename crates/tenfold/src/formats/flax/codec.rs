//! Between a file and the model.

use super::walk::{RULES, Walk};
#[cfg(feature = "write")]
use super::write;
use super::{SPEC, VERSION};
use crate::error::{Error, ErrorKind, Result};
#[cfg(feature = "write")]
use crate::format::{Arranged, Plan, PlanOptions};
use crate::format::{Confidence, Context, Format, Head, Spec, diagnose};
use crate::model::Manifest;
use crate::wire::msgpack::{Decoder, Item};

/// Objects that are looked at to recognize a file.
const LOOKED_AT: usize = 64;

/// Reads and writes Flax's files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flax;

impl Format for Flax {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn detect(&self, head: &Head<'_>) -> Result<Confidence> {
        let is_object = matches!(
            head.first(),
            [0x80..=0x9f | 0xc7..=0xc9 | 0xd4..=0xd8 | 0xdc..=0xdf, ..]
        );
        if is_object && begins_with_array(head)? {
            return Ok(Confidence::Likely);
        }
        // A damaged one, or one without arrays: describing it says so.
        let is_named = head.name().is_some_and(|name| name.ends_with(".msgpack"));
        Ok(if is_named && diagnose::instead(head).is_none() {
            Confidence::Possible
        } else {
            Confidence::No
        })
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        let mut walk = Walk::new(cx)?;
        walk.file(&cx.tensor_name())?;
        let mut manifest = Manifest::new(VERSION);
        manifest.metadata = walk.metadata;
        manifest.tensors = walk.tensors.into();
        manifest.region_of_rest(cx.source().len(), "header");
        Ok(manifest)
    }

    #[cfg(feature = "write")]
    fn arrange(&self, what: &Manifest, _: &PlanOptions) -> Result<Option<Arranged>> {
        Ok(Some(write::arrange(what)))
    }

    #[cfg(feature = "write")]
    fn plan(&self, what: &Manifest, options: &PlanOptions) -> Result<Plan> {
        write::plan(what, options)
    }
}

/// Whether the first leaf that is met is an array, or few values are in front of it.
fn begins_with_array(head: &Head<'_>) -> Result<bool> {
    let end = (head.first().len() as u64).min(crate::io::Source::len(head));
    let mut d = Decoder::over(head, 0..end, RULES);
    let mut look = || -> Result<bool> {
        for _ in 0..LOOKED_AT {
            match d.item("an object")? {
                Item::Ext { kind: 1 | 3, .. } => return Ok(d.item("an array")? == Item::Array(3)),
                Item::Text(len) | Item::Bin(len) | Item::Ext { kind: 2, len } => {
                    d.skip(len, "bytes")?;
                }
                Item::Ext { .. } => return Ok(false),
                _ => {}
            }
        }
        Ok(false)
    };
    match look() {
        Err(error) if error.kind() == ErrorKind::Io => Err(error),
        Err(_) => Ok(false),
        Ok(found) => Ok(found),
    }
}

/// What cannot be: the tree has every name.
#[cfg(feature = "write")]
pub(super) fn missing() -> Error {
    Error::argument("a value that is not among what is to be written")
}
