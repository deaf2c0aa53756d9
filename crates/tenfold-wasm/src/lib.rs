//! The viewer in a browser: the worker opens files and asks questions by a plain C interface.

// There is no host elsewhere.
#![cfg(target_family = "wasm")]

mod border;
mod host;

use std::sync::{Arc, OnceLock};

use serde::Deserialize;
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

/// A file that was dropped, and those that were dropped with it: their names, and the numbers that the host knows them by.
#[derive(Deserialize)]
struct Dropped {
    name: String,
    file: u32,
    beside: Vec<(String, u32)>,
}

/// Adds what was dropped; gives whether it was understood.
fn open(message: &[u8]) -> bool {
    let Ok(dropped) = serde_json::from_slice::<Dropped>(message) else {
        return false;
    };
    let name = dropped.name.clone();
    let beside = Beside::new(dropped.beside);
    view().add(&dropped.name, move || {
        let source: Arc<dyn Source> = HostFile::open(dropped.file);
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
