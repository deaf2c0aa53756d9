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

/// Whether a character would do something else than be seen where it is pasted: end a line, move the cursor, turn text around.
fn is_odd(c: char) -> bool {
    // Rust writes those out that cannot be seen, and quotes.
    c.escape_debug().next() == Some('\\') && !"\\'\"".contains(c)
}

/// A literal of Python. What cannot be seen is written out.
fn python(text: &str) -> String {
    let mut literal = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => literal.extend(['\\', c]),
            c if is_odd(c) => literal.push_str(&match u32::from(c) {
                code @ 0x1_0000.. => format!("\\U{code:08x}"),
                code => format!("\\u{code:04x}"),
            }),
            c => literal.push(c),
        }
    }
    literal + "\""
}

/// A word of a shell. What is between single quotes means itself, but a terminal acts upon control characters that are pasted
/// before any shell sees the quotes: they are written out, as bash and zsh read them.
fn shell(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) {
        return text.to_owned();
    }
    if !text.chars().any(is_odd) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let mut word = String::from("$'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => word.extend(['\\', c]),
            // Three octal digits for each byte: what follows can never be taken for one more.
            c if is_odd(c) => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    word.push_str(&format!("\\{byte:03o}"));
                }
            }
            c => word.push(c),
        }
    }
    word + "'"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const NAMES: [&str; 7] = [
        "layers.0.w",
        "it's $HOME \"here\" \\n",
        "a\nrm -rf ~\n",
        "\u{1b}[201~;echo owned\r",
        "\u{202e}txt.exe\u{200b}1",
        "\u{7}1\u{e0001}2'\\",
        "größe 模型",
    ];

    #[test]
    fn what_is_pasted_has_no_control_characters() {
        for name in NAMES {
            for literal in [python(name), shell(name)] {
                assert!(!literal.contains(is_odd), "{literal:?}");
            }
        }
    }

    /// What a program prints that was given some text to run; `None` where it is not installed.
    fn printed(program: &str, flag: &str, text: &str) -> Option<Vec<u8>> {
        let output = match Command::new(program).args([flag, text]).output() {
            Ok(output) => output,
            Err(cause) => {
                eprintln!("NOT CHECKED with {program}: {cause}");
                return None;
            }
        };
        assert!(output.status.success(), "{output:?}");
        Some(output.stdout)
    }

    #[test]
    fn a_shell_and_python_read_the_names_that_were_written() {
        for name in NAMES {
            if let Some(read) = printed("bash", "-c", &format!("printf %s {}", shell(name))) {
                assert_eq!(String::from_utf8_lossy(&read), name);
            }
            let program = format!(
                "import sys; sys.stdout.buffer.write({}.encode())",
                python(name)
            );
            if let Some(read) = printed("python3", "-c", &program) {
                assert_eq!(String::from_utf8_lossy(&read), name);
            }
        }
    }
}
