//! `tenfold show`: the values of a tensor.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use tenfold::format::{PlanOptions, Registry, Segment, adapt};
use tenfold::io::{AtomicOutput, Output, Sink};
use tenfold::model::{DType, Manifest, Payload, Slice, TensorInfo};
use tenfold::{Archive, Error, ErrorKind, Sliced, Tensor};

use crate::args::{ShowArgs, ShowFormat};
use crate::commands::open;
use crate::failure::{Exit, Failure, Result};
use crate::json::Json;
use crate::output::{BOLD, Clean, DIM, Out, show_path};
use crate::values::{Formatter, Grid, Number, exact, numbers};

/// More elements are shortened to the first and last [`EDGE`] along each dimension, unless all are asked for.
const THRESHOLD: u64 = 1000;
const EDGE: u64 = 3;

pub(crate) fn run(args: &ShowArgs, out: &mut Out<'_>) -> Result<Exit> {
    let about = |error: Error| Failure::about(&args.file, &error);
    let archive = open(&args.file, args.from.as_deref()).map_err(about)?;
    let tensor = find(&archive, args)?;
    let slices = args.slice.as_deref().unwrap_or_default();
    let sliced = tensor.slice(slices).map_err(|error| match error.kind() {
        // The user's own mistake breaks no rule of a file.
        ErrorKind::Argument => {
            let (file, name) = (show_path(&args.file), tensor.name());
            Failure::Message(format!("{file}: tensor {name:?}: {}", error.message()))
        }
        _ => about(error),
    })?;
    let format = if args.json {
        ShowFormat::Json
    } else {
        args.format
    };
    let shown = Shown {
        args,
        tensor,
        slices,
        sliced,
        format,
    };
    match &args.output {
        Some(path) => shown.write_file(path)?,
        None if format == ShowFormat::Npy && io::stdout().is_terminal() => {
            let message = "npy is not for terminals; name a file with -o, or redirect the output";
            return Err(Failure::Message(message.into()));
        }
        None => shown.write(out)?,
    }
    Ok(Exit::Done)
}

/// The tensor that is asked for. A name that is not there is never taken for another.
fn find<'a>(archive: &'a Archive, args: &ShowArgs) -> Result<Tensor<'a>> {
    let list = format!("`tenfold inspect {}` lists them", show_path(&args.file));
    let Some(name) = &args.tensor else {
        let mut tensors = archive.tensors();
        let count = tensors.len();
        return match tensors.next() {
            Some(tensor) if count == 1 => Ok(tensor),
            Some(first) => Err(Failure::Message(format!(
                "{} holds {count} tensors, name one of them, such as {:?}; {list}",
                show_path(&args.file),
                first.name()
            ))),
            None => {
                let message = format!("{} holds no tensors", show_path(&args.file));
                Err(Failure::Message(message))
            }
        };
    };
    if let Some(tensor) = archive.get(name) {
        return Ok(tensor);
    }
    let near = near_names(archive, name);
    let near: Vec<_> = near.iter().map(|name| format!("{name:?}")).collect();
    let hint = match near.is_empty() {
        true => list,
        false => format!("did you mean {}?", near.join(" or ")),
    };
    let file = show_path(&args.file);
    Err(Failure::Message(format!(
        "{file}: there is no tensor {name:?}; {hint}"
    )))
}

/// Up to three names that could have been meant: those that end with this one first, then the most similar.
fn near_names<'a>(archive: &'a Archive, name: &str) -> Vec<&'a str> {
    const SIMILAR: f64 = 0.85;
    let likeness = |other: &str| match other.strip_suffix(name) {
        Some(before) if before.ends_with(['.', '/', ':']) => 1.0,
        _ => strsim::jaro(&other.to_lowercase(), &name.to_lowercase()),
    };
    let mut near: Vec<(f64, &str)> = (archive.tensors())
        .map(|tensor| (likeness(tensor.name()), tensor.name()))
        .filter(|(likeness, _)| *likeness >= SIMILAR)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

