//! Names in messages.

use core::fmt;

/// Characters that are shown of a very long name, at its begin and at its end.
const SHOWN: usize = 60;

/// A name from a file as messages show it: in quotes, escaped, and a very long one cut in the middle, because its end says
/// what it is.
///
/// ```
/// use tenfold::model::Quoted;
/// assert_eq!(Quoted("a\n").to_string(), r#""a\n""#);
/// assert_eq!(Quoted(&"é".repeat(500)).to_string(), format!("\"{0}…{0}\"", "é".repeat(60)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0;
        let begin = text.char_indices().nth(SHOWN).map(|(at, _)| at);
        let end = text.char_indices().nth_back(SHOWN - 1).map(|(at, _)| at);
        match (begin, end) {
            (Some(begin), Some(end)) if begin < end => {
                let (begin, end) = (text.get(..begin), text.get(end..));
                let cut = [begin.unwrap_or_default(), "…", end.unwrap_or_default()].concat();
                write!(f, "{cut:?}")
            }
            _ => write!(f, "{text:?}"),
        }
    }
}
