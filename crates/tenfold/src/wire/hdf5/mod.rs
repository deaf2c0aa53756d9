//! HDF5 files: what is in them, and where.
//!
//! A file is a graph of objects at addresses: a superblock leads to the root group, groups to their entries, datasets to
//! a type, a shape and a place. Everything is read at its address and in bounds, each object once, and what is shared by
//! many objects counts each time ([`block::File::make`]), so that neither time nor memory grow beyond the file.

mod attributes;
mod block;
mod checksum;
mod dataset;
mod header;
mod heap;
mod index;
mod links;
mod recent;
mod storage;
mod superblock;
mod tree2;
mod types;
mod walk;

pub(crate) use checksum::lookup3;
pub(crate) use superblock::{SIGNATURE, find};
pub(crate) use walk::read_with_references;
pub(crate) use walk::{Content, Remark, RemarkKind, read};

/// How a file of MATLAB's begins that is HDF5 after 512 bytes.
pub(crate) const MATLAB: &[u8] = b"MATLAB 7.3 MAT-file";
