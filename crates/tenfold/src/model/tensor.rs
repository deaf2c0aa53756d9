//! One tensor: what it is, and where its bytes are.

use core::fmt;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::model::{
    CastCounts, Chunks, DType, Endian, Layout, Metadata, PartList, Planes, Scheme, Shape, Symmetry,
};
use crate::prelude::*;

/// Which of an archive's files: the one that was opened is [`SourceId::MAIN`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SourceId(pub u32);

impl SourceId {
    /// The file that was opened.
    pub const MAIN: SourceId = SourceId(0);

    /// The place in a list of files.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A tensor of a file.
///
/// Files with a hundred thousand tensors are nothing unusual, so what few tensors have takes one word while it is
/// absent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TensorInfo {
    /// The name, any UTF-8 text.
    pub name: String,
    /// The type of the elements as readers get them.
    pub dtype: DType,
    /// The dimensions, outermost first. Empty for a scalar.
    pub shape: Shape,
    /// How the parts make up the elements.
    pub layout: Layout,
    /// Where the bytes are. A dense tensor has one, of [`Role::Values`].
    pub parts: PartList,
    /// What the file says about this tensor beyond its type and place.
    pub metadata: Metadata,
    /// Turns quantized parts into numbers, where that is known. Used when the layout is [`Layout::Decoded`].
    pub decoder: Option<Arc<dyn Decode>>,
    /// Why the tensor is listed but cannot be read. The other tensors can.
    pub defect: Option<Error>,
    rare: Option<Box<Rare>>,
}

/// What few tensors have.
#[derive(Clone, Debug, Default)]
struct Rare {
    /// Of a name that came from the file's name, the bytes at its end that are the tensor's own.
    unnamed: Option<u32>,
    derived: &'static [&'static str],
    symmetries: Vec<Symmetry>,
    pack: Option<Symmetry>,
    /// The name that the file has for it, where it was renamed since.
    name_before: Option<Box<str>>,
}

/// Turns the parts of a quantized tensor into numbers, any stretch of them at a time.
pub trait Decode: fmt::Debug + Send + Sync {
    /// The type of the numbers.
    fn dtype(&self) -> DType;

    /// Elements that are decoded together: a stretch begins at a multiple of it.
    fn step(&self) -> u64;

    /// Elements that cost little more together than one step of them does; a multiple of [`step`](Self::step).
    fn stretch(&self) -> u64 {
        self.step()
    }

    /// Which scheme the parts are taken for, where that is not what the file says of them.
    fn scheme(&self) -> Option<&Scheme> {
        None
    }

    /// Keys of the tensor's metadata that say how it is quantized, and mean nothing once it is not.
    fn describes(&self) -> &'static [&'static str] {
        &[]
    }

    /// Decodes `elements`, in row-major order, to little-endian numbers that fill `out`. `read` gives bytes of a part.
    fn decode(
        &self,
        tensor: &TensorInfo,
        read: &dyn Fn(usize, Range<u64>) -> Result<Bytes>,
        elements: Range<u64>,
        out: &mut [u8],
    ) -> Result<()>;

    /// The same, and counts the numbers that do not fit what is made of them. Only what makes blocks of numbers has any
    /// to count.
    fn decode_counted(
        &self,
        tensor: &TensorInfo,
        read: &dyn Fn(usize, Range<u64>) -> Result<Bytes>,
        elements: Range<u64>,
        out: &mut [u8],
    ) -> Result<CastCounts> {
        self.decode(tensor, read, elements, out)?;
        Ok(CastCounts::default())
    }
}

impl TensorInfo {
    /// A dense row-major tensor with one part.
    pub fn dense(
        name: impl Into<String>,
        dtype: DType,
        shape: impl Into<Shape>,
        payload: Payload,
    ) -> Self {
        let mut info = Self::new(name, dtype, shape, Layout::RowMajor);
        info.parts = Part::new(Role::Values, dtype, payload).into();
        info
    }

    /// A tensor without parts yet.
    pub fn new(
        name: impl Into<String>,
        dtype: DType,
        shape: impl Into<Shape>,
        layout: Layout,
    ) -> Self {
        Self {
            name: name.into(),
            dtype,
            shape: shape.into(),
            layout,
            parts: PartList::new(),
            metadata: Metadata::new(),
            decoder: None,
            defect: None,
            rare: None,
        }
    }

