//! Work for many machines comes to what one process does: every pair of formats whose layout is known, cut into any number of
//! items, in any order, with repeats; reports; what is refused.

// A test may panic.
// Inputs of the tests, not outputs.
#![allow(clippy::disallowed_methods)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

#[cfg(feature = "remote")]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the server has more than these tests use"
)]
#[path = "support/server.rs"]
mod server;
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::random::Rng;
use support::{Case, Kind, cases, first_choices};
use tenfold::format::{Entry, Profile, Registry};
use tenfold::ops::scale::{
    self, Check, Done, JoinOptions, LeftOutFor, Options, Plan, Planning, Report, RunOptions, Site,
    Verb,
};
use tenfold::ops::{self, Conversion, ConvertOptions, DigestOptions, StatsOptions, VerifyOptions};
use tenfold::{Archive, ErrorKind};

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// A file with enough in it that cuts fall inside of tensors.
fn model(directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(name);
    let mut builder = Archive::builder();
    for n in 0..20u16 {
        let values: Vec<f32> = (0..997 + 13 * u32::from(n))
            .map(|i| (i as f32).sin() * f32::from(n + 1))
            .collect();
        builder
            .tensor(format!("layer.{n}.weight"), [values.len() as u64], values)
            .unwrap();
    }
    builder.meta("license", "mit");
    let entry = Registry::standard();
    let entry = entry.by_extension(name).unwrap();
    Conversion::prepare(&builder.finish(), entry, &ConvertOptions::new())
        .unwrap()
        .write_file(&path)
        .unwrap();
    path
}

fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}

fn run(plan: &Plan, item: usize, site: &Site) -> tenfold::Result<Done> {
    scale::run(plan, item, &RunOptions::new(), site)
}

fn again(plan: &Plan, item: usize, site: &Site) -> tenfold::Result<Done> {
    scale::run(plan, item, &RunOptions::new().again(true), site)
}

/// Every item in an order of chance, some of them twice.
fn run_all(plan: &Plan, rng: &mut Rng) {
    let site = Site::new();
    let mut left: Vec<_> = (0..plan.items.len()).collect();
    while !left.is_empty() {
        let item = left.swap_remove(rng.below(left.len()));
        assert!(matches!(run(plan, item, &site), Ok(Done::Now { .. })));
        if rng.below(3) == 0 {
            assert!(matches!(run(plan, item, &site), Ok(Done::Before { .. })));
        }
        if rng.below(5) == 0 {
            again(plan, item, &site).unwrap();
        }
    }
}

fn checked() -> JoinOptions {
    JoinOptions::new().check(Check::Read)
}

/// Converts with items and in one process, and compares the bytes; false where the layout is not known beforehand.
fn converts_alike(
    case: &Case,
    entry: &Entry,
    profile: &'static Profile,
    items: usize,
    seed: u64,
) -> bool {
    let Ok(archive) = Archive::open(&case.path) else {
        return false;
    };
    let extension = entry.spec.extensions.first().unwrap_or(&"bin");
    let one = tempfile::tempdir().unwrap();
    let many = tempfile::tempdir().unwrap();
    let name = format!("out.{extension}");
    let options = ConvertOptions::new().version(Some(profile.version));
    let Ok(conversion) = Conversion::prepare(&archive, entry, &options) else {
        return false;
    };
    if conversion.write_file(one.path().join(&name)).is_err() {
        return false;
    }
    let options = Options {
        to: Some(entry.spec.id.into()),
        version: Some(profile.version.into()),
        ..Options::default()
    };
    let planning = Planning::new(Verb::Convert, [text(&case.path)])
        .output(text(&many.path().join(&name)))
        .options(options)
        .items(items)
        .multiple(64);
    let plan = match scale::plan(&planning, &Site::new()) {
        Ok(planned) => planned.plan,
        Err(error) if ["plan.serial", "plan.tree"].contains(&error.rule()) => return false,
        Err(error) => panic!("{} to {}: {error}", case.title(), entry.spec.id),
    };
    let plan = Plan::from_json(&plan.to_json().unwrap()).unwrap();
    assert!(plan.items.len() <= items.max(1));
    run_all(&plan, &mut Rng::new(seed));
    assert!(files(many.path()).is_empty(), "nothing is visible before");
    scale::join(&plan, &checked(), &Site::new())
        .unwrap_or_else(|error| panic!("{} to {}: {error}", case.title(), entry.spec.id));
    assert!(
        files(one.path()) == files(many.path()),
        "{} to {} in {items} items",
        case.title(),
        entry.spec.id
    );
    true
}

#[test]
fn every_pair_of_formats_is_written_alike_in_any_number_of_items() {
    let mut written = 0;
    let mut targets: Vec<&str> = Vec::new();
    let mut sources: Vec<&str> = Vec::new();
    for (n, case) in cases(Kind::Valid).iter().enumerate() {
        // Of every format one that can be written, and some more: all of them into all would take minutes.
        if case.is_structural() || (n % 17 != 0 && sources.contains(&case.format)) {
            continue;
        }
        for (m, (entry, profile)) in first_choices().into_iter().enumerate() {
            let items = [1, 2, 7, 64][(n / 5 + m) % 4];
            if converts_alike(case, &entry, profile, items, (n * 31 + m) as u64) {
                written += 1;
                if !sources.contains(&case.format) {
                    sources.push(case.format);
                }
                if !targets.contains(&entry.spec.id) {
                    targets.push(entry.spec.id);
                }
            }
        }
    }
    println!("{written} pairs, from {sources:?} into {targets:?}");
    assert!(written > 100, "only {written} pairs");
    for entry in support::handled() {
        let id = entry.spec.id;
        assert!(sources.contains(&id), "nothing was written from {id}");
    }
    for id in ["safetensors", "gguf", "ztensor", "npy", "mag"] {
        assert!(targets.contains(&id), "nothing was written into {id}");
    }
}

