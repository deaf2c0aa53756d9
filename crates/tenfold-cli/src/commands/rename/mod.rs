//! `tenfold rename`: the same tensors under other names.

mod rules;

use std::collections::HashMap;
use std::path::Path;

use tenfold::documents::Written;
use tenfold::format::Registry;
use tenfold::model::{Quoted, Value};
use tenfold::ops;

use crate::args::RenameArgs;
use crate::commands::write::{Inputs, Places, Request, as_directory, target};
use crate::commands::{self, Session};
use crate::failure::{Exit, Failure, Result};
use crate::metadata::read_metadata;
use crate::output::{Out, count, first_of, say, say_first};
use rules::Rule;

pub(crate) fn run(args: &RenameArgs, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    let (files, output) = match args.files.inputs.as_slice() {
        [only] if args.in_place => (std::slice::from_ref(only), only.as_path()),
        _ if args.in_place => {
            return Err(Failure::Message("--in-place changes one file".into()));
        }
        _ => args.files.places("rename")?,
    };
    let output = if args.in_place {
        output.to_owned()
    } else {
        as_directory(files, output)
    };
    let places = Places {
        inputs: files,
        opening: &args.files.opening,
        output: &output,
    };
    let request = Request {
        is_last: args.files.output.is_none(),
        check: args.checking.or(false),
        shards: args.sharding.shards(),
        brings_along: !args.along.weights_only,
        in_place: args.in_place,
        ..Request::new("rename", places, &args.writing, session)
    };
    let mut names = Names::new(args)?;
    request.check_output()?;
    let inputs = Inputs::open(&request)?;
    let archive = inputs.joined()?;
    // Refuses what leaves nothing; the others are written too, under the names they have.
    request.select(&args.filter, archive.clone())?;
    let filter = commands::Names::new(&args.filter)?;
    let registry = Registry::standard();
    let target = target(&request, Some(&archive), &registry)?;
    let mut renamed = Vec::new();
    let changed = ops::rename(&archive, |name| {
        if !filter.contains(name) {
            return None;
        }
        let new = names.apply(name)?;
        if new != name {
            renamed.push((name.to_owned(), new.clone()));
        }
        Some(new)
    });
    names.refuse_unmatched(args.allow_unmatched)?;
    let archive = changed.map_err(|error| request.about(&error))?;
    let request = request.keeping_files(&inputs, target);
    let options = request.options(target)?;
    let conversion = request.prepare_rewrite(&archive, target, &options)?;
    if !args.writing.quiet {
        say_renamed(&renamed, archive.tensors().len(), args.writing.dry_run);
    }
    let extra = Written {
        renamed: Some(&renamed),
        ..Written::default()
    };
    request.finish(target, conversion, &inputs, extra, out)
}

/// The map and the rules, and which of them matched.
struct Names {
    map: HashMap<String, (String, bool)>,
    /// The old names of the map, in its order.
    order: Vec<String>,
    rules: Vec<(Rule, bool)>,
}

impl Names {
    fn new(args: &RenameArgs) -> Result<Self> {
        let mut names = Self {
            map: HashMap::new(),
            order: Vec::new(),
            rules: Vec::new(),
        };
        if let Some(prefix) = &args.strip_prefix {
            names.rules.push((Rule::strip_prefix(prefix)?, false));
        }
        for rule in &args.rules {
            names.rules.push((Rule::parse(rule)?, false));
        }
        if let Some(prefix) = &args.add_prefix {
            names.rules.push((Rule::add_prefix(prefix)?, false));
        }
        if let Some(path) = &args.map {
            for (old, new) in read_map(path)? {
                names.order.push(old.clone());
                names.map.insert(old, (new, false));
            }
        }
        Ok(names)
    }

    /// The new name, where something matches.
    fn apply(&mut self, name: &str) -> Option<String> {
        let mut new = None;
        if let Some((to, used)) = self.map.get_mut(name) {
            *used = true;
            new = Some(to.clone());
        }
        for (rule, used) in &mut self.rules {
            if let Some(changed) = rule.apply(new.as_deref().unwrap_or(name)) {
                *used = true;
                new = Some(changed);
            }
        }
        new
    }

    /// Says which rules and names matched nothing: mostly a slip of the pen.
    fn refuse_unmatched(&self, allowed: bool) -> Result<()> {
        let rules = self.rules.iter().filter(|(_, used)| !used);
        let rules = rules.map(|(rule, _)| format!("{} matches no tensor", rule.text()));
        let unused = |name: &&String| self.map.get(*name).is_some_and(|(_, used)| !used);
        let names = self.order.iter().filter(unused);
        let names = names.map(|name| {
            format!(
                "the map names {}, but there is no such tensor",
                Quoted(name)
            )
        });
        let unmatched: Vec<_> = rules.chain(names).collect();
        let mut unmatched = first_of(unmatched.into_iter());
        if unmatched.is_empty() {
            return Ok(());
        }
        let last = if allowed { None } else { unmatched.pop() };
        unmatched.iter().for_each(say);
        match last {
            None => Ok(()),
            Some(last) => Err(Failure::Message(format!(
                "{last}; pass --allow-unmatched to continue anyway"
            ))),
        }
    }
}

/// A JSON object of old and new names.
fn read_map(path: &Path) -> Result<Vec<(String, String)>> {
    let about = |why: String| Failure::Message(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path)
        .map_err(|cause| Failure::Message(format!("cannot read {}: {cause}", path.display())))?;
    let map = read_metadata(&text).map_err(|error| about(error.message().to_owned()))?;
    let pairs = map.iter().map(|(old, new)| match new {
        Value::Str(new) => Ok((old.to_owned(), new.clone())),
        _ => Err(about(format!(
            "the new name of {} is not text",
            Quoted(old)
        ))),
    });
    pairs.collect()
}

fn say_renamed(renamed: &[(String, String)], all: usize, listed: bool) {
    if listed {
        let renamed = renamed.iter();
        say_first(renamed.map(|(old, new)| format!("{} becomes {}", Quoted(old), Quoted(new))));
    }
    let all = count(all, "tensor");
    say(format_args!("renaming {} of {all}", renamed.len()));
}
