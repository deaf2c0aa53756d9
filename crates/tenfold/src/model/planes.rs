//! Numbers of elements in several places, or of another type than the elements have.

use crate::model::{DType, Lanes, Part, Scalar};
use crate::prelude::*;

/// Elements whose numbers are stored apart, as real and imaginary parts are in MATLAB's files, or as numbers of another
/// type that the elements' type can hold.
///
/// ```
/// use tenfold::model::{DType, Part, Payload, Planes, Role, Scalar};
/// let real = Part::new(Role::Values, DType::I16, Payload::main(8..14));
/// let imaginary = Part::new(Role::Values, DType::F64, Payload::main(16..40));
/// let planes = Planes::new(Scalar::F64, 3, vec![real, imaginary]);
/// assert_eq!((planes.dtype(), planes.len()), (Some(DType::C128), Some(48)));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Planes {
    /// What the numbers become, little-endian.
    pub scalar: Scalar,
    /// How many elements there are.
    pub elements: u64,
    /// The first number of every element, then the second ones: numbers of a real type, one for each element.
    pub planes: Vec<Part>,
}

impl Planes {
    /// So many elements, of a number from each of the planes.
    pub fn new(scalar: Scalar, elements: u64, planes: Vec<Part>) -> Self {
        Self {
            scalar,
            elements,
            planes,
        }
    }

    /// The type of the elements; `None` where no type has as many numbers.
    pub fn dtype(&self) -> Option<DType> {
        let count = u32::try_from(self.planes.len()).ok()?;
        Some(DType::Number(self.scalar, Lanes::from_count(count)?))
    }

    /// Bytes of all elements; `None` where 64 bits cannot count them.
    pub fn len(&self) -> Option<u64> {
        self.dtype()?.bytes_for(self.elements)
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.elements == 0
    }
}

impl PartialEq for Planes {
    fn eq(&self, other: &Self) -> bool {
        let alike = |(a, b): (&Part, &Part)| {
            (a.dtype, a.endian, &a.payload) == (b.dtype, b.endian, &b.payload)
        };
        (self.scalar, self.elements, self.planes.len())
            == (other.scalar, other.elements, other.planes.len())
            && self.planes.iter().zip(&other.planes).all(alike)
    }
}

impl Eq for Planes {}
