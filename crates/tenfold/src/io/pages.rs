//! Memory for much data at once.

/// Zeros in pages of their own, large ones where the system has them: filling many small ones for the first time takes
/// longer than most of what is done with them. `None` where the system does not give any.
pub(crate) fn zeroed(len: usize) -> Option<memmap2::MmapMut> {
    let pages = memmap2::MmapMut::map_anon(len).ok()?;
    // A wish: what comes of it makes no difference but in time.
    #[cfg(target_os = "linux")]
    let _ = pages.advise(memmap2::Advice::HugePage);
    Some(pages)
}
