//! Places where a test makes the system fail. Outside the library's own tests they do nothing.

#[cfg(not(test))]
#[inline]
pub(crate) fn point(_: &'static str) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
pub(crate) use injected::{Faults, point};

#[cfg(test)]
mod injected {
    use std::cell::RefCell;
    use std::io;

    std::thread_local! {
        static STATE: RefCell<State> = const {
            RefCell::new(State { left: usize::MAX, never: &[], failed: None })
        };
    }

    /// What fails on this thread.
    struct State {
        /// Places that are passed before the one that fails.
        left: usize,
        /// Places that fail every time, as on a system that does not have them.
        never: &'static [&'static str],
        failed: Option<&'static str>,
    }

    /// The same as a value: while it lives, one operation of this thread fails.
    pub(crate) struct Faults;

    impl Faults {
        /// Lets the operation fail that has `left` others before it, and `never` every time.
        pub(crate) fn after(left: usize, never: &'static [&'static str]) -> Self {
            STATE.set(State {
                left,
                never,
                failed: None,
            });
            Self
        }

        /// What failed.
        pub(crate) fn failed(&self) -> Option<&'static str> {
            STATE.with_borrow(|state| state.failed)
        }
    }

    impl Drop for Faults {
        fn drop(&mut self) {
            STATE.set(State {
                left: usize::MAX,
                never: &[],
                failed: None,
            });
        }
    }

    /// Fails where it is told to.
    pub(crate) fn point(what: &'static str) -> io::Result<()> {
        STATE.with_borrow_mut(|state| {
            if state.never.contains(&what) {
                return Err(io::ErrorKind::Unsupported.into());
            }
            if state.failed.is_none() && state.left == 0 {
                state.failed = Some(what);
                // Input/output error.
                return Err(io::Error::from_raw_os_error(5));
            }
            state.left = state.left.saturating_sub(1);
            Ok(())
        })
    }
}
