//! How work is cut into items.

use super::convert::{self, Prepared};
use super::cut::{MULTIPLE, Size, groups, portions, ranges, shares, whole};
use super::data::{Input, Item, Output, Plan, Verb, json, sha256};
use super::inputs::{
    Collected, Given, collect, everywhere, open_model, refuse_secrets, refuse_store,
};
use super::options::Options;
use super::report;
use super::state::Site;
use super::tree::{LeftOut, STATE};
use crate::archive::Archive;
use crate::error::{Error, ErrorKind, Result};
use crate::ops::Conversion;
use crate::ops::digest::hashed_len;
use crate::prelude::*;

/// Digits of the name of a list.
const LIST: usize = 32;
/// More inputs than this are listed in files of the state.
const LISTED: usize = 10_000;

/// What is to be planned.
///
/// ```
/// use tenfold::ops::scale::{Options, Planning, Verb};
/// let options = Options { to: Some("gguf".into()), ..Options::default() };
/// let planning = Planning::new(Verb::Convert, ["model.safetensors"])
///     .output("model.gguf")
///     .options(options)
///     .item_size(4 << 30);
/// ```
#[derive(Clone, Debug)]
pub struct Planning {
    verb: Verb,
    inputs: Vec<String>,
    output: Option<String>,
    options: Options,
    size: Size,
    state: Option<String>,
    multiple: u64,
    listed_above: usize,
}

/// A plan, and what is worth knowing of it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// What will be written, where that is one conversion: its losses and remarks.
    pub conversion: Option<Conversion>,
    /// What was left out of the trees that it is for.
    pub left_out: Vec<LeftOut>,
}

impl Planning {
    /// For these paths and URLs.
    pub fn new(verb: Verb, inputs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            verb,
            inputs: inputs.into_iter().map(Into::into).collect(),
            output: None,
            options: Options::default(),
            size: Size::Items(1),
            state: None,
            multiple: MULTIPLE,
            listed_above: LISTED,
        }
    }

    /// What is written: a file, or with a separator at its end a directory.
    #[must_use]
    pub fn output(mut self, output: impl Into<String>) -> Self {
        self.output = Some(output.into());
        self
    }

    /// How it is done.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Into how many items it is cut; fewer where there is less to do.
    #[must_use]
    pub fn items(mut self, items: usize) -> Self {
        self.size = Size::Items(items.max(1));
        self
    }

    /// About how many bytes an item has.
    #[must_use]
    pub fn item_size(mut self, bytes: u64) -> Self {
        self.size = Size::Bytes(bytes.max(1));
        self
    }

    /// What the name of the state begins with. Without, that is the name of the output.
    #[must_use]
    pub fn state(mut self, base: impl Into<String>) -> Self {
        self.state = Some(base.into());
        self
    }

    /// At multiples of how many bytes a file is cut: 4 MiB, so that no two machines write to one page or stripe.
    #[must_use]
    pub fn multiple(mut self, bytes: u64) -> Self {
        self.multiple = bytes.max(1);
        self
    }

    /// From how many inputs on these are listed in files of the state: more than 10 000.
    #[must_use]
    pub fn listed_above(mut self, inputs: usize) -> Self {
        self.listed_above = inputs;
        self
    }

    fn base(&self, beside: Option<&str>) -> Result<String> {
        let base = match (&self.state, beside) {
            (Some(state), _) => everywhere(state)?,
            (None, Some(output)) => output
                .trim_end_matches(['/', std::path::MAIN_SEPARATOR])
                .to_owned(),
            (None, None) => {
                let message =
                    "where receipts are kept has to be said: a state that all machines see";
                return Err(Error::argument(message));
            }
        };
        Ok(format!("{base}{STATE}"))
    }
}

