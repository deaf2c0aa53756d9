//! Reads several tensors into the caller's memory.

use super::{Archive, Sliced, Tensor};
use crate::error::{Error, Result};
use crate::prelude::*;
use crate::threads::Work;
use crate::transform::{Data, View};

/// What [`Archive::read_many`] reads: a tensor, or a slice of one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Reading<'a> {
    /// As [`Tensor::read_into`] reads it.
    Tensor(Tensor<'a>),
    /// As [`Sliced::read_into`] reads it.
    Sliced(Sliced<'a>),
}

impl<'a> From<Tensor<'a>> for Reading<'a> {
    fn from(tensor: Tensor<'a>) -> Self {
        Reading::Tensor(tensor)
    }
}

impl<'a> From<Sliced<'a>> for Reading<'a> {
    fn from(sliced: Sliced<'a>) -> Self {
        Reading::Sliced(sliced)
    }
}

impl Reading<'_> {
    fn tensor(&self) -> &Tensor<'_> {
        match self {
            Reading::Tensor(tensor) => tensor,
            Reading::Sliced(sliced) => sliced.tensor(),
        }
    }

    fn view<'v>(&'v self, work: &'v Work) -> Result<View<'v>> {
        // The threads are shared by all of them.
        let data = Data {
            control: Some(&work.control),
            threads: 1,
            ..self.tensor().archive().data()
        };
        match self {
            Reading::Tensor(tensor) => tensor.canonical_view(data),
            Reading::Sliced(sliced) => sliced.view(data),
        }
    }

    fn blame(&self, error: Error) -> Error {
        self.tensor().blame(error)
    }
}

impl Archive {
    /// Reads tensors and slices, of one archive or of several, each into memory of the caller of exactly its length:
    /// dense, row-major, little-endian. Large ones are shared by the threads, and the work can be watched and stopped.
    ///
    /// ```
    /// use tenfold::{Archive, Work};
    /// let mut b = Archive::builder();
    /// b.tensor("a", [2], [1u8, 2])?;
    /// b.tensor("b", [2], [3u8, 4])?;
    /// let archive = b.finish();
    /// let mut memory = [0; 4];
    /// let (first, second) = memory.split_at_mut(2);
    /// let reads = [(archive.tensor("a")?, first), (archive.tensor("b")?, second)];
    /// Archive::read_many(reads, &Work::new())?;
    /// assert_eq!(memory, [1, 2, 3, 4]);
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    pub fn read_many<'a, 'o, R: Into<Reading<'a>>>(
        reads: impl IntoIterator<Item = (R, &'o mut [u8])>,
        work: &Work,
    ) -> Result<()> {
        let reads = reads.into_iter().map(|(what, out)| (what.into(), out));
        let reads: Vec<(Reading<'a>, _)> = reads.collect();
        let bytes = reads.iter().map(|(_, out)| out.len() as u64).sum();
        work.control.expect(bytes);
        read_all(reads, work)
    }
}

#[cfg(not(feature = "std"))]
fn read_all<'a, 'o>(
    reads: impl IntoIterator<Item = (Reading<'a>, &'o mut [u8])>,
    work: &Work,
) -> Result<()> {
    for (what, out) in reads {
        let read = what.view(work).and_then(|view| view.read_all(out));
        read.map_err(|error| what.blame(error))?;
        work.control.advance(out.len() as u64)?;
    }
    Ok(())
}

#[cfg(feature = "std")]
use parallel::read_all;

#[cfg(feature = "std")]
mod parallel {
    use core::marker::PhantomData;
    use std::sync::{Mutex, PoisonError};

    use super::Reading;
    use crate::error::Result;
    use crate::prelude::*;
    use crate::threads::{self, InPieces, Opened, Work};
    use crate::transform::{View, as_size};

    pub(super) fn read_all(reads: Vec<(Reading<'_>, &mut [u8])>, work: &Work) -> Result<()> {
        let (what, places): (Vec<_>, Vec<_>) = reads.into_iter().unzip();
        let reads = Reads {
            work,
            lifetimes: PhantomData,
        };
        let archives = what.iter().map(|what| what.tensor().archive());
        let threads = archives
            .map(|archive| archive.threads_for(work.threads))
            .max();
        let threads = threads.unwrap_or(work.threads);
        threads::in_pieces(&reads, what.iter().zip(places), threads).map(drop)
    }

    struct Reads<'r, 'o> {
        work: &'r Work,
        lifetimes: PhantomData<&'o ()>,
    }

    /// One that was opened, and the places of its pieces, each of which one thread takes.
    struct Job<'r, 'o> {
        what: &'r Reading<'r>,
        view: View<'r>,
        places: Vec<Mutex<&'o mut [u8]>>,
        piece: u64,
    }

    impl<'r, 'o> InPieces for Reads<'r, 'o> {
        type Item = (&'r Reading<'r>, &'o mut [u8]);
        type Job = Job<'r, 'o>;
        type Found = ();
        type Outcome = ();
        type Scratch = ();

        fn open(&self, (what, out): Self::Item) -> Result<Opened<Self::Job, ()>> {
            let view = what.view(self.work).and_then(|view| {
                view.check_room(out)?;
                Ok(view)
            });
            let view = view.map_err(|error| what.blame(error))?;
            // What can only be read from the beginning is one piece, and so is nothing.
            let piece = if view.is_random() {
                view.piece()
            } else {
                view.len().max(1)
            };
            let places = out.chunks_mut(as_size(piece)?);
            let places: Vec<_> = places.map(Mutex::new).collect();
            let pieces = places.len() as u64;
            let job = Job {
                what,
                view,
                places,
                piece,
            };
            Ok(Opened::new(job, pieces, ()))
        }

        fn is_light(&self, _: &Self::Job) -> bool {
            // It is not done in steps.
            false
        }

        fn piece(&self, job: &Self::Job, piece: u64, (): &mut ()) -> Result<()> {
            let Some(place) = job.places.get(as_size(piece)?) else {
                return Ok(());
            };
            let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
            let read = job.view.read_piece(piece * job.piece, &mut place);
            read.map_err(|error| job.what.blame(error))?;
            self.work.control.advance(place.len() as u64)
        }

        fn fold(&self, (): &mut (), (): ()) -> bool {
            true
        }
    }
}
