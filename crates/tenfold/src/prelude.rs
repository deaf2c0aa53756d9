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

/// Adds to a list that grows by a quarter, not to twice its length: of tensors and the like, of which a file may describe
/// millions, and of which each takes many times the bytes that describe it.
pub(crate) fn push_tight<T>(list: &mut Vec<T>, item: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(1.max(list.len() / 4));
    }
    list.push(item);
}
