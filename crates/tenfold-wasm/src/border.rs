//! The border to the host, and all `unsafe` of it: the names of exports, and calls of imports.
//!
//! Messages go both ways through vectors that this side owns. The host writes into what [`alloc`] gave, before it calls
//! anything else, and reads what [`result`] points to, before it calls anything else; there is one thread.
#![allow(unsafe_code)]

use std::sync::{Mutex, MutexGuard, PoisonError};

static INPUT: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static OUTPUT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

#[link(wasm_import_module = "host")]
unsafe extern "C" {
    /// Reads `len` bytes from `at` on into memory at `to`; 0 where that fails.
    #[link_name = "read"]
    fn host_read(file: u32, at: f64, to: *mut u8, len: usize) -> u32;
    /// Bytes of a file.
    #[link_name = "size"]
    fn host_size(file: u32) -> f64;
}

fn lock(held: &'static Mutex<Vec<u8>>) -> MutexGuard<'static, Vec<u8>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory for a message of `len` bytes from the host.
// SAFETY: no other function of the program has this name.
#[unsafe(no_mangle)]
extern "C" fn alloc(len: usize) -> *mut u8 {
    let mut input = lock(&INPUT);
    input.clear();
    input.resize(len, 0);
    input.as_mut_ptr()
}

/// Adds the archive that the message describes, and gives its number; -1 where it was not understood.
// SAFETY: no other function of the program has this name.
#[unsafe(no_mangle)]
extern "C" fn open() -> i32 {
    let added = crate::open(&lock(&INPUT));
    added
        .and_then(|number| i32::try_from(number).ok())
        .unwrap_or(-1)
}

/// Answers the question in the message: 1, or 0 where the answer says what is wrong.
// SAFETY: no other function of the program has this name.
#[unsafe(no_mangle)]
extern "C" fn call() -> u32 {
    let (kind, bytes) = crate::call(&lock(&INPUT));
    *lock(&OUTPUT) = bytes;
    kind
}

/// Where the answer is: its length in the upper half, its place in the lower.
// SAFETY: no other function of the program has this name.
#[unsafe(no_mangle)]
extern "C" fn result() -> u64 {
    let output = lock(&OUTPUT);
    (output.len() as u64) << 32 | output.as_ptr().addr() as u64
}

/// Fills a buffer with bytes of a file; whether they were there.
pub(crate) fn read(file: u32, at: u64, buffer: &mut [u8]) -> bool {
    // SAFETY: the host writes as many bytes as it is told, into memory that is borrowed for writing until it returns.
    unsafe { host_read(file, at as f64, buffer.as_mut_ptr(), buffer.len()) != 0 }
}

/// Bytes of a file. JavaScript counts in floating-point numbers, which are never negative here.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(crate) fn size(file: u32) -> u64 {
    // SAFETY: it takes a number and gives one.
    unsafe { host_size(file) as u64 }
}
