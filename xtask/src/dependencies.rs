//! `cargo xtask deny` and `cargo xtask semver`, and a lighter check of the dependencies that needs nothing but cargo.

use crate::Result;
use crate::project::{self, Project};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs cargo-deny, which also knows advisories and sources. Needs the network.
pub(crate) fn deny(args: &[String]) -> Result<bool> {
    with_tool("deny", &["check"], args)
}

/// Compares the public interface of the library with that of its last release, or of the commit that is named with
/// `--baseline-rev`: what breaks programs needs another version.
pub(crate) fn semver(args: &[String]) -> Result<bool> {
    with_tool(
        "semver-checks",
        &["--package", "tenfold", "--all-features"],
        args,
    )
}

/// Runs `cargo NAME`, and installs it if it is not there.
fn with_tool(name: &str, first: &[&str], args: &[String]) -> Result<bool> {
    let project = Project::find()?;
    let mut tool = Command::new(project.tool(&format!("cargo-{name}"))?);
    // What cargo says to a command of its own.
    tool.current_dir(&project.root).arg(name);
    Ok(tool.args(first).args(args).status()?.success())
}

/// Every package of the workspace and below it has a licence that `deny.toml` allows, is there in one version unless
/// that file says otherwise, and builds with the Rust version that the workspace promises. What is published carries the
/// texts of its licences.
pub(crate) fn check(project: &Project) -> Result<Option<String>> {
    let deny = fs::read_to_string(project.root.join("deny.toml"))?;
    let allowed = allowed(&deny);
    let answer =
        project::output(project::cargo(&project.root).args(["metadata", "--format-version", "1"]))?;
    let answer: Value = serde_json::from_slice(&answer)?;
    let packages = answer.get("packages").and_then(Value::as_array);
    let packages = packages.ok_or("cargo metadata names no packages")?;
    let promised = (packages.iter())
        .find(|package| text(package, "name") == "tenfold")
        .map(|library| rust_version(text(library, "rust_version")));
    let promised = promised.ok_or("cargo metadata does not name tenfold")?;
    let mut refused = Vec::new();
    for package in packages {
        let (name, licence) = (text(package, "name"), text(package, "license"));
        if !is_allowed(licence, &allowed) {
            refused.push(format!("{name} is under {licence:?}, not in deny.toml"));
        }
        let rust = text(package, "rust_version");
        if rust_version(rust) > promised {
            refused.push(format!("{name} needs Rust {rust}"));
        }
        if is_published(package) {
            refused.extend(licences_missing(project, text(package, "manifest_path"))?);
        }
    }
    let names: Vec<_> = packages
        .iter()
        .map(|package| text(package, "name"))
        .collect();
    refused.extend(twice(&names, &skipped(&deny)));
    if refused.is_empty() {
        Ok(Some(format!("{} packages", packages.len())))
    } else {
        Err(refused.join("; ").into())
    }
}

/// Whether it is a package of this repository that others get by themselves.
fn is_published(package: &Value) -> bool {
    let is_null = |key| package.get(key).is_some_and(Value::is_null);
    is_null("source") && is_null("publish")
}

/// The licences whose text does not stand beside the manifest, word for word as at the root. A link would do in a checkout,
/// and be a file of one line where links are not kept.
fn licences_missing(project: &Project, manifest: &str) -> Result<Vec<String>> {
    let folder = Path::new(manifest).parent().unwrap_or(&project.root);
    let mut missing = Vec::new();
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let copy = folder.join(name);
        if fs::read(&copy).ok() != Some(fs::read(project.root.join(name))?) {
            missing.push(format!("{} is not the licence", copy.display()));
        }
    }
    Ok(missing)
}

/// Packages that are there more often than `skipped` allows.
fn twice(names: &[&str], skipped: &[&str]) -> Vec<String> {
    let count = |all: &[&str], name: &str| all.iter().filter(|other| **other == name).count();
    let mut found: Vec<_> = (names.iter())
        .filter(|name| count(names, name) > 1 + count(skipped, name))
        .collect();
    found.sort_unstable();
    found.dedup();
    let say =
        |name| format!("there is more than one version of {name}; deny.toml does not skip it");
    found.into_iter().map(say).collect()
}

/// The names in `skip = [..]` of `[bans]`.
fn skipped(deny: &str) -> Vec<&str> {
    let list = deny.split_once("\nskip = [").map_or("", |(_, rest)| rest);
    let list = list.split_once("\n]").map_or("", |(list, _)| list);
    let crates = list.split("crate = \"").skip(1);
    crates
        .filter_map(|rest| rest.split(['@', '"']).next())
        .collect()
}

fn text<'v>(package: &'v Value, key: &str) -> &'v str {
    package.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// `1.88.1` as numbers, so that they compare; what a package does not say is 0.
fn rust_version(text: &str) -> [u32; 3] {
    let mut numbers = text.split('.').map(|number| number.parse().unwrap_or(0));
    [(); 3].map(|()| numbers.next().unwrap_or(0))
}

/// The list `allow = [..]` of `[licenses]`: what is in quotes between the brackets.
fn allowed(deny: &str) -> Vec<&str> {
    let list = deny.split_once("[licenses]").map_or("", |(_, rest)| rest);
    let list = list.split_once("allow = [").map_or("", |(_, rest)| rest);
    let list = list.split_once(']').map_or("", |(list, _)| list);
    list.split('"').skip(1).step_by(2).collect()
}

/// Whether one of the alternatives of a licence expression is allowed in all of its terms.
///
/// Parentheses are understood around alternatives that stand beside AND: `(MIT OR Apache-2.0) AND Unicode-3.0`.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let is_term_allowed = |term: &str| {
        let term = term.trim().trim_matches(['(', ')']);
        // An old way to say OR.
        (term.replace('/', " OR ").split(" OR ")).any(|one| allowed.contains(&one.trim()))
    };
    if expression.contains('(') {
        return expression.split(" AND ").all(is_term_allowed);
    }
    (expression.split(" OR ")).any(|all| all.split(" AND ").all(is_term_allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        assert!(rust_version("1.100") > rust_version("1.88.1"));
        assert!(rust_version("1.88.1") > rust_version("1.88"));
        assert!(rust_version("1.88") > rust_version(""));
    }

    #[test]
    fn the_list_is_read_from_the_file() {
        let deny =
            "[bans]\nallow = [\"x\"]\n[licenses]\nallow = [\n  \"MIT\",\n  \"A WITH B\",\n]\n";
        assert_eq!(allowed(deny), ["MIT", "A WITH B"]);
    }

    #[test]
    fn a_second_version_must_be_skipped_by_name() {
        let deny = "[bans]\nskip = [\n  { crate = \"b@1\", reason = \"x\" },\n]\n";
        assert_eq!(skipped(deny), ["b"]);
        assert!(twice(&["a", "b", "b"], &skipped(deny)).is_empty());
        assert_eq!(twice(&["a", "a", "b", "b", "b"], &skipped(deny)).len(), 2);
    }

    #[test]
    fn one_alternative_must_be_allowed_in_all_of_its_terms() {
        let allowed = ["MIT", "Unicode-3.0"];
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("MIT/Apache-2.0", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("(MIT OR Apache-2.0) AND GPL-3.0", false),
            ("", false),
        ] {
            assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
        }
    }
}
