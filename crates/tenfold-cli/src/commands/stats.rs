//! `tenfold stats`: what the numbers of a file are like.

use std::cmp::Reverse;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use tenfold::documents::StatsDocument;
use tenfold::model::TensorInfo;
use tenfold::ops::{self, ArchiveStats, Histogram, Number, Stats, StatsOptions, natural_order};
use tenfold::{Archive, Control, Error, Work};

use crate::args::{StatsArgs, StatsSort};
use crate::commands::inspect::shape;
use crate::commands::{
    Names, Session, for_each_file, format_name, json_for_each_file, refuse_nothing,
};
use crate::failure::{Exit, Failure, Result};
use crate::hints;
use crate::json;
use crate::losses;
use crate::output::{BOLD, DIM, Out, Table, Verbatim, count, number, say, show_name, show_path};
use crate::progress::Progress;

pub(crate) fn run(args: &StatsArgs, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    let names = Names::new(&args.filter)?;
    let compute = |path: &Path| {
        let archive = session
            .open(path, &args.opening)
            .map_err(|error| Failure::about(path, &error))?;
        let wanted = |info: &TensorInfo| names.contains(&info.name);
        let chosen = Session::selected(archive.clone(), &args.numbers, wanted)
            .map_err(|error| Failure::about(path, &error))?;
        if chosen.tensors().len() == 0 {
            refuse_nothing(&args.inputs, &args.filter, &archive)?;
        }
        let archive = chosen;
        let archive = of_numbers(path, archive);
        let control = Arc::new(Control::new());
        let work = Work::new().threads(args.threads.count());
        let options = StatsOptions::new()
            .bins(args.hist)
            .work(work.control(control.clone()));
        let bar = (!args.no_progress).then(|| Progress::watch(control, &session.urls));
        let stats = ops::stats(&archive, &options);
        drop(bar);
        let stats = stats.map_err(|error| Failure::about(path, &error))?;
        say_unreadable(path, &stats);
        Ok::<_, Failure>((archive, stats))
    };
    if args.inputs.json {
        return json_for_each_file(&args.inputs, out, |path, out| {
            let (archive, stats) = compute(path)?;
            let file = path.to_string_lossy();
            json::write(
                out,
                &StatsDocument::new(&file, &archive, &stats, hints::words),
            )?;
            Ok(exit(&stats))
        });
    }
    let mut first = true;
    for_each_file(&args.inputs, out, |path, out| {
        let (archive, stats) = compute(path)?;
        if !std::mem::replace(&mut first, false) {
            writeln!(out)?;
        }
        write_text(path, &archive, &stats, args.sort, out)?;
        Ok(exit(&stats))
    })
}

/// The tensors that are numbers; that others are left out is said.
fn of_numbers(path: &Path, archive: Archive) -> Archive {
    let others = archive
        .tensors()
        .filter(|tensor| !tensor.info().is_numbers());
    let others: Vec<_> = others.map(|tensor| tensor.name().to_owned()).collect();
    if others.is_empty() {
        return archive;
    }
    say_others(path, &others);
    archive.select(TensorInfo::is_numbers)
}

/// Says which tensors are left out because they are not numbers.
pub(crate) fn say_others(path: &Path, others: &[String]) {
    let names: Vec<_> = others.iter().map(String::as_str).collect();
    if !names.is_empty() {
        let (path, names) = (show_path(path), losses::some(&names));
        say(format_args!("{path}: not numbers: {names}"));
    }
}

/// Says which tensors cannot be read.
pub(crate) fn say_unreadable(path: &Path, stats: &ArchiveStats) {
    losses::errors(path, unreadable(stats)).iter().for_each(say);
}

fn unreadable(stats: &ArchiveStats) -> impl Iterator<Item = &Error> {
    let found = stats.tensors.iter();
    found.filter_map(|(_, found)| found.as_ref().err())
}

pub(crate) fn exit(stats: &ArchiveStats) -> Exit {
    match unreadable(stats).next() {
        None => Exit::Done,
        Some(_) => Exit::Findings,
    }
}

pub(crate) fn write_text(
    path: &Path,
    archive: &Archive,
    stats: &ArchiveStats,
    sort: Option<StatsSort>,
    out: &mut Out<'_>,
) -> io::Result<()> {
    writeln!(
        out,
        "{}: {}, {}, {} elements",
        out.paint(BOLD, show_path(path)),
        Verbatim(&format_name(archive)),
        count(stats.tensors.len(), "tensor"),
        stats.total.elements,
    )?;
    let mut table = Table::new(&[
        "name",
        "dtype",
        "shape",
        ">min",
        ">max",
        ">mean",
        ">std",
        ">abs max",
        ">zeros",
        ">nan",
        ">inf",
        ">subnormal",
        "note",
    ]);
    let infos = archive.manifest().tensors.iter();
    let mut rows: Vec<_> = infos.zip(&stats.tensors).collect();
    if let Some(sort) = sort {
        sort_rows(&mut rows, sort);
    }
    for (info, (name, found)) in &rows {
        let (shown, dtype) = (show_name(name), info.dtype.to_string());
        match found {
            Ok(found) => row(&mut table, &shown, &dtype, &shape(&info.shape), found),
            Err(_) => {
                let mut cells = [""; 13];
                cells[0] = &shown;
                cells[1] = &dtype;
                cells[12] = "no numbers to read";
                table.row(&cells);
            }
        }
    }
    row(&mut table, "total", "", "", &stats.total);
    table.write(out, |out, at| {
        let found = rows.get(at).map(|(_, (_, found))| found);
        match found {
            Some(Ok(found)) => write_spark(found.histogram.as_ref(), out),
            _ => Ok(()),
        }
    })?;
    write_bars(stats.total.histogram.as_ref(), out)
}

