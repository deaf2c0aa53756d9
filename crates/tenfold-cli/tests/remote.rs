//! The command on URLs, on a small server of our own.
#![cfg(all(unix, feature = "remote"))]
// A test that panics has failed, which is what it is for; the files that it writes are its own.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]
#![allow(
    dead_code,
    unreachable_pub,
    reason = "the server has more than these tests use"
)]

#[path = "../../tenfold/tests/support/server.rs"]
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use server::{Fault, PAGE, Server};

const BINARY: &str = env!("CARGO_BIN_EXE_tenfold");
const MODEL: &str = "safetensors/valid/medium_64k.safetensors";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(name)
}

/// The command in a directory of its own, with nothing of the user's environment.
struct Shell {
    directory: tempfile::TempDir,
    environment: Vec<(&'static str, String)>,
}

impl Shell {
    fn new() -> Self {
        let directory = tempfile::TempDir::new().unwrap();
        let home = directory.path().display().to_string();
        Self {
            directory,
            environment: vec![("HOME", home), ("AWS_EC2_METADATA_DISABLED", "true".into())],
        }
    }

    fn s3(server: &Server) -> Self {
        let mut shell = Self::new();
        shell.environment.extend([
            ("AWS_ENDPOINT_URL", server.url("")),
            ("AWS_ACCESS_KEY_ID", "KEY".into()),
            ("AWS_SECRET_ACCESS_KEY", "hidden-word".into()),
            ("AWS_REGION", "us-east-1".into()),
        ]);
        shell
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        let environment = self
            .environment
            .iter()
            .map(|(name, value)| (name, value.as_str()));
        command
            .args(args)
            .current_dir(self.directory.path())
            .env_clear()
            .envs(environment);
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        let output = self.command(args).output().unwrap();
        let said = said(&output);
        assert!(
            !said.contains(PAGE) && !said.contains("hidden-word"),
            "{said}"
        );
        output
    }

