//! Ctrl-C and its like: work ends between two pieces, and its output is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tenfold::format::Control;

use crate::failure::{Exit, Failure, Result};

/// The signal of Ctrl-C, as systems number it.
const INTERRUPT: u8 = 2;

/// The signal that came, or 0.
static CAUGHT: AtomicU8 = AtomicU8::new(0);

/// Lets signals stop the work.
pub(crate) fn cancel(control: Arc<Control>) -> Result<()> {
    let caught = move |number: u8| {
        if CAUGHT.swap(number, Ordering::Relaxed) != 0 {
            // Asked twice: what is done between pieces, such as waiting for the disk, takes too long.
            std::process::exit(exit().code().into());
        }
        control.cancel();
    };
    watch(caught).map_err(|cause| Failure::Message(format!("cannot watch for Ctrl-C: {cause}")))
}

/// A file that becomes larger than the user's limit (`ulimit -f`) is an error of the write, and not the end of the process.
pub(crate) fn survive_file_limit() {
    // Whatever catches it; without it, the signal does what it does.
    #[cfg(unix)]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// What work leaves behind that was stopped.
pub(crate) fn exit() -> Exit {
    match CAUGHT.load(Ordering::Relaxed) {
        0 => Exit::Signal(INTERRUPT),
        number => Exit::Signal(number),
    }
}

#[cfg(unix)]
fn watch(mut caught: impl FnMut(u8) + Send + 'static) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    std::thread::Builder::new().spawn(move || {
        for number in signals.forever() {
            caught(u8::try_from(number).unwrap_or(INTERRUPT));
        }
    })?;
    Ok(())
}

#[cfg(not(unix))]
fn watch(mut caught: impl FnMut(u8) + Send + 'static) -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(move || caught(INTERRUPT))
}