/// A tensor, and what was found of it.
type Row<'a> = (&'a TensorInfo, &'a (String, tenfold::Result<Stats>));

fn sort_rows(rows: &mut [Row<'_>], sort: StatsSort) {
    // Those without such a number come last.
    let falling = |rows: &mut [Row<'_>], of: fn(&Stats) -> Option<f64>| {
        let key = |row: &Row<'_>| {
            row.1
                .1
                .as_ref()
                .ok()
                .and_then(of)
                .unwrap_or(f64::NEG_INFINITY)
        };
        rows.sort_by(|a, b| key(b).total_cmp(&key(a)));
    };
    #[allow(clippy::cast_precision_loss)] // close enough for an order
    match sort {
        StatsSort::Name => rows.sort_by(|a, b| natural_order(&a.0.name, &b.0.name)),
        StatsSort::Dtype => rows.sort_by_cached_key(|(info, _)| info.dtype.to_string()),
        StatsSort::Size => rows.sort_by_key(|(info, _)| Reverse(info.elements())),
        StatsSort::Min => falling(rows, |stats| Some(-stats.min?.to_f64())),
        StatsSort::Max => falling(rows, |stats| Some(stats.max?.to_f64())),
        StatsSort::Mean => falling(rows, |stats| stats.mean),
        StatsSort::Std => falling(rows, |stats| stats.std_dev),
        StatsSort::AbsMax => falling(rows, |stats| Some(stats.abs_max()?.to_f64())),
        StatsSort::Zeros => falling(rows, |stats| Some(stats.zeros as f64)),
        StatsSort::Nan => falling(rows, |stats| Some((stats.nans + stats.infinities()) as f64)),
    }
}

fn row(table: &mut Table, name: &str, dtype: &str, shape: &str, stats: &Stats) {
    // Columns in which nothing stands are left out.
    let some = |n: u64| match n {
        0 => String::new(),
        n => n.to_string(),
    };
    let float = |value: Option<f64>| value.map(number).unwrap_or_default();
    table.row(&[
        name,
        dtype,
        shape,
        &short(stats.min),
        &short(stats.max),
        &float(stats.mean),
        &float(stats.std_dev),
        &short(stats.abs_max()),
        &some(stats.zeros),
        &some(stats.nans),
        &some(stats.infinities()),
        &some(stats.subnormals),
        "",
    ]);
}

/// Integers with all of their digits, other numbers with six.
fn short(value: Option<Number>) -> String {
    match value {
        None => String::new(),
        Some(Number::Float(value)) => number(value),
        Some(integer) => integer.to_string(),
    }
}

/// Bars of eighths of a line.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A histogram on one line.
fn write_spark(histogram: Option<&Histogram>, out: &mut Out<'_>) -> io::Result<()> {
    let Some(histogram) = histogram else {
        return Ok(());
    };
    let most = histogram.counts.iter().copied().max().unwrap_or(0).max(1);
    let bar = |count: &u64| match count {
        0 => ' ',
        // From 0 to 7, because no count is above the greatest.
        count => {
            let height = u128::from(*count) * 8 / (u128::from(most) + 1);
            let height = usize::try_from(height).unwrap_or(usize::MAX);
            HEIGHTS.get(height).copied().unwrap_or('█')
        }
    };
    let bars: String = histogram.counts.iter().map(bar).collect();
    let edge = |edge: Option<&f64>| edge.copied().map(number).unwrap_or_default();
    let (low, high) = (edge(histogram.edges.first()), edge(histogram.edges.last()));
    writeln!(out, "  {low} {bars} {high}")
}

/// Columns of the longest bar.
const WIDTH: u64 = 40;

/// A histogram with a line for every bin.
fn write_bars(histogram: Option<&Histogram>, out: &mut Out<'_>) -> io::Result<()> {
    let Some(histogram) = histogram else {
        return Ok(());
    };
    let most = histogram.counts.iter().copied().max().unwrap_or(0).max(1);
    writeln!(out, "{}", out.paint(DIM, "all numbers"))?;
    let edges: Vec<String> = histogram.edges.iter().map(|&edge| number(edge)).collect();
    let widest = edges.iter().map(String::len).max().unwrap_or(0);
    for (edge, &count) in edges.iter().zip(&histogram.counts) {
        let length = u128::from(count) * u128::from(WIDTH) / u128::from(most);
        let bar = "█".repeat(usize::try_from(length).unwrap_or(0));
        let space = if bar.is_empty() { "" } else { " " };
        writeln!(out, "  {edge:>widest$}  {bar}{space}{count}")?;
    }
    match edges.last() {
        Some(edge) => writeln!(out, "  {edge:>widest$}"),
        None => Ok(()),
    }
}
