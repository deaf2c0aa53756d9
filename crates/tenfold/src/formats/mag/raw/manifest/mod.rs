//! Version 300: `snapshot-0.3.0`, a JSON manifest and pages of data.

mod fields;

use core::fmt::Write;

use super::super::{ENTRY_FIELDS, shape, tables};
use super::{Version, dtype, dtype_number};
use crate::error::{Error, Result};
use crate::io::Reader;
use crate::model::{DType, Map, Metadata, Shape, Value};
use crate::prelude::*;
use crate::wire::json::{self, Json, Kind, Repeated, Rules};

use fields::{Fields, Others, number, sizes};

/// What data is aligned to, section and tensors alike.
pub(crate) const PAGE: u64 = 4096;

const RULES: Rules = Rules {
    syntax: "mag.manifest",
    text: "mag.utf8",
    depth: "mag.depth",
};

/// The header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Header {
    /// Whether the data (and nothing else) is big endian.
    pub(crate) big_endian: bool,
    /// Where the manifest begins.
    pub(crate) meta_offset: u64,
    /// Bytes of the manifest.
    pub(crate) meta_span: u64,
    /// Where the data begins.
    pub(crate) blob_offset: u64,
    /// Bytes of the data.
    pub(crate) blob_span: u64,
}

impl Header {
    /// Bytes of it, magic and version included.
    pub(crate) const LEN: u64 = 44;

    /// Reads what follows the version.
    pub(crate) fn parse(r: &mut Reader<'_>) -> Result<Self> {
        let aux = r.u32("aux")?;
        let header = Self {
            big_endian: aux & 1 == 1,
            meta_offset: r.u64("meta offset")?,
            meta_span: r.u64("meta span")?,
            blob_offset: r.u64("blob offset")?,
            blob_span: r.u64("blob span")?,
        };
        if aux > 1 {
            let message = format!("aux is {aux:#x}, of which only bit 0 is defined");
            return Err(Error::malformed("mag.reserved", message).at(8..12));
        }
        if header.meta_offset < Self::LEN {
            let message = format!(
                "the manifest begins at byte {}, inside the header",
                header.meta_offset
            );
            return Err(Error::malformed("mag.bounds", message).at(12..20));
        }
        header.manifest()?;
        if !header.blob_offset.is_multiple_of(PAGE) {
            let message = format!(
                "the data begins at byte {}, not a multiple of {PAGE}",
                header.blob_offset
            );
            return Err(Error::malformed("mag.alignment", message).at(28..36));
        }
        header.data()?;
        Ok(header)
    }

    /// Where the manifest is.
    pub(crate) fn manifest(&self) -> Result<Range<u64>> {
        range(self.meta_offset, self.meta_span, "the manifest").map_err(|error| error.at(12..28))
    }

    /// Where the data is.
    pub(crate) fn data(&self) -> Result<Range<u64>> {
        range(self.blob_offset, self.blob_span, "the data").map_err(|error| error.at(28..44))
    }

    /// Writes magic, version and header.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        Version::Snapshot030.encode(out);
        out.extend(u32::from(self.big_endian).to_le_bytes());
        for field in [
            self.meta_offset,
            self.meta_span,
            self.blob_offset,
            self.blob_span,
        ] {
            out.extend(field.to_le_bytes());
        }
    }
}

fn range(at: u64, span: u64, what: &str) -> Result<Range<u64>> {
    let end = at.checked_add(span).ok_or_else(|| {
        Error::malformed(
            "mag.bounds",
            format!("{what} begins at byte {at} and has {span} bytes, past any end"),
        )
    })?;
    Ok(at..end)
}

/// What the manifest says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manifest {
    /// What the user stored.
    pub(crate) usr_metadata: Metadata,
    /// The tensors, in the order of the manifest.
    pub(crate) tensor_map: Vec<Entry>,
    /// Other fields: their keys, and the places in the file of key and value.
    pub(crate) others: Vec<(String, Range<u64>)>,
}

/// An entry of the tensor map.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The tensor's name.
    pub(crate) name: String,
    /// The sizes.
    pub(crate) shape: Shape,
    /// The type of the elements: `dtype_id`, not the name beside it, decides.
    pub(crate) dtype: DType,
    /// Where the data begins, counted from the beginning of all data.
    pub(crate) offset: u64,
    /// Bytes of the data.
    pub(crate) nbytes: u64,
    /// Other fields.
    pub(crate) others: Map,
    /// Where the entry begins in the file.
    pub(crate) at: u64,
}

