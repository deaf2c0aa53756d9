//! Objects and their parts as 1.x and 2 have them in their files: `parse` and `encode` by one table of fields for each
//! generation.

use alloc::borrow::Cow;

use crate::error::{Error, Result};
use crate::format::Context;
use crate::formats::ztensor::checksum::digest_text;
use crate::formats::ztensor::{SPEC, capability, read};
use crate::model::{Kept, Metadata, SourceId};
use crate::prelude::*;
use crate::wire::cbor::{Decoder, Encoder, Key};

/// A field of an object or of a part, whatever it is called.
#[derive(Clone, Copy)]
enum Field {
    Attributes,
    Blob,
    DecodedLength,
    Digest,
    Dtype,
    Encoding,
    Layout,
    Length,
    Offset,
    Parts,
    Shape,
    Shard,
    /// The logical type over the one that is stored.
    Type,
}

use Field::*;

/// What a field is called.
struct Row(&'static str, Field);

impl AsRef<str> for Row {
    fn as_ref(&self) -> &str {
        self.0
    }
}

/// How a generation describes objects: their fields and those of their parts, in the order in which they are written.
pub(super) struct Schema {
    object: &'static [Row],
    part: &'static [Row],
    /// What a part is called.
    part_name: &'static str,
    /// Names have rules, and fields that belong together stand together.
    is_2: bool,
}

/// Generations 1.0, 1.1 and 1.2. The first has `dtype` in objects, the others in components.
pub(super) static SCHEMA_1: Schema = Schema {
    object: &[
        Row("dtype", Dtype),
        Row("shape", Shape),
        Row("format", Layout),
        Row("attributes", Attributes),
        Row("components", Parts),
    ],
    part: &[
        Row("dtype", Dtype),
        Row("type", Type),
        Row("offset", Offset),
        Row("length", Length),
        Row("uncompressed_length", DecodedLength),
        Row("encoding", Encoding),
        Row("digest", Digest),
    ],
    part_name: "a component",
    is_2: false,
};

/// Generation 2, whose fields stand in the order of their encoded keys.
pub(super) static SCHEMA_2: Schema = Schema {
    object: &[
        Row("parts", Parts),
        Row("shape", Shape),
        Row("layout", Layout),
        Row("attributes", Attributes),
    ],
    part: &[
        Row("blob", Blob),
        Row("type", Type),
        Row("dtype", Dtype),
        Row("shard", Shard),
        Row("digest", Digest),
        Row("encoding", Encoding),
        Row("decoded_length", DecodedLength),
    ],
    part_name: "a part",
    is_2: true,
};

/// A tensor in the index.
pub(super) struct Object<'b> {
    /// In 1.0 only.
    pub(super) dtype: Option<Cow<'b, str>>,
    pub(super) shape: crate::model::Shape,
    /// `format` in 1.x.
    pub(super) layout: Cow<'b, str>,
    pub(super) attributes: Cow<'b, Metadata>,
    pub(super) parts: Vec<RawPart<'b>>,
    /// Where the index speaks of it. Not written.
    pub(super) at: Range<u64>,
}

/// A part of it, `component` in 1.x.
pub(super) struct RawPart<'b> {
    pub(super) name: Cow<'b, str>,
    /// Missing in 1.0 only.
    pub(super) dtype: Option<Cow<'b, str>>,
    /// The logical type, `type` in the file.
    pub(super) logical: Option<Cow<'b, str>>,
    /// Offset and length.
    pub(super) blob: [u64; 2],
    /// In 2 only.
    pub(super) shard: Option<Cow<'b, str>>,
    pub(super) encoding: Option<Cow<'b, str>>,
    /// Bytes before compression: in 2 where there is an encoding, in 1.2 where the writer gave it.
    pub(super) decoded_length: Option<u64>,
    pub(super) digest: Option<Cow<'b, str>>,
    /// Where the index speaks of it. Not written.
    pub(super) at: Range<u64>,
}

