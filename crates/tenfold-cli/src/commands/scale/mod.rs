//! `tenfold plan`, `run` and `join`: work for many machines.

mod environment;
mod join;
mod options;

use std::io::Write;
use std::path::Path;

use tenfold::Work;
use tenfold::ops::scale::{
    self, Done, LeftOut, LeftOutFor, Plan, Planned, Planning, RunOptions, Site, Verb,
};

use crate::args::{Cut, Kept, PlanArgs, PlanConvert, PlanVerb, RunArgs};
use crate::commands::{Session, is_stream, write_file};
use crate::failure::{Exit, Failure, Result};
use crate::hints;
use crate::losses;
use crate::output::{Out, count, say, say_first, show_path};

pub(crate) use join::join;

/// What this process has.
fn site(session: &Session<'_>, threads: usize) -> Result<Site> {
    let control = session.urls.control();
    let watched = session.interrupts.watch(control.clone());
    watched.map_err(|cause| Failure::Message(format!("cannot watch for Ctrl-C: {cause}")))?;
    let work = Work::new().threads(threads).control(control);
    Ok(session
        .urls
        .site(Site::new().work(work).words(hints::words)))
}

fn cut(planning: Planning, cut: &Cut, kept: &Kept) -> Planning {
    let planning = match (cut.items, cut.item_size) {
        (Some(items), _) => planning.items(usize::try_from(items).unwrap_or(usize::MAX)),
        (None, Some(size)) => planning.item_size(size),
        (None, None) => planning,
    };
    match &kept.state {
        Some(state) => planning.state(state.trim_end_matches('/')),
        None => planning,
    }
}

pub(crate) fn plan(
    args: &PlanArgs,
    limits: &[(String, u64)],
    session: &Session<'_>,
    out: &mut Out<'_>,
) -> Result<Exit> {
    let given = |paths: &[std::path::PathBuf]| -> Vec<String> {
        paths.iter().map(|path| session.urls.given(path)).collect()
    };
    let (verb, inputs, options, threads) = match &args.verb {
        PlanVerb::Convert(args) => return plan_convert(args, limits, session, out),
        PlanVerb::Digest(args) => {
            let digest = &args.digest;
            let options = options::digest(digest, limits)?;
            (
                Verb::Digest,
                given(&digest.inputs.files),
                options,
                &digest.threads,
            )
        }
        PlanVerb::Verify(args) => {
            let verify = &args.verify;
            let options = options::verify(verify, limits)?;
            (
                Verb::Verify,
                given(&verify.inputs.files),
                options,
                &verify.threads,
            )
        }
        PlanVerb::Stats(args) => {
            let stats = &args.stats;
            let options = options::stats(stats, limits)?;
            (
                Verb::Stats,
                given(&stats.inputs.files),
                options,
                &stats.threads,
            )
        }
        PlanVerb::Diff(args) => {
            let diff = &args.diff;
            let inputs = given(&[diff.a.clone(), diff.b.clone()]);
            (
                Verb::Diff,
                inputs,
                options::diff(diff, limits)?,
                &diff.threads,
            )
        }
    };
    let (sizes, kept, file) = match &args.verb {
        PlanVerb::Digest(args) => (&args.cut, &args.kept, &args.plan.output),
        PlanVerb::Verify(args) => (&args.cut, &args.kept, &args.plan.output),
        PlanVerb::Stats(args) => (&args.cut, &args.kept, &args.plan.output),
        PlanVerb::Diff(args) => (&args.cut, &args.kept, &args.plan.output),
        PlanVerb::Convert(_) => return Ok(Exit::Trouble),
    };
    let mut planning = cut(Planning::new(verb, inputs).options(options), sizes, kept);
    if kept.state.is_none() {
        if is_stream(file) {
            let message =
                "where receipts are kept has to be said: --state DIR, which all machines see";
            return Err(Failure::Message(message.into()));
        }
        let name = file.to_string_lossy();
        planning = planning.state(name.strip_suffix(".json").unwrap_or(&name));
    }
    let planned = scale::plan(&planning, &site(session, threads.count())?)?;
    keep(&planned, file, false, session, out)
}

fn plan_convert(
    args: &PlanConvert,
    limits: &[(String, u64)],
    session: &Session<'_>,
    out: &mut Out<'_>,
) -> Result<Exit> {
    let convert = &args.convert;
    let (Some((output, inputs)), writing) = (convert.files.split_last(), &convert.writing) else {
        return Err(Failure::Message("the file to write is missing".into()));
    };
    if inputs.is_empty() {
        return Err(Failure::Message(
            "the file to write is missing: tenfold plan convert IN OUT --items N".into(),
        ));
    }
    let output = options::output(inputs, output);
    let options = options::convert(convert, inputs, &output, limits, session)?;
    let inputs: Vec<String> = inputs.iter().map(|path| session.urls.given(path)).collect();
    let planning = Planning::new(Verb::Convert, inputs)
        .output(session.urls.given(&output))
        .options(options);
    let planning = cut(planning, &args.cut, &args.kept);
    let planned = scale::plan(&planning, &site(session, writing.threads.count())?);
    let planned = planned.map_err(|error| match convert.files.first() {
        Some(input) => Failure::about(input, &error),
        None => error.into(),
    })?;
    if let (Some(conversion), false) = (&planned.conversion, writing.quiet) {
        conversion.casts.iter().for_each(say);
        say_first(losses::lines(&conversion.losses).into_iter());
        for remark in &conversion.remarks {
            say(format_args!(
                "{}: {}",
                remark.severity,
                hints::finding(remark)
            ));
        }
    }
    let name = output.to_string_lossy();
    let name = name.trim_end_matches(std::path::is_separator);
    let file = match &convert.output {
        Some(file) => file.clone(),
        None => format!("{name}.plan.json").into(),
    };
    if output.exists() && !writing.quiet {
        let shown = show_path(&output);
        say(format_args!(
            "{shown} exists already: join will need --force to replace it"
        ));
    }
    keep(&planned, &file, writing.quiet, session, out)
}