/// What every manifest has. The values of the first four are passed over.
const FIELDS: [&str; 6] = [
    "manifest_ver",
    "timestamp",
    "magnetron_ver",
    "snapshot_ver",
    "usr_metadata",
    "tensor_map",
];

/// Other fields, at most: each is a part of the file to be kept, which takes many times its bytes.
const MAX_OTHERS: usize = 1 << 16;

impl Manifest {
    /// Reads a manifest that stands at `base` of the file and is nested no deeper than `depth`. `repeated` is told of
    /// keys that are in an object more than once, with their place; the last one counts.
    pub(crate) fn parse(
        bytes: &[u8],
        base: u64,
        depth: usize,
        repeated: &mut dyn FnMut(&str, u64) -> Result<()>,
    ) -> Result<Self> {
        let mut json = Json::new(bytes, base, depth, &RULES)?.limited_by("depth");
        let mut manifest = Self::default();
        let mut seen = Fields::new(&FIELDS);
        json.object("the manifest")?;
        while let Some(key) = json.key()? {
            match seen.note(&json, &key)? {
                Some("usr_metadata") => manifest.usr_metadata = usr_metadata(&mut json, repeated)?,
                Some("tensor_map") => manifest.tensor_map = tensor_map(&mut json, repeated)?,
                Some(_) => json.skip()?,
                None => {
                    let at = json.key_at();
                    json.skip()?;
                    let others = &mut manifest.others;
                    if others.len() == MAX_OTHERS {
                        let message =
                            format!("the manifest has more than {MAX_OTHERS} unknown fields");
                        return Err(Error::limit("mag.limit", message).at(at..at + 1));
                    }
                    others.push((key.into_owned(), at..json.end_at()));
                }
            }
        }
        seen.complete("the manifest")
            .map_err(|error| error.at(base..base + bytes.len() as u64))?;
        json.end()?;
        Ok(manifest)
    }

    /// Writes the manifest, as compact as magnetron does, up to the end of the last field that is known: others and a
    /// brace follow. `timestamp` is in seconds since 1970.
    pub(crate) fn encode(&self, timestamp: u64) -> Result<String> {
        let mut out = String::new();
        out.push_str("{\"manifest_ver\":1,\"timestamp\":");
        json::encode_str(&iso_8601(timestamp), &mut out);
        // No reader looks at it, but it must be there: the release whose layout this is.
        out.push_str(",\"magnetron_ver\":\"0.2.2\",\"snapshot_ver\":\"0.3.0\",\"usr_metadata\":");
        json::encode(&self.usr_metadata.clone().into(), &mut out)?;
        out.push_str(",\"tensor_map\":{");
        for (index, entry) in self.tensor_map.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            entry.encode(&mut out)?;
        }
        out.push('}');
        Ok(out)
    }
}

fn usr_metadata(json: &mut Json<'_>, repeated: Repeated<'_>) -> Result<Metadata> {
    if json.kind()? != Kind::Object {
        // Says what it is instead.
        json.object("usr_metadata")?;
    }
    match json.value(repeated)? {
        Value::Map(entries) => Ok(Metadata::from(&entries)),
        _ => Ok(Metadata::new()),
    }
}

fn tensor_map(json: &mut Json<'_>, repeated: Repeated<'_>) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    json.object("tensor_map")?;
    while let Some(name) = json.key()? {
        let at = json.key_at();
        let name = name.into_owned();
        match Entry::parse(json, at, repeated) {
            Ok(entry) => push_tight(&mut entries, Entry { name, ..entry }),
            Err(error) => return Err(error.in_tensor(&name)),
        }
    }
    Ok(entries)
}

