//! How many threads work at once.

/// The threads that were asked for; 0 is one for every core.
pub(crate) fn thread_count(asked: usize) -> usize {
    match asked {
        0 => std::thread::available_parallelism().map_or(1, core::num::NonZero::get),
        n => n,
    }
}
