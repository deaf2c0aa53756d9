//! Names of members: UTF-8, or the characters of the first PCs.

use crate::error::{Error, Result};
use crate::prelude::*;

/// The upper half of code page 437.
const CP437: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";

/// The name as text; never a path.
pub(super) fn decode(raw: &[u8], is_utf8: bool) -> Result<String> {
    if raw.contains(&0) {
        let message = format!(
            "a member's name \"{}\" holds a zero byte, at which some readers end it",
            raw.escape_ascii()
        );
        return Err(Error::malformed("zip.name", message));
    }
    if is_utf8 || raw.is_ascii() {
        return String::from_utf8(raw.to_vec()).map_err(|cause| {
            let message = format!("a member's name \"{}\" is not UTF-8", raw.escape_ascii());
            Error::malformed("zip.name", message).because(cause)
        });
    }
    let upper: Vec<char> = CP437.chars().collect();
    Ok(raw
        .iter()
        .map(|&byte| match byte.checked_sub(0x80) {
            None => char::from(byte),
            // All 128 are there.
            Some(place) => upper.get(usize::from(place)).copied().unwrap_or('\u{fffd}'),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_a_mark_are_of_the_first_pcs() {
        assert_eq!(CP437.chars().count(), 128);
        assert_eq!(decode(b"gr\x94\xe1e", false).unwrap(), "größe");
        assert_eq!(decode("größe".as_bytes(), true).unwrap(), "größe");
        assert_eq!(decode(b"\xff", false).unwrap(), "\u{a0}");
        assert!(decode(b"gr\x94", true).is_err());
        assert!(decode(b"a\0b", false).is_err());
    }
}
