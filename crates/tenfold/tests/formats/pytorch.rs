//! What is special to PyTorch's files.

use std::sync::Arc;

use crate::support::amplifiers::pytorch::{TORCH_SCALAR, torch_stream};
use crate::support::{InMemory, Kind, cases, hex, options_for, profiles, write_to_memory};
use tenfold::format::Registry;
use tenfold::io::Limits;
use tenfold::model::{DType, Layout, Value};
use tenfold::ops::{self, Shards};
use tenfold::{Archive, Bytes, ErrorKind, Hint, OpenOptions, Result};

fn open(bytes: Vec<u8>) -> Result<Archive> {
    let options = OpenOptions::new();
    options.read(Arc::new(Bytes::from(bytes)), Some("file.pt"))
}

fn fixture(kind: Kind, name: &str) -> InMemory {
    let mut all = cases(kind).into_iter();
    let case = all.find(|case| case.format == "pytorch" && case.title().ends_with(name));
    case.unwrap().file().unwrap()
}

/// The one file that is written.
fn rewritten(archive: &Archive, to: &str) -> Vec<u8> {
    let (entry, profile) = profiles()
        .into_iter()
        .find(|(entry, _)| entry.spec.id == to)
        .unwrap();
    let options = options_for(profile).allow(tenfold::format::Effect::Dropped);
    let files = write_to_memory(archive, &entry, &options).unwrap();
    files.into_values().next().unwrap()
}

#[test]
fn tensors_that_share_a_storage_say_so_and_share_it_in_a_new_file() {
    let archive = fixture(Kind::Valid, "/shared_storage").open().unwrap();
    let names = |name: &str| match archive
        .tensor(name)
        .unwrap()
        .info()
        .metadata
        .get("shares_storage_with")
    {
        Some(Value::List(names)) => names
            .iter()
            .map(|name| name.as_str().unwrap().to_owned())
            .collect(),
        _ => Vec::new(),
    };
    assert_eq!(names("emb.weight"), ["lm_head.weight", "emb_view"]);
    assert!(names("other").is_empty());
    let again = open(rewritten(&archive, "pytorch")).unwrap();
    let key = |name: &str| {
        again
            .tensor(name)
            .unwrap()
            .info()
            .metadata
            .get("storage_key")
            .cloned()
    };
    assert_eq!(key("emb.weight"), key("lm_head.weight"));
    assert_eq!(key("emb.weight"), key("emb_view"));
    assert_ne!(key("emb.weight"), key("other"));
}

#[test]
fn a_view_without_gaps_is_a_slice_of_its_storage_and_others_have_strides() {
    let file = fixture(Kind::Valid, "/views");
    let archive = file.open().unwrap();
    let layout = |name: &str| archive.tensor(name).unwrap().info().layout.clone();
    for name in ["row", "contig", "elem", "narrow"] {
        assert_eq!(layout(name), Layout::RowMajor, "{name}");
    }
    for name in ["t", "slice", "step", "perm", "diag", "expand"] {
        assert!(matches!(layout(name), Layout::Strided(_)), "{name}");
    }
    // In place: no copy is made of it.
    let row = archive.tensor("row").unwrap();
    let stored = row.stored().unwrap();
    let at = stored.as_ptr() as usize - file.bytes.as_ptr() as usize;
    assert_eq!(&file.bytes[at..at + stored.len()], &stored[..]);
}

#[test]
fn unknown_classes_are_records_where_that_is_asked_for() {
    let file = fixture(Kind::Reject, "/whole_module");
    let refused = file.open().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert!(refused.hints().contains(&Hint::Opaque));
    let options = OpenOptions::new().opaque(true);
    let archive = options
        .read(Arc::new(file.bytes.clone()), Some("m.pt"))
        .unwrap();
    let names: Vec<_> = archive
        .tensors()
        .map(|tensor| tensor.name().to_owned())
        .collect();
    assert_eq!(names, ["weight", "bias"]);
    assert!(archive.tensors().all(|tensor| tensor.canonical().is_ok()));
}

#[test]
fn names_are_paths_and_a_bare_tensor_has_that_of_its_file() {
    let object = [TORCH_SCALAR, b"."].concat();
    let archive = open(torch_stream(&object)).unwrap();
    let tensor = archive.tensors().next().unwrap();
    assert_eq!(tensor.name(), "file");
    assert!(tensor.info().is_unnamed());
    let object = [
        b"}(K\x05](",
        TORCH_SCALAR,
        b"NeG\x40\x04\0\0\0\0\0\0\x88\x86u.",
    ]
    .concat();
    let archive = open(torch_stream(&object));
    // A tuple of a float and True is a key like any other, and has no value here.
    assert!(archive.is_err());
    let object = [b"}(K\x05](", TORCH_SCALAR, b"NeG\x40\x04\0\0\0\0\0\0\x88u."].concat();
    let archive = open(torch_stream(&object)).unwrap();
    let names: Vec<_> = archive
        .tensors()
        .map(|tensor| tensor.name().to_owned())
        .collect();
    assert_eq!(names, ["5.0"]);
    assert_eq!(archive.metadata().get("5.1"), Some(&Value::Null));
    assert_eq!(archive.metadata().get("2.5"), Some(&Value::Bool(true)));
}

