//! Files behind URLs, on a small server of our own: what is read is what is there, whatever the network does.

// A test may panic; the files that it writes are its own.
#![allow(
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]
#![allow(
    dead_code,
    unreachable_pub,
    reason = "the server has more than each test uses"
)]

#[path = "support/server.rs"]
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use server::{Fault, PAGE, Server};
use tenfold::format::Registry;
use tenfold::io::{Output, Remote, RemoteOutput, RemoteUrl, Siblings, Source};
use tenfold::ops::{Conversion, ConvertOptions, DigestOptions, Shards, digest};
use tenfold::{Archive, Control, Error, ErrorKind, Hint, OpenOptions};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// Bytes that are different everywhere.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 7 + n / 251) as u8).collect()
}

/// Reaches the server as an object store with these keys.
fn s3(server: &Server) -> Remote {
    Remote::new()
        .option("endpoint", server.url(""))
        .option("access_key_id", "KEY")
        .option("secret_access_key", "hidden-word")
        .option("region", "us-east-1")
}

fn open(remote: &Remote, url: &str) -> tenfold::Result<Arc<dyn Source>> {
    remote.source(&RemoteUrl::parse(url)?)
}

#[track_caller]
fn failed<T>(result: tenfold::Result<T>) -> Error {
    match result {
        Ok(_) => panic!("it succeeded"),
        Err(error) => {
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains(PAGE), "{shown}");
            assert!(!shown.contains("hidden-word"), "{shown}");
            error
        }
    }
}

fn content(archive: &Archive) -> String {
    let digests = digest(archive, &DigestOptions::new()).unwrap();
    format!("{digests:?}")
}

/// Puts what is below a directory, but for large files.
fn put_all(server: &Server, directory: &Path, key: &str) {
    for file in fs::read_dir(directory).unwrap().flatten() {
        let path = file.path();
        let key = format!("{key}/{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            put_all(server, &path, &key);
        } else if file.metadata().unwrap().len() < 1 << 20 {
            server.put(&key, fs::read(path).unwrap());
        }
    }
}

#[test]
fn every_format_reads_the_same_behind_a_url() {
    let server = Server::start();
    let remote = s3(&server);
    let options = OpenOptions::new().remote(&remote);
    let mut compared = 0;
    for format in fs::read_dir(fixtures()).unwrap() {
        let valid = format.unwrap().path().join("valid");
        let Ok(entries) = fs::read_dir(&valid) else {
            continue;
        };
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let mut taken = 0;
        for path in paths {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let Ok(local) = OpenOptions::new().open(&path) else {
                continue;
            };
            let base = valid
                .strip_prefix(fixtures())
                .unwrap()
                .display()
                .to_string();
            if path.is_dir() {
                put_all(&server, &path, &format!("bucket/{base}/{name}"));
            } else if taken == 0 {
                // Formats of several files find the others beside it.
                put_all(&server, &valid, &format!("bucket/{base}"));
            }
            if fs::metadata(&path).unwrap().len() >= 1 << 20 {
                continue;
            }
            let url = format!("s3://bucket/{base}/{name}");
            let far = options
                .open_url(&url)
                .unwrap_or_else(|error| panic!("{url}: {error}"));
            assert_eq!(
                far.format().map(|spec| spec.id),
                local.format().map(|spec| spec.id),
                "{url}"
            );
            assert_eq!(content(&far), content(&local), "{url}");
            compared += 1;
            taken += 1;
            if taken == 4 {
                break;
            }
        }
    }
    assert!(compared > 40, "{compared}");
}

#[test]
fn a_small_file_is_opened_by_one_request() {
    let server = Server::start();
    let path = fixtures().join("safetensors/valid/sharded_3/model-00001-of-00003.safetensors");
    server.put("m/model.safetensors", fs::read(&path).unwrap());
    let archive = Archive::open_url(&server.url("m/model.safetensors")).unwrap();
    assert_eq!(content(&archive), content(&Archive::open(&path).unwrap()));
    let seen = server.seen();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(seen[0].headers["range"], "bytes=0-65535");
}

#[test]
fn ranges_come_whole_and_near_ones_together() {
    let server = Server::start();
    let whole = bytes(20 << 20);
    server.put("f/x.bin", whole.clone());
    let remote = Remote::new();
    let source = open(&remote, &server.url("f/x.bin")).unwrap();
    assert_eq!(source.len(), whole.len() as u64);
    assert_eq!(source.read(0..source.len()).unwrap(), whole);
    server.seen();
    let ranges = [
        5 << 20..(5 << 20) + 10,
        (5 << 20) + 1000..(5 << 20) + 1010,
        9 << 20..(9 << 20) + 5,
    ];
    let read = source.read_ranges(&ranges).unwrap();
    for (range, read) in ranges.iter().zip(read) {
        assert_eq!(read, whole[range.start as usize..range.end as usize]);
    }
    assert_eq!(server.seen().len(), 2);
    assert!(source.read(0..source.len() + 1).is_err());
    let traffic = remote.traffic();
    assert!(
        traffic.received() > 20 << 20 && traffic.requests() >= 4,
        "{traffic:?}"
    );
}

