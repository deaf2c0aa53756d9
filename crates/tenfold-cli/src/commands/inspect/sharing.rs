//! Tensors that have the same bytes of a file, all of them or some: tied weights, and views of one storage.

use std::ops::Range;

use tenfold::model::{Payload, TensorInfo};

/// For each tensor, the place of the first one that it shares bytes with, where that is another.
pub(super) fn shared_with(tensors: &[&TensorInfo]) -> Vec<Option<usize>> {
    let mut ranges = Vec::new();
    for (place, info) in tensors.iter().enumerate() {
        let stored = info.parts.iter().filter_map(|part| stretch(&part.payload));
        let stored = stored.filter(|(_, range)| !range.is_empty());
        ranges.extend(stored.map(|(within, range)| (within, range.start, range.end, place)));
    }
    ranges.sort_unstable();
    let mut firsts = vec![None; tensors.len()];
    for together in ranges.chunk_by(chained()) {
        let mut places: Vec<usize> = together.iter().map(|(.., place)| *place).collect();
        places.sort_unstable();
        places.dedup();
        let Some((first, others)) = places.split_first() else {
            continue;
        };
        for other in others {
            if let Some(shared) = firsts.get_mut(*other) {
                shared.get_or_insert(*first);
            }
        }
    }
    firsts
}

/// A file, and where in it a compressed stream begins; none for bytes that are stored as they are.
type Within = (usize, Option<u64>);

/// Where bytes are: within what, from, to, and whose.
type Stored = (Within, u64, u64, usize);

/// The bytes that a part is, of a file or of what a compressed stream in it decodes to.
fn stretch(payload: &Payload) -> Option<(Within, Range<u64>)> {
    let (file, range) = payload.stored()?;
    Some(match payload {
        Payload::Encoded { .. } => ((file.index(), Some(range.start)), payload.within()),
        _ => ((file.index(), None), range),
    })
}

/// Whether a range begins before all ranges of the same run end.
fn chained() -> impl FnMut(&Stored, &Stored) -> bool {
    let mut end = 0;
    let mut within = None;
    move |one, next| {
        if within != Some(one.0) || one.1 >= end {
            (within, end) = (Some(one.0), one.2);
        }
        end = end.max(one.2);
        next.0 == one.0 && next.1 < end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenfold::model::{Codec, DType, Payload, SourceId};

    #[test]
    fn tensors_share_bytes_with_the_first_that_has_some_of_them() {
        let tensor = |name: &str, range: std::ops::Range<u64>| {
            let shape = vec![range.end - range.start];
            TensorInfo::dense(name, DType::U8, shape, Payload::main(range))
        };
        let tensors = [
            tensor("view", 4..6),
            tensor("all", 0..10),
            tensor("end", 8..10),
            tensor("alone", 10..12),
            tensor("empty", 5..5),
            tensor("tied", 20..24),
            tensor("weights", 20..24),
        ];
        let tensors: Vec<_> = tensors.iter().collect();
        let shared = shared_with(&tensors);
        assert_eq!(shared, [None, Some(0), Some(0), None, None, None, Some(5)]);
    }

    #[test]
    fn stretches_of_one_compressed_stream_are_shared_only_where_they_overlap() {
        let tensor = |name: &str, skip: u64, len: u64| {
            let codec = Codec::Zlib {
                level: 0,
                skip,
                ends: false,
            };
            let payload = Payload::Encoded {
                source: SourceId::MAIN,
                range: 128..900,
                codec,
                len,
            };
            TensorInfo::dense(name, DType::U8, vec![len], payload)
        };
        let tensors = [
            tensor("first", 56, 100),
            tensor("second", 156, 100),
            tensor("again", 56, 100),
        ];
        let tensors: Vec<_> = tensors.iter().collect();
        assert_eq!(shared_with(&tensors), [None, None, Some(0)]);
    }
}