struct Shown<'a> {
    args: &'a ShowArgs,
    tensor: Tensor<'a>,
    slices: &'a [Slice],
    sliced: Sliced<'a>,
    format: ShowFormat,
}

impl Shown<'_> {
    fn write_file(&self, path: &Path) -> Result<()> {
        if same_file::is_same_file(path, &self.args.file).unwrap_or(false) {
            let message = format!("{} is the file that is read", show_path(path));
            return Err(Failure::Message(message));
        }
        let mut output = AtomicOutput::file(path)?.force(self.args.force);
        let name = output.main_name().to_owned();
        {
            let mut file = io::BufWriter::with_capacity(1 << 16, File(output.create(&name, None)?));
            let written = self.write(&mut Out::new(&mut file, false));
            match written.and_then(|()| file.flush().map_err(Failure::Output)) {
                Err(Failure::Output(cause)) => {
                    let message = format!("cannot write {}: {cause}", show_path(path));
                    return Err(Failure::Message(message));
                }
                written => written?,
            }
        }
        Ok(Box::new(output).commit()?)
    }

    fn write(&self, out: &mut Out<'_>) -> Result<()> {
        match self.format {
            ShowFormat::Text => self.write_text(out),
            ShowFormat::Json => self.write_json(out),
            ShowFormat::Csv => self.write_csv(out),
            ShowFormat::Npy => self.write_npy(out),
        }
    }

    fn write_text(&self, out: &mut Out<'_>) -> Result<()> {
        let info = self.tensor.info();
        let elements = self.sliced.elements();
        let whole = self.sliced.shape();
        let is_long = elements.is_none_or(|elements| elements > THRESHOLD) && !self.args.full;
        let sliced = match is_long {
            true => self.sliced.clone().edges(EDGE),
            false => self.sliced.clone(),
        };
        let Some(mut formatter) = Formatter::new(sliced.dtype()) else {
            return Err(self.no_numbers());
        };
        // Learned before anything is written, so that an error comes alone.
        for_each(self.args, &sliced, |element| {
            formatter.learn(element);
            Ok(())
        })?;
        let slice = match self.slices {
            [] => String::new(),
            slices => format!("[{}]", join(slices)),
        };
        let name = out.paint(BOLD, format!("{}{slice}", Clean(self.tensor.name())));
        let dtype = match info.dtype == sliced.dtype() {
            true => info.dtype.to_string(),
            false => format!("{} as {}", info.dtype, sliced.dtype()),
        };
        let of = match self.sliced.is_whole() {
            true => String::new(),
            false => format!("  of {:?}", info.shape),
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
        for_each(self.args, &sliced, |element| {
            grid.push(&formatter.format(element))
        })?;
        Ok(grid.finish()?)
    }

    fn write_csv(&self, out: &mut Out<'_>) -> Result<()> {
        self.check_numbers()?;
        // The elements of a vector are rows of one.
        let row = match self.sliced.shape().as_slice() {
            [.., _, row] => *row,
            _ => 1,
        };
        let mut column = 0;
        for_each(self.args, &self.sliced, |element| {
            column += 1;
            let text = exact(element);
            match text.contains(',') {
                true => write!(out, "\"{text}\"")?,
                false => out.write_all(text.as_bytes())?,
            }
            if column == row {
                column = 0;
            }
            out.write_all(if column == 0 { b"\n" } else { b"," })
        })
    }

    fn write_json(&self, out: &mut Out<'_>) -> Result<()> {
        self.check_numbers()?;
        let info = self.tensor.info();
        let shape = self.sliced.shape();
        let mut json = Json::new(out);
        let mut result = Ok(());
        json.object(|json| {
            json.text("schema", Some("tenfold.show/1"))?;
            json.text("file", Some(&self.args.file.to_string_lossy()))?;
            json.text("tensor", Some(self.tensor.name()))?;
            json.text("dtype", Some(&info.dtype.to_string()))?;
            json.key("shape")?.plain(format_args!("{:?}", info.shape))?;
            let slice = (!self.slices.is_empty()).then(|| join(self.slices));
            json.text("slice", slice.as_deref())?;
            json.text("values_dtype", Some(&self.sliced.dtype().to_string()))?;
            json.key("values_shape")?.plain(format_args!("{shape:?}"))?;
            json.key("values")?;
            result = self.write_nested(json, &shape);
            Ok(())
        })?;
        result?;
        Ok(writeln!(out)?)
    }

    /// Arrays in arrays, the innermost a line each.
    fn write_nested(&self, json: &mut Json<'_>, shape: &[u64]) -> Result<()> {
        if self.sliced.elements() == Some(0) {
            return Ok(json.plain("[]")?);
        }
        json.plain("[".repeat(shape.len()))?;
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
                json.plain(format_args!(
                    "{}{separator}{}",
                    "]".repeat(ended),
                    "[".repeat(ended)
                ))?;
            }
            match element {
                [number] => json.plain(number.json()),
                numbers => {
                    let words: Vec<_> = numbers.iter().map(|number| number.json()).collect();
                    json.plain(format_args!("[{}]", words.join(", ")))
                }
            }
        })?;
        Ok(json.plain("]".repeat(shape.len()))?)
    }

    /// The file as the format lays it out, with the slice for its tensor.
    fn write_npy(&self, out: &mut Out<'_>) -> Result<()> {
        let registry = Registry::standard();
        let entry = registry.get("npy")?;
        let Some(profile) = entry.spec.writes.first() else {
            return Err(Failure::Message("npy is not written".into()));
        };
        let (dtype, shape) = (self.sliced.dtype(), self.sliced.shape());
        let len = self.sliced.elements().and_then(|n| dtype.bytes_for(n));
        let payload = Payload::Derived {
            len: len.unwrap_or(u64::MAX),
        };
        let mut manifest = Manifest::new(profile.version);
        let mut tensor = TensorInfo::dense("slice", dtype, shape, payload);
        tensor.unnamed = true;
        manifest.tensors.push(tensor);
        let (adapted, losses) = adapt(&manifest, &profile.can);
        if let Some(loss) = losses.first() {
            let message = format!("npy cannot hold {}; --format json and csv can", loss.what);
            return Err(Failure::Message(message));
        }
        let options = PlanOptions::new(profile.version, "slice.npy");
        let plan = entry.codec()?.plan(&adapted, &options)?;
        for segment in plan.files.into_iter().flat_map(|file| file.segments) {
            match segment {
                Segment::Bytes(bytes) => out.write_all(&bytes)?,
                Segment::Tensor { .. } => self.write_raw(out)?,
                other => return Err(Failure::Message(format!("{other:?} in an npy file"))),
            }
        }
        Ok(())
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
            "{}: tensor {:?} is {}, and how to turn that into numbers is not known here",
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

/// Gives the elements one after the other.
fn for_each(
    args: &ShowArgs,
    sliced: &Sliced<'_>,
    mut each: impl FnMut(&[Number]) -> io::Result<()>,
) -> Result<()> {
    let lanes = match sliced.dtype() {
        DType::Number(_, lanes) => lanes.count() as usize,
        _ => 1,
    };
    let mut left = sliced.elements();
    let mut element = Vec::new();
    let mut failed = None;
    let result = sliced.stream(&mut |piece| {
        numbers(sliced.dtype(), piece, |number| {
            if left == Some(0) || failed.is_some() {
                return;
            }
            element.push(number);
            if element.len() == lanes {
                failed = each(&element).err();
                element.clear();
                left = left.map(|left| left - 1);
            }
        });
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

/// A file of an output.
struct File<'a>(Box<dyn Sink + 'a>);

impl Write for File<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
