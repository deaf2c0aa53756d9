//! Long work on a thread of its own, while the thread that asked for it watches signals and says how far it is.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use tenfold::{Control, Error, Work};

use crate::error::raised;

/// How often signals are looked at.
const TURN: Duration = Duration::from_millis(20);
/// How often progress is told, at most.
const TELLING: Duration = Duration::from_millis(50);

/// Whether the work is over.
#[derive(Default)]
pub(crate) struct Over {
    is_over: Mutex<bool>,
    told: Condvar,
}

impl Over {
    pub(crate) fn tell(&self) {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.told.notify_all();
    }

    /// Waits for a turn; true when it is over.
    pub(crate) fn wait_a_turn(&self) -> bool {
        let guard = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.told.wait_timeout_while(guard, TURN, |over| !*over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn wait(&self) {
        while !self.wait_a_turn() {}
    }
}

/// What work is watched and stopped by: all that is done by its leave, one after the other, counts as one.
pub(crate) struct Watch {
    threads: usize,
    control: Arc<Control>,
}

impl Watch {
    pub(crate) fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// For one piece of the work.
    pub(crate) fn work(&self) -> Work {
        Work::new()
            .threads(self.threads)
            .control(self.control.clone())
    }
}

/// Does work without the interpreter's lock. What a signal handler or `progress` raises stops it and is raised.
pub(crate) fn supervised<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    threads: usize,
    work: impl FnOnce(&Watch) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let done = supervised_as(py, progress, threads, work)?;
    done.map_err(raised)
}

/// The same for work that has errors of its own.
pub(crate) fn supervised_as<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    threads: usize,
    work: impl FnOnce(&Watch) -> T + Send,
) -> PyResult<T> {
    let control = Arc::new(Control::new());
    let watch = Watch {
        threads,
        control: control.clone(),
    };
    let over = Over::default();
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let result = panic::catch_unwind(AssertUnwindSafe(|| work(&watch)));
            over.tell();
            result
        });
        let mut stopped = Ok(());
        let mut last_told = Instant::now();
        while !py.detach(|| over.wait_a_turn()) {
            let told = py.check_signals().and_then(|()| {
                if last_told.elapsed() < TELLING {
                    return Ok(());
                }
                last_told = Instant::now();
                tell(progress, &control, false)
            });
            if let Err(why) = told {
                control.cancel();
                // Never with the lock: what the work holds may need it to go away.
                py.detach(|| over.wait());
                stopped = Err(why);
                break;
            }
        }
        let result = worker.join().and_then(|result| result);
        stopped?;
        match result {
            Ok(done) => {
                tell(progress, &control, true)?;
                Ok(done)
            }
            Err(panic) => panic::resume_unwind(panic),
        }
    })
}

/// Says how far the work is: bytes that are done, and bytes in all.
fn tell(progress: Option<&Bound<'_, PyAny>>, control: &Control, ended: bool) -> PyResult<()> {
    let Some(progress) = progress else {
        return Ok(());
    };
    let total = control.total();
    let done = if ended {
        total
    } else {
        control.done().min(total)
    };
    progress.call1((done, total)).map(drop)
}