#[test]
fn cuts_fall_inside_of_tensors_of_every_format_that_holds_a_model() {
    let directory = tempfile::tempdir().unwrap();
    let input = model(directory.path(), "model.safetensors");
    let archive = Archive::open(&input).unwrap();
    let mut written = 0;
    for (entry, profile) in first_choices() {
        let extension = entry.spec.extensions.first().unwrap_or(&"bin");
        let one = directory
            .path()
            .join(format!("one.{}.{extension}", entry.spec.id));
        let options = ConvertOptions::new().version(Some(profile.version));
        let Ok(conversion) = Conversion::prepare(&archive, &entry, &options) else {
            continue;
        };
        if conversion.write_file(&one).is_err() {
            continue;
        }
        for items in [1, 2, 7, 64] {
            let many = tempfile::tempdir_in(directory.path()).unwrap();
            // The same name: some formats have it inside.
            let out = many.path().join(one.file_name().unwrap());
            let options = Options {
                to: Some(entry.spec.id.into()),
                version: Some(profile.version.into()),
                ..Options::default()
            };
            let planning = Planning::new(Verb::Convert, [text(&input)])
                .output(text(&out))
                .options(options)
                .items(items)
                .multiple(1000);
            let plan = match scale::plan(&planning, &Site::new()) {
                Ok(planned) => planned.plan,
                Err(error) if ["plan.serial", "plan.tree"].contains(&error.rule()) => break,
                Err(error) => panic!("{}: {error}", entry.spec.id),
            };
            run_all(&plan, &mut Rng::new(items as u64));
            scale::join(&plan, &checked(), &Site::new())
                .unwrap_or_else(|error| panic!("{}: {error}", entry.spec.id));
            assert!(
                fs::read(&one).unwrap() == fs::read(&out).unwrap(),
                "{} in {items} items",
                entry.spec.id
            );
            written += 1;
        }
    }
    assert!(written >= 20, "only {written}");
}

/// What one process writes with options, and what items of every count do: the same.
fn is_alike_with(options: &Options, inputs: &[PathBuf], name: &str, one: impl Fn(&Path)) {
    let directory = tempfile::tempdir().unwrap();
    let expected = directory.path().join(name);
    one(&expected);
    for size in [Some(2), Some(7), None] {
        let many = tempfile::tempdir_in(directory.path()).unwrap();
        let out = many.path().join(name);
        let planning = Planning::new(Verb::Convert, inputs.iter().map(|path| text(path)))
            .output(text(&out))
            .options(options.clone())
            .multiple(512);
        let planning = match size {
            Some(items) => planning.items(items),
            None => planning.item_size(5000),
        };
        let plan = scale::plan(&planning, &Site::new()).unwrap().plan;
        assert!(plan.items.len() > 1);
        run_all(&plan, &mut Rng::new(3));
        scale::join(&plan, &checked(), &Site::new()).unwrap();
        assert!(
            fs::read(&expected).unwrap() == fs::read(&out).unwrap(),
            "{options:?}"
        );
    }
}

#[test]
fn casts_numbers_and_several_inputs_are_written_alike() {
    let directory = tempfile::tempdir().unwrap();
    let input = model(directory.path(), "model.safetensors");
    let gguf = Registry::standard();
    let gguf = gguf.get("gguf").unwrap();
    let write = |archive: &Archive, options: &ConvertOptions, path: &Path| {
        let conversion = Conversion::prepare(archive, gguf, options).unwrap();
        conversion.write_file(path).unwrap();
    };
    let options = Options {
        cast: vec![("f16".into(), None)],
        allow: Some("changed".into()),
        ..Options::default()
    };
    let lossy = ConvertOptions::new().allow(tenfold::format::Effect::Changed);
    is_alike_with(&options, std::slice::from_ref(&input), "out.gguf", |path| {
        let archive = Archive::open(&input).unwrap();
        let archive = ops::cast(&archive, |_| Some(tenfold::model::DType::F16)).unwrap();
        write(&archive, &lossy, path);
    });
    let more = directory.path().join("more.npz");
    tenfold::save(&more, [("more", vec![1.5f32; 5000])]).unwrap();
    let inputs = [input.clone(), more.clone()];
    is_alike_with(&Options::default(), &inputs, "out.gguf", |path| {
        let archives = inputs.iter().map(|path| Archive::open(path).unwrap());
        let archives: Vec<_> = archives.collect();
        let merged = ops::merge(&archives, ops::Conflicts::FirstMetadata).unwrap();
        write(&merged.archive, &ConvertOptions::new(), path);
    });
}

/// A plan for a model, and what it is planned for.
struct Planned {
    directory: tempfile::TempDir,
    input: PathBuf,
    output: PathBuf,
    plan: Plan,
}

fn planned(items: usize) -> Planned {
    let directory = tempfile::tempdir().unwrap();
    let input = model(directory.path(), "model.safetensors");
    let output = directory.path().join("out.gguf");
    let planning = Planning::new(Verb::Convert, [text(&input)])
        .output(text(&output))
        .items(items)
        .multiple(512);
    let plan = scale::plan(&planning, &Site::new()).unwrap().plan;
    Planned {
        directory,
        input,
        output,
        plan,
    }
}

#[test]
fn an_unfinished_plan_says_what_is_missing_and_can_be_finished() {
    let Planned {
        output,
        plan,
        directory: _kept,
        ..
    } = planned(8);
    let site = Site::new();
    for item in [0, 1, 2, 4, 5, 6] {
        run(&plan, item, &site).unwrap();
    }
    assert_eq!(
        scale::status(&plan, &site).unwrap().missing_in_words(),
        "3,7"
    );
    let Report::Unfinished(status) = scale::join(&plan, &JoinOptions::new(), &site).unwrap() else {
        panic!()
    };
    assert_eq!(status.missing, [3, 7]);
    assert!(!output.exists());
    for item in [3, 7] {
        run(&plan, item, &site).unwrap();
    }
    scale::join(&plan, &JoinOptions::new(), &site).unwrap();
    assert!(output.exists());
    assert_eq!(run(&plan, 3, &site).unwrap(), Done::Joined);
    assert!(scale::status(&plan, &site).unwrap().is_joined);
    let error = scale::join(&plan, &JoinOptions::new(), &site).unwrap_err();
    assert_eq!(error.rule(), "plan.joined");
}

