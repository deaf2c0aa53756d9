//! What the text of an argument means.

use tenfold::format::{Entry, Registry};
use tenfold::model::{DType, Lanes, Slice};
use tenfold::ops::{Mixture, QuantizeTo};

use super::{ItemList, Slices};
use crate::near::did_you_mean;

pub(super) fn limit(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("expected NAME=N, such as header_bytes=2GiB")?;
    let value = bytes(value).map_err(|_| "expected a number, such as 100 or 2GiB")?;
    Ok((name.to_owned(), value))
}

pub(super) fn slices(text: &str) -> Result<Slices, String> {
    match Slice::parse(text) {
        Ok(slices) => Ok(slices.into()),
        Err(error) => Err(error.message().to_owned()),
    }
}

pub(super) fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("expected KEY=VALUE, such as align=4096")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// The ids of formats, for shells to offer.
pub(super) fn formats() -> Vec<&'static str> {
    let registry = Registry::standard();
    let read = |entry: &&Entry| !entry.spec.reads.is_empty();
    let entries = registry.entries().iter().filter(read);
    entries.map(|entry| entry.spec.id).collect()
}

/// The ids of formats that are written, for shells to offer.
pub(super) fn written_formats() -> Vec<&'static str> {
    let registry = Registry::standard();
    let written = |entry: &&Entry| !entry.spec.writes.is_empty();
    let entries = registry.entries().iter().filter(written);
    entries.map(|entry| entry.spec.id).collect()
}

/// The types that numbers are cast to most, for shells to offer.
pub(super) fn dtypes() -> Vec<&'static str> {
    vec![
        "f32", "f16", "bf16", "f64", "f8_e4m3", "f8_e5m2", "i8", "i16", "i32", "i64", "u8", "u16",
        "u32", "u64", "bool",
    ]
}

/// The types that are quantized to, for shells to offer.
pub(super) fn block_types() -> Vec<&'static str> {
    QuantizeTo::names(true).collect()
}

/// The id of a format, by that or by an extension that only its files have.
pub(super) fn format(text: &str) -> Result<String, String> {
    let registry = Registry::standard();
    let found = registry.get(text).map(|entry| entry.spec.id.to_owned());
    found.map_err(|error| {
        let specs = registry.entries().iter().map(|entry| entry.spec);
        let names =
            specs.flat_map(|spec| [spec.id].into_iter().chain(spec.extensions.iter().copied()));
        match did_you_mean(names, text) {
            Some(hint) => format!("there is no such format; {hint}"),
            None => error.message().to_owned(),
        }
    })
}

pub(super) fn dtype(text: &str) -> Result<DType, String> {
    named_dtype(text).ok_or_else(|| wrong_dtype(text, "expected a type, such as bf16 or f8_e4m3"))
}

/// What is said of a name that no type has.
fn wrong_dtype(text: &str, expected: &str) -> String {
    let ours = DType::all()
        .filter(|dtype| matches!(dtype, DType::Number(_, Lanes::Real | Lanes::Complex)))
        .map(|dtype| dtype.to_string());
    let others = DType::all().filter_map(DType::numpy_name);
    let names: Vec<_> = ours.chain(others.map(ToOwned::to_owned)).collect();
    with_hint(names.iter().map(String::as_str), text, expected)
}

fn with_hint<'a>(names: impl Iterator<Item = &'a str>, text: &str, expected: &str) -> String {
    match did_you_mean(names, text) {
        Some(hint) => format!("{expected}; {hint}"),
        None => expected.to_owned(),
    }
}

/// A type of numbers by our name for it, or by that of NumPy, PyTorch or safetensors.
fn named_dtype(text: &str) -> Option<DType> {
    let found = DType::parse(text).ok();
    found.filter(|dtype| matches!(dtype, DType::Number(..)))
}

pub(super) fn cast_rule(text: &str) -> Result<(DType, Option<String>), String> {
    // `gguf:Q4_K` is a name with a colon; nothing is cast to it.
    let (name, glob) = with_glob(text);
    match named_dtype(name) {
        Some(dtype) => Ok((dtype, glob)),
        None => Err(wrong_dtype(
            name,
            "expected a type, such as f32, f16, i8 or bf16:*.weight",
        )),
    }
}

