//! Reading any JSON into a [`Value`].

use super::{Json, Kind, Number};
use crate::error::Result;
use crate::model::{Metadata, Value};
use crate::prelude::*;

/// What is told of a key that an object has more than once: the key, and where it is in the file.
pub(crate) type Repeated<'f> = &'f mut dyn FnMut(&str, u64) -> Result<()>;

/// A container that is not read to its end.
enum Building {
    List(Vec<Value>),
    Map {
        entries: Vec<(String, Value)>,
        places: Vec<u64>,
        key: String,
    },
}

impl Json<'_> {
    /// The next value, whatever it is. Of a repeated key the last value is kept, in the place of the first, after
    /// `repeated` has been told.
    pub(crate) fn value(&mut self, repeated: Repeated<'_>) -> Result<Value> {
        let mut building: Vec<Building> = Vec::new();
        loop {
            let mut done = match self.kind()? {
                Kind::Object => {
                    self.object("")?;
                    building.push(Building::Map {
                        entries: Vec::new(),
                        places: Vec::new(),
                        key: String::new(),
                    });
                    None
                }
                Kind::List => {
                    self.list("")?;
                    building.push(Building::List(Vec::new()));
                    None
                }
                Kind::Str => Some(Value::Str(self.quoted()?.into_owned())),
                Kind::Number => Some(self.number()?.into()),
                Kind::Bool | Kind::Null => Some(self.literal()?.map_or(Value::Null, Value::Bool)),
            };
            // Puts the value where it belongs, and closes what ends behind it.
            loop {
                let Some(mut inner) = building.pop() else {
                    return Ok(done.unwrap_or(Value::Null));
                };
                if self.proceed(&mut inner, done.take())? {
                    building.push(inner);
                    break;
                }
                done = Some(inner.finish(repeated)?);
            }
        }
    }

    /// Adds a value to a container, and moves to its next entry if there is one.
    fn proceed(&mut self, inner: &mut Building, done: Option<Value>) -> Result<bool> {
        match inner {
            Building::List(items) => {
                items.extend(done);
                self.item()
            }
            Building::Map {
                entries,
                places,
                key,
            } => {
                if let Some(value) = done {
                    entries.push((core::mem::take(key), value));
                }
                let Some(next) = self.key()? else {
                    return Ok(false);
                };
                places.push(self.key_at());
                *key = next.into_owned();
                Ok(true)
            }
        }
    }
}

impl Building {
    fn finish(self, repeated: Repeated<'_>) -> Result<Value> {
        match self {
            Building::List(items) => Ok(Value::List(items)),
            Building::Map {
                entries, places, ..
            } => {
                let entries = last_wins(entries, &places, repeated)?;
                Ok(Value::Map(entries.into_iter().collect::<Metadata>()))
            }
        }
    }
}

/// Leaves one entry of every key: the last value in the first place.
fn last_wins(
    entries: Vec<(String, Value)>,
    places: &[u64],
    repeated: Repeated<'_>,
) -> Result<Vec<(String, Value)>> {
    let mut first: LookupMap<&str, usize> = LookupMap::new();
    let mut moves = Vec::new();
    for (index, ((key, _), at)) in entries.iter().zip(places).enumerate() {
        match first.get(key.as_str()) {
            Some(&to) => {
                repeated(key, *at)?;
                moves.push((index, to));
            }
            None => drop(first.insert(key, index)),
        }
    }
    drop(first);
    if moves.is_empty() {
        return Ok(entries);
    }
    let mut slots: Vec<Option<(String, Value)>> = entries.into_iter().map(Some).collect();
    for (from, to) in moves {
        let later = slots.get_mut(from).and_then(Option::take);
        if let Some(slot) = slots.get_mut(to) {
            *slot = later;
        }
    }
    Ok(slots.into_iter().flatten().collect())
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
            Value::List(vec![Value::F64(f64::NEG_INFINITY)])
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
                Value::List(vec![Value::Null, Value::Bool(true), map(vec![])]),
            ),
            ("c", Value::Str(String::new())),
        ]);
        assert_eq!(value.unwrap(), expected);
        let names: Vec<_> = seen.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(names, ["x", "b", "b"]);
        assert_eq!(&text[usize::try_from(seen[1].1).unwrap()..][..3], "\"b\"");
    }
}
