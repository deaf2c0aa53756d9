//! One file on its way to a store: its parts, several of them at once, and nothing of it visible.

use alloc::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use object_store::multipart::PartId;
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode,
    PutPayload,
};

use super::cloud::Cloud;
use super::failure::Failure;
use super::retry::{retried, retried_once};
use super::runtime::{Begun, begin, wait};
use crate::error::Result;
use crate::prelude::*;
use crate::threads::Control;

/// What stores take at least as a part, and more.
const PART: u64 = 8 << 20;
/// Where the length is not known: ten thousand of them are 160 GB.
const PART_OF_UNKNOWN: u64 = 16 << 20;
/// How many parts a file may have.
const PARTS: u64 = 10_000;
/// How many bytes are under way at once.
const IN_FLIGHT: u64 = 64 << 20;
/// How many parts are under way at once, at most.
pub(super) const UNDER_WAY: u64 = IN_FLIGHT / PART;

/// Where a file goes, and what of it is there already.
#[derive(Debug)]
pub(super) struct Upload {
    cloud: Arc<Cloud>,
    /// What it will be called.
    key: Path,
    /// Whether it may replace something.
    force: bool,
    /// How many bytes were sent in parts.
    len: u64,
    /// Whether it may have its name without our knowing: it was asked for, and no answer came.
    is_unsure: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    /// In memory, and sent when it gets its name.
    Small(Bytes),
    /// A store was asked for an upload, and has not said yet what it is called.
    Beginning {
        at: Path,
        id: Beginning,
    },
    /// In parts, under a name that may be another one until the end.
    Parts {
        at: Path,
        id: String,
        parts: Vec<PartId>,
    },
    /// Whole and under another name.
    Aside(Path),
    Named,
    Gone,
}

/// The name of an upload that is begun: whoever does not wait for it any more has to end it all the same.
type Beginning = Shared<BoxFuture<'static, Result<String, Failure>>>;

impl Upload {
    pub(super) fn new(cloud: Arc<Cloud>, key: Path, force: bool) -> Self {
        Self {
            cloud,
            key,
            force,
            len: 0,
            is_unsure: false,
            state: State::Small(Bytes::new()),
        }
    }

    /// Whether it has its name.
    pub(super) fn is_named(&self) -> bool {
        matches!(self.state, State::Named)
    }

    /// How many bytes of it are in memory.
    pub(super) fn in_memory(&self) -> u64 {
        match &self.state {
            State::Small(bytes) => bytes.len() as u64,
            _ => 0,
        }
    }

    /// Begins to send parts.
    pub(super) fn begin_parts(&mut self, control: Option<&Control>) -> Result<Result<(), Failure>> {
        // A store without a condition at the end gets the file under a name that nobody has.
        let at = if self.force || self.cloud.creating.is_some() {
            self.key.clone()
        } else {
            Path::from(format!("{}.tenfold-{}", self.key, random()))
        };
        let (cloud, place) = (self.cloud.clone(), at.clone());
        let id = async move {
            retried(|| async { Ok(cloud.parts.create_multipart(&place).await?) }).await
        };
        let id = id.boxed().shared();
        self.state = State::Beginning {
            at: at.clone(),
            id: id.clone(),
        };
        Ok(wait(control, id)?.map(|id| {
            self.state = State::Parts {
                at,
                id,
                parts: Vec::new(),
            };
        }))
    }

    /// Sends the next part.
    pub(super) fn send(
        &mut self,
        index: usize,
        bytes: Bytes,
    ) -> Result<Option<Begun<Result<PartId, Failure>>>> {
        let State::Parts { at, id, .. } = &self.state else {
            return Ok(None);
        };
        let (cloud, at, id) = (self.cloud.clone(), at.clone(), id.clone());
        self.len += bytes.len() as u64;
        let begun = begin(async move {
            retried(|| async {
                let payload = PutPayload::from_bytes(bytes.clone());
                Ok(cloud.parts.put_part(&at, &id, index, payload).await?)
            })
            .await
        })?;
        Ok(Some(begun))
    }

    fn push(&mut self, part: PartId) {
        if let State::Parts { parts, .. } = &mut self.state {
            parts.push(part);
        }
    }

    /// Gives it its name.
    pub(super) async fn name(&mut self) -> Result<(), Failure> {
        // Until there is an answer, which whoever stops this does not wait for.
        self.is_unsure = true;
        let named = self.name_it().await;
        self.is_unsure = named.as_ref().is_err_and(Failure::is_transient);
        named
    }

