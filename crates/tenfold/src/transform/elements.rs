//! What is done to every element by itself: byte order, casts, true and false as 1 and 0.

use crate::error::{Error, Result};
use crate::model::{DType, Endian, Lanes, Scalar};
use crate::prelude::*;
use crate::transform::{cast, endian, overflow};

/// A change of every number by itself.
pub(crate) struct ElementMap {
    /// Bytes of a stored number and of a wanted one; 1 and 1 when nothing changes.
    from_width: usize,
    to_width: usize,
    steps: Vec<Step>,
}

enum Step {
    /// Any byte but 0 is true, and true is 1.
    Bool,
    Cast(Scalar, Scalar),
    /// Before a cast by the stored width, after it by the wanted one.
    Swap(usize),
}

impl ElementMap {
    /// From numbers as stored to numbers as wanted. A wanted bool is always 0 or 1.
    pub(crate) fn new(
        from: DType,
        from_endian: Endian,
        to: DType,
        to_endian: Endian,
    ) -> Result<Self> {
        if from == to {
            let mut map = Self::identity();
            if matches!(from, DType::Number(Scalar::Bool, _)) {
                map.steps.push(Step::Bool);
            } else if from_endian != to_endian && from.swap_width() > 1 {
                map.from_width = from.swap_width();
                map.to_width = map.from_width;
                map.steps.push(Step::Swap(map.from_width));
            }
            return Ok(map);
        }
        let (from_scalar, to_scalar) = match (from, to) {
            (DType::Number(a, from_lanes), DType::Number(b, to_lanes))
                if from_lanes == to_lanes =>
            {
                (a, b)
            }
            _ => {
                return Err(Error::unsupported(
                    "cast",
                    format!("{from} cannot be turned into {to}"),
                ));
            }
        };
        cast::check(from_scalar, to_scalar)?;
        let mut map = Self {
            from_width: from.swap_width(),
            to_width: to.swap_width(),
            steps: Vec::new(),
        };
        if from_endian == Endian::Big && map.from_width > 1 {
            map.steps.push(Step::Swap(map.from_width));
        }
        map.steps.push(Step::Cast(from_scalar, to_scalar));
        if to_endian == Endian::Big && map.to_width > 1 {
            map.steps.push(Step::Swap(map.to_width));
        }
        Ok(map)
    }

    pub(crate) fn identity() -> Self {
        Self {
            from_width: 1,
            to_width: 1,
            steps: Vec::new(),
        }
    }

    pub(crate) fn is_identity(&self) -> bool {
        self.steps.is_empty()
    }

    /// Wanted bytes for a whole stored length.
    pub(crate) fn output_len(&self, stored: u64) -> Result<u64> {
        let numbers = stored / self.from_width as u64;
        numbers
            .checked_mul(self.to_width as u64)
            .ok_or_else(|| overflow("the size after the cast"))
    }

    /// Wanted bytes for stored ones that are in memory or are a place inside of something that is.
    pub(crate) fn scale(&self, stored: u64) -> u64 {
        (stored / self.from_width as u64).saturating_mul(self.to_width as u64)
    }

    /// Stored bytes for wanted ones.
    pub(crate) fn unscale(&self, wanted: u64) -> u64 {
        (wanted / self.to_width as u64).saturating_mul(self.from_width as u64)
    }

    /// Turns stored numbers into wanted ones.
    pub(crate) fn apply(&self, bytes: &mut Vec<u8>) -> Result<()> {
        for step in &self.steps {
            match *step {
                Step::Bool => bytes
                    .iter_mut()
                    .for_each(|byte| *byte = u8::from(*byte != 0)),
                Step::Cast(from, to) => *bytes = cast::cast(from, to, bytes)?,
                Step::Swap(width) => endian::swap(bytes, width),
            }
        }
        Ok(())
    }
}

/// What is wrong with the content of decoded bytes of a type: bytes that are no value of it.
///
/// `last` says that these bytes end the part, and `elements` how many elements the whole part has.
pub(crate) fn check_content(
    dtype: DType,
    bytes: &[u8],
    last: bool,
    elements: u64,
) -> Option<String> {
    match dtype {
        DType::Number(Scalar::Bool, _) => {
            let bad = bytes.iter().find(|&&byte| byte > 1)?;
            Some(format!(
                "a bool is stored as byte {bad}, 0 and 1 are its values"
            ))
        }
        DType::Number(scalar, Lanes::Real) if scalar.bits() < 8 && last => {
            let used = elements % 8 * u64::from(scalar.bits()) % 8;
            let byte = *bytes.last()?;
            let unused = if used == 0 { 0 } else { byte >> used };
            (unused != 0)
                .then(|| format!("the unused bits of the last byte {byte:#04x} are not zero"))
        }
        _ => None,
    }
}
