//! What is done to every element by itself: byte order, casts, true and false as 1 and 0.

use crate::error::{Error, Result};
use crate::model::{BlockSpec, DType, Endian, Lanes, Scalar};
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
    /// The numbers in blocks get the other byte order.
    Blocks(&'static BlockSpec),
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
            } else if from_endian == to_endian {
                return Ok(map);
            } else if let DType::Block(spec) = from {
                map.from_width = spec.bytes as usize;
                map.to_width = map.from_width;
                map.steps.push(Step::Blocks(spec));
            } else if from.swap_width() > 1 {
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

    /// Stored bytes that hold whole numbers: `least`, or the next that do.
    pub(crate) fn whole(&self, least: u64) -> u64 {
        least.next_multiple_of(self.from_width as u64)
    }

    /// Whether stored bytes hold whole numbers only.
    pub(crate) fn is_whole(&self, stored: u64) -> bool {
        stored.is_multiple_of(self.from_width as u64)
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
                Step::Blocks(spec) => spec.swap(bytes),
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

/// What is wrong with numbers that are read as bools.
pub(crate) fn check_bools(dtype: DType, bytes: &[u8]) -> Option<String> {
    let word = |bytes: &[u8]| bytes.first_chunk().map(|word| u32::from_le_bytes(*word));
    match dtype {
        DType::U32 => {
            let bad = bytes.chunks(4).filter_map(word).find(|&word| word > 1)?;
            Some(format!("a bool is stored as {bad}, 0 and 1 are its values"))
        }
        _ => None,
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

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: Endian = Endian::Little;
    const BIG: Endian = Endian::Big;

    fn map(
        from: (DType, Endian),
        to: (DType, Endian),
        bytes: impl Into<Vec<u8>>,
    ) -> Result<Vec<u8>> {
        let mut bytes = bytes.into();
        let map = ElementMap::new(from.0, from.1, to.0, to.1)?;
        let expected = map.output_len(bytes.len() as u64)?;
        map.apply(&mut bytes)?;
        assert_eq!(bytes.len() as u64, expected);
        Ok(bytes)
    }

    #[test]
    fn equal_forms_change_nothing() {
        for dtype in DType::all().filter(|dtype| !matches!(dtype, DType::Number(Scalar::Bool, _))) {
            assert!(
                ElementMap::new(dtype, BIG, dtype, BIG)
                    .unwrap()
                    .is_identity(),
                "{dtype}"
            );
        }
    }

    #[test]
    fn the_byte_order_changes_by_number_not_by_element() {
        let swapped = map(
            (DType::C64, BIG),
            (DType::C64, LITTLE),
            [1, 2, 3, 4, 5, 6, 7, 8],
        );
        assert_eq!(swapped.unwrap(), [4, 3, 2, 1, 8, 7, 6, 5]);
        // Bytes and bits have no order.
        for dtype in [DType::U8, DType::F8_E4M3, DType::F4_E2M1] {
            let kept = map((dtype, BIG), (dtype, LITTLE), [1, 2, 3]).unwrap();
            assert_eq!(kept, [1, 2, 3], "{dtype}");
        }
    }

    #[test]
    fn a_bool_is_0_or_1_whatever_was_stored() {
        for endian in [LITTLE, BIG] {
            let found = map((DType::BOOL, LITTLE), (DType::BOOL, endian), [0, 1, 2, 255]);
            assert_eq!(found.unwrap(), [0, 1, 1, 1]);
        }
    }

    #[test]
    fn a_cast_reads_and_writes_in_the_byte_orders_of_both_sides() {
        let values = [-2i16, 300];
        for from in [LITTLE, BIG] {
            for to in [LITTLE, BIG] {
                let stored: Vec<u8> = (values.iter())
                    .flat_map(|value| match from {
                        LITTLE => value.to_le_bytes(),
                        BIG => value.to_be_bytes(),
                    })
                    .collect();
                let expected: Vec<u8> = (values.iter())
                    .flat_map(|&value| match to {
                        LITTLE => f32::from(value).to_le_bytes(),
                        BIG => f32::from(value).to_be_bytes(),
                    })
                    .collect();
                let found = map((DType::I16, from), (DType::F32, to), stored).unwrap();
                assert_eq!(found, expected, "{from} to {to}");
            }
        }
    }

    #[test]
    fn casts_between_kinds_that_do_not_match_are_refused() {
        let block = DType::from_name("gguf:Q8_0").unwrap();
        for (from, to) in [
            (DType::C64, DType::F32),
            (block, DType::F32),
            (DType::F32, block),
            (DType::PARTS, DType::F32),
            (DType::F4_E2M1, DType::F32),
        ] {
            let error = map((from, LITTLE), (to, LITTLE), []).unwrap_err();
            assert_eq!(
                error.kind(),
                crate::ErrorKind::Unsupported,
                "{from} to {to}"
            );
        }
    }

    #[test]
    fn bytes_that_are_no_bool_are_found_anywhere() {
        assert!(check_content(DType::BOOL, &[0, 1, 1], true, 3).is_none());
        assert!(check_content(DType::BOOL, &[0, 2, 1], false, 9).is_some());
        assert!(check_content(DType::U8, &[255], true, 1).is_none());
    }

    #[test]
    fn set_bits_behind_the_last_element_are_found_in_the_last_byte_only() {
        let u4 = DType::Number(Scalar::U4, Lanes::Real);
        assert!(check_content(u4, &[0xff, 0x0f], true, 3).is_none());
        assert!(check_content(u4, &[0xff, 0x1f], true, 3).is_some());
        assert!(check_content(u4, &[0xff, 0xff], true, 4).is_none());
        assert!(check_content(u4, &[0xff, 0xff], false, 3).is_none());
        let f6 = DType::Number(Scalar::F6E2M3, Lanes::Real);
        assert!(check_content(f6, &[0xff, 0x0f], true, 2).is_none());
        assert!(check_content(f6, &[0xff, 0x10], true, 2).is_some());
        let u1 = DType::Number(Scalar::U1, Lanes::Real);
        for elements in 1..=8u8 {
            let full = u8::try_from((1u16 << elements) - 1).unwrap();
            assert!(check_content(u1, &[full], true, elements.into()).is_none());
            if elements < 8 {
                let over = [1 << elements];
                assert!(check_content(u1, &over, true, elements.into()).is_some());
            }
        }
        assert!(check_content(u1, &[], true, 0).is_none());
    }
}
