//! Fields of the objects of a manifest, known or not.

use crate::error::{Error, Result};
use crate::model::{Map, Packer, Shape};
use crate::prelude::*;
use crate::wire::json::{Json, Repeated};

/// Fields that are not known. Of one that is repeated the last value counts.
#[derive(Default)]
pub(super) struct Others {
    packer: Option<Packer>,
    places: Vec<u64>,
}

impl Others {
    pub(super) fn read(
        &mut self,
        key: &str,
        json: &mut Json<'_>,
        repeated: Repeated<'_>,
    ) -> Result<()> {
        self.places.push(json.key_at());
        let packer = self.packer.get_or_insert_with(Packer::map);
        packer.key(key);
        json.pack(packer, repeated)
    }

    pub(super) fn finish(self, repeated: Repeated<'_>) -> Result<Map> {
        let Some(mut packer) = self.packer else {
            return Ok(Map::new());
        };
        let places = &self.places;
        packer.last_wins(&mut |key, place| {
            repeated(key, places.get(place).copied().unwrap_or_default())
        })?;
        Ok(packer.into_map())
    }
}

/// The sizes of a shape, however many: magnetron has at most 16, the manifest no limit.
pub(super) fn sizes(json: &mut Json<'_>) -> Result<Shape> {
    let mut sizes = Shape::new();
    json.list("shape")?;
    while json.item()? {
        let at = json.at();
        let digits = json.whole("a size of the shape")?;
        if digits.starts_with('-') && digits != "-0" {
            let message = format!("negative size {digits}");
            return Err(Error::malformed("mag.shape", message).at(at..at + 1));
        }
        let size = digits.trim_start_matches('-').parse().map_err(|cause| {
            let message = format!("a size of {digits} does not fit 64 bits");
            Error::malformed("mag.overflow", message)
                .at(at..at + 1)
                .because(cause)
        })?;
        sizes.push(size);
    }
    Ok(sizes)
}

/// A number of 64 bits; `rule` is for those that are not.
pub(super) fn number(json: &mut Json<'_>, field: &'static str, rule: &'static str) -> Result<u64> {
    let at = json.at();
    let digits = json.whole(field)?;
    digits.parse().map_err(|cause| {
        let message = format!("{field} is {digits}, which is not an unsigned 64-bit number");
        Error::malformed(rule, message)
            .at(at..at + 1)
            .because(cause)
    })
}

/// Which of the known keys of an object have been seen.
pub(super) struct Fields {
    known: &'static [&'static str],
    seen: u8,
}

impl Fields {
    pub(super) fn new(known: &'static [&'static str]) -> Self {
        Self { known, seen: 0 }
    }

    /// The key, if it is known; refused when it comes again: readers would differ about which one counts.
    pub(super) fn note(&mut self, json: &Json<'_>, key: &str) -> Result<Option<&'static str>> {
        let Some(place) = self.known.iter().position(|&known| known == key) else {
            return Ok(None);
        };
        let bit = 1 << place;
        if self.seen & bit != 0 {
            let at = json.key_at();
            let message = format!("the manifest has {key:?} twice");
            return Err(Error::malformed("mag.duplicate", message).at(at..at + 1));
        }
        self.seen |= bit;
        Ok(self.known.get(place).copied())
    }

    pub(super) fn complete(&self, what: &str) -> Result<()> {
        for (place, field) in self.known.iter().enumerate() {
            if self.seen & (1 << place) == 0 {
                return Err(Error::malformed(
                    "mag.manifest",
                    format!("{what} lacks {field:?}"),
                ));
            }
        }
        Ok(())
    }
}
