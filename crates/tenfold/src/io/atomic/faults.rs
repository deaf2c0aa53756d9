//! Every single operation on a file fails, one after the other: what was there stays, or what is new is whole.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used
)] // a test may panic

use super::temporary::SUFFIX;
use super::tests::Scratch;
use super::*;
use crate::archive::{Archive, ArchiveBuilder, OpenOptions};
use crate::format::{Entry, Profile};
use crate::formats::FORMATS;
use crate::io::fault::Faults;
use crate::model::DType;
use crate::ops::{Conversion, ConvertOptions, Shards};

/// How an output can come about.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// A file where there is none.
    New,
    /// A file in the place of another one, and what belongs to it in the place of others.
    Replace,
    /// Shards and their index in the place of others.
    Shards,
    /// A directory with a file for every tensor.
    Directory,
}

/// What a system may lack: files without a name as outside Linux, hard links as on FAT.
const SYSTEMS: [&[&str]; 3] = [&[], &["unnamed"], &["unnamed", "link"]];

#[test]
fn any_operation_may_fail_and_nothing_is_lost_or_left() {
    let mut seen = Vec::new();
    let mut failed = 0;
    for entry in FORMATS.iter().filter(|entry| entry.codec.is_some()) {
        let Some(profile) = entry.spec.writes.first() else {
            continue;
        };
        for way in [Way::New, Way::Replace, Way::Shards, Way::Directory] {
            // One file and several; what the others do is the same.
            let systems = match entry.spec.id {
                "safetensors" if way == Way::Shards => &SYSTEMS[..],
                _ if way == Way::Shards => continue,
                "cc4s" | "mag" => &SYSTEMS[..],
                _ => &SYSTEMS[..1],
            };
            for &lacks in systems {
                let case = Case::new(entry, profile, way, lacks);
                // A directory is never replaced.
                if way == Way::Replace && case.is_tree() {
                    continue;
                }
                failed += case.fail_everywhere(&mut seen);
            }
        }
    }
    seen.sort_unstable();
    seen.dedup();
    let all = [
        "copy",
        "create",
        "length",
        "link",
        "read",
        "remove",
        "rename",
        "reserve",
        "sync",
        "sync-directory",
        "sync-staging",
        "unnamed",
        "write",
    ];
    let linux = cfg!(target_os = "linux");
    let all: Vec<_> = (all.into_iter())
        .filter(|what| linux || !matches!(*what, "copy" | "unnamed"))
        .collect();
    assert_eq!(seen, all, "after {failed} faults");
    std::eprintln!("{failed} faults");
}

/// One conversion of a file to another one.
struct Case<'c> {
    entry: &'c Entry,
    profile: &'static Profile,
    way: Way,
    lacks: &'static [&'static str],
    scratch: Scratch,
    /// What the output is when nothing fails, by name.
    whole: Vec<(String, Vec<u8>)>,
}

