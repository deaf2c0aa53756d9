//! A file that is of no known format: what it is instead, and what to do.

use crate::error::{Error, ErrorKind};
use crate::format::Registry;
use crate::io::Source;
use crate::prelude::*;

/// Bytes that are looked at.
const HEAD: u64 = 4096;
/// Bytes at the end that the end record of a zip archive is in, with the longest remark, and some of its directory.
const TAIL: u64 = 128 << 10;
const ZIP: &[u8] = b"PK\x03\x04";
const ZIP_END: &[u8] = b"PK\x05\x06";
/// In the name of the member that PyTorch's archives begin with.
const TORCH_MEMBER: &[u8] = b"/data.pkl";
/// Bytes that are shown; a file of any format has more.
const SHOWN: usize = 8;

const PICKLE: &str = "a Python pickle, which could run arbitrary code and is never loaded; save its tensors as \
safetensors or .npz";
const OLD_GGML: &str =
    "a GGML file, the predecessor of GGUF; convert it with a llama.cpp of its time";

/// Wrappers and look-alikes: rule, place, magic, what it is and what to do.
const LOOK_ALIKES: &[(&str, u64, &[u8], &str)] = &[
    (
        "file.gzip",
        0,
        b"\x1f\x8b",
        "a gzip file; decompress it first (gunzip)",
    ),
    ("file.zip", 0, b"PK\x05\x06", "an empty zip archive"),
    (
        "file.tar",
        257,
        b"ustar",
        "a tar archive; unpack it first (tar xf)",
    ),
    (
        "file.7z",
        0,
        b"7z\xbc\xaf\x27\x1c",
        "a 7z archive; unpack it first (7z x)",
    ),
    (
        "file.xz",
        0,
        b"\xfd7zXZ\0",
        "an xz file; decompress it first (unxz)",
    ),
    (
        "file.bzip2",
        0,
        b"BZh",
        "a bzip2 file; decompress it first (bunzip2)",
    ),
    (
        "file.zstd",
        0,
        b"\x28\xb5\x2f\xfd",
        "a zstd file; decompress it first (zstd -d)",
    ),
    (
        "file.lz4",
        0,
        b"\x04\x22\x4d\x18",
        "an lz4 file; decompress it first (lz4 -d)",
    ),
    ("file.ggml", 0, b"ggml", OLD_GGML),
    ("file.ggml", 0, b"lmgg", OLD_GGML),
    ("file.ggml", 0, b"ggmf", OLD_GGML),
    ("file.ggml", 0, b"fmgg", OLD_GGML),
    ("file.ggml", 0, b"ggjt", OLD_GGML),
    ("file.ggml", 0, b"tjgg", OLD_GGML),
    ("file.ggml", 0, b"ggla", OLD_GGML),
    ("file.ggml", 0, b"algg", OLD_GGML),
    ("file.pickle", 0, b"\x80\x02c", PICKLE),
    ("file.pickle", 0, b"\x80\x02}", PICKLE),
    ("file.pickle", 0, b"\x80\x02]", PICKLE),
    ("file.pickle", 0, b"\x80\x02\x8a\x0a", PICKLE),
    ("file.pickle", 0, b"\x80\x03c", PICKLE),
    ("file.pickle", 0, b"\x80\x03}", PICKLE),
    ("file.pickle", 0, b"\x80\x04\x95", PICKLE),
    ("file.pickle", 0, b"\x80\x05\x95", PICKLE),
    ("file.pdf", 0, b"%PDF-", "a PDF document, not a tensor file"),
];

/// Files that only their names tell, and that are not read.
const OTHER_NAMES: &[(&str, &str, &str)] = &[
    (
        ".pdiparams",
        "file.paddle-inference",
        "the weights of a Paddle inference model, which are not read (their names are in another file); \
         paddle.save writes .pdparams",
    ),
    (
        ".pdmodel",
        "file.paddle-inference",
        "a Paddle inference program, which is not read; paddle.save writes .pdparams",
    ),
    (
        "manifest.ocdbt",
        "file.ocdbt",
        "an Orbax checkpoint in an OCDBT store, which is not read; Orbax writes plain arrays with use_ocdbt=False",
    ),
];

