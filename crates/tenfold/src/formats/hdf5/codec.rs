//! Between the objects of a file and the model.

use super::SPEC;
#[cfg(feature = "write")]
use super::write;
use crate::error::{Error, Result};
#[cfg(feature = "write")]
use crate::format::{Arranged, Plan, PlanOptions};
use crate::format::{Confidence, Context, Format, Head, Spec};
use crate::model::{Manifest, SourceId, Value};
use crate::prelude::*;
use crate::wire::hdf5::{self, Content, Remark, RemarkKind};

/// Reads and writes HDF5.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hdf5;

impl Format for Hdf5 {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn detect(&self, head: &Head<'_>) -> Result<Confidence> {
        let found = hdf5::find(head, &(0..crate::io::Source::len(head)))?;
        Ok(match found {
            // Names and shapes are those of MATLAB there.
            Some(_) if head.first().starts_with(hdf5::MATLAB) => Confidence::Likely,
            Some(_) => Confidence::Certain,
            None => Confidence::No,
        })
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        let source = cx.source();
        let content = hdf5::read(source, SourceId::MAIN, 0..source.len(), cx.limits())?;
        if content.tensors.is_empty()
            && let Some(link) = content
                .remarks
                .iter()
                .find(|remark| remark.kind == RemarkKind::External)
        {
            let message = format!(
                "{:?} is an external link, which is never followed, and there is nothing else",
                link.path
            );
            return Err(Error::unsupported("hdf5.external", message));
        }
        report(cx, &content);
        let mut manifest = Manifest::new(format!("superblock {}", content.version));
        if content.range.start > 0 {
            manifest.region(0..content.range.start, "user block");
        }
        for range in content.others() {
            manifest.region(range, "structures");
        }
        let end = content.range.end;
        if end < source.len() {
            manifest.region(end..source.len(), "behind the file");
        }
        manifest.metadata = content.metadata;
        for (path, attributes) in content.groups {
            manifest
                .metadata
                .push(format!("/{path}"), Value::from(attributes));
        }
        manifest.tensors = content.tensors.into();
        Ok(manifest)
    }

    #[cfg(feature = "write")]
    fn arrange(&self, what: &Manifest, _: &PlanOptions) -> Result<Option<Arranged>> {
        Ok(Some(write::arrange(what)))
    }

    #[cfg(feature = "write")]
    fn plan(&self, what: &Manifest, options: &PlanOptions) -> Result<Plan> {
        write::plan(what, options)
    }
}

/// Says what is no tensor of its own.
fn report(cx: &mut Context<'_>, content: &Content) {
    for Remark { kind, path, why } in &content.remarks {
        let rule = match kind {
            RemarkKind::Alias => "hdf5.alias",
            RemarkKind::Attribute => "hdf5.attribute",
            RemarkKind::External => "hdf5.external",
            RemarkKind::Named => "hdf5.named",
            RemarkKind::Skipped => "hdf5.skipped",
        };
        cx.note(rule, content.range.clone(), format!("{path:?}: {why}"));
    }
    if content.unlisted > 0 {
        let message = format!("{} more objects are not listed", content.unlisted);
        cx.note("hdf5.skipped", content.range.clone(), message);
    }
}
