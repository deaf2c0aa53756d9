//! Tensors that are lists of entries or packed by a symmetry, and get elements of another type.

use crate::model::{DType, Layout, Operation, Role, Scalar, Symmetry, TensorInfo};

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
    let operation = match lanes == other && lanes.count() == 1 {
        true => operation.of_reals(),
        false => operation,
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
