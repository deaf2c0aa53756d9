//! The header as it is on disk: parsed and encoded.

use alloc::borrow::Cow;

use super::{METADATA, dtypes, typed};
use crate::error::{Error, Hint, Result};
use crate::format::in_place;
use crate::model::{DType, Metadata, Packer, Shape};
use crate::prelude::*;
use crate::wire::json::{Json, Rules, encode_str};

/// Bytes that a header may have.
pub(super) const MAX_HEADER: u64 = 100_000_000;
/// Bytes of the number in front of it.
pub(super) const PREFIX: u64 = 8;
/// Levels of nested JSON, as far as the reference's decoder goes.
pub(super) const MAX_DEPTH: usize = 128;

pub(super) const RULES: Rules = Rules {
    syntax: "safetensors.json",
    text: "safetensors.utf8",
    depth: "safetensors.depth",
};

/// A tensor's entry.
pub(super) struct Entry<'a> {
    pub(super) name: Cow<'a, str>,
    /// Where its name stands in the file.
    pub(super) at: u64,
    /// Its type, or why there is none: that loses only this tensor.
    pub(super) dtype: Result<DType>,
    pub(super) shape: Shape,
    /// From the beginning of the data; the end may lie before the start.
    pub(super) data_offsets: [u64; 2],
}

/// What a header says beside its tensors.
#[derive(Default)]
pub(super) struct Rest {
    pub(super) metadata: Metadata,
    /// The first field that no reader knows, and how many there are.
    pub(super) unknown: Option<Unknown>,
    /// Where something other than spaces follows the JSON.
    pub(super) odd_padding: Option<u64>,
}

/// Fields of entries that no reader knows.
pub(super) struct Unknown {
    pub(super) field: String,
    pub(super) tensor: String,
    pub(super) at: u64,
    pub(super) count: u64,
}

/// Reads a header that stands at byte 8; `put` is given the tensors in the order of the header.
pub(super) fn parse<'a>(
    header: &'a [u8],
    max_rank: usize,
    put: &mut dyn FnMut(Entry<'a>),
) -> Result<Rest> {
    if header.first() != Some(&b'{') {
        let found = match header.first() {
            Some(byte) => format!("'{}'", byte.escape_ascii()),
            None => "no byte".to_owned(),
        };
        let message = format!("the header must begin with '{{', found {found}");
        return Err(Error::malformed("safetensors.header", message).at(PREFIX..PREFIX + 1));
    }
    let mut json = Json::new(header, PREFIX, MAX_DEPTH, &RULES)?.finite();
    let mut rest = Rest::default();
    let mut has_metadata = false;
    json.object("the header")?;
    while let Some(name) = json.key()? {
        let at = json.key_at();
        if name == METADATA {
            if core::mem::replace(&mut has_metadata, true) {
                return Err(twice("__metadata__ appears twice", at));
            }
            rest.metadata = metadata(&mut json)?;
            continue;
        }
        let mut entry = Fields::default();
        if let Err(error) = entry.parse(&mut json, &name, max_rank, &mut rest.unknown) {
            return Err(error.in_tensor(&name));
        }
        put(entry.finish(name, at)?);
    }
    let end = json.at();
    json.end()?;
    // Whitespace is all that can be left: of it, only spaces are padding.
    let padding = header.iter().rev().take_while(|byte| **byte != b'}');
    if padding.clone().any(|byte| *byte != b' ') {
        rest.odd_padding = Some(end - padding.count() as u64);
    }
    Ok(rest)
}

/// The fields of an entry as far as they were read.
#[derive(Default)]
struct Fields {
    dtype: Option<Result<DType>>,
    shape: Option<Shape>,
    data_offsets: Option<[u64; 2]>,
}

impl Fields {
    fn parse(
        &mut self,
        json: &mut Json<'_>,
        name: &str,
        max_rank: usize,
        unknown: &mut Option<Unknown>,
    ) -> Result<()> {
        json.object("a tensor's entry")?;
        while let Some(field) = json.key()? {
            let at = json.key_at();
            let is_new = match &*field {
                "dtype" => self.dtype.replace(dtype(json)?).is_none(),
                "shape" => self.shape.replace(shape(json, max_rank)?).is_none(),
                "data_offsets" => self.data_offsets.replace(offsets(json)?).is_none(),
                other => {
                    Unknown::count(unknown, other, name, at);
                    json.skip()?;
                    true
                }
            };
            if !is_new {
                return Err(twice(format!("the field {field:?} appears twice"), at));
            }
        }
        Ok(())
    }

    fn finish<'a>(self, name: Cow<'a, str>, at: u64) -> Result<Entry<'a>> {
        let missing = match (&self.dtype, &self.shape, &self.data_offsets) {
            (None, ..) => "dtype",
            (_, None, _) => "shape",
            _ => "data_offsets",
        };
        match (self.dtype, self.shape, self.data_offsets) {
            (Some(dtype), Some(shape), Some(data_offsets)) => Ok(Entry {
                name,
                at,
                dtype,
                shape,
                data_offsets,
            }),
            _ => {
                let message = format!("the field {missing:?} is missing");
                let error = Error::malformed("safetensors.field", message);
                Err(error.at(at..at + 1).in_tensor(&name))
            }
        }
    }
}

impl Unknown {
    fn count(unknown: &mut Option<Self>, field: &str, tensor: &str, at: u64) {
        let first = unknown.get_or_insert_with(|| Self {
            field: field.to_owned(),
            tensor: tensor.to_owned(),
            at,
            count: 0,
        });
        first.count += 1;
    }
}