#[test]
fn what_is_there_is_not_replaced() {
    let Planned {
        output,
        plan,
        directory: _kept,
        ..
    } = planned(3);
    let site = Site::new();
    for item in 0..3 {
        run(&plan, item, &site).unwrap();
    }
    fs::write(&output, "mine").unwrap();
    let error = scale::join(&plan, &JoinOptions::new(), &site).unwrap_err();
    assert_eq!(error.rule(), "plan.exists");
    assert_eq!(fs::read(&output).unwrap(), b"mine");
    let options = checked().force(true);
    scale::join(&plan, &options, &site).unwrap();
    assert!(Archive::open(&output).is_ok());
}

#[test]
fn a_changed_input_is_refused_and_nothing_written() {
    let Planned {
        input,
        output,
        plan,
        directory: _kept,
    } = planned(3);
    let site = Site::new();
    run(&plan, 0, &site).unwrap();
    let mut bytes = fs::read(&input).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&input, bytes).unwrap();
    let error = run(&plan, 1, &site).unwrap_err();
    assert_eq!(
        (error.kind(), error.rule()),
        (ErrorKind::Mismatch, "plan.changed")
    );
    assert!(!output.exists());
    assert_eq!(scale::status(&plan, &site).unwrap().missing, [1, 2]);
}

#[test]
fn an_only_input_that_is_something_else_now_is_refused() {
    let Planned {
        input, directory, ..
    } = planned(1);
    let site = Site::new();
    let planning = Planning::new(Verb::Digest, [text(&input)])
        .items(2)
        .state(text(&directory.path().join("state")));
    let plan = scale::plan(&planning, &site).unwrap().plan;
    fs::write(&input, "no tensors").unwrap();
    assert_eq!(run(&plan, 0, &site).unwrap_err().rule(), "plan.changed");
}

#[test]
fn another_layout_version_or_text_is_refused() {
    let Planned {
        plan,
        directory: _kept,
        ..
    } = planned(2);
    let site = Site::new();
    let mut other = plan.clone();
    other.output.as_mut().unwrap().layout = Some("0".repeat(64));
    let error = run(&other, 0, &site).unwrap_err();
    assert_eq!(error.rule(), "plan.layout");
    let json = plan.to_json().unwrap();
    let edited = json.replace("\"range\":[0,", "\"range\":[8,");
    assert_eq!(Plan::from_json(&edited).unwrap_err().rule(), "plan.damaged");
    let version = env!("CARGO_PKG_VERSION");
    let older = json.replace(
        &format!("\"tenfold\":\"{version}\""),
        "\"tenfold\":\"0.0.1\"",
    );
    assert_eq!(Plan::from_json(&older).unwrap_err().rule(), "plan.version");
    assert_eq!(
        run(&plan, 2, &site).unwrap_err().message(),
        "there is no item 2: items are 0-1"
    );
}

#[test]
fn a_foreign_receipt_does_not_count_and_damaged_data_is_found() {
    let Planned {
        directory, plan, ..
    } = planned(4);
    let site = Site::new();
    for item in 0..4 {
        run(&plan, item, &site).unwrap();
    }
    let state = PathBuf::from(&plan.state);
    let receipt = state.join("receipts/000002.json");
    let own = fs::read_to_string(&receipt).unwrap();
    fs::write(&receipt, own.replace(&plan.id, &"f".repeat(64))).unwrap();
    assert_eq!(scale::status(&plan, &site).unwrap().missing, [2]);
    fs::write(&receipt, own).unwrap();
    let data = state.join("data");
    let mut bytes = fs::read(&data).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&data, bytes).unwrap();
    let error = scale::join(&plan, &checked(), &site).unwrap_err();
    assert_eq!(error.rule(), "plan.damaged-item");
    let item = (0..4)
        .find(|item| error.message().contains(&format!("item {item} wrote")))
        .unwrap();
    again(&plan, item, &site).unwrap();
    scale::join(&plan, &checked(), &site).unwrap();
    drop(directory);
}

#[test]
fn shards_appear_together_with_their_index() {
    let directory = tempfile::tempdir().unwrap();
    let input = model(directory.path(), "model.gguf");
    let archive = Archive::open(&input).unwrap();
    let options = ConvertOptions::new().shards(Some(ops::Shards::Size(20_000)));
    let registry = Registry::standard();
    let one = directory.path().join("one");
    fs::create_dir(&one).unwrap();
    Conversion::prepare(&archive, registry.get("safetensors").unwrap(), &options)
        .unwrap()
        .write_file(one.join("model.safetensors"))
        .unwrap();
    for items in [1, 3, 64] {
        let many = directory.path().join(format!("many{items}"));
        fs::create_dir(&many).unwrap();
        let options = Options {
            shard_size: Some(20_000),
            ..Options::default()
        };
        let planning = Planning::new(Verb::Convert, [text(&input)])
            .output(text(&many.join("model.safetensors")))
            .options(options)
            .items(items);
        let plan = scale::plan(&planning, &Site::new()).unwrap().plan;
        run_all(&plan, &mut Rng::new(7));
        assert!(files(&many).is_empty());
        scale::join(&plan, &checked(), &Site::new()).unwrap();
        assert!(files(&one) == files(&many));
    }
}

#[test]
fn compressed_single_files_are_refused_with_advice() {
    let directory = tempfile::tempdir().unwrap();
    let input = model(directory.path(), "model.safetensors");
    let options = Options {
        zstd: vec![(3, None)],
        ..Options::default()
    };
    let planning = Planning::new(Verb::Convert, [text(&input)])
        .output(text(&directory.path().join("out.zt")))
        .options(options);
    let error = scale::plan(&planning, &Site::new()).unwrap_err();
    assert_eq!(error.rule(), "plan.serial");
    assert_eq!(error.hints(), [tenfold::Hint::Shard]);
}

