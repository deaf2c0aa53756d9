//! A source whose content changes while it is read, without becoming longer or shorter.
//!
//! Without checksums nobody can notice what was read before and what after. What is promised: no panic, an output that is
//! well-formed or none, and with `check` one that is wholly as the source was at some moment.

// A test may panic and print.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod support;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use support::{
    Case, InMemory, Kind, cases, file_name, first_choices, options_for, write_to_memory,
};
use tenfold::format::{Entry, Profile};
use tenfold::io::Source;
use tenfold::model::SourceId;
use tenfold::{Archive, Bytes, OpenOptions, Result};

/// Is one content for some reads, and another one afterwards.
struct Changing {
    before: Bytes,
    after: Bytes,
    reads: AtomicUsize,
    change_at: usize,
}

impl Source for Changing {
    fn len(&self) -> u64 {
        self.before.len() as u64
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let now = if self.reads.fetch_add(1, SeqCst) < self.change_at {
            &self.before
        } else {
            &self.after
        };
        now.read(range)
    }
}

/// The file with other elements: every byte of every tensor is another one, and everything else is the same.
fn other_elements(file: &InMemory, archive: &Archive) -> Bytes {
    let mut bytes = file.bytes.to_vec();
    let manifest = archive.manifest();
    let parts = manifest.tensors.iter().flat_map(|tensor| &tensor.parts);
    let stored = parts.filter_map(|part| part.payload.stored());
    for (_, range) in stored.filter(|(source, _)| *source == SourceId::MAIN) {
        let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        for byte in bytes.get_mut(range).unwrap_or_default() {
            *byte ^= 1;
        }
    }
    bytes.into()
}

/// What became of the conversions: an error, an output of one content, an output of both.
#[derive(Debug, Default)]
struct Tally {
    noticed: usize,
    whole: usize,
    unnoticed: usize,
}

/// Converts a file that changes at its n-th read, for every n until there is no such read.
fn convert_changing(case: &Case, (entry, profile): (Entry, &Profile), tally: &mut Tally) {
    let Some(file) = case.file().filter(|file| file.bytes.len() <= 4096) else {
        return;
    };
    let Ok(archive) = file.open() else { return };
    let after = other_elements(&file, &archive);
    for check in [true, false] {
        let convert = |source, verify| convert(&file, source, (entry, profile), (check, verify));
        // The checksums are those of the content before, so they are not asked about the other.
        let whole =
            [file.bytes.clone(), after.clone()].map(|bytes| convert(Arc::new(bytes), false).ok());
        for change_at in 0.. {
            let source = Arc::new(Changing {
                before: file.bytes.clone(),
                after: after.clone(),
                reads: AtomicUsize::new(0),
                change_at,
            });
            match convert(source.clone(), true) {
                Ok(written) if whole.contains(&Some(written.clone())) => tally.whole += 1,
                Ok(written) => {
                    let title = case.title();
                    let id = entry.spec.id;
                    assert!(!check, "{title} to {id}, changed at read {change_at}: torn");
                    // Nobody could notice, but it is a file.
                    let written = InMemory::written(written, &file_name(&entry));
                    written.open().expect("what was written opens");
                    tally.unnoticed += 1;
                }
                Err(_) => tally.noticed += 1,
            }
            if source.reads.load(SeqCst) <= change_at {
                break;
            }
        }
    }
}

fn convert(
    file: &InMemory,
    source: Arc<dyn Source>,
    (entry, profile): (Entry, &Profile),
    (check, verify): (bool, bool),
) -> Result<BTreeMap<String, Vec<u8>>> {
    let archive = file.open_as(source, &OpenOptions::new())?;
    let options = options_for(profile).check(check).verify(verify);
    write_to_memory(&archive, &entry, &options)
}

#[test]
fn a_source_that_changes_while_it_is_read_gives_no_torn_output() {
    let mut tally = Tally::default();
    let targets = first_choices();
    for (n, case) in cases(Kind::Valid).iter().enumerate() {
        // Every file to one format in turn, so that every format is a source and a target of some.
        convert_changing(case, targets[n % targets.len()], &mut tally);
    }
    println!("{tally:?}");
    assert!(
        tally.noticed > 100 && tally.whole > 100 && tally.unnoticed > 100,
        "{tally:?}"
    );
}

#[test]
fn opening_a_source_that_changes_into_anything_is_an_answer_or_an_error() {
    for case in cases(Kind::Valid) {
        let Some(file) = case.file().filter(|file| file.bytes.len() <= 4096) else {
            continue;
        };
        for change_at in 0..8 {
            let source = Changing {
                before: file.bytes.clone(),
                after: file
                    .bytes
                    .iter()
                    .map(|byte| !byte)
                    .collect::<Vec<_>>()
                    .into(),
                reads: AtomicUsize::new(0),
                change_at,
            };
            if let Ok(archive) = file.open_as(Arc::new(source), &OpenOptions::new()) {
                let _ = archive.load_metadata();
                let _ = support::verify(&archive, 1);
            }
        }
    }
}
