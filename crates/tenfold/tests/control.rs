//! Work that is watched, stopped and done in steps.

// A test may panic; sizes are small.
#![allow(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod support;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use support::{Kind, cases, file_name, first_choices, options_for};
use tempfile::TempDir;
use tenfold::io::{AtomicOutput, MemoryOutput, Source};
use tenfold::model::DType;
use tenfold::ops::{self, DiffOptions, DigestOptions, StatsOptions, VerifyOptions};
use tenfold::{Archive, ArchiveBuilder, Bytes, Control, ErrorKind, Result, Work};

/// Numbers that are nowhere, of which some reads stop the work.
#[derive(Default)]
struct Stopping {
    len: u64,
    stop_at: usize,
    control: Arc<Control>,
    reads: AtomicUsize,
    longest: AtomicU64,
}

impl Source for Stopping {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let len = range.end - range.start;
        self.longest.fetch_max(len, Relaxed);
        if self.reads.fetch_add(1, Relaxed) == self.stop_at {
            self.control.cancel();
        }
        Ok(vec![1; len as usize].into())
    }
}

const LEN: u64 = 64 << 20;

fn on(threads: usize, control: &Arc<Control>) -> Work {
    Work::new().threads(threads).control(control.clone())
}

/// What a slow source is asked for after a cancel, on so many threads: of each the read that it was in, and no other.
#[track_caller]
fn is_stopped(what: &str, threads: usize, work: impl FnOnce(&Archive, &Arc<Control>) -> ErrorKind) {
    is_stopped_of(DType::F32, what, threads, work);
}

#[track_caller]
fn is_stopped_of(
    dtype: DType,
    what: &str,
    threads: usize,
    work: impl FnOnce(&Archive, &Arc<Control>) -> ErrorKind,
) {
    let control = Arc::new(Control::default());
    let source = Arc::new(Stopping {
        len: LEN,
        stop_at: 5,
        control: control.clone(),
        ..Stopping::default()
    });
    let mut builder = ArchiveBuilder::new();
    let width = dtype.width().unwrap() as u64;
    builder
        .push("t", dtype, &[1024, LEN / 1024 / width], source.clone())
        .unwrap();
    let archive = builder.finish();
    assert_eq!(work(&archive, &control), ErrorKind::Canceled, "{what}");
    let (reads, longest) = (source.reads.load(Relaxed), source.longest.load(Relaxed));
    assert!(reads <= 5 + threads, "{what}: {reads} reads");
    assert!(longest <= 1 << 20, "{what}: {longest} bytes at once");
}

#[test]
fn a_conversion_is_stopped_between_two_reads() {
    let mut choices = first_choices();
    choices.retain(|(_, profile)| (profile.can.dtype)(DType::F32));
    assert!(choices.len() > 2);
    for (entry, profile) in choices {
        for threads in [1, 3] {
            for cast in [false, true] {
                for to_file in [false, true] {
                    let what = format!("{} {threads} {cast} {to_file}", entry.spec.id);
                    is_stopped(&what, threads, |archive, control| {
                        let archive = if cast {
                            let other = [DType::F64, DType::F16];
                            let other = other.into_iter().find(|dtype| (profile.can.dtype)(*dtype));
                            ops::cast(archive, |_| other).unwrap()
                        } else {
                            archive.clone()
                        };
                        let options = options_for(profile).work(on(threads, control));
                        let conversion =
                            ops::Conversion::prepare(&archive, &entry, &options).unwrap();
                        let dir = TempDir::new().unwrap();
                        let name = file_name(&entry);
                        let written = if to_file {
                            let mut out = AtomicOutput::file(dir.path().join(&name)).unwrap();
                            conversion.write_to(&name, &mut out)
                        } else {
                            conversion.write_to(&name, &mut MemoryOutput::new())
                        };
                        written.unwrap_err().kind()
                    });
                }
            }
        }
    }
}

#[test]
fn figures_and_comparisons_are_stopped_between_two_reads() {
    for threads in [1, 3] {
        is_stopped("stats", threads, |archive, control| {
            let options = StatsOptions::new().work(on(threads, control));
            ops::stats(archive, &options).unwrap_err().kind()
        });
        is_stopped("diff", threads, |archive, control| {
            let options = DiffOptions::new().work(on(threads, control));
            let error = ops::diff(archive, archive, &options).unwrap_err();
            error.kind()
        });
        is_stopped("digest", threads, |archive, control| {
            let options = DigestOptions::new().work(on(threads, control));
            ops::digest(archive, &options).unwrap_err().kind()
        });
        // Bytes of truth values are looked at, also where there is no checksum.
        is_stopped_of(DType::BOOL, "verify", threads, |archive, control| {
            let options = VerifyOptions::new().work(on(threads, control));
            ops::verify(archive, &options).unwrap_err().kind()
        });
        is_stopped("steps", 1, |archive, control| {
            let options = StatsOptions::new().work(on(1, control));
            let mut steps = ops::StatsSteps::new(archive, &options);
            loop {
                match steps.step(1) {
                    Ok(progress) => assert!(!progress.is_finished),
                    Err(error) => return error.kind(),
                }
            }
        });
    }
}

