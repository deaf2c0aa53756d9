//! Checksums, which are text in all generations: `crc32c:0x1A2B3C4D`, `xxh3:` or `sha256:` and lower-case digits.

use alloc::borrow::Cow;

use crate::digest::{Hex, unhex};
use crate::error::{Error, Result};
use crate::format::Context;
use crate::model::{Checksum, DigestKind, Over, Part, Unknown};
use crate::prelude::*;
use crate::wire::cbor::Decoder;

const RULE: &str = "ztensor.checksum";

/// The text of a checksum under `field` of 0.1 and 1.x. Null says as much as nothing, with a warning.
pub(super) fn checksum_text<'b>(
    cbor: &mut Decoder<'b>,
    cx: &mut Context<'_>,
    field: &str,
) -> Result<Option<Cow<'b, str>>> {
    if cx.checks_checksums() {
        super::read::optional_text(cbor, cx, field)
    } else {
        unchecked_text(cbor, cx, field)
    }
}

/// The text of a `digest` of 1.x or 2. In 2 it is `algorithm:digits`, all of it in lower case.
pub(super) fn digest_text<'b>(
    cbor: &mut Decoder<'b>,
    cx: &mut Context<'_>,
    is_2: bool,
) -> Result<Option<Cow<'b, str>>> {
    if !is_2 || !cx.checks_checksums() {
        return checksum_text(cbor, cx, "digest");
    }
    let at = cbor.pos();
    let text = cbor.text("digest")?;
    let sound = text.split_once(':').is_some_and(|(algorithm, digits)| {
        let lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        !algorithm.is_empty()
            && algorithm.bytes().all(lower)
            && !digits.is_empty()
            && digits.bytes().all(hex)
    });
    if !sound {
        let message =
            format!("digest {text:?}: expected an algorithm, a colon and lower-case digits");
        return Err(Error::malformed("ztensor.schema", message).at(at..cbor.pos()));
    }
    Ok(Some(text))
}

/// The text of a checksum where nobody wants it checked: what is not text is passed over, with a warning.
fn unchecked_text<'b>(
    cbor: &mut Decoder<'b>,
    cx: &mut Context<'_>,
    field: &str,
) -> Result<Option<Cow<'b, str>>> {
    let at = cbor.pos();
    if let Some(text) = cbor.take_text()? {
        return Ok(Some(text));
    }
    cbor.skip()?;
    let message = format!("{field} is not text; treated as absent");
    cx.warn(RULE, at..cbor.pos(), message)?;
    Ok(None)
}

/// What becomes of the text of a checksum.
#[derive(Default)]
pub(super) struct Sum {
    pub(super) checksum: Option<Checksum>,
    /// The text, where it is not verified.
    pub(super) unknown: Option<String>,
}

impl Sum {
    /// The checksum that a text gives, or the text of an algorithm that is not known.
    pub(super) fn parse(
        cx: &mut Context<'_>,
        text: Option<&str>,
        is_2: bool,
        at: &Range<u64>,
    ) -> Result<Self> {
        let Some(text) = text else {
            return Ok(Self::default());
        };
        match parse(text, is_2) {
            Ok(Some(_)) => {}
            Ok(None) => cx.note(RULE, at.clone(), format!("{text:?} is not verified")),
            Err(message) if cx.checks_checksums() => {
                return Err(Error::malformed(RULE, message).at(at.clone()));
            }
            Err(message) => cx.warn(RULE, at.clone(), message)?,
        }
        Ok(Self::listed(Some(text), is_2))
    }

    /// What can be said of a part that cannot be read.
    pub(super) fn listed(text: Option<&str>, is_2: bool) -> Self {
        let checksum = text.and_then(|text| parse(text, is_2).ok().flatten());
        let unknown = text.filter(|_| checksum.is_none()).map(ToOwned::to_owned);
        Self { checksum, unknown }
    }

    /// A part with this checksum, in an encoding that is not known where one is named.
    pub(super) fn on(self, part: Part, encoding: Option<String>) -> Part {
        let unknown = Unknown {
            encoding,
            checksum: self.unknown,
        };
        Part {
            checksum: self.checksum.map(Box::new),
            unknown: (unknown != Unknown::default()).then(|| Box::new(unknown)),
            ..part
        }
    }
}

/// In 0.1 and 1.x a checksum of the stored bytes, in any case, with or without `0x`; in 2 one of the decoded bytes.
/// Nothing for other algorithms.
fn parse(text: &str, is_2: bool) -> Result<Option<Checksum>, String> {
    let Some((name, digits)) = text.split_once(':') else {
        return Ok(None);
    };
    let (kinds, over) = if is_2 {
        ([DigestKind::Xxh3, DigestKind::Sha256], Over::Decoded)
    } else {
        ([DigestKind::Crc32c, DigestKind::Sha256], Over::Stored)
    };
    let is_it =
        |kind: &DigestKind| name == kind.name() || !is_2 && name.eq_ignore_ascii_case(kind.name());
    let Some(kind) = kinds.into_iter().find(is_it) else {
        return Ok(None);
    };
    let bare = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    let digits = bare.filter(|_| !is_2).unwrap_or(digits);
    let value = match (kind, digits.len()) {
        (DigestKind::Crc32c, 1..=8) => unhex(&format!("{digits:0>8}")),
        (DigestKind::Xxh3, 16) | (DigestKind::Sha256, 64) => unhex(digits),
        _ => None,
    };
    let value = value.ok_or_else(|| {
        let expected = match kind {
            DigestKind::Crc32c => "1 to 8",
            DigestKind::Xxh3 => "16",
            _ => "64",
        };
        format!("{text:?} does not have the {expected} digits of {kind}")
    })?;
    Ok(Some(Checksum {
        kind,
        over,
        value: value.into(),
    }))
}

/// The text of a checksum, as the packages write it.
pub(super) fn encode(checksum: &Checksum) -> String {
    let digits = Hex(&checksum.value);
    match checksum.kind {
        DigestKind::Crc32c => format!("crc32c:0x{}", digits.to_string().to_ascii_uppercase()),
        kind => format!("{kind}:{digits}"),
    }
}
