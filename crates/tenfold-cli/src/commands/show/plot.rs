//! `tenfold show --plot`: a tensor as a picture in the terminal, of the same cells as the page of `tenfold view` shows.

use std::io::Write;

use anstyle::{Ansi256Color, Color, RgbColor, Style};
use tenfold::model::Slice;
use tenfold::ops::{Cell, Picture, PictureOptions, picture};
use tenfold::{Archive, Error};

use crate::failure::{Exit, Failure, Result};
use crate::output::{BOLD, DIM, Out, RED, Verbatim, count, number, show_name};

/// From the least to the greatest, where there is no colour.
const RAMP: [char; 10] = [' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'];
/// What is not finite there.
const NOT_FINITE: char = '!';

/// Where there are both signs, and where there is one.
const SIGNED: [[u8; 3]; 5] = [
    [5, 48, 97],
    [67, 147, 195],
    [247, 247, 247],
    [214, 96, 77],
    [103, 0, 31],
];
const UNSIGNED: [[u8; 3]; 5] = [
    [68, 1, 84],
    [59, 82, 139],
    [33, 145, 140],
    [94, 201, 98],
    [253, 231, 37],
];
const MAGENTA: [u8; 3] = [255, 0, 255];

pub(super) fn run(
    archive: &Archive,
    name: &str,
    slices: &[Slice],
    out: &mut Out<'_>,
) -> Result<Exit> {
    let place = archive
        .index_of(name)
        .ok_or_else(|| Failure::Message(format!("there is no tensor {name:?}")))?;
    let info = archive.tensor(name)?.info();
    let (columns, lines) = out
        .screen
        .map_or((80, 24), |screen| (screen.columns, screen.lines));
    let side = |n: usize| u32::try_from(n.max(1)).unwrap_or(1);
    // Two rows of cells are one line of half blocks; without colour each is a line of its own.
    let rows = lines.saturating_sub(4) * if out.has_color() { 2 } else { 1 };
    let options = shown(slices, &info.shape)?.cells(side(rows), side(columns.min(160)));
    let picture = picture(archive, place, &options)?;
    let title = format!("  {}  {:?}", info.dtype, &info.shape[..]);
    writeln!(
        out,
        "{}{}",
        out.paint(BOLD, show_name(name)),
        out.paint(DIM, Verbatim(&title))
    )?;
    let domain = domain(&picture);
    if out.has_color() {
        half_blocks(&picture, domain, out)?;
    } else {
        letters(&picture, domain, out)?;
    }
    caption(&picture, domain, out)?;
    Ok(Exit::Done)
}

/// The part that slices leave: indices fix a dimension, ranges of the last two that are left are the rows and columns.
fn shown(slices: &[Slice], shape: &[u64]) -> Result<PictureOptions> {
    let refuse = |message: &str| Failure::from(Error::argument(message));
    if slices.iter().any(|slice| matches!(slice, Slice::All)) {
        return Err(refuse(
            "--plot takes a range or an index for each dimension, but not `...`",
        ));
    }
    if slices.len() > shape.len() {
        return Err(refuse("more indices than dimensions"));
    }
    let (mut at, mut ranges) = (Vec::new(), Vec::new());
    let from_end = |index: i64, dim: u64| {
        let index = if index < 0 {
            dim.checked_add_signed(index)
        } else {
            u64::try_from(index).ok()
        };
        index.ok_or_else(|| refuse("an index lies before the first element"))
    };
    for (axis, &dim) in shape.iter().enumerate() {
        match slices.get(axis) {
            Some(Slice::Index(index)) => at.push(from_end(*index, dim)?),
            Some(Slice::Range { start, stop, step }) => {
                if *step != 1 {
                    return Err(refuse(
                        "--plot shows neighbouring elements, so a range takes no step",
                    ));
                }
                let start = start.map_or(Ok(0), |start| from_end(start, dim))?.min(dim);
                let stop = stop.map_or(Ok(dim), |stop| from_end(stop, dim))?.min(dim);
                at.push(0);
                ranges.push((axis, start..stop.max(start)));
            }
            _ => {
                at.push(0);
                ranges.push((axis, 0..dim));
            }
        }
    }
    let (columns, rows) = (ranges.pop(), ranges.pop());
    let axes = match (&rows, &columns) {
        (Some((rows, _)), Some((columns, _))) => Some((*rows, *columns)),
        // One that is left is a line: the last of the fixed ones is its only row.
        (None, Some((columns, _))) if shape.len() > 1 => {
            let other = (0..shape.len()).rev().find(|axis| axis != columns);
            other.map(|rows| (rows, *columns))
        }
        _ => None,
    };
    let row = match (&rows, axes) {
        (Some((_, range)), _) => Some(range.clone()),
        (None, Some((rows, _))) => at.get(rows).map(|&at| at..at + 1),
        _ => None,
    };
    if axes.is_none() && shape.len() > 1 {
        return Err(refuse(
            "a single element does not make a picture; `tenfold show` without --plot prints it",
        ));
    }
    let column = columns.map(|(_, range)| range);
    Ok(PictureOptions::new().axes(axes).at(at).part(row, column))
}

