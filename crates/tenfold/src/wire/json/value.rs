//! Reading any JSON into a [`Value`].

use super::{Json, Kind, Number};
use crate::error::Result;
use crate::model::{Packer, Value};
use crate::prelude::*;

/// What is told of a key that an object has more than once: the key, and where it is in the file.
pub(crate) type Repeated<'f> = &'f mut dyn FnMut(&str, u64) -> Result<()>;

impl Json<'_> {
    /// The next value, whatever it is. Of a repeated key the last value is kept, in the place of the first, after
    /// `repeated` has been told.
    pub(crate) fn value(&mut self, repeated: Repeated<'_>) -> Result<Value> {
        let mut packer = Packer::new();
        self.pack(&mut packer, repeated)?;
        Ok(packer.finish())
    }

    /// The next value, put after what is packed already.
    pub(crate) fn pack(&mut self, packer: &mut Packer, repeated: Repeated<'_>) -> Result<()> {
        // Where the keys are of the objects that are not read to their end, innermost last; none for lists.
        let mut open: Vec<Option<Vec<u64>>> = Vec::new();
        loop {
            match self.kind()? {
                Kind::Object => {
                    self.object("")?;
                    packer.open_map();
                    open.push(Some(Vec::new()));
                }
                Kind::List => {
                    self.list("")?;
                    packer.open_list();
                    open.push(None);
                }
                Kind::Str => packer.str(&self.quoted()?),
                Kind::Number => packer.value(&self.number()?.into()),
                Kind::Bool | Kind::Null => {
                    packer.value(&self.literal()?.map_or(Value::Null, Value::Bool));
                }
            }
            // Closes what ends after the value.
            loop {
                let Some(inner) = open.last_mut() else {
                    return Ok(());
                };
                if self.proceed(inner.as_mut(), packer)? {
                    break;
                }
                if let Some(places) = inner {
                    packer.last_wins(&mut |key, place| {
                        repeated(key, places.get(place).copied().unwrap_or_default())
                    })?;
                }
                packer.close();
                open.pop();
            }
        }
    }

    /// Moves to the next entry of a container, if there is one.
    fn proceed(&mut self, places: Option<&mut Vec<u64>>, packer: &mut Packer) -> Result<bool> {
        let Some(places) = places else {
            return self.item();
        };
        let Some(key) = self.key()? else {
            return Ok(false);
        };
        packer.key(&key);
        places.push(self.key_at());
        Ok(true)
    }
}

impl From<Number<'_>> for Value {
    /// The narrowest of signed 64 bits, unsigned 64 bits and digits that holds a whole number.
    fn from(number: Number<'_>) -> Self {
        match number {
            Number::Float(value) => Value::F64(value),
            Number::Whole(digits) => match (digits.parse(), digits.parse()) {
                (Ok(value), _) => Value::I64(value),
                (_, Ok(value)) => Value::U64(value),
                _ => Value::Integer(digits.to_owned()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Rules;
    use super::*;

    const RULES: Rules = Rules {
        syntax: "test.syntax",
        text: "test.text",
        depth: "test.depth",
    };

    fn read(text: &str) -> Value {
        let mut json = Json::new(text.as_bytes(), 0, 64, &RULES).unwrap();
        let value = json.value(&mut |_, _| Ok(())).unwrap();
        json.end().unwrap();
        value
    }

    #[test]
    fn whole_numbers_keep_every_digit() {
        assert_eq!(read("-9223372036854775808"), Value::I64(i64::MIN));
        assert_eq!(read("18446744073709551615"), Value::U64(u64::MAX));
        let long = "-18446744073709551616";
        assert_eq!(read(long), Value::Integer(long.into()));
        assert_eq!(read("1.0"), Value::F64(1.0));
        assert_eq!(read("-1e-7"), Value::F64(-1e-7));
    }

    #[test]
    fn the_words_for_numbers_that_are_not_finite_are_read() {
        assert!(matches!(read("NaN"), Value::F64(value) if value.is_nan()));
        assert_eq!(read("Infinity"), Value::F64(f64::INFINITY));
        assert_eq!(
            read("[-Infinity]"),
            Value::List(vec![Value::F64(f64::NEG_INFINITY)].into())
        );
    }

    #[test]
    fn order_is_kept_and_the_last_of_a_repeated_key_counts() {
        let text = r#"{"b": 1, "a": [null, true, {}], "b": {"x": 1, "x": 2}, "c": "", "b": 3}"#;
        let mut seen = Vec::new();
        let mut json = Json::new(text.as_bytes(), 0, 64, &RULES).unwrap();
        let value = json.value(&mut |key, at| {
            seen.push((key.to_owned(), at));
            Ok(())
        });
        let map = |entries: Vec<(&str, Value)>| {
            Value::Map(
                entries
                    .into_iter()
                    .map(|(k, v)| (k.to_owned(), v))
                    .collect(),
            )
        };
        let expected = map(vec![
            ("b", Value::I64(3)),
            (
                "a",
                Value::List(vec![Value::Null, Value::Bool(true), map(vec![])].into()),
            ),
            ("c", Value::Str(String::new())),
        ]);
        assert_eq!(value.unwrap(), expected);
        let names: Vec<_> = seen.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(names, ["x", "b", "b"]);
        assert_eq!(&text[usize::try_from(seen[1].1).unwrap()..][..3], "\"b\"");
    }
}