#[test]
fn a_file_that_changes_is_noticed() {
    for ignores in [false, true] {
        let server = Server::start();
        server.put("f/x.bin", bytes(1 << 20));
        let source = open(&Remote::new(), &server.url("f/x.bin")).unwrap();
        server.put("f/x.bin", bytes(1 << 20));
        if ignores {
            server.fault("f/", usize::MAX, Fault::IgnoresConditions);
        }
        let error = failed(source.read(500_000..500_010));
        assert_eq!(
            (error.kind(), error.rule()),
            (ErrorKind::Mismatch, "file.changed")
        );
    }
    // Without a tag, its length says so.
    let server = Server::start();
    server.put("f/x.bin", bytes(1 << 20));
    server.fault("f/", usize::MAX, Fault::NoTag);
    let source = open(&Remote::new(), &server.url("f/x.bin")).unwrap();
    assert_eq!(source.read(500_000..500_010).unwrap().len(), 10);
    server.put("f/x.bin", bytes((1 << 20) + 1));
    assert_eq!(failed(source.read(700_000..700_010)).rule(), "file.changed");
    // A weak tag is compared, and not sent.
    let server = Server::start();
    server.put("f/x.bin", bytes(1 << 20));
    server.fault("f/", usize::MAX, Fault::WeakTag);
    let source = open(&Remote::new(), &server.url("f/x.bin")).unwrap();
    assert_eq!(source.read(500_000..500_010).unwrap().len(), 10);
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| !seen.headers.contains_key("if-match"))
    );
    server.put("f/x.bin", bytes(1 << 20));
    assert_eq!(failed(source.read(900_000..900_010)).rule(), "file.changed");
}

#[test]
fn connections_that_break_are_taken_up_where_they_broke() {
    for url in ["http", "s3"] {
        let server = Server::start();
        let whole = bytes(3 << 20);
        server.put("bucket/x.bin", whole.clone());
        let source = match url {
            "http" => open(&Remote::new(), &server.url("bucket/x.bin")),
            _ => open(&s3(&server), "s3://bucket/x.bin"),
        };
        let source = source.unwrap();
        server.seen();
        server.fault("bucket/", 5, Fault::Cut(500_000));
        assert_eq!(source.read(0..source.len()).unwrap(), whole);
        let seen = server.seen();
        assert_eq!(seen.len(), 6, "{seen:?}");
        assert!(
            seen[1].headers["range"].starts_with("bytes=500000-"),
            "{seen:?}"
        );
    }
}

#[test]
fn servers_that_are_busy_are_asked_again_and_refusals_are_final() {
    let server = Server::start();
    server.put("f/x.bin", bytes(100));
    server.fault("f/", 2, Fault::Status(503));
    let source = open(&Remote::new(), &server.url("f/x.bin")).unwrap();
    assert_eq!(source.read(0..100).unwrap(), bytes(100));
    assert_eq!(server.seen().len(), 3);
    for (status, kind, rule) in [
        (400, ErrorKind::Io, "file.network"),
        (401, ErrorKind::Io, "file.access"),
        (403, ErrorKind::Io, "file.access"),
        (404, ErrorKind::NotFound, "file.io"),
        (410, ErrorKind::NotFound, "file.io"),
    ] {
        server.fault("f/", 1, Fault::Status(status));
        let error = failed(open(
            &Remote::new(),
            &server.url("f/x.bin?signature=hidden-word"),
        ));
        assert_eq!((error.kind(), error.rule()), (kind, rule), "{error}");
        let host = format!("127.0.0.1:{} answered {status}", server.port);
        assert!(error.message().contains(&host), "{error}");
        assert_eq!(server.seen().len(), 1, "{status}");
    }
    let nobody = "http://127.0.0.1:1/x.bin";
    assert_eq!(failed(open(&Remote::new(), nobody)).rule(), "file.network");
}

#[test]
fn an_empty_file_is_empty() {
    let server = Server::start();
    server.put("bucket/x.bin", []);
    assert_eq!(
        open(&Remote::new(), &server.url("bucket/x.bin"))
            .unwrap()
            .len(),
        0
    );
    assert_eq!(open(&s3(&server), "s3://bucket/x.bin").unwrap().len(), 0);
}

#[test]
fn servers_without_ranges_are_read_whole_where_that_is_little() {
    let server = Server::start();
    server.put("f/x.bin", bytes(1 << 20));
    server.put("f/large.bin", vec![0; (64 << 20) + 1]);
    server.fault("f/", usize::MAX, Fault::NoRanges);
    let source = open(&Remote::new(), &server.url("f/x.bin")).unwrap();
    assert_eq!(
        source.read(500_000..500_100).unwrap(),
        bytes(1 << 20)[500_000..500_100]
    );
    assert_eq!(
        source.read(900_000..900_100).unwrap(),
        bytes(1 << 20)[900_000..900_100]
    );
    assert_eq!(server.seen().len(), 1);
    let error = failed(open(&Remote::new(), &server.url("f/large.bin")));
    assert_eq!(error.rule(), "file.ranges");
    assert!(error.message().contains("download it first"), "{error}");
}

