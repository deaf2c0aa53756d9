//! Long work, in steps: pictures, figures, verification, comparison.

use std::sync::{Arc, Mutex};

use serde::Serialize;
use tenfold::documents::{DiffDocument, StatsDocument};
use tenfold::ops::{
    self, Cell, DiffOptions, DiffSteps, Picture, PictureOptions, PictureSteps, Progress,
    StatsOptions, StatsSteps, Tolerance, Verified, VerifyOptions, VerifySteps,
};
use tenfold::{Archive, Component};

use crate::answer::{Answer, Columns, Float, Int, Kind, Refusal};
use crate::opened::Opened;
use crate::query::Query;
use crate::summary::Found;
use crate::words;

/// Pieces of work that are remembered: who begins more has forgotten the first. A page has one for each picture on it, and
/// the cells of a large one take 56 MB.
const MOST: usize = 8;

/// All work that is under way.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    last: u64,
    jobs: Vec<(u64, Arc<Mutex<Job>>)>,
}

#[derive(Serialize)]
struct Begun {
    job: u64,
    /// Bytes that a picture takes, about.
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<Int>,
}

impl Jobs {
    pub(crate) fn add(&mut self, job: Job) -> Result<Answer, Refusal> {
        self.last += 1;
        let of = match &job {
            Job::Picture(steps) => Some(Int(steps.bytes())),
            _ => None,
        };
        if self.jobs.len() >= MOST {
            self.jobs.remove(0);
        }
        self.jobs.push((self.last, Arc::new(Mutex::new(job))));
        Answer::json(&Begun { job: self.last, of })
    }

    pub(crate) fn find(&self, number: u64) -> Result<Arc<Mutex<Job>>, Refusal> {
        let mut jobs = self.jobs.iter();
        match jobs.find(|(known, _)| *known == number) {
            Some((_, job)) => Ok(job.clone()),
            None => Err(Refusal::unknown(format!(
                "there is no job {number}; it was dropped"
            ))),
        }
    }

    pub(crate) fn forget(&mut self, number: u64) -> Result<Answer, Refusal> {
        self.find(number)?;
        self.jobs.retain(|(known, _)| *known != number);
        Answer::json(&Begun {
            job: number,
            of: None,
        })
    }
}

/// One piece of work.
#[derive(Debug)]
pub(crate) enum Job {
    Picture(Box<PictureSteps>),
    Stats {
        name: String,
        archive: Archive,
        steps: Option<Box<StatsSteps>>,
    },
    Verify {
        archive: Archive,
        steps: Option<Box<VerifySteps>>,
    },
    Diff {
        names: [String; 2],
        steps: Option<Box<DiffSteps>>,
    },
    /// Its result was given already, and is given again.
    Done(Answer),
}

/// Begins what a question asks for. Nothing is read yet.
pub(crate) fn begin(opened: &Opened, query: &Query) -> Result<Job, Refusal> {
    match query.path() {
        "tile" => picture(opened, query),
        "stats" => stats(opened, query),
        _ => {
            let archive = opened.archive()?.clone();
            let steps = VerifySteps::new(&archive, &VerifyOptions::new());
            Ok(Job::Verify {
                archive,
                steps: Some(Box::new(steps)),
            })
        }
    }
}

fn picture(opened: &Opened, query: &Query) -> Result<Job, Refusal> {
    let (place, _) = opened.tensor(query)?;
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let side = |key: &str| -> Result<u32, Refusal> {
        Ok(u32::try_from(query.number_or(key, 512)?).unwrap_or(u32::MAX))
    };
    let axes = match query.numbers("axes")?.as_deref() {
        Some(&[rows, columns]) => Some((size(rows), size(columns))),
        None | Some([]) => None,
        Some(_) => return Err(Refusal::wrong("axes are two numbers: rows,columns".into())),
    };
    let part = |from: &str, to: &str| -> Result<_, Refusal> {
        Ok(match (query.optional(from)?, query.optional(to)?) {
            (Some(from), Some(to)) => Some(from..to),
            (None, None) => None,
            _ => return Err(Refusal::wrong(format!("{from} and {to} belong together"))),
        })
    };
    let component = match query.text("component") {
        None | Some("") => None,
        Some("modulus") => Some(Component::Modulus),
        Some("phase") => Some(Component::Phase),
        Some("real") => Some(Component::Number(0)),
        Some("imaginary") => Some(Component::Number(1)),
        Some(_) => Some(Component::Number(size(query.number("component")?))),
    };
    let options = PictureOptions::new()
        .axes(axes)
        .at(query.numbers("at")?.unwrap_or_default())
        .fold(query.optional("fold")?)
        .part(part("r0", "r1")?, part("c0", "c1")?)
        .cells(side("h")?, side("w")?)
        .component(component)
        .all(query.flag("all"));
    let steps = PictureSteps::new(opened.archive()?, place, &options)?;
    Ok(Job::Picture(Box::new(steps)))
}