#[test]
fn reports_are_those_of_one_process() {
    let mut compared = 0;
    for (n, case) in cases(Kind::Valid).iter().enumerate() {
        if case.is_structural() {
            continue;
        }
        // Some need options, which these plans do not have.
        let Ok(archive) = Archive::open(&case.path) else {
            continue;
        };
        let directory = tempfile::tempdir().unwrap();
        let items = [1, 2, 7, 64][n % 4];
        let planning = |verb| {
            Planning::new(verb, [text(&case.path)])
                .items(items)
                .state(text(&directory.path().join("state")))
        };
        let joined = |verb| {
            let plan = scale::plan(&planning(verb), &Site::new());
            let plan = plan
                .unwrap_or_else(|error| panic!("{}: {error}", case.title()))
                .plan;
            run_all(&plan, &mut Rng::new(n as u64));
            scale::join(&plan, &JoinOptions::new(), &Site::new()).unwrap()
        };
        let Report::Digested(found) = joined(Verb::Digest) else {
            panic!()
        };
        let own = ops::digest(&archive, &DigestOptions::new()).unwrap();
        let [found] = found.as_slice() else { panic!() };
        let digests = &found.found.as_ref().unwrap().digests;
        assert_eq!(
            format!("{digests:?}"),
            format!("{own:?}"),
            "{}",
            case.title()
        );
        let Report::Verified(found) = joined(Verb::Verify) else {
            panic!()
        };
        let own = ops::verify(&archive, &VerifyOptions::new()).unwrap();
        let [found] = found.as_slice() else { panic!() };
        let verified = &found.found.as_ref().unwrap().verified;
        let shown = |verified: &ops::Verified| {
            let findings = verified.findings.iter();
            let findings: Vec<_> = findings
                .map(|found| {
                    format!(
                        "{} {} {:?} {:?}",
                        found.severity, found.message, found.tensor, found.at
                    )
                })
                .collect();
            format!("{findings:?} {}", verified.checked)
        };
        assert_eq!(shown(verified), shown(&own), "{}", case.title());
        let Report::Summarized(found) = joined(Verb::Stats) else {
            panic!()
        };
        let numbers = archive.select(tenfold::model::TensorInfo::is_numbers);
        let own = ops::stats(&numbers, &StatsOptions::new()).unwrap();
        let [found] = found.as_slice() else { panic!() };
        let stats = &found.found.as_ref().unwrap().stats;
        assert_eq!(format!("{stats:?}"), format!("{own:?}"), "{}", case.title());
        compared += 1;
    }
    assert!(compared > 50, "only {compared}");
}

#[test]
fn differences_are_those_of_one_process() {
    let directory = tempfile::tempdir().unwrap();
    let a = directory.path().join("a.safetensors");
    let b = directory.path().join("b.gguf");
    let build = |path: &Path, change: bool| {
        let mut builder = Archive::builder();
        for n in 0..12u8 {
            let mut values = vec![f32::from(n); 300];
            if change && n == 5 {
                values[7] = -1.5;
            }
            let name = match (change, n) {
                (true, 3) => "renamed".to_owned(),
                (true, 4) => continue,
                _ => format!("t{n}"),
            };
            builder.tensor(name, [300], values).unwrap();
        }
        if change {
            builder.tensor("added", [2], [1f32, f32::NAN]).unwrap();
            builder.meta("k", "v");
        }
        builder.finish().save(path).unwrap();
    };
    build(&a, false);
    build(&b, true);
    let own = ops::diff(
        &Archive::open(&a).unwrap(),
        &Archive::open(&b).unwrap(),
        &Default::default(),
    )
    .unwrap();
    assert!(own.changes.len() >= 4, "{own:?}");
    for items in [1, 2, 7, 64] {
        let planning = Planning::new(Verb::Diff, [text(&a), text(&b)])
            .items(items)
            .state(text(&directory.path().join(format!("state{items}"))));
        let plan = scale::plan(&planning, &Site::new()).unwrap().plan;
        run_all(&plan, &mut Rng::new(items as u64));
        let Report::Compared(found) =
            scale::join(&plan, &JoinOptions::new(), &Site::new()).unwrap()
        else {
            panic!()
        };
        assert_eq!(format!("{found:?}"), format!("{own:?}"));
    }
}

/// A tree with a model in shards, small files and one that is damaged.
fn tree(directory: &Path) -> PathBuf {
    let tree = directory.join("tree");
    fs::create_dir_all(tree.join("deep/er")).unwrap();
    for (n, place) in [
        "a.safetensors",
        "deep/b.safetensors",
        "deep/er/c.safetensors",
    ]
    .into_iter()
    .enumerate()
    {
        tenfold::save(tree.join(place), [("x", vec![n as f32; 100 * (n + 1)])]).unwrap();
    }
    fs::write(tree.join("deep/bad.safetensors"), "no tensors").unwrap();
    fs::write(tree.join("deep/notes.txt"), "no tensors either").unwrap();
    let archive = Archive::open(model(directory, "sharded.safetensors")).unwrap();
    let options = ConvertOptions::new().shards(Some(ops::Shards::Size(20_000)));
    let registry = Registry::standard();
    Conversion::prepare(&archive, registry.get("safetensors").unwrap(), &options)
        .unwrap()
        .write_file(tree.join("model.safetensors"))
        .unwrap();
    tree
}

