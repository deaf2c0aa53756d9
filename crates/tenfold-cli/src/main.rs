//! The tenfold command as a process: its memory, its signals, its limits. What it does is the library's.

mod signal;

use std::process::ExitCode;

/// A description of 100 000 tensors is a million small allocations: the system's allocator takes twice as long for them.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    allow_many_files();
    signal::survive_file_limit();
    tenfold_cli::run(std::env::args_os(), &signal::Signals).into()
}

/// A model may be thousands of files: as many may be open as the system permits, not as few as shells usually say.
fn allow_many_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        // Without it, the system's own error says what is missing.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}