impl Entry {
    /// Reads an entry, whose name was its key.
    fn parse(json: &mut Json<'_>, at: u64, repeated: Repeated<'_>) -> Result<Self> {
        let mut entry = Self {
            name: String::new(),
            shape: Shape::new(),
            dtype: DType::UNKNOWN,
            offset: 0,
            nbytes: 0,
            others: Map::new(),
            at,
        };
        let mut seen = Fields::new(&ENTRY_FIELDS);
        let mut others = Others::default();
        json.object("an entry of tensor_map")?;
        while let Some(key) = json.key()? {
            match seen.note(json, &key)? {
                Some("shape") => entry.shape = sizes(json)?,
                Some("dtype_id") => {
                    let at = json.at();
                    let number = number(json, "dtype_id", "mag.dtype")?;
                    entry.dtype = dtype(tables::SNAPSHOT_020, number, at..at + 1)?;
                }
                Some("offset") => entry.offset = number(json, "offset", "mag.bounds")?,
                Some("nbytes") => entry.nbytes = number(json, "nbytes", "mag.length")?,
                Some(_) => json.skip()?,
                None => others.read(&key, json, repeated)?,
            }
        }
        entry.others = others.finish(repeated)?;
        seen.complete("an entry of tensor_map")
            .and_then(|()| entry.check())
            .map_err(|error| error.at(at..at + 1))?;
        Ok(entry)
    }

    fn check(&self) -> Result<()> {
        let Self {
            shape,
            dtype,
            nbytes,
            ..
        } = self;
        let expected = shape::bytes(shape, *dtype)?;
        if expected != *nbytes {
            let message =
                format!("nbytes is {nbytes}, shape {shape:?} of {dtype} has {expected} bytes");
            return Err(Error::malformed("mag.length", message));
        }
        Ok(())
    }

    fn encode(&self, out: &mut String) -> Result<()> {
        let number = dtype_number(tables::SNAPSHOT_020, self.dtype)?;
        let name = tables::MANIFEST_NAMES
            .get(usize::from(number))
            .copied()
            .unwrap_or_default();
        json::encode_str(&self.name, out);
        out.push_str(":{\"shape\":[");
        for (index, size) in self.shape.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            // Writing into memory does not fail.
            let _ = write!(out, "{comma}{size}");
        }
        let Self { offset, nbytes, .. } = self;
        let _ = write!(
            out,
            "],\"dtype\":\"{name}\",\"dtype_id\":{number},\"offset\":{offset},\"nbytes\":{nbytes}"
        );
        for (key, value) in self.others.iter() {
            out.push(',');
            json::encode_str(key, out);
            out.push(':');
            json::encode(&value, out)?;
        }
        out.push('}');
        Ok(())
    }
}

/// `1970-01-01T00:00:00+00:00`, as Python writes it.
fn iso_8601(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days from 1 March of year 0, in eras of 400 years: leap days then come last in everything.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}+00:00")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_python_does() {
        assert_eq!(iso_8601(0), "1970-01-01T00:00:00+00:00");
        assert_eq!(iso_8601(951_782_399), "2000-02-28T23:59:59+00:00");
        assert_eq!(iso_8601(951_782_400), "2000-02-29T00:00:00+00:00");
        assert_eq!(iso_8601(1_735_689_599), "2024-12-31T23:59:59+00:00");
        assert_eq!(iso_8601(4_107_542_400), "2100-03-01T00:00:00+00:00");
    }

    #[test]
    fn a_manifest_comes_back() {
        let mut manifest = Manifest::default();
        manifest.usr_metadata.push("a", Value::F64(f64::INFINITY));
        manifest.tensor_map.push(Entry {
            name: "w\0é".into(),
            shape: Shape::from([2, 3]),
            dtype: DType::F8_E4M3,
            offset: 0,
            nbytes: 6,
            others: [("é".to_owned(), Value::Null)].into_iter().collect(),
            at: 0,
        });
        let text = manifest.encode(0).unwrap() + r#","other":[1,2]}"#;
        assert!(text.contains(r#""w\u0000é":{"shape":[2,3],"dtype":"float8_e4m3fn","dtype_id":3,"offset":0,"nbytes":6,"é":null}"#));
        let back = Manifest::parse(text.as_bytes(), 44, 64, &mut |_, _| Ok(())).unwrap();
        assert_eq!(back.usr_metadata, manifest.usr_metadata);
        assert_eq!(back.tensor_map[0].name, "w\0é");
        assert_eq!(back.tensor_map[0].shape, [2, 3]);
        assert_eq!(back.tensor_map[0].dtype, DType::F8_E4M3);
        assert_eq!(back.tensor_map[0].others, manifest.tensor_map[0].others);
        let end = 44 + text.len() as u64;
        assert_eq!(back.others, [("other".to_owned(), end - 14..end - 1)]);
    }
}
