//! Text: characters of a matrix, as its rows.

use super::types::{UTF8, UTF16, UTF32};
use crate::model::{Endian, List, Value};
use crate::prelude::*;

/// The text of a char matrix of `rows` rows and `columns` columns, whose characters are stored column by column; `None`
/// where these are no characters, or not as many.
pub(super) fn decode(
    kind: u32,
    endian: Endian,
    bytes: &[u8],
    (rows, columns): (u64, u64),
) -> Option<Value> {
    let units: Vec<u32> = match kind {
        1 | 2 => bytes.iter().map(|byte| u32::from(*byte)).collect(),
        3 | 4 | UTF16 => words::<2>(bytes, endian)?,
        5 | 6 | UTF32 => words::<4>(bytes, endian)?,
        UTF8 => return utf8(bytes, rows, columns),
        _ => return None,
    };
    let is_wide = matches!(kind, 3 | 4 | UTF16);
    by_rows(&units, rows, columns, |units| {
        if is_wide {
            let units = units.map(|unit| u16::try_from(unit).unwrap_or(0));
            let characters = char::decode_utf16(units);
            characters
                .map(|found| found.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect()
        } else {
            units
                .map(|unit| char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect()
        }
    })
}

fn words<const N: usize>(bytes: &[u8], endian: Endian) -> Option<Vec<u32>> {
    let (words, []) = bytes.as_chunks::<N>() else {
        return None;
    };
    let number = |word: &[u8; N]| {
        let shift = |number: u32, byte: &u8| number << 8 | u32::from(*byte);
        match endian {
            Endian::Big => word.iter().fold(0, shift),
            Endian::Little => word.iter().rev().fold(0, shift),
        }
    };
    Some(words.iter().map(number).collect())
}

/// UTF-8 has a character, or as Octave has it a byte, for each place of the matrix.
fn utf8(bytes: &[u8], rows: u64, columns: u64) -> Option<Value> {
    if rows == 1 {
        let text = core::str::from_utf8(bytes).ok()?;
        return Some(Value::Str(text.to_owned()));
    }
    let places = rows.checked_mul(columns)?;
    if bytes.len() as u64 == places {
        let units: Vec<u32> = bytes.iter().map(|byte| u32::from(*byte)).collect();
        return by_rows(&units, rows, columns, |units| {
            let row: Vec<u8> = units
                .map(|unit| u8::try_from(unit).unwrap_or(b'?'))
                .collect();
            String::from_utf8_lossy(&row).into_owned()
        });
    }
    let text = core::str::from_utf8(bytes).ok()?;
    let units: Vec<u32> = text.chars().map(u32::from).collect();
    by_rows(&units, rows, columns, |units| {
        units.filter_map(char::from_u32).collect()
    })
}

/// The text of each row; of a single one just that.
fn by_rows(
    units: &[u32],
    rows: u64,
    columns: u64,
    spell: impl Fn(&mut dyn Iterator<Item = u32>) -> String,
) -> Option<Value> {
    let rows = usize::try_from(rows).ok()?;
    if rows.checked_mul(usize::try_from(columns).ok()?) != Some(units.len()) {
        return None;
    }
    if rows <= 1 || columns == 0 {
        return Some(Value::Str(spell(&mut units.iter().copied())));
    }
    let row = |n| Value::Str(spell(&mut units.iter().skip(n).step_by(rows).copied()));
    let texts: List = (0..rows).map(row).collect();
    Some(Value::List(texts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(rows: &[&str]) -> Value {
        Value::List(
            rows.iter()
                .map(|row| Value::Str((*row).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn rows_are_put_together_from_columns_in_every_encoding() {
        let latin = decode(2, Endian::Little, b"acbd", (2, 2));
        assert_eq!(latin, Some(list(&["ab", "cd"])));
        let wide: Vec<u8> = "aαbβ".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(
            decode(UTF16, Endian::Big, &wide, (2, 2)),
            Some(list(&["ab", "αβ"]))
        );
        // A character for each place, or a byte.
        assert_eq!(
            decode(UTF8, Endian::Little, "aαbβ".as_bytes(), (2, 2)),
            Some(list(&["ab", "αβ"]))
        );
        assert_eq!(
            decode(UTF8, Endian::Little, b"acbd", (2, 2)),
            Some(list(&["ab", "cd"]))
        );
        let text = |text: &str| Some(Value::Str(text.to_owned()));
        assert_eq!(
            decode(UTF8, Endian::Little, "grüße".as_bytes(), (1, 5)),
            text("grüße")
        );
        assert_eq!(
            decode(UTF32, Endian::Little, &[0xb1, 3, 0, 0], (1, 1)),
            text("α")
        );
        assert_eq!(decode(4, Endian::Little, &[], (0, 0)), text(""));
    }

    #[test]
    fn text_of_another_length_is_none() {
        assert_eq!(decode(4, Endian::Little, &[65, 0, 66], (1, 1)), None);
        assert_eq!(decode(2, Endian::Little, b"abc", (1, 2)), None);
        assert_eq!(decode(9, Endian::Little, &[0; 8], (1, 1)), None);
        assert_eq!(decode(UTF8, Endian::Little, &[0xff], (1, 1)), None);
    }
}
