//! AWS profile files: `~/.aws/credentials` and `~/.aws/config`.

use std::path::PathBuf;

use super::settings::variable;
use crate::prelude::*;

/// Larger ones are no files of settings.
const LARGEST: u64 = 1 << 20;

/// What a profile says.
#[derive(Clone, Default, Eq, PartialEq)]
pub(super) struct Profile {
    pub(super) key: Option<String>,
    pub(super) secret: Option<String>,
    pub(super) token: Option<String>,
    pub(super) region: Option<String>,
    pub(super) endpoint: Option<String>,
    name: String,
    /// Whether the environment says that it is meant.
    pub(super) is_named: bool,
    is_there: bool,
    /// It gets its credentials in a way that is not ours.
    is_elsewhere: bool,
}

impl Profile {
    /// The profile that the environment names, or the default one.
    pub(super) fn read() -> Self {
        let named = variable("AWS_PROFILE").or_else(|| variable("AWS_DEFAULT_PROFILE"));
        let name = named.as_deref().unwrap_or("default");
        let config = file("AWS_CONFIG_FILE", "config");
        let credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
        let mut profile = Self {
            name: name.to_owned(),
            is_named: named.is_some(),
            ..Self::default()
        };
        // Of what both say, the second counts.
        for text in [config, credentials].into_iter().flatten() {
            profile.is_there |= profile.take(&text, name);
        }
        profile
    }

    /// What to do where it has no keys of its own and should have some.
    pub(super) fn advice(&self) -> Option<String> {
        let name = &self.name;
        if self.is_named && !self.is_there {
            return Some(format!(
                "AWS_PROFILE is {name:?}, and no file of settings has a profile of that name"
            ));
        }
        (self.key.is_none() && self.is_elsewhere).then(|| {
            format!(
                "the profile {name:?} has no keys of its own; `aws configure export-credentials` prints keys to put into the environment"
            )
        })
    }

    /// Takes what a file says of a profile; whether it is there.
    fn take(&mut self, text: &str, name: &str) -> bool {
        let mut is_ours = false;
        let mut is_there = false;
        for line in text.lines() {
            // What is indented belongs to a group of its own.
            if line.starts_with(char::is_whitespace) || line.starts_with(['#', ';']) {
                continue;
            }
            let line = line.trim_end();
            if let Some(section) = line
                .strip_prefix('[')
                .and_then(|line| line.split(']').next())
            {
                let section = section.trim();
                let section = section.strip_prefix("profile ").map_or(section, str::trim);
                is_ours = section == name;
                is_there |= is_ours;
            } else if let (true, Some((key, value))) = (is_ours, line.split_once('=')) {
                self.set(key.trim(), value.trim());
            }
        }
        is_there
    }

    fn set(&mut self, key: &str, value: &str) {
        let field = match key {
            "aws_access_key_id" => &mut self.key,
            "aws_secret_access_key" => &mut self.secret,
            "aws_session_token" => &mut self.token,
            "region" => &mut self.region,
            "endpoint_url" => &mut self.endpoint,
            "role_arn" | "sso_session" | "sso_start_url" | "credential_process"
            | "source_profile" => {
                self.is_elsewhere = true;
                return;
            }
            _ => return,
        };
        *field = Some(value.to_owned()).filter(|value| !value.is_empty());
    }
}

fn file(name: &str, usual: &str) -> Option<String> {
    let path = match variable(name) {
        Some(path) => PathBuf::from(path),
        None => std::env::home_dir()?.join(".aws").join(usual),
    };
    let is_small = std::fs::metadata(&path).is_ok_and(|found| found.len() <= LARGEST);
    is_small
        .then(|| std::fs::read_to_string(path).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# mine
[default]
aws_access_key_id = one
aws_secret_access_key=two = 2
region = eu-west-1
s3 =
  endpoint_url = http://not-this-one
[profile other]
aws_access_key_id = three
endpoint_url = https://store
[sso]
sso_start_url = https://x
";

    #[test]
    fn a_profile_has_what_stands_under_its_name() {
        let mut profile = Profile::default();
        assert!(profile.take(TEXT, "default"));
        assert_eq!(profile.key.as_deref(), Some("one"));
        assert_eq!(profile.secret.as_deref(), Some("two = 2"));
        assert_eq!(profile.region.as_deref(), Some("eu-west-1"));
        assert_eq!(profile.endpoint, None);
        let mut other = Profile::default();
        assert!(other.take(TEXT, "other"));
        assert_eq!(other.endpoint.as_deref(), Some("https://store"));
        assert_eq!(other.secret, None);
        assert!(!other.take(TEXT, "nobody"));
        let mut sso = Profile::default();
        assert!(sso.take(TEXT, "sso"));
        assert!(sso.advice().unwrap().contains("export-credentials"));
        assert_eq!(profile.advice(), None);
    }
}