/// A value of a field.
enum Item<'v> {
    Metadata(&'v Metadata),
    Number(u64),
    Numbers(&'v [u64]),
    Parts(&'v [RawPart<'v>]),
    Text(&'v str),
}

impl Schema {
    /// Writes the fields that have a value.
    fn encode<'v>(
        &self,
        rows: &[Row],
        cbor: &mut Encoder,
        item: impl Fn(Field) -> Option<Item<'v>>,
    ) {
        let items = rows.iter().map(|row| Some((row.0, item(row.1)?)));
        cbor.map(items.clone().flatten().count());
        for (name, item) in items.flatten() {
            cbor.text(name);
            match item {
                Item::Metadata(metadata) => cbor.entries(metadata),
                Item::Number(number) => cbor.unsigned(number),
                Item::Numbers(numbers) => cbor.numbers(numbers),
                Item::Parts(parts) => parts.iter().fold(cbor.map(parts.len()), |cbor, part| {
                    part.encode(self, cbor.text(&part.name));
                    cbor
                }),
                Item::Text(text) => cbor.text(text),
            };
        }
    }

    /// Refuses a name that the generation does not allow; `at` is after it.
    pub(super) fn check_name(&self, what: &str, name: &str, at: u64) -> Result<()> {
        if !self.is_2 {
            return Ok(());
        }
        capability::check_name(name).map_err(|why| {
            let from = at.saturating_sub(name.len() as u64);
            Error::malformed("ztensor.name", format!("the name of {what}: {why}")).at(from..at)
        })
    }

    /// Named values, of an object or of the file.
    pub(super) fn attributes(&self, cbor: &mut Decoder<'_>) -> Result<Metadata> {
        cbor.metadata("attributes", |key, at| {
            self.check_name("an attribute", key, at)
        })
    }
}

impl<'b> Object<'b> {
    pub(super) fn parse(
        cbor: &mut Decoder<'b>,
        schema: &'static Schema,
        cx: &mut Context<'_>,
        others: &mut Others,
    ) -> Result<Self> {
        let from = cbor.pos();
        let (mut dtype, mut shape, mut layout, mut parts) = (None, None, None, None);
        let mut attributes = Metadata::new();
        cbor.fields("an object", schema.object, |cbor, key| {
            let Some(&Row(name, field)) = row(schema.object, &key) else {
                return others.take(cbor, &key);
            };
            match field {
                Dtype => dtype = Some(cbor.text(name)?),
                Shape => shape = Some(read::shape(cbor, cx)?),
                Layout => layout = Some(cbor.text(name)?),
                Attributes => attributes = schema.attributes(cbor)?,
                _ => {
                    let list = parts.insert(Vec::new());
                    cbor.map(name, |cbor, name| {
                        schema.check_name("a part", &name, cbor.pos())?;
                        read::check_parts(list.len(), cbor.pos())?;
                        list.push(RawPart::parse(cbor, name, schema, cx, others)?);
                        Ok(())
                    })?;
                }
            }
            Ok(())
        })?;
        let at = from..cbor.pos();
        let [parts_name, layout_name] = if schema.is_2 {
            ["parts", "layout"]
        } else {
            ["components", "format"]
        };
        let parts = read::required(parts, parts_name, &at)?;
        if schema.is_2 && parts.is_empty() {
            return Err(Error::malformed("ztensor.schema", "an object without parts").at(at));
        }
        Ok(Self {
            dtype,
            shape: read::required(shape, "shape", &at)?,
            layout: read::required(layout, layout_name, &at)?,
            attributes: Cow::Owned(attributes),
            parts,
            at,
        })
    }

    pub(super) fn encode(&self, schema: &Schema, cbor: &mut Encoder) {
        schema.encode(schema.object, cbor, |field| {
            Some(match field {
                Attributes if self.attributes.is_empty() => return None,
                Attributes => Item::Metadata(&self.attributes),
                Dtype => Item::Text(self.dtype.as_deref()?),
                Layout => Item::Text(&self.layout),
                Parts => Item::Parts(&self.parts),
                Shape => Item::Numbers(&self.shape),
                _ => return None,
            })
        });
    }
}

