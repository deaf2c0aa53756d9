//! Tensors with symmetries: elements that follow from others are not stored, or must agree with them.

mod check;
mod operation;
mod orbit;
mod pack;
mod pages;
mod triangle;
mod unpack;

pub(crate) use check::check as check_symmetry;
pub(super) use operation::Apply;
pub(crate) use operation::NO_NEGATIVE;
pub(super) use orbit::Orbits;
pub(super) use pack::Pack;
pub(super) use triangle::Group;
pub(crate) use triangle::Triangle;
pub(super) use unpack::Unpack;
