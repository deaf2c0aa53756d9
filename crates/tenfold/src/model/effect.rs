//! How bad the loss of a conversion is.

use core::fmt;

/// How bad a [`Loss`](crate::format::Loss) is.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Effect {
    /// The same values in another layout or byte order. Always allowed.
    Rearranged,
    /// Metadata in another form, or what readers find under another name.
    Changed,
    /// Metadata that is not carried over, or what a missing file would hold.
    Dropped,
    /// A tensor that cannot be held. Never allowed.
    Impossible,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Effect::Rearranged => "rearranged",
            Effect::Changed => "changed",
            Effect::Dropped => "dropped",
            Effect::Impossible => "impossible",
        })
    }
}
