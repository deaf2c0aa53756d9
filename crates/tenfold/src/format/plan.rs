//! A file to be written, as data.

use core::fmt;

use super::options;
use crate::error::{Error, Result};
use crate::io::Source;
use crate::model::{
    Checksum, Codec, DType, DigestKind, Endian, Filter, Form, Over, SourceId, Symmetry, TensorInfo,
    Want,
};
use crate::prelude::*;

/// The files to be written.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Plan {
    /// One, or several that belong together. The first is the one that is opened to read them all; it is written and
    /// made visible last, because it names the others.
    pub files: Vec<FilePlan>,
}

impl Plan {
    /// A single file.
    pub fn single(name: impl Into<String>, segments: Vec<Segment>) -> Self {
        Self {
            files: vec![FilePlan::new(name, segments)],
        }
    }
}

/// One file to be written, from its first byte to its last.
#[derive(Debug)]
#[non_exhaustive]
pub struct FilePlan {
    /// The plain name, without a directory; in a [tree](crate::format::Format::writes_tree) the names on the way to it, too,
    /// with `/` in between.
    pub name: String,
    /// Its bytes in order.
    pub segments: Vec<Segment>,
    /// Whether it says what the other files hold: it is written after them, and what is [computed](Segment::Computed)
    /// for it knows what is in them.
    pub is_index: bool,
}

impl FilePlan {
    /// A file by its plain name, with its bytes in order.
    pub fn new(name: impl Into<String>, segments: Vec<Segment>) -> Self {
        Self {
            name: name.into(),
            segments,
            is_index: false,
        }
    }
}

/// Bytes of a file to be written.
#[non_exhaustive]
pub enum Segment {
    /// Bytes that are known now: headers, records.
    Bytes(Vec<u8>),
    /// As many bytes of `fill` as it takes to come to a multiple of `to`.
    Align {
        /// The multiple.
        to: u64,
        /// The padding.
        fill: u8,
    },
    /// Bytes of a file that the tensors came from, as they are.
    Copy {
        /// The file.
        source: SourceId,
        /// The bytes.
        range: Range<u64>,
    },
    /// Data of a tensor.
    Tensor {
        /// Which tensor.
        index: usize,
        /// Which of its parts.
        part: usize,
        /// In which form.
        want: Want,
        /// Compressed how. Never with [`Want::Stored`].
        codec: Option<Codec>,
        /// Hashed how, while it is written.
        digest: Option<(DigestKind, Over)>,
    },
    /// A tensor in chunks, each of which goes through filters by itself: how long it gets is known afterwards.
    Chunks {
        /// Which tensor.
        index: usize,
        /// The type of the elements, which are little-endian.
        dtype: DType,
        /// Elements of a chunk along every dimension.
        sides: Vec<u64>,
        /// What is done to each of them, in this order.
        filters: Vec<Filter>,
        /// Which of them, the last dimension of the grid running fastest; all, where nothing is said.
        numbers: Option<Range<u64>>,
        /// Hashed how, while they are written.
        digest: Option<(DigestKind, Over)>,
    },
    /// A whole tensor as text: every piece of it goes through `spell`, and how long that gets is known afterwards.
    Text {
        /// Which tensor.
        index: usize,
        /// The form of the elements that `spell` gets.
        form: Form,
        /// Makes text of elements.
        spell: Spell,
        /// Hashed how, while it is written.
        digest: Option<(DigestKind, Over)>,
    },
    /// Bytes that depend on what was written before them: indexes, footers. For an [index](FilePlan::is_index) of other files,
    /// what these have comes first.
    Computed(Compute),
    /// Bytes of a known length that depend on what is written after them, up to the first computed ones: sizes and
    /// checksums in front of data. A file gets them at the end; for a stream, everything is made twice.
    Late {
        /// How many there are.
        len: u64,
        /// Makes exactly as many.
        make: Compute,
    },
}

/// Appends the text of some whole elements, which do not depend on those before and after them.
pub type Spell = fn(elements: &[u8], out: &mut Vec<u8>) -> Result<()>;

/// Makes bytes from what was written before them in the same file, or is written after them, and from where they begin.
pub type Compute = Box<dyn FnOnce(&[Written], u64) -> Result<Vec<u8>> + Send + Sync>;

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Segment::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Segment::Align { to, .. } => write!(f, "Align({to})"),
            Segment::Copy { source, range } => write!(f, "Copy({}, {range:?})", source.0),
            Segment::Tensor {
                index,
                part,
                want,
                codec,
                digest,
            } => {
                write!(f, "Tensor({index}.{part}, {want:?}, {codec:?}, {digest:?})")
            }
            Segment::Chunks { index, sides, .. } => write!(f, "Chunks({index}, {sides:?})"),
            Segment::Text { index, form, .. } => write!(f, "Text({index}, {form:?})"),
            Segment::Computed(_) => f.write_str("Computed"),
            Segment::Late { len, .. } => write!(f, "Late({len})"),
        }
    }
}

/// A tensor's part that has been written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Written {
    /// Which tensor.
    pub index: usize,
    /// Which of its parts.
    pub part: usize,
    /// Where its bytes are in the file, as stored.
    pub range: Range<u64>,
    /// Bytes before compression.
    pub raw_len: u64,
    /// The hash that was asked for.
    pub digest: Option<Checksum>,
    /// Of a tensor in [chunks](Segment::Chunks), the bytes that each of them has in the file.
    pub chunks: Vec<u32>,
}