    /// The number of elements; `None` when it does not fit 64 bits.
    ///
    /// A dimension of 0 makes it 0, whatever the others are: formats that refuse a shape like `[2^40, 2^40, 0]`, because
    /// strides computed from it would overflow, do so themselves.
    pub fn elements(&self) -> Option<u64> {
        let mut product = Some(1u64);
        for &dim in &*self.shape {
            if dim == 0 {
                return Some(0);
            }
            product = product.and_then(|product| product.checked_mul(dim));
        }
        product
    }

    /// Whether its elements are numbers, or stand for some: an archive may hold arrays of text and of records too.
    pub fn is_numbers(&self) -> bool {
        self.dtype != DType::TEXT && self.dtype != DType::RECORDS
    }

    /// Bytes of the dense tensor; `None` when that is unknown or does not fit 64 bits.
    #[inline]
    pub fn dense_len(&self) -> Option<u64> {
        self.dtype.bytes_for(self.elements()?)
    }

    /// Whether the name came from the file's name, because the format has none.
    pub fn is_unnamed(&self) -> bool {
        self.rare().unnamed.is_some()
    }

    /// Says whether the name came from the file's name.
    pub fn set_unnamed(&mut self, unnamed: bool) {
        self.set_own_name(unnamed.then_some(0));
    }

    /// Says that the name came from the file's name, and how many bytes at its end are the tensor's own: a statistic of a
    /// parameter is called by the file and by what it is. `None` where the file says the whole name.
    pub fn set_own_name(&mut self, len: Option<u32>) {
        if len != self.rare().unnamed {
            self.rare_mut().unnamed = len;
        }
    }

    /// What of the name came from the file's name, and what follows it; `None` where the file says the whole name.
    pub fn name_from_file(&self) -> Option<(&str, &str)> {
        let own = usize::try_from(self.rare().unnamed?).ok()?;
        self.name
            .split_at_checked(self.name.len().checked_sub(own)?)
    }

    /// Gives it another name; [`name_before`](Self::name_before) is still the one that its file has for it.
    pub fn rename(&mut self, name: impl Into<String>) {
        let old = core::mem::replace(&mut self.name, name.into());
        let before = match self.rare().name_before.clone() {
            Some(before) => before,
            None => old.into(),
        };
        if *before != *self.name {
            self.rare_mut().name_before = Some(before);
        } else if self.rare().name_before.is_some() {
            self.rare_mut().name_before = None;
        }
    }

    /// The name that its file has for it: what lies in the file beside the tensors may refer to it so.
    pub fn name_before(&self) -> &str {
        self.rare().name_before.as_deref().unwrap_or(&self.name)
    }

    /// Keys of the metadata that repeat what the name, the type or the layout says: leaving them out loses nothing.
    pub fn derived(&self) -> &'static [&'static str] {
        self.rare().derived
    }

    /// Says which keys of the metadata repeat what the name, the type or the layout says.
    pub fn set_derived(&mut self, keys: &'static [&'static str]) {
        if keys != self.rare().derived {
            self.rare_mut().derived = keys;
        }
    }

    /// Symmetries that the elements are said to have, but that the layout does not use.
    pub fn symmetries(&self) -> &[Symmetry] {
        &self.rare().symmetries
    }

    /// Adds a symmetry that the elements are said to have, unless it is already there.
    pub fn add_symmetry(&mut self, symmetry: Symmetry) {
        if !self.symmetries().contains(&symmetry) {
            self.rare_mut().symmetries.push(symmetry);
        }
    }

    /// The symmetry that a survey found and that the tensor is to be packed by.
    pub(crate) fn pack(&self) -> Option<&Symmetry> {
        self.rare().pack.as_ref()
    }

    pub(crate) fn set_pack(&mut self, symmetry: Option<Symmetry>) {
        if symmetry.is_some() || self.pack().is_some() {
            self.rare_mut().pack = symmetry;
        }
    }

    fn rare(&self) -> &Rare {
        static NOTHING: Rare = Rare {
            unnamed: None,
            derived: &[],
            symmetries: Vec::new(),
            pack: None,
            name_before: None,
        };
        self.rare.as_deref().unwrap_or(&NOTHING)
    }

    fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// The part with this role.
    pub fn part(&self, role: &Role) -> Option<&Part> {
        self.parts.iter().find(|part| part.role == *role)
    }

    /// The tensor if it can be read, else its defect.
    pub fn readable(&self) -> Result<&Self> {
        match &self.defect {
            Some(defect) => Err(defect.clone().in_tensor(&self.name)),
            None => Ok(self),
        }
    }
}

