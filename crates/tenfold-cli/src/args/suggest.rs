//! Values that shells offer, of options that take others too.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};
use std::ffi::OsStr;

/// A parser of text, with values to offer.
#[derive(Clone)]
pub(super) struct Suggest<P> {
    parse: P,
    values: fn() -> Vec<&'static str>,
}

/// Parses with `parse`; shells offer `values`.
pub(super) fn suggest<P>(parse: P, values: fn() -> Vec<&'static str>) -> Suggest<P> {
    Suggest { parse, values }
}

impl<T, P> TypedValueParser for Suggest<P>
where
    T: Clone + Send + Sync + 'static,
    P: Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static,
{
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Self::Value, Error> {
        self.parse.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(
            (self.values)().into_iter().map(PossibleValue::new),
        ))
    }
}
