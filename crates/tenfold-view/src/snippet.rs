//! How programs read the same: code to copy.

use serde::Serialize;

use crate::answer::{Answer, Refusal};
use crate::opened::Opened;
use crate::query::Query;
use crate::values::sliced;

#[derive(Serialize)]
struct Snippets {
    snippets: Vec<Snippet>,
}

#[derive(Serialize)]
struct Snippet {
    language: &'static str,
    code: String,
}

pub(crate) fn snippet(opened: &Opened, query: &Query) -> Result<Answer, Refusal> {
    let (_, tensor) = opened.tensor(query)?;
    let slice = query.text("slice").unwrap_or_default().trim();
    sliced(tensor, query)?;
    let (file, name) = (opened.name(), tensor.name());
    let index = if slice.is_empty() {
        "[...]".to_owned()
    } else {
        format!("[{slice}]")
    };
    let mut snippets = vec![Snippet {
        language: "Python",
        code: format!(
            "import tenfold\n\narchive = tenfold.open({})\nw = archive[{}]{index}\n",
            python(file),
            python(name),
        ),
    }];
    if opened
        .archive()?
        .format()
        .is_some_and(|spec| spec.id == "safetensors")
    {
        let code = format!(
            "from safetensors import safe_open\n\nwith safe_open({}, framework=\"pt\") as f:\n    w = f.get_slice({}){index}\n",
            python(file),
            python(name),
        );
        let language = "safetensors";
        snippets.push(Snippet { language, code });
    }
    let parsed = if slice.is_empty() {
        "&[]".to_owned()
    } else {
        format!("&tenfold::model::Slice::parse({slice:?})?")
    };
    snippets.push(Snippet {
        language: "Rust",
        code: format!(
            "let archive = tenfold::Archive::open({file:?})?;\nlet w = archive.tensor({name:?})?.slice({parsed})?.to::<f32>()?;\n"
        ),
    });
    let slice = if slice.is_empty() {
        String::new()
    } else {
        format!(" --slice {}", shell(slice))
    };
    snippets.push(Snippet {
        language: "Command",
        code: format!("tenfold show {} {}{slice}\n", shell(file), shell(name)),
    });
    Answer::json(&Snippets { snippets })
}

/// A literal of Python, which reads those of JSON.
fn python(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// A word of a shell: what is between single quotes means itself.
fn shell(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