/// A type by its name; types are added over time, so an unknown one does not make the header damaged.
fn dtype(json: &mut Json<'_>) -> Result<Result<DType>> {
    let at = json.at();
    let name = json.string("dtype")?;
    Ok(dtypes::from_name(&name).ok_or_else(|| {
        let message = format!("dtype {name:?} is not known: newer than this version, or a mistake");
        Error::malformed("safetensors.dtype", message).at(at..at + name.len() as u64 + 2)
    }))
}

fn shape(json: &mut Json<'_>, max_rank: usize) -> Result<Shape> {
    json.list("shape")?;
    let mut shape = Shape::new();
    while json.item()? {
        if shape.len() == max_rank {
            let at = json.at();
            let message = format!("more than {max_rank} dimensions, the limit");
            let error = Error::limit("safetensors.rank", message).at(at..at + 1);
            return Err(error.raised_by("rank", None));
        }
        shape.push(json.unsigned("a dimension")?);
    }
    Ok(shape)
}

fn offsets(json: &mut Json<'_>) -> Result<[u64; 2]> {
    let at = json.at();
    let wrong = || {
        let message = "data_offsets must be two numbers, the beginning and the end";
        Error::malformed("safetensors.offsets", message).at(at..at + 1)
    };
    json.list("data_offsets")?;
    let mut offsets = [0; 2];
    for offset in &mut offsets {
        if !json.item()? {
            return Err(wrong());
        }
        *offset = json.unsigned("an offset")?;
    }
    if json.item()? {
        Err(wrong())
    } else {
        Ok(offsets)
    }
}

fn metadata(json: &mut Json<'_>) -> Result<Metadata> {
    use crate::wire::json::Kind;
    let wrong =
        |at: u64, message: String| Error::malformed("safetensors.metadata", message).at(at..at + 1);
    if json.kind()? != Kind::Object {
        let message = "__metadata__ must be an object of strings".to_owned();
        return Err(wrong(json.at(), message));
    }
    json.object(METADATA)?;
    let mut metadata = Packer::map();
    let mut places = Vec::new();
    while let Some(key) = json.key()? {
        places.push(json.key_at());
        if json.kind()? != Kind::Str {
            let message = format!("the value of {key:?} in __metadata__ must be a string");
            return Err(wrong(json.at(), message));
        }
        metadata.key(&key);
        metadata.str(&json.string("metadata")?);
    }
    metadata.last_wins(&mut |key, place| {
        let at = places.get(place).copied().unwrap_or_default();
        Err(twice(format!("__metadata__ has {key:?} twice"), at))
    })?;
    let mut metadata = Metadata::from(&metadata.into_map());
    typed::restore(&mut metadata);
    Ok(metadata)
}

pub(super) fn twice(message: impl Into<String>, at: u64) -> Error {
    Error::malformed("safetensors.duplicate", message).at(at..at + 1)
}

/// A header that is being written.
pub(super) struct Encoder {
    text: String,
}

impl Encoder {
    /// Begins with the metadata in the order of its keys: the reference has none, and ours must not depend on the input's.
    pub(super) fn new(metadata: &Metadata) -> Self {
        let mut encoder = Self {
            text: String::from("{"),
        };
        let entries = typed::entries(metadata);
        if entries.is_empty() {
            return encoder;
        }
        encoder.text.push_str("\"__metadata__\":{");
        for (index, (key, text)) in entries.into_iter().enumerate() {
            if index > 0 {
                encoder.text.push(',');
            }
            encode_str(key, &mut encoder.text);
            encoder.text.push(':');
            encode_str(&text, &mut encoder.text);
        }
        encoder.text.push('}');
        encoder
    }

    pub(super) fn tensor(&mut self, name: &str, dtype: &str, shape: &[u64], data: &Range<u64>) {
        use core::fmt::Write;
        let text = &mut self.text;
        if text.len() > 1 {
            text.push(',');
        }
        encode_str(name, text);
        text.push_str(":{\"dtype\":\"");
        text.push_str(dtype);
        text.push_str("\",\"shape\":[");
        for (index, dim) in shape.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            // Writing into memory does not fail.
            let _ = write!(text, "{comma}{dim}");
        }
        let _ = write!(text, "],\"data_offsets\":[{},{}]}}", data.start, data.end);
    }

    /// The header alone, padded to exactly the room that there is.
    pub(super) fn finish_in(mut self, room: u64) -> Result<Vec<u8>> {
        self.text.push('}');
        let mut bytes = self.text.into_bytes();
        match usize::try_from(room) {
            Ok(room) if bytes.len() <= room => bytes.resize(room, b' '),
            _ => return Err(in_place::no_room(bytes.len() as u64, room)),
        }
        Ok(bytes)
    }

    /// The length and the header, with at least `reserve` spaces after it, up to a multiple of `align` of the file.
    pub(super) fn finish(mut self, reserve: u64, align: u64) -> Result<Vec<u8>> {
        self.text.push('}');
        let len = self.text.len() as u64;
        let padded = (PREFIX + len)
            .checked_add(reserve)
            .and_then(|len| len.checked_next_multiple_of(align))
            .map(|end| end - PREFIX)
            .filter(|padded| *padded <= MAX_HEADER);
        let Some(padded) = padded else {
            let message = format!(
                "the header would have {len} bytes and {reserve} of room, at most {MAX_HEADER} fit"
            );
            let error = Error::unsupported("safetensors.header-length", message);
            return Err(error.hinting(Hint::Shard));
        };
        let mut bytes = padded.to_le_bytes().to_vec();
        bytes.append(&mut self.text.into_bytes());
        // At most 100 000 000.
        bytes.resize(usize::try_from(PREFIX + padded).unwrap_or(0), b' ');
        Ok(bytes)
    }
}