impl<'c> Case<'c> {
    fn new(
        entry: &'c Entry,
        profile: &'static Profile,
        way: Way,
        lacks: &'static [&'static str],
    ) -> Self {
        let case = Self {
            entry,
            profile,
            way,
            lacks,
            scratch: Scratch::new(entry.spec.id),
            whole: Vec::new(),
        };
        fs::create_dir(case.scratch.0.join("in")).unwrap();
        fs::create_dir(case.scratch.0.join("out")).unwrap();
        let input = case.scratch.0.join("in").join(case.name());
        let source = case.source();
        let mut out = AtomicOutput::file(&input).unwrap().sync(false);
        let options = case.options().file_per_tensor(false).shards(None);
        let name = case.name();
        (Conversion::prepare(&source, entry, &options).unwrap())
            .write_to(&name, &mut out)
            .unwrap();
        case
    }

    fn name(&self) -> String {
        format!("t.{}", self.entry.spec.extensions[0])
    }

    fn out(&self) -> PathBuf {
        self.scratch.0.join("out")
    }

    /// A tensor that is gathered with others, and one that the kernel copies.
    fn source(&self) -> Archive {
        let mut dtypes = [DType::F32, DType::F64, DType::U8].into_iter();
        let dtype = dtypes
            .find(|&dtype| (self.profile.can.dtype)(dtype))
            .unwrap();
        let mut builder = ArchiveBuilder::new();
        let sizes = [3u64, 80_000, 5];
        let most = usize::try_from(self.profile.can.max_tensors).unwrap_or(usize::MAX);
        for (n, size) in sizes
            .into_iter()
            .skip(usize::from(most == 1))
            .take(most)
            .enumerate()
        {
            let bytes = usize::try_from(size).unwrap() * dtype.width().unwrap();
            let data: Vec<u8> = (0..bytes)
                .map(|at| u8::try_from(at % 61).unwrap())
                .collect();
            builder
                .push(format!("t{n}"), dtype, &[size], bytes::Bytes::from(data))
                .unwrap();
        }
        builder.finish()
    }

    fn options(&self) -> ConvertOptions {
        ConvertOptions::new()
            .version(Some(self.profile.version))
            .allow(crate::format::Effect::Dropped)
            .file_per_tensor(self.way == Way::Directory)
            .shards((self.way == Way::Shards).then_some(Shards::Parts(3)))
            // Faults are those of one thread.
            .work(crate::Work::new().threads(1))
    }

    /// Whether the output is a tree of files.
    fn is_tree(&self) -> bool {
        let codec = self.entry.codec;
        codec.is_some_and(|codec| codec.writes_tree(&self.name()))
    }

    /// The conversion, from opening its input to the visible output.
    fn convert(&self) -> Result<()> {
        let input = self.scratch.0.join("in").join(self.name());
        let archive = OpenOptions::new().open(input)?;
        let conversion = Conversion::prepare(&archive, self.entry, &self.options())?;
        let mut out = match self.way {
            Way::Directory => AtomicOutput::directory(self.out().join("all"))?,
            _ => AtomicOutput::file(self.out().join(self.name()))?.force(self.replaces()),
        };
        let name = match out.main_name() {
            "" => self.name(),
            name => name.to_owned(),
        };
        conversion.write_to(&name, &mut out).map(drop)
    }

    /// What is in the directory of the output, the files of a directory in it under both names.
    fn found(&self) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.out()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    found.push((format!("{}/", path.display()), Vec::new()));
                    folders.push(path);
                } else {
                    found.push((path.display().to_string(), fs::read(&path).unwrap()));
                }
            }
        }
        found.sort();
        found
    }

    fn replaces(&self) -> bool {
        matches!(self.way, Way::Replace | Way::Shards)
    }

    /// As it was before, with other contents under all the names that will be written.
    fn reset(&self) {
        fs::remove_dir_all(self.out()).unwrap();
        fs::create_dir(self.out()).unwrap();
        if self.replaces() {
            for (path, _) in &self.whole {
                fs::write(path, format!("what was in {path} before")).unwrap();
            }
        }
    }

    /// Lets the first operation fail, then the second, until there is none left. Returns how many there were.
    fn fail_everywhere(mut self, seen: &mut Vec<&'static str>) -> usize {
        self.reset();
        self.convert().unwrap();
        self.whole = self.found();
        self.reset();
        let before = self.found();
        assert_eq!(before.is_empty(), !self.replaces());
        for left in 0.. {
            self.reset();
            let faults = Faults::after(left, self.lacks);
            let result = self.convert();
            let Some(what) = faults.failed() else {
                result.unwrap();
                assert_eq!(self.found(), self.whole, "{self}");
                return left;
            };
            drop(faults);
            seen.push(what);
            let found = self.found();
            match result {
                // The file has its name, and only whether a power failure takes it away is not known.
                Err(error) if what == "sync-directory" => {
                    assert_eq!(found, self.whole, "{self}");
                    self.says_what_is_there(error.message());
                }
                Err(_) => assert_eq!(found, before, "{self}: {what}, operation {left}"),
                Ok(()) => self.done_all_the_same(what, left),
            }
            if found == before {
                self.convert().unwrap();
                assert_eq!(self.found(), self.whole, "{self}: after {what}");
            }
        }
        0
    }

    /// Who is told that something failed must not take it for undone.
    fn says_what_is_there(&self, message: &str) {
        let files = self.whole.iter().filter(|(name, _)| !name.ends_with('/'));
        let what = match self.way {
            Way::Directory => format!(
                "{} is whole and in its place",
                self.out().join("all").display()
            ),
            _ if self.is_tree() => format!(
                "{} is whole and in its place",
                self.out().join(self.name()).display()
            ),
            _ if self.whole.len() == 1 => format!("{} is whole and in its place", self.whole[0].0),
            _ => format!("all {} files are whole and in their places", files.count()),
        };
        let end = format!("; {what}, but a power failure may still undo that");
        assert!(message.ends_with(&end), "{self}: {message}");
    }

    /// There is another way without a name or a link, and what could not be removed goes with the next run.
    fn done_all_the_same(&self, what: &str, left: usize) {
        assert!(
            matches!(what, "unnamed" | "remove"),
            "{self}: {what}, operation {left}"
        );
        let found = self.found();
        let kept: Vec<_> = (found.iter())
            .filter(|(name, _)| !name.ends_with(SUFFIX))
            .cloned()
            .collect();
        assert_eq!(kept, self.whole, "{self}: {what}");
        if found != kept {
            assert_eq!(what, "remove");
            let left = Leftovers::list(&self.out());
            left.remove_abandoned(&self.name());
            for (name, _) in &self.whole {
                let name = Path::new(name).file_name().and_then(|name| name.to_str());
                left.remove_abandoned(name.unwrap());
            }
            assert_eq!(self.found(), self.whole, "{self}");
        }
    }
}

