//! Bytes as numbers of a Rust type, by a checked cast.

use core::marker::PhantomData;
use core::ops::Deref;

use bytemuck::Pod;
use bytes::Bytes;
use half::{bf16, f16};

use crate::error::{Error, Result};
use crate::model::DType;
use crate::prelude::*;

/// A Rust type that is the element of tensors. Halves are those of the crate `half`, which is [re-exported](crate::half).
/// True and false have none: any byte but 0 is true, so they are read as bytes.
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
#[derive(Clone, Debug)]
pub struct Typed<T> {
    /// Aligned for `T`, in this machine's byte order.
    bytes: Bytes,
    element: PhantomData<T>,
}

impl<T: Element> Typed<T> {
    /// Shares `bytes` where this machine can use them as they are; copies where they are not aligned or must be swapped.
    pub(crate) fn from_little_endian(bytes: Bytes) -> Result<Self> {
        if !bytes.len().is_multiple_of(size_of::<T>()) {
            return Err(Error::mismatch(
                "size",
                format!("{} bytes are no whole number of elements", bytes.len()),
            ));
        }
        let ordered = cfg!(target_endian = "little") || size_of::<T>() == 1;
        let usable = ordered && bytemuck::try_cast_slice::<u8, T>(&bytes).is_ok();
        let bytes = if usable {
            bytes
        } else {
            Bytes::from_owner(Owned(copied::<T>(&bytes)))
        };
        Ok(Self {
            bytes,
            element: PhantomData,
        })
    }
}

/// Elements in a vector of their own, which is aligned for them.
fn copied<T: Element>(bytes: &[u8]) -> Vec<T> {
    let numbers = bytes
        .chunks_exact(size_of::<T>())
        .map(bytemuck::pod_read_unaligned::<T>);
    match cfg!(target_endian = "little") {
        true => numbers.collect(),
        false => numbers.map(sealed::Sealed::swapped).collect(),
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
        let little = [1f32, 2.0, 3.0].map(|number| number.to_bits().to_le());
        let owned = Bytes::from_owner(Owned(little.to_vec()));
        let typed = Typed::<f32>::from_little_endian(owned.clone()).unwrap();
        assert_eq!(&*typed, [1.0, 2.0, 3.0]);
        let shared = typed.as_ptr().cast() == owned.as_ptr();
        assert_eq!(shared, cfg!(target_endian = "little"));
        // A byte has no order.
        let bytes = Typed::<u8>::from_little_endian(owned.clone()).unwrap();
        assert_eq!(bytes.as_ptr(), owned.as_ptr());

        let mut shifted = vec![0];
        shifted.extend_from_slice(&owned);
        let copied = Typed::<f32>::from_little_endian(Bytes::from(shifted).slice(1..)).unwrap();
        assert_eq!(&*copied, [1.0, 2.0, 3.0]);
    }

    #[test]
    fn halves_are_numbers_of_their_own() {
        let bytes = Bytes::from_static(&[0x00, 0x3c, 0x00, 0xc0]);
        let halves = Typed::<f16>::from_little_endian(bytes).unwrap();
        assert_eq!(&*halves, [f16::from_f32(1.0), f16::from_f32(-2.0)]);
        let bytes = Bytes::from_static(&[0x80, 0x3f]);
        let brain = Typed::<bf16>::from_little_endian(bytes).unwrap();
        assert_eq!(&*brain, [bf16::from_f32(1.0)]);
    }

    #[test]
    fn half_an_element_is_refused() {
        assert!(Typed::<u16>::from_little_endian(Bytes::from_static(&[1, 2, 3])).is_err());
    }
}
