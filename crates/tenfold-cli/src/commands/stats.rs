//! `tenfold stats`: what the numbers of a file are like.

use std::io::{self, Write};
use std::path::Path;

use tenfold::ops::{self, ArchiveStats, Histogram, Number, Stats, StatsOptions};
use tenfold::{Archive, Error};

use crate::args::StatsArgs;
use crate::commands::inspect::shape;
use crate::commands::{
    Names, for_each_file, format_name, json_for_each_file, open, refuse_nothing,
};
use crate::failure::{Exit, Failure, Result, explain};
use crate::json::Json;
use crate::output::{BOLD, DIM, Out, Table, Verbatim, count, number, say, show_name, show_path};
use crate::progress::Progress;

pub(crate) fn run(args: &StatsArgs, out: &mut Out<'_>) -> Result<Exit> {
    let names = Names::new(&args.filter)?;
    let compute = |path: &Path| {
        let archive = open(path, &args.opening).map_err(|error| Failure::about(path, &error))?;
        refuse_nothing(&args.inputs, &args.filter, &archive)?;
        let archive = match names.is_all() {
            true => archive,
            false => archive.select(|info| names.contains(&info.name)),
        };
        let mut options = StatsOptions::default();
        options.bins = args.hist;
        options.threads = args.threads.count();
        let bar = (!args.no_progress).then(|| Progress::watch(options.control.clone()));
        let stats = ops::stats(&archive, &options);
        drop(bar);
        for error in unreadable(&stats) {
            say(explain(path, error));
        }
        Ok::<_, Failure>((archive, stats))
    };
    if args.inputs.json {
        return json_for_each_file(&args.inputs, out, |path, json| {
            let (archive, stats) = compute(path)?;
            write_json(path, &archive, &stats, json)?;
            Ok(exit(&stats))
        });
    }
    let mut first = true;
    for_each_file(&args.inputs, out, |path, out| {
        let (archive, stats) = compute(path)?;
        if !std::mem::replace(&mut first, false) {
            writeln!(out)?;
        }
        write_text(path, &archive, &stats, out)?;
        Ok(exit(&stats))
    })
}

fn unreadable(stats: &ArchiveStats) -> impl Iterator<Item = &Error> {
    let found = stats.tensors.iter();
    found.filter_map(|(_, found)| found.as_ref().err())
}

fn exit(stats: &ArchiveStats) -> Exit {
    match unreadable(stats).next() {
        None => Exit::Done,
        Some(_) => Exit::Findings,
    }
}

fn write_text(
    path: &Path,
    archive: &Archive,
    stats: &ArchiveStats,
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
    for (info, (name, found)) in archive.manifest().tensors.iter().zip(&stats.tensors) {
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
        let found = stats.tensors.get(at).map(|(_, found)| found);
        match found {
            Some(Ok(found)) => write_spark(found.histogram.as_ref(), out),
            _ => Ok(()),
        }
    })?;
    write_bars(stats.total.histogram.as_ref(), out)
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

fn write_json(
    path: &Path,
    archive: &Archive,
    stats: &ArchiveStats,
    json: &mut Json<'_>,
) -> io::Result<()> {
    json.object(|json| {
        json.text("schema", Some("tenfold.stats/1"))?;
        json.text("file", Some(&path.to_string_lossy()))?;
        json.text("format", archive.format().map(|spec| spec.id))?;
        json.key("tensors")?.array(|json| {
            let infos = archive.manifest().tensors.iter();
            infos
                .zip(&stats.tensors)
                .try_for_each(|(info, (name, found))| {
                    json.line()?.object(|json| {
                        json.text("name", Some(name))?;
                        json.text("dtype", Some(&info.dtype.to_string()))?;
                        json.key("shape")?.array(|json| {
                            let mut sizes = info.shape.iter();
                            sizes.try_for_each(|size| json.entry()?.plain(size))
                        })?;
                        match found {
                            Ok(found) => write_figures(found, json),
                            Err(error) => json.text("error", Some(&error.to_string())),
                        }
                    })
                })
        })?;
        json.key("total")?
            .object(|json| write_figures(&stats.total, json))
    })
}

fn write_figures(stats: &Stats, json: &mut Json<'_>) -> io::Result<()> {
    let exact = |json: &mut Json<'_>, key: &str, value: Option<Number>| match value {
        None => json.key(key)?.null(),
        Some(value) => json.key(key)?.exact(value),
    };
    let float = |json: &mut Json<'_>, key: &str, value: Option<f64>| match value {
        None => json.key(key)?.null(),
        Some(value) => json.key(key)?.float(value),
    };
    json.number("elements", Some(stats.elements))?;
    json.number("numbers", Some(stats.numbers))?;
    json.number("finite", Some(stats.finite))?;
    exact(json, "min", stats.min)?;
    exact(json, "max", stats.max)?;
    exact(json, "abs_max", stats.abs_max())?;
    float(json, "mean", stats.mean)?;
    float(json, "std", stats.std_dev)?;
    json.number("zeros", Some(stats.zeros))?;
    json.number("nan", Some(stats.nans))?;
    json.number("positive_infinities", Some(stats.positive_infinities))?;
    json.number("negative_infinities", Some(stats.negative_infinities))?;
    json.number("subnormals", Some(stats.subnormals))?;
    let Some(histogram) = &stats.histogram else {
        return Ok(());
    };
    json.key("histogram")?.object(|json| {
        json.key("edges")?.array(|json| {
            let mut edges = histogram.edges.iter();
            edges.try_for_each(|&edge| json.entry()?.float(edge))
        })?;
        json.key("counts")?.array(|json| {
            let mut counts = histogram.counts.iter();
            counts.try_for_each(|count| json.entry()?.plain(count))
        })
    })
}
