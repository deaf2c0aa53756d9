//! Files that are written to a store: visible when all of them are there, gone when something fails.

use core::time::Duration;

use tokio::sync::Mutex;

use super::runtime::wait;
use super::siblings::RemoteSiblings;
use super::upload::{Parts, Upload};
use super::url::{RemoteUrl, Scheme};
use super::{Cloud, Credentials, Failure, Object, Place, Remote};
use crate::error::{Error, ErrorKind, Hint, Result};
use crate::io::{Output, Siblings, Sink, Source, check_plain};
use crate::prelude::*;

/// How many bytes of small files are kept until they get their names.
const KEPT: u64 = 32 << 20;
/// How long removing what was sent may take when the work has failed, or was stopped.
const TIDY: Duration = Duration::from_secs(5);

/// One file or several in a bucket: `s3://`, `gs://`, `az://`, `abfss://`.
///
/// Files are sent in parts while they are written, several at once, and have no name until [`commit`](Output::commit):
/// nothing is listed before that, and nothing is left without it. A file that exists is not replaced: its absence is a
/// condition of the last request, so that it holds also where two write at the same time.
#[derive(Debug)]
pub struct RemoteOutput {
    remote: Remote,
    /// The file, or the prefix of several.
    url: RemoteUrl,
    cloud: Arc<Cloud>,
    /// Empty for several.
    main: String,
    force: bool,
    files: Vec<(String, Upload)>,
    /// Those that were committed.
    named: Vec<(String, Upload)>,
    is_ended: bool,
}

impl RemoteOutput {
    /// For the file of this URL, or for several under a prefix, where it ends with a separator. There must be nothing
    /// under it yet.
    pub fn new(remote: &Remote, url: &RemoteUrl) -> Result<Self> {
        Self::refuse(url)?;
        let main = if url.is_prefix() {
            None
        } else {
            url.file_name()
        };
        if main.is_none() {
            let names = RemoteSiblings::of(remote, url.clone(), None).names()?;
            if names.is_some_and(|names| !names.is_empty()) {
                let message = format!("{url} already has files under it, and is not replaced");
                return Err(Error::new(ErrorKind::Argument, "exists", message));
            }
        }
        Ok(Self {
            remote: remote.clone(),
            url: url.clone(),
            cloud: remote.cloud(url)?,
            main: main.unwrap_or_default(),
            force: false,
            files: Vec::new(),
            named: Vec::new(),
            is_ended: false,
        })
    }

    /// Says of a URL that nothing can be written there, whoever asks. Asks nobody.
    pub fn refuse(url: &RemoteUrl) -> Result<()> {
        if url.is_web() || url.scheme == Scheme::Hub {
            let message = format!(
                "{url}: files are written to buckets (s3://, gs://, az://) and not to web servers; write a local file and upload it"
            );
            return Err(Error::new(ErrorKind::Argument, "write", message));
        }
        Ok(())
    }

    /// Replaces files that exist already.
    #[must_use]
    pub fn force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    /// The name that a single file of this output has. Empty for a prefix.
    pub fn main_name(&self) -> &str {
        &self.main
    }

    /// Says early what the last request would say too.
    fn check_free(&self, url: &RemoteUrl) -> Result<()> {
        // A prefix had nothing under it a moment ago.
        if self.force || self.main.is_empty() {
            return Ok(());
        }
        let object = Object {
            url: url.clone(),
            place: Place::Cloud {
                cloud: self.cloud.clone(),
                key: url.key()?,
            },
        };
        let found = wait(self.remote.control(), async move {
            super::retry::retried(|| object.head()).await
        })?;
        match found {
            Ok(_) => Err(already_exists(url)),
            // Who may not look may still write.
            Err(failure) if matches!(failure.number(), Some(403 | 404)) => Ok(()),
            Err(failure) => Err(failure.about(url, &self.cloud.access)),
        }
    }

    fn name_all(&mut self) -> Result<()> {
        // The file that names the others comes last.
        let main = self.main.clone();
        self.files.sort_by_key(|(name, _)| *name == main);
        let files = Arc::new(Mutex::new(core::mem::take(&mut self.files)));
        let theirs = files.clone();
        let named = wait(self.remote.control(), async move {
            for (name, upload) in theirs.lock().await.iter_mut() {
                upload
                    .name()
                    .await
                    .map_err(|failure| (name.clone(), failure))?;
            }
            Ok(())
        });
        // Also where nobody waited for the end: what is there by then has to be removed.
        self.files = wait(
            None,
            async move { core::mem::take(&mut *files.lock().await) },
        )?;
        named?.map_err(|(name, failure)| {
            let url = self.url.beside(&name);
            let error = if failure.is_taken() && !self.force {
                already_exists(&url)
            } else {
                failure.about(&url, &self.cloud.access)
            };
            let replaced = self
                .files
                .iter()
                .filter(|(_, upload)| self.force && upload.is_named());
            match replaced.count() {
                0 => error,
                n => error.adding(&format!(
                    "; {n} of the files before it are replaced already"
                )),
            }
        })
    }

