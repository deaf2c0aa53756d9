//! Names that could have been meant.

use tenfold::model::Quoted;

/// Less alike are other names, and no slips of the pen.
const SIMILAR: f64 = 0.85;
const SHOWN: usize = 3;

/// The question whether one of these was meant: up to three names, those that end with this one first, then the most
/// similar.
pub(crate) fn did_you_mean<'a>(
    names: impl IntoIterator<Item = &'a str>,
    wanted: &str,
) -> Option<String> {
    // Part of a name is worth less than a slip of the pen, and more than nothing.
    let is_part = |name: &str| wanted.chars().count() >= 3 && name.contains(wanted);
    let mut near: Vec<(f64, &str)> = (names.into_iter())
        .map(|name| match likeness(name, wanted) {
            other if other < SIMILAR && is_part(name) => (SIMILAR, name),
            likeness => (likeness, name),
        })
        .filter(|(likeness, _)| *likeness >= SIMILAR)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut shown: Vec<String> = Vec::new();
    for (_, name) in near {
        let quoted = Quoted(name).to_string();
        if shown.len() < SHOWN && !shown.contains(&quoted) {
            shown.push(quoted);
        }
    }
    if shown.is_empty() {
        None
    } else {
        Some(format!("did you mean {}?", shown.join(" or ")))
    }
}

fn likeness(name: &str, wanted: &str) -> f64 {
    if let Some(before) = name.strip_suffix(wanted)
        && before.ends_with(['.', '/', ':'])
    {
        return 1.0;
    }
    let (name, wanted) = (name.to_lowercase(), wanted.to_lowercase());
    let alike = strsim::jaro(&name, &wanted);
    // In a short word one letter is a large part of it.
    if wanted.chars().count() >= 3 && strsim::osa_distance(&name, &wanted) <= 1 {
        alike.max(0.9)
    } else {
        alike
    }
}

#[cfg(test)]
mod tests {
    use super::did_you_mean;

    #[test]
    fn slips_of_the_pen_are_found_and_other_names_are_not() {
        let formats = ["gguf", "npy", "npz", "safetensors", "ztensor"];
        let asked = |wanted| did_you_mean(formats, wanted).unwrap_or_default();
        assert_eq!(asked("gguv"), "did you mean \"gguf\"?");
        assert_eq!(asked("safetensor"), "did you mean \"safetensors\"?");
        assert_eq!(asked("npx"), "did you mean \"npy\" or \"npz\"?");
        assert_eq!(asked("onnx"), "");
    }

    #[test]
    fn a_part_of_a_name_is_enough() {
        let names = ["l.0.weight", "model.embed_tokens.weight"];
        let asked = did_you_mean(names, "embed").unwrap_or_default();
        assert_eq!(asked, "did you mean \"model.embed_tokens.weight\"?");
    }

    #[test]
    fn a_name_that_ends_with_the_wanted_one_comes_first() {
        let names = ["biases", "l.0.bias", "l.0.weight"];
        let asked = did_you_mean(names, "bias").unwrap_or_default();
        assert_eq!(asked, "did you mean \"l.0.bias\" or \"biases\"?");
    }
}