/// What a cell shows: the mean of few numbers, the one farthest from 0 of many.
fn value(picture: &Picture, cell: &Cell) -> Option<f64> {
    let numbers = picture.total().numbers();
    if numbers > 16 * picture.cells.len() as u64 {
        cell.extreme()
    } else {
        cell.mean()
    }
}

/// From the 1st to the 99th percentile of what is shown; symmetric where there are both signs.
fn domain(picture: &Picture) -> (f64, f64) {
    let values = picture.cells.iter().filter_map(|cell| value(picture, cell));
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    let at = |place: usize| values.get(place).copied().unwrap_or(0.0);
    let (low, high) = (at(last / 100), at(last - last / 100));
    let (low, high) = if low == high {
        (at(0), at(last))
    } else {
        (low, high)
    };
    if low < 0.0 && high > 0.0 {
        let most = high.max(-low);
        (-most, most)
    } else {
        (low, high)
    }
}

/// How far along the domain a value is: from 0 to 1.
fn place(value: f64, (low, high): (f64, f64)) -> f64 {
    if low < high {
        ((value - low) / (high - low)).clamp(0.0, 1.0)
    } else {
        0.5
    }
}

fn colour(picture: &Picture, cell: &Cell, domain: (f64, f64)) -> Option<[u8; 3]> {
    if cell.not_finite() > 0 {
        return Some(MAGENTA);
    }
    let place = place(value(picture, cell)?, domain) * 4.0;
    let stops = if domain.0 < 0.0 && domain.1 > 0.0 {
        SIGNED
    } else {
        UNSIGNED
    };
    let stop = place.floor().min(3.0);
    // From 0 to 3.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let (from, to) = (stops.get(stop as usize)?, stops.get(stop as usize + 1)?);
    let mut mixed = [0; 3];
    for (mixed, (from, to)) in mixed.iter_mut().zip(from.iter().zip(to)) {
        let (from, to) = (f64::from(*from), f64::from(*to));
        // Between two bytes.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let between = (from + (to - from) * (place - stop)).round() as u8;
        *mixed = between;
    }
    Some(mixed)
}

/// As the terminal has it: all colours, or the 216 of the cube.
fn as_color([r, g, b]: [u8; 3], is_true: bool) -> Color {
    if is_true {
        return RgbColor(r, g, b).into();
    }
    let step = |channel: u8| (u16::from(channel) * 5 + 127) / 255;
    let index = 16 + 36 * step(r) + 6 * step(g) + step(b);
    Ansi256Color(u8::try_from(index).unwrap_or(16)).into()
}

