//! The viewer in a browser: the worker opens files and asks questions by a plain C interface.

// There is no host elsewhere.
#![cfg(target_family = "wasm")]

mod border;
mod host;

use std::sync::{Arc, OnceLock};

use tenfold::OpenOptions;
use tenfold::io::{Limits, Source};
use tenfold_view::{Answer, Kind, Mode, View};

use host::{Beside, HostFile};

/// What is held of one tensor at most: a worker has less memory than a program.
const TENSOR_MEMORY: u64 = 256 << 20;

fn view() -> &'static View {
    static VIEW: OnceLock<View> = OnceLock::new();
    VIEW.get_or_init(|| View::new(Mode::Dropped))
}

/// Adds what was dropped together: the number that the host knows the first file by, and the names of all, each behind a
/// zero byte. The first is opened, the others lie beside it and have the numbers that follow. Gives whether it was
/// understood.
fn open(message: &[u8]) -> bool {
    let message = String::from_utf8_lossy(message);
    let mut fields = message.split('\0');
    let Some(first) = fields.next().and_then(|number| number.parse().ok()) else {
        return false;
    };
    let names = fields.map(ToOwned::to_owned);
    let beside: Vec<(String, u32)> = names.zip(first..).collect();
    let Some((name, _)) = beside.first().cloned() else {
        return false;
    };
    let beside = Beside::new(beside);
    view().add(&name.clone(), move || {
        let source: Arc<dyn Source> = HostFile::open(first);
        let limits = Limits::default().tensor_memory(TENSOR_MEMORY);
        OpenOptions::new()
            .limits(limits)
            .read_beside(source, Some(&name), &beside)
    });
    true
}

/// The answer, and its kind as the host knows it: 0 where it says what is wrong.
fn call(question: &[u8]) -> (u32, Vec<u8>) {
    let question = String::from_utf8_lossy(question);
    let Answer { kind, bytes, .. } = view().call(&question);
    let kind = match kind {
        Kind::Refusal | Kind::Unknown => 0,
        _ => 1,
    };
    (kind, bytes)
}
