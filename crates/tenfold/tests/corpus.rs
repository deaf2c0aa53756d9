//! Every golden file of every format: a test for each, by its name.
//!
//! A valid file gives the tensors, types, shapes, metadata and contents that are known of it, and verifies. A file to be
//! refused is refused under exactly the rule that its JSON names, and where only a tensor of it is bad, the others read.

// A test may panic and print.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod support;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value as Json;
use support::values::{is_expected, is_implied};
use support::{Case, Kind, cases, errors, hex, is_set};
use tenfold::model::Metadata;
use tenfold::{Archive, Tensor};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for case in chosen(Kind::Valid) {
        trials.push(Trial::test(case.title(), move || {
            check_valid(&case).map_err(Failed::from)
        }));
    }
    for case in chosen(Kind::Reject) {
        trials.push(Trial::test(case.title(), move || {
            check_reject(&case).map_err(Failed::from)
        }));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// All of them; an interpreter that looks for undefined behaviour takes small ones only.
fn chosen(kind: Kind) -> Vec<Case> {
    let len = |case: &Case| std::fs::metadata(&case.path).map_or(0, |metadata| metadata.len());
    let mut chosen = cases(kind);
    chosen.retain(|case| !cfg!(miri) || len(case) <= 16 << 10);
    chosen
}

fn check_valid(case: &Case) -> Result<(), String> {
    let archive = case.open().map_err(|error| format!("refused: {error}"))?;
    let format = archive.format().map(|spec| spec.id);
    same("format", &format, &case.text("format"))?;
    if let Some(version) = case.text("format_version") {
        same("version", &archive.version(), &version)?;
    }
    let expected = case.list("tensors");
    let names: Vec<_> = archive.tensors().map(|tensor| tensor.name()).collect();
    let expected_names: Vec<_> = expected.iter().map(name).collect();
    same("names", &names, &expected_names)?;
    if let Some(metadata) = case.expected.get("metadata") {
        let found = archive.load_metadata().map_err(|error| error.to_string())?;
        check_metadata("file", &found, metadata, None)?;
    }
    for (tensor, expected) in archive.tensors().zip(expected) {
        check_tensor(&tensor, expected)
            .map_err(|error| format!("tensor {:?}: {error}", tensor.name()))?;
    }
    if case.is_structural() {
        return Ok(());
    }
    check_digests(&archive, expected)?;
    check_verified(&archive, expected)
}

/// The tensor's type, shape and metadata, and whether it can be read.
fn check_tensor(tensor: &Tensor<'_>, expected: &Json) -> Result<(), String> {
    let info = tensor.info();
    same(
        "unreadable",
        &info.defect.is_some(),
        &expected.get("unreadable").is_some_and(is_set),
    )?;
    if info.defect.is_some() {
        return Ok(());
    }
    let shape: Vec<_> = expected["shape"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|dim| dim.as_u64().expect("a dimension"))
        .collect();
    same("shape", &info.shape, &shape.into())?;
    // The types of several parts with a meaning of their own are called differently in the JSON.
    match expected["dtype"].as_str() {
        None | Some("unknown" | "quantized" | "custom") => {}
        Some(dtype) => same("dtype", &info.dtype.to_string().as_str(), &dtype)?,
    }
    match expected.get("metadata") {
        Some(metadata) => check_metadata("tensor", &info.metadata, metadata, Some(&info.shape)),
        None => Ok(()),
    }
}

/// Everything that is known is there. A format may say more under keys of its own.
fn check_metadata(
    of: &str,
    found: &Metadata,
    expected: &Json,
    shape: Option<&[u64]>,
) -> Result<(), String> {
    let expected = expected.as_object().expect("metadata is an object");
    for (key, value) in expected {
        match found.get(key) {
            Some(found) if is_expected(found, value) => {}
            None if shape.is_some_and(|shape| is_implied(key, value, shape)) => {}
            found => {
                return Err(format!(
                    "{of} metadata {key:?}: {value} expected, found {found:?}"
                ));
            }
        }
    }
    Ok(())
}

/// The SHA-256 of the canonical bytes, by reading them whole and by streaming them.
fn check_digests(archive: &Archive, expected: &[Json]) -> Result<(), String> {
    let digests = support::digest(archive, 1).tensors;
    for ((tensor, (_, digest)), expected) in archive.tensors().zip(&digests).zip(expected) {
        let fail = |error| format!("tensor {:?}: {error}", tensor.name());
        if tensor.info().defect.is_some() {
            same("a digest", &digest.is_ok(), &false).map_err(fail)?;
            continue;
        }
        let digest = digest.as_ref().map_err(|error| fail(error.to_string()))?;
        if let Some(sha256) = expected["sha256"].as_str() {
            same("sha256", &hex(digest).as_str(), &sha256).map_err(fail)?;
        }
        if !matches!(tensor.info().layout, tenfold::model::Layout::Opaque { .. }) {
            let whole = tensor
                .canonical()
                .map_err(|error| fail(error.to_string()))?;
            same("sha256 of the whole", &sha256(&whole), &hex(digest)).map_err(fail)?;
        }
    }
    Ok(())
}

fn sha256(bytes: &[u8]) -> String {
    let mut hasher = tenfold::digest::Hasher::new(tenfold::model::DigestKind::Sha256).unwrap();
    hasher.update(bytes);
    hex(&hasher.finish())
}

/// Verification finds nothing wrong but the tensors that are known to be unreadable.
fn check_verified(archive: &Archive, expected: &[Json]) -> Result<(), String> {
    let findings = support::verify(archive, 1);
    for error in errors(&findings) {
        let unreadable = expected.iter().any(|expected| {
            expected.get("unreadable").is_some_and(is_set)
                && error.tensor.as_deref() == Some(name(expected))
        });
        if !unreadable {
            return Err(format!("does not verify: {error:?}"));
        }
    }
    Ok(())
}

fn check_reject(case: &Case) -> Result<(), String> {
    let rule = case.text("rule").ok_or("its JSON names no rule")?;
    let either = case.expected.get("either").is_some_and(is_set);
    let archive = match case.open() {
        Err(error) => {
            if case.text("scope") == Some("tensor") && !either {
                return Err(format!("the whole file is refused: {error}"));
            }
            return same("rule", &error.rule(), &rule).map_err(|why| format!("{why}: {error}"));
        }
        Ok(archive) => archive,
    };
    let findings = support::verify(&archive, 1);
    let errors = errors(&findings);
    if errors.is_empty() {
        return if either {
            Ok(())
        } else {
            Err("it is accepted".to_owned())
        };
    }
    if !errors.iter().any(|error| error.rule == rule) {
        return Err(format!("{rule} expected, found {errors:?}"));
    }
    for refused in case.list("refuse").iter().filter_map(Json::as_str) {
        let of_it = |error: &&&tenfold::format::Finding| error.tensor.as_deref() == Some(refused);
        match errors.iter().find(of_it) {
            Some(first) => same(
                "the first rule of the refused tensor",
                &first.rule.as_str(),
                &rule,
            )?,
            None => return Err(format!("tensor {refused:?} is not among {errors:?}")),
        }
    }
    check_readable(&archive, case.list("readable"))
}

/// The tensors that are not bad themselves have the contents that are known of them.
fn check_readable(archive: &Archive, readable: &[Json]) -> Result<(), String> {
    let digests = support::digest(archive, 1).tensors;
    for expected in readable {
        let found = digests.iter().find(|(found, _)| found == name(expected));
        let Some((found, digest)) = found else {
            return Err(format!("tensor {:?} is missing", name(expected)));
        };
        let digest = digest
            .as_ref()
            .map_err(|error| format!("tensor {found:?} must stay readable: {error}"))?;
        if let Some(sha256) = expected["sha256"].as_str() {
            same("sha256", &hex(digest).as_str(), &sha256)?;
        }
    }
    Ok(())
}

fn name(expected: &Json) -> &str {
    expected["name"].as_str().expect("a name")
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what}: {expected:?} expected, found {found:?}"))
    }
}
