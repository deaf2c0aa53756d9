//! One file on its way to a store: its parts, several of them at once, and nothing of it visible.

use alloc::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use object_store::multipart::PartId;
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
};

use super::cloud::Cloud;
use super::failure::Failure;
use super::retry::retried;
use super::runtime::{Begun, begin};
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

/// Where a file goes, and what of it is there already.
#[derive(Debug)]
pub(super) struct Upload {
    cloud: Arc<Cloud>,
    /// What it will be called.
    key: Path,
    /// Whether it may replace something.
    force: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    /// In memory, and sent when it gets its name.
    Small(Bytes),
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

impl Upload {
    pub(super) fn new(cloud: Arc<Cloud>, key: Path, force: bool) -> Self {
        Self {
            cloud,
            key,
            force,
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
        let begun = begin(async move {
            retried(|| async { Ok(cloud.parts.create_multipart(&place).await?) }).await
        })?;
        Ok(begun.wait(control)?.map(|id| {
            self.state = State::Parts {
                at,
                id,
                parts: Vec::new(),
            };
        }))
    }

    /// Sends the next part.
    pub(super) fn send(
        &self,
        index: usize,
        bytes: Bytes,
    ) -> Result<Option<Begun<Result<PartId, Failure>>>> {
        let State::Parts { at, id, .. } = &self.state else {
            return Ok(None);
        };
        let (cloud, at, id) = (self.cloud.clone(), at.clone(), id.clone());
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
        let (cloud, key) = (self.cloud.clone(), self.key.clone());
        // The state stays what it is until it is known to be another: whoever stops this removes what is there.
        match &self.state {
            State::Small(bytes) => {
                let mode = if self.force {
                    PutMode::Overwrite
                } else {
                    PutMode::Create
                };
                retried(|| async {
                    let payload = PutPayload::from_bytes(bytes.clone());
                    let options = PutOptions::from(mode.clone());
                    cloud.objects.put_opts(&key, payload, options).await?;
                    Ok(())
                })
                .await?;
            }
            State::Parts { at, id, parts } => {
                let store = match (&cloud.creating, self.force) {
                    (Some(creating), false) => creating,
                    _ => &cloud.parts,
                };
                retried(|| async {
                    store.complete_multipart(at, id, parts.clone()).await?;
                    Ok(())
                })
                .await?;
                if *at != key {
                    self.state = State::Aside(at.clone());
                    return self.rename().await;
                }
            }
            State::Aside(_) | State::Named | State::Gone => return Ok(()),
        }
        self.state = State::Named;
        Ok(())
    }

    /// From the name that nobody has to its own, if nobody has that one either.
    async fn rename(&mut self) -> Result<(), Failure> {
        let State::Aside(aside) = &self.state else {
            return Ok(());
        };
        let options = CopyOptions::new().with_mode(CopyMode::Create);
        retried(|| async {
            Ok(self
                .cloud
                .objects
                .copy_opts(aside, &self.key, options.clone())
                .await?)
        })
        .await?;
        // It is whole under its name: what is left beside it is only not tidy.
        let _ = self.cloud.objects.delete(aside).await;
        self.state = State::Named;
        Ok(())
    }

    /// Removes what was sent.
    pub(super) async fn abort(&mut self) {
        match core::mem::replace(&mut self.state, State::Gone) {
            State::Parts { at, id, .. } => {
                let _ = retried(|| async { Ok(self.cloud.parts.abort_multipart(&at, &id).await?) })
                    .await;
            }
            State::Aside(aside) => {
                let _ = self.cloud.objects.delete(&aside).await;
            }
            State::Named if !self.force => {
                let _ = self.cloud.objects.delete(&self.key).await;
            }
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
