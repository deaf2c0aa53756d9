//! What a format is: two pure functions and a table of what it can hold.

mod capability;
mod context;
pub(crate) mod diagnose;
mod head;
pub(crate) mod in_place;
pub(crate) mod options;
mod plan;
mod registry;
pub(crate) mod salvage;
mod shard;
pub(crate) mod stem;

pub use crate::model::{Effect, Form, Want};
pub use capability::{Capabilities, Fit, Loss, Lost, adapt};
pub use context::{Context, DescribeOptions, Finding, Severity};
pub use head::Head;
pub use plan::{
    Candidates, Checksums, Compression, Compute, FilePlan, PackSearch, Plan, PlanOptions, Segment,
    Spell, Survey, Written,
};
pub use registry::{Entry, Registry};
pub use shard::ShardName;

use crate::error::{Error, Result};
use crate::io::{Patch, Source, Tree};
use crate::model::{Manifest, Value};
use crate::prelude::*;

/// A file format: how its bytes are described, and how a description becomes a file.
///
/// Both functions are pure: they return plain data and move no tensor bytes.
pub trait Format: Sync + 'static {
    /// Its names, its magic and what it can hold.
    fn spec(&self) -> &'static Spec;

    /// How sure it is that a file is of this format. By default, looks for the magic.
    fn detect(&self, head: &Head<'_>) -> Result<Confidence> {
        self.spec().match_magic(head)
    }

    /// Whether a file of this name is an index: it holds no tensors itself, and names the files beside it that do.
    ///
    /// The name alone decides, before anything is read. A directory with such a file is opened through it and through
    /// nothing else, so it may be claimed only for names that no other file of the format has, and
    /// [`describe`](Self::describe) has to find what the index names among the siblings or fail.
    fn is_index(&self, _name: &str) -> bool {
        false
    }

    /// The file through which a directory is opened if the directory as a whole is of this format, judged by the names
    /// of its files, hidden ones included. It may be a key in the directories below (`variables/variables.index`). By
    /// default `None`: a directory is as many archives as it has files.
    fn directory_file(&self, _names: &[String]) -> Option<&'static str> {
        None
    }

    /// The same for what shows only in the directories below: asked where the files of the directory are of no format, with
    /// all keys below it. By default `None`.
    fn tree_file<'t>(&self, _tree: &'t Tree) -> Option<&'t str> {
        None
    }

    /// Whether what [`plan`](Self::plan) makes for a file of this name is a directory of the name: its files are the keys
    /// below it.
    fn writes_tree(&self, _file_name: &str) -> bool {
        false
    }

    /// The file that a name stands for if it is not a file itself, as `model.ckpt` stands for `model.ckpt.index`. By
    /// default `None`.
    fn file_of_prefix(&self, _prefix: &str) -> Option<String> {
        None
    }

    /// Whether [`plan`](Self::plan) heeds [`PlanOptions::shards`].
    fn writes_shards(&self) -> bool {
        false
    }

    /// What [`describe`](Self::describe) understands of [`Context::option`]: `key=value`, what only this format has.
    fn reading_options(&self) -> &'static [OptionSpec] {
        &[]
    }

    /// Whether [`plan`](Self::plan) stores data that several tensors share only once.
    fn keeps_shared(&self) -> bool {
        false
    }

    /// Reads headers and indexes, and no tensor data.
    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest>;

    /// Arranges what is to be written as the format's own options say and as the file will have it: the selection, the
    /// order, and what only shows when everything is seen together. By default `None`: as it is.
    ///
    /// Comes before [`adapt`], so that whatever it takes away is a loss that it reports itself.
    fn arrange(&self, what: &Manifest, options: &PlanOptions) -> Result<Option<Arranged>> {
        let _ = (what, options);
        Ok(None)
    }

    /// What anybody who writes `what` should know beforehand, such as which programs will not read it. Nothing by
    /// default.
    fn remarks(&self, what: &Manifest, options: &PlanOptions) -> Vec<Finding> {
        let _ = (what, options);
        Vec::new()
    }

    /// Whether an entry of metadata says something about what a file holds, or only about the container. By default, all
    /// of it is content.
    fn owner(&self, _key: &str, _value: &Value) -> Belongs {
        Belongs::ToContent
    }

    /// What must be known of the content before [`plan`](Self::plan) is called. Nothing by default.
    fn survey(&self, _options: &PlanOptions) -> Result<Survey> {
        Ok(Survey::default())
    }

    /// Lays out the files that hold `what`, which [`adapt`] has made to fit one of the profiles.
    fn plan(&self, what: &Manifest, options: &PlanOptions) -> Result<Plan> {
        let _ = (what, options);
        Err(Error::unsupported(
            "read-only",
            format!("{} is read, not written", self.spec().name),
        ))
    }

    /// The bytes to be replaced in a file so that it says `what`, with the data of all tensors where it is: the index alone.
    /// `stored` describes the file as it is, tensor by tensor at the same places, and `len` is its length. The file may
    /// become longer, never shorter. What does not fit is an error that says how much room there is.
    fn amend(
        &self,
        what: &Manifest,
        stored: &Manifest,
        len: u64,
        options: &PlanOptions,
    ) -> Result<Vec<Patch>> {
        let _ = (what, stored, len, options);
        let name = self.spec().name;
        let message = format!("{name} files cannot be edited in place");
        Err(Error::unsupported("in-place", message))
    }
}