/// Plans work. Reads headers, and data only where the layout of a file depends on it.
///
/// ```
/// use tenfold::ops::scale::{self, Plan, Planning, Site, Verb};
/// # let directory = tempfile::tempdir()?;
/// # let file = directory.path().join("model.safetensors");
/// # tenfold::save(&file, [("a", vec![1f32; 100]), ("b", vec![1f32; 100])])?;
/// # let state = directory.path().join("state");
/// let planning = Planning::new(Verb::Digest, [file.to_str().unwrap()]).items(2).state(state.to_str().unwrap());
/// let plan = scale::plan(&planning, &Site::new())?.plan;
/// assert_eq!(plan.items.len(), 2);
/// assert_eq!(Plan::from_json(&plan.to_json()?)?, plan); // what other machines read
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plan(planning: &Planning, site: &Site) -> Result<Planned> {
    if planning.inputs.is_empty() {
        return Err(Error::argument("there is nothing to read"));
    }
    for place in [&planning.output, &planning.state].into_iter().flatten() {
        refuse_secrets(place)?;
        refuse_store(place)?;
    }
    match planning.verb {
        Verb::Convert => plan_convert(planning, site),
        Verb::Diff => plan_diff(planning, site),
        Verb::Digest | Verb::Stats | Verb::Verify => plan_reading(planning, site),
    }
}

fn plan_reading(planning: &Planning, site: &Site) -> Result<Planned> {
    let compares = planning.verb == Verb::Verify;
    let Collected { given, left_out } =
        collect(&planning.inputs, &planning.options, compares, site)?;
    let mut plan = Plan::new(planning.verb, planning.options.clone());
    let lens: Vec<u64> = given.iter().map(|given| given.input.len()).collect();
    let all = lens
        .iter()
        .fold(0, |all: u64, len| all.saturating_add(*len));
    let target = planning.size.of(all);
    let is_alone = given.len() == 1;
    let may_cut = given.len() <= planning.listed_above;
    let mut runs: Vec<Run> = Vec::new();
    for (place, (given, &len)) in given.iter().zip(&lens).enumerate() {
        let large = if may_cut && (len > target || is_alone) {
            opened(&plan, given, site)?
        } else {
            None
        };
        match (large, runs.last_mut()) {
            (None, Some(run)) if run.cut.is_none() => {
                run.inputs.end = place + 1;
                run.bytes = run.bytes.saturating_add(len);
            }
            (cut, _) => runs.push(Run {
                inputs: place..place + 1,
                bytes: len,
                cut,
            }),
        }
    }
    plan.items = items(&runs, &lens, planning.size, target);
    plan.inputs = given.into_iter().map(|given| given.input).collect();
    let planned = seal(plan, planning, None, site)?;
    Ok(Planned {
        left_out,
        ..planned
    })
}

/// What is looked at of an input that may be cut; nothing where it cannot be opened, which is a finding of its item.
fn opened(plan: &Plan, given: &Given, site: &Site) -> Result<Option<Archive>> {
    let opened = match &given.archive {
        Some(archive) => Ok(archive.clone()),
        None => report::open(plan, &given.input, site),
    };
    match opened.and_then(|archive| report::wanted(plan, archive)) {
        Ok((archive, _)) => Ok(Some(archive)),
        Err(error) if error.kind() == ErrorKind::Canceled => Err(error),
        Err(_) => Ok(None),
    }
}

/// Neighbouring inputs that are looked at as a whole, or one that is cut.
struct Run {
    inputs: Range<usize>,
    bytes: u64,
    cut: Option<Archive>,
}

/// Items of all runs: not more than were asked for.
fn items(runs: &[Run], lens: &[u64], size: Size, target: u64) -> Vec<Item> {
    let sizes = match size {
        Size::Bytes(_) => vec![Size::Bytes(target); runs.len()],
        Size::Items(most) => {
            let bytes: Vec<_> = runs.iter().map(|run| run.bytes).collect();
            match portions(&bytes, most) {
                Some(counts) => counts.into_iter().map(Size::Items).collect(),
                // Even one for each would be too many.
                None => {
                    let groups = shares(lens, size).into_iter();
                    return groups.map(|group| whole(group, 0)).collect();
                }
            }
        }
    };
    let mut items = Vec::new();
    for (run, size) in runs.iter().zip(sizes) {
        let Range { start, end } = run.inputs;
        match (&run.cut, size) {
            (Some(archive), size) => items.extend(tensors(archive, start, size)),
            (None, Size::Items(_)) => {
                let lens = lens.get(start..end).unwrap_or_default();
                items.extend(shares(lens, size).into_iter().map(|own| whole(own, start)));
            }
            (None, Size::Bytes(target)) => {
                let lens = lens.iter().take(end).skip(start).copied();
                let groups = groups(lens, target).into_iter();
                items.extend(groups.map(|own| whole(own, start)));
            }
        }
    }
    items
}