/// The error for a file that no format claims.
pub(crate) fn unrecognized(source: &dyn Source, name: Option<&str>, registry: &Registry) -> Error {
    let head = match source.read(0..source.len().min(HEAD)) {
        Ok(head) => head,
        Err(error) => return error,
    };
    if head.starts_with(ZIP) {
        return zip_archive(source, &head, registry);
    }
    if let Some(error) = something_else(&head) {
        return error;
    }
    if name.is_some_and(|name| name.ends_with(".pb")) {
        let message = "this is a protobuf file, such as a single ONNX tensor or a TensorFlow graph, neither of \
        which is read; \
                       ONNX models end in .onnx";
        return refuse("file.protobuf", message, 0..head.len() as u64);
    }
    let known = OTHER_NAMES
        .iter()
        .find(|(ending, ..)| name.is_some_and(|name| name.ends_with(ending)));
    if let Some((_, rule, what)) = known {
        return refuse(rule, format!("this is {what}"), 0..head.len() as u64);
    }
    let expected = name.and_then(|name| registry.by_extension(name));
    if let Some(entry) = expected.filter(|entry| entry.spec.magic.is_empty())
        && entry.spec.reads.is_empty()
        && let Err(error) = entry.codec()
    {
        return error;
    }
    let shown: Vec<_> = head
        .iter()
        .take(SHOWN)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let shown = shown.join(" ");
    let expected = expected.map(|entry| entry.spec.name);
    let message = match (head.len() < SHOWN, expected) {
        (true, expected) => format!(
            "the file has only {} ({shown}), too few for {}: an unfinished download or copy?",
            match head.len() {
                1 => "1 byte".to_owned(),
                n => format!("{n} bytes"),
            },
            expected.unwrap_or("any known format")
        ),
        (false, Some(expected)) => format!(
            "begins with {shown}, as no known format does; its name says {expected}, which begins differently"
        ),
        (false, None) => {
            format!("begins with {shown}, as no known format does")
        }
    };
    refuse(
        "file.unrecognized",
        message,
        0..head.len().min(SHOWN) as u64,
    )
}

/// What a file is that is of no format and yet known, in the words of an error.
pub(crate) fn instead(source: &dyn Source) -> Option<Error> {
    let head = source.read(0..source.len().min(HEAD)).ok()?;
    if head.starts_with(ZIP) {
        Some(zip_archive(source, &head, &Registry::standard()))
    } else {
        something_else(&head)
    }
}

/// A zip archive that is not an `.npz`: PyTorch's, any other, or the beginning of one.
fn zip_archive(source: &dyn Source, head: &[u8], registry: &Registry) -> Error {
    let len = source.len();
    let tail = match source.read(len.saturating_sub(TAIL)..len) {
        Ok(tail) => tail,
        Err(error) => return error,
    };
    let has = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    let is_torch = has(head, TORCH_MEMBER) || has(&tail, TORCH_MEMBER);
    let ends = has(&tail, ZIP_END);
    if let Some(entry) = registry.get("pytorch").ok().filter(|_| is_torch && ends)
        && let Err(error) = entry.codec()
    {
        return error;
    }
    let what = match (ends, is_torch) {
        (true, _) => "a zip archive; unpack it first (unzip)",
        (false, true) => {
            "the beginning of a PyTorch checkpoint, whose end is missing: an unfinished download or copy?"
        }
        (false, false) => {
            "the beginning of a zip archive, as .npz files and PyTorch checkpoints are, whose end is missing: \
            an unfinished download or copy?"
        }
    };
    refuse("file.zip", format!("this is {what}"), 0..ZIP.len() as u64)
}

fn something_else(head: &[u8]) -> Option<Error> {
    if head.is_empty() {
        let message = "the file is empty: an unfinished download or copy?";
        return Some(refuse("file.empty", message, 0..0));
    }
    if let Some(error) = lfs_pointer(head) {
        return Some(error);
    }
    for &(rule, at, magic, what) in LOOK_ALIKES {
        let place = usize::try_from(at).unwrap_or(usize::MAX);
        let rest = head.get(place..);
        if rest.is_some_and(|rest| rest.starts_with(magic)) {
            let range = at..at + magic.len() as u64;
            return Some(refuse(rule, format!("this is {what}"), range));
        }
    }
    if let Some(error) = text_page(head) {
        return Some(error);
    }
    head.iter().all(|&byte| byte == 0).then(|| {
        let message = format!(
            "the first {} bytes are all zero: a download that reserved its space and never finished?",
            head.len()
        );
        refuse("file.zeros", message, 0..head.len() as u64)
    })
}