#[test]
fn a_tree_is_all_of_its_models_and_a_bad_one_is_a_finding() {
    let directory = tempfile::tempdir().unwrap();
    let tree = tree(directory.path());
    for listed_above in [2, 10_000] {
        let planning = Planning::new(Verb::Digest, [text(&tree)])
            .items(3)
            .listed_above(listed_above)
            .state(text(&directory.path().join(format!("state{listed_above}"))));
        let plan = scale::plan(&planning, &Site::new()).unwrap().plan;
        assert_eq!(plan.input_count(), 5);
        assert_eq!(plan.inputs.is_empty(), listed_above == 2);
        run_all(&plan, &mut Rng::new(1));
        let Report::Digested(found) =
            scale::join(&plan, &JoinOptions::new(), &Site::new()).unwrap()
        else {
            panic!()
        };
        let names: Vec<_> = found
            .iter()
            .map(|report| report.name.rsplit("tree/").next().unwrap())
            .collect();
        let expected = [
            "a.safetensors",
            "deep/b.safetensors",
            "deep/bad.safetensors",
            "deep/er/c.safetensors",
            "model.safetensors.index.json",
        ];
        assert_eq!(names, expected);
        for report in &found {
            let own = Archive::open(&report.name);
            match (&report.found, own) {
                (Ok(report), Ok(archive)) => {
                    let own = ops::digest(&archive, &DigestOptions::new()).unwrap();
                    assert_eq!(report.digests.content, own.content);
                }
                (Err(found), Err(own)) => assert_eq!(found.to_string(), own.to_string()),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_tree_is_converted_file_by_file_and_collisions_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let tree = tree(directory.path());
    let out = directory.path().join("out");
    let planning = Planning::new(Verb::Convert, [text(&tree)])
        .output(format!("{}/", text(&out)))
        .options(Options {
            to: Some("ztensor".into()),
            ..Options::default()
        })
        .items(2);
    let plan = scale::plan(&planning, &Site::new()).unwrap().plan;
    run_all(&plan, &mut Rng::new(1));
    assert!(!out.exists());
    let Report::Converted { bad, .. } = scale::join(&plan, &checked(), &Site::new()).unwrap()
    else {
        panic!()
    };
    assert_eq!(bad.len(), 1);
    assert!(bad[0].0.ends_with("deep/bad.safetensors"), "{bad:?}");
    for name in ["a.zt", "deep/b.zt", "deep/er/c.zt", "model.zt"] {
        assert!(Archive::open(out.join(name)).is_ok(), "{name}");
    }
    tenfold::save(tree.join("a.gguf"), [("x", vec![1f32])]).unwrap();
    assert_eq!(
        scale::plan(&planning, &Site::new()).unwrap_err().rule(),
        "plan.collision"
    );
}

/// What a plan of digests finds, by the names of its inputs below a directory.
fn digested(tree: &Path, options: &Options) -> Vec<(String, tenfold::Result<Option<[u8; 32]>>)> {
    let state = tempfile::tempdir().unwrap();
    let planning = Planning::new(Verb::Digest, [text(tree)])
        .items(3)
        .options(options.clone())
        .state(text(&state.path().join("state")));
    let plan = scale::plan(&planning, &Site::new()).unwrap().plan;
    assert!(plan.items.len() <= 3);
    run_all(&plan, &mut Rng::new(1));
    let report = scale::join(&plan, &JoinOptions::new(), &Site::new()).unwrap();
    let Report::Digested(found) = report else {
        panic!()
    };
    let prefix = format!("{}/", text(tree));
    let named = found.into_iter().map(|report| {
        let name = report.name.strip_prefix(&prefix).unwrap_or("");
        let content = report.found.map(|found| found.digests.content);
        (name.to_owned(), content)
    });
    named.collect()
}

fn content(path: &Path) -> Option<[u8; 32]> {
    let archive = Archive::open(path).unwrap();
    ops::digest(&archive, &DigestOptions::new())
        .unwrap()
        .content
}

fn copy_below(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_below(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn every_directory_that_is_a_model_is_one_input_alone_and_in_a_tree() {
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path().join("tree");
    let mut expected = Vec::new();
    for case in cases(Kind::Valid) {
        // Some are known by a file in them.
        let path = match case.path.is_dir() {
            true => case.path.clone(),
            false if case.path.parent().unwrap().ends_with("valid") => continue,
            false => case.path.parent().unwrap().to_owned(),
        };
        // What lies beside a model of ONNX is known by opening it alone.
        if case.is_structural() || case.format == "onnx" || Archive::open(&path).is_err() {
            continue;
        }
        let title = case.title();
        let own = content(&path);
        let found = digested(&path, &Options::default());
        let [(_, found)] = found.as_slice() else {
            panic!("{title}: {found:?}")
        };
        assert_eq!(found.as_ref().unwrap(), &own, "{title}");
        // Arrays beside each other are one checkpoint, unless their names say that they are stores.
        let ending = if case.format == "zarr" { ".zarr" } else { "" };
        let name = format!("{}/{}{ending}", case.format, case.name);
        copy_below(&path, &tree.join(&name));
        expected.push((name, own));
    }
    assert!(expected.len() > 10, "only {expected:?}");
    let found = digested(&tree, &Options::default());
    let shown: Vec<_> = found.iter().map(|(name, _)| name).collect();
    assert_eq!(found.len(), expected.len(), "{shown:?}");
    for (name, own) in expected {
        let is_in = |found: &str| {
            found
                .strip_prefix(&name)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        let (_, found) = found.iter().find(|(found, _)| is_in(found)).unwrap();
        assert_eq!(found.as_ref().unwrap(), &own, "{name}");
    }
}

#[test]
fn what_opens_as_one_is_one_input_of_a_tree_and_what_is_left_out_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path().join("tree");
    let archive = Archive::open(model(directory.path(), "model.safetensors")).unwrap();
    let registry = Registry::standard();
    let options = ConvertOptions::new().shards(Some(ops::Shards::Size(20_000)));
    let shards = |place: &str| {
        let path = tree.join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        Conversion::prepare(&archive, registry.by_extension(place).unwrap(), &options)
            .unwrap()
            .write_file(path)
            .unwrap();
    };
    shards("split/model.gguf");
    shards("fp16/model.fp16.safetensors");
    let index = |name: &str| tree.join("fp16").join(name);
    fs::rename(
        index("model.fp16.safetensors.index.json"),
        index("model.safetensors.index.fp16.json"),
    )
    .unwrap();
    shards("bare/model.safetensors");
    fs::remove_file(tree.join("bare/model.safetensors.index.json")).unwrap();
    fs::create_dir_all(tree.join("llama/original")).unwrap();
    fs::write(tree.join("llama/config.json"), "{}").unwrap();
    for place in [
        "llama/model.safetensors",
        "llama/original/consolidated.safetensors",
    ] {
        tenfold::save(tree.join(place), [("x", vec![1f32])]).unwrap();
    }
    fs::write(tree.join("llama/optimizer.pt"), "moments").unwrap();
    #[cfg(all(feature = "zarr", feature = "write"))]
    Conversion::prepare(
        &archive,
        registry.get("zarr").unwrap(),
        &ConvertOptions::new(),
    )
    .unwrap()
    .write_file(tree.join("arrays.zarr"))
    .unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(tree.join("llama"), tree.join("again")).unwrap();
        std::os::unix::fs::symlink("nothing", tree.join("lost.gguf")).unwrap();
    }
    let found = digested(&tree, &Options::default());
    let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        #[cfg(all(feature = "zarr", feature = "write"))]
        "arrays.zarr/",
        "bare/",
        "fp16/model.safetensors.index.fp16.json",
        "llama/",
        names
            .iter()
            .find(|name| name.starts_with("split/"))
            .unwrap(),
    ];
    assert_eq!(names, expected);
    for (name, found) in &found {
        assert_eq!(
            found.as_ref().unwrap(),
            &content(&tree.join(name)),
            "{name}"
        );
    }
    let out = directory.path().join("out");
    let planning = Planning::new(Verb::Convert, [text(&tree)])
        .output(format!("{}/", text(&out)))
        .options(Options {
            to: Some("ztensor".into()),
            ..Options::default()
        });
    let planned = scale::plan(&planning, &Site::new()).unwrap();
    let left_out: Vec<_> = planned
        .left_out
        .iter()
        .map(|left| (left.why, left.count))
        .collect();
    for why in [
        #[cfg(unix)]
        LeftOutFor::DirectoryLink,
        #[cfg(unix)]
        LeftOutFor::NoTarget,
        LeftOutFor::TrainingState,
    ] {
        assert!(left_out.contains(&(why, 1)), "{left_out:?}");
    }
    run_all(&planned.plan, &mut Rng::new(1));
    let report = scale::join(&planned.plan, &checked(), &Site::new()).unwrap();
    assert!(matches!(report, Report::Converted { bad, .. } if bad.is_empty()));
    for name in [
        #[cfg(all(feature = "zarr", feature = "write"))]
        "arrays.zt",
        "bare/model.zt",
        "fp16/model.fp16.zt",
        "llama/model.zt",
        "split/model.zt",
    ] {
        assert!(Archive::open(out.join(name)).is_ok(), "{name}");
    }
}

#[test]
fn there_are_never_more_items_than_were_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let mut rng = Rng::new(11);
    for round in 0..12 {
        let mut files = Vec::new();
        for n in 0..1 + rng.below(9) {
            let path = directory.path().join(format!("{round}-{n}.safetensors"));
            let tensors = 1 + rng.below(6);
            let len = [1, 10, 100, 5000][rng.below(4)];
            let all = (0..tensors).map(|t| (format!("t{t}"), vec![1f32; len]));
            tenfold::save(&path, all).unwrap();
            files.push(text(&path));
        }
        for items in [1, 2, 3, 5, 8, 64] {
            let planning = Planning::new(Verb::Digest, files.clone())
                .items(items)
                .state(text(&directory.path().join("state")));
            let plan = scale::plan(&planning, &Site::new()).unwrap().plan;
            assert!(
                (1..=items).contains(&plan.items.len()),
                "{}: {plan:?}",
                items
            );
        }
    }
}

#[test]
fn one_input_that_is_gone_or_changed_is_a_finding_among_others() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let tree = tree(directory.path());
    let digest = Planning::new(Verb::Digest, [text(&tree)])
        .items(2)
        .state(text(&directory.path().join("state")));
    let convert = Planning::new(Verb::Convert, [text(&tree)])
        .output(format!("{}/", text(&out)))
        .options(Options {
            to: Some("ztensor".into()),
            ..Options::default()
        })
        .items(2);
    let site = Site::new();
    let plans = [digest, convert].map(|planning| scale::plan(&planning, &site).unwrap().plan);
    fs::remove_file(tree.join("a.safetensors")).unwrap();
    fs::remove_file(tree.join("deep/b.safetensors")).unwrap();
    tenfold::save(tree.join("deep/b.safetensors"), [("x", vec![7f32; 9])]).unwrap();
    for plan in plans {
        for item in 0..plan.items.len() {
            run(&plan, item, &site).unwrap();
        }
        let errors: Vec<_> = match scale::join(&plan, &JoinOptions::new(), &site).unwrap() {
            Report::Digested(found) => {
                let found = found.into_iter();
                found.filter_map(|report| report.found.err()).collect()
            }
            Report::Converted { bad, .. } => bad.into_iter().map(|(_, error)| error).collect(),
            other => panic!("{other:?}"),
        };
        let kinds: Vec<_> = errors
            .iter()
            .map(|error| (error.kind(), error.rule()))
            .collect();
        assert_eq!(kinds.len(), 3, "{errors:?}");
        assert_eq!(kinds[0].0, ErrorKind::NotFound, "{errors:?}");
        assert_eq!(
            kinds[1],
            (ErrorKind::Mismatch, "plan.changed"),
            "{errors:?}"
        );
    }
}

#[test]
fn data_that_is_gone_or_cut_is_never_published_as_zeros() {
    let site = Site::new();
    let done = || {
        let planned = planned(4);
        for item in 0..4 {
            run(&planned.plan, item, &site).unwrap();
        }
        planned
    };
    let refused = |planned: &Planned| {
        let error = scale::join(&planned.plan, &JoinOptions::new(), &site).unwrap_err();
        assert_eq!(error.rule(), "plan.damaged-item", "{error}");
        assert!(!planned.output.exists());
    };
    let cut = done();
    let data = PathBuf::from(&cut.plan.state).join("data");
    let len = fs::metadata(&data).unwrap().len();
    fs::OpenOptions::new()
        .write(true)
        .open(&data)
        .unwrap()
        .set_len(len - 1)
        .unwrap();
    refused(&cut);
    let gone = done();
    let data = PathBuf::from(&gone.plan.state).join("data");
    fs::remove_file(&data).unwrap();
    refused(&gone);
    // What one item writes again is not all of it.
    again(&gone.plan, 1, &site).unwrap();
    assert_eq!(scale::status(&gone.plan, &site).unwrap().missing, [0, 2, 3]);
    for item in [0, 2, 3] {
        run(&gone.plan, item, &site).unwrap();
    }
    scale::join(&gone.plan, &checked(), &site).unwrap();
    // An output of the same length that was there before is not the one.
    let other = done();
    fs::remove_file(PathBuf::from(&other.plan.state).join("data")).unwrap();
    let len = fs::metadata(&gone.output).unwrap().len();
    fs::write(&other.output, vec![0; usize::try_from(len).unwrap()]).unwrap();
    let error = scale::join(&other.plan, &JoinOptions::new(), &site).unwrap_err();
    assert_eq!(error.rule(), "plan.damaged-item", "{error}");
}

#[test]
fn damage_between_tensors_is_healed_by_their_item() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("model.safetensors");
    let tensors = (0..4).map(|n| (format!("t{n}"), vec![1f32; 3]));
    tenfold::save(&input, tensors).unwrap();
    let align = 1 << 19;
    for step in [1 << 15, align] {
        let output = directory.path().join(format!("{step}.gguf"));
        let planning = Planning::new(Verb::Convert, [text(&input)])
            .output(text(&output))
            .options(Options {
                writing: vec![("align".into(), step.to_string())],
                ..Options::default()
            })
            .items(3)
            .multiple(512);
        let site = Site::new();
        let plan = scale::plan(&planning, &site).unwrap().plan;
        for item in 0..plan.items.len() {
            run(&plan, item, &site).unwrap();
        }
        let data = PathBuf::from(&plan.state).join("data");
        let own = fs::read(&data).unwrap();
        assert!(own.len() > 3 * step);
        fs::write(&data, vec![7; own.len()]).unwrap();
        for item in 0..plan.items.len() {
            again(&plan, item, &site).unwrap();
        }
        assert!(fs::read(&data).unwrap() == own);
        scale::join(&plan, &checked(), &site).unwrap();
    }
}

