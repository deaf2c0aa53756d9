//! `cargo xtask rooms`: each room of the library uses only those before it.

use crate::Result;
use crate::project::{self, Project};
use std::fs;
use std::path::Path;

/// The rooms in their order. Those of one line do not use each other.
const ROOMS: &[&[&str]] = &[
    // An error names places of the model, and the model has errors: one room with two doors.
    &["prelude", "error", "model"],
    &["digest", "digits", "threads", "typed"],
    &["io"],
    &["format", "transform", "wire"],
    &["formats", "schemes"],
    &["archive"],
    &["execute"],
    &["ops"],
    &["documents"],
];

/// What the root of the library gives out under shorter names, and where it is from.
const GIVEN_OUT: &[(&str, &[&str])] = &[
    (
        "archive",
        &[
            "Archive",
            "ArchiveBuilder",
            "Companion",
            "Component",
            "InPlace",
            "OpenOptions",
            "PassedOver",
            "PassedOverFor",
        ],
    ),
    (
        "archive",
        &["Pushed", "Reading", "Sliced", "Tensor", "Values"],
    ),
    ("error", &["Error", "ErrorKind", "Hint", "Result"]),
    ("ops", &["convert", "save"]),
    ("threads", &["Control", "Work"]),
    ("typed", &["Element", "Typed"]),
];

/// Other packages that the root gives out.
const FOREIGN: &[&str] = &["Bytes", "half"];

/// Modules that stand beside the rooms and may use all of them.
const BESIDE: &[&str] = &["fuzzing", "lib", "tour"];

/// Looks at every import; no arguments.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    project::check_alone(args, check)
}

/// Compares what the rooms use with their order.
pub(crate) fn check(project: &Project) -> Result<Option<String>> {
    let source = project.root.join("crates/tenfold/src");
    let mut wrong = Vec::new();
    let mut uses = 0;
    for file in project::rust_files(&source)? {
        let name = file.strip_prefix(&source)?;
        let room = room_of(name);
        if BESIDE.contains(&room.as_str()) || is_test(&file)? {
            continue;
        }
        let own = place(&room).ok_or_else(|| format!("{room} has no place in the order"))?;
        for used in rooms_used(&fs::read_to_string(&file)?) {
            if FOREIGN.contains(&used) || BESIDE.contains(&used) {
                continue;
            }
            let used = home_of(used);
            let Some(other) = place(used) else {
                wrong.push(format!(
                    "{} imports {used:?} from the root, where no room is known by that name",
                    name.display()
                ));
                continue;
            };
            uses += 1;
            // The rooms of the first line are one.
            if other > own || (other == own && own > 0 && used != room) {
                wrong.push(format!("{} uses {used}", name.display()));
            }
        }
    }
    if uses == 0 {
        return Err("no import was found".into());
    }
    if wrong.is_empty() {
        Ok(Some(format!("{uses} uses of rooms")))
    } else {
        Err(format!("against the order of the rooms: {}", wrong.join("; ")).into())
    }
}

fn place(room: &str) -> Option<usize> {
    ROOMS.iter().position(|rooms| rooms.contains(&room))
}

/// The room that a name at the root of the library is from.
fn home_of(name: &str) -> &str {
    let given = GIVEN_OUT.iter().find(|(_, names)| names.contains(&name));
    given.map_or(name, |(room, _)| room)
}

/// The first part of a path below `src`.
fn room_of(path: &Path) -> String {
    let first = path.components().next();
    let first = first.map(|part| part.as_os_str().to_string_lossy().into_owned());
    let first = first.unwrap_or_default();
    first.strip_suffix(".rs").unwrap_or(&first).to_owned()
}

/// Whether the module that declares the file, or a folder that it is in, builds it for tests only.
fn is_test(file: &Path) -> Result<bool> {
    let (Some(folder), Some(stem)) = (file.parent(), file.file_stem()) else {
        return Ok(false);
    };
    let stem = stem.to_string_lossy();
    if folder.ends_with("src") {
        return Ok(false);
    }
    if stem == "mod" {
        return is_test(folder);
    }
    let declared = format!("mod {stem};");
    let beside = folder.with_extension("rs");
    for parent in [folder.join("mod.rs"), beside] {
        let Ok(text) = fs::read_to_string(&parent) else {
            continue;
        };
        let mut before = "";
        for line in text.lines() {
            if line.trim_start().ends_with(&declared) {
                return Ok(before.trim_start().starts_with("#[cfg(test)]") || is_test(&parent)?);
            }
            // `#[cfg(test)]` may stand above another attribute.
            if !(line.starts_with("#[") && before.starts_with("#[cfg(test)]")) {
                before = line;
            }
        }
    }
    Ok(false)
}

/// The names that follow `crate::`, outside of comments and of the tests at the end of a file. A group in braces has none.
fn rooms_used(text: &str) -> Vec<&str> {
    let mut used = Vec::new();
    let mut is_for_tests = false;
    for line in text.lines() {
        if is_for_tests && line.starts_with("mod ") && line.ends_with('{') {
            break;
        }
        is_for_tests = line == "#[cfg(test)]" || (is_for_tests && line.starts_with("#["));
        let line = line.split("//").next().unwrap_or_default();
        let mut rest = line;
        while let Some((before, behind)) = rest.split_once("crate::") {
            // `$crate::` and `tenfold_crate::` are something else.
            let is_whole = !before.ends_with(|c: char| c.is_alphanumeric() || "_$".contains(c));
            let end = behind.find(|c: char| !c.is_alphanumeric() && c != '_');
            if is_whole && let Some(name) = behind.get(..end.unwrap_or(behind.len())) {
                used.push(name);
            }
            rest = behind;
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use super::{home_of, place, room_of, rooms_used};
    use std::path::Path;

    #[test]
    fn what_the_root_gives_out_is_from_a_room() {
        let text = "use crate::Archive;\nuse crate::{Error, io};\n";
        let used = rooms_used(text);
        assert_eq!(used, ["Archive", ""]);
        assert_eq!(place(home_of("Archive")), place("archive"));
        assert_eq!(place(home_of("")), None);
    }

    #[test]
    fn imports_are_found_and_comments_are_not() {
        let text = "use crate::model::{A, B};\n/// [a](crate::ops::b)\nfn f() { crate::io::zeros(crate::error::x()) } // crate::ops\n\n#[cfg(test)]\n#[cfg(feature = \"std\")]\nmod tests {\n    use crate::ops::all;\n}\n";
        assert_eq!(rooms_used(text), ["model", "io", "error"]);
    }

    #[test]
    fn rooms_have_their_order() {
        assert_eq!(room_of(Path::new("ops/diff/mod.rs")), "ops");
        assert_eq!(room_of(Path::new("typed.rs")), "typed");
        assert!(place("ops") > place("archive") && place("archive") > place("formats"));
        assert!(place("lib").is_none());
    }
}
