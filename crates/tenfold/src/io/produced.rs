//! Bytes that a function makes in order, when they are wanted.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::io::{Source, as_size, check_range};
use crate::prelude::*;

/// Makes bytes in order and gives them to `put`; once more each time it is called.
pub(crate) type Produce = dyn Fn(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> + Send + Sync;

/// What a function makes. With threads, it runs beside whoever reads and is never far ahead; it begins anew where
/// something is read that was passed already.
pub(crate) struct Produced {
    len: u64,
    produce: Arc<Produce>,
    #[cfg(feature = "std")]
    running: std::sync::Mutex<Option<running::Running>>,
}

impl Produced {
    pub(crate) fn new(len: u64, produce: Arc<Produce>) -> Self {
        Self {
            len,
            produce,
            #[cfg(feature = "std")]
            running: std::sync::Mutex::default(),
        }
    }

    fn wrong_length(&self, than: &str, made: u64) -> Error {
        let len = self.len;
        Error::argument(format!("the stream has {made} bytes{than}, expected {len}"))
    }
}

impl Source for Produced {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        check_range(self.len, &range)?;
        let mut bytes = vec![0; as_size(range.end - range.start)?];
        self.read_into(range.start, &mut bytes)?;
        Ok(bytes.into())
    }

    fn read_into(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        check_range(self.len, &(at..at.saturating_add(buffer.len() as u64)))?;
        self.fill(at, buffer)
    }

    fn is_in_order(&self) -> bool {
        true
    }
}

#[cfg(not(feature = "std"))]
impl Produced {
    /// Without threads it has to run from the beginning for everything that is read.
    fn fill(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        let (mut made, mut filled) = (0u64, 0usize);
        let (end, is_end) = (
            at + buffer.len() as u64,
            at + buffer.len() as u64 == self.len,
        );
        let made_all = (self.produce)(&mut |bytes| {
            let skipped = usize::try_from(at.saturating_sub(made)).unwrap_or(usize::MAX);
            let wanted = bytes.get(skipped..).unwrap_or_default();
            for (to, from) in buffer.iter_mut().skip(filled).zip(wanted) {
                *to = *from;
                filled += 1;
            }
            made += bytes.len() as u64;
            // Enough; at the end it is of interest whether there is more.
            if made >= end && !is_end {
                return Err(Error::canceled());
            }
            Ok(())
        });
        match made_all {
            Err(_) if made >= end && !is_end => Ok(()),
            Err(error) => Err(error),
            Ok(()) if made < end || is_end && made > end => Err(self.wrong_length("", made)),
            Ok(()) => Ok(()),
        }
    }
}

#[cfg(feature = "std")]
mod running {
    use std::sync::PoisonError;
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
    use std::thread;

    use super::{Produce, Produced};
    use crate::error::{Error, Result};
    use crate::prelude::*;

    /// Bytes that are handed over at once.
    const CHUNK: usize = 1 << 20;

    enum Message {
        Bytes(Vec<u8>),
        Ended(Result<()>),
    }

    /// A function at work on a thread of its own. It ends when nobody listens any more.
    pub(super) struct Running {
        messages: Receiver<Message>,
        /// What was made and not read yet, from `taken` on.
        chunk: Vec<u8>,
        taken: usize,
        /// Where that is.
        at: u64,
    }

    impl Running {
        fn start(produce: Arc<Produce>) -> Result<Self> {
            // One chunk waits while the next is made.
            let (sender, messages) = sync_channel(1);
            let work = move || {
                let mut chunks = Chunks {
                    sender: &sender,
                    chunk: Vec::new(),
                };
                let ended = produce(&mut |bytes| chunks.put(bytes)).and_then(|()| chunks.send());
                // Nobody may listen any more.
                let _ = sender.send(Message::Ended(ended));
            };
            let thread = thread::Builder::new().name("tenfold-stream".into());
            (thread.spawn(work)).map_err(|cause| Error::io("cannot start a thread", cause))?;
            Ok(Self {
                messages,
                chunk: Vec::new(),
                taken: 0,
                at: 0,
            })
        }

