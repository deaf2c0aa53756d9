//! The names of `alloc` that a crate without `std` does not have in scope.

pub(crate) use alloc::borrow::ToOwned;
pub(crate) use alloc::boxed::Box;
pub(crate) use alloc::format;
pub(crate) use alloc::string::{String, ToString};
pub(crate) use alloc::sync::Arc;
pub(crate) use alloc::vec;
pub(crate) use alloc::vec::Vec;
pub(crate) use core::ops::Range;

/// A map for look-ups only, never iterated: hashed where the platform has random keys, ordered elsewhere.
#[cfg(feature = "std")]
pub(crate) type LookupMap<K, V> = std::collections::HashMap<K, V>;
/// A map for look-ups only, never iterated: hashed where the platform has random keys, ordered elsewhere.
#[cfg(not(feature = "std"))]
pub(crate) type LookupMap<K, V> = alloc::collections::BTreeMap<K, V>;
