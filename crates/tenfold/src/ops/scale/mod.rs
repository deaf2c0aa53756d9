//! Work for many machines, where one is not enough: it is cut into items here and spread by the engine that is already there.
//!
//! [`plan()`] reads headers and makes a [`Plan`], which is small plain data. [`run()`] does an item of it: any item, on any
//! machine, any number of times, in any order, and at the same time. [`join()`] puts together what became of all of them and
//! makes it visible: byte for byte what one process writes, or finds. Nothing is visible before, nothing runs beside, and an
//! item that is killed is done again.
//!
//! ```
//! use tenfold::ops::scale::{self, JoinOptions, Planning, RunOptions, Site, Verb};
//! # let directory = tempfile::tempdir()?;
//! # let input = directory.path().join("model.safetensors");
//! # tenfold::save(&input, [("weight", vec![1f32; 1000])])?;
//! let output = directory.path().join("model.zt");
//! let site = Site::new();
//! let planning = Planning::new(Verb::Convert, [input.to_str().unwrap()])
//!     .output(output.to_str().unwrap())
//!     .items(16);
//! let plan = scale::plan(&planning, &site)?.plan;
//! for item in 0..plan.items.len() {
//!     scale::run(&plan, item, &RunOptions::new(), &site)?; // on any machine that sees these files
//! }
//! scale::join(&plan, &JoinOptions::new(), &site)?;
//! assert_eq!(tenfold::Archive::open(&output)?.tensor("weight")?.info().shape, [1000]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compare;
mod convert;
mod cut;
mod data;
mod inputs;
mod options;
mod plan;
mod records;
mod report;
mod state;
mod tree;

use std::time::Instant;

pub use data::{Input, Item, Output, PinnedPart, Plan, Verb};
pub use options::{Options, Rule};
pub use plan::{Planned, Planning, plan};
pub use report::{DigestReport, FileReport, StatsReport, VerifyReport};
pub use state::Site;
pub use tree::{LeftOut, LeftOutFor};

use crate::error::{Error, ErrorKind, Result};
use crate::ops::Diff;
use crate::prelude::*;
use data::{JOINED, Joined, RECEIPT, Receipt};
use state::State;

/// What is left when a plan was joined.
const JOINED_FILE: &str = "joined.json";
/// Where receipts and lists are.
const RECEIPTS: &str = "receipts/";
const LISTS: &str = "lists/";

/// What became of an item.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Done {
    /// It was done now.
    Now {
        /// Something was found that is worth telling, such as a file that is not sound.
        has_findings: bool,
    },
    /// It was done before, and nothing was done.
    Before {
        /// Something was found then.
        has_findings: bool,
    },
    /// The plan was joined before.
    Joined,
}

/// How an item is done.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    again: bool,
}

impl RunOptions {
    /// Not what is done already.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also what is done, as for data that was damaged since.
    #[must_use]
    pub fn again(mut self, again: bool) -> Self {
        self.again = again;
        self
    }
}

