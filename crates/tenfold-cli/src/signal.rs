//! Ctrl-C and its like: work ends between two pieces, and its output is gone.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tenfold::Control;
use tenfold_cli::{INTERRUPT, Interrupts};

/// The signal that came, or 0.
static CAUGHT: AtomicU8 = AtomicU8::new(0);

/// Those of this process.
pub(crate) struct Signals;

impl Interrupts for Signals {
    fn watch(&self, control: Arc<Control>) -> io::Result<()> {
        watch(move |number: u8| {
            if CAUGHT.swap(number, Ordering::Relaxed) != 0 {
                // Asked twice: what is done between pieces, such as waiting for the disk, takes too long.
                std::process::exit(tenfold_cli::interrupted(number).into());
            }
            control.cancel();
        })
    }

    fn caught(&self) -> Option<u8> {
        Some(CAUGHT.load(Ordering::Relaxed)).filter(|number| *number != 0)
    }
}

/// A file that becomes larger than the user's limit (`ulimit -f`) is an error of the write, and not the end of the process.
pub(crate) fn survive_file_limit() {
    // Whatever catches it; without it, the signal does what it does.
    #[cfg(unix)]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

#[cfg(unix)]
fn watch(mut caught: impl FnMut(u8) + Send + 'static) -> io::Result<()> {
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
fn watch(mut caught: impl FnMut(u8) + Send + 'static) -> io::Result<()> {
    ctrlc::set_handler(move || caught(INTERRUPT)).map_err(io::Error::other)
}
