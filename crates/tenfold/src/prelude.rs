//! The names of `alloc` that a crate without `std` does not have in scope.

pub(crate) use alloc::borrow::ToOwned;
pub(crate) use alloc::boxed::Box;
pub(crate) use alloc::format;
pub(crate) use alloc::string::{String, ToString};
pub(crate) use alloc::sync::Arc;
pub(crate) use alloc::vec;
pub(crate) use alloc::vec::Vec;
pub(crate) use core::ops::Range;

/// A map for look-ups only: never iterated, because its order means nothing.
pub(crate) type LookupMap<K, V> = hashbrown::HashMap<K, V>;