/// A tree that is converted and not joined.
fn converted_tree(directory: &Path, listed_above: usize) -> (PathBuf, Plan) {
    let tree = tree(directory);
    let out = directory.join("out");
    let planning = Planning::new(Verb::Convert, [text(&tree)])
        .output(format!("{}/", text(&out)))
        .options(Options {
            to: Some("ztensor".into()),
            ..Options::default()
        })
        .listed_above(listed_above)
        .items(2);
    let plan = scale::plan(&planning, &Site::new()).unwrap().plan;
    (out, plan)
}

#[test]
fn a_join_of_a_tree_that_was_interrupted_is_finished() {
    let directory = tempfile::tempdir().unwrap();
    let (out, plan) = converted_tree(directory.path(), 100);
    run_all(&plan, &mut Rng::new(1));
    let files = PathBuf::from(&plan.state).join("files");
    fs::create_dir_all(&out).unwrap();
    fs::rename(files.join("a.zt"), out.join("a.zt")).unwrap();
    scale::join(&plan, &checked(), &Site::new()).unwrap();
    assert!(Archive::open(out.join("deep/b.zt")).is_ok());

    let directory = tempfile::tempdir().unwrap();
    let (out, plan) = converted_tree(directory.path(), 100);
    run_all(&plan, &mut Rng::new(1));
    fs::remove_dir_all(PathBuf::from(&plan.state).join("files")).unwrap();
    let error = scale::join(&plan, &JoinOptions::new(), &Site::new()).unwrap_err();
    assert_eq!(error.rule(), "plan.damaged-item", "{error}");
    // What was there before is not what was written.
    fs::create_dir_all(&out).unwrap();
    fs::write(out.join("a.zt"), "mine").unwrap();
    let error = scale::join(&plan, &JoinOptions::new(), &Site::new()).unwrap_err();
    assert_eq!(error.rule(), "plan.damaged-item", "{error}");
}

