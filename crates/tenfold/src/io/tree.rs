//! Everything at and below a directory, listed once.

use core::fmt;

use crate::error::{Error, ErrorKind, Result};
use crate::io::{Siblings, Source};
use crate::prelude::*;

/// Directories inside each other that are looked into.
pub(crate) const DEEPEST: usize = 64;
/// What listings do not know.
const UNKNOWN: u64 = u64::MAX;

/// The files at and below a directory, by their keys: the names on the way to them with `/` in between, as object stores
/// have them. They are listed once, and opened when they are asked for.
///
/// ```
/// use tenfold::io::{DirectorySiblings, Siblings};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("beside");
/// # std::fs::create_dir(directory.path().join("a"))?;
/// # std::fs::write(directory.path().join("a/0.0"), "chunk")?;
/// let tree = DirectorySiblings::of(&path).tree()?.unwrap();
/// assert_eq!(tree.keys().collect::<Vec<_>>(), ["a/0.0"]);
/// assert_eq!(tree.open("a/0.0")?.len(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Tree {
    /// All keys, one after the other: there may be millions.
    text: String,
    /// In the order of the keys' bytes.
    entries: Vec<Entry>,
    /// Keys of directories that are links, and were not followed.
    links: Vec<String>,
    is_listed: bool,
    files: Arc<dyn Siblings>,
}

#[derive(Clone, Copy)]
struct Entry {
    start: u64,
    end: u64,
    len: u64,
}

impl Tree {
    /// Files that are listed.
    pub(crate) const MOST: usize = 10_000_000;

    /// A tree of files that are [opened](Siblings::open_below) by `files`; nothing is in it yet.
    pub fn new(files: Arc<dyn Siblings>) -> Self {
        Self {
            text: String::new(),
            entries: Vec::new(),
            links: Vec::new(),
            is_listed: true,
            files,
        }
    }

    /// The same where nobody can list them, as on a plain web server: any key may be there, and is tried.
    pub(crate) fn unlisted(files: Arc<dyn Siblings>) -> Self {
        Self {
            is_listed: false,
            ..Self::new(files)
        }
    }

    /// Whether there are links to directories, which were not followed.
    pub(crate) fn has_links(&self) -> bool {
        !self.links.is_empty()
    }

    /// Whether its keys are all that there is.
    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Adds a file, with its length where that is known.
    pub fn push(&mut self, key: &str, len: Option<u64>) -> Result<()> {
        if self.entries.len() >= Self::MOST {
            let message = format!(
                "there are more than {} files below this directory",
                Self::MOST
            );
            return Err(Error::limit("file.directory", message));
        }
        if key.split('/').count() > DEEPEST {
            let message = format!("{key:?} is more than {DEEPEST} directories deep");
            return Err(Error::limit("file.directory", message));
        }
        let start = self.text.len() as u64;
        self.text.push_str(key);
        let end = self.text.len() as u64;
        let len = len.unwrap_or(UNKNOWN);
        self.entries.push(Entry { start, end, len });
        Ok(())
    }

    /// Adds a directory that is a link, and that is not looked into.
    pub(crate) fn push_link(&mut self, key: String) {
        self.links.push(key);
    }

    /// The same in the order of the keys, in which everything else finds them.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        let text = core::mem::take(&mut self.text);
        let key = |entry: &Entry| slice(&text, entry);
        self.entries.sort_unstable_by(|a, b| key(a).cmp(key(b)));
        self.text = text;
        self
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All keys, in the order of their bytes.
    pub fn keys(&self) -> impl Iterator<Item = &str> + Clone {
        self.entries.iter().map(|entry| slice(&self.text, entry))
    }

    /// The keys that begin with `prefix`, in their order.
    pub fn below(&self, prefix: &str) -> impl Iterator<Item = &str> + Clone {
        let first = self
            .entries
            .partition_point(|entry| self.key(entry) < prefix);
        let rest = self.entries.get(first..).unwrap_or_default();
        let count = rest.partition_point(|entry| self.key(entry).starts_with(prefix));
        rest.iter().take(count).map(|entry| self.key(entry))
    }

