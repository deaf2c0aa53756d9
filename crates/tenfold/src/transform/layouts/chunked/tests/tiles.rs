//! Boxes of a tensor in memory, held against the dense tensor that they were cut from.

use super::super::*;
use super::{archive, dense, numbers};
use crate::Archive;
use crate::model::{Chunks, DType, Form, Located, ReadFile, Shape, Slice, Strides};
use crate::model::{FindTile, Tile};

/// Boxes by their places in the list.
#[derive(Debug)]
struct Listed(Vec<Located>);

impl FindTile for Listed {
    fn find(&self, _: &ReadFile<'_>, tile: usize) -> Result<Located> {
        Ok(self.0[tile].clone())
    }
}

/// How the elements of a box are stored.
#[derive(Clone, Copy, Debug)]
enum Stored {
    RowMajor,
    ColumnMajor,
    /// With an element in front of them all, and one after each.
    Apart,
}

/// A box of a dense tensor.
fn stored(tile: &Tile, shape: &[u64], how: Stored) -> Located {
    let whole = dense(shape);
    let sides = &tile.sides;
    let element = |within: &[u64]| {
        let index = within.iter().zip(&*tile.start).map(|(n, start)| n + start);
        let place = index.zip(shape).fold(0, |place, (n, dim)| place * dim + n);
        let at = usize::try_from(place).unwrap() * 2;
        [whole[at], whole[at + 1]]
    };
    let mut within = numbers(sides);
    let mut steps = vec![0; sides.len()];
    let mut step = 1;
    let order: Vec<usize> = match how {
        Stored::ColumnMajor => (0..sides.len()).collect(),
        Stored::RowMajor | Stored::Apart => (0..sides.len()).rev().collect(),
    };
    for axis in order {
        steps[axis] = step;
        step *= sides[axis];
    }
    if let Stored::ColumnMajor = how {
        within.sort_by_key(|within| within.iter().rev().copied().collect::<Vec<_>>());
    }
    let bytes = within.iter().flat_map(|within| element(within));
    match how {
        Stored::RowMajor => Located::new(Payload::Inline(bytes.collect())),
        Stored::ColumnMajor => {
            let mut located = Located::new(Payload::Inline(bytes.collect()));
            located.strides = Some(Box::new(Strides::new(0, steps)));
            located
        }
        Stored::Apart => {
            let mut apart = vec![9, 9];
            for within in &within {
                apart.extend(element(within));
                apart.extend([7, 7]);
            }
            let mut located = Located::new(Payload::Inline(apart.into()));
            let steps: Vec<u64> = steps.iter().map(|step| step * 2).collect();
            located.strides = Some(Box::new(Strides::new(1, steps)));
            located
        }
    }
}

fn tiled(shape: &[u64], tiles: &[(&[u64], &[u64])], how: &[Stored]) -> Archive {
    let tiles: Vec<Tile> = (tiles.iter())
        .map(|(start, sides)| Tile {
            start: (*start).into(),
            sides: (*sides).into(),
        })
        .collect();
    let located = tiles.iter().zip(how.iter().cycle());
    let located = located.map(|(tile, how)| stored(tile, shape, *how));
    let find = Arc::new(Listed(located.collect()));
    archive(Chunks::tiled(&Shape::from(shape), 2, tiles, find).unwrap())
}

fn check(archive: &Archive, shape: &[u64], what: &str) {
    let tensor = archive.tensor("t").unwrap();
    assert_eq!(tensor.canonical().unwrap(), dense(shape), "{what}");
    let mut plain = crate::ArchiveBuilder::new();
    let bytes = Bytes::from(dense(shape));
    plain.push("t", DType::U16, shape, bytes).unwrap();
    let plain = plain.finish();
    for (start, stop, step) in [(None, None, 2), (None, None, -1), (Some(1), Some(3), 1)] {
        let slices = vec![Slice::Range { start, stop, step }; shape.len()];
        let of = |archive: &Archive| {
            let tensor = archive.tensor("t").unwrap();
            tensor.slice(&slices).unwrap().to_bytes().unwrap()
        };
        assert_eq!(of(archive), of(&plain), "{what} {slices:?}");
    }
    let form = Form {
        dtype: DType::U16,
        order: Order::ColumnMajor,
        endian: Endian::Little,
    };
    let columns = |archive: &Archive| {
        let info = archive.tensor("t").unwrap().info().clone();
        let view = crate::transform::View::dense(archive.data(), &info, &form).unwrap();
        view.collect(u64::MAX).unwrap()
    };
    assert_eq!(columns(archive), columns(&plain), "{what}");
}

