//! Bytes of the files: what they belong to, and what they are.

use serde::Serialize;
use tenfold::Archive;
use tenfold::model::SourceId;
use tenfold::ops::{Extent, ExtentKind};

use crate::answer::{Answer, Int, Kind, Refusal};
use crate::opened::Opened;
use crate::query::Query;

/// Stored bytes that are given at once.
pub(crate) const MOST: u64 = 64 << 10;
/// Cells of a map, at most.
const MOST_CELLS: u64 = 1 << 16;

/// The kinds of bytes, in the order of their numbers.
const KINDS: [&str; 6] = [
    "header",
    "data",
    "padding",
    "unclaimed",
    "overlap",
    "behind the end",
];
const BEHIND: usize = 5;

fn kind(extent: &Extent) -> usize {
    match extent.kind {
        ExtentKind::Header(_) => 0,
        ExtentKind::Data { .. } => 1,
        ExtentKind::Padding => 2,
        ExtentKind::Overlap => 4,
        // Kinds that are new are claimed by nobody here.
        _ => 3,
    }
}

#[derive(Serialize)]
struct Map<'a> {
    file: Option<&'a str>,
    len: Int,
    /// Where data that the file says to have would end.
    ends: Int,
    from: Int,
    to: Int,
    kinds: [&'static str; 6],
    /// Bytes of each kind in the whole file.
    totals: Vec<Int>,
    extents: Vec<Shown>,
    cells: Option<Cells>,
}

/// From, to, kind, and what it is: a tensor and its part, or a label.
#[derive(Serialize)]
struct Shown(
    Int,
    Int,
    usize,
    Option<usize>,
    Option<usize>,
    Option<&'static str>,
);

impl Shown {
    fn new(extent: &Extent) -> Self {
        let (tensor, part, label) = match extent.kind {
            ExtentKind::Data { tensor, part } => (Some(tensor), Some(part), None),
            ExtentKind::Header(label) => (None, None, Some(label)),
            _ => (None, None, None),
        };
        let range = &extent.range;
        Shown(
            Int(range.start),
            Int(range.end),
            kind(extent),
            tensor,
            part,
            label,
        )
    }
}

/// Of each cell: the kind of most of its bytes, all kinds as bits, and the first tensor in it, or -1.
#[derive(Serialize)]
struct Cells {
    kind: Vec<usize>,
    kinds: Vec<u32>,
    tensor: Vec<i64>,
}

pub(crate) fn extents(opened: &Opened, query: &Query) -> Result<Answer, Refusal> {
    let archive = opened.archive()?;
    let file = u32::try_from(query.number_or("file", 0)?).unwrap_or(u32::MAX);
    let source = archive
        .source(SourceId(file))
        .ok_or_else(|| Refusal::unknown(format!("there is no file {file}")))?;
    let len = source.len();
    let mut all: &[Extent] = &[];
    for found in opened.extents()? {
        if found.source == SourceId(file) {
            all = &found.extents;
        }
    }
    let ends = claimed_end(archive, SourceId(file)).max(len);
    let to = query.number_or("to", ends)?.min(ends);
    let from = query.number_or("from", 0)?.min(to);
    let cells = query.number_or("cells", 1024)?.clamp(1, MOST_CELLS);
    let first = all.partition_point(|extent| extent.range.end <= from);
    let last = all.partition_point(|extent| extent.range.start < to);
    let seen = all.get(first..last).unwrap_or_default();
    let is_few = seen.len() as u64 <= cells;
    let mut totals = [0u64; KINDS.len()];
    for extent in all {
        if let Some(total) = totals.get_mut(kind(extent)) {
            *total += extent.range.end - extent.range.start;
        }
    }
    totals[BEHIND] = ends - len;
    Answer::json(&Map {
        file: archive.source_name(SourceId(file)),
        len: Int(len),
        ends: Int(ends),
        from: Int(from),
        to: Int(to),
        kinds: KINDS,
        totals: totals.into_iter().map(Int).collect(),
        extents: seen
            .iter()
            .take(if is_few { seen.len() } else { 0 })
            .map(Shown::new)
            .collect(),
        cells: (!is_few).then(|| in_cells(seen, from, to, cells)),
    })
}