#[test]
fn what_shares_many_names_is_refused_before_it_takes_memory() {
    // Every list holds the one before it four times.
    let mut object = b"]N\x85".to_vec();
    object.truncate(1);
    object.extend_from_slice(b"q\0");
    for level in 0u8..40 {
        object.push(b']');
        object.push(b'(');
        for _ in 0..4 {
            object.extend_from_slice(&[b'h', level]);
        }
        object.extend_from_slice(&[b'e', b'q', level + 1]);
    }
    object.push(b'.');
    let error = open(torch_stream(&object)).unwrap_err();
    assert_eq!(
        (error.kind(), error.rule()),
        (ErrorKind::Limit, "pytorch.limit")
    );
}

#[test]
fn the_tar_form_is_refused_by_name() {
    let mut tar = vec![0; 1024];
    tar[..8].copy_from_slice(b"sys_info");
    tar[257..262].copy_from_slice(b"ustar");
    let error = open(tar).unwrap_err();
    assert_eq!(error.rule(), "pytorch.tar");
    assert!(error.message().contains("0.1.10"), "{error}");
}

#[test]
fn an_expansion_beyond_the_limit_is_read_when_that_is_raised() {
    let file = fixture(Kind::Reject, "/expand_bomb");
    let limited = |bytes| {
        let limits = Limits::default().dense_bytes(bytes);
        let options = OpenOptions::new().limits(limits);
        let archive = options
            .read(Arc::new(file.bytes.clone()), Some("m.pt"))
            .unwrap();
        let defect = archive.tensors().next().unwrap().info().defect.clone();
        defect.map(|defect| defect.rule().to_owned())
    };
    assert_eq!(limited(16 << 30).as_deref(), Some("pytorch.expand"));
    assert_eq!(limited(u64::MAX), None);
}

#[test]
fn a_model_in_several_files_reads_back_through_its_index() {
    let archive = fixture(Kind::Valid, "/state_dict").open().unwrap();
    let registry = Registry::standard();
    let entry = *registry.get("pytorch").unwrap();
    let options = ops::ConvertOptions::new().shards(Some(Shards::Size(64)));
    let files = write_to_memory(&archive, &entry, &options).unwrap();
    let names: Vec<_> = files.keys().map(String::as_str).collect();
    assert!(names.len() > 2, "{names:?}");
    assert!(
        names.iter().any(|name| name.ends_with(".bin.index.json")),
        "{names:?}"
    );
    assert!(
        names
            .iter()
            .any(|name| name.ends_with("-00001-of-00008.bin") || name.contains("-00001-of-")),
        "{names:?}"
    );
    let index = names
        .iter()
        .find(|name| name.ends_with(".index.json"))
        .unwrap()
        .to_string();
    let again = InMemory::written(files, &index).open().unwrap();
    assert_eq!(again.format().unwrap().id, "pytorch");
    let digest = |archive: &Archive| {
        crate::support::digest(archive, 1)
            .content
            .map(|sum| hex(&sum))
    };
    assert_eq!(digest(&again), digest(&archive));
}

#[test]
fn metadata_and_types_come_back_from_zip_and_from_ztensor() {
    let archive = fixture(Kind::Valid, "/all_dtypes").open().unwrap();
    let again = open(rewritten(&archive, "pytorch")).unwrap();
    for (before, after) in archive.tensors().zip(again.tensors()) {
        assert_eq!(before.info().dtype, after.info().dtype);
        assert_eq!(before.info().shape, after.info().shape);
    }
    assert!(
        archive
            .tensors()
            .any(|tensor| tensor.info().dtype == DType::F4_E2M1)
    );
    let parameters = fixture(Kind::Valid, "/parameters").open().unwrap();
    let again = open(rewritten(&parameters, "pytorch")).unwrap();
    for (before, after) in parameters.tensors().zip(again.tensors()) {
        for key in ["parameter", "requires_grad"] {
            let (before, after) = (before.info(), after.info());
            assert_eq!(
                before.metadata.get(key),
                after.metadata.get(key),
                "{} {key}",
                before.name
            );
        }
    }
}

/// A stream whose object is this pickle, without storages.
fn stream(object: &[u8]) -> Vec<u8> {
    let magic = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e";
    let protocol = b"\x80\x02M\xe9\x03.";
    let machine = b"\x80\x02}X\x0d\0\0\0little_endian\x88s.";
    [&magic[..], protocol, machine, object, b"\x80\x02]."].concat()
}