#[test]
fn a_receipt_does_not_say_where_files_go() {
    let directory = tempfile::tempdir().unwrap();
    let (out, plan) = converted_tree(directory.path(), 100);
    run_all(&plan, &mut Rng::new(1));
    let receipts = PathBuf::from(&plan.state).join("receipts");
    let mut changed = 0;
    for entry in fs::read_dir(&receipts).unwrap() {
        let path = entry.unwrap().path();
        let own = fs::read_to_string(&path).unwrap();
        let evil = own.replace("\"a.zt\"", "\"../../evil.zt\"");
        changed += usize::from(own != evil);
        fs::write(path, evil).unwrap();
    }
    assert_eq!(changed, 1);
    scale::join(&plan, &checked(), &Site::new()).unwrap();
    assert!(Archive::open(out.join("a.zt")).is_ok());

    let directory = tempfile::tempdir().unwrap();
    let (_, plan) = converted_tree(directory.path(), 100);
    run_all(&plan, &mut Rng::new(1));
    let receipt = PathBuf::from(&plan.state).join("receipts/000000.json");
    let own = fs::read_to_string(&receipt).unwrap();
    fs::write(&receipt, own.replace("\"place\":0", "\"place\":1")).unwrap();
    let error = scale::join(&plan, &checked(), &Site::new()).unwrap_err();
    assert_eq!(error.rule(), "plan.receipt", "{error}");
}

#[test]
fn a_list_that_is_missing_or_damaged_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (_, plan) = converted_tree(directory.path(), 2);
    let lists = PathBuf::from(&plan.state).join("lists");
    let list = fs::read_dir(&lists)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let own = fs::read(&list).unwrap();
    let refused = || {
        let results = (0..plan.items.len()).map(|item| again(&plan, item, &Site::new()));
        let rules = results.filter_map(|result| Some(result.err()?.rule().to_owned()));
        assert_eq!(rules.collect::<Vec<_>>(), ["plan.list"]);
    };
    fs::write(&list, &own[1..]).unwrap();
    refused();
    fs::remove_file(&list).unwrap();
    refused();
    fs::write(&list, own).unwrap();
    run_all(&plan, &mut Rng::new(2));
}