/// What files of JSON beside weights are: a key that they have, and what they are called.
const JSON_FILES: &[(&str, &str)] = &[
    ("\"model_type\"", "a model's configuration"),
    ("\"architectures\"", "a model's configuration"),
    ("\"peft_type\"", "an adapter's configuration"),
    ("\"tokenizer_class\"", "a tokenizer's configuration"),
    ("\"added_tokens\"", "a tokenizer"),
    ("\"bos_token", "a text generation configuration"),
    ("\"eos_token", "a text generation configuration"),
    ("\"image_mean\"", "a preprocessor's configuration"),
];

/// What JSON is that stands where weights are expected.
fn json_message(text: &str, first_line: &str) -> String {
    let known = JSON_FILES.iter().find(|(key, _)| text.contains(key));
    match known {
        Some((_, what)) => {
            format!(
                "this is {what}, not weights: open the directory that it is in, or the file with the weights"
            )
        }
        None if text.contains("error") || text.contains("message") => {
            format!(
                "this is JSON, probably an error from a server; download the file again: {first_line}"
            )
        }
        None => format!("this is JSON, not a tensor file: {first_line}"),
    }
}

fn refuse(rule: &'static str, message: impl Into<String>, at: Range<u64>) -> Error {
    Error::new(ErrorKind::Unrecognized, rule, message).at(at)
}

/// Git keeps a small text in the place of a large file until it is fetched.
fn lfs_pointer(head: &[u8]) -> Option<Error> {
    let text = core::str::from_utf8(head).ok()?;
    if !text.starts_with("version https://git-lfs.github.com/spec/") {
        return None;
    }
    let field = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(key))
            .unwrap_or("?")
            .trim()
            .to_owned()
    };
    let message = format!(
        "this is a Git LFS pointer, not the file itself: the real one has {} bytes and the id {}; fetch it with `git lfs pull`",
        field("size "),
        field("oid ")
    );
    Some(refuse("file.lfs-pointer", message, 0..head.len() as u64))
}

/// A web server's answer that was saved under the name of the file that was asked for.
fn text_page(head: &[u8]) -> Option<Error> {
    let text = match core::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => core::str::from_utf8(head.get(..error.valid_up_to())?)
            .ok()
            .filter(|text| text.len() > 64)?,
    };
    let start = text.trim_start_matches('\u{feff}').trim_start();
    let lower: String = start
        .chars()
        .take(256)
        .collect::<String>()
        .to_ascii_lowercase();
    let at = 0..head.len() as u64;
    if lower.starts_with("<!doctype html") || lower.starts_with("<html") {
        return Some(refuse(
            "file.html",
            "this is an HTML page, not a tensor file, often an error or a login page; download the file again",
            at,
        ));
    }
    if lower.starts_with("<?xml") {
        return Some(refuse(
            "file.xml",
            "this is an XML document, often a storage server's error; download the file again",
            at,
        ));
    }
    let first_line: String = start
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(120)
        .collect();
    // Protobuf as text: the fields may come in any order, and writers begin with this one.
    let is_onnx = start.starts_with("ir_version:")
        || start.starts_with('{') && lower.contains("\"irversion\"");
    if is_onnx {
        let message = "this is an ONNX model as text, which is not read; save it with onnx.save in its binary form";
        return Some(refuse("file.onnx-text", message, at));
    }
    if start.starts_with(['{', '[']) {
        return Some(refuse("file.json", json_message(start, &first_line), at));
    }
    let printable = start.chars().all(|c| !c.is_control() || c.is_whitespace());
    (!start.is_empty() && printable && start.len() > 3).then(|| {
        refuse(
            "file.text",
            format!("this is text, not a tensor file: {first_line:?}"),
            at,
        )
    })
}
