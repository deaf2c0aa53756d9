//! Operations are alike: they can be stopped, their options can be copied, and their results say what they did.

// A test may panic and print.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use support::{file_name, is_impossible, options_for, profiles};
use tenfold::io::{MemoryOutput, Output, Sink, Source};
use tenfold::model::DType;
use tenfold::ops::{
    Conversion, DiffOptions, DigestOptions, PlannedContent, StatsOptions, VerifyOptions,
};
use tenfold::{Archive, ArchiveBuilder, Bytes, Control, ErrorKind, Result, Work, ops};

/// Two tensors of a type that a version of a format holds.
fn archive(dtype: DType, tensors: usize) -> Archive {
    let mut builder = ArchiveBuilder::new();
    for n in 0..tensors {
        let bytes = vec![1; 100 * dtype.width().unwrap()];
        let name = format!("t{n}");
        builder
            .push(name, dtype, &[100], Bytes::from(bytes))
            .unwrap();
    }
    builder.finish()
}

/// An operation, whatever it gives.
type Operation<'o> = (&'static str, Box<dyn Fn(Work) -> Result<()> + 'o>);

fn operations(archive: &Archive) -> [Operation<'_>; 6] {
    let verify = |work| VerifyOptions::new().work(work);
    [
        (
            "verify",
            Box::new(move |work| ops::verify(archive, &verify(work)).map(drop)),
        ),
        (
            "numbers",
            Box::new(move |work| ops::check_numbers(archive, &verify(work)).map(drop)),
        ),
        (
            "checksums",
            Box::new(move |work| ops::compare_checksums(archive, &verify(work))),
        ),
        (
            "digest",
            Box::new(|work| ops::digest(archive, &DigestOptions::new().work(work)).map(drop)),
        ),
        (
            "stats",
            Box::new(|work| ops::stats(archive, &StatsOptions::new().work(work)).map(drop)),
        ),
        (
            "diff",
            Box::new(|work| ops::diff(archive, archive, &DiffOptions::new().work(work)).map(drop)),
        ),
    ]
}

#[test]
fn a_cancel_is_the_error_of_the_operation() {
    let archive = archive(DType::F32, 2);
    for (name, operation) in operations(&archive) {
        for threads in [1, 3] {
            let control = Arc::new(Control::new());
            let work = Work::new().threads(threads).control(control.clone());
            control.cancel();
            // What is made after the example of work that was stopped is not stopped.
            operation(work.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
            let error = operation(work).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Canceled, "{name}: {error}");
        }
    }
}

#[test]
fn as_much_is_done_as_was_said() {
    let archive = archive(DType::F32, 2);
    for (name, operation) in operations(&archive) {
        let control = Arc::new(Control::new());
        operation(Work::new().control(control.clone())).unwrap();
        assert_eq!(control.done(), control.total(), "{name}");
    }
}

#[test]
fn a_tensor_that_was_renamed_is_not_looked_for_after_a_cancel() {
    let (a, b) = (archive(DType::F32, 1), archive(DType::F32, 1));
    let b = ops::rename(&b, |name| Some(format!("new.{name}"))).unwrap();
    let control = Arc::new(Control::new());
    control.cancel();
    let options = DiffOptions::new()
        .ignore_metadata(true)
        .work(Work::new().control(control));
    let error = ops::diff(&a, &b, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Canceled);
}

/// Takes files as they come, and cannot be read.
#[derive(Default)]
struct Stream(BTreeMap<String, Vec<u8>>);

struct StreamSink<'s>(&'s mut Vec<u8>);

impl Sink for StreamSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

impl Output for Stream {
    fn create(&mut self, name: &str, _: Option<u64>) -> Result<Box<dyn Sink + '_>> {
        Ok(Box::new(StreamSink(
            self.0.entry(name.to_owned()).or_default(),
        )))
    }

    fn written(&self, _: &str) -> Result<Option<Arc<dyn Source>>> {
        Ok(None)
    }

    fn commit(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The files of a report, with the lengths of what arrived.
fn arrived(files: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, u64> {
    let files = files.iter();
    files
        .map(|(name, bytes)| (name.clone(), bytes.len() as u64))
        .collect()
}

#[test]
fn reports_and_plans_say_how_long_files_are() {
    let mut planned_lengths = 0;
    for (entry, profile) in profiles() {
        let title = format!("{} {}", entry.spec.id, profile.version);
        let tensors = usize::try_from(profile.can.max_tensors.min(2)).unwrap();
        let dtype = (DType::all())
            .find(|&dtype| {
                dtype.width().is_some()
                    && !is_impossible(&archive(dtype, tensors), &entry, &options_for(profile))
            })
            .unwrap_or_else(|| panic!("{title} holds nothing"));
        let conversion = || {
            Conversion::prepare(&archive(dtype, tensors), &entry, &options_for(profile)).unwrap()
        };
        let name = file_name(&entry);
        let plan = conversion().plan(&name).unwrap();

        let mut stream = Stream::default();
        let report = conversion().write_to(&name, &mut stream).unwrap();
        assert_eq!(report.files[0].0, plan[0].name, "{title}");
        let streamed = report.files.into_iter().collect::<BTreeMap<_, _>>();
        assert_eq!(streamed, arrived(&stream.0), "{title}");

        let mut memory = MemoryOutput::new();
        let report = conversion().write_to(&name, &mut memory).unwrap();
        let kept: BTreeMap<_, _> = report.files.into_iter().collect();
        let files = memory.into_files();
        assert_eq!(kept, arrived(&files), "{title}");

        for file in &plan {
            let written = &files[&file.name];
            if let Some(len) = file.len {
                planned_lengths += 1;
                assert_eq!(len, written.len() as u64, "{title}");
            }
            for segment in &file.segments {
                if let (Some(range), PlannedContent::Tensor { name, .. }) =
                    (&segment.range, &segment.content)
                {
                    assert!(
                        ["t0", "t1"].contains(&name.as_str()) || tensors == 1,
                        "{title}: {name}"
                    );
                    let [start, end] =
                        [range.start, range.end].map(|at| usize::try_from(at).unwrap());
                    let ones = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 1);
                    assert!(
                        written.get(start..end).is_some_and(ones),
                        "{title}: {segment:?}"
                    );
                }
            }
        }
    }
    assert!(planned_lengths > 5, "{planned_lengths}");
}
