//! What people say of a model: how many parameters, of which types, how large, in how many files.

use std::io::{self, Write};
use std::path::Path;

use tenfold::Archive;
use tenfold::model::{DType, TensorInfo};
use tenfold::ops::elements_by_type;

use super::data_len;
use crate::commands::format_name;
use crate::output::{BOLD, Out, Verbatim, count, decimal_size, quantity, show_path, size};

/// Writes two lines: what people say, and what the file is.
pub(super) fn write(
    archive: &Archive,
    path: &Path,
    tensors: &[&TensorInfo],
    exact: bool,
    out: &mut Out<'_>,
) -> io::Result<()> {
    write_line(archive, path, tensors, exact, out)?;
    write_file(archive, tensors, exact, out)
}

/// Writes what people say.
pub(super) fn write_line(
    archive: &Archive,
    path: &Path,
    tensors: &[&TensorInfo],
    exact: bool,
    out: &mut Out<'_>,
) -> io::Result<()> {
    let number = |n: u64| {
        if exact { n.to_string() } else { quantity(n) }
    };
    let types = elements_by_type(tensors.iter().copied());
    let all = types.iter().map(|(_, n)| *n).fold(0, u64::saturating_add);
    let parameters = if all == 1 { "parameter" } else { "parameters" };
    write!(
        out,
        "{}: {} {parameters}",
        out.paint(BOLD, show_path(path)),
        number(all)
    )?;
    match types.as_slice() {
        [(only, _)] => write!(out, ", {}", named(*only, tensors))?,
        several => {
            for (dtype, n) in several {
                write!(out, ", {} ({})", named(*dtype, tensors), number(*n))?;
            }
        }
    }
    let bytes = archive.stored_bytes();
    let stored = if exact {
        format!("{bytes} bytes")
    } else {
        decimal_size(bytes)
    };
    match archive.file_count() {
        0 | 1 => writeln!(out, "; {stored}")?,
        files => writeln!(out, "; {stored} in {files} files")?,
    }
    Ok(())
}

/// A type as people call it.
fn named(dtype: DType, tensors: &[&TensorInfo]) -> String {
    let of_it = tensors.iter().find(|info| info.dtype == dtype);
    of_it.map_or_else(|| dtype.to_string(), |info| super::dtype(info))
}

/// The format, and how many of its tensors are meant.
fn write_file(
    archive: &Archive,
    tensors: &[&TensorInfo],
    exact: bool,
    out: &mut Out<'_>,
) -> io::Result<()> {
    let all = archive.manifest().tensors.len();
    let shown = if tensors.len() == all {
        count(all, "tensor")
    } else {
        format!("{} of {}", tensors.len(), count(all, "tensor"))
    };
    let data = tensors.iter().map(|info| data_len(info));
    let data = data.fold(0, u64::saturating_add);
    let data = if exact {
        format!("{data} bytes")
    } else {
        size(data)
    };
    let format = format_name(archive);
    write!(out, "{}, {shown}, {data} of data", Verbatim(&format))?;
    match tensors.iter().filter(|info| info.defect.is_some()).count() {
        0 => writeln!(out),
        n => writeln!(out, ", {n} unreadable"),
    }
}
