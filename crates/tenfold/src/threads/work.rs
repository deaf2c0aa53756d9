//! How work is done, whatever the work is.

use super::Control;
use crate::prelude::*;

/// On how many threads an operation works, and who watches it. All options of operations hold one.
///
/// ```
/// use std::sync::Arc;
/// use tenfold::{Control, ErrorKind, Work, ops};
/// let control = Arc::new(Control::new());
/// let options = ops::DigestOptions::new().work(Work::new().threads(2).control(control.clone()));
///
/// control.cancel(); // by a button, or by Ctrl-C
/// let archive = tenfold::Archive::builder().finish();
/// assert_eq!(ops::digest(&archive, &options).unwrap_err().kind(), ErrorKind::Canceled);
///
/// // A clone has a control of its own: nobody has canceled it.
/// assert!(ops::digest(&archive, &options.clone()).is_ok());
/// # Ok::<(), tenfold::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Work {
    pub(crate) threads: usize,
    pub(crate) control: Arc<Control>,
}

impl Work {
    /// One thread for every core, watched by nobody.
    pub fn new() -> Self {
        Self::default()
    }

    /// Threads; 0 is one for every core. Results do not depend on it.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// What watches and stops the work; without, nobody does.
    #[must_use]
    pub fn control(mut self, control: Arc<Control>) -> Self {
        self.control = control;
        self
    }

    /// The same work, under the same control.
    pub(crate) fn shared(&self) -> Self {
        Self {
            threads: self.threads,
            control: self.control.clone(),
        }
    }
}

/// As many threads under a control of its own: what was stopped once must not stop whatever is done by its example.
impl Clone for Work {
    fn clone(&self) -> Self {
        Self::new().threads(self.threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_is_not_canceled_and_keeps_its_threads() {
        let work = Work::new().threads(3);
        work.control.cancel();
        let clone = work.clone();
        assert!(!clone.control.is_canceled());
        assert_eq!(clone.threads, 3);
        assert!(work.shared().control.is_canceled());
    }
}
