//! Elements of another type: what becomes of numbers, and of tensors that are lists of entries or packed by a symmetry.

use core::ops::AddAssign;

use crate::model::{DType, Layout, Operation, Role, Scalar, Symmetry, TensorInfo};

/// What casts did to numbers that do not fit the type they were cast to.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CastCounts {
    /// Numbers that were cast.
    pub numbers: u64,
    /// Numbers beyond the range: they became an infinity, NaN, or the greatest or least number of the type.
    pub overflows: u64,
    /// Numbers other than zero that became zero, or the smallest number of a type that has no zero.
    pub underflows: u64,
    /// Numbers that were NaN before.
    pub nans: u64,
}

impl CastCounts {
    /// Whether every number had a place in the range of its new type.
    pub fn is_clean(&self) -> bool {
        self.overflows == 0 && self.underflows == 0 && self.nans == 0
    }
}

impl AddAssign for CastCounts {
    fn add_assign(&mut self, other: Self) {
        self.numbers += other.numbers;
        self.overflows += other.overflows;
        self.underflows += other.underflows;
        self.nans += other.nans;
    }
}

impl TensorInfo {
    /// The type of the elements before a cast: what they are stored as, or decoded to.
    pub(crate) fn stored_dtype(&self) -> DType {
        match (&self.layout, &self.decoder) {
            (Layout::Decoded, Some(decoder)) => decoder.dtype(),
            (Layout::Decoded | Layout::Opaque { .. }, _) => self.dtype,
            _ => self
                .part(&Role::Values)
                .map_or(self.dtype, |part| part.dtype),
        }
    }

    /// Whether casting the stored elements one by one gives what casting the whole dense tensor gives, bit by bit.
    ///
    /// It does not where what is not stored would have to become something else than 0, where a symmetry makes an
    /// element from another and the cast is not the same for both, and where elements would have no bytes of their own.
    pub(crate) fn casts_as_stored(&self) -> bool {
        let (from, to) = (self.stored_dtype(), self.dtype);
        let symmetries = self.layout.symmetries();
        if !self.layout.is_sparse() && symmetries.is_empty() {
            return true;
        }
        let is_same = |symmetry: &Symmetry| is_cast_alike(symmetry.operation, from, to);
        from == to
            || (from.width().is_some()
                && to.width().is_some()
                && (!self.layout.is_sparse() || (has_zero(from) && has_zero(to)))
                && symmetries.iter().all(is_same))
    }
}

/// Whether a type has 0.
pub(crate) fn has_zero(dtype: DType) -> bool {
    !matches!(dtype, DType::Number(Scalar::F8E8M0, _))
}

/// Whether it makes no difference if numbers are cast before or after an operation.
///
/// Integers cannot tell -0 from 0, have one number more below 0 than above, and end where floating-point numbers go on.
fn is_cast_alike(operation: Operation, from: DType, to: DType) -> bool {
    let (DType::Number(a, lanes), DType::Number(b, other)) = (from, to) else {
        return false;
    };
    let operation = if lanes == other && lanes.count() == 1 {
        operation.of_reals()
    } else {
        operation
    };
    operation == Operation::Same || (lanes == other && is_ieee(a) && is_ieee(b))
}

/// Whether a number is negated by its first bit, and has an infinity of either sign beyond its range.
pub(crate) fn is_ieee(scalar: Scalar) -> bool {
    matches!(
        scalar,
        Scalar::BF16 | Scalar::F16 | Scalar::F32 | Scalar::F64 | Scalar::F128
    )
}
