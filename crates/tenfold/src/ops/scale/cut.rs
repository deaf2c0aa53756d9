//! How work is cut into items of about the same number of bytes.

use super::data::Item;
use crate::prelude::*;

/// Where files are cut: a multiple of the stripes of parallel file systems, and of the pages that two machines must not share.
pub(super) const MULTIPLE: u64 = 4 << 20;

/// How large items are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Size {
    /// So many of them, as far as that is possible.
    Items(usize),
    /// About so many bytes each.
    Bytes(u64),
}

impl Size {
    /// About how many bytes of so many an item has.
    pub(super) fn of(self, all: u64) -> u64 {
        match self {
            Size::Items(items) => all.div_ceil(items.max(1) as u64).max(1),
            Size::Bytes(bytes) => bytes.max(1),
        }
    }
}

/// Ranges of a file, each of which begins and ends at a multiple, but for its end.
pub(super) fn ranges(len: u64, size: Size, multiple: u64) -> Vec<[u64; 2]> {
    let multiple = multiple.max(1);
    let count = match size {
        Size::Items(items) => items.max(1) as u64,
        Size::Bytes(bytes) => len.div_ceil(bytes.max(1)).max(1),
    };
    let units = len.div_ceil(multiple);
    let mut ranges = Vec::new();
    let mut from = 0;
    for number in 1..=count.min(units.max(1)) {
        let share = u128::from(units) * u128::from(number) / u128::from(count.min(units.max(1)));
        let to = u64::try_from(share)
            .unwrap_or(units)
            .saturating_mul(multiple);
        let to = to.min(len);
        if to > from || ranges.is_empty() {
            ranges.push([from, to]);
        }
        from = to;
    }
    ranges
}

/// Neighbours that together have about so many bytes; nothing is left out.
pub(super) fn groups(lens: impl Iterator<Item = u64>, target: u64) -> Vec<[usize; 2]> {
    let mut groups = Vec::new();
    let (mut from, mut bytes, mut to) = (0, 0u64, 0);
    for len in lens {
        // Whatever is nearer to the target: with this one, or without.
        let with = bytes.saturating_add(len);
        if to > from && with > target && with - target > target.saturating_sub(bytes) {
            groups.push([from, to]);
            (from, bytes) = (to, 0);
        }
        bytes = bytes.saturating_add(len);
        to += 1;
    }
    if to > from || groups.is_empty() {
        groups.push([from, to]);
    }
    groups
}

/// Neighbours in so many groups at most, with about the same number of bytes each.
pub(super) fn shares(lens: &[u64], size: Size) -> Vec<[usize; 2]> {
    let all = lens.iter().fold(0u64, |all, len| all.saturating_add(*len));
    let target = size.of(all);
    let Size::Items(items) = size else {
        return groups(lens.iter().copied(), target);
    };
    // Where one is large, the others share what is left, so that there are as many items as were asked for.
    let mut groups = Vec::new();
    let (mut from, mut left, mut bytes) = (0, all, 0u64);
    for (place, len) in lens.iter().enumerate() {
        bytes = bytes.saturating_add(*len);
        let open = items.saturating_sub(groups.len()).max(1);
        let after = lens.len() - place - 1;
        let is_enough =
            bytes >= left.div_ceil(open as u64).max(1) || after < open.saturating_sub(1);
        if is_enough && open > 1 && after > 0 {
            groups.push([from, place + 1]);
            left = left.saturating_sub(bytes);
            (from, bytes) = (place + 1, 0);
        }
    }
    groups.push([from, lens.len()]);
    groups
}

/// How many items each of several has that have so many bytes: one at least, and of all not more than `most`. Nothing where
/// there are more of them than that.
pub(super) fn portions(bytes: &[u64], most: usize) -> Option<Vec<usize>> {
    let more = most.checked_sub(bytes.len())?;
    let sum = |bytes: &[u64]| bytes.iter().map(|len| u128::from(*len)).sum::<u128>();
    let all = sum(bytes).max(1);
    let mut before = 0u128;
    let mut given = 0;
    let portion = |len: &u64| {
        before += u128::from(*len);
        let until = usize::try_from(before * more as u128 / all).unwrap_or(more);
        let own = until - given;
        given = until;
        1 + own
    };
    Some(bytes.iter().map(portion).collect())
}

/// Numbers in words that schedulers take: `3,7-9`.
pub(super) fn numbers(items: &[usize]) -> String {
    let mut text = String::new();
    let mut rest = items;
    while let Some((&first, tail)) = rest.split_first() {
        let run = tail
            .iter()
            .zip(first + 1..)
            .take_while(|(item, next)| **item == *next)
            .count();
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&first.to_string());
        if run > 0 {
            text.push_str(&format!("-{}", first + run));
        }
        rest = tail.get(run..).unwrap_or_default();
    }
    text
}

/// Items of whole inputs.
pub(super) fn whole([from, to]: [usize; 2], first: usize) -> Item {
    Item::Inputs {
        inputs: [first + from, first + to],
        list: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_a_file_and_begin_at_multiples() {
        for len in [0, 1, 99, 100, 101, 1000, 12345] {
            for items in [1, 2, 7, 64] {
                let ranges = ranges(len, Size::Items(items), 100);
                assert!(ranges.len() <= items);
                assert_eq!(ranges[0][0], 0);
                assert_eq!(ranges.last().unwrap()[1], len);
                for pair in ranges.windows(2) {
                    assert_eq!(pair[0][1], pair[1][0]);
                    assert!(pair[0][1] % 100 == 0 && pair[1][1] > pair[1][0]);
                }
            }
        }
        assert_eq!(
            ranges(1000, Size::Items(3), 100),
            [[0, 300], [300, 600], [600, 1000]]
        );
    }

    #[test]
    fn neighbours_share_work_evenly() {
        assert_eq!(
            shares(&[1; 8], Size::Items(4)),
            [[0, 2], [2, 4], [4, 6], [6, 8]]
        );
        assert_eq!(
            shares(&[9, 1, 1, 1], Size::Items(3)),
            [[0, 1], [1, 3], [3, 4]]
        );
        assert_eq!(shares(&[], Size::Items(3)), [[0, 0]]);
        assert_eq!(shares(&[0, 0], Size::Items(5)), [[0, 1], [1, 2]]);
        assert_eq!(
            groups([5, 5, 5, 20, 1].into_iter(), 10),
            [[0, 2], [2, 3], [3, 4], [4, 5]]
        );
    }

    #[test]
    fn portions_are_as_many_as_were_asked_for_and_never_more() {
        assert_eq!(portions(&[1, 99], 4), Some(vec![1, 3]));
        assert_eq!(portions(&[50, 50, 50], 3), Some(vec![1, 1, 1]));
        assert_eq!(portions(&[0, 0], 5), Some(vec![1, 1]));
        assert_eq!(portions(&[1, 2, 3], 2), None);
        let most = portions(&[u64::MAX; 3], 1000).unwrap();
        assert_eq!(most.iter().sum::<usize>(), 1000);
    }

    #[test]
    fn numbers_are_said_as_schedulers_take_them() {
        assert_eq!(numbers(&[3, 7, 8, 9]), "3,7-9");
        assert_eq!(numbers(&[0]), "0");
        assert_eq!(numbers(&[]), "");
    }
}
