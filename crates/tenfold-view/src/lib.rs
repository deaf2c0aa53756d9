#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod answer;
mod bytes;
mod columns;
mod jobs;
mod meta;
mod opened;
mod query;
mod save;
mod snippet;
mod summary;
mod values;
mod words;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tenfold::{Archive, Error, Result};

pub use answer::{Answer, Kind};
pub use save::Saving;

use answer::Refusal;
use jobs::Jobs;
use opened::Opened;
use query::Query;

/// Where the page is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// Files are dropped on the page, and read in the browser.
    Dropped,
    /// A program on the same machine serves the page and reads the files.
    Served,
}

/// Archives and the work that goes on with them.
///
/// Questions may come from several threads at once; only those about one piece of work wait for each other.
#[derive(Debug)]
pub struct View {
    mode: Mode,
    archives: RwLock<Vec<Option<Arc<Opened>>>>,
    pair: RwLock<Option<[usize; 2]>>,
    jobs: Mutex<Jobs>,
}

impl View {
    /// Nothing is open yet.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            archives: RwLock::default(),
            pair: RwLock::default(),
            jobs: Mutex::default(),
        }
    }

    /// Adds an archive under the name that people know it by, and gives its number. It is opened when the first question
    /// about it comes.
    pub fn add(
        &self,
        name: &str,
        open: impl Fn() -> Result<Archive> + Send + Sync + 'static,
    ) -> usize {
        let mut archives = unpoisoned(self.archives.write());
        archives.push(Some(Arc::new(Opened::new(name, Box::new(open)))));
        archives.len() - 1
    }

    /// Says which two archives somebody wants to see side by side.
    pub fn compare(&self, left: usize, right: usize) {
        *unpoisoned(self.pair.write()) = Some([left, right]);
    }

    /// Answers a question, such as `summary?a=0`.
    pub fn call(&self, question: &str) -> Answer {
        match self.answer(question) {
            Ok(answer) => answer,
            Err(refusal) => refusal.answer(),
        }
    }

    /// What `npy?…` gives, to be written piece by piece; a refusal as by [`call`](Self::call).
    pub fn saving(&self, question: &str) -> std::result::Result<Saving, Answer> {
        let saving = || {
            let query = Query::parse(question)?;
            save::saving(&*self.opened(&query)?, &query)
        };
        saving().map_err(|refusal| refusal.answer())
    }

    fn answer(&self, question: &str) -> std::result::Result<Answer, Refusal> {
        let query = &Query::parse(question)?;
        match query.path() {
            "hello" => summary::hello(self.mode, &self.all(), *unpoisoned(self.pair.read())),
            "summary" => summary::summary(&*self.opened(query)?),
            "findings" => summary::findings(&*self.opened(query)?),
            "meta" => meta::meta(&*self.opened(query)?, query),
            "snippet" => snippet::snippet(&*self.opened(query)?, query),
            "columns" => columns::columns(&*self.opened(query)?),
            "tensor" => summary::tensor(&*self.opened(query)?, query),
            "extents" => bytes::extents(&*self.opened(query)?, query),
            "stored" => bytes::stored(&*self.opened(query)?, query),
            "values" => values::values(&*self.opened(query)?, query),
            "npy" => save::whole(&*self.opened(query)?, query),
            "tile" | "stats" | "verify" => {
                let job = jobs::begin(&*self.opened(query)?, query)?;
                self.jobs().add(job)
            }
            "diff" => {
                let (a, b) = (self.opened(query)?, self.archive(query.number("b")?)?);
                let job = jobs::begin_diff(&a, &b, query)?;
                self.jobs().add(job)
            }
            "step" => {
                let job = self.jobs().find(query.number("job")?)?;
                // The list is not locked while work is done.
                unpoisoned(job.lock()).step(query.number_or("bytes", 1 << 20)?)
            }
            "drop" => self.jobs().forget(query.number("job")?),
            "close" => self.close(query.number("a")?),
            other => Err(Refusal::unknown(format!("there is no question {other:?}"))),
        }
    }

    fn all(&self) -> Vec<Option<Arc<Opened>>> {
        unpoisoned(self.archives.read()).clone()
    }

    fn opened(&self, query: &Query) -> std::result::Result<Arc<Opened>, Refusal> {
        self.archive(query.number("a")?)
    }

    fn archive(&self, number: u64) -> std::result::Result<Arc<Opened>, Refusal> {
        let archives = unpoisoned(self.archives.read());
        let found = usize::try_from(number)
            .ok()
            .and_then(|place| archives.get(place));
        match found {
            Some(Some(opened)) => Ok(opened.clone()),
            _ => Err(Refusal::unknown(format!("there is no archive {number}"))),
        }
    }

    fn close(&self, number: u64) -> std::result::Result<Answer, Refusal> {
        self.archive(number)?;
        let mut archives = unpoisoned(self.archives.write());
        if let Some(opened) = usize::try_from(number)
            .ok()
            .and_then(|place| archives.get_mut(place))
        {
            *opened = None;
        }
        Answer::json(&Closed { closed: number })
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        unpoisoned(self.jobs.lock())
    }
}

#[derive(serde::Serialize)]
struct Closed {
    closed: u64,
}

/// What a lock guards: who panicked while holding it has changed nothing by halves.
fn unpoisoned<T>(locked: std::result::Result<T, PoisonError<T>>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Library(error)
    }
}