fn stats(opened: &Opened, query: &Query) -> Result<Job, Refusal> {
    let archive = if query.text("t").is_some() {
        opened.only(query)?
    } else {
        opened.archive()?.select(|info| info.is_numbers())
    };
    let bins = query.optional("bins")?;
    let bins = bins.map(|bins| u32::try_from(bins).unwrap_or(u32::MAX).min(4096));
    let steps = StatsSteps::new(&archive, &StatsOptions::new().bins(bins));
    Ok(Job::Stats {
        name: opened.name().to_owned(),
        archive,
        steps: Some(Box::new(steps)),
    })
}

/// Begins a comparison.
pub(crate) fn begin_diff(a: &Opened, b: &Opened, query: &Query) -> Result<Job, Refusal> {
    let number = |key: &str| -> Result<Option<f64>, Refusal> {
        let text = query.text(key).filter(|text| !text.is_empty());
        let parsed = text.map(|text| text.parse().map_err(|_| text));
        parsed
            .transpose()
            .map_err(|text| Refusal::wrong(format!("{key} is {text:?}, which is no number")))
    };
    let tolerance = match (number("rtol")?, number("atol")?) {
        (None, None) => None,
        (relative, absolute) => Some(Tolerance::new(
            relative.unwrap_or(0.0),
            absolute.unwrap_or(0.0),
            0,
        )),
    };
    let options = DiffOptions::new()
        .tolerance(tolerance)
        .ignore_dtype(query.flag("ignore-dtype"))
        .ignore_metadata(query.flag("ignore-metadata"))
        .names_only(query.flag("names-only"));
    let right = match (query.text("from"), query.text("to")) {
        (Some(from), to) if !from.is_empty() => {
            renamed(b.archive()?, from, to.unwrap_or_default())?
        }
        _ => b.archive()?.clone(),
    };
    Ok(Job::Diff {
        names: [a.name().to_owned(), b.name().to_owned()],
        steps: Some(Box::new(DiffSteps::new(a.archive()?, &right, &options))),
    })
}

/// The tensors whose names begin with one text, with another in its place.
fn renamed(archive: &Archive, from: &str, to: &str) -> Result<Archive, Refusal> {
    Ok(ops::rename(archive, |name| {
        let rest = name.strip_prefix(from)?;
        Some(format!("{to}{rest}"))
    })?)
}

/// How far work has come, and what came of it.
#[derive(Serialize)]
struct Step<R: Serialize> {
    done: Int,
    of: Int,
    finished: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<R>,
}

fn going_on(progress: Progress) -> Result<Answer, Refusal> {
    Answer::json(&Step::<()> {
        done: Int(progress.done),
        of: Int(progress.total),
        finished: false,
        result: None,
    })
}

fn finished(progress: Progress, result: impl Serialize) -> Result<Answer, Refusal> {
    Answer::json(&Step {
        done: Int(progress.done),
        of: Int(progress.total.max(progress.done)),
        finished: true,
        result: Some(result),
    })
}

impl Job {
    /// Reads about so many bytes, and says what is known then.
    pub(crate) fn step(&mut self, bytes: u64) -> Result<Answer, Refusal> {
        let answer = match self {
            Job::Picture(steps) => {
                let progress = steps.step(bytes)?;
                return shown(steps.picture(), progress);
            }
            Job::Done(answer) => return Ok(answer.clone()),
            Job::Stats {
                name,
                archive,
                steps,
            } => {
                let Some(progress) = advance(steps, |steps| steps.step(bytes))? else {
                    return Err(interrupted());
                };
                if !progress.is_finished {
                    return going_on(progress);
                }
                let stats = steps.take().ok_or_else(interrupted)?.finish()?;
                finished(
                    progress,
                    StatsDocument::new(name, archive, &stats, words::words),
                )?
            }
            Job::Verify { archive, steps } => {
                let Some(progress) = advance(steps, |steps| steps.step(bytes))? else {
                    return Err(interrupted());
                };
                if !progress.is_finished {
                    return going_on(progress);
                }
                let verified = steps.take().ok_or_else(interrupted)?.finish()?;
                finished(progress, Verdict::new(archive, &verified))?
            }
            Job::Diff { names, steps } => {
                let Some(progress) = advance(steps, |steps| steps.step(bytes))? else {
                    return Err(interrupted());
                };
                if !progress.is_finished {
                    return going_on(progress);
                }
                let diff = steps.take().ok_or_else(interrupted)?.finish()?;
                let [a, b] = names;
                finished(progress, DiffDocument::new(a, b, &diff, words::words))?
            }
        };
        *self = Job::Done(answer.clone());
        Ok(answer)
    }
}

