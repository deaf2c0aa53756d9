//! What is written down: plans and receipts.

use serde::{Deserialize, Serialize};

use super::options::Options;
use crate::digest::{Hasher, Hex};
use crate::error::{Error, ErrorKind, Result};
use crate::io::Stamp;
use crate::model::DigestKind;
use crate::prelude::*;

/// What plans say that they are.
const SCHEMA: &str = "tenfold.plan/1";
/// Digits of an id that the name of a state has.
const SHORT: usize = 12;

/// Work that is cut into items, each of which any machine can do, any number of times.
///
/// It is plain data and holds nothing secret. [`run`](super::run()) does an item of it, [`join`](super::join()) puts
/// together what became of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Plan {
    /// `tenfold.plan/1`.
    pub schema: String,
    /// SHA-256 of all the rest.
    pub id: String,
    /// The version of this library that made it, and that does it.
    pub tenfold: String,
    /// What is done.
    pub verb: Verb,
    /// How it is done.
    #[serde(default, skip_serializing_if = "Options::is_default")]
    pub options: Options,
    /// What is read, and what it was when the plan was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    /// How many inputs there are, where they are listed in files of the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<usize>,
    /// What is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    /// Where receipts are kept: a directory that all machines see. It ends with a separator.
    pub state: String,
    /// What there is to do.
    pub items: Vec<Item>,
}

/// What is done with the inputs of a plan.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Verb {
    /// Written in another format.
    Convert,
    /// Hashed.
    Digest,
    /// Looked at for what is wrong.
    Verify,
    /// Summarized.
    Stats,
    /// Two of them compared.
    Diff,
}

impl Verb {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Convert => "convert",
            Verb::Digest => "digest",
            Verb::Verify => "verify",
            Verb::Stats => "stats",
            Verb::Diff => "diff",
        }
    }
}

/// Something that is opened: a file, or a model of several.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Input {
    /// Where it is, on every machine.
    pub url: String,
    /// How it was called by whoever made the plan, where that is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the file was; nothing where it is a directory.
    #[serde(flatten)]
    pub stamp: Option<Stamp>,
    /// The files that it consists of, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PinnedPart>,
}

/// One of the files of a model.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PinnedPart {
    /// Its name, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it was.
    #[serde(flatten)]
    pub stamp: Stamp,
}

impl Input {
    /// How it is called for people.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.url)
    }

    /// Where its files are: its parts in their order, and what is opened.
    pub(super) fn urls(&self) -> impl Iterator<Item = String> {
        let at = self.url.rfind('/').map_or(0, |at| at + 1);
        let directory = self.url.get(..at).unwrap_or_default();
        let names = self.parts.iter().map(|part| part.name.as_deref());
        let parts = names.map(move |name| format!("{directory}{}", name.unwrap_or_default()));
        parts.chain([self.url.clone()])
    }

    /// The bytes of its files.
    pub(super) fn len(&self) -> u64 {
        let parts = self.parts.iter().map(|part| part.stamp.len);
        let all = parts.fold(0, u64::saturating_add);
        match &self.stamp {
            Some(stamp) if self.parts.is_empty() => stamp.len,
            _ => all,
        }
    }
}

/// What a conversion writes.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Output {
    /// The file, or the directory of several, with a separator at its end.
    pub url: String,
    /// How it was called by whoever made the plan, where that is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The tree of the inputs, where every one of them becomes a file of its own, with its name below that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// SHA-256 of how its files are laid out; nothing where every input becomes a file of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// How many files there are.
    pub files: usize,
    /// Bytes of an only file, without an index at its end that is not known beforehand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub len: Option<u64>,
}

impl Output {
    /// How it is called for people.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.url)
    }

    pub(super) fn is_directory(&self) -> bool {
        self.url.ends_with(['/', std::path::MAIN_SEPARATOR])
    }
}

/// Something for one machine to do.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Item {
    /// Bytes of the output.
    Bytes {
        /// From and to.
        range: [u64; 2],
    },
    /// Whole files of the output.
    Files {
        /// From and to, by their places.
        files: [usize; 2],
    },
    /// Tensors of an input; of a comparison those of the first, and behind them what only the second has.
    Tensors {
        /// Which input.
        input: usize,
        /// From and to, by their places.
        tensors: [usize; 2],
    },
    /// Whole inputs.
    Inputs {
        /// From and to, by their places.
        inputs: [usize; 2],
        /// The file of the state that lists them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        list: Option<String>,
    },
}