/// Items of the tensors of an input.
fn tensors(archive: &Archive, input: usize, size: Size) -> Vec<Item> {
    let lens = archive.tensors().map(|tensor| hashed_len(tensor.info()));
    let lens: Vec<_> = lens.collect();
    let shares = shares(&lens, size).into_iter();
    shares
        .map(|tensors| Item::Tensors { input, tensors })
        .collect()
}

fn plan_diff(planning: &Planning, site: &Site) -> Result<Planned> {
    if planning.inputs.len() != 2 {
        return Err(Error::argument("two archives are compared"));
    }
    let mut plan = Plan::new(Verb::Diff, planning.options.clone());
    for name in &planning.inputs {
        let given = open_model(name, &planning.options, false, site)?;
        plan.inputs.push(given.input);
    }
    let (a, b) = report::both(&plan, site)?;
    if a.tensors().len() + b.tensors().len() == 0 && !planning.options.include.is_empty() {
        return Err(Error::argument(
            "the filters leave no tensor to compare in either file",
        ));
    }
    let options = planning.options.comparing(site.work.shared());
    let lens = crate::ops::DiffSteps::new(&a, &b, &options).places();
    let shares = shares(&lens, planning.size).into_iter();
    plan.items = shares
        .map(|tensors| Item::Tensors { input: 0, tensors })
        .collect();
    seal(plan, planning, None, site)
}

/// Completes a plan, and writes the lists of its inputs.
fn seal(
    mut plan: Plan,
    planning: &Planning,
    conversion: Option<Conversion>,
    site: &Site,
) -> Result<Planned> {
    let mut lists = Vec::new();
    if plan.inputs.len() > planning.listed_above {
        let inputs = core::mem::take(&mut plan.inputs);
        plan.listed = Some(inputs.len());
        for item in &mut plan.items {
            let Item::Inputs {
                inputs: [from, to],
                list,
            } = item
            else {
                continue;
            };
            let own: Vec<&Input> = inputs.iter().take(*to).skip(*from).collect();
            let text = json(&own)?;
            let name = sha256(text.as_bytes())?;
            let name = name.get(..LIST).unwrap_or(&name).to_owned();
            lists.push((format!("{}{name}.json", super::LISTS), text));
            *list = Some(name);
        }
    }
    let output = plan.output.as_ref().map(|output| output.url.clone());
    let plan = plan.sealed(&planning.base(output.as_deref())?)?;
    let state = site.state(&plan)?;
    for (name, text) in lists {
        state.put(&name, text.as_bytes())?;
    }
    Ok(Planned {
        plan,
        conversion,
        left_out: Vec::new(),
    })
}

fn plan_convert(planning: &Planning, site: &Site) -> Result<Planned> {
    let given = planning.output.as_deref();
    let given = given.ok_or_else(|| Error::argument("a conversion has an output"))?;
    let mut url = everywhere(given)?;
    let is_directory = given.ends_with(['/', std::path::MAIN_SEPARATOR]);
    if is_directory && !url.ends_with(['/', std::path::MAIN_SEPARATOR]) {
        url.push('/');
    }
    let output = Output {
        name: Some(given.to_owned()).filter(|name| *name != url),
        url,
        root: None,
        layout: None,
        files: 0,
        len: None,
    };
    if is_directory && planning.options.to.is_some() && planning.inputs.len() == 1 {
        let Collected { given, left_out } =
            collect(&planning.inputs, &planning.options, false, site)?;
        if given.iter().any(|given| given.below.is_some()) {
            let planned = plan_tree(planning, output, given, site)?;
            return Ok(Planned {
                left_out,
                ..planned
            });
        }
    }
    plan_model(planning, output, site)
}