/// Python keeps the last value of a key: what stands under the first would be shown and is nowhere.
#[test]
fn a_dict_with_a_key_twice_is_refused() {
    let open = |object: &[u8]| Archive::from_bytes(stream(object));
    // {"a": {"x": 1}, "a": {"y": 2}}
    let twice = b"\x80\x02}(U\x01a}U\x01xK\x01sU\x01a}U\x01yK\x02su.";
    assert_eq!(open(twice).unwrap_err().rule(), "pytorch.duplicate");
    // OrderedDict([("a", 1)]), with "a" set again.
    let filled = b"\x80\x02ccollections\nOrderedDict\n]U\x01aK\x01\x86a\x85RU\x01aK\x02s.";
    assert_eq!(open(filled).unwrap_err().rule(), "pytorch.duplicate");
    // {1: 2, "1": 3} are two entries to Python; to us, values of one name.
    let archive = open(b"\x80\x02}(K\x01K\x02U\x011K\x03u.").unwrap();
    assert_eq!(archive.metadata().get("1").unwrap().as_i64(), Some(3));
}

#[test]
fn what_is_under_a_key_can_be_listed_alone() {
    let open = |root: &str| {
        let options = OpenOptions::new().option("root", root);
        // {"epoch": 1, "model": {"a": 2, "b.c": {"d": 3}}}
        let object = b"\x80\x02}(U\x05epochK\x01U\x05model}(U\x01aK\x02U\x03b.c}U\x01dK\x03suu.";
        options.read(Arc::new(Bytes::from(stream(object))), Some("x.pt"))
    };
    let values = |root: &str| -> Vec<(String, i64)> {
        let archive = open(root).unwrap();
        let found = archive.metadata().iter();
        found
            .map(|(key, value)| (key.to_owned(), value.as_i64().unwrap()))
            .collect()
    };
    assert_eq!(
        values("model"),
        [("a".to_owned(), 2), ("b.c.d".to_owned(), 3)]
    );
    assert_eq!(values("model.b.c"), [("d".to_owned(), 3)]);
    for wrong in ["", "mode", "model.", "model.b", "epoch.a"] {
        let error = open(wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument, "{wrong:?}: {error}");
    }
}

#[test]
fn long_lists_of_lists_are_one_value() {
    // {"boxes": [[0, 0, 0], ...], "w": a tensor}
    let mut object = b"}(U\x05boxes](".to_vec();
    for _ in 0..100_000 {
        object.extend_from_slice(b"](K\x01K\x02K\x03e");
    }
    object.extend_from_slice(b"eU\x01w");
    object.extend_from_slice(TORCH_SCALAR);
    object.extend_from_slice(b"u.");
    let archive = open(torch_stream(&object)).unwrap();
    assert_eq!(archive.tensors().len(), 1);
    let Some(Value::List(boxes)) = archive.metadata().get("boxes") else {
        panic!("no list");
    };
    assert_eq!(boxes.len(), 100_000);
    assert_eq!(boxes.iter().last(), Some(Value::from(vec![1i64, 2, 3])));
}

#[test]
fn metadata_that_has_no_form_here_costs_no_tensor() {
    let with = |entries: &[u8]| {
        let object = [b"}(", entries, b"U\x01w", TORCH_SCALAR, b"u."].concat();
        open(torch_stream(&object)).unwrap()
    };
    // {b"k": 1, "s": {frozenset([1, 2])}}
    let archive = with(b"C\x03k\x00'K\x01U\x01s\x8f((K\x01K\x02\x91\x90");
    assert_eq!(archive.tensors().len(), 1);
    let metadata = archive.metadata();
    assert_eq!(metadata.get("b\"k\\x00'\""), Some(&Value::I64(1)));
    assert_eq!(
        metadata.get("s"),
        Some(&Value::from(vec![Value::from(vec![1i64, 2])]))
    );
    // numpy.dtype("f4"), numpy.str_("ab")
    let dtype = |code: &str| {
        let len = char::from(u8::try_from(code.len()).unwrap());
        format!("cnumpy\ndtype\n(U{len}{code}")
            + "\x4b\x00\x4b\x01tR(K\x03U\x01<NNNJ\x7f\x7f\x7f\x7fJ\x7f\x7f\x7f\x7fK\x00tb"
    };
    let entries = [
        b"U\x01d",
        dtype("f4").as_bytes(),
        b"U\x01t",
        b"cnumpy.core.multiarray\nscalar\n(",
        dtype("U2").as_bytes(),
        b"C\x08a\0\0\0b\0\0\0tR",
        // numpy.datetime64, which has no form here.
        b"U\x01m",
        b"cnumpy.core.multiarray\nscalar\n(",
        dtype("M8").as_bytes(),
        b"C\x08\0\0\0\0\0\0\0\0tR",
    ]
    .concat();
    let archive = with(&entries);
    assert_eq!(archive.tensors().len(), 1);
    assert_eq!(archive.metadata().get("d"), Some(&Value::from("<f4")));
    assert_eq!(archive.metadata().get("t"), Some(&Value::from("ab")));
    assert_eq!(archive.metadata().get("m"), None);
    let mut findings = archive.findings().iter();
    assert!(
        findings
            .any(|finding| finding.rule == "pytorch.metadata" && finding.message.contains("\"m\""))
    );
}
