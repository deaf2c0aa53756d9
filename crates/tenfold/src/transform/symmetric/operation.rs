//! What symmetries do to the bytes of elements.

use crate::error::{Error, Result};
use crate::model::{DType, Endian, Operation, Scalar, is_ieee};

/// What is to be said of the least integer where it is negated.
pub(crate) const NO_NEGATIVE: &str = "it has no negative, and stays as it is";

/// An operation on elements of one type in one byte order.
#[derive(Clone, Copy)]
pub(in crate::transform) struct Apply {
    /// The numbers of an element that are negated, a bit for each.
    negated: u8,
    lanes: usize,
    number: usize,
    is_float: bool,
    endian: Endian,
}

impl Apply {
    pub(in crate::transform) fn new(
        operation: Operation,
        dtype: DType,
        endian: Endian,
    ) -> Result<Self> {
        let DType::Number(scalar, lanes) = dtype else {
            return Err(Error::unsupported("symmetry", format_no_negative(dtype)));
        };
        let lanes = lanes.count() as usize;
        let all = u8::MAX >> (8 - lanes);
        let negated = match operation {
            Operation::Same => 0,
            Operation::Negate => all,
            Operation::Conjugate => all & !1,
            Operation::NegateConjugate => 1,
        };
        let is_float = is_ieee(scalar);
        if negated != 0 && !is_float && !is_signed(scalar) {
            return Err(Error::unsupported("symmetry", format_no_negative(dtype)));
        }
        Ok(Self {
            negated,
            lanes,
            number: dtype.swap_width(),
            is_float,
            endian,
        })
    }

    /// Changes whole elements.
    pub(in crate::transform) fn apply(&self, elements: &mut [u8]) {
        if self.negated == 0 {
            return;
        }
        for element in elements.chunks_exact_mut(self.number * self.lanes) {
            for (lane, number) in element.chunks_exact_mut(self.number).enumerate() {
                if self.negated >> lane & 1 == 1 {
                    self.negate(number);
                }
            }
        }
    }

    fn negate(&self, number: &mut [u8]) {
        let sign = match self.endian {
            Endian::Little => number.last_mut(),
            Endian::Big => number.first_mut(),
        };
        if self.is_float {
            if let Some(byte) = sign {
                *byte ^= 0x80;
            }
            return;
        }
        // Two's complement: all bits the other way, and 1 more.
        let mut carry = true;
        let mut step = |byte: &mut u8| (*byte, carry) = (!*byte).overflowing_add(carry.into());
        match self.endian {
            Endian::Little => number.iter_mut().for_each(&mut step),
            Endian::Big => number.iter_mut().rev().for_each(&mut step),
        }
    }

    /// Whether there are numbers that it cannot negate: the least integer is its own negative.
    pub(in crate::transform) fn can_wrap(&self) -> bool {
        self.negated != 0 && !self.is_float
    }

    /// The first of some elements of which it negates the least integer.
    pub(in crate::transform) fn first_wrapped(&self, elements: &[u8]) -> Option<usize> {
        if !self.can_wrap() {
            return None;
        }
        let wraps = |element: &[u8]| {
            let mut numbers = element.chunks_exact(self.number).enumerate();
            numbers.any(|(lane, number)| self.negated >> lane & 1 == 1 && self.is_least(number))
        };
        let mut elements = elements.chunks_exact(self.number * self.lanes);
        elements.position(wraps)
    }

    fn is_least(&self, number: &[u8]) -> bool {
        let parts = match self.endian {
            Endian::Little => number.split_last(),
            Endian::Big => number.split_first(),
        };
        parts.is_some_and(|(sign, rest)| *sign == 0x80 && rest.iter().all(|&byte| byte == 0))
    }

    /// Whether two elements are the same value: bit by bit, except that 0 and -0 are.
    pub(in crate::transform) fn same(&self, a: &[u8], b: &[u8]) -> bool {
        a == b
            || (self.is_float
                && (a.chunks_exact(self.number).zip(b.chunks_exact(self.number)))
                    .all(|(a, b)| a == b || (self.is_zero(a) && self.is_zero(b))))
    }

    /// Whether numbers are all 0 or -0.
    pub(in crate::transform) fn is_zero(&self, numbers: &[u8]) -> bool {
        let sign = match (self.is_float, self.endian) {
            (false, _) => usize::MAX,
            (true, Endian::Little) => self.number - 1,
            (true, Endian::Big) => 0,
        };
        let zero =
            |(place, byte): (usize, &u8)| *byte & if place == sign { 0x7f } else { 0xff } == 0;
        (numbers.chunks_exact(self.number)).all(|number| number.iter().enumerate().all(zero))
    }
}

