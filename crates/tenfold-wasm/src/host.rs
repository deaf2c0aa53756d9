//! Files of the host as sources.

use std::ops::Range;
use std::sync::Arc;

use tenfold::io::{Cached, Siblings, Source, Tree};
use tenfold::{Bytes, Error, ErrorKind, Result};

use crate::border;

/// What is read at once: every read costs a browser about a millisecond, however short it is.
const PAGE: u64 = 256 << 10;
/// How many of them are kept.
const PAGES: usize = 64;

/// A file that was dropped on the page.
pub(crate) struct HostFile {
    file: u32,
    len: u64,
}

impl HostFile {
    /// The file, with its last pages kept.
    pub(crate) fn open(file: u32) -> Arc<dyn Source> {
        let len = border::size(file);
        let pages = Cached::new(Self { file, len }).first(PAGE).longest(PAGE);
        Arc::new(pages.small(4 * PAGE).stretches(PAGES))
    }
}

impl Source for HostFile {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let len = range.end.saturating_sub(range.start);
        let size = usize::try_from(len).map_err(|_| changed(&range))?;
        let mut bytes = vec![0; size];
        self.read_into(range.start, &mut bytes)?;
        Ok(bytes.into())
    }

    fn read_into(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        let range = at..at.saturating_add(buffer.len() as u64);
        if range.end <= self.len && border::read(self.file, at, buffer) {
            Ok(())
        } else {
            Err(changed(&range))
        }
    }

    fn gap(&self) -> u64 {
        512 << 10
    }

    fn window(&self) -> u64 {
        256 << 10
    }
}

fn changed(range: &Range<u64>) -> Error {
    let message = "the browser cannot read these bytes any more; the file was changed or moved, drop it again";
    Error::mismatch("changed", message).at(range.clone())
}

/// Files that were dropped together, by their paths in what was dropped, in order.
pub(crate) struct Dropped(Vec<(String, u32)>);

impl Dropped {
    /// The files have the numbers from `first` on.
    pub(crate) fn new<'p>(paths: impl Iterator<Item = &'p str>, first: u32) -> Arc<Self> {
        let mut files: Vec<_> = paths.map(ToOwned::to_owned).zip(first..).collect();
        files.sort();
        Arc::new(Self(files))
    }

    pub(crate) fn find(&self, path: &str) -> Option<u32> {
        let place = self
            .0
            .binary_search_by(|(known, _)| known.as_str().cmp(path));
        place
            .ok()
            .and_then(|n| self.0.get(n))
            .map(|(_, file)| *file)
    }
}

/// One directory of them: nothing beside it is reached.
#[derive(Clone)]
pub(crate) struct Directory {
    dropped: Arc<Dropped>,
    /// Empty, or a path with a slash at its end.
    path: String,
}

impl Directory {
    pub(crate) fn new(dropped: Arc<Dropped>, path: &str) -> Self {
        let path = path.to_owned();
        Self { dropped, path }
    }

    /// The paths below it, with the lengths of their files.
    fn below(&self) -> impl Iterator<Item = (&str, u32)> {
        let files = self.dropped.0.iter();
        files.filter_map(|(path, file)| Some((path.strip_prefix(self.path.as_str())?, *file)))
    }
}

impl Siblings for Directory {
    fn names(&self) -> Result<Option<Vec<String>>> {
        let names = self.below().map(|(path, _)| path);
        let names = names.filter(|path| !path.contains('/'));
        Ok(Some(names.map(ToOwned::to_owned).collect()))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Source>> {
        self.open_below(&[name])
    }

    fn open_below(&self, path: &[&str]) -> Result<Arc<dyn Source>> {
        let name = path.join("/");
        match self.dropped.find(&format!("{}{name}", self.path)) {
            Some(file) => Ok(HostFile::open(file)),
            None => {
                let message = format!("{name:?} was not dropped; drop it together with the others");
                Err(Error::new(ErrorKind::NotFound, "sibling", message))
            }
        }
    }

    fn tree(&self) -> Result<Option<Tree>> {
        let mut tree = Tree::new(Arc::new(self.clone()));
        for (path, file) in self.below() {
            tree.push(path, Some(border::size(file)))?;
        }
        Ok(Some(tree.sorted()))
    }

    fn directory_name(&self) -> Option<String> {
        let name = self.path.strip_suffix('/')?.rsplit('/').next()?;
        Some(name.to_owned())
    }

    fn shared(&self) -> Option<Arc<dyn Siblings>> {
        Some(Arc::new(self.clone()))
    }
}
