//! The tenfold command.

fn main() {}
