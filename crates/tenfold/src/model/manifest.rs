//! A whole file, described.

use crate::model::{Checksum, Metadata, SourceId, Tensors};
use crate::prelude::*;

/// What a file holds: the result of reading its header, and what a writer is given.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Manifest {
    /// Which of the format's versions: `spec-1`, `0.1`.
    pub version: String,
    /// What the file says about itself.
    pub metadata: Metadata,
    /// The tensors in file order.
    pub tensors: Tensors,
    /// The bytes that are not tensor data.
    pub regions: Vec<Region>,
    /// Ranges whose checksum is checked by a verification, not by opening.
    pub sealed: Vec<SealedRange>,
    /// Parts of the file that tenfold does not understand, copied unread into a new file of the same format.
    pub kept: Vec<Kept>,
    /// Whether bytes that are not a value of their type (a bool over 1, set padding bits) are errors in this version of
    /// the format, not only deviations.
    pub strict_content: bool,
    /// What the metadata says about the types of the tensors is about those that they are given, and not outdated.
    pub(crate) knows_types: bool,
}

impl Manifest {
    /// An empty description of a file of this version.
    pub fn new(version: impl Into<String>) -> Self {
        Self {
            version: version.into(),
            ..Self::default()
        }
    }

    /// Notes bytes of the main file that are not tensor data.
    pub fn region(&mut self, range: Range<u64>, label: &'static str) {
        let region = Region {
            source: SourceId::MAIN,
            range,
            label,
        };
        push_tight(&mut self.regions, region);
    }

    /// Notes that everything of the main file, which has so many bytes, that is not tensor data is one thing.
    pub(crate) fn region_of_rest(&mut self, len: u64, label: &'static str) {
        let parts = self.tensors.iter().flat_map(|tensor| &tensor.parts);
        let places = parts.flat_map(|part| part.payload.places());
        let mut places: Vec<Range<u64>> = places
            .filter(|(source, range)| *source == SourceId::MAIN && !range.is_empty())
            .map(|(_, range)| range)
            .collect();
        places.sort_unstable_by_key(|range| (range.start, range.end));
        let mut at = 0;
        for place in places {
            if place.start > at {
                self.region(at..place.start, label);
            }
            at = at.max(place.end);
        }
        if at < len {
            self.region(at..len, label);
        }
    }
}

/// Bytes that are not tensor data.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Region {
    /// The file.
    pub source: SourceId,
    /// The bytes.
    pub range: Range<u64>,
    /// What they are: `header`, `index`, `footer`.
    pub label: &'static str,
}

impl Region {
    /// Bytes of a file, and what they are.
    pub fn new(source: SourceId, range: Range<u64>, label: &'static str) -> Self {
        Self {
            source,
            range,
            label,
        }
    }
}

/// A range of a file with a checksum of its own, such as a whole shard.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct SealedRange {
    /// The file.
    pub source: SourceId,
    /// The bytes.
    pub range: Range<u64>,
    /// What they hash to.
    pub checksum: Checksum,
    /// What they are, for messages.
    pub what: String,
}

impl SealedRange {
    /// Bytes of a file with their checksum, and what they are.
    pub fn new(
        source: SourceId,
        range: Range<u64>,
        checksum: Checksum,
        what: impl Into<String>,
    ) -> Self {
        Self {
            source,
            range,
            checksum,
            what: what.into(),
        }
    }
}

/// A part of a file that tenfold does not understand, and that a new file of the same format can hold as it is.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Kept {
    /// The format that it belongs to, by its id.
    pub format: &'static str,
    /// What the file calls it.
    pub name: String,
    /// The file.
    pub source: SourceId,
    /// All of its bytes.
    pub range: Range<u64>,
    /// Whether nothing is lost without it: what frames the tensors in their own format says nothing in another.
    pub is_frame: bool,
}

impl Kept {
    /// A part of a file of a format, by its id, and what the file calls it.
    pub fn new(
        format: &'static str,
        name: impl Into<String>,
        source: SourceId,
        range: Range<u64>,
    ) -> Self {
        Self {
            format,
            name: name.into(),
            source,
            range,
            is_frame: false,
        }
    }

    /// The same, as what frames the tensors and says nothing itself.
    #[must_use]
    pub fn frame(mut self, is_frame: bool) -> Self {
        self.is_frame = is_frame;
        self
    }
}
