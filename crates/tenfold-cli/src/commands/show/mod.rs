//! `tenfold show`: the values of a tensor.

mod find;
mod forms;
mod plot;

use std::io::{self, IsTerminal};
use std::path::Path;

use tenfold::model::{Quoted, Slice};
use tenfold::{Error, ErrorKind, Sliced, Tensor};

use crate::args::{ShowArgs, ShowFormat};
use crate::commands::{Session, write_file};
use crate::failure::{Exit, Failure, Result};
use crate::hints;
use crate::output::{Out, show_path};

use find::find;

pub(crate) fn run(args: &ShowArgs, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    let about = |error: Error| Failure::about(&args.file, &error);
    let archive = session.open(&args.file, &args.opening).map_err(about)?;
    let archive = Session::selected(archive, &args.numbers, |_| true).map_err(about)?;
    let tensor = find(&archive, args)?;
    let slices = args.slice.as_deref().unwrap_or_default();
    let sliced = tensor.slice(slices).map_err(|error| match error.kind() {
        // The user's own mistake breaks no rule of a file.
        ErrorKind::Argument => {
            let (file, name) = (show_path(&args.file), Quoted(tensor.name()));
            let message = hints::message(&error);
            Failure::Message(format!("{file}: tensor {name}: {message}"))
        }
        _ => about(error),
    })?;
    if args.plot {
        return plot::run(&archive, tensor.name(), slices, out);
    }
    let format = args.shown_format();
    let shown = Shown {
        args,
        tensor,
        slices,
        sliced,
        format,
    };
    match &args.output {
        Some(path) => shown.write_file(path, session)?,
        None if format == ShowFormat::Npy && io::stdout().is_terminal() => {
            let message = "npy is not for terminals; name a file with -o, or redirect the output";
            return Err(Failure::Message(message.into()));
        }
        None => shown.write(out)?,
    }
    Ok(Exit::Done)
}

struct Shown<'a> {
    args: &'a ShowArgs,
    tensor: Tensor<'a>,
    slices: &'a [Slice],
    sliced: Sliced<'a>,
    format: ShowFormat,
}

impl Shown<'_> {
    fn write_file(&self, path: &Path, session: &Session<'_>) -> Result<()> {
        if same_file::is_same_file(path, &self.args.file).unwrap_or(false) {
            let message = format!("{} is the input", show_path(path));
            return Err(Failure::Message(message));
        }
        write_file(path, self.args.force, session, |file| {
            self.write(&mut Out::new(file, false))
        })
    }

    fn write(&self, out: &mut Out<'_>) -> Result<()> {
        match self.format {
            ShowFormat::Text => self.write_text(out),
            ShowFormat::Json => self.write_json(out),
            ShowFormat::Csv => self.write_csv(out),
            ShowFormat::Npy => self.write_npy(out),
        }
    }
}
