//! A tensor in boxes that lie anywhere and fill it: what several programs stored of it, or several devices.
//!
//! The sides of all boxes are where the grid is cut, so that every chunk of it lies in one box. Mostly it is all of the
//! box; where it is not, the box is a strided storage of it.

use core::fmt;

use super::{Chunks, Cuts, Locate, Located, ReadFile};
use crate::error::{Error, Result};
use crate::model::{Shape, Strides};
use crate::prelude::*;

/// Chunks for every box, at most: boxes that are cut by the sides of all others in every direction.
const CUT: u64 = 64;
/// Chunks that few boxes may be cut into.
const FREE: u64 = 4096;

/// Some neighbouring elements along every dimension.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    /// The first index along every dimension.
    pub(crate) start: Shape,
    /// How many there are.
    pub(crate) sides: Shape,
}

impl Tile {
    fn range(&self, axis: usize) -> Range<u64> {
        let start = self.start.get(axis).copied().unwrap_or(0);
        let side = self.sides.get(axis).copied().unwrap_or(0);
        start..start.saturating_add(side)
    }

    /// Says that it is not inside a tensor.
    pub(crate) fn check_inside(&self, shape: &Shape) -> Result<(), String> {
        let ranks = (self.start.len(), self.sides.len());
        if ranks != (shape.len(), shape.len()) {
            let message = format!(
                "a piece has {} first indices and {} sizes, the tensor has {} dimensions",
                ranks.0,
                ranks.1,
                shape.len()
            );
            return Err(message);
        }
        let mut sides = self.start.iter().zip(&*self.sides).zip(&**shape);
        let is_inside = |((start, side), dim): ((&u64, &u64), &u64)| {
            start.checked_add(*side).is_some_and(|end| end <= *dim)
        };
        if sides.all(is_inside) {
            Ok(())
        } else {
            Err(format!("the piece {self} is not inside {shape:?}"))
        }
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for axis in 0..self.start.len() {
            let comma = if axis > 0 { ", " } else { "" };
            let Range { start, end } = self.range(axis);
            write!(f, "{comma}{start}:{end}")?;
        }
        f.write_str("]")
    }
}