    async fn name_it(&mut self) -> Result<(), Failure> {
        // The state stays what it is until it is known to be another: whoever stops this removes what is there.
        match &self.state {
            State::Small(bytes) => {
                let put = || self.put(bytes);
                retried_once(put, || self.has_name()).await?;
            }
            State::Parts { at, id, parts } => {
                let complete = || self.complete(at, id, parts);
                retried_once(complete, || self.has_name()).await?;
                if *at != self.key {
                    self.state = State::Aside(at.clone());
                    return self.rename().await;
                }
            }
            State::Aside(_) | State::Beginning { .. } | State::Named | State::Gone => return Ok(()),
        }
        self.state = State::Named;
        Ok(())
    }

    async fn put(&self, bytes: &Bytes) -> Result<(), Failure> {
        let mode = if self.force {
            PutMode::Overwrite
        } else {
            PutMode::Create
        };
        let payload = PutPayload::from_bytes(bytes.clone());
        let put = self.cloud.objects.put_opts(&self.key, payload, mode.into());
        put.await?;
        Ok(())
    }

    async fn complete(&self, at: &Path, id: &String, parts: &[PartId]) -> Result<(), Failure> {
        let store = match (&self.cloud.creating, self.force) {
            (Some(creating), false) => creating,
            _ => &self.cloud.parts,
        };
        store.complete_multipart(at, id, parts.to_vec()).await?;
        Ok(())
    }

    /// From the name that nobody has to its own, if nobody has that one either.
    async fn rename(&mut self) -> Result<(), Failure> {
        let State::Aside(aside) = &self.state else {
            return Ok(());
        };
        let copy = || async {
            let options = CopyOptions::new().with_mode(CopyMode::Create);
            let copied = self.cloud.objects.copy_opts(aside, &self.key, options);
            Ok(copied.await?)
        };
        retried_once(copy, || self.has_name()).await?;
        // It is whole under its name: what is left beside it is only not tidy.
        let _ = self.cloud.objects.delete(aside).await;
        self.state = State::Named;
        Ok(())
    }

    /// Whether what was asked for was done, where no answer said so: what is there is what was sent, and no other file.
    async fn has_name(&self) -> Result<bool, Failure> {
        match &self.state {
            State::Small(bytes) => self.is_there(bytes).await,
            State::Parts { at, id, .. } => self.is_complete(at, id).await,
            State::Aside(aside) => {
                let (Some(ours), Some(found)) =
                    (self.head(aside).await?, self.head(&self.key).await?)
                else {
                    return Ok(false);
                };
                // A copy is no older than what it is of, and there was none before.
                Ok(ours.size == found.size && ours.last_modified <= found.last_modified)
            }
            State::Named => Ok(true),
            State::Beginning { .. } | State::Gone => Ok(false),
        }
    }

    /// Whether the parts of an upload are a file already. Else they are removed.
    async fn is_complete(&self, at: &Path, id: &String) -> Result<bool, Failure> {
        let abort = retried(|| async { Ok(self.cloud.parts.abort_multipart(at, id).await?) });
        let is_gone = match abort.await {
            Ok(()) => false,
            Err(failure) if failure.number() == Some(404) => true,
            Err(failure) => return Err(failure),
        };
        // A name that nobody else has says as much.
        let may_be = is_gone || *at != self.key;
        Ok(may_be && (self.head(at).await?).is_some_and(|found| found.size == self.len))
    }