/// What an entry of metadata belongs to.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Belongs {
    /// It is part of what the file holds.
    #[default]
    ToContent,
    /// It is about the container. Another format gets it where it has a place for it; without one, nothing is lost.
    ToContainer,
    /// It means something in its own format alone. No other gets it.
    ToFormat,
}

/// What a format's own options make of the tensors to be written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Arranged {
    /// The tensors that will be written, in the order of the file.
    pub manifest: Manifest,
    /// What is taken away, or stands in the way.
    pub losses: Vec<Loss>,
}

impl Arranged {
    /// Tensors that will be written, and what is taken away.
    pub fn new(manifest: Manifest, losses: Vec<Loss>) -> Self {
        Self { manifest, losses }
    }
}

/// The facts about a format that hold without its codec.
#[derive(Debug)]
#[non_exhaustive]
pub struct Spec {
    /// The short name: of the feature, in options, in rules.
    pub id: &'static str,
    /// The name that people use.
    pub name: &'static str,
    /// File extensions without the dot, the usual one first.
    pub extensions: &'static [&'static str],
    /// Bytes at fixed places, any of which marks the format.
    pub magic: &'static [(u64, &'static [u8])],
    /// The versions that are read, as they are called in listings.
    pub reads: &'static [&'static str],
    /// The versions that are written, in order of preference. Empty: read only, as every format is in a build without the
    /// feature `write`.
    pub writes: &'static [Profile],
    /// What only this format understands: `key=value`.
    pub options: &'static [OptionSpec],
}

impl Spec {
    /// A format that is known by its magic. One that is read or written says so by setting the other fields.
    pub const fn known(
        id: &'static str,
        name: &'static str,
        extensions: &'static [&'static str],
        magic: &'static [(u64, &'static [u8])],
    ) -> Self {
        Self {
            id,
            name,
            extensions,
            magic,
            reads: &[],
            writes: &[],
            options: &[],
        }
    }

    /// The format and one of its versions, for people; `-` is the version of a format that has no versions.
    pub fn with_version(&self, version: &str) -> String {
        match version {
            "-" => self.name.to_owned(),
            _ => format!("{} {version}", self.name),
        }
    }

    /// The profile with this version.
    pub fn profile(&self, version: &str) -> Option<&'static Profile> {
        self.writes
            .iter()
            .find(|profile| profile.version == version)
    }

    /// Certain if one of the magics is there.
    pub fn match_magic(&self, source: &dyn Source) -> Result<Confidence> {
        for &(at, magic) in self.magic {
            let end = at + magic.len() as u64;
            if end <= source.len() && source.read(at..end)? == magic {
                return Ok(Confidence::Certain);
            }
        }
        Ok(Confidence::No)
    }
}

/// A version that a format writes.
#[derive(Debug)]
#[non_exhaustive]
pub struct Profile {
    /// The version, as in listings.
    pub version: &'static str,
    /// Which programs read it.
    pub read_by: &'static str,
    /// What it can hold.
    pub can: Capabilities,
}

impl Profile {
    /// A version with the programs that read it, and what it can hold.
    pub const fn new(version: &'static str, read_by: &'static str, can: Capabilities) -> Self {
        Self {
            version,
            read_by,
            can,
        }
    }
}

/// What a build can write of this: nothing without the feature `write`, which then does not carry what versions can hold.
pub(crate) const fn written(profiles: &'static [Profile]) -> &'static [Profile] {
    if cfg!(feature = "write") {
        profiles
    } else {
        &[]
    }
}

/// An option that only one format understands.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OptionSpec {
    /// The key, as in `key=value`.
    pub key: &'static str,
    /// What the value looks like.
    pub value: &'static str,
    /// What it does.
    pub help: &'static str,
}

impl OptionSpec {
    /// An option by its key, with what its value looks like and what it does.
    pub const fn new(key: &'static str, value: &'static str, help: &'static str) -> Self {
        Self { key, value, help }
    }
}

/// How sure a format is that a file is its own.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[allow(missing_docs)] // the names say it
#[non_exhaustive]
pub enum Confidence {
    No,
    Possible,
    Likely,
    Certain,
}