/// Writes a plan, and says how to go on.
fn keep(
    planned: &Planned,
    file: &Path,
    quiet: bool,
    session: &Session<'_>,
    out: &mut Out<'_>,
) -> Result<Exit> {
    let text = planned.plan.to_json()?;
    if is_stream(file) {
        write!(out, "{text}")?;
    } else {
        write_file(file, false, session, |file| {
            file.write_all(text.as_bytes()).map_err(Failure::Output)
        })?;
    }
    if !quiet {
        planned.left_out.iter().for_each(say_left_out);
        describe(&planned.plan, file);
    }
    Ok(Exit::Done)
}

/// Says what is in a tree and not in its plan.
fn say_left_out(left_out: &LeftOut) {
    let what = match left_out.why {
        LeftOutFor::DirectoryLink => "links to directories are not followed",
        LeftOutFor::NoTarget => "what it links to is not there",
        LeftOutFor::NotUnicode => "the name is not Unicode",
        LeftOutFor::TooDeep => "it lies too deep",
        LeftOutFor::TrainingState => "it is the state of a training",
        LeftOutFor::Unreadable => "it cannot be read",
        _ => "it is no model",
    };
    let more = match left_out.count {
        1 => String::new(),
        n => format!(", and {} more of the kind", n - 1),
    };
    let first = show_path(Path::new(&left_out.first));
    say(format_args!("left out: {first} ({what}){more}"));
}

fn describe(plan: &Plan, file: &Path) {
    let n = plan.items.len();
    // One that is printed gets its name by whoever keeps it.
    let (name, file) = if is_stream(file) {
        ("the plan".to_owned(), "PLAN".to_owned())
    } else {
        (show_path(file), show_path(file))
    };
    say(format_args!(
        "{name}: {} in {}, receipts in {}",
        plan.verb.name(),
        count(n, "item"),
        plan.state
    ));
    let last = n.saturating_sub(1);
    say(format_args!(
        "each is done by `tenfold run {file} --item N` with N from 0 to {last}, anywhere: sbatch --array=0-{last} --wrap 'tenfold run {file}'"
    ));
}

/// Reads a plan.
fn read(path: &Path, session: &Session<'_>) -> Result<Plan> {
    let about = |error: &tenfold::Error| Failure::about(path, error);
    let bytes = session.read(path)?;
    let text = String::from_utf8_lossy(&bytes);
    Plan::from_json(&text).map_err(|error| about(&error))
}

pub(crate) fn run(args: &RunArgs, session: &Session<'_>) -> Result<Exit> {
    let plan = read(&args.plan, session)?;
    let site = site(session, args.threads.count())?;
    let items = match (&args.item, args.all) {
        (Some(items), _) => items.to_vec(),
        (None, true) => scale::status(&plan, &site)?.missing,
        (None, false) => {
            let found = environment::items(plan.items.len(), |name| std::env::var(name).ok());
            let (items, from) = found.map_err(Failure::Message)?;
            if !args.quiet {
                say(format_args!("{from}: {}", words(&items)));
            }
            items
        }
    };
    let mut worst = Exit::Done;
    for item in items {
        let begun = std::time::Instant::now();
        let done = match scale::run(&plan, item, &RunOptions::new().again(args.again), &site) {
            Ok(done) => done,
            Err(error) if error.kind() == tenfold::ErrorKind::Canceled => {
                return Err(Failure::Canceled);
            }
            Err(error) => {
                say(format_args!("item {item}: {}", hints::message(&error)));
                worst = worst.max(Exit::Trouble);
                continue;
            }
        };
        let (word, has_findings) = match done {
            Done::Before { has_findings } => ("done before", has_findings),
            Done::Joined => ("joined before", false),
            Done::Now { has_findings } => ("done", has_findings),
            _ => ("done", false),
        };
        if has_findings {
            worst = worst.max(Exit::Findings);
        }
        if !args.quiet {
            let seconds = begun.elapsed().as_secs_f64();
            say(format_args!("item {item}: {word} in {seconds:.2} s"));
        }
    }
    Ok(worst)
}

/// `item 3`, `items 0, 8 and 14 more`
fn words(items: &[usize]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<_> = items.iter().take(SHOWN).map(usize::to_string).collect();
    match (items.len(), items.len().saturating_sub(SHOWN)) {
        (0, _) => "no items".into(),
        (1, _) => format!("item {}", shown.join("")),
        (_, 0) => format!("items {}", shown.join(", ")),
        (_, more) => format!("items {} and {more} more", shown.join(", ")),
    }
}
