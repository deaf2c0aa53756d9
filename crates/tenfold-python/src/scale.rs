//! Work for many machines: plans as texts of JSON, so that they travel as they are.

use std::borrow::Cow;

use pyo3::prelude::*;
use serde::Serialize;
use tenfold::documents::{
    DiffDocument, DigestDocument, FindingDocument, StatsDocument, Verification,
};
use tenfold::format::{Finding, Severity};
use tenfold::ops::scale::{
    self, Check, Done, JoinOptions, Options, Plan, Planning, Report, Site, Verb, VerifyReport,
};
use tenfold::{Error, ErrorKind};

use crate::error::raised;
use crate::hint::words;
use crate::ops::json;
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
        scale::run_again(&plan, item, again, &site(watch))
    })?;
    Ok(match done {
        Done::Now(false) => "done",
        Done::Now(true) => "found",
        Done::Before(_) => "before",
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

#[derive(Serialize)]
struct Converted {
    bytes: u64,
    failed: Vec<(String, String)>,
}

/// Joins a plan, and gives what it came to as documents, each with what it is, and errors of inputs that could not be read.
#[pyfunction]
#[pyo3(signature = (plan, check, force, tidy, threads))]
pub(crate) fn join_plan(
    py: Python<'_>,
    plan: &str,
    check: bool,
    force: bool,
    tidy: bool,
    threads: usize,
) -> PyResult<Vec<(&'static str, String)>> {
    let plan = parsed(plan)?;
    let mut options = JoinOptions::default();
    options.force = force;
    options.tidy = tidy;
    if check {
        options.check = Check::Read;
    }
    let report = supervised(py, None, threads, |watch| {
        scale::join(&plan, &options, &site(watch))
    })?;
    let mut documents = Vec::new();
    match report {
        Report::Converted { bytes, bad } => {
            let failed = bad.into_iter();
            let failed = failed.map(|(name, error)| (name, error.to_string()));
            let failed = failed.collect();
            documents.push(("convert", json(&Converted { bytes, failed })?));
        }
        Report::Digested(reports) => {
            for report in reports {
                documents.push(match report.found {
                    Ok(found) => {
                        let document =
                            DigestDocument::new(&report.name, found.format, &found.digests);
                        ("digest", json(&document)?)
                    }
                    Err(error) => return Err(raised(error)),
                });
            }
        }
        Report::Verified(reports) => {
            for report in reports {
                let text = match report.found {
                    Ok(found) => verified(&plan, &report.name, found)?,
                    Err(error) if error.kind() == ErrorKind::Io => return Err(raised(error)),
                    Err(error) => unsound(&report.name, &error)?,
                };
                documents.push(("verify", text));
            }
        }
        Report::Summarized(reports) => {
            for report in reports {
                documents.push(match report.found {
                    Ok(found) => {
                        let (name, stats) = (&report.name, &found.stats);
                        let document = StatsDocument::new(name, &found.archive, stats, words);
                        ("stats", json(&document)?)
                    }
                    Err(error) => return Err(raised(error)),
                });
            }
        }
        Report::Compared(diff) => {
            let name = |place: usize| plan.inputs.get(place).map_or("", |input| input.name());
            let document = DiffDocument::new(name(0), name(1), &diff, words);
            documents.push(("diff", json(&document)?));
        }
        _ => {}
    }
    Ok(documents)
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
    document(
        plan.options.strict,
        name,
        found.format,
        Some(&found.version),
        &findings,
    )
}

fn unsound(name: &str, error: &Error) -> PyResult<String> {
    document(false, name, error.format(), None, &[Finding::from(error)])
}

fn document(
    strict: bool,
    name: &str,
    format: Option<&'static str>,
    version: Option<&str>,
    findings: &[Finding],
) -> PyResult<String> {
    let worst = if strict {
        Severity::Warning
    } else {
        Severity::Error
    };
    let sound = !findings.iter().any(|finding| finding.severity >= worst);
    let rows = findings
        .iter()
        .map(|finding| FindingDocument::new(finding, Cow::Borrowed(name), words));
    json(&Verification::new(name, format, version, sound, rows))
}
