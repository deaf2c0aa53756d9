//! What went wrong, and what is lost.

use core::ops::Range;

use serde::Serialize;

use super::{Words, text};
use crate::error::Error;
use crate::format::{Effect, Loss};
use crate::prelude::*;

/// `tenfold.error/1`: the document that stands in the place of a result.
#[derive(Debug, Serialize)]
pub struct ErrorDocument<'a> {
    schema: &'static str,
    file: Option<&'a str>,
    error: &'a str,
    kind: Option<&'static str>,
    rule: Option<&'a str>,
    tensor: Option<&'a str>,
    range: Option<[u64; 2]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    losses: Vec<LossDocument<'a>>,
}

impl<'a> ErrorDocument<'a> {
    /// Says in the words of `message` what went wrong with a file: `error`, where it is one of the library, and `losses`,
    /// where those are why.
    pub fn new(
        file: Option<&'a str>,
        message: &'a str,
        error: Option<&'a Error>,
        losses: &'a [Loss],
        words: Words,
    ) -> Self {
        let breaks_a_rule = error.filter(|error| !error.is_plain());
        Self {
            schema: "tenfold.error/1",
            file,
            error: message,
            kind: error.map(|error| error.kind().name()),
            rule: breaks_a_rule.map(Error::rule),
            tensor: error.and_then(Error::tensor),
            range: error.and_then(Error::range).map(|(_, range)| pair(&range)),
            losses: (losses.iter())
                .map(|loss| LossDocument::new(loss, words))
                .collect(),
        }
    }
}

/// From and to, as a list of both.
pub(super) fn pair(range: &Range<u64>) -> [u64; 2] {
    [range.start, range.end]
}

/// Something that is not carried over.
#[derive(Debug, Serialize)]
pub struct LossDocument<'a> {
    tensor: Option<&'a str>,
    what: String,
    why: String,
    #[serde(serialize_with = "text")]
    effect: Effect,
}

impl<'a> LossDocument<'a> {
    /// A loss with its parts as texts.
    pub fn new(loss: &'a Loss, words: Words) -> Self {
        Self {
            tensor: loss.tensor.as_deref(),
            what: loss.what.to_string(),
            why: format!("{}{}", loss.why, words(&loss.hints)),
            effect: loss.effect,
        }
    }
}
