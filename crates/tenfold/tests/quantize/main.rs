//! Numbers as quantized blocks: what the reference makes of the same numbers, mixtures, importance matrices, any numbers.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]

mod any_numbers;
mod golden;
mod imatrix;
mod mixtures;

use std::path::PathBuf;

use tenfold::model::BlockSpec;
use tenfold::ops::{self, QuantizeOptions};
use tenfold::{Archive, ArchiveBuilder, Result};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/quantized")
        .join(name)
}

fn open(name: &str) -> Archive {
    Archive::open(fixture(name)).unwrap()
}