/// Every model of a tree becomes a file of its own.
fn plan_tree(
    planning: &Planning,
    mut output: Output,
    all: Vec<Given>,
    site: &Site,
) -> Result<Planned> {
    let options = &planning.options;
    if options.shard_size.is_some() {
        let message = "a tree of models is converted file by file, without shards";
        return Err(Error::argument(message));
    }
    let registry = site.known();
    let target = options.target(&registry, "")?;
    let extension = target.spec.extensions.first().unwrap_or(&"bin");
    convert::refuse_tree(target, &format!("model.{extension}"))?;
    let mut taken: LookupMap<String, String> = LookupMap::default();
    let tree = planning.inputs.first().map_or("", String::as_str);
    output.root = Some(everywhere(tree)?);
    let own = all.iter().flat_map(|given| given.input.urls());
    let own: LookupMap<String, ()> = own.map(|url| (url, ())).collect();
    for given in &all {
        let below = convert::below(&output, &given.input);
        let name = convert::new_name(&below, extension, &registry);
        if own.contains_key(&format!("{}{name}", output.url)) {
            let given = output.name();
            let message = format!(
                "{given}{name} would be written and is an input; write to another directory"
            );
            return Err(Error::argument(message));
        }
        // Some file systems do not tell them apart.
        if let Some(other) = taken.insert(name.to_lowercase(), given.input.name().to_owned()) {
            let message = format!(
                "{other} and {} would both become {name}",
                given.input.name()
            );
            return Err(Error::new(ErrorKind::Argument, "plan.collision", message));
        }
    }
    let all = all.into_iter().map(|given| given.input);
    let mut plan = Plan::new(Verb::Convert, options.clone());
    plan.inputs = all.collect();
    let lens: Vec<_> = plan.inputs.iter().map(Input::len).collect();
    let shares = shares(&lens, planning.size).into_iter();
    plan.items = shares.map(|group| whole(group, 0)).collect();
    output.files = plan.inputs.len();
    plan.output = Some(output);
    seal(plan, planning, None, site)
}

fn plan_model(planning: &Planning, mut output: Output, site: &Site) -> Result<Planned> {
    let mut plan = Plan::new(Verb::Convert, planning.options.clone());
    let mut archives = Vec::new();
    for name in &planning.inputs {
        let given = open_model(name, &planning.options, false, site)?;
        archives.extend(given.archive);
        plan.inputs.push(given.input);
    }
    if plan.inputs.iter().any(|input| input.url == output.url) {
        let message = format!("{} is the input; write to another name", output.name());
        return Err(Error::argument(message));
    }
    let Prepared { conversion, name } = convert::prepare(&plan, &output.url, &archives, site)?;
    let laid_out = conversion.laid_out(&name)?;
    output.layout = Some(convert::layout(&laid_out)?);
    output.files = laid_out.plan.files.len();
    let places = convert::only_file(&laid_out)?;
    if let ([_], Some(places)) = (laid_out.plan.files.as_slice(), &places)
        && !output.is_directory()
    {
        output.len = Some(places.len);
        let ranges = ranges(places.len, planning.size, planning.multiple).into_iter();
        plan.items = ranges.map(|range| Item::Bytes { range }).collect();
    } else if laid_out.plan.files.len() > 1 || output.is_directory() {
        convert::refuse_index_of_checksums(&laid_out.plan.files)?;
        let files = laid_out.plan.files.iter();
        let lens: Vec<_> = files
            .map(|file| convert::weight(file, &laid_out.archive))
            .collect();
        let shares = shares(&lens, planning.size).into_iter();
        plan.items = shares.map(|files| Item::Files { files }).collect();
    } else {
        return Err(convert::cannot_be_cut());
    }
    plan.output = Some(output);
    seal(plan, planning, Some(conversion), site)
}