/// Does an item of a plan, unless it is done. What it leaves is there whole or not at all.
///
/// ```
/// use tenfold::ops::scale::{self, Done, Planning, RunOptions, Site, Verb};
/// # let directory = tempfile::tempdir()?;
/// # let file = directory.path().join("model.safetensors");
/// # tenfold::save(&file, [("weight", vec![1f32; 1000])])?;
/// # let state = directory.path().join("state");
/// let planning = Planning::new(Verb::Verify, [file.to_str().unwrap()]).state(state.to_str().unwrap());
/// let (plan, site) = (scale::plan(&planning, &Site::new())?.plan, Site::new());
/// let (once, again) = (RunOptions::new(), RunOptions::new().again(true));
/// assert_eq!(scale::run(&plan, 0, &once, &site)?, Done::Now { has_findings: false });
/// assert_eq!(scale::run(&plan, 0, &once, &site)?, Done::Before { has_findings: false });
/// assert_eq!(scale::run(&plan, 0, &again, &site)?, Done::Now { has_findings: false });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn run(plan: &Plan, item: usize, options: &RunOptions, site: &Site) -> Result<Done> {
    let Some(what) = plan.items.get(item) else {
        let last = plan.items.len().saturating_sub(1);
        let message = format!("there is no item {item}: items are 0-{last}");
        return Err(Error::new(ErrorKind::Argument, "plan.item", message));
    };
    let state = site.state(plan)?;
    if joined(plan, &state)?.is_some() {
        return Ok(Done::Joined);
    }
    if let (Some(receipt), false) = (receipt(plan, item, &state)?, options.again) {
        let has_findings = has_findings(plan, &receipt);
        return Ok(Done::Before { has_findings });
    }
    let begun = Instant::now();
    let done = match plan.verb {
        Verb::Convert => convert::run(plan, what, &state, site),
        _ => report::run(plan, what, &state, site),
    };
    // It may have been joined meanwhile, by whoever did the same item.
    let done = match done {
        Err(_) if joined(plan, &state).is_ok_and(|joined| joined.is_some()) => {
            return Ok(Done::Joined);
        }
        done => done?,
    };
    let receipt = Receipt {
        schema: RECEIPT.to_owned(),
        plan: plan.id.clone(),
        item,
        seconds: (begun.elapsed().as_secs_f64() * 1000.0).round() / 1000.0,
        host: host(),
        ..done
    };
    if joined(plan, &state)?.is_some() {
        return Ok(Done::Joined);
    }
    state.put_json(&receipt_name(item), &receipt)?;
    let has_findings = has_findings(plan, &receipt);
    Ok(Done::Now { has_findings })
}

fn has_findings(plan: &Plan, receipt: &Receipt) -> bool {
    let strict = plan.options.strict;
    receipt.files.iter().any(|file| file.error.is_some())
        || (receipt.found.iter()).any(|found| report::has_findings(found, strict))
}

fn receipt_name(item: usize) -> String {
    format!("{RECEIPTS}{item:06}.json")
}

/// The receipt of an item, if it is there and belongs to this plan.
fn receipt(plan: &Plan, item: usize, state: &State) -> Result<Option<Receipt>> {
    let Some(bytes) = state.get(&receipt_name(item))? else {
        return Ok(None);
    };
    let receipt: Option<Receipt> = serde_json::from_slice(&bytes).ok();
    let is_own = |receipt: &Receipt| {
        (&receipt.plan, receipt.item) == (&plan.id, item) && receipt.schema == RECEIPT
    };
    Ok(receipt.filter(is_own))
}

fn joined(plan: &Plan, state: &State) -> Result<Option<Joined>> {
    let Some(bytes) = state.get(JOINED_FILE)? else {
        return Ok(None);
    };
    let joined: Option<Joined> = serde_json::from_slice(&bytes).ok();
    Ok(joined.filter(|joined| joined.plan == plan.id && joined.schema == JOINED))
}

/// The machine, for people.
fn host() -> String {
    let name = std::env::var("HOSTNAME").ok();
    let name = name.or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok());
    name.unwrap_or_default().trim().to_owned()
}

/// The inputs of an item, with their places.
fn inputs_of(
    plan: &Plan,
    [from, to]: [usize; 2],
    list: Option<&str>,
    state: &State,
) -> Result<Vec<(usize, Input)>> {
    let Some(list) = list else {
        let inputs = plan.inputs.iter().enumerate().take(to).skip(from);
        return Ok(inputs
            .map(|(place, input)| (place, input.clone()))
            .collect());
    };
    let wrong = |what: &str| {
        let message = format!("the list {list} of inputs {what}; plan again");
        Error::new(ErrorKind::Mismatch, "plan.list", message)
    };
    let bytes = state.get(&format!("{LISTS}{list}.json"))?;
    let bytes = bytes.ok_or_else(|| wrong("is not in the state"))?;
    if !data::sha256(&bytes)?.starts_with(list) {
        return Err(wrong("is damaged"));
    }
    let inputs: Vec<Input> = serde_json::from_slice(&bytes).map_err(|_| wrong("is damaged"))?;
    Ok((from..to).zip(inputs).collect())
}