/// A step, unless an error ended the work before.
fn advance<S>(
    steps: &mut Option<Box<S>>,
    step: impl FnOnce(&mut S) -> tenfold::Result<Progress>,
) -> Result<Option<Progress>, Refusal> {
    match steps {
        Some(steps) => Ok(Some(step(steps)?)),
        None => Ok(None),
    }
}

fn interrupted() -> Refusal {
    Refusal::wrong("an error ended this work".into())
}

#[derive(Serialize)]
struct Verdict<'a> {
    sound: bool,
    findings: Vec<Found<'a>>,
    checked: Vec<String>,
}

impl<'a> Verdict<'a> {
    fn new(archive: &'a Archive, verified: &'a Verified) -> Self {
        let checked = &verified.checked;
        let mut said = vec![format!("{} tensors read", checked.tensors)];
        for (kind, count) in &checked.checksums {
            said.push(format!("{count} checksums compared ({})", kind.name()));
        }
        if checked.unknown_checksums > 0 {
            said.push(format!(
                "{} checksums are of an unknown kind",
                checked.unknown_checksums
            ));
        }
        if checked.without_checksum > 0 {
            said.push(format!(
                "{} parts have no checksum",
                checked.without_checksum
            ));
        }
        Self {
            sound: verified.is_sound(),
            findings: (verified.findings.iter())
                .map(|finding| Found::new(archive, finding))
                .collect(),
            checked: said,
        }
    }
}

#[derive(Serialize)]
struct Head {
    done: Int,
    of: Int,
    finished: bool,
    rows: [Int; 2],
    cols: [Int; 2],
    size: (usize, usize),
    lines: [Int; 2],
    by_columns: bool,
    stride: Int,
    exact: bool,
    zeros: Int,
    finite: Int,
    nans: Int,
    positive_infinities: Int,
    negative_infinities: Int,
    min: Option<Float>,
    max: Option<Float>,
    mean: Option<Float>,
}

/// A picture as far as it is read: a head, and columns with a number for each cell.
fn shown(picture: &Picture, progress: Progress) -> Result<Answer, Refusal> {
    let total = picture.total();
    let cells = || picture.cells.iter();
    let known = |cell: &Cell, number: f64| if cell.finite > 0 { number } else { f64::NAN };
    let mut columns = Columns::default();
    columns.f64s("min", cells().map(|cell| known(cell, cell.min)));
    columns.f64s("max", cells().map(|cell| known(cell, cell.max)));
    columns.f64s("mean", cells().map(|cell| cell.mean().unwrap_or(f64::NAN)));
    columns.u32s("finite", cells().map(|cell| cell.finite));
    if total.not_finite() > 0 {
        columns.u32s("nans", cells().map(|cell| cell.nans));
        columns.u32s("positive", cells().map(|cell| cell.positive_infinities));
        columns.u32s("negative", cells().map(|cell| cell.negative_infinities));
    }
    let range = |range: &std::ops::Range<u64>| [Int(range.start), Int(range.end)];
    columns.finish(&Head {
        done: Int(progress.done),
        of: Int(progress.total),
        finished: progress.is_finished,
        rows: range(&picture.rows),
        cols: range(&picture.columns),
        size: picture.size,
        lines: [Int(picture.lines.0), Int(picture.lines.1)],
        by_columns: picture.is_by_columns,
        stride: Int(picture.stride),
        exact: picture.is_exact(),
        zeros: Int(picture.zeros),
        finite: Int(total.finite),
        nans: Int(total.nans),
        positive_infinities: Int(total.positive_infinities),
        negative_infinities: Int(total.negative_infinities),
        min: (total.finite > 0).then_some(Float(total.min)),
        max: (total.finite > 0).then_some(Float(total.max)),
        mean: total.mean().map(Float),
    })
}

impl Answer {
    /// Whether it says that something is wrong.
    pub fn is_refusal(&self) -> bool {
        matches!(self.kind, Kind::Refusal | Kind::Unknown)
    }
}