#[test]
fn a_tree_is_not_converted_into_its_own_files() {
    let directory = tempfile::tempdir().unwrap();
    let tree = tree(directory.path());
    let planning = Planning::new(Verb::Convert, [text(&tree)])
        .output(format!("{}/", text(&tree)))
        .options(Options {
            to: Some("safetensors".into()),
            ..Options::default()
        });
    let error = scale::plan(&planning, &Site::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
    assert!(error.message().contains("another directory"), "{error}");
}

#[test]
fn secrets_do_not_go_into_plans() {
    for url in [
        "https://host/model.safetensors?X-Amz-Signature=abc",
        "https://me:word@host/model.safetensors",
        "s3://key:word@bucket/model.safetensors",
    ] {
        let planning = Planning::new(Verb::Digest, [url]).state("/nowhere/state");
        let error = scale::plan(&planning, &Site::new()).unwrap_err();
        assert_eq!(error.rule(), "plan.secret", "{error}");
        assert!(
            !error.to_string().contains("abc") && !error.to_string().contains("word@"),
            "{error}"
        );
    }
}

#[test]
fn a_plan_is_small() {
    let Planned { plan, .. } = planned(64);
    let text = plan.to_json().unwrap();
    assert!(plan.items.len() > 32);
    let items: usize = text.lines().skip(1).map(|line| line.len() + 1).sum();
    assert!(items <= 100 * plan.items.len(), "{text}");
    let other = planned(64).plan;
    // Nothing of one's own but the place: no time, no number of chance.
    assert_eq!(other.items, plan.items);
}

#[test]
fn stores_are_read_and_not_written_to() {
    for (output, state) in [
        ("s3://bucket/out.gguf", None),
        ("/nowhere/out.gguf", Some("s3://bucket/state")),
    ] {
        let mut planning = Planning::new(Verb::Convert, ["/nowhere/in.safetensors"]).output(output);
        if let Some(state) = state {
            planning = planning.state(state);
        }
        let error = scale::plan(&planning, &Site::new()).unwrap_err();
        assert_eq!(
            (error.kind(), error.rule()),
            (ErrorKind::Unsupported, "plan.store"),
            "{error}"
        );
    }
}

#[cfg(all(feature = "zarr", feature = "write"))]
#[test]
fn directories_that_a_format_writes_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let input = model(directory.path(), "model.safetensors");
    let planning = Planning::new(Verb::Convert, [text(&input)])
        .output(text(&directory.path().join("out.zarr")))
        .items(2);
    let error = scale::plan(&planning, &Site::new()).unwrap_err();
    assert_eq!(
        (error.kind(), error.rule()),
        (ErrorKind::Unsupported, "plan.tree"),
        "{error}"
    );
    let tree = tree(directory.path());
    let planning = Planning::new(Verb::Convert, [text(&tree)])
        .output(format!("{}/", text(&directory.path().join("out"))))
        .options(Options {
            to: Some("zarr".into()),
            ..Options::default()
        });
    let error = scale::plan(&planning, &Site::new()).unwrap_err();
    assert_eq!(error.rule(), "plan.tree", "{error}");
    for name in ["out", "out.zarr"] {
        assert!(!directory.path().join(name).exists(), "{name}");
    }
}

#[cfg(feature = "remote")]
mod stores {
    //! Inputs from our own small server, which does what an object store does.

    use super::server::Server;
    use super::*;
    use tenfold::io::Remote;

    fn site(server: &Server) -> Site {
        let remote = Remote::new()
            .option("endpoint", server.url(""))
            .option("access_key_id", "KEY")
            .option("secret_access_key", "hidden-word")
            .option("region", "us-east-1");
        Site::new().remote(&remote)
    }

    fn run_in_order(plan: &Plan, site: &Site) {
        for item in 0..plan.items.len() {
            run(plan, item, site).unwrap();
        }
    }

    #[test]
    fn an_object_is_converted_like_a_file_and_refused_once_it_changed() {
        let server = Server::start();
        let site = site(&server);
        let directory = tempfile::tempdir().unwrap();
        let input = model(directory.path(), "model.safetensors");
        let own = directory.path().join("own.gguf");
        tenfold::convert(&input, &own).unwrap();
        server.put("bucket/in.safetensors", fs::read(&input).unwrap());
        let output = directory.path().join("out.gguf");
        let planning = Planning::new(Verb::Convert, ["s3://bucket/in.safetensors"])
            .output(text(&output))
            .items(5)
            .multiple(512);
        let plan = scale::plan(&planning, &site).unwrap().plan;
        assert!(plan.items.len() > 2);
        run_in_order(&plan, &site);
        scale::join(&plan, &checked(), &site).unwrap();
        assert!(fs::read(&output).unwrap() == fs::read(&own).unwrap());
        let planning = planning.output(text(&directory.path().join("late.gguf")));
        let plan = scale::plan(&planning, &site).unwrap().plan;
        let mut bytes = fs::read(&input).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        server.put("bucket/in.safetensors", bytes);
        assert_eq!(run(&plan, 0, &site).unwrap_err().rule(), "plan.changed");
    }

    #[test]
    fn every_model_of_a_prefix_is_digested() {
        let server = Server::start();
        let site = site(&server);
        let directory = tempfile::tempdir().unwrap();
        let input = model(directory.path(), "model.gguf");
        server.put("bucket/models/one/model.gguf", fs::read(&input).unwrap());
        server.put("bucket/models/bad.gguf", "no tensors");
        let planning = Planning::new(Verb::Digest, ["s3://bucket/models/"])
            .items(2)
            .state(text(&directory.path().join("state")));
        let plan = scale::plan(&planning, &site).unwrap().plan;
        run_in_order(&plan, &site);
        let report = scale::join(&plan, &JoinOptions::new(), &site).unwrap();
        let Report::Digested(found) = report else {
            panic!()
        };
        let own = Archive::open(&input).unwrap();
        let own = ops::digest(&own, &DigestOptions::new()).unwrap();
        assert_eq!(found.len(), 2);
        assert!(found[0].found.is_err(), "{:?}", found[0]);
        let digests = &found[1].found.as_ref().unwrap().digests;
        assert_eq!(digests.content, own.content);
    }
}
