//! Which elements of a tensor are wanted: indices and ranges as Python and NumPy have them.

mod selection;

use core::fmt;

pub(crate) use selection::{Axis, Selection, Steps};

use crate::error::{Error, Result};
use crate::prelude::*;

/// What is taken along one dimension.
///
/// ```
/// use tenfold::model::Slice;
/// let slices = Slice::parse("0:4, ..., -1")?;
/// assert_eq!(slices, [Slice::range(0, 4), Slice::All, Slice::Index(-1)]);
/// # Ok::<(), tenfold::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Slice {
    /// `...`: everything along all dimensions that the other slices leave. At most once.
    All,
    /// `3`: one index, counted from the end where it is negative; the dimension is gone.
    Index(i64),
    /// `start:stop:step`: from `start` on, before `stop`; negative numbers count from the end, what is outside is left out.
    Range {
        /// The first index; the first or the last one by default.
        start: Option<i64>,
        /// The index that ends it and is not part of it; after the last or before the first one by default.
        stop: Option<i64>,
        /// How far to the next one, backwards where it is negative; never 0.
        step: i64,
    },
}

impl Slice {
    /// `:`, the whole dimension.
    pub const FULL: Slice = Slice::Range {
        start: None,
        stop: None,
        step: 1,
    };

    /// `start:stop`.
    pub fn range(start: i64, stop: i64) -> Self {
        Slice::Range {
            start: Some(start),
            stop: Some(stop),
            step: 1,
        }
    }

    /// Reads `0:4, ..., -1`, with or without brackets around it.
    pub fn parse(text: &str) -> Result<Vec<Self>> {
        let inner = text.trim();
        let inner = inner
            .strip_prefix('[')
            .and_then(|inner| inner.strip_suffix(']'))
            .unwrap_or(inner);
        let mut items: Vec<&str> = inner.split(',').map(str::trim).collect();
        // Nothing at all, or a comma after the last one.
        if items.last() == Some(&"") {
            items.pop();
        }
        items.into_iter().map(|item| one(text, item)).collect()
    }
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |number: &Option<i64>| number.map_or(String::new(), |n| n.to_string());
        match self {
            Slice::All => f.write_str("..."),
            Slice::Index(index) => write!(f, "{index}"),
            Slice::Range { start, stop, step } => {
                write!(f, "{}:{}", number(start), number(stop))?;
                match step {
                    1 => Ok(()),
                    step => write!(f, ":{step}"),
                }
            }
        }
    }
}

fn one(text: &str, item: &str) -> Result<Slice> {
    let number = |digits: &str| {
        digits.parse::<i64>().map_err(|cause| {
            let message = format!(
                "slice {text:?}: {item:?}: expected an index or a range, such as 3, -1, 2:8, ::2, : or ..."
            );
            Error::argument(message).because(cause)
        })
    };
    let optional = |digits: &str| match digits.trim() {
        "" => Ok(None),
        digits => number(digits).map(Some),
    };
    if item == "..." {
        return Ok(Slice::All);
    }
    let mut parts = item.split(':');
    let first = parts.next().unwrap_or_default();
    let (stop, step, more) = (parts.next(), parts.next(), parts.next());
    match (stop, more) {
        (None, _) => Ok(Slice::Index(number(first)?)),
        // One number too many: what stands there is no number either.
        (Some(_), Some(_)) => number(item).map(Slice::Index),
        (Some(stop), None) => {
            let step = optional(step.unwrap_or_default())?.unwrap_or(1);
            if step == 0 {
                let message = format!("slice {text:?}: {item:?} has a step of 0");
                return Err(Error::argument(message));
            }
            Ok(Slice::Range {
                start: optional(first)?,
                stop: optional(stop)?,
                step,
            })
        }
    }
}

#[cfg(test)]
mod tests;