#[test]
fn what_is_compressed_on_the_way_is_refused() {
    let server = Server::start();
    server.put("f/x.bin", bytes(1 << 20));
    server.fault("f/", usize::MAX, Fault::Encoded);
    let error = failed(open(&Remote::new(), &server.url("f/x.bin")));
    assert_eq!(error.rule(), "file.ranges");
    assert!(error.message().contains("gzip"), "{error}");
}

#[test]
fn redirects_are_followed_remembered_and_limited() {
    let (first, second) = (Server::start(), Server::start());
    second.put("signed/x.bin", bytes(1 << 20));
    first.fault(
        "f/",
        usize::MAX,
        Fault::Redirect(second.url("signed/x.bin?signature=1")),
    );
    let source = open(&Remote::new(), &first.url("f/x.bin")).unwrap();
    assert_eq!(
        source.read(500_000..500_100).unwrap(),
        bytes(1 << 20)[500_000..500_100]
    );
    assert_eq!((first.seen().len(), second.seen().len()), (1, 2));
    // It has expired: the first server is asked for another.
    second.fault("signed/", 1, Fault::Status(403));
    assert_eq!(
        source.read(900_000..900_100).unwrap(),
        bytes(1 << 20)[900_000..900_100]
    );
    assert_eq!((first.seen().len(), second.seen().len()), (1, 2));
    let circle = Server::start();
    circle.fault("f/", usize::MAX, Fault::Redirect(circle.url("f/y.bin")));
    let error = failed(open(&Remote::new(), &circle.url("f/x.bin")));
    assert_eq!(error.rule(), "file.redirect");
    assert_eq!(circle.seen().len(), 6);
    circle.fault(
        "g/",
        usize::MAX,
        Fault::Redirect("file:///etc/passwd".into()),
    );
    assert_eq!(
        failed(open(&Remote::new(), &circle.url("g/x"))).rule(),
        "file.redirect"
    );
}

#[test]
fn other_machines_are_not_asked_over_plain_http() {
    // Of a network that is for documentation: nobody is there, and nobody is asked.
    let error = failed(open(&Remote::new(), "http://192.0.2.1/x.bin"));
    assert_eq!(error.rule(), "file.insecure");
    assert_eq!(error.hints(), [Hint::AllowHttp]);
    let remote = Remote::new()
        .option("endpoint", "http://192.0.2.1")
        .option("token", "hidden-word")
        .allow_http(true);
    let error = failed(open(&remote, "hf://org/model/x.bin"));
    assert_eq!(error.rule(), "file.insecure");
    assert!(error.hints().is_empty(), "{error}");
    // A signature of Azure is a secret too.
    let remote = Remote::new()
        .option("azure_storage_endpoint", "http://192.0.2.1/account")
        .option("account_name", "account")
        .option("sas_token", "sv=1&sig=hidden-word")
        .allow_http(true);
    let error = failed(open(&remote, "az://container/x.bin"));
    assert_eq!(error.rule(), "file.insecure", "{error}");
}

