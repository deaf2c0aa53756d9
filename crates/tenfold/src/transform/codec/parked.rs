//! Decoders that stopped in the middle of a stream, for whoever reads on behind.
//!
//! A compressed variable of a MAT-file may hold hundreds of arrays. Each is read by itself, and each time the stream is
//! decoded from its beginning; with the decoder of the array before, only what lies in between is.

#[cfg(all(feature = "std", feature = "deflate"))]
pub(super) use with_std::Place;

/// Decoders of the streams of one archive.
#[derive(Default)]
pub(crate) struct Parked {
    #[cfg(all(feature = "std", feature = "deflate"))]
    decoders: std::sync::Mutex<alloc::vec::Vec<with_std::Decoder>>,
}

#[cfg(all(feature = "std", feature = "deflate"))]
mod with_std {
    use super::Parked;
    use crate::model::SourceId;
    use crate::prelude::*;
    use crate::transform::Input;
    use crate::transform::codec::deflate::Paused;

    /// How many are kept, of some 43 KiB and up to 64 KiB that were fetched: one for every thread, and some for streams that
    /// are read in turns.
    const MOST: usize = 16;

    /// Where in a stream a decoder stopped: the compressed bytes, and decoded ones that are behind it.
    pub(in super::super) struct Place {
        stream: (SourceId, Range<u64>),
        decoded: u64,
    }

    pub(super) struct Decoder {
        place: Place,
        paused: Paused,
    }

    impl Place {
        /// None in what is in no file.
        pub(in super::super) fn new(input: &Input<'_>, decoded: u64) -> Option<Self> {
            let stream = input.place()?;
            Some(Self { stream, decoded })
        }
    }

    impl Parked {
        /// The decoder that is nearest in front of a place, and how many bytes it has decoded.
        pub(in super::super) fn take(&self, place: &Place) -> Option<(Paused, u64)> {
            let mut decoders = self.decoders.lock().ok()?;
            let before = decoders.iter().enumerate().filter(|(_, decoder)| {
                decoder.place.stream == place.stream && decoder.place.decoded <= place.decoded
            });
            let (nearest, _) = before.max_by_key(|(_, decoder)| decoder.place.decoded)?;
            let decoder = decoders.remove(nearest);
            Some((decoder.paused, decoder.place.decoded))
        }

        pub(in super::super) fn put(&self, place: Place, paused: Paused) {
            let Ok(mut decoders) = self.decoders.lock() else {
                return;
            };
            if decoders.len() >= MOST {
                decoders.remove(0);
            }
            decoders.push(Decoder { place, paused });
        }
    }
}
