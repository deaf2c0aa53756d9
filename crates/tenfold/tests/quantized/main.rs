//! Quantized models whose weights are several tensors each: golden numbers, sets that are not whole, hostile ones.

// A test may panic and print.
#![allow(
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    unreachable_pub
)]

#[path = "../support/mod.rs"]
mod support;

mod golden;
mod hostile;
mod model;
mod padded;
mod raw_codes;
mod recognized;
