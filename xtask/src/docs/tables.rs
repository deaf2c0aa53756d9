//! Tables in Markdown, made of what `tenfold formats --json` says.

use serde_json::Value;
use std::fmt::Write;

/// Whether the command reads a format.
pub(super) fn is_read(format: &Value) -> bool {
    !list(format, "reads").is_empty()
}

/// A text of an object; empty when there is none.
pub(super) fn text<'v>(object: &'v Value, key: &str) -> &'v str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The formats that are read, and below them those that are only recognized.
pub(super) fn formats(formats: &[Value]) -> String {
    table_of_formats(formats, "", |id, name| {
        format!("[{name}](docs/formats/{id}.md)")
    })
}

/// The same for the page of a crate: with the features, without links into the repository.
pub(super) fn crate_formats(formats: &[Value]) -> String {
    table_of_formats(formats, " feature |", |id, name| format!("{name} | `{id}`"))
}

/// The features of a manifest with the comments above them; those of formats are in another table.
pub(super) fn features(manifest: &str, formats: &[Value]) -> crate::Result<String> {
    let (_, features) = (manifest.split_once("[features]\n")).ok_or("no features")?;
    let features = features.split("\n[").next().unwrap_or_default();
    let mut table = String::from("| feature | what it adds |\n|---|---|\n");
    let mut comment: Vec<&str> = Vec::new();
    for line in features.lines() {
        if let Some(text) = line.strip_prefix("# ") {
            comment.push(text);
        } else if let Some((name, _)) = line.split_once(" = ") {
            let is_format = formats.iter().any(|format| text(format, "id") == name);
            let is_hidden =
                is_format || name.starts_with("__") || comment.is_empty() || name == "default";
            if !is_hidden && !name.starts_with(' ') {
                let _ = writeln!(table, "| `{name}` | {} |", cell(&comment.join(" ")));
            }
            comment.clear();
        } else {
            comment.clear();
        }
    }
    Ok(table)
}

fn table_of_formats(formats: &[Value], more: &str, title: impl Fn(&str, &str) -> String) -> String {
    let rule = if more.is_empty() { "" } else { "---|" };
    let mut table = format!(
        "| format |{more} files | versions read | versions written |\n|---|{rule}---|---|---|\n"
    );
    for format in formats.iter().filter(|format| is_read(format)) {
        let id = text(format, "id");
        let files: Vec<_> = (list(format, "extensions").iter())
            .map(|extension| format!("`.{extension}`"))
            .collect();
        let written: Vec<_> = profiles(format)
            .map(|profile| text(profile, "version"))
            .collect();
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} |",
            title(id, text(format, "name")),
            files.join(" "),
            versions(&list(format, "reads")),
            or_none(&versions(&written)),
        );
    }
    let recognized: Vec<_> = (formats.iter())
        .filter(|format| !is_read(format))
        .map(|format| text(format, "name"))
        .collect();
    if !recognized.is_empty() {
        let _ = writeln!(
            table,
            "\nRecognized and named, not read yet: {}.",
            recognized.join(", ")
        );
    }
    table
}

/// A format that counts no versions says `-`, and files that have none where others do say `none`.
fn versions(names: &[&str]) -> String {
    let shown = names.iter().map(|name| match *name {
        "-" => "the only one",
        "none" => "unnumbered",
        name => name,
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// What each version of a format that is written can hold, and the format's options.
pub(super) fn capabilities(format: &Value) -> String {
    let profiles: Vec<_> = profiles(format).collect();
    let mut table = String::new();
    if profiles.is_empty() {
        table.push_str("tenfold reads this format, and does not write it.\n");
        return table;
    }
    row(
        &mut table,
        "",
        profiles
            .iter()
            .map(|profile| text(profile, "version").to_owned()),
    );
    row(&mut table, "---", profiles.iter().map(|_| "---".to_owned()));
    for (title, fact) in FACTS {
        row(
            &mut table,
            title,
            profiles.iter().map(|profile| fact(profile)),
        );
    }
    if let Some(options) = format.get("options").and_then(Value::as_array)
        && !options.is_empty()
    {
        table.push_str("\n| option | what it does |\n|---|---|\n");
        for option in options {
            let (key, value, help) = (
                text(option, "key"),
                text(option, "value"),
                text(option, "help"),
            );
            let _ = writeln!(table, "| `-O {key}={}` | {} |", cell(value), cell(help));
        }
    }
    table
}

/// What is said about a version, under which title.
type Fact = (&'static str, fn(&Value) -> String);

const FACTS: &[Fact] = &[
    ("read by", |profile| cell(text(profile, "read_by"))),
    ("dtypes", |profile| listed(profile, "dtypes")),
    ("dimensions", |profile| {
        let least = profile.get("min_rank").and_then(Value::as_u64).unwrap_or(0);
        match profile.get("max_rank").and_then(Value::as_u64) {
            Some(most) => format!("{least} to {most}"),
            None => format!("{least} and more"),
        }
    }),
    ("sizes of 0", |profile| yes_no(profile, "zero_sizes")),
    ("layouts", |profile| listed(profile, "layouts")),
    ("file metadata", |profile| listed(profile, "file_metadata")),
    ("tensor metadata", |profile| {
        listed(profile, "tensor_metadata")
    }),
    ("zstd", |profile| yes_no(profile, "zstd")),
    ("checksums", |profile| listed(profile, "checksums")),
    ("tensors", |profile| {
        let most = profile.get("max_tensors").and_then(Value::as_u64);
        most.map_or("2^32 - 1 or more".into(), |most| format!("at most {most}"))
    }),
];

fn profiles(format: &Value) -> impl Iterator<Item = &Value> {
    format
        .get("writes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn list<'v>(object: &'v Value, key: &str) -> Vec<&'v str> {
    let items = object
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    items.filter_map(Value::as_str).collect()
}

fn listed(object: &Value, key: &str) -> String {
    let mut text = list(object, key).join(", ");
    // All widths of a kind are one entry: the tables are wide enough.
    for kind in ["u", "i"] {
        let all = [8, 16, 32, 64].map(|bits| format!("{kind}{bits}"));
        text = text.replace(&all.join(", "), &format!("{kind}8 to {kind}64"));
    }
    or_none(&cell(&text))
}

fn or_none(text: &str) -> String {
    if text.is_empty() { "none" } else { text }.to_owned()
}

fn yes_no(object: &Value, key: &str) -> String {
    let yes = object.get(key).and_then(Value::as_bool);
    if yes == Some(true) { "yes" } else { "no" }.to_owned()
}

/// A bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn row(table: &mut String, title: &str, cells: impl Iterator<Item = String>) {
    let _ = write!(table, "| {title} |");
    for cell in cells {
        let _ = write!(table, " {cell} |");
    }
    table.push('\n');
}
