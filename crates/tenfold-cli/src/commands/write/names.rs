//! What the names of a model's files say.

/// The name that those of several files are made from: a file's without its extension and the numbers of a shard.
pub(super) fn stem(name: &str) -> String {
    let whole = name.strip_suffix(".index.json").unwrap_or(name);
    let stem = whole.rsplit_once('.').map_or(whole, |(stem, _)| stem);
    match numbered(name).unwrap_or(stem) {
        "" => "model".to_owned(),
        stem => stem.to_owned(),
    }
}

/// What is in front of the numbers in the name of one of several files, `STEM-00002-of-00003.EXTENSION`.
pub(super) fn numbered(name: &str) -> Option<&str> {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let digits = |text: &str| text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let (rest, count) = stem.rsplit_once("-of-")?;
    let (stem, number) = rest.rsplit_once('-')?;
    (digits(number) && digits(count)).then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parts_come_from_the_name_of_the_input() {
        assert_eq!(stem("model.safetensors"), "model");
        assert_eq!(stem("model.safetensors.index.json"), "model");
        assert_eq!(stem("tiny-00002-of-00009.gguf"), "tiny");
        assert_eq!(stem("v1.5-of-2.zt"), "v1.5-of-2");
        assert_eq!(stem("weights"), "weights");
        assert_eq!(stem(""), "model");
    }
}