/// What is counted never passes what was expected, and reaches it where everything can be read.
#[track_caller]
fn is_counted(control: &Control, is_whole: bool, what: &str) {
    let (done, total) = (control.done(), control.total());
    assert!(done <= total, "{what}: {done} of {total}");
    assert!(done == total || !is_whole, "{what}: {done} of {total}");
}

/// Does steps as small as they can be, and says how many there were.
fn step_to_the_end(control: &Control, mut step: impl FnMut() -> Result<ops::Progress>) -> usize {
    for steps in 1.. {
        let before = control.done();
        let progress = step().unwrap();
        assert!(progress.done >= before && progress.done <= progress.total);
        if progress.is_finished {
            return steps;
        }
    }
    unreachable!()
}

#[test]
fn steps_come_to_what_the_blocking_calls_do_for_every_fixture() {
    let (mut files, mut steps) = (0, 0);
    for case in cases(Kind::Valid) {
        let Ok(archive) = case.open() else { continue };
        files += 1;
        let title = case.title();
        let control = Arc::new(Control::new());
        let options = StatsOptions::new().bins(Some(5)).work(on(1, &control));
        let mut stepped = ops::StatsSteps::new(&archive, &options);
        steps += step_to_the_end(&control, || stepped.step(1));
        is_counted(&control, false, &title);
        let wanted = ops::stats(&archive, &StatsOptions::new().bins(Some(5))).unwrap();
        assert_eq!(
            format!("{:?}", stepped.finish().unwrap()),
            format!("{wanted:?}"),
            "{title}"
        );

        let control = Arc::new(Control::new());
        let mut stepped =
            ops::VerifySteps::new(&archive, &VerifyOptions::new().work(on(1, &control)));
        steps += step_to_the_end(&control, || stepped.step(1));
        is_counted(&control, case.list("tensors").is_empty(), &title);
        let wanted = ops::verify(&archive, &VerifyOptions::new()).unwrap();
        assert_eq!(
            format!("{:?}", stepped.finish().unwrap()),
            format!("{wanted:?}"),
            "{title}"
        );
    }
    assert!(files > 100 && steps > 2 * files, "{steps} steps of {files}");
}

#[test]
fn comparisons_in_steps_come_to_what_the_blocking_call_does() {
    let mut last: Option<(&str, Archive)> = None;
    let mut compared = 0;
    for case in cases(Kind::Valid) {
        let Ok(archive) = case.open() else { continue };
        // With itself, and with the one before: most of their tensors have other names, values or types.
        let others = last.take().filter(|(format, _)| *format == case.format);
        for other in [Some(archive.clone()), others.map(|(_, other)| other)]
            .into_iter()
            .flatten()
        {
            let control = Arc::new(Control::new());
            let options = DiffOptions::new().work(on(1, &control));
            let mut stepped = ops::DiffSteps::new(&other, &archive, &options);
            step_to_the_end(&control, || stepped.step(1));
            is_counted(&control, false, &case.title());
            let wanted = ops::diff(&other, &archive, &DiffOptions::new());
            assert_eq!(
                format!("{:?}", stepped.finish()),
                format!("{wanted:?}"),
                "{}",
                case.title()
            );
            compared += 1;
        }
        last = Some((case.format, archive));
    }
    assert!(compared > 200, "{compared}");
}

/// Large enough for several pieces of each tensor.
#[test]
fn a_step_is_a_piece_and_not_a_tensor() {
    let source = Arc::new(Stopping {
        len: LEN,
        stop_at: usize::MAX,
        ..Stopping::default()
    });
    let mut builder = ArchiveBuilder::new();
    let shape = [1024, LEN / 1024];
    builder.push("t", DType::BOOL, &shape, source).unwrap();
    let archive = builder.finish();
    let control = Arc::new(Control::new());
    let mut stats = ops::StatsSteps::new(&archive, &StatsOptions::new().work(on(1, &control)));
    let options = DiffOptions::new().work(on(1, &control));
    let mut diff = ops::DiffSteps::new(&archive, &archive, &options);
    let mut verify = ops::VerifySteps::new(&archive, &VerifyOptions::new().work(on(1, &control)));
    for steps in [
        step_to_the_end(&control, || stats.step(1)),
        step_to_the_end(&control, || diff.step(1)),
        step_to_the_end(&control, || verify.step(1)),
    ] {
        assert!(steps >= 16, "{steps}");
    }
    // What is left can be done at once.
    let mut stats = ops::StatsSteps::new(&archive, &StatsOptions::new());
    let begun = stats.step(5 << 20).unwrap();
    assert!(!begun.is_finished && begun.done >= 5 << 20 && begun.done < 16 << 20);
    assert_eq!(stats.finish().unwrap().total.numbers, LEN);
}