impl Written {
    /// A part that was written before, and stays where it is.
    pub(crate) fn stays(index: usize, part: usize, range: Range<u64>, raw_len: u64) -> Self {
        Self {
            index,
            part,
            range,
            raw_len,
            digest: None,
            chunks: Vec::new(),
        }
    }
}

/// How tensors are compressed in the file to be written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Compression {
    /// As they are now, where the target can.
    #[default]
    Keep,
    /// Not.
    Raw,
    /// With zstd at this level.
    Zstd(i32),
}

/// Which checksums the file to be written has.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Checksums {
    /// Those of the source, where the target can hold them and they still are right.
    #[default]
    Keep,
    /// None.
    None,
    /// This kind for every tensor.
    With(DigestKind),
}

/// What must be known of the content before a plan is made.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Survey {
    /// This checksum over the decoded, little-endian bytes of every part is computed, and takes the place of the one
    /// that the part has.
    pub digest: Option<DigestKind>,
    /// Sparse matrices by rows whose columns are not in ascending order are refused.
    pub rising_columns: bool,
    /// Records of [`Layout::Pairs`](crate::model::Layout::Pairs) are sorted by their index, without those that are 0, with values in the byte order
    /// that their type has in the target.
    pub pairs: Option<fn(DType) -> Endian>,
    /// A symmetry is looked for that each dense tensor can be packed by.
    pub pack: Option<PackSearch>,
}

impl Survey {
    /// Whether nothing must be known.
    pub fn is_nothing(&self) -> bool {
        self.digest.is_none() && !self.rising_columns && self.pairs.is_none() && self.pack.is_none()
    }
}

/// The symmetries to try on a tensor, the best first.
pub type Candidates = Arc<dyn Fn(&TensorInfo) -> Result<Vec<Symmetry>> + Send + Sync>;

/// Which symmetries are looked for.
#[derive(Clone)]
#[non_exhaustive]
pub struct PackSearch {
    /// The symmetries to try on a tensor, the best first.
    pub candidates: Candidates,
    /// A tensor that has none of them is an error; otherwise it stays as it is.
    pub required: bool,
}

impl PackSearch {
    /// Symmetries to try on a tensor; `required` says that one must be found.
    pub fn new(candidates: Candidates, required: bool) -> Self {
        Self {
            candidates,
            required,
        }
    }
}

impl fmt::Debug for PackSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackSearch")
            .field("required", &self.required)
            .finish_non_exhaustive()
    }
}

/// How a file is to be written.
#[derive(Clone)]
#[non_exhaustive]
pub struct PlanOptions {
    /// The version to write: one of the format's profiles.
    pub version: &'static str,
    /// The plain name of the file to write; names of further files derive from it.
    pub file_name: String,
    /// The format's own options, checked against its table.
    pub options: Vec<(String, String)>,
    /// Compression, tensor by tensor.
    pub compression: Arc<dyn Fn(&TensorInfo) -> Compression + Send + Sync>,
    /// Checksums of tensors.
    pub checksums: Checksums,
    /// Seconds since 1970, for formats that record a time. 0 by default: the same input, the same bytes.
    pub timestamp: u64,
    /// Several files and an index of them: the places of the tensors that each has. Set only for formats that
    /// [write shards](crate::format::Format::writes_shards).
    pub shards: Option<Vec<Vec<usize>>>,
    /// The names of these files, where they are to be kept and the format can have any; else they are numbered.
    pub shard_names: Option<Vec<String>>,
    /// The files that the tensors came from, by their places: what is [kept](crate::model::Kept) of them can be looked at
    /// where something in it has to be changed.
    pub sources: Vec<Arc<dyn Source>>,
}

impl PlanOptions {
    /// The defaults for a version.
    pub fn new(version: &'static str, file_name: impl Into<String>) -> Self {
        Self {
            version,
            file_name: file_name.into(),
            options: Vec::new(),
            compression: Arc::new(|_| Compression::Keep),
            checksums: Checksums::Keep,
            timestamp: 0,
            shards: None,
            sources: Vec::new(),
            shard_names: None,
        }
    }

    /// The value of one of the format's own options; the last one given counts.
    pub fn option(&self, key: &str) -> Option<&str> {
        options::find(&self.options, key)
    }

    /// An option that is a number.
    pub fn number(&self, key: &str) -> Result<Option<u64>> {
        self.option(key)
            .map(|value| {
                value
                    .parse()
                    .map_err(|cause| self.wrong(key, "expected a whole number").because(cause))
            })
            .transpose()
    }

    /// An option that is on or off.
    pub fn flag(&self, key: &str) -> Result<bool> {
        options::flag(&self.options, key)
    }

    /// The error for an option of the format whose value is not valid.
    pub fn wrong(&self, key: &str, why: impl fmt::Display) -> Error {
        options::wrong(&self.options, key, why)
    }
}

impl fmt::Debug for PlanOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanOptions")
            .field("version", &self.version)
            .field("file_name", &self.file_name)
            .field("options", &self.options)
            .field("checksums", &self.checksums)
            .finish_non_exhaustive()
    }
}