        /// What is made next, at most `most` bytes; nothing at the end.
        fn next(&mut self, most: usize) -> Result<&[u8]> {
            while self.taken == self.chunk.len() {
                match self.messages.recv() {
                    Ok(Message::Bytes(chunk)) => (self.chunk, self.taken) = (chunk, 0),
                    Ok(Message::Ended(Ok(()))) => return Ok(&[]),
                    Ok(Message::Ended(Err(error))) => return Err(error),
                    Err(_) => return Err(Error::argument("the stream ended with a panic")),
                }
            }
            let from = self.taken;
            self.taken = self.chunk.len().min(from.saturating_add(most));
            self.at += (self.taken - from) as u64;
            Ok(self.chunk.get(from..self.taken).unwrap_or_default())
        }
    }

    /// Gathers what a function gives, be it byte by byte or all at once.
    struct Chunks<'s> {
        sender: &'s SyncSender<Message>,
        chunk: Vec<u8>,
    }

    impl Chunks<'_> {
        fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
            while !bytes.is_empty() {
                let (now, later) = bytes.split_at(bytes.len().min(CHUNK - self.chunk.len()));
                self.chunk.extend_from_slice(now);
                bytes = later;
                if self.chunk.len() == CHUNK {
                    self.send()?;
                }
            }
            Ok(())
        }

        fn send(&mut self) -> Result<()> {
            let chunk = core::mem::take(&mut self.chunk);
            (self.sender.send(Message::Bytes(chunk))).map_err(|_| Error::canceled())
        }
    }

    impl Produced {
        pub(super) fn fill(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
            let mut kept = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            // What fails is not kept.
            let mut running = match kept.take() {
                Some(running) if running.at <= at => running,
                _ => Running::start(self.produce.clone())?,
            };
            let short = |running: &Running| self.wrong_length("", running.at);
            while running.at < at {
                let most = usize::try_from(at - running.at).unwrap_or(usize::MAX);
                if running.next(most)?.is_empty() {
                    return Err(short(&running));
                }
            }
            let mut rest = &mut *buffer;
            while !rest.is_empty() {
                let made = running.next(rest.len())?;
                if made.is_empty() {
                    return Err(short(&running));
                }
                let (now, later) = rest.split_at_mut(made.len());
                now.copy_from_slice(made);
                rest = later;
            }
            if running.at < self.len {
                *kept = Some(running);
            } else if !running.next(usize::MAX)?.is_empty() {
                return Err(self.wrong_length(" or more", running.at));
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    /// The numbers from 0 on, three bytes at a time, and how often it was begun.
    fn counting(made: u64) -> (Arc<Produce>, Arc<AtomicUsize>) {
        let begun = Arc::new(AtomicUsize::new(0));
        let count = begun.clone();
        let produce = move |put: &mut dyn FnMut(&[u8]) -> Result<()>| {
            count.fetch_add(1, Relaxed);
            let all: Vec<u8> = (0..made).map(|n| n.to_le_bytes()[0]).collect();
            all.chunks(3).try_for_each(&mut *put)
        };
        (Arc::new(produce), begun)
    }

    #[test]
    fn what_is_read_in_order_is_made_once() {
        let (produce, begun) = counting(100);
        let source = Produced::new(100, produce);
        for at in (0..100).step_by(10) {
            let expected: Vec<u8> = (at..at + 10).collect();
            assert_eq!(
                source.read(at.into()..u64::from(at) + 10).unwrap(),
                expected
            );
        }
        let once = if cfg!(feature = "std") { 1 } else { 10 };
        assert_eq!(begun.load(Relaxed), once);
        assert_eq!(source.read(50..52).unwrap()[..], [50, 51]);
        assert_eq!(source.read(7..9).unwrap()[..], [7, 8]);
    }

    #[test]
    fn another_length_is_refused_at_the_end() {
        for made in [99, 101, 0, 1000] {
            let (produce, _) = counting(made);
            let source = Produced::new(100, produce);
            assert!(source.read(0..100).is_err(), "{made}");
        }
    }

    #[test]
    fn the_function_may_fail() {
        let source = Produced::new(4, Arc::new(|_| Err(Error::argument("no more"))));
        assert_eq!(source.read(0..4).unwrap_err().message(), "no more");
    }
}