    /// What it prints, if it succeeds.
    fn prints(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What it says, if it fails.
    fn fails(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output));
        said(&output)
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn commands_print_of_a_url_what_they_print_of_a_path() {
    let server = Server::start();
    server.put(
        "bucket/m/model.safetensors",
        fs::read(fixture(MODEL)).unwrap(),
    );
    let shell = Shell::s3(&server);
    fs::copy(
        fixture(MODEL),
        shell.directory.path().join("model.safetensors"),
    )
    .unwrap();
    let web = server.url("bucket/m/model.safetensors");
    for args in [
        &["inspect", "FILE"][..],
        &["inspect", "--json", "FILE"],
        &["inspect", "--tree", "FILE"],
        &["verify", "FILE"],
        &["digest", "--json", "FILE"],
        &["stats", "--json", "FILE"],
        &["scan", "--json", "FILE"],
        &["diff", "FILE", "model.safetensors"],
        &["meta", "get", "FILE"],
    ] {
        let of = |file: &str| {
            let args: Vec<_> = args.iter().map(|arg| arg.replace("FILE", file)).collect();
            let args: Vec<_> = args.iter().map(String::as_str).collect();
            let output = shell.run(&args);
            let shown = web.split('?').next().unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            let printed = printed
                .replace("s3://bucket/m/model.safetensors", "model.safetensors")
                .replace(shown, "model.safetensors");
            (output.status.code(), printed)
        };
        let local = of("model.safetensors");
        assert_eq!(of("s3://bucket/m/model.safetensors"), local, "{args:?}");
        assert_eq!(
            of(&format!("{web}?signature=hidden-word")),
            local,
            "{args:?}"
        );
    }
    let local = shell.directory.path().join("model.safetensors");
    shell.prints(&[
        "convert",
        "-q",
        "s3://bucket/m/model.safetensors",
        "far.gguf",
    ]);
    shell.prints(&["convert", "-q", local.to_str().unwrap(), "near.gguf"]);
    let read = |name: &str| fs::read(shell.directory.path().join(name)).unwrap();
    assert!(read("far.gguf") == read("near.gguf"));
}

#[test]
fn requests_are_printed_where_that_is_asked_for() {
    let server = Server::start();
    server.put("m/model.safetensors", fs::read(fixture(MODEL)).unwrap());
    let url = format!(
        "{}?signature=hidden-word",
        server.url("m/model.safetensors")
    );
    let output = Shell::new().run(&["inspect", "--summary", "--verbose", &url]);
    let said = said(&output);
    let begin = format!(
        "tenfold: GET 127.0.0.1:{}/m/model.safetensors bytes=0-65535: 206, ",
        server.port
    );
    assert!(said.starts_with(&begin), "{said}");
    assert!(said.lines().last().unwrap().contains(" request"), "{said}");
    assert!(
        !Shell::new()
            .run(&["inspect", "--summary", &url])
            .stderr
            .windows(3)
            .any(|word| word == b"GET")
    );
}

#[test]
fn buckets_are_written_to_and_nothing_is_replaced() {
    let server = Server::start();
    let shell = Shell::s3(&server);
    let local = fixture(MODEL);
    let local = local.to_str().unwrap();
    shell.prints(&["convert", "-q", local, "s3://bucket/x.zt"]);
    let said = shell.fails(&["convert", local, "s3://bucket/x.zt"]);
    assert!(
        said.contains("s3://bucket/x.zt already exists; pass --force to replace it"),
        "{said}"
    );
    shell.prints(&["convert", "-q", local, "s3://bucket/x.zt", "--force"]);
    shell.prints(&[
        "split",
        "-q",
        local,
        "-o",
        "s3://bucket/parts/",
        "--parts",
        "2",
    ]);
    let digest = |url: &str| {
        shell
            .prints(&["digest", "--json", url])
            .split("\"content\":")
            .nth(1)
            .unwrap()[..70]
            .to_owned()
    };
    assert_eq!(digest("s3://bucket/parts/"), digest(local));
    shell
        .prints(&["show", "s3://bucket/x.zt", "emb", "-o", "s3://bucket/e.npy"])
        .clear();
    assert!(server.state().files["bucket/e.npy"].starts_with(b"\x93NUMPY"));
    assert_eq!(server.unfinished(), 0);
}

#[test]
fn what_cannot_be_done_with_a_url_is_said_before_anything_is_asked() {
    let server = Server::start();
    let shell = Shell::s3(&server);
    let local = fixture(MODEL);
    let local = local.to_str().unwrap();
    for (args, words) in [
        (
            &[
                "rename",
                "s3://bucket/x.zt",
                "--rule",
                "s/a/b/",
                "--in-place",
            ][..],
            "written whole or not at all",
        ),
        (
            &["convert", local, "https://host/x.zt"],
            "not to web servers",
        ),
        (&["inspect", "http://192.0.2.1/x.zt"], "--allow-http"),
        (&["inspect", "ftp://host/x.zt"], "ftp:// are not read"),
        (&["inspect", "hf://model"], "hf://ORG/MODEL"),
    ] {
        let said = shell.fails(args);
        assert!(said.contains(words), "{args:?}: {said}");
    }
    assert!(server.seen().is_empty());
}

#[test]
fn failures_have_a_host_a_status_and_a_remedy() {
    let server = Server::start();
    server.state().key = Some("OTHER".into());
    let mut shell = Shell::s3(&server);
    let said = shell.fails(&["inspect", "s3://bucket/x.zt"]);
    assert!(
        said.contains(&format!(
            "127.0.0.1:{} answered 403 (InvalidAccessKeyId)",
            server.port
        )),
        "{said}"
    );
    assert!(said.contains("--anonymous"), "{said}");
    // Of a profile, where the environment has no keys.
    shell
        .environment
        .retain(|(name, _)| !name.ends_with("KEY_ID") && !name.ends_with("ACCESS_KEY"));
    let said = shell.fails(&["inspect", "s3://bucket/x.zt"]);
    assert!(said.contains("AWS_PROFILE"), "{said}");
    fs::create_dir(shell.directory.path().join(".aws")).unwrap();
    fs::write(
        shell.directory.path().join(".aws/credentials"),
        "[work]\naws_access_key_id = OTHER\naws_secret_access_key = hidden-word\n",
    )
    .unwrap();
    shell.environment.push(("AWS_PROFILE", "work".into()));
    server.put("bucket/x.safetensors", fs::read(fixture(MODEL)).unwrap());
    shell.prints(&["inspect", "s3://bucket/x.safetensors"]);
    shell.environment.push(("AWS_PROFILE", "nobody".into()));
    assert!(
        shell
            .fails(&["inspect", "s3://bucket/x.safetensors"])
            .contains("nobody")
    );
}

#[test]
fn a_profile_without_keys_is_refused_only_where_there_are_no_others() {
    let server = Server::start();
    server.put("bucket/x.safetensors", fs::read(fixture(MODEL)).unwrap());
    let shell = |environment: &[(&'static str, &str)]| {
        let mut shell = Shell::new();
        let own = environment
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        shell.environment.extend(own);
        shell.environment.push(("AWS_ENDPOINT_URL", server.url("")));
        fs::create_dir(shell.directory.path().join(".aws")).unwrap();
        let config = "[default]\nsso_session = a\n[profile work]\nrole_arn = b\nregion = eu-9\n";
        fs::write(shell.directory.path().join(".aws/config"), config).unwrap();
        shell
    };
    let inspect = &["inspect", "s3://bucket/x.safetensors"][..];
    let work = ("AWS_PROFILE", "work");
    let keys = [
        ("AWS_ACCESS_KEY_ID", "KEY"),
        ("AWS_SECRET_ACCESS_KEY", "hidden-word"),
    ];
    // Of the profile, the region counts all the same.
    shell(&[work, keys[0], keys[1]]).prints(inspect);
    let authorization = server.seen()[0].headers["authorization"].clone();
    assert!(authorization.contains("/eu-9/s3/"), "{authorization}");
    shell(&[work]).prints(&[inspect, &["--anonymous"]].concat());
    server.seen();
    let said = shell(&[work]).fails(inspect);
    assert!(
        said.contains("\"work\" has no keys") && said.contains("export-credentials"),
        "{said}"
    );
    assert!(server.seen().is_empty());
    // Nobody said that the default one is meant: public files are read, and others say what would help.
    shell(&[]).prints(inspect);
    server.state().key = Some("OTHER".into());
    let said = shell(&[]).fails(inspect);
    assert!(
        said.contains("403") && said.contains("export-credentials"),
        "{said}"
    );
}

#[test]
fn secrets_in_an_address_are_in_no_output() {
    let server = Server::start();
    let (_, place) = server
        .url("x.npy")
        .split_once("://")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    let shell = Shell::new();
    for url in [
        format!("http://me:hidden-word@{place}?sig=1"),
        format!("http://hidden-word@{place}"),
        format!("HTTP://{place}?sig=hidden-word"),
        format!("http://{place}#hidden-word?hidden-word"),
        "https://me:hidden-word@h/x?sig=1".to_owned(),
    ] {
        for args in [
            &["inspect", "--json", &url][..],
            &["verify", "--json", &url],
            &["convert", "x.npy", &url],
        ] {
            let output = shell.run(args);
            assert_eq!(output.status.code(), Some(2), "{url}");
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(!printed.contains("hidden-word"), "{printed}");
        }
    }
}

#[test]
fn the_hub_is_read_like_a_directory_and_a_file() {
    let server = Server::start();
    let model = fs::read(fixture(MODEL)).unwrap();
    server.put("org/model/resolve/main/model.safetensors", model);
    let listing = r#"[{"type":"file","path":"model.safetensors","size":1}]"#;
    server.put("api/models/org/model/tree/main", listing);
    let mut shell = Shell::new();
    shell.environment.push(("HF_ENDPOINT", server.url("")));
    shell.environment.push(("HF_TOKEN", "hidden-word".into()));
    let local = shell.prints(&["stats", "--json", fixture(MODEL).to_str().unwrap()]);
    for url in ["hf://org/model", "hf://org/model/model.safetensors"] {
        let far = shell.prints(&["stats", "--json", url]);
        let local = local.replace(fixture(MODEL).to_str().unwrap(), url);
        assert_eq!(far, local, "{url}");
    }
    let is_sent = |seen: server::Seen| seen.headers["authorization"] == "Bearer hidden-word";
    assert!(server.seen().into_iter().all(is_sent));
}

#[test]
fn places_of_the_hub_name_no_file_of_this_machine() {
    let mut shell = Shell::new();
    let secret = shell.directory.path().join("secret.safetensors");
    fs::copy(fixture(MODEL), &secret).unwrap();
    let snapshot = "hub/models--org--model/snapshots/main";
    fs::create_dir_all(shell.directory.path().join(snapshot)).unwrap();
    let cache = shell.directory.path().join("hub").display().to_string();
    shell.environment.push(("HF_HUB_CACHE", cache));
    shell.environment.push(("HF_HUB_OFFLINE", "1".into()));
    let escaped = secret.display().to_string().replace('/', "%2F");
    for url in [
        format!("hf://org/model/{}", secret.display()),
        format!("hf://org/model@{escaped}/x.safetensors"),
        "hf://org/model/../../../../secret.safetensors".to_owned(),
    ] {
        let said = shell.fails(&["inspect", &url]);
        assert!(said.contains("hf://ORG/MODEL"), "{said}");
    }
}

#[test]
fn lists_are_read_behind_urls_and_what_is_not_says_so() {
    let server = Server::start();
    let shell = Shell::s3(&server);
    server.put(
        "bucket/m/model.safetensors",
        fs::read(fixture(MODEL)).unwrap(),
    );
    let digests = shell.prints(&["digest", "--json", "s3://bucket/m/model.safetensors"]);
    server.put("bucket/m/digests.json", digests);
    let list = "--against=s3://bucket/m/digests.json";
    shell.prints(&["verify", list, "s3://bucket/m/model.safetensors"]);
    let said = shell.fails(&["inspect", "--recursive", "s3://bucket/m/"]);
    assert!(
        said.contains("--recursive looks through directories of this machine"),
        "{said}"
    );
    let (local, to) = (fixture(MODEL), "--quantize=q8_0");
    let local = local.to_str().unwrap();
    let matrix = "--imatrix=s3://bucket/m/imatrix.gguf";
    let said = shell.fails(&["convert", local, "out.gguf", to, matrix]);
    assert!(
        said.contains("--imatrix reads files of this machine"),
        "{said}"
    );
}

#[test]
fn the_cache_of_the_hub_is_read_and_said() {
    let server = Server::start();
    let mut shell = Shell::new();
    let commit = "c".repeat(40);
    let repository = shell.directory.path().join("hub/models--org--model");
    fs::create_dir_all(repository.join("refs")).unwrap();
    fs::write(repository.join("refs/main"), &commit).unwrap();
    let snapshot = repository.join("snapshots").join(&commit);
    fs::create_dir_all(&snapshot).unwrap();
    fs::copy(fixture(MODEL), snapshot.join("model.safetensors")).unwrap();
    shell.environment.push((
        "HF_HUB_CACHE",
        shell.directory.path().join("hub").display().to_string(),
    ));
    shell.environment.push(("HF_ENDPOINT", server.url("")));
    let output = shell.run(&["inspect", "hf://org/model/model.safetensors"]);
    assert!(
        output.status.success() && said(&output).contains("the Hub's cache"),
        "{}",
        said(&output)
    );
    assert!(server.seen().is_empty());
    shell.fails(&["inspect", "--no-cache", "hf://org/model/model.safetensors"]);
    assert!(!server.seen().is_empty());
    shell.environment.push(("HF_HUB_OFFLINE", "1".into()));
    shell.prints(&["inspect", "hf://org/model"]);
    let said = shell.fails(&["inspect", "hf://org/model/other.gguf"]);
    assert!(said.contains("HF_HUB_OFFLINE"), "{said}");
    assert!(server.seen().is_empty());
}

#[test]
fn a_written_object_is_compared_and_companions_come_along() {
    let server = Server::start();
    let shell = Shell::s3(&server);
    let model = fixture(MODEL);
    let model = model.to_str().unwrap();
    shell.prints(&["convert", model, "s3://b/m/model.safetensors"]);
    let seen = server.seen();
    assert!(seen.iter().all(|seen| seen.method != "GET"), "{seen:?}");
    let output = shell.run(&["convert", "--check", model, "s3://b/m/other.gguf"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("the digests of all tensors agree"));
    let seen = server.seen();
    assert!(seen.iter().any(|seen| seen.method == "GET"), "{seen:?}");
    server.state().files.remove("b/m/other.gguf");
    server.fault("b/m/bad.gguf", 100, Fault::Rots);
    let said = shell.fails(&["convert", "--check", model, "s3://b/m/bad.gguf"]);
    assert!(
        said.contains("bad.gguf") || said.contains("read back"),
        "{said}"
    );
    assert!(!server.state().files.contains_key("b/m/bad.gguf"));
    server.put("b/m/config.json", "{}");
    server.put("b/m/tokenizer.json", "[]");
    // From there, to there, and from there to here.
    shell.prints(&["convert", "s3://b/m/", "s3://b/copy/"]);
    shell.prints(&["convert", "s3://b/m/", "here/"]);
    for name in ["config.json", "tokenizer.json"] {
        let path = shell.directory.path().join("here").join(name);
        assert_eq!(server.state().files[&format!("b/copy/{name}")].len(), 2);
        assert_eq!(fs::read(path).unwrap().len(), 2);
    }
    shell.prints(&["convert", "here/", "s3://b/back/"]);
    assert_eq!(server.state().files["b/back/config.json"], b"{}");
}

#[test]
fn ctrl_c_ends_waiting_for_a_server_and_leaves_nothing() {
    use std::os::unix::process::ExitStatusExt;

    const FROM: usize = 2 << 20;
    const DATA: usize = 4 << 20;
    let server = Server::start();
    let header = format!(r#"{{"w":{{"dtype":"U8","shape":[{DATA}],"data_offsets":[0,{DATA}]}}}}"#);
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.resize(file.len() + DATA, 7);
    server.put("m/model.safetensors", file);
    // The header comes, and the end of the tensor does not.
    server.fault("m/", usize::MAX, Fault::StallFrom(FROM));
    let shell = Shell::new();
    let url = server.url("m/model.safetensors");
    let mut child = shell
        .command(&["convert", "-q", &url, "out.npz"])
        .spawn()
        .unwrap();
    let is_waiting = || {
        let log = &server.state().log;
        log.iter().any(|seen| seen.first_byte() >= Some(FROM))
    };
    while !is_waiting() {
        assert_eq!(child.try_wait().unwrap(), None, "it should wait");
        thread::sleep(Duration::from_millis(1));
    }
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let status = child.wait().unwrap();
    assert!(
        status.code() == Some(130) || status.signal() == Some(2),
        "{status:?}"
    );
    let left = fs::read_dir(shell.directory.path()).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn without_a_url_there_is_no_network() {
    // Where the system does not let us be without one, nothing is shown here.
    let alone = ["--map-root-user", "--net", "true"];
    if !Command::new("unshare")
        .args(alone)
        .status()
        .is_ok_and(|status| status.success())
    {
        eprintln!("skipped: unshare --net does not work here");
        return;
    }
    let model = fixture(MODEL);
    let model = model.to_str().unwrap();
    let directory = tempfile::TempDir::new().unwrap();
    for args in [
        &["inspect", model][..],
        &["verify", model],
        &["digest", model],
        &["stats", model],
        &["scan", model],
        &["show", model, "emb"],
        &["meta", "get", model],
        &["diff", model, model],
        &["convert", "-q", model, "out.gguf"],
        &["extract", model, "-t", "emb", "-o", "emb.npy"],
        &["split", "-q", model, "-o", "parts/", "--parts", "2"],
        &["merge", "-q", "parts/", "-o", "merged.zt"],
        &[
            "rename",
            "-q",
            model,
            "-o",
            "renamed.zt",
            "--rule",
            "s/emb/b/",
        ],
    ] {
        let output = Command::new("unshare")
            .args(["--map-root-user", "--net", BINARY])
            .args(args)
            .current_dir(directory.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
    let shell = Shell::new();
    // And no thread for it either: the command has one more as soon as there is a URL.
    let traced = shell.run(&["inspect", "--verbose", model]);
    assert!(
        said(&traced).contains("0 requests, 0 B received"),
        "{}",
        said(&traced)
    );
}