    /// Whether there is a file with this key. One that may be behind a link that was not followed is an error.
    pub fn contains(&self, key: &str) -> Result<bool> {
        if self.find(key).is_some() {
            return Ok(true);
        }
        let is_behind = |link: &&String| {
            let rest = key.strip_prefix(link.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match self.links.iter().find(is_behind) {
            None => Ok(false),
            Some(link) => {
                let message = format!("{link:?} is a link to a directory, which is not followed");
                Err(Error::malformed("sibling", message))
            }
        }
    }

    /// Whether a file with this key was listed.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Bytes of a file, where the listing said it.
    pub fn len_of(&self, key: &str) -> Option<u64> {
        let len = self.find(key)?.len;
        (len != UNKNOWN).then_some(len)
    }

    /// Bytes of a file. One that the listing said nothing of is looked at.
    pub(crate) fn measure(&self, key: &str) -> Result<u64> {
        match self.len_of(key) {
            Some(len) => Ok(len),
            None => self.files.len_below(&key.split('/').collect::<Vec<_>>()),
        }
    }

    /// Bytes of all files, as far as they can be looked at.
    pub(crate) fn bytes(&self) -> u64 {
        let lens = self.keys().map(|key| self.measure(key).unwrap_or(0));
        lens.fold(0, u64::saturating_add)
    }

    /// Opens a file.
    pub fn open(&self, key: &str) -> Result<Arc<dyn Source>> {
        if self.is_listed && !self.contains(key)? {
            let message = format!("there is no {key:?}");
            return Err(Error::new(ErrorKind::NotFound, "sibling", message));
        }
        self.files.open_below(&key.split('/').collect::<Vec<_>>())
    }

    /// Opens several files, all at once where that is faster; the results are in the order of the keys.
    pub fn open_all(&self, keys: &[&str]) -> Vec<Result<Arc<dyn Source>>> {
        self.files.open_keys(keys)
    }

    fn key(&self, entry: &Entry) -> &str {
        slice(&self.text, entry)
    }

    fn find(&self, key: &str) -> Option<&Entry> {
        let found = self
            .entries
            .binary_search_by(|entry| self.key(entry).cmp(key));
        self.entries.get(found.ok()?)
    }
}

fn slice<'t>(text: &'t str, entry: &Entry) -> &'t str {
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    text.get(place(entry.start)..place(entry.end))
        .unwrap_or_default()
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tree({} files)", self.len())
    }
}

#[cfg(all(test, feature = "std"))]
#[allow(clippy::disallowed_methods, clippy::unwrap_used)] // they make the files that are listed
mod tests {
    use super::*;
    use crate::io::DirectorySiblings;

    fn tree(directory: &std::path::Path) -> Tree {
        let files = DirectorySiblings::of(directory.join("any"));
        files.tree().unwrap().unwrap()
    }

    #[test]
    fn files_below_a_directory_are_found_by_their_keys_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let at = |key: &str| directory.path().join(key);
        for key in ["a/b", "a.b", "c"] {
            std::fs::create_dir_all(at(key)).unwrap();
        }
        for key in [".hidden", "a/0", "a/b/1", "a.b/2", "z"] {
            std::fs::write(at(key), key).unwrap();
        }
        let tree = tree(directory.path());
        let keys: Vec<_> = tree.keys().collect();
        assert_eq!(keys, [".hidden", "a.b/2", "a/0", "a/b/1", "z"]);
        assert_eq!(tree.below("a/").collect::<Vec<_>>(), ["a/0", "a/b/1"]);
        assert!(tree.contains("a/b/1").unwrap() && !tree.contains("a/b").unwrap());
        assert_eq!(tree.open("a.b/2").unwrap().len(), 5);
        assert_eq!(tree.open("a/c").unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[cfg(unix)]
    #[test]
    fn links_to_directories_are_not_followed_and_not_taken_for_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join("0"), "far").unwrap();
        let at = |key: &str| directory.path().join(key);
        std::os::unix::fs::symlink(elsewhere.path(), at("c")).unwrap();
        std::os::unix::fs::symlink(directory.path(), at("self")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join("0"), at("out")).unwrap();
        let tree = tree(directory.path());
        assert_eq!(tree.keys().collect::<Vec<_>>(), ["out"]);
        assert_eq!(tree.open("out").unwrap_err().rule(), "file.sibling");
        assert!(tree.contains("c/0").is_err() && tree.contains("self").is_err());
        assert!(!tree.contains("cc/0").unwrap());
    }

    #[test]
    fn what_lies_too_deep_is_refused() {
        let mut tree = Tree::new(Arc::new(DirectorySiblings::of("any")));
        tree.push(&vec!["d"; DEEPEST].join("/"), None).unwrap();
        let error = tree.push(&vec!["d"; DEEPEST + 1].join("/"), None);
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Limit);
    }
}