fn half_blocks(picture: &Picture, domain: (f64, f64), out: &mut Out<'_>) -> Result<()> {
    let is_true =
        std::env::var("COLORTERM").is_ok_and(|term| matches!(term.as_str(), "truecolor" | "24bit"));
    let wide = picture.size.1.max(1);
    let rows: Vec<&[Cell]> = picture.cells.chunks(wide).collect();
    for pair in rows.chunks(2) {
        let (upper, lower) = (pair.first(), pair.get(1));
        for column in 0..wide {
            let of = |row: Option<&&[Cell]>| {
                let cell = row.and_then(|row| row.get(column))?;
                Some(as_color(colour(picture, cell, domain)?, is_true))
            };
            let style = Style::new().fg_color(of(upper)).bg_color(of(lower));
            write!(out, "{style}▀{style:#}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn letters(picture: &Picture, domain: (f64, f64), out: &mut Out<'_>) -> Result<()> {
    for row in picture.cells.chunks(picture.size.1.max(1)) {
        let letters = row.iter().map(|cell| {
            if cell.not_finite() > 0 {
                return NOT_FINITE;
            }
            let Some(value) = value(picture, cell) else {
                return ' ';
            };
            let most = RAMP.len() - 1;
            // From 0 to the last of them.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let step = (place(value, domain) * most as f64).round() as usize;
            RAMP.get(step).copied().unwrap_or(' ')
        });
        let line: String = letters.collect();
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn caption(picture: &Picture, (low, high): (f64, f64), out: &mut Out<'_>) -> Result<()> {
    let (read, lines) = picture.lines;
    let what = if picture.is_by_columns {
        "column"
    } else {
        "row"
    };
    let read = if picture.is_exact() {
        format!(
            "all {} read",
            count(usize::try_from(lines).unwrap_or(usize::MAX), what)
        )
    } else if read > 0 {
        format!("read {read} of {lines} {what}s")
    } else {
        format!("read {} numbers, not all", picture.total().numbers())
    };
    writeln!(
        out,
        "{}",
        out.paint(
            DIM,
            format!("from {} to {}; {read}", number(low), number(high))
        )
    )?;
    let total = picture.total();
    if total.not_finite() > 0 {
        let infinities = total.positive_infinities + total.negative_infinities;
        let text = format!("{} NaN, {infinities} infinite", total.nans);
        writeln!(out, "{}", out.paint(RED, text))?;
    } else if !picture.is_exact() {
        writeln!(out, "{}", out.paint(DIM, "no NaN seen"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture of numbers, each of which is a cell.
    fn shown(numbers: &[f32]) -> Picture {
        let mut builder = Archive::builder();
        let len = numbers.len() as u64;
        builder.tensor("v", [1, len], numbers.to_vec()).unwrap();
        picture(&builder.finish(), 0, &PictureOptions::new()).unwrap()
    }

    #[test]
    fn colours_go_from_the_least_to_the_greatest() {
        let picture = shown(&[-2.0, -1.0, 0.0, 1.0, 2.0, f32::NAN]);
        let domain = domain(&picture);
        assert_eq!(domain, (-2.0, 2.0));
        let colours: Vec<_> = picture
            .cells
            .iter()
            .map(|cell| colour(&picture, cell, domain))
            .collect();
        let signed = SIGNED.map(Some);
        assert_eq!(colours, [signed.as_slice(), &[Some(MAGENTA)]].concat());
        // Of one sign, halfway between two colours too.
        let picture = shown(&[0.0, 1.0, 8.0]);
        let colours: Vec<_> = picture
            .cells
            .iter()
            .map(|cell| colour(&picture, cell, (0.0, 8.0)))
            .collect();
        assert_eq!(
            colours,
            [Some([68, 1, 84]), Some([64, 42, 112]), Some([253, 231, 37])]
        );
    }

    #[test]
    fn terminals_without_all_colours_get_the_nearest_of_the_cube() {
        assert_eq!(as_color([255, 0, 255], true), RgbColor(255, 0, 255).into());
        assert_eq!(as_color([255, 0, 255], false), Ansi256Color(201).into());
        assert_eq!(as_color([0, 0, 0], false), Ansi256Color(16).into());
        assert_eq!(
            as_color([250, 128, 30], false),
            Ansi256Color(16 + 36 * 5 + 6 * 3 + 1).into()
        );
    }
}