#[test]
fn names_in_an_index_stay_beside_it() {
    let server = Server::start();
    for name in [
        "../other.safetensors",
        "a/b.safetensors",
        "a%2fb.safetensors",
        "https://host/x.safetensors",
        "..\\x.safetensors",
    ] {
        let index = format!(r#"{{"weight_map": {{"a": {name:?}}}}}"#);
        server.put("bucket/m/model.safetensors.index.json", index);
        server.seen();
        for url in [
            "s3://bucket/m/model.safetensors.index.json".to_owned(),
            server.url("bucket/m/model.safetensors.index.json"),
        ] {
            failed(OpenOptions::new().remote(&s3(&server)).open_url(&url));
        }
        for seen in server.seen() {
            let is_index = seen
                .target
                .starts_with("/bucket/m/model.safetensors.index.json");
            assert!(is_index || seen.target.starts_with("/bucket?"), "{seen:?}");
        }
    }
}

#[test]
fn a_prefix_is_a_directory_and_an_index_opens_without_a_list() {
    let server = Server::start();
    let directory = fixtures().join("safetensors/valid/sharded_3");
    for file in fs::read_dir(&directory)
        .unwrap()
        .flatten()
        .filter(|file| file.path().is_file())
    {
        server.put(
            &format!("bucket/m/{}", file.file_name().to_str().unwrap()),
            fs::read(file.path()).unwrap(),
        );
    }
    let local = content(&Archive::open(&directory).unwrap());
    let options = OpenOptions::new().remote(&s3(&server));
    for url in ["s3://bucket/m/", "s3://bucket/m"] {
        assert_eq!(content(&options.open_url(url).unwrap()), local, "{url}");
    }
    let url = server.url("bucket/m/model.safetensors.index.json");
    assert_eq!(content(&Archive::open_url(&url).unwrap()), local);
    let error = failed(options.open_url("s3://bucket/nothing"));
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn a_tree_under_a_prefix_is_listed_once_and_written_like_one() {
    let server = Server::start();
    for name in ["v3_group.zarr", "v2_group.zarr", "orbax_plain"] {
        let directory = fixtures().join("zarr/valid").join(name);
        let files = tenfold::io::DirectorySiblings::of(directory.join("any"));
        let tree = files.tree().unwrap().unwrap();
        for key in tree.keys() {
            let bytes = fs::read(directory.join(key)).unwrap();
            server.put(&format!("bucket/stores/{name}/{key}"), bytes);
        }
        let local = Archive::open(&directory).unwrap();
        let options = OpenOptions::new().remote(&s3(&server));
        for end in ["", "/"] {
            server.seen();
            let url = format!("s3://bucket/stores/{name}{end}");
            let there = options.open_url(&url).unwrap();
            let listed = |seen: &&server::Seen| seen.target.contains("list-type");
            let lists = server.seen().iter().filter(listed).count();
            assert!(lists <= 2, "{lists} lists of {url}");
            assert_eq!(content(&there), content(&local), "{url}");
        }
    }
    let archive = Archive::open(fixtures().join("zarr/valid/v3_group.zarr")).unwrap();
    let entry = *Registry::standard().get("zarr").unwrap();
    let url = RemoteUrl::parse("s3://bucket/new/x.zarr").unwrap();
    let mut out = RemoteOutput::new(&s3(&server), &url).unwrap();
    let conversion = Conversion::prepare(&archive, &entry, &ConvertOptions::new()).unwrap();
    conversion.write_to("x.zarr", &mut out).unwrap();
    let again = OpenOptions::new()
        .remote(&s3(&server))
        .open_remote(&url)
        .unwrap();
    assert_eq!(content(&again), content(&archive));
}

#[test]
fn wrong_credentials_are_said_to_be_wrong() {
    let server = Server::start();
    server.put("bucket/x.npy", bytes(100));
    server.state().key = Some("OTHER".into());
    let error = failed(open(&s3(&server), "s3://bucket/x.npy"));
    assert_eq!(error.rule(), "file.access");
    assert!(error.message().contains("InvalidAccessKeyId"), "{error}");
    assert_eq!(error.hints(), [Hint::Anonymous]);
    let error = failed(open(&s3(&server).anonymous(true), "s3://bucket/x.npy"));
    assert!(error.message().contains("AWS_ACCESS_KEY_ID"), "{error}");
    assert!(
        server.seen()[1..]
            .iter()
            .all(|seen| !seen.headers.contains_key("authorization"))
    );
    let error = failed(open(
        &Remote::new().option("endpiont", "x"),
        "s3://bucket/x.npy",
    ));
    assert!(error.message().contains("endpiont"), "{error}");
}

#[test]
fn the_hub_gets_its_token_and_nobody_else_does() {
    let (hub, files) = (Server::start(), Server::start());
    let path = fixtures().join("safetensors/valid/sharded_3");
    let commit = "c".repeat(40);
    let mut listing = Vec::new();
    for file in fs::read_dir(&path)
        .unwrap()
        .flatten()
        .filter(|file| file.path().is_file())
    {
        let name = file.file_name().into_string().unwrap();
        files.put(&format!("cdn/{name}"), fs::read(file.path()).unwrap());
        for revision in ["main", commit.as_str()] {
            let place = format!("org/model/resolve/{revision}/{name}");
            hub.fault(
                &place,
                usize::MAX,
                Fault::Redirect(files.url(&format!("cdn/{name}?signature=1"))),
            );
        }
        listing.push(format!(r#"{{"type":"file","path":"{name}","size":1}}"#));
    }
    for revision in ["main", commit.as_str()] {
        let place = format!("api/models/org/model/tree/{revision}");
        hub.put(&place, format!("[{}]", listing.join(",")));
    }
    let remote = Remote::new()
        .option("endpoint", hub.url(""))
        .option("token", "hf_token")
        .hub_cache(false);
    let options = OpenOptions::new().remote(&remote);
    let archive = options
        .open_url("hf://org/model/model.safetensors.index.json")
        .unwrap();
    assert_eq!(content(&archive), content(&Archive::open(&path).unwrap()));
    let seen = hub.seen();
    assert!(
        seen.iter()
            .all(|seen| seen.headers["authorization"] == "Bearer hf_token"),
        "{seen:?}"
    );
    // What belongs to the first file is of its revision, whatever is pushed meanwhile.
    assert!(
        seen[1..].iter().all(|seen| seen.target.contains(&commit)),
        "{seen:?}"
    );
    assert!(
        files
            .seen()
            .iter()
            .all(|seen| !seen.headers.contains_key("authorization"))
    );
    let archive = options.open_url("hf://org/model").unwrap();
    assert_eq!(content(&archive), content(&Archive::open(&path).unwrap()));
    hub.fault("", usize::MAX, Fault::Status(401));
    let anonymous = OpenOptions::new().remote(&remote.anonymous(true));
    let error = failed(anonymous.open_url("hf://org/model/other.gguf"));
    assert!(error.message().contains("HF_TOKEN"), "{error}");
}

#[test]
fn whoever_waits_can_be_stopped() {
    let server = Server::start();
    server.put("f/x.bin", bytes(1 << 20));
    let control = Arc::new(Control::new());
    let source = open(
        &Remote::new().stopped_by(control.clone()),
        &server.url("f/x.bin"),
    )
    .unwrap();
    server.fault("f/", usize::MAX, Fault::Stall(Duration::from_secs(600)));
    let waiting = thread::spawn(move || source.read(500_000..500_100));
    thread::sleep(Duration::from_millis(20));
    control.cancel();
    assert_eq!(failed(waiting.join().unwrap()).kind(), ErrorKind::Canceled);
}

/// An archive of this many bytes.
fn archive(len: usize) -> Archive {
    let mut builder = Archive::builder();
    for (name, len) in [("a", len / 2), ("b", len - len / 2)] {
        builder.tensor(name, [len as u64], bytes(len)).unwrap();
    }
    builder.finish()
}

fn convert(
    archive: &Archive,
    name: &str,
    options: &ConvertOptions,
    output: &mut dyn Output,
) -> tenfold::Result<()> {
    let registry = Registry::standard();
    let target = registry.get("safetensors")?;
    let conversion = Conversion::prepare(archive, target, options)?;
    conversion.write_to(name, output).map(drop)
}

fn local(archive: &Archive) -> Vec<u8> {
    let mut output = tenfold::io::MemoryOutput::new();
    convert(
        archive,
        "x.safetensors",
        &ConvertOptions::new(),
        &mut output,
    )
    .unwrap();
    output.into_files().remove("x.safetensors").unwrap()
}

/// The same way to the server as S3 and as Google's store.
fn stores(server: &Server) -> [(Remote, &'static str); 2] {
    let google = Remote::new()
        .option("base_url", server.url("").trim_end_matches('/'))
        .anonymous(true);
    [(s3(server), "s3"), (google, "gs")]
}

#[test]
fn files_are_written_whole_and_replace_nothing() {
    for len in [1000, 20 << 20] {
        let archive = archive(len);
        let expected = local(&archive);
        let server = Server::start();
        for (remote, scheme) in stores(&server) {
            let url =
                RemoteUrl::parse(&format!("{scheme}://bucket/{scheme}/x.safetensors")).unwrap();
            let key = format!("bucket/{scheme}/x.safetensors");
            let write = |force| {
                let mut output = RemoteOutput::new(&remote, &url)?.force(force);
                convert(
                    &archive,
                    "x.safetensors",
                    &ConvertOptions::new(),
                    &mut output,
                )
            };
            write(false).unwrap();
            assert!(server.state().files[&key] == expected, "{scheme} {len}");
            let error = failed(write(false));
            assert_eq!(error.rule(), "file.exists", "{error}");
            assert_eq!(error.hints(), [Hint::Replace]);
            server.put(&key, "something else");
            write(true).unwrap();
            assert!(server.state().files[&key] == expected);
            assert_eq!(server.unfinished(), 0);
            assert_eq!(
                server
                    .state()
                    .files
                    .keys()
                    .filter(|path| path.contains("tenfold-"))
                    .count(),
                0
            );
        }
    }
}

#[test]
fn whoever_is_second_loses_also_when_both_began_together() {
    for len in [1000, 20 << 20] {
        let archive = archive(len);
        let server = Server::start();
        for (remote, scheme) in stores(&server) {
            let url =
                RemoteUrl::parse(&format!("{scheme}://bucket/{scheme}/x.safetensors")).unwrap();
            let key = format!("bucket/{scheme}/x.safetensors");
            let mut output = RemoteOutput::new(&remote, &url).unwrap();
            let mut sink = output.create("x.safetensors", None).unwrap();
            sink.write(&local(&archive)).unwrap();
            sink.finish().unwrap();
            assert!(!server.state().files.contains_key(&key));
            server.put(&key, "the first");
            let error = failed(output.commit());
            assert_eq!(error.rule(), "file.exists", "{scheme} {len} {error}");
            drop(output);
            assert_eq!(server.state().files[&key], b"the first");
            assert_eq!(
                server.state().files.len(),
                1,
                "{:?}",
                server.state().files.keys()
            );
            assert_eq!(server.unfinished(), 0, "{scheme} {len}");
            server.state().files.clear();
        }
    }
}

#[test]
fn what_fails_leaves_nothing_behind() {
    let archive = archive(20 << 20);
    let server = Server::start();
    for (remote, scheme) in stores(&server) {
        // Each has a name of its own: what was sent for one may come late.
        let url = |name: &str| RemoteUrl::parse(&format!("{scheme}://bucket/{name}.safetensors"));
        let write = |name: &str, output: &mut RemoteOutput| {
            let name = format!("{name}.safetensors");
            convert(&archive, &name, &ConvertOptions::new(), output)
        };
        // It is dropped.
        let mut output = RemoteOutput::new(&remote, &url("a").unwrap()).unwrap();
        let mut sink = output.create("a.safetensors", None).unwrap();
        sink.write(&bytes(40 << 20)).unwrap();
        drop(sink);
        assert_eq!(server.unfinished(), 1);
        drop(output);
        assert_eq!(server.unfinished(), 0, "{scheme}");
        // A part is refused.
        let part = |name: &str| format!("bucket/{name}.safetensors? partNumber=2");
        server.fault(&part("b"), 1, Fault::Status(403));
        let output = RemoteOutput::new(&remote, &url("b").unwrap());
        let mut output = output.unwrap().force(true);
        let error = failed(write("b", &mut output));
        assert_eq!(error.rule(), "file.access", "{error}");
        drop(output);
        assert_eq!(server.unfinished(), 0, "{scheme}");
        // Somebody asks it to stop while the server does not answer.
        let control = Arc::new(Control::new());
        let remote = remote.stopped_by(control.clone());
        let output = RemoteOutput::new(&remote, &url("c").unwrap());
        let mut output = output.unwrap().force(true);
        server.fault(&part("c"), 1, Fault::Stall(Duration::from_secs(600)));
        let stopper = thread::spawn(move || {
            thread::sleep(Duration::from_millis(300));
            control.cancel();
        });
        let error = failed(write("c", &mut output));
        assert_eq!(error.kind(), ErrorKind::Canceled);
        drop(output);
        stopper.join().unwrap();
        assert_eq!(server.unfinished(), 0, "{scheme}");
        assert!(server.state().files.is_empty());
    }
}

/// What is written there if nothing else is, and what became of it.
fn write_once(
    remote: &Remote,
    url: &str,
    archive: &Archive,
    meanwhile: impl FnOnce(),
) -> tenfold::Result<()> {
    let mut output = RemoteOutput::new(remote, &RemoteUrl::parse(url)?)?;
    let mut sink = output.create("x.safetensors", None)?;
    sink.write(&local(archive))?;
    sink.finish()?;
    meanwhile();
    output.commit()
}

/// The requests that give a file its name, small and large, at both stores.
const NAMING: [(usize, &str, &str); 5] = [
    (1000, "s3", "PUT"),
    (20 << 20, "s3", "POST uploadId="),
    (1000, "gs", "PUT"),
    (20 << 20, "gs", "POST uploadId="),
    (20 << 20, "gs", "PUT !partNumber="),
];

#[test]
fn an_answer_that_is_lost_is_no_failure_and_nobody_elses_file_is_taken_for_ours() {
    for (len, scheme, naming) in NAMING {
        let archive = archive(len);
        let url = format!("{scheme}://bucket/x.safetensors");
        let fault = format!("bucket/x.safetensors {naming}");
        let at = |server: &Server| {
            let [s3, google] = stores(server);
            if scheme == "s3" { s3.0 } else { google.0 }
        };
        let server = Server::start();
        server.fault(&fault, 1, Fault::DoneAndCut);
        write_once(&at(&server), &url, &archive, || {}).unwrap();
        let again = |seen: &&server::Seen| !seen.target.contains("partNumber=");
        assert!(server.seen().iter().filter(again).count() > 3, "{naming}");
        assert_eq!(server.state().files.len(), 1, "{scheme} {naming}");
        assert!(server.state().files["bucket/x.safetensors"] == local(&archive));
        assert_eq!(server.unfinished(), 0, "{scheme} {naming}");
        // The first try does nothing, and somebody else is there before the second.
        let server = Server::start();
        server.fault(&fault, 1, Fault::Status(503));
        let theirs = || server.put("bucket/x.safetensors", bytes(len));
        let error = failed(write_once(&at(&server), &url, &archive, theirs));
        assert_eq!(error.rule(), "file.exists", "{scheme} {naming}: {error}");
        assert_eq!(server.state().files.len(), 1, "{scheme} {naming}");
        assert!(server.state().files["bucket/x.safetensors"] == bytes(len));
        assert_eq!(server.unfinished(), 0, "{scheme} {naming}");
    }
}

#[test]
fn conflicts_and_failures_after_a_success_are_tried_again() {
    for (len, scheme, naming) in NAMING {
        let faults = match naming {
            "POST uploadId=" if scheme == "s3" => vec![Fault::Conflict, Fault::LateFailure],
            _ if scheme == "s3" => vec![Fault::Conflict],
            _ => continue,
        };
        for fault in faults {
            let server = Server::start();
            server.fault(&format!("bucket/x.safetensors {naming}"), 2, fault);
            let archive = archive(len);
            let url = "s3://bucket/x.safetensors";
            write_once(&s3(&server), url, &archive, || {}).unwrap();
            assert!(server.state().files["bucket/x.safetensors"] == local(&archive));
        }
    }
}

#[test]
fn whoever_stops_an_upload_at_its_beginning_or_its_end_finds_nothing_left() {
    let archive = archive(20 << 20);
    for (when, late) in [
        ("POST uploads", Duration::from_millis(300)),
        ("POST uploadId=", Duration::from_secs(600)),
    ] {
        let server = Server::start();
        for (remote, scheme) in stores(&server) {
            let control = Arc::new(Control::new());
            let remote = remote.stopped_by(control.clone());
            let pattern = format!("bucket/{scheme} {when}");
            server.fault(&pattern, 1, Fault::DoneAndLate(late));
            let url = RemoteUrl::parse(&format!("{scheme}://bucket/{scheme}.safetensors")).unwrap();
            let mut output = RemoteOutput::new(&remote, &url).unwrap();
            let (watched, word) = (server.clone(), when.split_once(' ').unwrap().1);
            let stopper = thread::spawn(move || {
                let is_meant =
                    |seen: &server::Seen| seen.method == "POST" && seen.target.contains(word);
                while !watched.state().log.iter().any(is_meant) {
                    thread::sleep(Duration::from_millis(1));
                }
                control.cancel();
            });
            let options = ConvertOptions::new();
            let name = format!("{scheme}.safetensors");
            let error = failed(convert(&archive, &name, &options, &mut output));
            assert_eq!(error.kind(), ErrorKind::Canceled, "{error}");
            drop(output);
            stopper.join().unwrap();
            assert_eq!(server.unfinished(), 0, "{scheme} {when}");
            assert!(server.state().files.is_empty(), "{scheme} {when}");
            server.seen();
        }
    }
}

#[test]
fn keys_of_a_program_count_more_than_a_profile_without_any() {
    const CONFIG: &str = "AWS_CONFIG_FILE";
    if std::env::var_os(CONFIG).is_none() {
        // The environment belongs to the process: the test is run once more in one that has such a profile.
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "[profile work]\nsso_session = x\n").unwrap();
        let again = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", thread::current().name().unwrap()])
            .env(CONFIG, file.path())
            .env("AWS_PROFILE", "work")
            .env_remove("AWS_ACCESS_KEY_ID")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&again.stdout);
        assert!(
            again.status.success() && said.contains("1 passed"),
            "{said}"
        );
        return;
    }
    let server = Server::start();
    server.put("bucket/x.bin", bytes(100));
    assert_eq!(open(&s3(&server), "s3://bucket/x.bin").unwrap().len(), 100);
    let without = Remote::new().option("endpoint", server.url(""));
    let error = failed(open(&without, "s3://bucket/x.bin"));
    assert!(error.message().contains("export-credentials"), "{error}");
    let anonymous = without.anonymous(true);
    assert_eq!(open(&anonymous, "s3://bucket/x.bin").unwrap().len(), 100);
}

#[test]
fn a_store_without_ranges_is_said_to_have_none() {
    let server = Server::start();
    server.put("bucket/x.bin", bytes(1 << 20));
    server.fault("bucket/", usize::MAX, Fault::NoRanges);
    let error = failed(open(&s3(&server), "s3://bucket/x.bin"));
    assert_eq!(error.rule(), "file.ranges", "{error}");
}

#[test]
fn a_session_that_has_expired_is_said_to_have() {
    let server = Server::start();
    server.put("bucket/x.bin", bytes(100));
    server.fault("bucket/", 1, Fault::Expired);
    let error = failed(open(&s3(&server), "s3://bucket/x.bin"));
    assert_eq!(error.rule(), "file.access", "{error}");
    assert!(error.message().contains("expired"), "{error}");
}

#[test]
fn every_part_carries_its_digest_and_a_damaged_one_is_refused() {
    let server = Server::start();
    let remote = s3(&server);
    for (len, parts) in [(1000, 1), (20 << 20, 3)] {
        let url = RemoteUrl::parse(&format!("s3://bucket/{len}.safetensors")).unwrap();
        let name = format!("{len}.safetensors");
        let write = |force| {
            let mut output = RemoteOutput::new(&remote, &url)?.force(force);
            convert(&archive(len), &name, &ConvertOptions::new(), &mut output)
        };
        server.state().log.clear();
        write(false).unwrap();
        let seen = server.seen();
        let puts: Vec<_> = seen.iter().filter(|seen| seen.method == "PUT").collect();
        assert_eq!(puts.len(), parts);
        // The server has compared them.
        let has_digest = |seen: &&server::Seen| {
            let digest = &seen.headers["x-amz-content-sha256"];
            digest.len() == 64 && digest.chars().all(|c| c.is_ascii_hexdigit())
        };
        assert!(puts.iter().all(has_digest));
        server.fault(&format!("bucket/{name}"), 100, Fault::Damaged);
        failed(write(true));
        server.state().clear_faults();
        assert_eq!(server.unfinished(), 0);
        assert_eq!(
            server.state().files[&format!("bucket/{name}")],
            {
                let mut output = tenfold::io::MemoryOutput::new();
                convert(&archive(len), &name, &ConvertOptions::new(), &mut output).unwrap();
                output.into_files().remove(&name).unwrap()
            },
            "what was there stays"
        );
    }
}

#[test]
fn an_output_that_is_not_what_it_should_be_is_found_by_comparing_and_taken_back() {
    let archive = archive(20 << 20);
    let server = Server::start();
    let remote = s3(&server);
    let key = "bucket/x.safetensors";
    let write = |check: bool| {
        let url = RemoteUrl::parse("s3://bucket/x.safetensors").unwrap();
        let mut output = RemoteOutput::new(&remote, &url)?;
        let options = ConvertOptions::new().check(check);
        convert(&archive, "x.safetensors", &options, &mut output)
    };
    write(true).unwrap();
    assert!(server.state().files.remove(key).unwrap() == local(&archive));
    let part = "bucket/x.safetensors? partNumber=2";
    server.fault(part, 1, Fault::Rots);
    let error = failed(write(true));
    assert!(error.message().contains("does not read back"), "{error}");
    assert!(server.state().files.is_empty());
    // Nobody has looked.
    server.fault(part, 1, Fault::Rots);
    write(false).unwrap();
    assert!(server.state().files[key] != local(&archive));
}

#[test]
fn what_belongs_to_a_model_comes_along_from_a_url_to_another() {
    let server = Server::start();
    let remote = s3(&server);
    let options = ConvertOptions::new();
    let url = |text: &str| RemoteUrl::parse(text).unwrap();
    let from = "s3://bucket/model/";
    let mut output = RemoteOutput::new(&remote, &url(from)).unwrap();
    convert(&archive(1000), "model.safetensors", &options, &mut output).unwrap();
    let config = r#"{"dtype": "uint8"}"#;
    server.put("bucket/model/config.json", config);
    server.put("bucket/model/tokenizer.json", bytes(3 << 20));
    server.put("bucket/model/optimizer.pt", "a pickle, which is not copied");
    server.put("bucket/model/.hidden", "nor is this");
    server.put("bucket/model/below/more.json", "nor this");
    let open = OpenOptions::new().remote(&remote);
    let companions = open.remote_companions(&url(from)).unwrap();
    let found: Vec<_> = companions.iter().map(|c| (&*c.name, c.len)).collect();
    assert_eq!(found, [("config.json", 18), ("tokenizer.json", 3 << 20)]);
    assert_eq!(
        companions[0].path,
        Path::new("s3://bucket/model/config.json")
    );
    let archive = open.open_url(from).unwrap();
    let registry = Registry::standard();
    let conversion =
        Conversion::prepare(&archive, registry.get("safetensors").unwrap(), &options).unwrap();
    let mut output = RemoteOutput::new(&remote, &url("s3://bucket/copy/")).unwrap();
    let conversion = conversion.bringing(companions);
    conversion
        .write_to("model.safetensors", &mut output)
        .unwrap();
    let files = server.state().files.clone();
    assert_eq!(files["bucket/copy/config.json"], config.as_bytes());
    assert!(files["bucket/copy/tokenizer.json"] == bytes(3 << 20));
    let copied = files.keys().filter(|path| path.starts_with("bucket/copy/"));
    assert_eq!(copied.count(), 3);
}

#[test]
fn shards_come_before_their_index_and_a_prefix_must_be_empty() {
    let server = Server::start();
    let remote = s3(&server);
    let archive = archive(4000);
    let url = RemoteUrl::parse("s3://bucket/out/").unwrap();
    let options = ConvertOptions::new().shards(Some(Shards::Size(2500)));
    let mut output = RemoteOutput::new(&remote, &url).unwrap();
    convert(&archive, "model.safetensors", &options, &mut output).unwrap();
    let puts = server
        .seen()
        .into_iter()
        .filter(|seen| seen.method == "PUT");
    let puts: Vec<_> = puts.map(|seen| seen.target).collect();
    assert_eq!(puts.len(), 3, "{puts:?}");
    assert!(puts[2].contains("index.json"), "{puts:?}");
    let far = OpenOptions::new()
        .remote(&remote)
        .open_url("s3://bucket/out/")
        .unwrap();
    assert_eq!(content(&far), content(&archive));
    assert_eq!(
        failed(RemoteOutput::new(&remote, &url)).rule(),
        "file.exists"
    );
    for url in ["https://host/x.npy", "hf://org/model/x.npy"] {
        let error = failed(RemoteOutput::new(&remote, &RemoteUrl::parse(url).unwrap()));
        assert!(error.message().contains("s3://"), "{error}");
    }
}

#[test]
fn requests_are_told_without_what_is_secret() {
    let server = Server::start();
    server.put("f/x.bin", bytes(100));
    let remote = Remote::new();
    remote.traffic().keep(true);
    let source = open(&remote, &server.url("f/x.bin?signature=hidden-word")).unwrap();
    assert_eq!(source.len(), 100);
    let requests = remote.traffic().take();
    let shown = requests.iter().map(ToString::to_string).collect::<String>();
    assert!(
        shown.starts_with(&format!(
            "GET 127.0.0.1:{}/f/x.bin bytes=0-65535: 206, 100 bytes, ",
            server.port
        )),
        "{shown}"
    );
    assert!(!shown.contains("hidden-word") && !format!("{remote:?}").contains("hidden-word"));
    assert!(!format!("{:?}", s3(&server)).contains("hidden-word"));
    // Where a file is known by less than a tag, that is told too.
    assert!(!shown.contains("no tag"), "{shown}");
    server.fault("f/", usize::MAX, Fault::WeakTag);
    open(&remote, &server.url("f/x.bin")).unwrap();
    let shown = remote.traffic().take()[0].to_string();
    assert!(
        shown.ends_with("; no tag, length and date are compared"),
        "{shown}"
    );
}