impl core::fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (id, way, lacks) = (self.entry.spec.id, self.way, self.lacks);
        write!(f, "{id} {way:?} without {lacks:?}")
    }
}

/// What cannot be put back is not lost either, and the error says where it is.
#[test]
fn an_old_file_that_cannot_be_put_back_is_kept() {
    let scratch = Scratch::new("kept");
    let names = ["a.zt", "b.zt", "c.zt"];
    for left in 0.. {
        for name in names {
            fs::write(scratch.0.join(name), format!("old {name}")).unwrap();
        }
        let faults = Faults::after(left, &["restore"]);
        let mut out = AtomicOutput::file(scratch.0.join("c.zt")).unwrap();
        out = out.force(true);
        let begun = names.iter().try_for_each(|name| {
            let mut sink = out.create(name, None)?;
            sink.write(b"new")
        });
        let result = begun.and_then(|()| out.commit());
        assert!(faults.failed().is_some(), "nothing had to be put back");
        drop(faults);
        // There is another way for some, and some fail before anything is replaced.
        let message = result.map_or_else(|error| error.message().to_owned(), |()| String::new());
        let Some((_, kept)) = message.split_once("what it was is in ") else {
            continue;
        };
        // The first has its new content and the second could not be named.
        assert!(message.contains("a.zt could not be put back"), "{message}");
        assert_eq!(fs::read(scratch.0.join("a.zt")).unwrap(), b"new");
        assert_eq!(fs::read(kept).unwrap(), b"old a.zt");
        assert_eq!(fs::read(scratch.0.join("b.zt")).unwrap(), b"old b.zt");
        assert_eq!(fs::read(scratch.0.join("c.zt")).unwrap(), b"old c.zt");
        return;
    }
}

/// A pipe under the name of something abandoned, or of a file to be read, is not waited for.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_neither_opened_nor_replaced() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let scratch = Scratch::new("pipe");
    let pipe = |name: &str| {
        let path = scratch.0.join(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        path
    };
    let abandoned = pipe(".a.zt.1-0.tenfold-partial");
    let mut out = AtomicOutput::file(scratch.0.join("a.zt")).unwrap();
    out.create("a.zt", None).unwrap().write(b"new").unwrap();
    out.commit().unwrap();
    assert!(abandoned.symlink_metadata().is_ok());

    let target = pipe("b.zt");
    for force in [false, true] {
        let mut out = AtomicOutput::file(&target).unwrap().force(force);
        let error = out.create("b.zt", None).map(drop).unwrap_err();
        assert!(error.message().contains("not replaced"), "{error}");
    }
    assert!(!target.symlink_metadata().unwrap().is_file());
    let error = FileSource::open(&target).map(drop).unwrap_err();
    assert!(error.message().contains("not a regular file"), "{error}");
}
