//! Names of tensors as names of files, and back.

use alloc::borrow::Cow;

use crate::digest::unhex_pair;
use crate::format::ShardName;
use crate::prelude::*;

/// The name of a file, without its extension, for a tensor of this name. No two names have the same one, and [`decode`]
/// gives the name back.
///
/// What some file system takes for something else is written as `%` and two hexadecimal digits for each of its bytes:
/// separators and other characters that Windows reserves, control characters, a dot in front, the first letter of a
/// device's name, and `%` itself. A lone `%` is the empty name.
pub(crate) fn encode(name: &str) -> String {
    if name.is_empty() {
        return EMPTY.to_owned();
    }
    let is_device = is_device(name);
    // What counts files would be taken for one of several files of a model.
    let counter = ShardName::in_stem(name).map(|name| name.stem.len());
    let mut stem = String::with_capacity(name.len());
    for (place, c) in name.char_indices() {
        let escaped = c.is_control()
            || "%/\\:*?\"<>|".contains(c)
            || (place == 0 && (c == '.' || is_device))
            || Some(place) == counter;
        if escaped {
            let mut buffer = [0; 4];
            let bytes = c.encode_utf8(&mut buffer).bytes();
            bytes.for_each(|byte| stem += &format!("%{byte:02X}"));
        } else {
            stem.push(c)
        }
    }
    stem
}

/// The name of the tensor in a file of this name, which is without its extension. What is not an escape, or none of UTF-8,
/// is left as it is.
pub(crate) fn decode(stem: &str) -> Cow<'_, str> {
    if stem == EMPTY {
        return Cow::Borrowed("");
    }
    if !stem.contains('%') {
        return Cow::Borrowed(stem);
    }
    let mut name = Vec::with_capacity(stem.len());
    let mut rest = stem.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        match (first, escape(behind)) {
            (b'%', Some((byte, behind))) => {
                name.push(byte);
                rest = behind;
            }
            _ => name.push(first),
        }
    }
    String::from_utf8(name).map_or(Cow::Borrowed(stem), Cow::Owned)
}

/// No name has it: a `%` in one is escaped.
const EMPTY: &str = "%";

/// The byte that two hexadecimal digits stand for, and what follows them.
fn escape(text: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, behind) = text.split_at_checked(2)?;
    Some((unhex_pair(digits)?, behind))
}

/// Whether Windows takes a file of this name for a device, whatever its extension.
fn is_device(name: &str) -> bool {
    const DEVICES: [&str; 6] = ["AUX", "CON", "CONIN$", "CONOUT$", "NUL", "PRN"];
    let base = name.split('.').next().unwrap_or_default().trim_end();
    let is = |device: &&str| base.eq_ignore_ascii_case(device);
    let port = |prefix: &str| {
        let (start, number) = base.split_at_checked(prefix.len())?;
        let mut digits = number.chars();
        let is_port = digits.next().is_some_and(|c| "0123456789¹²³".contains(c));
        (start.eq_ignore_ascii_case(prefix) && is_port && digits.next().is_none()).then_some(())
    };
    DEVICES.iter().any(is) || port("COM").is_some() || port("LPT").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_some_system_takes_for_something_else_is_escaped() {
        for plain in [
            "model.0.weight",
            "größe",
            "権重",
            "\u{1f9ea}",
            "it's",
            "a b",
            "-",
            "console",
            "com",
            "COM10",
        ] {
            assert_eq!(encode(plain), plain);
            assert_eq!(decode(plain), plain);
        }
        for (name, stem) in [
            ("", "%"),
            ("%", "%25"),
            ("a/b", "a%2Fb"),
            ("a%2Fb", "a%252Fb"),
            ("a\\b", "a%5Cb"),
            (".hidden", "%2Ehidden"),
            ("..", "%2E."),
            ("C:\n\u{85}", "C%3A%0A%C2%85"),
            ("nul", "%6Eul"),
            ("Con.weight", "%43on.weight"),
            ("lpt1 ", "%6Cpt1 "),
            ("COM¹", "%43OM¹"),
            ("x-00001-of-00002", "x%2D00001-of-00002"),
        ] {
            assert_eq!(encode(name), stem);
            assert_eq!(decode(stem), name);
        }
    }

    #[test]
    fn what_is_no_escape_stays() {
        for stem in ["100%", "50%zz", "%4", "%+1", "%FF", "a%2Fb%C3", "% %"] {
            assert_eq!(decode(stem), stem);
        }
        assert_eq!(decode("%c3%A4%"), "ä%");
    }
}
