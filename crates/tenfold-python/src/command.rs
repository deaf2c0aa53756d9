//! The command inside of the package.

use std::ffi::OsString;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use pyo3::prelude::*;
use tenfold::Control;
use tenfold_cli::{INTERRUPT, Interrupts, interrupted};

use crate::supervise::Over;

/// What the command does may be stopped by a handler of a signal that raises something.
#[derive(Default)]
struct Stops {
    watched: Mutex<Option<Arc<Control>>>,
    signal: Mutex<Option<u8>>,
}

impl Interrupts for &Stops {
    fn watch(&self, control: Arc<Control>) -> io::Result<()> {
        *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = Some(control);
        Ok(())
    }

    fn caught(&self) -> Option<u8> {
        *self.signal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the command with these arguments, the name of the program first, and gives its exit code.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, args: Vec<OsString>) -> PyResult<u8> {
    // Neither ends before the other: a command that only reads may be left behind when a signal ends the process.
    let stops: &'static Stops = Box::leak(Box::default());
    let over = Arc::new(Over::default());
    let told = over.clone();
    let worker = thread::spawn(move || {
        let code = panic::catch_unwind(AssertUnwindSafe(|| tenfold_cli::run(args, &stops)));
        told.tell();
        code
    });
    while !py.detach(|| over.wait_a_turn()) {
        let Err(raised) = py.check_signals() else {
            continue;
        };
        let signal = signal_of(&raised, py);
        let watched = stops
            .watched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(control) = watched else {
            // It writes nothing: the process may end now.
            return Ok(interrupted(signal));
        };
        *stops.signal.lock().unwrap_or_else(PoisonError::into_inner) = Some(signal);
        control.cancel();
        py.detach(|| over.wait());
    }
    match worker.join().and_then(|code| code) {
        Ok(code) => Ok(code),
        Err(panic) => panic::resume_unwind(panic),
    }
}

/// The signal whose handler raised this.
fn signal_of(raised: &PyErr, py: Python<'_>) -> u8 {
    let signal = raised.value(py).getattr("signal");
    signal
        .and_then(|signal| signal.extract())
        .unwrap_or(INTERRUPT)
}