/// The number of elements of a shape; `None` when that, or the product of its non-zero dimensions, overflows.
///
/// The stricter count of formats that refuse a shape like `[2^40, 2^40, 0]`, because strides made of it overflow.
pub(crate) fn element_count(shape: &[u64]) -> Option<u64> {
    let mut product = 1u64;
    let mut empty = false;
    for &dim in shape {
        match dim {
            0 => empty = true,
            _ => product = product.checked_mul(dim)?,
        }
    }
    Some(if empty { 0 } else { product })
}

/// What a part is for.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Role {
    /// Indices of every dimension, one dimension after the other.
    Coords,
    /// Column indices.
    Indices,
    /// Where each row starts among the entries.
    Indptr,
    /// A part of an opaque layout, by the file's name for it.
    Named(String),
    /// The elements themselves.
    Values,
}

impl Role {
    /// The name in listings and JSON.
    pub fn name(&self) -> &str {
        match self {
            Role::Coords => "coords",
            Role::Indices => "indices",
            Role::Indptr => "indptr",
            Role::Named(name) => name,
            Role::Values => "values",
        }
    }
}

/// Bytes of a tensor: of which type, in which order, and where.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Part {
    /// What it is for.
    pub role: Role,
    /// The type of the elements as they are stored.
    pub dtype: DType,
    /// The order of the bytes of a number.
    pub endian: Endian,
    /// Where the bytes are.
    pub payload: Payload,
    /// What the file says that the bytes hash to.
    pub checksum: Option<Box<Checksum>>,
    /// What the file says about the bytes in terms that tenfold does not know.
    pub unknown: Option<Box<Unknown>>,
}

impl Part {
    /// Little-endian bytes without a checksum.
    pub fn new(role: Role, dtype: DType, payload: Payload) -> Self {
        Self {
            role,
            dtype,
            endian: Endian::Little,
            payload,
            checksum: None,
            unknown: None,
        }
    }

    /// How the bytes are stored, in a word: `"raw"`, `"zstd"`, or the file's own word where tenfold does not know it.
    pub fn encoding(&self) -> &str {
        match (&self.unknown, &self.payload) {
            (Some(said), _) if said.encoding.is_some() => {
                said.encoding.as_deref().unwrap_or_default()
            }
            (_, Payload::Raw { .. }) => "raw",
            (_, Payload::Encoded { codec, .. }) => codec.name(),
            (_, Payload::Chunks(chunks)) => chunks.encoding(),
            (_, Payload::Planes(planes)) => planes.planes.first().map_or("raw", Part::encoding),
            _ => "inline",
        }
    }
}

/// What a file says about the bytes of a part in terms that tenfold does not know, in the words of the file.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Unknown {
    /// How they are encoded.
    pub encoding: Option<String>,
    /// What they hash to, by an unknown algorithm or in an invalid form. It is not verified.
    pub checksum: Option<String>,
}

/// Makes the bytes of a part that is not stored, see [`Payload::Lazy`].
pub trait Make: fmt::Debug + Send + Sync {
    /// All of the bytes, the same each time.
    fn make(&self) -> Result<Bytes>;

    /// Some of them: what lies in a file of its own need not be read whole.
    fn part(&self, range: Range<u64>) -> Result<Bytes> {
        let bytes = self.make()?;
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        Ok(bytes.slice(place(range.start)..place(range.end.max(range.start))))
    }

    /// The bytes that they are made from, where a file has them in one place.
    fn made_from(&self) -> Option<(SourceId, Range<u64>)> {
        None
    }
}

impl PartialEq for dyn Make {
    /// The very same, not only one that makes equal bytes.
    fn eq(&self, other: &Self) -> bool {
        core::ptr::addr_eq(self, other)
    }
}

impl Eq for dyn Make {}

