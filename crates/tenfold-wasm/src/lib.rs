//! The viewer in a browser: the worker opens files and asks questions by a plain C interface.

// There is no host elsewhere.
#![cfg(target_family = "wasm")]

mod border;
mod host;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tenfold::OpenOptions;
use tenfold::io::Limits;
use tenfold_view::{Answer, Kind, Mode, View};

use host::{Directory, Dropped, HostFile};

/// What is held of one tensor at most: a worker has less memory than a program.
const TENSOR_MEMORY: u64 = 256 << 20;

fn view() -> &'static View {
    static VIEW: OnceLock<View> = OnceLock::new();
    VIEW.get_or_init(|| View::new(Mode::Dropped))
}

/// What was dropped last: several archives of it are opened one after the other.
static DROPPED: Mutex<Option<(u32, Arc<Dropped>)>> = Mutex::new(None);

/// Adds an archive of files that were dropped together. Each field ends with a zero byte: the number that the host knows the
/// first of the files by; the name that people know the archive by; the path of the file that is opened, or of a directory with
/// a slash at its end, or nothing for all that was dropped; and the paths of all files, unless the last archive was of the
/// same. Gives the number of the archive, or nothing where the message was not understood.
fn open(message: &[u8]) -> Option<usize> {
    let message = String::from_utf8_lossy(message);
    let mut fields = message.split_terminator('\0');
    let first = fields.next()?.parse().ok()?;
    let (name, path) = (fields.next()?, fields.next()?.to_owned());
    let paths: Vec<_> = fields.collect();
    let mut last = DROPPED.lock().unwrap_or_else(PoisonError::into_inner);
    if !paths.is_empty() {
        *last = Some((first, Dropped::new(paths.into_iter(), first)));
    }
    let (_, dropped) = last.clone().filter(|(known, _)| *known == first)?;
    let add = move || {
        let limits = Limits::default().tensor_memory(TENSOR_MEMORY);
        let options = OpenOptions::new().limits(limits);
        let parent = path.rfind('/').map_or("", |end| &path[..=end]);
        let beside = Directory::new(dropped.clone(), parent);
        match dropped.find(&path) {
            Some(file) => {
                let name = &path[parent.len()..];
                options.read_beside(HostFile::open(file), Some(name), &beside)
            }
            None => options.read_directory(&beside),
        }
    };
    Some(view().add(name, add))
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