fn format_no_negative(dtype: DType) -> crate::prelude::String {
    crate::prelude::format!("elements of {dtype} cannot be negated")
}

fn is_signed(scalar: Scalar) -> bool {
    matches!(
        scalar,
        Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 | Scalar::I128
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Lanes;
    use crate::prelude::*;

    fn applied(operation: Operation, dtype: DType, endian: Endian, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        let apply = Apply::new(operation, dtype, endian).unwrap();
        apply.apply(&mut bytes);
        bytes
    }

    #[test]
    fn integers_wrap_in_both_byte_orders() {
        for value in [0i32, 1, -1, 256, 0x0100_0000, i32::MIN, i32::MAX] {
            let little = value.to_le_bytes();
            let found = applied(Operation::Negate, DType::I32, Endian::Little, &little);
            assert_eq!(found, value.wrapping_neg().to_le_bytes());
            let big = value.to_be_bytes();
            let found = applied(Operation::Negate, DType::I32, Endian::Big, &big);
            assert_eq!(found, value.wrapping_neg().to_be_bytes());
        }
    }

    #[test]
    fn floats_lose_only_their_sign() {
        for value in [0.0f64, -0.0, 1.5, f64::NAN, f64::NEG_INFINITY] {
            let found = applied(
                Operation::Negate,
                DType::F64,
                Endian::Little,
                &value.to_le_bytes(),
            );
            assert_eq!(found, (-value).to_le_bytes());
        }
    }

    #[test]
    fn conjugation_spares_the_first_number() {
        let quaternion = DType::Number(Scalar::I8, Lanes::Quaternion);
        let of = |operation| applied(operation, quaternion, Endian::Little, &[1, 2, 3, 4]);
        assert_eq!(of(Operation::Same), [1, 2, 3, 4]);
        assert_eq!(of(Operation::Negate), [255, 254, 253, 252]);
        assert_eq!(of(Operation::Conjugate), [1, 254, 253, 252]);
        assert_eq!(of(Operation::NegateConjugate), [255, 2, 3, 4]);
    }

    #[test]
    fn the_least_integer_has_no_negative() {
        let first = |operation, dtype, endian, bytes: &[u8]| {
            let apply = Apply::new(operation, dtype, endian).unwrap();
            apply.first_wrapped(bytes)
        };
        let little = [i16::MAX, 0, i16::MIN].map(i16::to_le_bytes).concat();
        let big = [i16::MAX, 0, i16::MIN].map(i16::to_be_bytes).concat();
        let negate = Operation::Negate;
        assert_eq!(first(negate, DType::I16, Endian::Little, &little), Some(2));
        assert_eq!(first(negate, DType::I16, Endian::Big, &big), Some(2));
        // 128, and -32768 of the other byte order.
        assert_eq!(first(negate, DType::I16, Endian::Big, &little), None);
        assert_eq!(
            first(Operation::Same, DType::I16, Endian::Little, &little),
            None
        );
        let complex = DType::Number(Scalar::I8, Lanes::Complex);
        let conjugate = Operation::Conjugate;
        assert_eq!(
            first(conjugate, complex, Endian::Little, &[0x80, 1, 2, 0x80]),
            Some(1)
        );
        let zero = (-0.0f64).to_le_bytes();
        assert_eq!(first(negate, DType::F64, Endian::Little, &zero), None);
    }

    #[test]
    fn unsigned_numbers_have_no_negative() {
        let complex = DType::Number(Scalar::U8, Lanes::Complex);
        for dtype in [DType::U32, complex] {
            assert!(Apply::new(Operation::Negate, dtype, Endian::Little).is_err());
            assert!(Apply::new(Operation::Same, dtype, Endian::Little).is_ok());
        }
        assert!(Apply::new(Operation::Conjugate, complex, Endian::Little).is_err());
        assert!(Apply::new(Operation::Conjugate, DType::U8, Endian::Little).is_ok());
    }

    #[test]
    fn zeros_of_both_signs_are_the_same() {
        let apply = Apply::new(Operation::Same, DType::C64, Endian::Big).unwrap();
        let complex = |re: f32, im: f32| [re.to_be_bytes(), im.to_be_bytes()].concat();
        assert!(apply.same(&complex(1.0, 0.0), &complex(1.0, -0.0)));
        assert!(!apply.same(&complex(1.0, 0.0), &complex(-1.0, 0.0)));
        assert!(apply.is_zero(&complex(0.0, -0.0)));
        let integer = Apply::new(Operation::Same, DType::I16, Endian::Little).unwrap();
        assert!(!integer.is_zero(&i16::MIN.to_le_bytes()));
    }
}
