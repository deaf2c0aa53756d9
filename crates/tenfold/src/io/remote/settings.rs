//! How URLs are opened: what a program says, and what the environment says.

use core::fmt;

use crate::prelude::*;
use crate::threads::Control;

/// What a program says.
#[derive(Clone, Default)]
pub(super) struct Settings {
    pub(super) anonymous: bool,
    pub(super) allow_http: bool,
    pub(super) no_cache: bool,
    pub(super) options: Vec<(String, String)>,
    pub(super) control: Option<Arc<Control>>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values may be secret.
        let keys: Vec<_> = self.options.iter().map(|(key, _)| key).collect();
        f.debug_struct("Settings")
            .field("anonymous", &self.anonymous)
            .field("allow_http", &self.allow_http)
            .field("no_cache", &self.no_cache)
            .field("options", &keys)
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// The last option of one of these names.
    pub(super) fn option(&self, names: &[&str]) -> Option<&str> {
        let is_meant =
            |(key, _): &&(String, String)| names.iter().any(|name| key.eq_ignore_ascii_case(name));
        let found = self.options.iter().rev().find(is_meant);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether requests go without credentials because somebody said so.
    pub(super) fn is_anonymous(&self) -> bool {
        self.anonymous
            || self
                .option(&["anonymous", "anon", "skip_signature"])
                .is_some_and(is_true)
    }
}

/// A variable of the environment that says something.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether a text means yes.
pub(super) fn is_true(text: &str) -> bool {
    ["1", "true", "yes", "on"]
        .iter()
        .any(|yes| text.eq_ignore_ascii_case(yes))
}