/// Finds the elements of boxes.
pub(crate) trait FindTile: fmt::Debug + Send + Sync {
    /// Where the elements of a box are, by its place in the list. Files are numbered as [`Chunks::files`] lists them.
    fn find(&self, read: &ReadFile<'_>, tile: usize) -> Result<Located>;
}

impl Chunks {
    /// A tensor in boxes, or why they do not fill it: one is not inside, two overlap, or something is left.
    pub(crate) fn tiled(
        shape: &Shape,
        width: usize,
        tiles: Vec<Tile>,
        find: Arc<dyn FindTile>,
    ) -> Result<Self, String> {
        for tile in &tiles {
            tile.check_inside(shape)?;
        }
        let mut chunks = Self::new(shape.clone(), width);
        chunks.padded = false;
        if shape.contains(&0) {
            return Ok(chunks);
        }
        let cuts = cuts(shape, &tiles);
        chunks.grid = cuts.iter().cloned().map(Cuts::At).collect();
        let counts = chunks.counts();
        let table = table(&cuts, &counts, &tiles)?;
        let is_regular = table.len() == tiles.iter().filter(|tile| !is_empty(tile)).count();
        chunks.index = Some(Arc::new(Tiling {
            cuts,
            counts,
            table,
            tiles: if is_regular { Vec::new() } else { tiles },
            find,
        }));
        Ok(chunks)
    }
}

fn is_empty(tile: &Tile) -> bool {
    tile.sides.contains(&0)
}

/// Where the sides of the boxes are, for every dimension.
fn cuts(shape: &Shape, tiles: &[Tile]) -> Vec<Vec<u64>> {
    let full = || tiles.iter().filter(|tile| !is_empty(tile));
    let of_axis = |(axis, dim): (usize, &u64)| {
        let mut places = Vec::new();
        for Range { start, end } in full().map(|tile| tile.range(axis)) {
            for place in [start, end] {
                // Most boxes have the sides of the one before.
                let is_new = places.last() != Some(&place);
                if place > 0 && place < *dim && is_new {
                    push_tight(&mut places, place);
                }
            }
        }
        places.sort_unstable();
        places.dedup();
        places
    };
    shape.iter().enumerate().map(of_axis).collect()
}

/// No box.
const NONE: u32 = u32::MAX;

/// The box that each chunk is in.
fn table(cuts: &[Vec<u64>], counts: &[u64], tiles: &[Tile]) -> Result<Vec<u32>, String> {
    let most = CUT.saturating_mul(tiles.len() as u64).saturating_add(FREE);
    let count = counts.iter().copied().try_fold(1u64, u64::checked_mul);
    let count = count.filter(|count| *count <= most);
    let Some(count) = count.and_then(|count| usize::try_from(count).ok()) else {
        let pieces = tiles.len();
        let message = format!("{pieces} pieces cut it into more than {most} parts");
        return Err(message);
    };
    let mut table = vec![NONE; count];
    for (number, tile) in tiles.iter().enumerate().filter(|(_, tile)| !is_empty(tile)) {
        let spans: Vec<Range<u64>> = (cuts.iter().enumerate())
            .map(|(axis, cuts)| {
                let Range { start, end } = tile.range(axis);
                let first = cuts.partition_point(|cut| *cut <= start);
                let last = cuts.partition_point(|cut| *cut < end);
                first as u64..last as u64 + 1
            })
            .collect();
        let number = u32::try_from(number).unwrap_or(NONE);
        fill(&mut table, counts, &spans, number).map_err(|other| {
            let other = tiles.get(other as usize).unwrap_or(tile);
            format!("the pieces {other} and {tile} overlap")
        })?;
    }
    match table.iter().position(|tile| *tile == NONE) {
        None => Ok(table),
        Some(cell) => {
            let mut rest = cell as u64;
            let mut index: Vec<u64> = (cuts.iter().zip(counts).rev())
                .map(|(cuts, count)| {
                    let number = rest % (*count).max(1);
                    rest /= (*count).max(1);
                    begin(cuts, number)
                })
                .collect();
            index.reverse();
            Err(format!("no piece has the element {index:?}"))
        }
    }
}

/// Where a chunk begins along a dimension.
fn begin(cuts: &[u64], number: u64) -> u64 {
    let place = number.checked_sub(1).and_then(|n| usize::try_from(n).ok());
    place.and_then(|n| cuts.get(n)).copied().unwrap_or(0)
}

/// Gives the chunks of a box to it, or says whose one of them is.
fn fill(table: &mut [u32], counts: &[u64], spans: &[Range<u64>], number: u32) -> Result<(), u32> {
    let mut at: Vec<u64> = spans.iter().map(|span| span.start).collect();
    loop {
        let linear = (at.iter().zip(counts)).fold(0u64, |linear, (n, count)| linear * count + n);
        let place = usize::try_from(linear).ok();
        match place.and_then(|place| table.get_mut(place)) {
            Some(place) if *place == NONE => *place = number,
            Some(other) => return Err(*other),
            None => {}
        }
        let is_next = (at.iter_mut().zip(spans)).rev().any(|(n, span)| {
            *n += 1;
            let goes_on = *n < span.end;
            if !goes_on {
                *n = span.start;
            }
            goes_on
        });
        if !is_next {
            return Ok(());
        }
    }
}

/// Which box each chunk is in.
#[derive(Debug)]
struct Tiling {
    cuts: Vec<Vec<u64>>,
    counts: Vec<u64>,
    table: Vec<u32>,
    /// Empty where every chunk is a box.
    tiles: Vec<Tile>,
    find: Arc<dyn FindTile>,
}

impl Locate for Tiling {
    fn locate(&self, read: &ReadFile<'_>, chunk: &[u64]) -> Result<Option<Located>> {
        let missing = || Error::argument("a chunk that is not in the grid");
        let linear = (chunk.iter().zip(&self.counts)).try_fold(0u64, |linear, (n, count)| {
            linear.checked_mul(*count)?.checked_add(*n)
        });
        let place = linear.and_then(|linear| usize::try_from(linear).ok());
        let number = place.and_then(|place| self.table.get(place).copied());
        let number = number.ok_or_else(missing)? as usize;
        let mut located = self.find.find(read, number)?;
        let Some(tile) = self.tiles.get(number) else {
            return Ok(Some(located));
        };
        let mut strides = match located.strides.take() {
            Some(strides) => strides,
            None => Box::new(row_major(&tile.sides).ok_or_else(missing)?),
        };
        let starts = chunk.iter().zip(&self.cuts).zip(&*tile.start);
        let before = starts.map(|((number, cuts), start)| begin(cuts, *number).checked_sub(*start));
        for (before, step) in before.zip(&strides.steps) {
            let further = before.and_then(|before| before.checked_mul(*step));
            let offset = further.and_then(|further| strides.offset.checked_add(further));
            strides.offset = offset.ok_or_else(missing)?;
        }
        located.strides = Some(strides);
        Ok(Some(located))
    }
}

/// Elements one after the other, the last index running fastest.
fn row_major(sides: &[u64]) -> Option<Strides> {
    let mut step = Some(1u64);
    let mut steps = Vec::new();
    for side in sides.iter().rev() {
        steps.push(step?);
        step = step.and_then(|step| step.checked_mul(*side));
    }
    steps.reverse();
    Some(Strides::new(0, steps))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Payload;

    /// Says its number.
    #[derive(Debug)]
    struct Numbered;

    impl FindTile for Numbered {
        fn find(&self, _: &ReadFile<'_>, tile: usize) -> Result<Located> {
            Ok(Located::new(Payload::main(tile as u64..tile as u64)))
        }
    }

    fn tiled(shape: &[u64], tiles: &[(&[u64], &[u64])]) -> Result<Chunks, String> {
        let tiles = tiles.iter().map(|(start, sides)| Tile {
            start: (*start).into(),
            sides: (*sides).into(),
        });
        Chunks::tiled(&shape.into(), 1, tiles.collect(), Arc::new(Numbered))
    }

    fn located(chunks: &Chunks, chunk: &[u64]) -> (u64, Option<Strides>) {
        let read = |_, _| Err(Error::argument("nothing is read"));
        let index = chunks.index.as_ref().unwrap();
        let found = index.locate(&read, chunk).unwrap().unwrap();
        let number = found.payload.stored().unwrap().1.start;
        (number, found.strides.map(|strides| *strides))
    }

    #[test]
    fn every_chunk_is_in_the_box_that_has_it() {
        let chunks = tiled(
            &[4, 5],
            &[(&[2, 0], &[2, 5]), (&[0, 0], &[2, 2]), (&[0, 2], &[2, 3])],
        );
        let chunks = chunks.unwrap();
        assert_eq!(chunks.grid, [Cuts::At(vec![2]), Cuts::At(vec![2])]);
        assert_eq!(
            located(&chunks, &[0, 0]),
            (1, Some(Strides::new(0, [2, 1])))
        );
        assert_eq!(
            located(&chunks, &[0, 1]),
            (2, Some(Strides::new(0, [3, 1])))
        );
        // The second half of the rows below.
        assert_eq!(
            located(&chunks, &[1, 1]),
            (0, Some(Strides::new(2, [5, 1])))
        );
        let regular = tiled(&[4], &[(&[3], &[1]), (&[0], &[3]), (&[4], &[0])]).unwrap();
        assert_eq!(located(&regular, &[1]), (0, None));
    }

    #[test]
    fn boxes_that_do_not_fill_the_tensor_are_told() {
        let refused = |shape: &[u64], tiles: &[(&[u64], &[u64])]| tiled(shape, tiles).unwrap_err();
        assert_eq!(
            refused(&[2, 4], &[(&[0, 0], &[1, 4]), (&[1, 1], &[1, 3])]),
            "no piece has the element [1, 0]"
        );
        assert_eq!(
            refused(&[4], &[(&[0], &[3]), (&[2], &[2])]),
            "the pieces [0:3] and [2:4] overlap"
        );
        assert_eq!(
            refused(&[4], &[(&[2], &[3])]),
            "the piece [2:5] is not inside [4]"
        );
        assert_eq!(
            refused(&[4], &[(&[u64::MAX], &[3])]),
            "the piece [18446744073709551615:18446744073709551615] is not inside [4]"
        );
        assert!(refused(&[4], &[(&[0, 0], &[4, 1])]).contains("1 dimensions"));
        assert_eq!(refused(&[], &[]), "no piece has the element []");
        assert_eq!(
            refused(&[1 << 40, 1 << 40], &[(&[0, 0], &[2, 3])]),
            "no piece has the element [0, 3]"
        );
    }

    #[test]
    fn a_tensor_without_elements_needs_no_boxes_and_a_scalar_has_one() {
        assert!(tiled(&[0, 3], &[]).unwrap().index.is_none());
        assert!(tiled(&[0, 3], &[(&[0, 0], &[0, 3])]).is_ok());
        assert_eq!(located(&tiled(&[], &[(&[], &[])]).unwrap(), &[]), (0, None));
    }

    #[test]
    fn boxes_that_cut_each_other_to_pieces_are_refused() {
        // Every row is cut elsewhere.
        let starts: Vec<[[u64; 2]; 4]> = (0..200)
            .map(|row| [[row, 0], [1, row + 1], [row, row + 1], [1, 999 - row]])
            .collect();
        let tiles: Vec<(&[u64], &[u64])> = (starts.iter())
            .flat_map(|[a, b, c, d]| [(&a[..], &b[..]), (&c[..], &d[..])])
            .collect();
        let why = tiled(&[200, 1000], &tiles).unwrap_err();
        assert!(why.starts_with("400 pieces cut it into more than"), "{why}");
    }
}