pub(super) fn quantize_rule(text: &str) -> Result<(QuantizeTo, Option<String>), String> {
    let (name, glob) = with_glob(text);
    let all = glob.is_none();
    if let Some(to) = QuantizeTo::from_name(name, all) {
        return Ok((to, glob));
    }
    if !all && Mixture::from_name(name).is_some() {
        return Err(format!(
            "{name} is a mixture of types for a whole model; tensors get a type"
        ));
    }
    if name == "keep" {
        return Err("keep needs a pattern, such as keep:output.weight".into());
    }
    let expected = "expected a type or a mixture, such as Q8_0, Q4_K_M or Q6_K:*.weight";
    Err(with_hint(QuantizeTo::names(all), name, expected))
}

pub(super) fn zstd_rule(text: &str) -> Result<(i32, Option<String>), String> {
    let (level, glob) = with_glob(text);
    match level.parse() {
        Ok(level @ -7..=22) => Ok((level, glob)),
        _ => Err("expected a level from -7 to 22, such as 3 or 19:*.weight".into()),
    }
}

/// What is to be done, and the names that it is about.
fn with_glob(text: &str) -> (&str, Option<String>) {
    match text.split_once(':') {
        Some((what, glob)) => (what, Some(glob.to_owned())),
        None => (text, None),
    }
}

/// A number of bytes with a unit: of 1000 (5GB) or of 1024 (5GiB).
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: &[(&str, u64)] = &[
        ("", 1),
        ("b", 1),
        ("k", 1_000),
        ("kb", 1_000),
        ("m", 1_000_000),
        ("mb", 1_000_000),
        ("g", 1_000_000_000),
        ("gb", 1_000_000_000),
        ("t", 1_000_000_000_000),
        ("tb", 1_000_000_000_000),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("tib", 1 << 40),
    ];
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = text.get(digits.len()..).unwrap_or_default().trim();
    let unit = UNITS
        .iter()
        .find(|(name, _)| unit.eq_ignore_ascii_case(name));
    let number: Option<u64> = digits.parse().ok();
    match unit.and_then(|(_, unit)| number?.checked_mul(*unit)) {
        Some(bytes) if bytes > 0 => Ok(bytes),
        _ => Err("expected a number of bytes, such as 5GB, 500MB or 2GiB".into()),
    }
}

/// Numbers of items: `3,7-9`.
pub(super) fn items(text: &str) -> Result<ItemList, String> {
    const MOST: usize = 10_000_000;
    let wrong = || "expected item numbers, such as 3 or 3,7-9".to_owned();
    let mut items = Vec::new();
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
        let (from, to) = (number(from)?, number(to)?);
        if to < from || to - from > MOST {
            return Err(wrong());
        }
        items.extend(from..=to);
    }
    Ok(items.into())
}

/// How far numbers may be apart.
pub(super) fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.0..f64::INFINITY).contains(&value) => Ok(value),
        _ => Err("expected a number of 0 or more, such as 1e-5".into()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn types_have_the_names_that_other_programs_give_them() {
        let name = |text| super::named_dtype(text).map(|dtype| dtype.to_string());
        for (other, ours) in [
            ("bf16", "bf16"),
            ("BF16", "bf16"),
            ("float16", "f16"),
            ("torch.bfloat16", "bf16"),
            ("np.int64", "i64"),
            ("torch.float8_e4m3fn", "f8_e4m3"),
            ("F8_E4M3", "f8_e4m3"),
            ("C64", "c64"),
        ] {
            assert_eq!(name(other).as_deref(), Some(ours), "{other}");
        }
        assert_eq!(name("float17"), None);
    }

    #[test]
    fn sizes_have_units_of_1000_and_of_1024() {
        let read = |text| super::bytes(text).ok();
        assert_eq!(read("5GB"), Some(5_000_000_000));
        assert_eq!(read("2G"), Some(2_000_000_000));
        assert_eq!(read("5 gib"), Some(5 << 30));
        assert_eq!(read("500MiB"), Some(500 << 20));
        assert_eq!(read("123"), Some(123));
        for wrong in ["", "0", "GB", "-1", "1.5GB", "5G5", "5XB", "99999999TB"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
