//! Bytes as numbers of a Rust type, by a checked cast.

use core::marker::PhantomData;
use core::ops::Deref;

use bytemuck::Pod;
use bytes::Bytes;
use half::{bf16, f16};

use crate::error::{Error, Result};
use crate::model::DType;
use crate::prelude::*;

/// A Rust type that is the element of tensors. Halves are those of the crate `half`, which is
/// [re-exported](crate::half). Booleans have none: any byte but 0 is true, so they are read as bytes.
pub trait Element: Pod + Send + Sync + sealed::Sealed {
    /// The tensor type it is the element of.
    const DTYPE: DType;
}

mod sealed {
    /// Only numbers whose every bit pattern is a value.
    pub trait Sealed {
        /// The number with its bytes reversed.
        #[must_use]
        fn swapped(self) -> Self;
    }
}

macro_rules! elements {
    ($($rust:ty, $dtype:ident, |$value:ident| $swapped:expr;)*) => {$(
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
        }
        impl sealed::Sealed for $rust {
            fn swapped(self) -> Self {
                let $value = self;
                $swapped
            }
        }
    )*};
}

elements! {
    u8, U8, |v| v;
    u16, U16, |v| v.swap_bytes();
    u32, U32, |v| v.swap_bytes();
    u64, U64, |v| v.swap_bytes();
    i8, I8, |v| v;
    i16, I16, |v| v.swap_bytes();
    i32, I32, |v| v.swap_bytes();
    i64, I64, |v| v.swap_bytes();
    f16, F16, |v| f16::from_bits(v.to_bits().swap_bytes());
    bf16, BF16, |v| bf16::from_bits(v.to_bits().swap_bytes());
    f32, F32, |v| f32::from_bits(v.to_bits().swap_bytes());
    f64, F64, |v| f64::from_bits(v.to_bits().swap_bytes());
}

/// Elements of a tensor; derefs to a slice.
///
/// Those of a mapped file, or of a vector that was made into one, are shared and not copied, by its clones too.
#[derive(Clone, Debug)]
pub struct Typed<T> {
    /// Aligned for `T`, in this machine's byte order.
    bytes: Bytes,
    element: PhantomData<T>,
}

impl<T: Element> Typed<T> {
    /// Shares `bytes`, which are in this machine's byte order, where they are aligned; copies them elsewhere.
    pub(crate) fn from_native(bytes: Bytes) -> Result<Self> {
        match bytemuck::try_cast_slice::<u8, T>(&bytes) {
            Ok(_) => Ok(Self {
                bytes,
                element: PhantomData,
            }),
            Err(_) if !bytes.len().is_multiple_of(size_of::<T>()) => Err(Error::mismatch(
                "size",
                format!("{} bytes are not a whole number of elements", bytes.len()),
            )),
            Err(_) => {
                let elements = bytes.chunks_exact(size_of::<T>());
                Ok(elements.map(bytemuck::pod_read_unaligned::<T>).collect())
            }
        }
    }

    /// The elements as bytes, in this machine's byte order.
    pub(crate) fn into_bytes(self) -> Bytes {
        self.bytes
    }
}

/// So many zeros, or an error where there is no room for them.
pub(crate) fn zeros<T: Element>(count: usize) -> Result<Vec<T>> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(count).map_err(|cause| {
        let message = format!("there is no memory for {count} elements of {}", T::DTYPE);
        Error::limit("memory", message).because(cause)
    })?;
    zeros.resize(count, T::zeroed());
    Ok(zeros)
}

/// Little-endian numbers as this machine has them.
pub(crate) fn from_little_endian<T: Element>(numbers: &mut [T]) {
    if cfg!(target_endian = "big") {
        for number in numbers {
            *number = sealed::Sealed::swapped(*number);
        }
    }
}

impl<T: Element> From<Vec<T>> for Typed<T> {
    /// The vector itself, not a copy of it.
    fn from(elements: Vec<T>) -> Self {
        Self {
            bytes: Bytes::from_owner(Owned(elements)),
            element: PhantomData,
        }
    }
}

impl<T: Element> From<Box<[T]>> for Typed<T> {
    fn from(elements: Box<[T]>) -> Self {
        elements.into_vec().into()
    }
}

impl<T: Element> From<&[T]> for Typed<T> {
    fn from(elements: &[T]) -> Self {
        elements.to_vec().into()
    }
}

impl<T: Element> From<&Vec<T>> for Typed<T> {
    fn from(elements: &Vec<T>) -> Self {
        elements.clone().into()
    }
}

impl<T: Element, const N: usize> From<[T; N]> for Typed<T> {
    fn from(elements: [T; N]) -> Self {
        Vec::from(elements).into()
    }
}

impl<T: Element, const N: usize> From<&[T; N]> for Typed<T> {
    fn from(elements: &[T; N]) -> Self {
        elements.to_vec().into()
    }
}

impl<T: Element> FromIterator<T> for Typed<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        Vec::from_iter(elements).into()
    }
}

struct Owned<T>(Vec<T>);

impl<T: Pod> AsRef<[u8]> for Owned<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

impl<T: Element> Deref for Typed<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // Checked when it was made: aligned, and a whole number of elements.
        bytemuck::try_cast_slice(&self.bytes).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_bytes_are_shared_and_others_copied() {
        let owned = Typed::from([1f32, 2.0, 3.0]).into_bytes();
        let typed = Typed::<f32>::from_native(owned.clone()).unwrap();
        assert_eq!(&*typed, [1.0, 2.0, 3.0]);
        assert_eq!(typed.as_ptr().cast(), owned.as_ptr());

        let mut shifted = vec![0];
        shifted.extend_from_slice(&owned);
        let copied = Typed::<f32>::from_native(Bytes::from(shifted).slice(1..)).unwrap();
        assert_eq!(&*copied, [1.0, 2.0, 3.0]);
    }

    #[test]
    fn vectors_become_elements_without_a_copy() {
        let numbers = vec![1u16, 2, 3];
        let place = numbers.as_ptr();
        let typed = Typed::from(numbers);
        assert_eq!(typed.as_ptr(), place);
        assert_eq!(typed.clone().as_ptr(), place);
        let made: Typed<u16> = (1..4).collect();
        assert_eq!(&*made, &*typed);
    }

    #[test]
    fn halves_are_numbers_of_their_own() {
        let of = |bits: [u16; 2]| Typed::from(bits).into_bytes();
        let halves = Typed::<f16>::from_native(of([0x3c00, 0xc000])).unwrap();
        assert_eq!(&*halves, [f16::from_f32(1.0), f16::from_f32(-2.0)]);
        let brains = Typed::<bf16>::from_native(of([0x3f80, 0xc000])).unwrap();
        assert_eq!(&*brains, [bf16::from_f32(1.0), bf16::from_f32(-2.0)]);
    }

    #[test]
    fn half_an_element_is_refused() {
        assert!(Typed::<u16>::from_native(Bytes::from_static(&[1, 2, 3])).is_err());
    }
}
