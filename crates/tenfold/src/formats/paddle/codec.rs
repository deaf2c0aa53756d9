//! Between a pickle and the model.

use super::arrays::Strings;
use super::flatten::Walk;
use super::globals::Allowed;
#[cfg(feature = "write")]
use super::write;
use super::{PROTOCOL_4, SPEC};
use crate::error::{Error, Result};
#[cfg(feature = "write")]
use crate::format::{Arranged, Plan, PlanOptions};
use crate::format::{Confidence, Context, Format, Head, Spec, diagnose};
use crate::model::{Manifest, SourceId};
use crate::prelude::*;
use crate::wire::pickle::{self, Budget, Condensed, Place};

/// What a few bytes may take, however few they are.
const FREE: u64 = 6 << 20;

/// Reads and writes Paddle's files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paddle;

impl Format for Paddle {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn detect(&self, head: &Head<'_>) -> Result<Confidence> {
        let ending = head.name().and_then(|name| name.rsplit_once('.'));
        let is_named = ending.is_some_and(|(_, ending)| SPEC.extensions.contains(&ending));
        let is_pickle = matches!(head.first(), [0x80, 2..=5, ..]);
        // Nothing but the name tells it from other pickles.
        Ok(match (is_named, is_pickle) {
            (true, true) => Confidence::Likely,
            (true, false) if diagnose::instead(head).is_none() => Confidence::Possible,
            _ => Confidence::No,
        })
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        let source = cx.source();
        let version = match source.read(0..source.len().min(2))?[..] {
            [0x80, 2] => "pickle protocol 2",
            [0x80, 3] => "pickle protocol 3",
            [0x80, 4] => PROTOCOL_4,
            [0x80, protocol] => {
                let message = format!("a pickle of protocol {protocol}; Paddle writes 2, 3 and 4");
                return Err(Error::unsupported("paddle.protocol", message).at(1..2));
            }
            _ => {
                let message = "it does not begin like a pickle of protocol 2 or later";
                return Err(Error::malformed("paddle.pickle", message).at(0..source.len().min(2)));
            }
        };
        let condensed = Condensed::read(source, cx.limits().header_bytes)?;
        let mut manifest = Manifest::new(version);
        describe(cx, &condensed, &mut manifest)?;
        let (end, len) = (condensed.end, source.len());
        if end < len {
            let message = format!(
                "{} bytes follow the pickle, which Paddle ignores",
                len - end
            );
            cx.warn("paddle.trailing", end..len, message)?;
        }
        manifest.region_of_rest(len, "pickle");
        Ok(manifest)
    }

    #[cfg(feature = "write")]
    fn arrange(&self, what: &Manifest, _: &PlanOptions) -> Result<Option<Arranged>> {
        Ok(write::arrange(what))
    }

    #[cfg(feature = "write")]
    fn plan(&self, what: &Manifest, options: &PlanOptions) -> Result<Plan> {
        write::plan(what, options)
    }
}

fn describe(cx: &Context<'_>, condensed: &Condensed, manifest: &mut Manifest) -> Result<()> {
    let source = cx.open(SourceId::MAIN);
    let source = source.ok_or_else(|| Error::argument("a file that is gone"))?;
    let len = condensed.program.len() as u64;
    // Lists that grow take up to twice as much for a moment.
    let mut budget = Budget::new(FREE.saturating_add(len.saturating_mul(13) / 2));
    let in_file = |error: Error| match error.range() {
        Some((_, range)) => error.at(condensed.place(range)),
        None => error,
    };
    let tree = pickle::run(&condensed.program, &Place::At(0), &mut Allowed, &mut budget);
    let tree = tree.map_err(in_file)?;
    let strings = Strings {
        source: &source,
        condensed,
        memory: cx.limits().tensor_memory,
        rank: cx.limits().rank,
    };
    let mut walk = Walk::new(strings, cx.limits(), &mut budget);
    let root = tree.root()?;
    walk.root(&root, &cx.tensor_name())?;
    manifest.metadata = walk.metadata;
    manifest.tensors = walk.tensors.into();
    Ok(())
}
