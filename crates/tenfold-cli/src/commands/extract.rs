//! `tenfold extract`: some of the tensors in a new file, or each in its own.

use tenfold::Archive;
use tenfold::documents::{LossDocument, Written};
use tenfold::format::{Effect, Loss, Lost, Registry};

use crate::args::{ExtractArgs, Filter};
use crate::commands::write::{Inputs, Places, Request, target};
use crate::commands::{Names, Session, tensor_named};
use crate::failure::{Exit, Result};
use crate::hints;
use crate::output::{LISTED, Out, first_of, say};

pub(crate) fn run(args: &ExtractArgs, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    let (inputs, output) = args.files.places("extract")?;
    let places = Places {
        inputs,
        opening: &args.files.opening,
        output,
    };
    let request = Request {
        is_last: args.files.output.is_none(),
        check: args.checking.or(false),
        shards: args.sharding.shards(),
        ..Request::new("extract", places, &args.writing, session)
    };
    request.check_output()?;
    let inputs = Inputs::open(&request)?;
    let all = inputs.joined()?;
    let registry = Registry::standard();
    let target = target(&request, Some(&all), &registry)?;
    let (all, groups) = request.grouped(&args.types, all)?;
    let archive = select(&request, &args.filter, &args.tensors, all)?;
    let retyped = request.retype(&args.types, archive, groups)?;
    let archive = &retyped.archive;
    let options = request.options(target)?;
    let mut conversion = request.prepare_rewrite(archive, target, &options)?;
    // Tensors were asked for: what the file says of itself is not part of them.
    // And so is a file that is missing, where all that was asked for is there.
    let is_named = !args.tensors.is_empty() && !has_patterns(&args.filter);
    let (about_file, losses) = (conversion.losses.into_iter()).partition::<Vec<_>, _>(|loss| {
        is_about_file(loss) || (is_named && loss.what == Lost::MissingFile)
    });
    conversion.losses = losses;
    if !args.writing.quiet {
        say_left(&about_file);
    }
    let extra = Written {
        file_metadata: Some(
            about_file
                .iter()
                .map(|loss| LossDocument::new(loss, hints::words))
                .collect(),
        ),
        ..Written::default()
    };
    request.finish_retyped(target, conversion, &inputs, extra, Some(&retyped), out)
}

/// Whether it is about metadata of the file, not of a tensor.
fn is_about_file(loss: &Loss) -> bool {
    loss.tensor.is_none() && loss.is_metadata()
}

fn say_left(losses: &[Loss]) {
    let (out, changed): (Vec<_>, Vec<_>) =
        (losses.iter()).partition(|loss| loss.effect > Effect::Changed);
    changed.iter().take(LISTED).for_each(say);
    let (missing, out): (Vec<_>, Vec<_>) =
        (out.into_iter()).partition(|loss| loss.what == Lost::MissingFile);
    missing.iter().for_each(|loss| say(&loss.why));
    let words = first_of(out.iter().map(|loss| loss.what.to_string()));
    if !words.is_empty() {
        let words = words.join(", ");
        say(format_args!(
            "left out, since it belongs to the file and not to a tensor: {words}"
        ));
    }
}

/// The tensors that are named, and those that the patterns leave. A name that no tensor has is an error.
fn select(
    request: &Request<'_>,
    filter: &Filter,
    tensors: &[String],
    archive: Archive,
) -> Result<Archive> {
    if tensors.is_empty() {
        return request.select(filter, archive);
    }
    for name in tensors {
        tensor_named(&archive, &request.title(), name)?;
    }
    let names = Names::new(filter)?;
    let patterns = has_patterns(filter);
    Ok(archive.select(|info| {
        let named = tensors.contains(&info.name);
        named || (patterns && names.contains(&info.name))
    }))
}

/// Whether tensors are asked for by more than their names.
fn has_patterns(filter: &Filter) -> bool {
    !filter.include.is_empty() || !filter.regex.is_empty()
}
