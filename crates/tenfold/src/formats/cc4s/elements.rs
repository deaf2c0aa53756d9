//! Numbers as text.

use crate::error::{Error, Result};
use crate::io::{Limits, Source};
use crate::model::{DType, SourceId};
use crate::prelude::*;

/// Parses exactly `count` numbers to little-endian bytes.
pub(super) fn parse(
    source: &dyn Source,
    id: SourceId,
    dtype: DType,
    count: u64,
    limits: &Limits,
) -> Result<Vec<u8>> {
    let len = source.len();
    let fail = |rule, message: String| Error::malformed(rule, message).at_source(id, 0..len);
    let complex = dtype == DType::C128;
    // The shortest numbers there are, "0" and "(0,0)", with a space between two.
    let shortest = if complex { 6u64 } else { 2 };
    if count.saturating_mul(shortest) > len.saturating_add(1) {
        let message = format!("{len} bytes of text cannot hold the {count} numbers of the shape");
        return Err(fail("cc4s.count", message));
    }
    let bytes = dtype.bytes_for(count).unwrap_or(u64::MAX);
    if len.max(bytes) > limits.tensor_memory {
        let message = format!("{len} bytes of text are more than is allowed in memory at once");
        let error = Error::limit("cc4s.text", message).at_source(id, 0..len);
        return Err(error.raised_by("tensor_memory", len.max(bytes)));
    }
    let text = source.read(0..len)?;
    let mut words = Words {
        text: &text,
        at: 0,
        complex,
    };
    let mut out = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
    let mut found = 0u64;
    while let Some((at, word)) = words.next() {
        found += 1;
        if found > count {
            continue;
        }
        let numbers = if complex {
            pair(word)
        } else {
            number(word).map(|n| [n, 0.0])
        };
        let Some([first, second]) = numbers else {
            let shown = String::from_utf8_lossy(word.get(..40).unwrap_or(word));
            let kind = if complex {
                "a complex number (re,im)"
            } else {
                "a number"
            };
            let error = Error::malformed("cc4s.text", format!("{shown:?} is not {kind}"));
            let at = at as u64;
            return Err(error.at_source(id, at..at + word.len() as u64));
        };
        out.extend_from_slice(&first.to_le_bytes());
        if complex {
            out.extend_from_slice(&second.to_le_bytes());
        }
    }
    if found == count {
        Ok(out)
    } else {
        let message = format!("{found} numbers, the shape has {count}");
        Err(fail("cc4s.count", message))
    }
}

/// Numbers as text, a line each.
pub(super) fn spell_numbers(elements: &[u8], out: &mut Vec<u8>) -> Result<()> {
    for number in elements.as_chunks().0 {
        spell(f64::from_le_bytes(*number), out)?;
        out.push(b'\n');
    }
    Ok(())
}

/// Complex numbers as text, a line each.
pub(super) fn spell_pairs(elements: &[u8], out: &mut Vec<u8>) -> Result<()> {
    for [real, imaginary] in elements.as_chunks().0.as_chunks().0 {
        out.push(b'(');
        spell(f64::from_le_bytes(*real), out)?;
        out.push(b',');
        spell(f64::from_le_bytes(*imaginary), out)?;
        out.extend_from_slice(b")\n");
    }
    Ok(())
}

/// The shortest text that reads back as the same bits.
fn spell(value: f64, out: &mut Vec<u8>) -> Result<()> {
    if value.is_nan() {
        // Text knows two of the many NaNs.
        let known = [("nan", f64::NAN), ("-nan", -f64::NAN)];
        let mut known = known
            .iter()
            .filter(|(_, nan)| nan.to_bits() == value.to_bits());
        let Some((word, _)) = known.next() else {
            let message = format!(
                "a NaN with the bits {:#018x} cannot be written as text; write binary elements",
                value.to_bits()
            );
            return Err(Error::mismatch("cc4s.text", message));
        };
        out.extend_from_slice(word.as_bytes());
        return Ok(());
    }
    let (plain, scientific) = (format!("{value}"), format!("{value:e}"));
    let shorter = if plain.len() <= scientific.len() {
        plain
    } else {
        scientific
    };
    out.extend_from_slice(shorter.as_bytes());
    Ok(())
}

/// Walks over words between white space; for complex numbers, a word goes up to its parenthesis.
struct Words<'t> {
    text: &'t [u8],
    at: usize,
    complex: bool,
}

impl<'t> Words<'t> {
    fn next(&mut self) -> Option<(usize, &'t [u8])> {
        let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
        let rest = self.text.get(self.at..)?;
        let start = self.at + rest.iter().position(|byte| !is_space(byte))?;
        let word = self.text.get(start..)?;
        let space = || word.iter().position(is_space);
        let end = match word.first() {
            Some(b'(') if self.complex => {
                let close = word.iter().position(|&byte| byte == b')');
                close.map(|place| place + 1).or_else(space)
            }
            _ => space(),
        };
        let end = start + end.unwrap_or(word.len());
        self.at = end;
        Some((start, self.text.get(start..end)?))
    }
}

fn number(word: &[u8]) -> Option<f64> {
    core::str::from_utf8(word).ok()?.trim().parse().ok()
}

fn pair(word: &[u8]) -> Option<[f64; 2]> {
    let inner = word.strip_prefix(b"(")?.strip_suffix(b")")?;
    let comma = inner.iter().position(|&byte| byte == b',')?;
    Some([
        number(inner.get(..comma)?)?,
        number(inner.get(comma + 1..)?)?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn read(text: &'static str, dtype: DType, count: u64) -> Result<Vec<u8>> {
        let source = Bytes::from_static(text.as_bytes());
        parse(&source, SourceId(1), dtype, count, &Limits::default())
    }

    #[test]
    fn exactly_as_many_numbers_as_elements() {
        let two = read(" 1.0\n-2.5e0\n", DType::F64, 2).unwrap();
        assert_eq!(
            two,
            [1.0f64.to_le_bytes(), (-2.5f64).to_le_bytes()].concat()
        );
        for count in [0, 1, 3, u64::MAX] {
            let error = read("1.0 2.0", DType::F64, count).unwrap_err();
            assert_eq!(error.rule(), "cc4s.count");
        }
        assert_eq!(
            read("1.0 (2,0)", DType::F64, 2).unwrap_err().rule(),
            "cc4s.text"
        );
    }

    #[test]
    fn complex_numbers_have_two_parts() {
        let one = read("( 1 , -2 )\n(0,0)", DType::C128, 2).unwrap();
        assert_eq!(one.len(), 32);
        for text in ["(1)   ", "(1,2   ", "1.0   ", "(1,2,3)"] {
            let error = read(text, DType::C128, 1).unwrap_err();
            assert_eq!(error.rule(), "cc4s.text", "{text}");
        }
    }
}
