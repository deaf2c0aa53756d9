//! Questions: a path and a query.

use crate::answer::Refusal;

/// A question taken apart.
#[derive(Debug)]
pub(crate) struct Query {
    path: String,
    fields: Vec<(String, String)>,
}

impl Query {
    /// Reads `tile?a=0&t=17`.
    pub(crate) fn parse(question: &str) -> Result<Self, Refusal> {
        let (path, query) = question.split_once('?').unwrap_or((question, ""));
        let mut fields = Vec::new();
        for field in query.split('&').filter(|field| !field.is_empty()) {
            let (key, value) = field.split_once('=').unwrap_or((field, ""));
            fields.push((decode(key)?, decode(value)?));
        }
        Ok(Self {
            path: path.to_owned(),
            fields,
        })
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// A field that may be missing.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let (_, value) = fields.find(|(known, _)| known == key)?;
        Some(value)
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        self.text(key).is_some_and(|value| value != "0")
    }

    pub(crate) fn number(&self, key: &str) -> Result<u64, Refusal> {
        self.optional(key)?
            .ok_or_else(|| Refusal::wrong(format!("{:?} needs {key}", self.path)))
    }

    pub(crate) fn number_or(&self, key: &str, otherwise: u64) -> Result<u64, Refusal> {
        Ok(self.optional(key)?.unwrap_or(otherwise))
    }

    pub(crate) fn optional(&self, key: &str) -> Result<Option<u64>, Refusal> {
        self.text(key).map(|text| number(key, text)).transpose()
    }

    /// Numbers with commas between them.
    pub(crate) fn numbers(&self, key: &str) -> Result<Option<Vec<u64>>, Refusal> {
        let Some(text) = self.text(key) else {
            return Ok(None);
        };
        let items = text.split(',').filter(|item| !item.is_empty());
        items
            .map(|item| number(key, item))
            .collect::<Result<_, _>>()
            .map(Some)
    }
}

fn number(key: &str, text: &str) -> Result<u64, Refusal> {
    text.parse()
        .map_err(|_| Refusal::wrong(format!("{key} is {text:?}, which is no number")))
}

/// Takes `%20` and the like back; what is no text afterwards is refused.
fn decode(text: &str) -> Result<String, Refusal> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let escaped = behind
            .get(..2)
            .filter(|_| first == b'%')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(if first == b'+' { b' ' } else { first });
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| Refusal::wrong("the question is no text in UTF-8".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_taken_apart_and_decoded() {
        let query = Query::parse("values?a=1&slice=0%3A4%2C+-1&full&name=%C3%A4%").unwrap();
        assert_eq!(query.path(), "values");
        assert_eq!(query.number("a").unwrap(), 1);
        assert_eq!(query.text("slice"), Some("0:4, -1"));
        assert_eq!((query.flag("full"), query.flag("other")), (true, false));
        assert_eq!(query.text("name"), Some("ä%"));
        assert!(query.number("slice").is_err() && query.number("b").is_err());
        assert!(Query::parse("x?a=%ff").is_err());
        let query = Query::parse("tile?at=0,3,2&none=").unwrap();
        assert_eq!(query.numbers("at").unwrap(), Some(vec![0, 3, 2]));
        assert_eq!(query.numbers("none").unwrap(), Some(vec![]));
    }
}