/// How far a plan is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Status {
    /// Items that are not done.
    pub missing: Vec<usize>,
    /// All of them are done, and were joined.
    pub is_joined: bool,
}

impl Status {
    /// The items that are not done, as `--array=` of schedulers takes them: `3,7-9`.
    pub fn missing_in_words(&self) -> String {
        cut::numbers(&self.missing)
    }
}

/// Which items are done.
///
/// ```
/// use tenfold::ops::scale::{self, Planning, RunOptions, Site, Verb};
/// # let directory = tempfile::tempdir()?;
/// # let file = directory.path().join("model.safetensors");
/// # tenfold::save(&file, [("a", vec![1f32; 100]), ("b", vec![1f32; 100]), ("c", vec![1f32; 100])])?;
/// # let state = directory.path().join("state");
/// let planning = Planning::new(Verb::Digest, [file.to_str().unwrap()]).items(3).state(state.to_str().unwrap());
/// let (plan, site) = (scale::plan(&planning, &Site::new())?.plan, Site::new());
/// scale::run(&plan, 0, &RunOptions::new(), &site)?;
/// assert_eq!(scale::status(&plan, &site)?.missing_in_words(), "1-2");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn status(plan: &Plan, site: &Site) -> Result<Status> {
    let state = site.state(plan)?;
    if joined(plan, &state)?.is_some() {
        return Ok(Status {
            missing: Vec::new(),
            is_joined: true,
        });
    }
    let (_, missing) = receipts(plan, &state)?;
    Ok(Status {
        missing,
        is_joined: false,
    })
}

/// The receipts that are there, and the items that have none.
fn receipts(plan: &Plan, state: &State) -> Result<(Vec<Receipt>, Vec<usize>)> {
    let names = state.names(RECEIPTS)?;
    let names: LookupMap<&str, ()> = names.iter().map(|name| (name.as_str(), ())).collect();
    let mut found = Vec::new();
    let mut missing = Vec::new();
    let is_there = |item: &usize| {
        let name = receipt_name(*item);
        names.contains_key(name.strip_prefix(RECEIPTS).unwrap_or(&name))
    };
    for item in 0..plan.items.len() {
        let receipt = if is_there(&item) {
            receipt(plan, item, state)?
        } else {
            None
        };
        match receipt {
            Some(receipt) => found.push(receipt),
            None => missing.push(item),
        }
    }
    Ok((found, missing))
}

/// Whether what was written is read back.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Check {
    /// Its structure alone.
    #[default]
    Structure,
    /// All of it, and compared with the receipts.
    Read,
}

/// How a plan is joined.
#[derive(Clone, Copy, Debug, Default)]
pub struct JoinOptions {
    check: Check,
    force: bool,
    tidy: bool,
}

impl JoinOptions {
    /// Structure is checked, and nothing replaced.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is read back before it is visible.
    #[must_use]
    pub fn check(mut self, check: Check) -> Self {
        self.check = check;
        self
    }

    /// Whether an existing output is replaced.
    #[must_use]
    pub fn force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    /// Whether nothing of the state is left, not even what says that the plan was joined.
    #[must_use]
    pub fn tidy(mut self, tidy: bool) -> Self {
        self.tidy = tidy;
        self
    }
}

/// What a plan came to.
#[derive(Debug)]
#[non_exhaustive]
pub enum Report {
    /// Items are not done, and nothing was put together.
    Unfinished(Status),
    /// Files were written, of so many bytes; inputs that are bad, where every input has its own file.
    Converted {
        /// Bytes of all files.
        bytes: u64,
        /// Inputs that could not be converted, and why.
        bad: Vec<(String, Error)>,
    },
    /// Hashes.
    Digested(Vec<FileReport<DigestReport>>),
    /// What is wrong.
    Verified(Vec<FileReport<VerifyReport>>),
    /// Figures.
    Summarized(Vec<FileReport<StatsReport>>),
    /// Differences.
    Compared(Box<Diff>),
}

