//! What is tried again, how often, and when.

use std::future::Future;
use std::time::{Duration, Instant};

use super::failure::Failure;

/// How often something is tried, in all.
const TRIES: u32 = 10;
/// How often a connection is tried that never came about: a name that is wrong stays so.
const CONNECTS: u32 = 3;
/// From the first failure on: a large part takes its time before.
const LONGEST: Duration = Duration::from_secs(180);
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// The tries of one request, or of what is left of it.
#[derive(Debug)]
pub(super) struct Tries {
    first_failure: Option<Instant>,
    made: u32,
}

impl Tries {
    pub(super) fn new() -> Self {
        Self {
            first_failure: None,
            made: 0,
        }
    }

    /// Waits before the next try; the failure, where there is none.
    pub(super) async fn again(&mut self, failure: Failure) -> Result<(), Failure> {
        self.made += 1;
        let most = match failure {
            Failure::Connect { .. } => CONNECTS,
            _ => TRIES,
        };
        let since = *self.first_failure.get_or_insert_with(Instant::now);
        if !failure.is_transient() || self.made >= most || since.elapsed() > LONGEST {
            return Err(failure);
        }
        let wait = FIRST_WAIT
            .saturating_mul(1 << (self.made - 1).min(8))
            .min(LONGEST_WAIT);
        tokio::time::sleep(wait.mul_f64(jitter())).await;
        Ok(())
    }
}

/// Does something until it succeeds, or fails for good.
pub(super) async fn retried<T, F>(mut what: impl FnMut() -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let mut tries = Tries::new();
    loop {
        match what().await {
            Ok(done) => return Ok(done),
            Err(failure) => tries.again(failure).await?,
        }
    }
}

/// The same for what has an effect that it may have once: where a server refuses a second try because of what the first has
/// done, whose answer was lost, `is_done` finds out.
pub(super) async fn retried_once<F, D>(
    mut what: impl FnMut() -> F,
    is_done: impl FnOnce() -> D,
) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>>,
    D: Future<Output = Result<bool, Failure>>,
{
    let mut tries = Tries::new();
    loop {
        match what().await {
            Ok(()) => return Ok(()),
            Err(failure) if tries.made > 0 && failure.is_about_what_is_there() => {
                return if is_done().await? {
                    Ok(())
                } else {
                    Err(failure)
                };
            }
            Err(failure) => tries.again(failure).await?,
        }
    }
}

/// Between a half and one, so that requests that failed together do not come again together.
fn jitter() -> f64 {
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = nanos.map_or(0, |since| since.subsec_nanos());
    0.5 + f64::from(nanos % 1000) / 2000.0
}