/// Where the bytes of a part are.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Payload {
    /// In a file, as they are.
    Raw {
        /// The file.
        source: SourceId,
        /// The bytes.
        range: Range<u64>,
    },
    /// In a file, compressed.
    Encoded {
        /// The file.
        source: SourceId,
        /// The compressed bytes.
        range: Range<u64>,
        /// How they are compressed.
        codec: Codec,
        /// How many bytes come out.
        len: u64,
    },
    /// In pieces of files, each encoded by itself.
    Chunks(Arc<Chunks>),
    /// In several places, a number of every element in each, or as numbers of another type.
    Planes(Arc<Planes>),
    /// In memory: decoded while the file was parsed.
    Inline(Bytes),
    /// In no file: made from what the file says when it is read, because it may be much longer than that.
    Lazy {
        /// How many bytes there are.
        len: u64,
        /// Makes them.
        maker: Arc<dyn Make>,
    },
    /// Nowhere in this form: made from the tensor as it is stored, while it is written.
    Derived {
        /// How many bytes will be made.
        len: u64,
    },
}

impl Payload {
    /// Raw bytes of the file that was opened.
    pub fn main(range: Range<u64>) -> Self {
        Payload::Raw {
            source: SourceId::MAIN,
            range,
        }
    }

    /// Bytes after decoding.
    pub fn len(&self) -> u64 {
        match self {
            Payload::Raw { range, .. } => range.end.saturating_sub(range.start),
            Payload::Encoded { len, .. } | Payload::Lazy { len, .. } | Payload::Derived { len } => {
                *len
            }
            Payload::Chunks(chunks) => chunks.len().unwrap_or(u64::MAX),
            Payload::Planes(planes) => planes.len().unwrap_or(u64::MAX),
            Payload::Inline(bytes) => bytes.len() as u64,
        }
    }

    /// Whether nothing comes out.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The file and the bytes in it, as stored.
    pub fn stored(&self) -> Option<(SourceId, Range<u64>)> {
        match self {
            Payload::Raw { source, range } | Payload::Encoded { source, range, .. } => {
                Some((*source, range.clone()))
            }
            Payload::Chunks(_)
            | Payload::Planes(_)
            | Payload::Inline(_)
            | Payload::Lazy { .. }
            | Payload::Derived { .. } => None,
        }
    }

    /// Which bytes of what is stored it is, once that is decoded: a compressed stream may hold more than one part.
    pub fn within(&self) -> Range<u64> {
        let skipped = match self {
            Payload::Encoded { codec, .. } => codec.skipped(),
            _ => 0,
        };
        skipped..skipped.saturating_add(self.len())
    }

    /// The same in an archive that has `before` other files in front of this one's.
    pub(crate) fn move_behind(&mut self, before: u32) {
        match self {
            Payload::Raw { source, .. } | Payload::Encoded { source, .. } => source.0 += before,
            Payload::Chunks(chunks) => {
                let files = Arc::make_mut(chunks).files.iter_mut();
                files.for_each(|file| file.0 += before);
            }
            Payload::Planes(planes) => {
                let planes = Arc::make_mut(planes).planes.iter_mut();
                planes.for_each(|plane| plane.payload.move_behind(before));
            }
            Payload::Inline(_) | Payload::Lazy { .. } | Payload::Derived { .. } => {}
        }
    }

    /// Whether it takes a codec, a filter or a cast to get at the bytes.
    pub(crate) fn is_encoded(&self) -> bool {
        matches!(
            self,
            Payload::Encoded { .. } | Payload::Chunks(_) | Payload::Planes(_)
        )
    }

    /// Whether it is compressed, so that it may be read from the beginning only: all of it, or a plane.
    pub(crate) fn is_compressed(&self) -> bool {
        match self {
            Payload::Encoded { .. } => true,
            Payload::Planes(planes) => {
                let mut planes = planes.planes.iter();
                planes.any(|plane| plane.payload.is_encoded())
            }
            _ => false,
        }
    }

    /// The files and the bytes in them that it is in, as stored: one place, or one for each plane.
    pub(crate) fn places(&self) -> Vec<(SourceId, Range<u64>)> {
        match self {
            Payload::Planes(planes) => {
                let planes = planes.planes.iter();
                planes.filter_map(|plane| plane.payload.stored()).collect()
            }
            Payload::Lazy { maker, .. } => maker.made_from().into_iter().collect(),
            payload => payload.stored().into_iter().collect(),
        }
    }
}

