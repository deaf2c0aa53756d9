//! The manifest as it is in the file.

use alloc::borrow::Cow;

use crate::error::{Error, Result};
use crate::format::Context;
use crate::formats::ztensor::read;
use crate::formats::ztensor::v1::MAGIC;
use crate::io::Reader;
use crate::model::Metadata;
use crate::prelude::*;
use crate::wire::cbor::Decoder;

/// Where the manifest is.
pub(super) struct Frame {
    pub(super) manifest: Range<u64>,
    pub(super) footer: Range<u64>,
    /// The generation without a magic at the end.
    pub(super) is_10: bool,
}

impl Frame {
    pub(super) fn find(cx: &Context<'_>) -> Result<Self> {
        let source = cx.source();
        let len = source.len();
        if len < 17 {
            let message = format!("{len} bytes are no file of generation 1: it is truncated");
            return Err(Error::malformed("ztensor.truncated", message).at(0..len));
        }
        let is_10 = source.read(len - 8..len)? != MAGIC;
        let size_at = if is_10 { len - 8 } else { len - 16 };
        let size = Reader::over(source, size_at..len, "ztensor.truncated").u64("manifest size")?;
        let start = size_at
            .checked_sub(size)
            .filter(|&start| size > 0 && start >= 8);
        let footer = size_at..len;
        match start {
            Some(start) => Ok(Self {
                manifest: start..size_at,
                footer,
                is_10,
            }),
            None if is_10 => Err(Self {
                manifest: 0..0,
                footer,
                is_10,
            }
            .cut()),
            None => {
                let room = size_at.saturating_sub(8);
                let message = format!(
                    "the footer gives the manifest {size} bytes, there is room for 1 to {room}"
                );
                Err(Error::malformed("ztensor.index", message).at(footer))
            }
        }
    }

    /// What a file of 1.1 or 1.2 looks like without its end.
    pub(super) fn cut(&self) -> Error {
        let message = "ends neither with the magic (1.1, 1.2) nor with the size of a manifest that \
                       has tensors (1.0): the file is truncated or damaged";
        Error::malformed("ztensor.footer", message).at(self.footer.clone())
    }
}

/// Named values.
pub(super) fn attributes(cbor: &mut Decoder<'_>) -> Result<Metadata> {
    cbor.metadata("attributes", |_, _| Ok(()))
}

pub(super) struct Object<'b> {
    /// In 1.0 only.
    pub(super) dtype: Option<Cow<'b, str>>,
    pub(super) shape: Vec<u64>,
    pub(super) format: Cow<'b, str>,
    pub(super) attributes: Metadata,
    pub(super) components: Vec<Component<'b>>,
    pub(super) at: Range<u64>,
}

impl<'b> Object<'b> {
    pub(super) fn parse(cbor: &mut Decoder<'b>, cx: &Context<'_>) -> Result<Self> {
        let from = cbor.pos();
        let (mut dtype, mut shape, mut format, mut components) = (None, None, None, None);
        let mut metadata = Metadata::new();
        cbor.map("an object", |cbor, key| {
            match &*key {
                "dtype" => dtype = Some(cbor.text("dtype")?),
                "shape" => shape = Some(read::shape(cbor, cx)?),
                "format" => format = Some(cbor.text("format")?),
                "attributes" => metadata = attributes(cbor)?,
                "components" => {
                    let list = components.insert(Vec::new());
                    cbor.map("components", |cbor, name| {
                        list.push(Component::parse(cbor, name)?);
                        Ok(())
                    })?;
                }
                _ => cbor.skip()?,
            }
            Ok(())
        })?;
        let at = from..cbor.pos();
        Ok(Self {
            dtype,
            shape: read::required(shape, "shape", &at)?,
            format: read::required(format, "format", &at)?,
            attributes: metadata,
            components: read::required(components, "components", &at)?,
            at,
        })
    }
}

pub(super) struct Component<'b> {
    pub(super) name: Cow<'b, str>,
    pub(super) dtype: Option<Cow<'b, str>>,
    /// The logical type, `type` in the file.
    pub(super) logical: Option<Cow<'b, str>>,
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) uncompressed_length: Option<u64>,
    pub(super) encoding: Option<Cow<'b, str>>,
    pub(super) digest: Option<Cow<'b, str>>,
    pub(super) at: Range<u64>,
}

impl<'b> Component<'b> {
    pub(super) fn parse(cbor: &mut Decoder<'b>, name: Cow<'b, str>) -> Result<Self> {
        let from = cbor.pos();
        let (mut dtype, mut logical, mut offset, mut length) = (None, None, None, None);
        let (mut uncompressed_length, mut encoding, mut digest) = (None, None, None);
        cbor.map("a component", |cbor, key| {
            match &*key {
                "dtype" => dtype = Some(cbor.text("dtype")?),
                "type" => logical = Some(cbor.text("type")?),
                "offset" => offset = Some(cbor.unsigned("offset")?),
                "length" => length = Some(cbor.unsigned("length")?),
                "uncompressed_length" => {
                    uncompressed_length = Some(cbor.unsigned("uncompressed_length")?);
                }
                "encoding" => encoding = Some(cbor.text("encoding")?),
                "digest" => digest = Some(cbor.text("digest")?),
                _ => cbor.skip()?,
            }
            Ok(())
        })?;
        let at = from..cbor.pos();
        Ok(Self {
            name,
            dtype,
            logical,
            offset: read::required(offset, "offset", &at)?,
            length: read::required(length, "length", &at)?,
            uncompressed_length,
            encoding,
            digest,
            at,
        })
    }
}
