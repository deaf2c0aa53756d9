//! Text, CSV, JSON and the file that numpy.load reads.

use std::io::{self, Write};

use serde::Serialize;
use tenfold::digits::{self, Number};
use tenfold::model::{DType, Slice};
use tenfold::{Error, Sliced};

use super::Shown;
use crate::args::ShowArgs;
use crate::failure::{Failure, Result};
use crate::json;
use crate::output::{BOLD, DIM, Out, show_name, show_path};
use crate::values::{Formatter, Grid, json_text};

/// More elements are shortened to the first and last [`EDGE`] along each dimension, unless all are asked for.
const THRESHOLD: u64 = 1000;

const EDGE: u64 = 3;

/// More elements are not read twice, to learn how to line them up and to show them: what is shown would come late.
const HUGE: u64 = 1 << 20;

/// Elements that line up then.
const STRETCH: usize = 1 << 14;

/// What JSON says in front of the values.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: &'a str,
    tensor: &'a str,
    dtype: String,
    shape: &'a [u64],
    slice: Option<String>,
    values_dtype: String,
    values_shape: &'a [u64],
}

impl Shown<'_> {
    pub(super) fn write_text(&self, out: &mut Out<'_>) -> Result<()> {
        let info = self.tensor.info();
        let elements = self.sliced.elements();
        let whole = self.sliced.shape();
        let is_long = elements.is_none_or(|elements| elements > THRESHOLD)
            && !self.args.full
            // A file is for keeping.
            && self.args.output.is_none();
        let sliced = if is_long {
            self.sliced.clone().edges(EDGE)
        } else {
            self.sliced.clone()
        };
        let Some(mut formatter) = Formatter::new(sliced.dtype()) else {
            return Err(self.no_numbers());
        };
        let is_huge = sliced.elements().is_none_or(|elements| elements > HUGE);
        if !is_huge {
            // Learned before anything is written, so that an error comes alone.
            for_each(self.args, &sliced, |element| {
                formatter.learn(element);
                Ok(())
            })?;
        }
        let slice = match self.slices {
            [] => String::new(),
            slices => format!("[{}]", join(slices)),
        };
        let name = out.paint(BOLD, format!("{}{slice}", show_name(self.tensor.name())));
        let dtype = if info.dtype == sliced.dtype() {
            info.dtype.to_string()
        } else {
            format!("{} as {}", info.dtype, sliced.dtype())
        };
        let of = if self.sliced.is_whole() {
            String::new()
        } else {
            format!("  of {:?}", info.shape)
        };
        let title = format!("  {dtype}  {whole:?}{of}");
        writeln!(out, "{name}{}", out.paint(DIM, title))?;
        if elements == Some(0) {
            return Ok(writeln!(out, "[]")?);
        }
        if whole.is_empty() {
            return for_each(self.args, &sliced, |element| {
                writeln!(out, "{}", formatter.alone(element))
            });
        }
        let shape = sliced.shape();
        let gaps = (shape.iter().zip(&whole))
            .map(|(shown, all)| (shown < all).then_some(EDGE))
            .collect();
        let mut grid = Grid::new(out, shape, gaps);
        if is_huge {
            self.write_stretches(&sliced, &mut grid)?
        } else {
            for_each(self.args, &sliced, |element| {
                grid.push(&formatter.format(element))
            })?
        }
        Ok(grid.finish()?)
    }

    /// Elements that line up as far as a stretch of them goes, each written when it was read.
    fn write_stretches(&self, sliced: &Sliced<'_>, grid: &mut Grid<'_>) -> Result<()> {
        let lanes = lanes(sliced.dtype());
        let mut stretch = Vec::new();
        let mut put = |stretch: &mut Vec<Number>| {
            let Some(mut formatter) = Formatter::new(sliced.dtype()) else {
                return Ok(());
            };
            stretch
                .chunks(lanes)
                .for_each(|element| formatter.learn(element));
            stretch
                .chunks(lanes)
                .try_for_each(|element| grid.push(&formatter.format(element)))?;
            stretch.clear();
            Ok(())
        };
        for_each(self.args, sliced, |element| {
            stretch.extend_from_slice(element);
            if stretch.len() >= STRETCH * lanes {
                put(&mut stretch)
            } else {
                Ok(())
            }
        })?;
        Ok(put(&mut stretch)?)
    }

    pub(super) fn write_csv(&self, out: &mut Out<'_>) -> Result<()> {
        self.check_numbers()?;
        // The elements of a vector are rows of one.
        let row = match self.sliced.shape().as_slice() {
            [.., _, row] => *row,
            _ => 1,
        };
        let mut column = 0;
        for_each(self.args, &self.sliced, |element| {
            column += 1;
            let text = digits::text(element);
            if text.contains(',') {
                write!(out, "\"{text}\"")?
            } else {
                out.write_all(text.as_bytes())?
            }
            if column == row {
                column = 0;
            }
            out.write_all(if column == 0 { b"\n" } else { b"," })
        })
    }

    pub(super) fn write_json(&self, out: &mut Out<'_>) -> Result<()> {
        self.check_numbers()?;
        let info = self.tensor.info();
        let shape = self.sliced.shape();
        let slice = (!self.slices.is_empty()).then(|| join(self.slices));
        let document = Document {
            schema: "tenfold.show/1",
            file: &self.args.file.to_string_lossy(),
            tensor: self.tensor.name(),
            dtype: info.dtype.to_string(),
            shape: &info.shape,
            slice,
            values_dtype: self.sliced.dtype().to_string(),
            values_shape: &shape,
        };
        // The values are read and written piece by piece, after the rest of the document.
        let mut head = Vec::new();
        json::write(&mut head, &document)?;
        out.write_all(head.strip_suffix(b"}").unwrap_or(&head))?;
        write!(out, ", \"values\": ")?;
        self.write_nested(out, &shape)?;
        Ok(writeln!(out, "}}")?)
    }

    /// Arrays in arrays, the innermost a line each.
    fn write_nested(&self, out: &mut Out<'_>, shape: &[u64]) -> Result<()> {
        if self.sliced.elements() == Some(0) {
            return Ok(write!(out, "[]")?);
        }
        write!(out, "{}", "[".repeat(shape.len()))?;
        let mut index = vec![0; shape.len()];
        let mut begun = false;
        for_each(self.args, &self.sliced, |element| {
            if std::mem::replace(&mut begun, true) {
                let mut ended = 0;
                for (index, count) in index.iter_mut().zip(shape).rev() {
                    *index += 1;
                    if *index < *count {
                        break;
                    }
                    *index = 0;
                    ended += 1;
                }
                let separator = if ended > 0 { ",\n" } else { ", " };
                write!(out, "{}{separator}{}", "]".repeat(ended), "[".repeat(ended))?;
            }
            match element {
                [number] => write!(out, "{}", json_text(*number)),
                numbers => {
                    let words: Vec<_> = numbers.iter().map(|number| json_text(*number)).collect();
                    write!(out, "[{}]", words.join(", "))
                }
            }
        })?;
        Ok(write!(out, "{}", "]".repeat(shape.len()))?)
    }

    /// A header and the elements of the slice.
    pub(super) fn write_npy(&self, out: &mut Out<'_>) -> Result<()> {
        let Some(header) = self.sliced.npy_header() else {
            let dtype = self.sliced.dtype();
            let message = format!("npy cannot hold dtype {dtype}; --format json and csv can");
            return Err(Failure::Message(message));
        };
        out.write_all(&header)?;
        self.write_raw(out)
    }

    fn write_raw(&self, out: &mut Out<'_>) -> Result<()> {
        let mut failed = None;
        let result = self.sliced.stream(&mut |piece| {
            out.write_all(piece).map_err(|cause| {
                failed = Some(cause);
                Error::canceled()
            })
        });
        finish(self.args, failed, result)
    }

    fn check_numbers(&self) -> Result<()> {
        match self.sliced.dtype() {
            DType::Number(..) => Ok(()),
            _ => Err(self.no_numbers()),
        }
    }

    fn no_numbers(&self) -> Failure {
        let message = format!(
            "{}: tensor {:?} is {}, which tenfold cannot turn into numbers",
            show_path(&self.args.file),
            self.tensor.name(),
            self.tensor.info().dtype
        );
        Failure::Message(message)
    }
}

fn join(slices: &[Slice]) -> String {
    let words: Vec<_> = slices.iter().map(Slice::to_string).collect();
    words.join(", ")
}

/// Numbers of an element.
fn lanes(dtype: DType) -> usize {
    match dtype {
        DType::Number(_, lanes) => lanes.count() as usize,
        _ => 1,
    }
}

/// Gives the elements one after the other.
fn for_each(
    args: &ShowArgs,
    sliced: &Sliced<'_>,
    mut each: impl FnMut(&[Number]) -> io::Result<()>,
) -> Result<()> {
    let mut failed = None;
    let result = sliced.exact(&mut |element| {
        failed = each(element).err();
        match failed {
            Some(_) => Err(Error::canceled()),
            None => Ok(()),
        }
    });
    finish(args, failed, result)
}

/// Which of two failures it was: of writing, or of reading.
fn finish(args: &ShowArgs, failed: Option<io::Error>, read: tenfold::Result<()>) -> Result<()> {
    match failed {
        Some(cause) => Err(Failure::Output(cause)),
        None => read.map_err(|error| Failure::about(&args.file, &error)),
    }
}