/// Where the data that tensors claim of a file ends.
fn claimed_end(archive: &Archive, file: SourceId) -> u64 {
    let tensors = archive.manifest().tensors.iter();
    let stored =
        tensors.flat_map(|info| info.parts.iter().filter_map(|part| part.payload.stored()));
    let ends = stored
        .filter(|(source, _)| *source == file)
        .map(|(_, range)| range.end);
    ends.max().unwrap_or(0)
}

fn in_cells(extents: &[Extent], from: u64, to: u64, count: u64) -> Cells {
    let mut cells = Cells {
        kind: Vec::new(),
        kinds: Vec::new(),
        tensor: Vec::new(),
    };
    let span = u128::from(to - from);
    let border =
        |cell: u64| from + u64::try_from(span * u128::from(cell) / u128::from(count)).unwrap_or(0);
    let mut rest = extents;
    for cell in 0..count {
        let (start, end) = (border(cell), border(cell + 1));
        let mut bytes = [0u64; KINDS.len()];
        let (mut kinds, mut tensor) = (0, -1);
        while let Some((extent, behind)) = rest.split_first() {
            let overlap = extent
                .range
                .end
                .min(end)
                .saturating_sub(extent.range.start.max(start));
            if overlap > 0 {
                kinds |= 1 << kind(extent);
                if let Some(sum) = bytes.get_mut(kind(extent)) {
                    *sum += overlap;
                }
                if let (ExtentKind::Data { tensor: found, .. }, -1) = (extent.kind, tensor) {
                    tensor = i64::try_from(found).unwrap_or(-1);
                }
            }
            if extent.range.end > end {
                break;
            }
            rest = behind;
        }
        let most = bytes.iter().enumerate().max_by_key(|(_, bytes)| **bytes);
        cells.kind.push(most.map_or(
            BEHIND,
            |(kind, bytes)| if *bytes > 0 { kind } else { BEHIND },
        ));
        cells.kinds.push(kinds);
        cells.tensor.push(tensor);
    }
    cells
}

/// Bytes of a part of a tensor as they are stored, or of a file.
pub(crate) fn stored(opened: &Opened, query: &Query) -> Result<Answer, Refusal> {
    let archive = opened.archive()?;
    let count = query.number_or("n", MOST)?.min(MOST);
    let from = query.number_or("from", 0)?;
    if query.text("t").is_some() {
        let (place, tensor) = opened.tensor(query)?;
        let part = query.number_or("part", 0)?;
        let parts = &tensor.info().parts;
        let found = usize::try_from(part).ok().and_then(|part| parts.get(part));
        let found = found.ok_or_else(|| Refusal::unknown(format!("there is no part {part}")))?;
        if let Some((source, range)) = found.payload.stored() {
            let len = range.end.saturating_sub(range.start);
            return read(archive, source, range.start, len, (from, count));
        }
        // Parts that are in no one place, such as chunks, come as they are decoded.
        let part = usize::try_from(part).unwrap_or(usize::MAX);
        let bytes = opened.undone(place, part)?;
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        let shown = bytes.get(place(from)..place(from.saturating_add(count)));
        return Ok(Answer::new(
            Kind::Binary,
            shown.unwrap_or_default().to_vec(),
        ));
    }
    let file = u32::try_from(query.number_or("file", 0)?).unwrap_or(u32::MAX);
    let len = archive
        .source(SourceId(file))
        .map_or(0, |source| source.len());
    read(archive, SourceId(file), 0, len, (from, count))
}

/// Some of `len` bytes of a file that begin at a place.
fn read(
    archive: &Archive,
    file: SourceId,
    begin: u64,
    len: u64,
    (from, count): (u64, u64),
) -> Result<Answer, Refusal> {
    let Some(source) = archive.source(file) else {
        return Err(Refusal::unknown(format!("there is no file {}", file.0)));
    };
    let (from, to) = (from.min(len), from.saturating_add(count).min(len));
    let there = source.len();
    let range = begin.saturating_add(from).min(there)..begin.saturating_add(to).min(there);
    Ok(Answer::new(Kind::Binary, source.read(range)?.to_vec()))
}
