//! Work for many machines: plans as texts of JSON, so that they travel as they are.

use std::borrow::Cow;
use std::path::Path;

use pyo3::prelude::*;
use tenfold::documents::{DiffDocument, DigestDocument, StatsDocument};
use tenfold::format::Finding;
use tenfold::ops::scale::{
    self, Check, Done, FileReport, JoinOptions, Options, Plan, Planning, Report, RunOptions, Site,
    Verb, VerifyReport,
};
use tenfold::{Error, ErrorKind};

use crate::error::{raised, raised_about};
use crate::hint::During;
use crate::hint::words;
use crate::ops::{json, verification};
use crate::supervise::{Watch, supervised};

fn site(watch: &Watch) -> Site {
    Site::new().work(watch.work()).words(words)
}

fn parsed(plan: &str) -> PyResult<Plan> {
    Plan::from_json(plan).map_err(raised)
}

/// Plans work, and gives the plan as JSON.
#[pyfunction]
#[pyo3(signature = (verb, inputs, output, options, items, item_size, state))]
#[allow(clippy::too_many_arguments)] // those of the function in Python
pub(crate) fn plan(
    py: Python<'_>,
    verb: &str,
    inputs: Vec<String>,
    output: Option<String>,
    options: &str,
    items: Option<usize>,
    item_size: Option<u64>,
    state: Option<String>,
) -> PyResult<String> {
    let wrong = |message: String| raised(Error::argument(message));
    let verbs = [
        Verb::Convert,
        Verb::Digest,
        Verb::Verify,
        Verb::Stats,
        Verb::Diff,
    ];
    let verb = verbs.into_iter().find(|known| known.name() == verb);
    let verb =
        verb.ok_or_else(|| wrong("a plan is to convert, digest, verify, stats or diff".into()))?;
    let options: Options = serde_json::from_str(options)
        .map_err(|cause| wrong(format!("options of a plan: {cause}")))?;
    let planning = Planning::new(verb, inputs).options(options);
    let planning = output.into_iter().fold(planning, Planning::output);
    let planning = state.into_iter().fold(planning, Planning::state);
    let planning = items.into_iter().fold(planning, Planning::items);
    let planning = item_size.into_iter().fold(planning, Planning::item_size);
    supervised(py, None, 0, |watch| {
        scale::plan(&planning, &site(watch))?.plan.to_json()
    })
}

/// Does an item, and says what became of it.
#[pyfunction]
#[pyo3(signature = (plan, item, again, threads))]
pub(crate) fn run_item(
    py: Python<'_>,
    plan: &str,
    item: usize,
    again: bool,
    threads: usize,
) -> PyResult<&'static str> {
    let plan = parsed(plan)?;
    let done = supervised(py, None, threads, |watch| {
        scale::run(&plan, item, &RunOptions::new().again(again), &site(watch))
    })?;
    Ok(match done {
        Done::Now {
            has_findings: false,
        } => "done",
        Done::Now { .. } => "found",
        Done::Before { .. } => "before",
        _ => "joined",
    })
}

/// The items that are not done, and whether the plan was joined.
#[pyfunction]
pub(crate) fn plan_status(py: Python<'_>, plan: &str) -> PyResult<(Vec<usize>, bool)> {
    let plan = parsed(plan)?;
    let status = supervised(py, None, 0, |watch| scale::status(&plan, &site(watch)))?;
    Ok((status.missing, status.is_joined))
}

/// Gives a plan up.
#[pyfunction]
pub(crate) fn abandon_plan(py: Python<'_>, plan: &str) -> PyResult<()> {
    let plan = parsed(plan)?;
    supervised(py, None, 0, |watch| scale::abandon(&plan, &site(watch)))
}