/// Puts together what the items left, when all are done, and makes it visible. What was joined is not joined again; a report
/// is made again from what is left of it.
///
/// ```
/// use tenfold::ops::scale::{self, Check, JoinOptions, Planning, Report, RunOptions, Site, Verb};
/// # let directory = tempfile::tempdir()?;
/// # let file = directory.path().join("model.safetensors");
/// # tenfold::save(&file, [("weight", vec![1f32; 1000])])?;
/// let output = directory.path().join("model.npz");
/// let planning = Planning::new(Verb::Convert, [file.to_str().unwrap()]).output(output.to_str().unwrap());
/// let (plan, site) = (scale::plan(&planning, &Site::new())?.plan, Site::new());
/// let options = JoinOptions::new().check(Check::Read);
/// assert!(matches!(scale::join(&plan, &options, &site)?, Report::Unfinished(_)));
/// scale::run(&plan, 0, &RunOptions::new(), &site)?;
/// assert!(matches!(scale::join(&plan, &options, &site)?, Report::Converted { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn join(plan: &Plan, options: &JoinOptions, site: &Site) -> Result<Report> {
    let state = site.state(plan)?;
    if let Some(joined) = joined(plan, &state)? {
        if plan.verb == Verb::Convert {
            if options.tidy {
                state.clear(None)?;
            }
            let output = plan.output.as_ref().map_or("", Output::name);
            let message = format!("the plan was joined before, and {output} was written");
            return Err(Error::new(ErrorKind::Argument, "plan.joined", message));
        }
        let report = report_of(plan, &joined.receipts, site)?;
        if options.tidy {
            state.clear(None)?;
        }
        return Ok(report);
    }
    let (receipts, missing) = receipts(plan, &state)?;
    if !missing.is_empty() {
        let is_joined = false;
        return Ok(Report::Unfinished(Status { missing, is_joined }));
    }
    let (report, bytes) = if plan.verb == Verb::Convert {
        let (bytes, bad) = convert::join(plan, &receipts, &state, options, site)?;
        (Report::Converted { bytes, bad }, bytes)
    } else {
        (report_of(plan, &receipts, site)?, 0)
    };
    if options.tidy {
        state.clear(None)?;
        return Ok(report);
    }
    let joined = Joined {
        schema: JOINED.to_owned(),
        plan: plan.id.clone(),
        bytes,
        receipts,
    };
    state.put_json(JOINED_FILE, &joined)?;
    state.clear(Some(JOINED_FILE))?;
    Ok(report)
}

fn report_of(plan: &Plan, receipts: &[Receipt], site: &Site) -> Result<Report> {
    Ok(match plan.verb {
        Verb::Digest => Report::Digested(report::join_digest(receipts)?),
        Verb::Verify => Report::Verified(report::join_verify(receipts)?),
        Verb::Stats => Report::Summarized(report::join_stats(receipts)?),
        Verb::Diff => Report::Compared(Box::new(report::join_diff(plan, receipts, site)?)),
        Verb::Convert => return Err(Error::argument("a conversion has no report")),
    })
}

/// Gives a plan up: removes what its items left.
///
/// ```
/// use tenfold::ops::scale::{self, Planning, RunOptions, Site, Verb};
/// # let directory = tempfile::tempdir()?;
/// # let file = directory.path().join("model.safetensors");
/// # tenfold::save(&file, [("weight", vec![1f32; 1000])])?;
/// # let state = directory.path().join("state");
/// let planning = Planning::new(Verb::Stats, [file.to_str().unwrap()]).state(state.to_str().unwrap());
/// let (plan, site) = (scale::plan(&planning, &Site::new())?.plan, Site::new());
/// scale::run(&plan, 0, &RunOptions::new(), &site)?;
/// scale::abandon(&plan, &site)?;
/// assert_eq!(scale::status(&plan, &site)?.missing, [0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn abandon(plan: &Plan, site: &Site) -> Result<()> {
    let state = site.state(plan)?;
    state.clear(None)
}
