//! An allocator that counts: what the current thread holds, its peak, and how often it asked.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// To be made the `#[global_allocator]` of a test.
pub struct Counting;

std::thread_local! {
    static LOCAL: Local = const {
        Local {
            held: Cell::new(0),
            peak: Cell::new(0),
            count: Cell::new(0),
            total: Cell::new(0),
        }
    };
}

struct Local {
    /// Bytes, negative where this thread frees what another one asked for.
    held: Cell<isize>,
    peak: Cell<isize>,
    count: Cell<usize>,
    total: Cell<usize>,
}

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn took(size: usize) {
    let held = HELD.fetch_add(size, Relaxed) + size;
    PEAK.fetch_max(held, Relaxed);
    LOCAL.with(|local| {
        local.held.set(local.held.get() + size.cast_signed());
        local.peak.set(local.peak.get().max(local.held.get()));
        local.count.set(local.count.get() + 1);
        local.total.set(local.total.get() + size);
    });
}

fn gave(size: usize) {
    HELD.fetch_sub(size, Relaxed);
    LOCAL.with(|local| local.held.set(local.held.get() - size.cast_signed()));
}

// SAFETY: every call is passed on to the system's allocator as it is; counting allocates nothing.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller's promise is the system's condition.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        gave(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // What shrinks stays where it is; what grows may be copied.
        if size > layout.size() {
            took(size);
            gave(layout.size());
        } else {
            gave(layout.size() - size);
        }
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, size) }
    }
}

/// What some work asked for.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// Bytes beyond what was held before, at most.
    pub peak: usize,
    /// Bytes that are still held.
    pub kept: usize,
    /// How often memory was asked for, growing included.
    pub allocations: usize,
    /// Bytes that were asked for, all together.
    pub total: usize,
}

/// What `work` asks for on this thread.
pub fn on_this_thread<T>(work: impl FnOnce() -> T) -> (T, Used) {
    let (held, count, total) = LOCAL.with(|local| {
        local.peak.set(local.held.get());
        (local.held.get(), local.count.get(), local.total.get())
    });
    let result = work();
    let used = LOCAL.with(|local| Used {
        peak: usize::try_from(local.peak.get() - held).unwrap_or(0),
        kept: usize::try_from(local.held.get() - held).unwrap_or(0),
        allocations: local.count.get() - count,
        total: local.total.get() - total,
    });
    (result, used)
}

/// The most that all threads together hold beyond what they held before. The caller makes sure that nothing else runs.
pub fn on_all_threads<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    let result = work();
    (result, PEAK.load(Relaxed).saturating_sub(before))
}