/// What a plan came to: kinds of documents, each with its text, or with the exception of an input that could not be read.
type Documents = Vec<(&'static str, Py<PyAny>)>;

/// Joins a plan, and gives what it came to.
#[pyfunction]
#[pyo3(signature = (plan, check, force, tidy, threads))]
pub(crate) fn join_plan(
    py: Python<'_>,
    plan: &str,
    check: bool,
    force: bool,
    tidy: bool,
    threads: usize,
) -> PyResult<Documents> {
    let plan = parsed(plan)?;
    let check = if check { Check::Read } else { Check::Structure };
    let options = JoinOptions::new().check(check).force(force).tidy(tidy);
    let report = supervised(py, None, threads, |watch| {
        scale::join(&plan, &options, &site(watch))
    })?;
    match report {
        Report::Unfinished(status) => {
            let message = format!("not done: {}", status.missing_in_words());
            Err(raised(Error::new(
                ErrorKind::Argument,
                "plan.missing",
                message,
            )))
        }
        Report::Converted { bytes, bad } => {
            let output = plan
                .output
                .as_ref()
                .map_or("", |output| output.url.as_str());
            let written = (output, bytes).into_pyobject(py)?.into_any().unbind();
            let failed = bad
                .into_iter()
                .map(|(name, error)| failed(py, &name, &error));
            Ok([("convert", written)].into_iter().chain(failed).collect())
        }
        Report::Digested(reports) => documents(py, reports, |name, found| {
            let document = DigestDocument::new(name, found.format, &found.digests);
            Ok(("digest", json(&document)?))
        }),
        Report::Verified(reports) => {
            // What is wrong with a file is what was asked for, also where it cannot be opened.
            let known = reports.into_iter().map(|report| {
                let found = match report.found {
                    Ok(found) => Ok(Ok(found)),
                    Err(error) if error.kind() == ErrorKind::Io => Err(error),
                    Err(error) => Ok(Err(error)),
                };
                FileReport::new(report.name, found)
            });
            documents(py, known.collect(), |name, found| {
                let text = match found {
                    Ok(found) => verified(&plan, name, found)?,
                    Err(error) => unsound(name, &error)?,
                };
                Ok(("verify", text))
            })
        }
        Report::Summarized(reports) => documents(py, reports, |name, found| {
            let document = StatsDocument::new(name, &found.archive, &found.stats, words);
            Ok(("stats", json(&document)?))
        }),
        Report::Compared(diff) => {
            let name = |place: usize| plan.inputs.get(place).map_or("", |input| input.name());
            let document = DiffDocument::new(name(0), name(1), &diff, words);
            Ok(vec![("diff", text(py, &json(&document)?)?)])
        }
        _ => Ok(Vec::new()),
    }
}

/// What was found in inputs. One that could not be read does not take the others with it.
fn documents<T>(
    py: Python<'_>,
    reports: Vec<FileReport<T>>,
    document: impl Fn(&str, T) -> PyResult<(&'static str, String)>,
) -> PyResult<Documents> {
    let reports = reports.into_iter();
    reports
        .map(|report| match report.found {
            Ok(found) => {
                let (kind, json) = document(&report.name, found)?;
                Ok((kind, text(py, &json)?))
            }
            Err(error) => Ok(failed(py, &report.name, &error)),
        })
        .collect()
}

fn text(py: Python<'_>, text: &str) -> PyResult<Py<PyAny>> {
    Ok(text.into_pyobject(py)?.into_any().unbind())
}

fn failed(py: Python<'_>, name: &str, error: &Error) -> (&'static str, Py<PyAny>) {
    let raised = raised_about(Some(Path::new(name)), error, During::default());
    ("error", raised.into_value(py).into_any())
}

fn verified(plan: &Plan, name: &str, found: VerifyReport) -> PyResult<String> {
    let note = found.verified.note_in(found.format);
    let mut findings = found.verified.findings;
    findings.push(note);
    if let Some(numbers) = found.numbers {
        let note = numbers.note_in(found.format);
        findings.extend(numbers.findings);
        findings.push(note);
    }
    let file = |_: &Finding| Cow::Borrowed(name);
    verification(
        name,
        (found.format, Some(&found.version)),
        plan.options.strict,
        &findings,
        file,
    )
}

fn unsound(name: &str, error: &Error) -> PyResult<String> {
    let file = |_: &Finding| Cow::Borrowed(name);
    verification(
        name,
        (error.format(), None),
        false,
        &[Finding::from(error)],
        file,
    )
}
