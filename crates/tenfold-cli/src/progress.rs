//! A progress bar for work that takes a while, where somebody can see it.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use tenfold::Control;

use crate::urls::Urls;

/// Work that is over sooner needs no bar.
const PATIENCE: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_millis(100);
const LOOK: &str = "{percent:>3}% [{bar:30}] {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left{msg}";

/// Watches work from a thread of its own until it is dropped.
pub(crate) struct Progress {
    over: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

impl Progress {
    /// Watches `control`; does nothing where standard error is not a terminal.
    pub(crate) fn watch(control: Arc<Control>, urls: &Urls) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (seen, urls) = (over.clone(), urls.clone());
        let watcher = io::stderr()
            .is_terminal()
            .then(|| thread::spawn(move || show(&control, &urls, &seen)));
        Self { over, watcher }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            watcher.thread().unpark();
            // Only the bar is lost if drawing it failed.
            let _ = watcher.join();
        }
    }
}

fn show(control: &Control, urls: &Urls, over: &AtomicBool) {
    let started = Instant::now();
    let mut bar = None;
    while !over.load(Ordering::Relaxed) {
        thread::park_timeout(INTERVAL);
        if started.elapsed() < PATIENCE {
            continue;
        }
        let bar = bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template(LOOK).unwrap_or(ProgressStyle::default_bar());
            ProgressBar::new(0).with_style(style)
        });
        // What a codec leaves is known only when it is done.
        bar.set_length(control.total().max(control.done()));
        bar.set_position(control.done());
        if let Some(traffic) = urls.traffic_in_words() {
            bar.set_message(traffic);
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}
