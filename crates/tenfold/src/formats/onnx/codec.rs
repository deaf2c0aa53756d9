//! Between a model and the description of its tensors.

use bytes::Bytes;

use super::graph::{Scan, Wanted};
use super::raw::RULES;
use super::{SPEC, arrange, external, rewrite, write};
use crate::error::{Error, ErrorKind, Hint, Result};
use crate::format::{
    Arranged, Confidence, Context, Format, Head, OptionSpec, Plan, PlanOptions, Spec, diagnose,
};
use crate::io::Source;
use crate::model::{Kept, Manifest, SourceId, TensorInfo, Tensors};
use crate::prelude::*;
use crate::wire::protobuf::{Value, Walker};

/// Fields that are looked at to recognize a model: more would only be hostile.
const LOOKED_AT: usize = 4096;
/// The greatest `ir_version` that a file without a name is taken for a model by.
const LIKELY_VERSIONS: core::ops::RangeInclusive<u64> = 1..=100;

/// Reads and writes ONNX.
#[derive(Clone, Copy, Debug)]
pub(super) struct Onnx;

impl Format for Onnx {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn detect(&self, head: &Head<'_>) -> Result<Confidence> {
        if is_model(head)? {
            return Ok(Confidence::Likely);
        }
        // A damaged one: describing it says how.
        let is_named = head.name().is_some_and(|name| name.ends_with(".onnx"));
        Ok(if is_named && diagnose::instead(head).is_none() {
            Confidence::Possible
        } else {
            Confidence::No
        })
    }

    fn reading_options(&self) -> &'static [OptionSpec] {
        const {
            &[
                OptionSpec::new(
                    "constants",
                    "true|false",
                    "also list the tensors of Constant nodes, of subgraphs and of functions",
                ),
                OptionSpec::new(
                    "sparse",
                    "true|false",
                    "also list sparse initializers, as sparse tensors",
                ),
            ]
        }
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        let wanted = Wanted {
            constants: cx.flag("constants")?,
            sparse: cx.flag("sparse")?,
        };
        let mut scan = Scan::new(cx, wanted);
        scan.model()?;
        describe(scan)
    }

    #[cfg(feature = "write")]
    fn arrange(&self, what: &Manifest, options: &PlanOptions) -> Result<Option<Arranged>> {
        arrange::arrange(what, options).map(Some)
    }

    #[cfg(feature = "write")]
    fn plan(&self, what: &Manifest, options: &PlanOptions) -> Result<Plan> {
        if rewrite::models(what).next().is_none() {
            return write::plan(what, options);
        }
        match rewrite::rewrite(what, options)? {
            Some(rewritten) => rewritten.data.plan(rewritten.model, options),
            None if rewrite::models(what).all(|kept| kept.is_frame) => write::plan(what, options),
            None => {
                let message = "a model with a graph is one file; its data can be in another one";
                Err(
                    Error::unsupported("onnx.shards", message).hinting(Hint::FormatOption {
                        key: "external",
                        value: "FILE",
                        does: "writes the data to another file",
                    }),
                )
            }
        }
    }
}

/// Whether the top level has only valid fields, a known one first, and among them a graph and a likely version.
fn is_model(head: &Head<'_>) -> Result<bool> {
    let end = head.len();
    let tags = Tags(head);
    let mut w = Walker::over(&tags, 0..end, RULES);
    let (mut graph, mut version) = (false, false);
    for place in 0..LOOKED_AT {
        let field = match w.next(end) {
            Ok(Some(field)) => field,
            Ok(None) => break,
            Err(error) if error.kind() == ErrorKind::Malformed => return Ok(false),
            Err(error) => return Err(error),
        };
        match (field.number, field.value) {
            (1, Value::Varint(number)) => version = LIKELY_VERSIONS.contains(&number),
            (7, Value::Len(_)) => graph = true,
            (5, Value::Varint(_)) | (2..=4 | 6 | 8 | 14 | 20 | 25, Value::Len(_)) => {}
            (..=8, _) => return Ok(false),
            _ if place == 0 => return Ok(false),
            _ => {}
        }
    }
    Ok(graph && version)
}

/// A file of which a few bytes are fetched at once: between two tags of a model are megabytes.
struct Tags<'h>(&'h Head<'h>);

impl Source for Tags<'_> {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.0.read(range)
    }

    fn window(&self) -> u64 {
        self.0.window().min(16)
    }
}

fn describe(mut scan: Scan<'_, '_>) -> Result<Manifest> {
    let whole = 0..scan.cx.source().len();
    let head = core::mem::take(&mut scan.head);
    if head.ir_version <= 0 {
        let message = match head.ir_version {
            0 => "there is no ir_version, which every model has".to_owned(),
            version => format!("ir_version {version}, expected 1 or more"),
        };
        return Err(Error::malformed("onnx.ir-version", message).at(whole));
    }
    if !head.has_graph {
        return Err(Error::malformed("onnx.graph", "the model has no graph").at(whole));
    }
    let mut manifest = core::mem::take(&mut scan.manifest);
    let (first, unlisted) = core::mem::take(&mut scan.unlisted);
    if manifest.tensors.is_empty() && scan.extras.is_empty() && unlisted > 0 {
        let message = match unlisted {
            1 => format!("its only tensor is a sparse initializer, {first:?}"),
            n => format!("its only tensors are {n} sparse initializers, the first is {first:?}"),
        };
        let error = Error::unsupported("onnx.sparse", message).at(whole);
        return Err(error.hinting(Hint::FormatOption {
            key: "sparse",
            value: "true",
            does: "lists it",
        }));
    }
    manifest.version = format!("ir_version {}", head.ir_version);
    let kept = Kept::new(SPEC.id, "graph", SourceId::MAIN, whole.clone()).frame(!head.is_model);
    manifest.kept.push(kept);
    let (metadata, twice) = head.metadata()?;
    manifest.metadata = metadata;
    if let Some(key) = twice {
        let message = format!("a list of keys has {key:?} twice; the last one counts");
        scan.cx.warn("onnx.duplicate-key", whole, message)?;
    }
    add_extras(&mut manifest.tensors, scan.extras)?;
    external::check_overlap(&mut manifest.tensors);
    Ok(manifest)
}

/// Refuses initializers of the same name; what is listed beside them may be called as something in another graph.
fn add_extras(tensors: &mut Tensors, extras: Vec<TensorInfo>) -> Result<()> {
    if let Some((_, name)) = crate::model::repeated(tensors.iter().map(|info| info.name.as_str())) {
        let message = "there are two initializers of this name";
        return Err(Error::malformed("onnx.duplicate-name", message).in_tensor(name));
    }
    if extras.is_empty() {
        return Ok(());
    }
    let mut taken: LookupMap<String, u64> = LookupMap::default();
    taken.extend(tensors.iter().map(|info| (info.name.clone(), 1)));
    for mut info in extras {
        let mut name = info.name.clone();
        while let Some(count) = taken.get_mut(&name) {
            *count += 1;
            name = format!("{}~{count}", info.name);
        }
        taken.insert(name.clone(), 1);
        info.name = name;
        tensors.push(info);
    }
    Ok(())
}
