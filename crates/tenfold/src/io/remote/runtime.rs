//! The thread that the network's work is done on: made at the first URL, and never before.

use std::future::Future;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;

use super::clients::Clients;
use crate::error::{Error, Result};
use crate::threads::Control;

/// How often whoever waits looks whether it was asked to stop.
const LOOK: Duration = Duration::from_millis(50);

/// What a process has of the network.
#[derive(Debug)]
pub(super) struct Network {
    process: u32,
    handle: Handle,
    pub(super) clients: Clients,
}

/// The network of this process. A process that was forked has none of its parent's threads and must not use its
/// connections: it gets its own.
pub(super) fn network() -> Result<Arc<Network>> {
    static NETWORK: OnceLock<Mutex<Option<Arc<Network>>>> = OnceLock::new();
    let mut network = match NETWORK.get_or_init(Mutex::default).lock() {
        Ok(network) => network,
        Err(poisoned) => poisoned.into_inner(),
    };
    let process = std::process::id();
    if let Some(network) = network.as_ref().filter(|known| known.process == process) {
        return Ok(network.clone());
    }
    let made = Arc::new(Network {
        process,
        handle: start().map_err(|cause| Error::io("cannot start to use the network", cause))?,
        clients: Clients::default(),
    });
    // The clients of a parent are not even dropped: that would close connections which it still uses.
    core::mem::forget(network.replace(made.clone()));
    Ok(made)
}

fn start() -> std::io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("tenfold-network".into())
        .spawn(move || runtime.block_on(core::future::pending::<()>()))?;
    Ok(handle)
}

/// Does work on the network's thread and waits for it, until `control` says to stop.
///
/// Not `block_on`: whoever calls may be inside of a runtime of its own.
pub(super) fn wait<T: Send + 'static>(
    control: Option<&Control>,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T> {
    begin(work)?.wait(control)
}

/// Begins work on the network's thread.
pub(super) fn begin<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<Begun<T>> {
    let (sender, receiver) = sync_channel(1);
    let task = network()?.handle.spawn(async move {
        // Nobody waits any more where this fails.
        let _ = sender.send(work.await);
    });
    Ok(Begun { receiver, task })
}

/// Work that is under way; it ends when nobody waits for it any more.
#[derive(Debug)]
pub(super) struct Begun<T> {
    receiver: Receiver<T>,
    task: JoinHandle<()>,
}

impl<T> Begun<T> {
    pub(super) fn wait(self, control: Option<&Control>) -> Result<T> {
        loop {
            if control.is_some_and(Control::is_canceled) {
                return Err(Error::canceled());
            }
            match self.receiver.recv_timeout(LOOK) {
                Ok(done) => return Ok(done),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let cause = std::io::Error::other("its thread ended");
                    return Err(Error::io("cannot use the network", cause));
                }
            }
        }
    }
}

impl<T> Drop for Begun<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