/// How bytes are compressed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Codec {
    /// One deflate stream.
    Deflate {
        /// The level to write with.
        level: i32,
        /// Decoded bytes in front of the data that do not belong to it: a header that was compressed with it.
        skip: u32,
    },
    /// A stretch of one deflate stream in the frame of zlib. As it is written, it is blocks in the middle of a stream:
    /// what comes before and after them is the format's.
    Zlib {
        /// The level to write with.
        level: i32,
        /// Decoded bytes in front of the data.
        skip: u64,
        /// Whether the stream ends after the data, or after fewer than 8 bytes more; else it is read no further.
        ends: bool,
    },
    /// Zstandard frames one after the other. The level matters for writing only.
    Zstd {
        /// The level to write with.
        level: i32,
    },
    /// Zstandard frames of equal decoded size one after the other, with a table of them at the end.
    ZstdSeekable {
        /// The level to write with.
        level: i32,
        /// Decoded bytes of every frame but the last.
        frame: u32,
    },
}

impl Codec {
    /// The name in listings and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Codec::Deflate { .. } | Codec::Zlib { .. } => "deflate",
            Codec::Zstd { .. } => "zstd",
            Codec::ZstdSeekable { .. } => "zstd-seekable",
        }
    }

    /// Decoded bytes in front of the data.
    fn skipped(self) -> u64 {
        match self {
            Codec::Deflate { skip, .. } => skip.into(),
            Codec::Zlib { skip, .. } => skip,
            Codec::Zstd { .. } | Codec::ZstdSeekable { .. } => 0,
        }
    }
}

/// Which bytes a checksum covers.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Over {
    /// The bytes after decompression.
    Decoded,
    /// The bytes as they are in the file.
    Stored,
}

/// How a checksum is computed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum DigestKind {
    /// Adler-32, as zlib has it.
    Adler32,
    /// CRC-32 as in zip and PNG.
    Crc32,
    /// CRC-32C (Castagnoli).
    Crc32c,
    /// SHA-1, as ONNX uses it for files beside a model. Good against damage, not against forgery.
    Sha1,
    /// SHA-256.
    Sha256,
    /// XXH3, 64 bits, seed 0.
    Xxh3,
}

impl DigestKind {
    /// The name in options, listings and JSON.
    pub fn name(self) -> &'static str {
        match self {
            DigestKind::Adler32 => "adler32",
            DigestKind::Crc32 => "crc32",
            DigestKind::Crc32c => "crc32c",
            DigestKind::Sha1 => "sha1",
            DigestKind::Sha256 => "sha256",
            DigestKind::Xxh3 => "xxh3",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [
            Self::Crc32,
            Self::Crc32c,
            Self::Sha1,
            Self::Sha256,
            Self::Xxh3,
        ];
        all.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for DigestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What bytes are said to hash to.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Checksum {
    /// How it is computed.
    pub kind: DigestKind,
    /// Which bytes it covers.
    pub over: Over,
    /// The value, most significant byte first.
    pub value: Bytes,
}

impl Checksum {
    /// What bytes are said to hash to, most significant byte first.
    pub fn new(kind: DigestKind, over: Over, value: impl Into<Bytes>) -> Self {
        Self {
            kind,
            over,
            value: value.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_tensor_is_small_as_long_as_nothing_is_rare_about_it() {
        assert_eq!(size_of::<TensorInfo>(), 248);
        let mut info = TensorInfo::dense("t", DType::U8, [2, 3], Payload::main(0..6));
        info.set_unnamed(false);
        info.set_derived(&[]);
        assert!(info.rare.is_none());
        assert_eq!(info.name_from_file(), None);
        info.set_own_name(Some(1));
        assert_eq!(info.name_from_file(), Some(("", "t")));
        info.rename("u");
        info.rename("v");
        assert_eq!((info.name.as_str(), info.name_before()), ("v", "t"));
        info.rename("t");
        assert_eq!(info.name_before(), "t");
    }

    #[test]
    fn element_counts_notice_overflow_behind_a_zero() {
        assert_eq!(element_count(&[]), Some(1));
        assert_eq!(element_count(&[2, 0, 3]), Some(0));
        assert_eq!(element_count(&[1 << 40, 1 << 40, 0]), None);
        assert_eq!(element_count(&[1 << 32, 1 << 32]), None);
    }
}
