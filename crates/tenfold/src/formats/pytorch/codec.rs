//! Which of the forms a file has.

#[cfg(feature = "write")]
use super::write;
use super::{FAMILY, LEGACY, MAGIC, SPEC, ZIP, container, legacy};
use crate::error::{Error, Result};
#[cfg(feature = "write")]
use crate::format::{Arranged, Plan, PlanOptions};
use crate::format::{Confidence, Context, Format, Head, OptionSpec, Spec};
use crate::formats::sharded::{self, Shard};
use crate::io::Source;
use crate::model::{Manifest, Region, SourceId};
use crate::prelude::*;
use crate::wire::zip;

/// Reads and writes PyTorch's files.
#[derive(Clone, Copy, Debug)]
pub(super) struct PyTorch;

impl Format for PyTorch {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn detect(&self, head: &Head<'_>) -> Result<Confidence> {
        let first = head.first();
        if first.starts_with(b"PK\x03\x04") {
            return detect_archive(head);
        }
        if first.starts_with(MAGIC) || legacy::begins(first) || is_tar_form(first) {
            return Ok(Confidence::Certain);
        }
        if let Some(name) = head.name()
            && FAMILY.is_index_name(name)
            && sharded::is_index(head)?
        {
            return Ok(Confidence::Likely);
        }
        let by_name = head
            .name()
            .and_then(|name| name.rsplit_once('.'))
            .is_some_and(|(_, end)| SPEC.extensions.contains(&end));
        Ok(if by_name && is_pickle(first) {
            // Describing it says what it is instead.
            Confidence::Possible
        } else {
            Confidence::No
        })
    }

    fn reading_options(&self) -> &'static [OptionSpec] {
        const { &[ROOT] }
    }

    fn is_index(&self, name: &str) -> bool {
        FAMILY.is_index_name(name)
    }

    fn writes_shards(&self) -> bool {
        true
    }

    fn keeps_shared(&self) -> bool {
        true
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        if sharded::is_text(cx.source())? {
            return sharded::describe(cx, &FAMILY);
        }
        let mut manifest = Manifest::new(ZIP);
        describe_file(cx, SourceId::MAIN, cx.source(), &mut manifest)?;
        Ok(manifest)
    }

    #[cfg(feature = "write")]
    fn arrange(&self, what: &Manifest, _: &PlanOptions) -> Result<Option<Arranged>> {
        Ok(write::arrange(what))
    }

    #[cfg(feature = "write")]
    fn plan(&self, what: &Manifest, options: &PlanOptions) -> Result<Plan> {
        write::plan(what, options)
    }
}

/// Which part of what was saved is listed.
pub(super) const ROOT: OptionSpec = OptionSpec::new(
    "root",
    "KEY",
    "list what is under this key only, such as model or state_dict, without it in the names",
);

/// Describes one of several files.
pub(super) fn describe_shard(
    cx: &mut Context<'_>,
    id: SourceId,
    source: &dyn Source,
) -> Result<Shard> {
    let mut manifest = Manifest::new(ZIP);
    describe_file(cx, id, source, &mut manifest)?;
    Ok(Shard {
        metadata: manifest.metadata,
        tensors: manifest.tensors.into_iter().collect(),
        regions: manifest.regions,
        sealed: manifest.sealed,
    })
}

/// Describes one file of perhaps several.
pub(super) fn describe_file(
    cx: &mut Context<'_>,
    id: SourceId,
    source: &dyn Source,
    manifest: &mut Manifest,
) -> Result<()> {
    let begins = |len: u64| source.read(0..source.len().min(len));
    let mark = begins(2)?;
    let saved = if mark == b"PK"[..] {
        container::describe(cx, id, source, manifest)?
    } else if !is_pickle(&mark) && is_tar_form(&begins(TAR_HEADER)?) {
        let message = "a tar archive of torch before 0.1.10; load it with a torch of that time and save it again";
        let header = 0..TAR_HEADER.min(source.len());
        return Err(Error::unsupported("pytorch.tar", message).at(header));
    } else {
        manifest.version = LEGACY.to_owned();
        legacy::describe(cx, id, source, manifest)?
    };
    // What no tensor has of a storage belongs to it all the same.
    for payload in &saved.loose {
        if let Some((id, range)) = payload.stored()
            && range.end <= source.len()
        {
            push_tight(&mut manifest.regions, Region::new(id, range, "storage"));
        }
    }
    if let (tensors @ 1.., storages) = saved.shared {
        let message = format!("{tensors} tensors share {storages} storages");
        cx.note_in(id, "pytorch.shared", 0..0, message);
    }
    if let Some((key, count)) = &saved.repeated {
        let more = match count {
            1 => String::new(),
            n => format!(", and {} more", n - 1),
        };
        let message = format!("two values are called {key:?}, of which the last counts{more}");
        cx.warn_in(id, "pytorch.metadata", 0..0, message)?;
    }
    if let Some(message) = saved.left_out() {
        cx.warn_in(id, "pytorch.metadata", 0..0, message)?;
    }
    manifest.metadata = saved.metadata;
    manifest.tensors.extend(saved.tensors);
    Ok(())
}

/// Bytes that tell a tar archive.
const TAR_HEADER: u64 = 512;

/// By the names in the directory; by that in front of the first member where the directory is damaged.
fn detect_archive(head: &Head<'_>) -> Result<Confidence> {
    match zip::Kind::of(head)? {
        zip::Kind::Torch => Ok(Confidence::Certain),
        zip::Kind::Unknown => {
            let first = head.first();
            let name = b"/data.pkl";
            let is_first = first.windows(name.len()).any(|window| window == name);
            Ok(if is_first {
                Confidence::Likely
            } else {
                Confidence::No
            })
        }
        _ => Ok(Confidence::No),
    }
}

/// Whether this is the beginning of a tar archive with the members that torch wrote at first.
fn is_tar_form(head: &[u8]) -> bool {
    let magic = head.get(257..262);
    let name = head.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = name.strip_prefix(b"./").unwrap_or(name);
    let members: [&[u8]; 4] = [b"sys_info", b"pickle", b"tensors", b"storages"];
    magic == Some(b"ustar") && members.contains(&name)
}

/// Whether this looks like the beginning of a pickle of protocol 2 or later.
fn is_pickle(head: &[u8]) -> bool {
    matches!(head, [0x80, 2..=5, ..])
}
