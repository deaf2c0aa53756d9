//! What is tried again, how often, and when.

use std::future::Future;
use std::time::{Duration, Instant};

use super::failure::Failure;

/// How often something is tried, in all.
const TRIES: u32 = 10;
/// How often a connection is tried that never came about: a name that is wrong stays so.
const CONNECTS: u32 = 3;
const LONGEST: Duration = Duration::from_secs(180);
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// The tries of one request, or of what is left of it.
#[derive(Debug)]
pub(super) struct Tries {
    begun: Instant,
    made: u32,
}

impl Tries {
    pub(super) fn new() -> Self {
        Self {
            begun: Instant::now(),
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
        if !failure.is_transient() || self.made >= most || self.begun.elapsed() > LONGEST {
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

/// Between a half and one, so that requests that failed together do not come again together.
fn jitter() -> f64 {
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = nanos.map_or(0, |since| since.subsec_nanos());
    0.5 + f64::from(nanos % 1000) / 2000.0
}