impl<'b> RawPart<'b> {
    fn parse(
        cbor: &mut Decoder<'b>,
        name: Cow<'b, str>,
        schema: &Schema,
        cx: &mut Context<'_>,
        others: &mut Others,
    ) -> Result<Self> {
        let from = cbor.pos();
        let (mut dtype, mut logical, mut shard) = (None, None, None);
        let (mut offset, mut length) = (None, None);
        let (mut encoding, mut decoded_length, mut digest) = (None, None, None);
        cbor.fields(schema.part_name, schema.part, |cbor, key| {
            let Some(&Row(name, field)) = row(schema.part, &key) else {
                return others.take(cbor, &key);
            };
            match field {
                Dtype => dtype = Some(cbor.text(name)?),
                Type => logical = Some(cbor.text(name)?),
                Blob => {
                    let [start, len] = parse_blob(cbor)?;
                    (offset, length) = (Some(start), Some(len));
                }
                Offset => offset = Some(cbor.unsigned(name)?),
                Length => length = Some(cbor.unsigned(name)?),
                Shard => shard = Some(cbor.text(name)?),
                Encoding => encoding = Some(cbor.text(name)?),
                DecodedLength => decoded_length = Some(cbor.unsigned(name)?),
                _ => digest = digest_text(cbor, cx, schema.is_2)?,
            }
            Ok(())
        })?;
        let at = from..cbor.pos();
        if schema.is_2 {
            if encoding.is_some() != decoded_length.is_some() {
                let message = "encoding and decoded_length must both be there, or neither";
                return Err(Error::malformed("ztensor.schema", message).at(at));
            }
            read::required(dtype.as_ref(), "dtype", &at)?;
            read::required(offset, "blob", &at)?;
        }
        Ok(Self {
            name,
            dtype,
            logical,
            blob: [
                read::required(offset, "offset", &at)?,
                read::required(length, "length", &at)?,
            ],
            shard,
            encoding,
            decoded_length,
            digest,
            at,
        })
    }

    fn encode(&self, schema: &Schema, cbor: &mut Encoder) {
        let [offset, length] = self.blob;
        schema.encode(schema.part, cbor, |field| {
            Some(match field {
                Blob => Item::Numbers(&self.blob),
                DecodedLength => Item::Number(self.decoded_length?),
                Digest => Item::Text(self.digest.as_deref()?),
                Dtype => Item::Text(self.dtype.as_deref()?),
                Encoding => Item::Text(self.encoding.as_deref()?),
                Length => Item::Number(length),
                Offset => Item::Number(offset),
                Shard => Item::Text(self.shard.as_deref()?),
                Type => Item::Text(self.logical.as_deref()?),
                _ => return None,
            })
        });
    }
}

/// The field that a key names.
fn row<'r>(rows: &'r [Row], key: &Key<'_>) -> Option<&'r Row> {
    match key {
        Key::Field(place) => rows.get(*place),
        _ => None,
    }
}

/// Offset and length.
fn parse_blob(cbor: &mut Decoder<'_>) -> Result<[u64; 2]> {
    let from = cbor.pos();
    let mut numbers = [0; 2];
    let mut count = 0;
    cbor.array("blob", |cbor| {
        let number = cbor.unsigned("a number of blob")?;
        if let Some(place) = numbers.get_mut(count) {
            *place = number;
        }
        count += 1;
        Ok(())
    })?;
    if count != 2 {
        let message = format!("blob has {count} numbers, expected an offset and a length");
        return Err(Error::malformed("ztensor.schema", message).at(from..cbor.pos()));
    }
    Ok(numbers)
}

/// Fields of an index that are not known here. Readers pass over them, and new files do not have them: there may be
/// millions, so only the first is named.
#[derive(Default)]
pub(super) struct Others {
    first: Option<(String, Range<u64>)>,
    more: u64,
}

impl Others {
    /// Passes over the entry whose key has been read.
    pub(super) fn take(&mut self, cbor: &mut Decoder<'_>, key: &Key<'_>) -> Result<()> {
        let (at, _) = cbor.skip_entry()?;
        if self.first.is_some() {
            self.more += 1;
            return Ok(());
        }
        let key = match key {
            Key::Other(key) => key.as_ref(),
            _ => "a key that is not text",
        };
        self.first = Some((key.to_owned(), at..cbor.pos()));
        Ok(())
    }

    /// What is lost of the file when it is written again.
    pub(super) fn into_kept(self) -> Option<Kept> {
        let (mut name, at) = self.first?;
        if self.more > 0 {
            name = format!("{name} and {} more fields", self.more);
        }
        Some(Kept::new(SPEC.id, name, SourceId::MAIN, at))
    }
}
