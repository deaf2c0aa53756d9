//! Damaged files of which something is whole.

mod cut_off;

pub(crate) use cut_off::CutOff;