    async fn is_there(&self, bytes: &Bytes) -> Result<bool, Failure> {
        let get = retried(|| async {
            // One byte more than there should be.
            let options = GetOptions {
                range: Some(GetRange::Bounded(0..bytes.len() as u64 + 1)),
                ..GetOptions::default()
            };
            let found = self.cloud.objects.get_opts(&self.key, options).await?;
            Ok(found.bytes().await?)
        });
        match get.await {
            Ok(found) => Ok(found == *bytes),
            // It has no first byte.
            Err(failure) if failure.number() == Some(416) => Ok(bytes.is_empty()),
            Err(failure) if failure.number() == Some(404) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    async fn head(&self, key: &Path) -> Result<Option<ObjectMeta>, Failure> {
        match retried(|| async { Ok(self.cloud.objects.head(key).await?) }).await {
            Ok(found) => Ok(Some(found)),
            Err(failure) if failure.number() == Some(404) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Removes what was sent.
    pub(super) async fn abort(&mut self) {
        let state = core::mem::replace(&mut self.state, State::Gone);
        let objects = &self.cloud.objects;
        let delete = |key: Path| async move {
            let _ = objects.delete(&key).await;
        };
        match state {
            State::Beginning { at, id } => {
                if let Ok(id) = id.await {
                    let _ = self.cloud.parts.abort_multipart(&at, &id).await;
                }
            }
            State::Parts { at, id, .. } => {
                let may_be_file = self.is_unsure && !self.force;
                if self
                    .is_complete(&at, &id)
                    .await
                    .is_ok_and(|is| is && may_be_file)
                {
                    delete(at).await;
                }
            }
            State::Aside(aside) => delete(aside).await,
            State::Named if !self.force => delete(self.key.clone()).await,
            State::Small(_) | State::Named | State::Gone => {}
        }
    }
}

/// What is written to a file: cut into parts, of which several are under way.
#[derive(Debug)]
pub(super) struct Parts {
    buffer: BytesMut,
    size: u64,
    sent: usize,
    under_way: VecDeque<Begun<Result<PartId, Failure>>>,
}

impl Parts {
    /// For a file of this length, where it is known.
    pub(super) fn new(len: Option<u64>) -> Self {
        let size = match len {
            Some(len) => PART.max(len.div_ceil(PARTS).next_multiple_of(1 << 20)),
            None => PART_OF_UNKNOWN,
        };
        Self {
            buffer: BytesMut::new(),
            size,
            sent: 0,
            under_way: VecDeque::new(),
        }
    }

    /// Takes bytes; sends a part when it is full.
    pub(super) fn write(
        &mut self,
        mut bytes: &[u8],
        upload: &mut Upload,
        control: Option<&Control>,
    ) -> Result<Result<(), Failure>> {
        while !bytes.is_empty() {
            // A full part waits for a byte behind it: a file of exactly one part is small.
            if self.buffer.len() as u64 == self.size
                && let Err(failure) = self.send(upload, control)?
            {
                return Ok(Err(failure));
            }
            let room = self.size.saturating_sub(self.buffer.len() as u64);
            let taken = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            let (now, later) = bytes.split_at(taken);
            self.buffer.extend_from_slice(now);
            bytes = later;
        }
        Ok(Ok(()))
    }

    fn send(
        &mut self,
        upload: &mut Upload,
        control: Option<&Control>,
    ) -> Result<Result<(), Failure>> {
        if self.sent == 0
            && let Err(failure) = upload.begin_parts(control)?
        {
            return Ok(Err(failure));
        }
        if self.sent as u64 == PARTS {
            return Ok(Err(Failure::Store(format!(
                "a file whose length is not known before it is written has {} GB at most; write it to a disk and upload it",
                PARTS * self.size / 1_000_000_000
            ))));
        }
        let most = (IN_FLIGHT / self.size).max(2);
        while self.under_way.len() as u64 >= most {
            if let Err(failure) = self.end_first(upload, control)? {
                return Ok(Err(failure));
            }
        }
        let part = self.buffer.split().freeze();
        self.under_way.extend(upload.send(self.sent, part)?);
        self.sent += 1;
        Ok(Ok(()))
    }

    fn end_first(
        &mut self,
        upload: &mut Upload,
        control: Option<&Control>,
    ) -> Result<Result<(), Failure>> {
        let Some(first) = self.under_way.pop_front() else {
            return Ok(Ok(()));
        };
        Ok(first.wait(control)?.map(|part| upload.push(part)))
    }

    /// Sends what is left. A small file stays in memory if there is room for it.
    pub(super) fn finish(
        mut self,
        upload: &mut Upload,
        may_keep: bool,
        control: Option<&Control>,
    ) -> Result<Result<(), Failure>> {
        if self.sent == 0 && may_keep {
            upload.state = State::Small(self.buffer.freeze());
            return Ok(Ok(()));
        }
        if let Err(failure) = self.send(upload, control)? {
            return Ok(Err(failure));
        }
        while !self.under_way.is_empty() {
            if let Err(failure) = self.end_first(upload, control)? {
                return Ok(Err(failure));
            }
        }
        Ok(Ok(()))
    }
}

/// A word that nobody has used: names of files in a bucket are not guessed by those who could do harm with them.
fn random() -> String {
    use core::hash::{BuildHasher, Hasher};
    let hasher = std::collections::hash_map::RandomState::new().build_hasher();
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_large_as_the_file_needs() {
        assert_eq!(Parts::new(Some(1)).size, PART);
        assert_eq!(Parts::new(None).size, PART_OF_UNKNOWN);
        let large = Parts::new(Some(1 << 40)).size;
        assert_eq!(large % (1 << 20), 0);
        assert!(large * PARTS >= 1 << 40);
    }
}