#[test]
fn boxes_anywhere_are_the_tensor_in_whatever_order_their_elements_are() {
    type Case<'c> = (&'c [u64], &'c [(&'c [u64], &'c [u64])]);
    let cases: [Case<'_>; 6] = [
        (&[7], &[(&[3], &[4]), (&[0], &[3])]),
        (&[4, 6], &[(&[0, 0], &[4, 6])]),
        (
            &[4, 6],
            &[
                (&[0, 0], &[2, 3]),
                (&[2, 0], &[2, 3]),
                (&[0, 3], &[2, 3]),
                (&[2, 3], &[2, 3]),
            ],
        ),
        // Nobody's sides are those of another.
        (
            &[5, 5],
            &[
                (&[0, 0], &[2, 3]),
                (&[0, 3], &[3, 2]),
                (&[3, 2], &[2, 3]),
                (&[2, 0], &[3, 2]),
                (&[2, 2], &[1, 1]),
            ],
        ),
        (
            &[3, 4, 2],
            &[
                (&[0, 0, 0], &[3, 1, 2]),
                (&[0, 1, 0], &[1, 3, 2]),
                (&[1, 1, 0], &[2, 3, 2]),
            ],
        ),
        (&[], &[(&[], &[])]),
    ];
    let hows = [
        &[Stored::RowMajor][..],
        &[Stored::ColumnMajor],
        &[Stored::Apart],
        &[Stored::RowMajor, Stored::ColumnMajor, Stored::Apart],
    ];
    for (shape, tiles) in cases {
        for how in hows {
            let what = format!("{shape:?} {tiles:?} {how:?}");
            check(&tiled(shape, tiles, how), shape, &what);
        }
    }
}

#[test]
fn one_box_that_is_the_tensor_is_shared_with_the_file() {
    for how in [Stored::RowMajor, Stored::ColumnMajor] {
        let archive = tiled(&[4, 6], &[(&[0, 0], &[4, 6])], &[how]);
        let tensor = archive.tensor("t").unwrap();
        let found = super::super::super::in_place(archive.data(), tensor.info());
        let (bytes, _, order) = found.unwrap();
        let expected = match how {
            Stored::ColumnMajor => Order::ColumnMajor,
            Stored::RowMajor | Stored::Apart => Order::RowMajor,
        };
        assert_eq!((bytes.len(), order), (48, expected));
    }
    let archive = tiled(&[4], &[(&[0], &[2]), (&[2], &[2])], &[Stored::RowMajor]);
    let tensor = archive.tensor("t").unwrap();
    assert!(super::super::super::in_place(archive.data(), tensor.info()).is_none());
}

#[test]
fn a_box_whose_elements_are_not_all_there_is_refused() {
    for strides in [
        Strides::new(0, [3, 1]),
        Strides::new(1, [2, 1]),
        Strides::new(0, [1]),
    ] {
        let shape = Shape::from([3, 2]);
        let mut located = stored(
            &Tile {
                start: [0, 0].into(),
                sides: shape.clone(),
            },
            &shape,
            Stored::RowMajor,
        );
        located.strides = Some(Box::new(strides));
        let tiles = |cut: u64| {
            [0..cut, cut..3].map(|rows| Tile {
                start: [rows.start, 0].into(),
                sides: [rows.end - rows.start, 2].into(),
            })
        };
        for tiles in [tiles(3), tiles(0)] {
            let find = Arc::new(Listed(vec![located.clone(), located.clone()]));
            let chunks = Chunks::tiled(&shape, 2, tiles.to_vec(), find).unwrap();
            let archive = archive(chunks);
            let error = archive.tensor("t").unwrap().canonical().unwrap_err();
            assert_eq!(error.rule(), "file.strides");
        }
    }
}