impl Plan {
    pub(super) fn new(verb: Verb, options: Options) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            id: String::new(),
            tenfold: env!("CARGO_PKG_VERSION").to_owned(),
            verb,
            options,
            inputs: Vec::new(),
            listed: None,
            output: None,
            state: String::new(),
            items: Vec::new(),
        }
    }

    /// With its id, and in the name of its state the beginning of it.
    pub(super) fn sealed(mut self, base: &str) -> Result<Self> {
        self.state = base.to_owned();
        self.id = self.sum()?;
        self.state = format!("{base}{}/", self.short());
        Ok(self)
    }

    pub(super) fn short(&self) -> &str {
        self.id.get(..SHORT).unwrap_or(&self.id)
    }

    /// SHA-256 of all but the id.
    fn sum(&self) -> Result<String> {
        let bare = Self {
            id: String::new(),
            ..self.clone()
        };
        sha256(bare.to_json()?.as_bytes())
    }

    /// As JSON, an item in each line.
    pub fn to_json(&self) -> Result<String> {
        let bare = Self {
            items: Vec::new(),
            ..self.clone()
        };
        let mut text = json(&bare)?;
        // The items come last.
        let end = text.len() - "]}".len();
        text.truncate(end);
        for (place, item) in self.items.iter().enumerate() {
            text.push_str(if place == 0 { "\n" } else { ",\n" });
            text.push_str(&json(item)?);
        }
        text.push_str("]}\n");
        Ok(text)
    }

    /// Reads what [`to_json`](Self::to_json) wrote; refuses what was damaged or changed since, and what another version made.
    pub fn from_json(text: &str) -> Result<Self> {
        let wrong = |message: String| Error::new(ErrorKind::Argument, "plan.damaged", message);
        let plan: Self = serde_json::from_str(text)
            .map_err(|cause| wrong(format!("this is no plan of tenfold: {cause}")))?;
        if plan.schema != SCHEMA {
            let message = format!("the schema of the plan is {:?}, not {SCHEMA}", plan.schema);
            return Err(wrong(message));
        }
        let own = env!("CARGO_PKG_VERSION");
        if plan.tenfold != own {
            let made = &plan.tenfold;
            let message = format!(
                "the plan was made by tenfold {made} and this is {own}: run it with {made}, or plan again"
            );
            return Err(Error::new(ErrorKind::Argument, "plan.version", message));
        }
        let ending = format!("{}/", plan.short());
        let base = plan.state.strip_suffix(&ending);
        let sum = base.map(|base| {
            let bare = Self {
                state: base.to_owned(),
                ..plan.clone()
            };
            bare.sum()
        });
        if sum.transpose()?.as_deref() != Some(&plan.id) {
            return Err(wrong(
                "the plan is damaged or was edited: its id is not that of what it says; plan again"
                    .to_owned(),
            ));
        }
        Ok(plan)
    }

    /// How many inputs there are.
    pub fn input_count(&self) -> usize {
        self.listed.unwrap_or(self.inputs.len())
    }
}

/// What is left by an item that is done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Receipt {
    pub(super) schema: String,
    /// The id of the plan.
    pub(super) plan: String,
    pub(super) item: usize,
    /// Bytes that were written.
    #[serde(default)]
    pub(super) bytes: u64,
    /// Of these bytes, where they are a range of one file: against damage, and fast enough to be made of everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) crc32c: Option<String>,
    /// What tensors hash to, by the places of their segments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) written: Vec<(usize, String, String)>,
    /// Files that are whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<WholeFile>,
    /// What was found in inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) found: Vec<super::records::Found>,
    pub(super) seconds: f64,
    pub(super) host: String,
}

pub(super) const RECEIPT: &str = "tenfold.receipt/1";

/// A file that an item wrote, or an input that it could not write.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct WholeFile {
    /// The place of the file in the output, or of the input that it is made of.
    pub(super) place: usize,
    pub(super) name: String,
    pub(super) len: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) crc32c: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<super::records::Failed>,
}

/// What is left of a plan that was joined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Joined {
    pub(super) schema: String,
    pub(super) plan: String,
    /// Bytes of what was written.
    pub(super) bytes: u64,
    pub(super) receipts: Vec<Receipt>,
}

pub(super) const JOINED: &str = "tenfold.joined/1";

pub(super) fn json(what: &impl Serialize) -> Result<String> {
    serde_json::to_string(what)
        .map_err(|cause| Error::argument("it has no form in JSON").because(cause))
}

pub(super) fn sha256(bytes: &[u8]) -> Result<String> {
    let mut hasher = hasher()?;
    hasher.update(bytes);
    Ok(Hex(&hasher.finish()).to_string())
}

pub(super) fn hasher() -> Result<Hasher> {
    Hasher::new(DigestKind::Sha256)
        .ok_or_else(|| Error::unsupported("digest", "SHA-256 is not built in"))
}
