//! What is fuzzed. The targets are in [`targets`], which the test `fuzz` of the library includes too: a stable compiler
//! replays the same code.

#[path = "../../crates/tenfold/tests/support/mod.rs"]
pub mod support;
pub mod targets;

#[global_allocator]
static ALLOCATOR: support::memory::Counting = support::memory::Counting;