    /// Keeps what is done; else removes what has no name, and what got one before another file failed.
    fn end(&mut self, is_done: bool) {
        self.is_ended = true;
        let files = core::mem::take(&mut self.files);
        if is_done {
            self.named = files;
        } else {
            remove(files);
        }
    }
}

/// Removes files, as far as they replaced nothing.
fn remove(mut files: Vec<(String, Upload)>) {
    if files.is_empty() {
        return;
    }
    // Whoever stopped the work wants it to be gone too; a store that does not answer is not waited for.
    let _ = wait(None, async move {
        let aborted = async {
            for (_, upload) in &mut files {
                upload.abort().await;
            }
        };
        let _ = tokio::time::timeout(TIDY, aborted).await;
    });
}

impl Output for RemoteOutput {
    fn name(&self) -> Option<&str> {
        Some(self.main.as_str()).filter(|name| !name.is_empty())
    }

    fn begin_tree(&mut self) -> Result<()> {
        if !self.main.is_empty() {
            *self = Self::new(&self.remote, &self.url.as_prefix())?.force(self.force);
        }
        Ok(())
    }

    fn create(&mut self, name: &str, len: Option<u64>) -> Result<Box<dyn Sink + '_>> {
        if self.main.is_empty() {
            name.split('/').try_for_each(check_plain)?;
        } else {
            check_plain(name)?;
        }
        if self.is_ended || self.files.iter().any(|(known, _)| known == name) {
            return Err(Error::argument(format!("{name:?} was begun already")));
        }
        let url = self.url.beside(name);
        self.check_free(&url)?;
        let upload = Upload::new(self.cloud.clone(), url.key()?, self.force);
        let kept: u64 = self
            .files
            .iter()
            .map(|(_, upload)| upload.in_memory())
            .sum();
        self.files.push((name.to_owned(), upload));
        Ok(Box::new(UploadSink {
            url,
            output: self,
            parts: Parts::new(len),
            may_keep: kept < KEPT,
        }))
    }

    fn written(&self, _: &str) -> Result<Option<Arc<dyn Source>>> {
        Ok(None)
    }

    fn commit(&mut self) -> Result<()> {
        if self.is_ended {
            return Err(Error::argument("the output was committed already"));
        }
        let named = self.name_all();
        self.end(named.is_ok());
        named
    }

    fn committed(&self, name: &str) -> Result<Option<Arc<dyn Source>>> {
        if !self.named.iter().any(|(known, _)| known == name) {
            return Ok(None);
        }
        let url = self.url.beside(name);
        self.remote.open_file(&url, None).map(Some)
    }

    fn take_back(&mut self) {
        remove(core::mem::take(&mut self.named));
    }
}

impl Drop for RemoteOutput {
    fn drop(&mut self) {
        self.end(false);
    }
}

fn already_exists(url: &RemoteUrl) -> Error {
    let message = format!("{url} already exists");
    Error::new(ErrorKind::Argument, "exists", message).hinting(Hint::Replace)
}

struct UploadSink<'o> {
    output: &'o mut RemoteOutput,
    url: RemoteUrl,
    parts: Parts,
    may_keep: bool,
}

impl UploadSink<'_> {
    fn about(
        url: &RemoteUrl,
        access: &Credentials,
        done: Result<Result<(), Failure>>,
    ) -> Result<()> {
        done?.map_err(|failure| failure.about(url, access))
    }
}

impl Sink for UploadSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let control = self.output.remote.settings.control.clone();
        let Some((_, upload)) = self.output.files.last_mut() else {
            return Ok(());
        };
        let written = self.parts.write(bytes, upload, control.as_deref());
        Self::about(&self.url, &self.output.cloud.access, written)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let control = self.output.remote.settings.control.clone();
        let Some((_, upload)) = self.output.files.last_mut() else {
            return Ok(());
        };
        let finished = self.parts.finish(upload, self.may_keep, control.as_deref());
        Self::about(&self.url, &self.output.cloud.access, finished)
    }
}
